"""The items of a Responses history: read into neutral turns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from mimetypes import guess_type
from typing import Any, Literal

import msgspec

from switchyard_core.jsonio.tree import loads, object_of
from switchyard_core.wire.history import NULL, decode_items, word
from switchyard_core.wire.neutral import (
    Call,
    Media,
    NeutralPart,
    Result,
    Thought,
    Told,
    ToolName,
    Turn,
    Words,
    is_empty_data,
)
from switchyard_core.wire.pairing import odd_result, result_parts
from switchyard_core.wire.responses.offered import Offered

__all__ = ["read_history", "read_instructions"]

Role = Literal["system", "user", "assistant", "tool"]

_ROLES: Mapping[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
}
_TEXTS = ("input_text", "output_text", "text")
_IMAGES = ("input_image", "computer_screenshot")
#: Calls of tools that the API itself describes and the client runs, with the keys that say what.
_BUILTIN: Mapping[str, tuple[str, ...]] = {
    "local_shell_call": ("action",),
    "shell_call": ("action",),
    "apply_patch_call": ("operation",),
    "computer_call": ("action", "actions"),
}
_OUTPUTS = frozenset(
    {f"{call}_output" for call in ("function_call", "custom_tool_call", *_BUILTIN)}
)


_decode_text = msgspec.json.Decoder(str).decode


class _Item(msgspec.Struct):
    type: Any = None
    role: Any = None
    content: msgspec.Raw = NULL
    id: Any = None
    call_id: Any = None
    name: Any = None
    namespace: Any = None
    arguments: msgspec.Raw = NULL
    input: msgspec.Raw = NULL
    action: msgspec.Raw = NULL
    actions: msgspec.Raw = NULL
    operation: msgspec.Raw = NULL
    summary: msgspec.Raw = NULL
    encrypted_content: Any = None
    output: msgspec.Raw = NULL
    status: Any = None
    phase: Any = None
    tools: msgspec.Raw = NULL


class _Part(msgspec.Struct):
    type: Any = None
    text: Any = None
    refusal: Any = None
    image_url: Any = None
    detail: Any = None
    filename: Any = None
    file_data: Any = None
    file_url: Any = None
    annotations: msgspec.Raw = NULL
    logprobs: msgspec.Raw = NULL
    prompt_cache_breakpoint: msgspec.Raw = NULL


def read_instructions(raw: bytes | None, told: Told) -> tuple[Words, ...]:
    """Return the texts of ``instructions``: a text, or messages."""
    if raw is None or raw == b"null":
        return ()
    if raw[:1] == b'"':
        return tuple(_text(_string(raw)))
    if raw[:1] != b"[":
        told.lost.append("instructions, which is neither a text nor an array")
        return ()
    history = _History(Offered(told), told, "instructions")
    for index, item in enumerate(decode_items(raw, _Item)):
        history.add(item, f"instructions[{index}]")
    parts = [part for turn in history.turns() for part in turn.parts]
    return tuple([part for part in parts if isinstance(part, Words)])


def read_history(
    raw: bytes, offered: Offered, told: Told
) -> tuple[tuple[Words, ...], tuple[Turn, ...]]:
    """Return the instructions at the start of ``input``, and the turns behind them."""
    history = _History(offered, told, "input")
    if raw[:1] == b'"':
        history.start("user").extend(_text(_string(raw)))
    elif raw[:1] == b"[":
        items = decode_items(raw, _Item)
        for item in items:
            if item is not None and item.type == "local_shell_call" and word(item.call_id):
                history.aliases[word(item.id)] = word(item.call_id)
        for index, item in enumerate(items):
            history.add(item, f"input[{index}]")
    turns = history.turns()
    leading: list[Words] = []
    for at, turn in enumerate(turns):
        if turn.role != "system":
            return tuple(leading), turns[at:]
        leading += [part for part in turn.parts if isinstance(part, Words)]
    return tuple(leading), ()


def _string(raw: bytes) -> str:
    try:
        return _decode_text(raw)
    except msgspec.MsgspecError:  # half a character
        return str(loads(raw))


def _text(text: Any) -> Iterator[Words]:
    if isinstance(text, str) and text.strip():
        yield Words(text=text)


class _History:
    """Collects items into turns; what nobody else can read is named."""

    def __init__(self, offered: Offered, told: Told, place: str) -> None:
        self._offered = offered
        self._told = told
        self._place = place
        self._made: list[tuple[Role, list[NeutralPart]]] = []
        #: Call ids of local shell calls by the ids of their items, which outputs may name.
        self.aliases: dict[str, str] = {}

    def start(self, role: Role) -> list[NeutralPart]:
        """Return the parts of the turn that a role continues or begins."""
        if not self._made or self._made[-1][0] != role or role == "system":
            self._made.append((role, []))
        return self._made[-1][1]

    def turns(self) -> tuple[Turn, ...]:
        """Return the turns that say something."""
        turns: list[Turn] = []
        for role, parts in self._made:
            if parts and turns and turns[-1].role == role != "system":
                turns[-1] = Turn(role=role, parts=(*turns[-1].parts, *parts))
            elif parts:
                turns.append(Turn(role=role, parts=tuple(parts)))
        return tuple(turns)

    def add(self, item: _Item | None, place: str) -> None:
        """Add an item."""
        if item is None:
            self._told.lost.append(f"{place}, which is not an object")
            return
        kind = word(item.type) or ("message" if item.role is not None else "")
        read = self._readers.get(kind) or (
            _History._call if kind in _BUILTIN else _History._result if kind in _OUTPUTS else None
        )
        if read is None:
            kind = kind or "item_reference" if word(item.id) else kind or "of no known type"
            self._told.lost.append(f"{place} ({kind})")
        else:
            read(self, item, place)

    def _message(self, item: _Item, place: str) -> None:
        role = _ROLES.get(word(item.role))
        if role is None:
            self._told.lost.append(f"{place}, a message of no known role")
            return
        if item.phase is not None:
            self._told.left_out.append("the phase of messages")
        said = self._content(bytes(item.content), f"{place}.content")
        if role == "system":
            # Instructions are texts in every format.
            self._told.lost += [f"the {p.kind} of {place}" for p in said if isinstance(p, Media)]
            said = [part for part in said if isinstance(part, Words)]
        self.start(role).extend(said)

    def _reasoning(self, item: _Item, place: str) -> None:
        if item.encrypted_content:
            self._told.left_out.append("encrypted_content of reasoning")
        for raw in (bytes(item.summary), bytes(item.content)):
            pieces = decode_items(raw, _Part) if raw[:1] == b"[" else []
            texts = [word(piece.text) for piece in pieces if piece is not None]
            text = "\n\n".join([text for text in texts if text.strip()])
            if text:
                self.start("assistant").append(Thought(text=text))
                return
        del place

    def _call(self, item: _Item, place: str) -> None:
        kind = word(item.type)
        name = kind if kind in _BUILTIN else word(item.name)
        if not name:
            self._told.lost.append(f"{place}, a call without a name")
            return
        call = Call(
            id=word(item.call_id) or word(item.id),
            tool=ToolName(name=name, namespace=word(item.namespace)),
            arguments=_arguments(item, kind),
            custom=kind == "custom_tool_call",
        )
        self.start("assistant").append(call)

    def _result(self, item: _Item, place: str) -> None:
        kind = word(item.type)
        raw, lost = bytes(item.output), len(self._told.lost)
        if kind == "shell_call_output" and raw[:1] == b"[":
            parts: list[NeutralPart] = list(_text(raw.decode("utf-8", "replace")))
        elif raw[:1] == b"{" and kind == "computer_call_output":  # a screenshot
            parts = self._content(b"[" + raw + b"]", f"{place}.output")
        else:
            parts = [*odd_result(raw)] or self._content(raw, f"{place}.output")
        self.start("tool").append(
            Result(
                call_id=word(item.call_id) or self.aliases.get(word(item.id), word(item.id)),
                parts=result_parts(parts, lost=len(self._told.lost) > lost),
                failed=kind == "apply_patch_call_output" and item.status == "failed",
                custom=kind == "custom_tool_call_output",
            )
        )

    def _tools(self, item: _Item, place: str) -> None:
        self._offered.add(bytes(item.tools), f"{place}.tools")

    def _found_tools(self, item: _Item, place: str) -> None:
        """Take the tools that a search has found: the client runs them."""
        self._tools(item, place)
        self._told.lost.append(f"{place} ({item.type})")

    _readers: Mapping[str, Callable[[_History, _Item, str], None]] = {
        "message": _message,
        "reasoning": _reasoning,
        "function_call": _call,
        "custom_tool_call": _call,
        "additional_tools": _tools,
        "tool_search_output": _found_tools,
    }

    # --- content -------------------------------------------------------------------------

    def _content(self, raw: bytes, place: str) -> list[NeutralPart]:
        if raw[:1] == b'"':
            return list(_text(_string(raw)))
        if raw == b"null":
            return []
        if raw[:1] != b"[":
            self._told.lost.append(f"{place}, which is neither a text nor an array")
            return []
        parts: list[NeutralPart] = []
        for index, part in enumerate(decode_items(raw, _Part)):
            parts += self._part(part, f"{place}[{index}]")
        return parts

    def _part(self, part: _Part | None, place: str) -> list[NeutralPart]:
        kind = "" if part is None else word(part.type)
        if part is None or not kind:
            self._told.lost.append(f"{place}, which is not a part of a known type")
            return []
        if bytes(part.prompt_cache_breakpoint) != b"null":
            self._told.left_out.append("cache marks")
        if kind in _TEXTS or kind == "refusal":
            said = part.refusal if kind == "refusal" else part.text
            if not isinstance(said, str):
                self._told.lost.append(f"{place}, of which the text is not a string")
                return []
            if bytes(part.annotations) not in (b"null", b"[]"):
                self._told.left_out.append(f"annotations of {place}")
            return [Words(text=said, refusal=kind == "refusal")] if said.strip() else []
        media = _media(part, kind)
        if media is None:
            self._told.lost.append(f"{place} ({kind})")
            return []
        return [media]


def _media(part: _Part, kind: str) -> Media | None:
    """Return an image or file that the request holds or that has an address."""
    detail = "" if part.detail == "auto" else word(part.detail)
    if kind in _IMAGES and word(part.image_url).strip() and not is_empty_data(part.image_url):
        return Media(kind="image", url=part.image_url, detail=detail)
    if kind != "input_file":
        return None
    name, data, url = (
        word(each).strip() for each in (part.filename, part.file_data, part.file_url)
    )
    if data and not data.startswith("data:"):
        media_type = guess_type(name)[0] or "application/octet-stream"
        data = f"data:{media_type};base64,{data}"
    if (not data or is_empty_data(data)) and not url:
        return None
    return Media(kind="file", url=data or url, detail=detail, name=name)


def _arguments(item: _Item, kind: str) -> str:
    """Return what a call is given, as its tool gets it."""
    if kind in _BUILTIN:
        raws = {key: bytes(getattr(item, key)) for key in _BUILTIN[kind]}
        return object_of({key: raw for key, raw in raws.items() if raw != b"null"}).decode()
    raw = bytes(item.input if kind == "custom_tool_call" else item.arguments)
    if raw[:1] == b'"':
        return _string(raw)
    return "" if raw == b"null" else raw.decode("utf-8", "replace")
