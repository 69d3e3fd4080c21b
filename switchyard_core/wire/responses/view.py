"""A Responses body, to be patched."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, ClassVar

from switchyard_core.conversation import CallKind
from switchyard_core.jsonio.tree import ArrayText, ObjectText, encode
from switchyard_core.wire.chat.view import leading_instructions
from switchyard_core.wire.history import (
    ORPHAN,
    PLANNER,
    BlankPart,
    BodyView,
    MadeCall,
    OriginPart,
    ReasoningPart,
    ToolTurn,
    blank,
    blank_parts,
    is_odd,
    same_text,
)
from switchyard_core.wire.responses.origin import origin_bound
from switchyard_core.wire.shapes import STRING, Shape, fits, list_of, text_or_list_of

__all__ = [
    "CALL_TYPES",
    "CONTINUATION_KEYS",
    "HOSTED_TYPES",
    "OUTPUT_TYPES",
    "ResponsesView",
    "continuation",
]

CONTINUATION_KEYS = ("previous_response_id", "conversation")
#: Items that are calls which the client (or an MCP server) runs, with their kind.
CALL_TYPES: Mapping[str, CallKind] = {
    "function_call": "function",
    "custom_tool_call": "custom",
    "local_shell_call": "builtin",
    "shell_call": "builtin",
    "apply_patch_call": "builtin",
    "mcp_call": "mcp",
}
#: Calls that run at the provider and never touch the workspace.
HOSTED_TYPES = frozenset(
    {
        "web_search_call",
        "file_search_call",
        "code_interpreter_call",
        "image_generation_call",
        "computer_call",
        "mcp_list_tools",
        "mcp_approval_request",
        "tool_search_call",
    }
)
#: Items that answer a call.
OUTPUT_TYPES = frozenset(
    {
        "function_call_output",
        "custom_tool_call_output",
        "local_shell_call_output",
        "shell_call_output",
        "apply_patch_call_output",
        "computer_call_output",
        "tool_search_output",
    }
)
# An MCP call holds its own output.
_ANSWERABLE = frozenset(CALL_TYPES) - {"mcp_call"}
_MADE = frozenset(CALL_TYPES) | HOSTED_TYPES
#: Item types of which the id is optional.
_NEED_NO_ID = (None, "function_call", "custom_tool_call", "shell_call", "apply_patch_call")
_MESSAGE = ("", "message")
#: Members that the short form of a message lacks.
_SHORT = ("id", "status")
_TEXT_OUTPUTS = ("function_call_output", "custom_tool_call_output", "local_shell_call_output")


_REASONING = Shape(
    ("object",),
    {key: list_of(type=STRING, text=STRING) for key in ("summary", "content")}
    | dict.fromkeys(("id", "status", "call_id", "role"), STRING),
)


@dataclass(slots=True, eq=False)
class _Reasoning(ReasoningPart):
    items: ArrayText

    def become(self, text: str) -> None:
        self._mark_followers()
        said = {"type": "message", "role": "assistant", "content": text}
        self.items.set(self.item, encode(said))

    def remove(self) -> Sequence[str]:
        self._mark_followers()
        self.items.delete(self.item)
        return [self.name]

    def _mark_followers(self) -> None:
        """Mark the items that providers pair with it, up to the next reasoning item."""
        for follower in range(self.item + 1, len(self.items)):
            item = self.items.object(follower)
            thinks = item is not None and item.text("type") == "reasoning"
            if thinks or not self.items.tagged(follower, PLANNER):
                return
            self.items.tag(follower, ORPHAN)


class _History(ToolTurn):
    """All calls and outputs of an input; an output is found by its id, wherever it is."""

    def __init__(
        self,
        items: ArrayText,
        calls: Sequence[MadeCall],
        results: Sequence[MadeCall],
        *,
        elsewhere: bool,
    ) -> None:
        super().__init__(calls, results, once=False, elsewhere=elsewhere)
        self._items = items

    def repair(self, strays: Sequence[MadeCall], missing: Sequence[MadeCall], text: str) -> None:
        gone = {stray.index for stray in strays}
        for faulty in sorted((*strays, *missing), key=lambda each: each.index, reverse=True):
            item = self._items.object(faulty.index)
            if faulty.index in gone:
                self._items.delete(faulty.index)
            elif item is not None:
                self._items.insert(faulty.index + 1, encode(_output(item, text)))


class ResponsesView(BodyView):
    """A Responses body, to be patched."""

    key = "input"
    shape: ClassVar[Shape] = Shape(
        ("object",),
        {
            "input": text_or_list_of(
                type=STRING,
                role=STRING,
                content=text_or_list_of(type=STRING, text=STRING),
                summary=list_of(text=STRING),
                status=STRING,
                id=STRING,
                call_id=STRING,
            )
        },
    )

    def reasoning(self) -> list[ReasoningPart]:
        """Return the reasoning items."""
        items = self.items
        return [
            _Reasoning(index, f"reasoning input[{index}]", _summary(item), items)
            for index, item in (items.objects() if items is not None else ())
            if items is not None
            and items.tagged(index, PLANNER)
            and item.text("type") == "reasoning"
        ]

    def origin_bound(self) -> list[OriginPart]:
        """Return seals, references, files, and what ran at the provider."""
        return origin_bound(self.items, self.untouched)

    def drop_companions(self) -> list[str]:
        """Remove the ids of items that followed a dropped reasoning item.

        Calls and results pair by ``call_id``, so nothing else refers to those ids. An item whose
        type demands an id gets a fresh one; a message becomes the short form without one.
        """
        items, changes = self.items, []
        for index, item in items.objects() if items is not None else ():
            if items is not None and items.tagged(index, ORPHAN) and _may_lose_id(item):
                _lose_id(item)
                changes.append(f"removed the id of input[{index}]")
        return changes

    def id_fields(self) -> Iterator[tuple[ObjectText, str]]:
        """Yield the call ids of calls and outputs."""
        for _, item in self.items.objects() if self.items is not None else ():
            if "call_id" in item:
                yield item, "call_id"

    def tool_turns(self) -> list[ToolTurn]:
        """Return all calls and outputs as one turn; those at the very end may still be open."""
        items = self.items
        if items is None:
            return []
        found = list(items.objects())
        end = _last_turn(items)
        calls, results = [], []
        for index, item in found:
            kind = item.text("type")
            if kind in OUTPUT_TYPES:
                results.append(_made(item, index, waits=False))
            elif kind in _MADE:
                calls.append(_made(item, index, waits=kind not in _ANSWERABLE or index >= end))
        if len(found) < len(items) or any(is_odd(i, "type", "string", "null") for _, i in found):
            # It may be a call or a result.
            calls.append(MadeCall(frozenset(), -1, "input", unread=True))
            results.append(calls[-1])
        # With a continuation the calls may be at the provider.
        elsewhere = bool(continuation(self.body))
        return [_History(items, calls, results, elsewhere=elsewhere)]

    def blanks(self, index: int) -> list[BlankPart]:
        """Return the text of an output, if blank; else the blank texts of an item."""
        item = self.items.object(index) if self.items is not None else None
        if item is None:
            return []
        place, kind = f"input[{index}]", item.text("type") or ""
        if kind in _TEXT_OUTPUTS:
            if blank(item, "output"):
                return [BlankPart(place, item, "output")]
            return blank_parts(item.array("output"), f"{place}.output")
        said = kind in _MESSAGE and not blank(item, "content")
        return blank_parts(item.array("content"), f"{place}.content") if said else []

    def is_empty(self, index: int) -> bool:
        """Return whether a message has no text."""
        item = self.items.object(index) if self.items is not None else None
        return (
            item is not None
            and item.text("role") is not None
            and (item.text("type") or "") in _MESSAGE
            and blank(item, "content")
        )

    def user_item(self, text: str) -> bytes:
        """Return a message of the user as an input item."""
        return encode({"type": "message", "role": "user", "content": text})

    def append_user_text(self, text: str, end: int | None = None) -> str:
        """Add a user message at the end, never between a reasoning item and its follower."""
        ours, raw = self.user_item(text), self.body.raw("input")
        if raw is not None and raw[:1] == b'"':
            said = (self.body.text("input") or "").strip()
            theirs = b'{"type":"message","role":"user","content":' + raw + b"}," if said else b""
            self.body.set("input", b"[" + theirs + ours + b"]")
            return f"added a user message as input[{int(bool(said))}]"
        items = self.items
        if items is None:
            self.leave_history()
            return ""
        place = len(items) if end is None else end
        if _ends_with(items, text, place):
            return ""
        while place and (item := items.object(place - 1)) and item.text("type") == "reasoning":
            place -= 1
        items.insert(place, ours)
        return f"added a user message as input[{place}]"

    def add_instruction(self, text: str, *, append: bool) -> str:
        """Add the text to ``instructions``, a string or a list, or to the input."""
        raw = self.body.raw("instructions")
        listed = self.body.array("instructions")
        said = encode({"type": "message", "role": "developer", "content": text})
        if listed is not None:
            if any(same_text(listed, index, text) for index in range(len(listed))):
                return ""
            place = len(listed) if append else 0
            listed.insert(place, said)
            return f"added instructions[{place}]"
        items = self.items if append and raw in (None, b"null", b'""') else None
        if items is None:
            return self.join_text("instructions", "input", text, append=append)
        place, _ = leading_instructions(items, b"")
        if any(same_text(items, index, text) for index in range(place)):
            return ""
        items.insert(place, said)
        return f"added a developer message as input[{place}]"


def continuation(fields: ObjectText) -> tuple[str, ...]:
    """Return the keys by which a body continues an earlier response."""
    return tuple(
        [key for key in CONTINUATION_KEYS if fields.raw(key) not in (None, b"null", b'""')]
    )


def _names(item: ObjectText) -> set[str]:
    """Return the ids by which a call and its output may know each other."""
    if is_odd(item, "call_id", "string", "null"):
        return set()
    names = {item.text("call_id") or item.text("id") or ""}
    if item.text("type") == "local_shell_call":  # its output may name the item instead
        names.add(item.text("id") or "")
    return names - {""}


def _made(item: ObjectText, index: int, *, waits: bool) -> MadeCall:
    names, place = _names(item), f"input[{index}]"
    # What runs at the provider needs no id.
    if names or (item.text("type") in HOSTED_TYPES and not is_odd(item, "call_id", "string")):
        return MadeCall(frozenset(names), index, place, waits)
    return MadeCall.at(item, "call_id", index, place)


def _summary(item: ObjectText) -> str:
    """Return the text to read of a reasoning item, ``""`` when some of it has a wrong type."""
    if not fits(item, _REASONING):
        return ""
    texts: list[str] = []
    for key in ("summary", "content"):
        pieces = item.array(key)
        if pieces is not None:
            texts += [piece.text("text") or "" for _, piece in pieces.objects()]
        if any(text.strip() for text in texts):
            break
    return "\n\n".join(text for text in texts if text.strip())


def _may_lose_id(item: ObjectText) -> bool:
    return "id" in item and not any(is_odd(item, key, "string", "null") for key in _SHORT)


def _lose_id(item: ObjectText) -> None:
    kind, old = item.text("type"), item.text("id") or ""
    if kind in _NEED_NO_ID:
        item.delete("id")
    elif kind == "message":
        item.delete("id")
        said = _plain_text(item)
        if said is not None:
            item.delete("status")
            item.set("content", encode(said))
    else:
        digest = blake2b(old.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
        item.set("id", encode(f"{old.partition('_')[0][:8]}_{digest}"))


def _plain_text(item: ObjectText) -> str | None:
    """Return a message's text if it has nothing else, such as annotations or a refusal."""
    pieces = item.array("content")
    if pieces is None:
        return None
    found = [piece for _, piece in pieces.objects()]
    plain = all(
        piece.text("type") == "output_text"
        and piece.text("text") is not None
        and (piece.raw("annotations") or b"[]") == b"[]"
        and (piece.raw("logprobs") or b"[]") == b"[]"
        for piece in found
    )
    if not plain or len(found) != len(pieces):
        return None
    return "".join(piece.text("text") or "" for piece in found)


def _output(call: ObjectText, lost: str) -> Mapping[str, Any]:
    """Return an output for a lost one, in the shape of the call's kind."""
    kind = call.text("type") or ""
    call_id = call.text("call_id") or call.text("id") or ""
    if kind == "shell_call":
        outcome = {"type": "exit", "exit_code": 1}
        output = [{"stdout": "", "stderr": lost, "outcome": outcome}]
        return {"type": "shell_call_output", "call_id": call_id, "output": output}
    if kind == "apply_patch_call":
        kind_of = "apply_patch_call_output"
        return {"type": kind_of, "call_id": call_id, "status": "failed", "output": lost}
    if kind == "local_shell_call":
        return {"type": "local_shell_call_output", "id": call_id, "output": lost}
    return {"type": f"{kind}_output", "call_id": call_id, "output": lost}


def _last_turn(items: ArrayText) -> int:
    """Return where the assistant items at the very end begin: those may still be open."""
    place = len(items)
    while place:
        item = items.object(place - 1)
        kind = (item.text("type") or "") if item is not None else ""
        made = kind in _MADE or kind == "reasoning"
        if not made and not (item is not None and item.text("role") == "assistant"):
            break
        place -= 1
    return place


def _ends_with(items: ArrayText, text: str, end: int) -> bool:
    """Return whether the text is among the user's messages and reasoning at the end."""
    for index in range(end - 1, -1, -1):
        item = items.object(index)
        if item is None:
            return False
        if item.text("role") == "user" and item.text("content") == text:
            return True
        if item.text("role") != "user" and item.text("type") != "reasoning":
            return False
    return False
