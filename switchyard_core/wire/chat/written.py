"""A neutral request as one of Chat Completions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from switchyard_core.jsonio.tree import array_of, encode, loads, object_of
from switchyard_core.wire.chat.offered import write_tools
from switchyard_core.wire.format import Format
from switchyard_core.wire.history import fixed_text
from switchyard_core.wire.naming import ToolNames
from switchyard_core.wire.neutral import (
    Call,
    Facts,
    Media,
    NeutralPart,
    NeutralRequest,
    Result,
    Schema,
    Thought,
    Told,
    Turn,
    Words,
)
from switchyard_core.wire.pairing import arguments_object, paired

__all__ = ["write_request"]

_BETWEEN = "\n\n"
_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
#: Settings by neutral name, in the order in which they are written.
_SETTINGS = {
    **{
        key: key
        for key in (
            *("temperature", "top_p", "seed", "frequency_penalty", "presence_penalty"),
            *("logprobs", "top_logprobs", "verbosity", "user", "metadata", "service_tier"),
            *("store", "safety_identifier"),
        )
    },
    "cache_key": "prompt_cache_key",
}
_TIERS = ("auto", "default", "flex", "scale", "priority", "fast")
#: Settings that name somebody or something, their most characters, and the most stop texts.
_IDENTITIES = ("user", "safety_identifier", "cache_key")
_LONGEST = 64
_MOST_STOPS = 4


def write_request(request: NeutralRequest, facts: Facts, target: Format) -> bytes:
    """Return the body that says the same."""
    names = ToolNames(request.tools, target)
    messages = _Messages(names, facts, request.told)
    messages.instruct(request.instructions)
    turns = [_readable(turn, facts, request.told) for turn in request.turns]
    for turn in paired(turns, target, request.told):
        messages.add(turn)
    body: dict[str, Any] = {"model": request.model, "messages": array_of(messages.done())}
    body |= write_tools(request, names, facts)
    schema = request.schema
    if schema is not None and not (facts.forced_schema and schema.schema):
        body["response_format"] = _form(schema)
    if request.effort in _EFFORTS:
        body["reasoning_effort"] = request.effort
    elif request.effort:
        request.told.left_out.append(f"the reasoning effort `{request.effort}`")
    if request.limit is not None and request.limit > 0:
        body[target.limit_key] = request.limit
    elif request.limit is not None:
        request.told.left_out.append(f"the limit of {request.limit} tokens")
    body |= _stop(request)
    if request.stream is not None:
        body["stream"] = request.stream
    if request.stream:
        # Without it, a stream does not state its tokens.
        body["stream_options"] = {"include_usage": True}
    body |= _settings(request)
    _tell_marks(request)
    return object_of(body)


# --- messages --------------------------------------------------------------------------------


class _Messages:
    """Collects the messages of a body."""

    def __init__(self, names: ToolNames, facts: Facts, told: Told) -> None:
        self._names = names
        self._key = facts.reasoning_key
        self._told = told
        self._made: list[bytes] = []
        #: What the user's next message begins with.
        self._moved: list[Words | Media] = []
        self._tools: dict[str, str] = {}

    def instruct(self, instructions: Sequence[Words]) -> None:
        """Put all instructions into one message: many templates take no second one."""
        self._say("system", _text(instructions))

    def add(self, turn: Turn) -> None:
        """Write one turn."""
        if turn.role == "tool":
            for part in turn.parts:
                if isinstance(part, Result):
                    self._result(part)
            return
        parts = [*turn.parts]
        if turn.role == "user":
            parts, self._moved = [*self._moved, *parts], []
        self._say_moved()
        if turn.role == "assistant":
            self._answer(parts)
        elif turn.role == "user":
            self._user(parts)
        else:
            self._lose_media(parts, "an instruction")
            self._say("system", _text(parts))

    def done(self) -> list[bytes]:
        """Return the messages, one at least."""
        self._say_moved()
        if not self._made:
            self._told.changed.append("added a message of the user, for there was none")
            self._say("user", fixed_text("go_on"))
        return self._made

    def _say_moved(self) -> None:
        moved, self._moved = self._moved, []
        if moved:
            self._user(moved)

    def _say(self, role: str, content: Any) -> None:
        if content:
            self._made.append(object_of({"role": role, "content": content}))

    def _user(self, parts: Sequence[NeutralPart]) -> None:
        said = [made for part in parts for made in self._said(part)]
        texts = [each["text"] for each in said if each["type"] == "text"]
        # Some providers take parts only where something is not text (QwenLM/qwen-code#2320).
        self._say("user", said if len(texts) < len(said) else _BETWEEN.join(texts))

    def _said(self, part: NeutralPart) -> Iterator[dict[str, Any]]:
        """Yield what a part is in a message of the user."""
        if isinstance(part, Words):
            yield {"type": "text", "text": part.text}
        elif isinstance(part, Media) and part.kind == "image":
            detail = {"detail": part.detail} if part.detail else {}
            yield {"type": "image_url", "image_url": {"url": part.url, **detail}}
        elif isinstance(part, Media):
            yield self._file(part)

    def _file(self, file: Media) -> dict[str, Any]:
        text = file.text
        if text:
            self._told.changed.append(f"wrote the file `{file.name or 'without a name'}` as text")
            return {"type": "text", "text": text}
        if not file.url.startswith("data:"):
            self._told.lost.append("a file that is given by its address")
            return {"type": "text", "text": fixed_text("lost_file")}
        # The provider demands a name.
        named = {"filename": file.name or "file", "file_data": file.url}
        return {"type": "file", "file": named}

    def _answer(self, parts: Sequence[NeutralPart]) -> None:
        self._lose_media(parts, "an answer")
        if any(isinstance(part, Words) and part.refusal for part in parts):
            # The key for it is OpenAI's alone.
            self._told.changed.append("wrote the refusals of earlier turns as text")
        kinds = [type(part) for part in parts if isinstance(part, Words | Call)]
        if Call in kinds and Words in kinds[kinds.index(Call) :]:
            self._told.changed.append("moved text in front of the calls of its turn")
        text, calls = _text(parts), [part for part in parts if isinstance(part, Call)]
        thought = _BETWEEN.join([part.text for part in parts if isinstance(part, Thought)])
        if not text and not calls:
            return
        message: dict[str, Any] = {"role": "assistant", "content": text or None}
        if thought:
            message[self._key] = thought
        if calls:
            message["tool_calls"] = [self._call(call) for call in calls]
        self._made.append(encode(message))

    def _call(self, call: Call) -> dict[str, Any]:
        name = self._names.at_target(call.tool).name
        self._tools[call.id] = name
        arguments = arguments_object(call, self._told)
        function = {"name": name, "arguments": arguments}
        return {"id": call.id, "type": "function", "function": function}

    def _result(self, result: Result) -> None:
        text = _text(result.parts)
        media = [part for part in result.parts if isinstance(part, Media)]
        name = self._tools.get(result.call_id, "")
        if media:
            self._told.changed.append(f"moved what `{name}` returned to a message of the user")
            self._moved += [Words(text=fixed_text("moved_result").format(tool=name)), *media]
        text = text or fixed_text("moved_elsewhere" if media else "empty_result")
        if result.failed and not text.startswith(fixed_text("failed_result")):
            text = fixed_text("failed_result") + text
        message = {"role": "tool", "tool_call_id": result.call_id, "content": text}
        self._made.append(encode(message))

    def _lose_media(self, parts: Iterable[NeutralPart], of: str) -> None:
        self._told.lost += [f"the {p.kind} of {of}" for p in parts if isinstance(p, Media)]


def _readable(turn: Turn, facts: Facts, told: Told) -> Turn:
    """Return a turn without the reasoning that the model does not take back, or not alone."""
    parts = tuple([part for part in turn.parts if not isinstance(part, Thought)])
    if len(parts) == len(turn.parts) or (facts.reasoning_key and parts):
        return turn
    told.left_out.append("reasoning of earlier turns")
    return replace(turn, parts=parts)


def _text(parts: Iterable[NeutralPart]) -> str:
    # Most templates take text alone where the user does not speak.
    return _BETWEEN.join([part.text for part in parts if isinstance(part, Words)])


# --- settings --------------------------------------------------------------------------------


def _form(schema: Schema) -> dict[str, Any] | bytes:
    if not schema.schema:
        return {"type": "json_object"}
    members: dict[str, Any] = {"name": schema.name or "answer"}
    if schema.description:
        members["description"] = schema.description
    if schema.strict is not None:
        members["strict"] = schema.strict
    named = object_of({**members, "schema": schema.schema})
    return object_of({"type": "json_schema", "json_schema": named})


def _stop(request: NeutralRequest) -> dict[str, Any]:
    if len(request.stop) > _MOST_STOPS:
        request.told.left_out.append(f"all stop texts but {_MOST_STOPS}")
    return {"stop": list(request.stop[:_MOST_STOPS])} if request.stop else {}


def _settings(request: NeutralRequest) -> dict[str, bytes]:
    """Return the settings that Chat has; the others are told."""
    given, left_out = dict(request.settings), request.told.left_out
    for name in (*_IDENTITIES, "service_tier"):
        if name in given and not _fits(name, loads(given[name])):
            del given[name]
            left_out.append(f"{name}, which the provider refuses as it is")
    if given.get("logprobs") != b"true" and given.pop("top_logprobs", b""):
        left_out.append("top_logprobs")
    # OpenAI refuses it otherwise (QwenLM/qwen-code#243).
    if given.get("store") != b"true" and given.pop("metadata", b""):
        left_out.append("metadata, which the provider takes of answers that it stores")
    if given.get("store") == b"false":
        # Servers of others refuse the key, and OpenAI keeps no answer unless it says so.
        del given["store"]
        left_out.append("store=false")
    left_out += [name for name in given if name not in _SETTINGS]
    return {key: given[name] for name, key in _SETTINGS.items() if name in given}


def _fits(name: str, value: Any) -> bool:
    if name == "service_tier":
        return value in _TIERS
    return isinstance(value, str) and len(value) <= _LONGEST


def _tell_marks(request: NeutralRequest) -> None:
    turns = [part for turn in request.turns for part in turn.parts]
    places = (*request.instructions, *request.tools, *turns)
    marks = sum(1 for each in places if getattr(each, "cache", b""))
    if marks:
        request.told.left_out.append("the cache mark" if marks == 1 else f"{marks} cache marks")
