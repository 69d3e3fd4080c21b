"""A fourth wire format, for the test that a folder and one line are enough."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import ClassVar

from switchyard_core.answering import ModelReply, ModelUsage
from switchyard_core.conversation import Conversation, Text, ToolCall, ToolResult
from switchyard_core.jsonio.tree import ObjectText, encode
from switchyard_core.wire.answers import AnswerPart, Event, PartWriter
from switchyard_core.wire.format import Format
from switchyard_core.wire.history import (
    PLANNER,
    BlankPart,
    BodyView,
    MadeCall,
    ReasoningPart,
    ToolTurn,
    Turns,
    blank,
)
from switchyard_core.wire.naming import ToolNames
from switchyard_core.wire.neutral import (
    AskedTool,
    Call,
    NeutralPart,
    NeutralRequest,
    Result,
    Thought,
    Told,
    ToolName,
    Turn,
    Words,
)
from switchyard_core.wire.pairing import paired
from switchyard_core.wire.replies import ShapeError, count
from switchyard_core.wire.retelling import AnswerReader

#: ``{"setup": "…", "talk": [{"by": "me" | "bot" | "tool", "say", "think", "no", "does"}]}``: a
#: bot's ``does`` is the tool that it calls ``with`` arguments, ``no`` the call's id, which a tool
#: repeats. ``tools`` are names.
_ROLES = {"me": "user", "bot": "assistant", "tool": "tool"}


class _Thought(ReasoningPart):
    def __init__(self, index: int, turn: ObjectText) -> None:
        super().__init__(index, f"the thought of talk[{index}]", turn.text("think") or "")
        self.turn = turn

    def become(self, text: str) -> None:
        self.turn.delete("think")
        self.turn.set("say", encode(text + (self.turn.text("say") or "")))

    def remove(self) -> Sequence[str]:
        return [self.name] if self.turn.delete("think") else []


class _Talk(ToolTurn):
    def __init__(self, view: ToyView, calls: list[MadeCall], results: list[MadeCall]) -> None:
        super().__init__(calls, results)
        self.view = view

    def repair(self, strays: Sequence[MadeCall], missing: Sequence[MadeCall], text: str) -> None:
        for call in reversed(missing):
            made = {"by": "tool", "no": next(iter(call.ids)), "say": text}
            self.view.items.insert(call.index + 1, encode(made))
        for stray in reversed(strays):
            self.view.items.delete(stray.index)


class ToyView(BodyView):
    key = "talk"

    def reasoning(self) -> list[ReasoningPart]:
        found = ((n, turn) for n, turn in self.items.objects() if "think" in turn)
        return [_Thought(n, turn) for n, turn in found if self.items.tagged(n, PLANNER)]

    def drop_companions(self) -> list[str]:
        return []

    def id_fields(self) -> Iterator[tuple[ObjectText, str]]:
        return ((turn, "no") for _, turn in self.items.objects() if "no" in turn)

    def tool_turns(self) -> list[ToolTurn]:
        made = [(n, t.text("by"), t.text("no")) for n, t in self.items.objects() if "no" in t]
        turns = [(by, MadeCall(frozenset({no}), n, f"talk[{n}]")) for n, by, no in made]
        calls = [call for by, call in turns if by == "bot"]
        return [_Talk(self, calls, [result for by, result in turns if by == "tool"])]

    def blanks(self, index: int) -> list[BlankPart]:
        turn = self.items.object(index)
        empty = turn.text("by") == "tool" and blank(turn, "say")
        return [BlankPart(f"talk[{index}]", turn, "say")] if empty else []

    def is_empty(self, index: int) -> bool:
        turn = self.items.object(index)
        return turn.text("by") == "bot" and blank(turn, "say") and "no" not in turn

    def user_item(self, text: str) -> bytes:
        return encode({"by": "me", "say": text})

    def append_user_text(self, text: str, end: int | None = None) -> str:
        end = len(self.items) if end is None else end
        if self.items.raw(end - 1) == self.user_item(text):
            return ""
        self.items.insert(end, self.user_item(text))
        return "added a turn"

    def add_instruction(self, text: str, *, append: bool) -> str:
        return self.join_text("setup", "talk", text, append=append)


class ToyWriter(PartWriter):
    id_prefix = "toy_"
    stop_words: ClassVar = {"stop": "over", "calls": "doing"}

    @classmethod
    def id_of(cls, key):
        return f"toy_{key[:8]}"

    def begin(self, usage):
        return [Event({"begin": self.frame.id})]

    def end(self, usage, extension):
        return [Event({"end": self.stop_word, "cost": self._cost(usage), **extension})]

    def whole(self, usage, extension):
        texts = zip(self.parts, self.texts, strict=True)
        says = [{part.kind: text, "no": part.id, "does": part.name} for part, text in texts]
        head = {"id": self.frame.id, "says": says, "end": self.stop_word}
        return {**head, "cost": self._cost(usage), **extension}

    def _cost(self, usage):
        return {"in": usage.input_tokens, "out": usage.output_tokens}

    def _opened(self, index, part):
        return [Event({"does": part.name, "no": part.id})] if part.kind == "call" else []

    def _more(self, index, part, text):
        return [Event({part.kind: text})]

    def _closed(self, index, part, text):
        return []


class ToyReader(AnswerReader):
    """Reads ``{"begin"}``, ``{"text" | "reasoning" | "call"}``, ``{"does", "no"}``, ``{"end"}``."""

    number, open, over = 0, "", False

    def event(self, name, data):
        said = json.loads(data)
        if "wrong" in said:
            raise ShapeError(said["wrong"])
        if "begin" in said:
            self._head(said["begin"])
        elif "end" in said:
            self._end(said)
        elif "does" in said:
            self._begin(AnswerPart(kind="call", id=said["no"], name=said["does"]))
        else:
            for kind, text in said.items():
                if kind != self.open:
                    self._begin(AnswerPart(kind=kind))
                self.teller.more(self.number, encode(text))

    def finish(self):
        if not self.over:
            raise ShapeError("it has no end")

    def whole(self, body):
        said = json.loads(body)
        self._head(said["id"])
        for part in said["says"]:
            kind = next(iter(part))
            self._begin(AnswerPart(kind=kind, id=part["no"], name=part["does"]))
            self.teller.more(self.number, encode(part[kind]))
        self._end(said)

    def _head(self, answer_id):
        self.teller.head(answer_id=answer_id, model="", created_s=0, usage=ModelUsage())

    def _begin(self, part):
        self._close()
        self.open = part.kind
        self.teller.open(self.number, part)

    def _close(self):
        if self.open:
            self.teller.close(self.number)
            self.number, self.open = self.number + 1, ""

    def _end(self, said):
        self._close()
        self.over = True
        stop = next((word for word, toy in ToyWriter.stop_words.items() if toy == said["end"]), "")
        self.teller.end(stop, Toy().usage(said["cost"]))


class Toy(Format):
    name = "toy"
    paths: ClassVar = {"create": "/talk"}
    view = ToyView
    writer = ToyWriter
    reader = ToyReader
    history_key = "talk"
    instructions_key = "setup"
    roles: ClassVar = {"me": "user", "bot": "assistant"}
    legal_id = re.compile(r"\w+")
    effort = ("zeal",)
    limit_key = "most"
    sampling: ClassVar = {}
    end_mark = re.compile(rb'"end"')
    error_mark = re.compile(rb'"wrong"')

    def read(self, fields):
        turns = Turns()
        for index, turn in enumerate(json.loads(self.history(fields))):
            number = turns.start(_ROLES[turn["by"]], index)
            path = f"$.talk[{index}]"
            if turn["by"] == "tool":
                turns.parts.append(ToolResult(call_id=turn["no"], path=path))
                continue
            turns.parts.append(Text(source=encode(turn.get("say", ""))))
            if "does" in turn:
                call = ToolCall(id=turn["no"], name=turn["does"], message=number, path=path)
                turns.parts.append(call)
        return Conversation(messages=turns.messages(), tools=self.offered_tools(fields))

    def said(self, fields):
        said = json.loads(self.history(fields))
        role = {"me": "user"}
        return [(role.get(turn["by"], turn["by"]), encode(turn.get("say"))) for turn in said]

    def neutral(self, fields):
        turns: list[Turn] = []
        for said in json.loads(self.history(fields)):
            role, parts = _ROLES[said["by"]], tuple(_told(said))
            if turns and turns[-1].role == role:
                turns[-1] = Turn(role=role, parts=(*turns[-1].parts, *parts))
            elif parts:
                turns.append(Turn(role=role, parts=parts))
        setup = fields.text("setup")
        return NeutralRequest(
            model=fields.text("model") or "",
            instructions=(Words(text=setup),) if setup else (),
            turns=tuple(turns),
            tools=tuple(AskedTool(tool=ToolName(name=n)) for n in self.offered_tools(fields)),
            told=Told(),
        )

    def write(self, request, facts):
        names = ToolNames(request.tools, self)
        talk: list[dict[str, str]] = []
        for turn in paired(request.turns, self, request.told):
            for part in turn.parts:
                if isinstance(part, Words | Thought | Call | Result):
                    talk.append(_written(part, turn.role, names))
                else:
                    request.told.lost.append(f"the {part.kind} of the {turn.role}")
        body = {"model": request.model, "setup": "\n".join(w.text for w in request.instructions)}
        body |= {"talk": talk, "tools": [names.at_target(each.tool).name for each in request.tools]}
        return encode({**body, **({} if request.stream is None else {"stream": request.stream})})

    def offered_tools(self, fields):
        return tuple(fields.value("tools") or ())

    def schema_fields(self, name, schema):
        return {"shape": schema}

    def tool(self, name, description, parameters):
        return {"does": name}

    def tool_choice(self, name):
        return {"does": name}

    def user_message_item(self, text, images=()):
        return {"by": "me", "say": text}

    def image(self, image):
        return {"see": image.url}

    def result_items(self, outputs):
        return tuple({"by": "tool", "no": o.call.id, "say": o.text} for o in outputs)

    def read_answer(self, tree, fields):
        text = "".join(part.get("text", "") for part in tree["says"])
        return ModelReply(text=text, stop=tree["end"], usage=self.usage(tree["cost"]))

    def usage(self, told):
        return ModelUsage(input_tokens=count(told, "in"), output_tokens=count(told, "out"))

    def error_body(self, error, request_id):
        return encode({"wrong": error.message})

    def error_event(self, error, request_id, last):
        return b"data: " + self.error_body(error, request_id) + b"\n\n"

    def provider_error(self, status, message, request_id):
        return {"wrong": message}

    def provider_error_event(self, status, message, number):
        return Event({"wrong": message})


def _told(said: dict[str, str]) -> Iterator[NeutralPart]:
    if said.get("think", "").strip():
        yield Thought(text=said["think"])
    words = (Words(text=said["say"]),) if said.get("say", "").strip() else ()
    if said["by"] == "tool":
        yield Result(call_id=said["no"], parts=words)
    else:
        yield from words
    if "does" in said:
        yield Call(id=said["no"], tool=ToolName(name=said["does"]), arguments=said.get("with", ""))


def _written(part: NeutralPart, role: str, names: ToolNames) -> dict[str, str]:
    by = {"user": "me", "system": "me", "assistant": "bot", "tool": "tool"}[role]
    if isinstance(part, Call):
        does = names.at_target(part.tool).name
        return {"by": by, "say": "", "does": does, "no": part.id, "with": part.arguments}
    if isinstance(part, Result):
        texts = [each.text for each in part.parts if isinstance(each, Words)]
        return {"by": by, "no": part.call_id, "say": "\n".join(texts)}
    key = "think" if isinstance(part, Thought) else "say"
    return {"by": by, key: part.text}
