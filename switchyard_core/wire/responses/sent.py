"""What an answer of Responses is made of, decoded as far as its reader looks into it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from switchyard_core.jsonio.tree import JsonTextError, encode, loads
from switchyard_core.wire.history import NULL, decode_items, decode_one, word
from switchyard_core.wire.replies import ShapeError, shown, status_word, table

__all__ = [
    "CALLS",
    "EMPTY",
    "ENDS",
    "Delta",
    "Done",
    "Item",
    "ItemEvent",
    "Mark",
    "Response",
    "ResponseEvent",
    "Typed",
    "as_text",
    "cut_reason",
    "delta_in",
    "given",
    "item_in",
    "listed",
    "load",
    "names_of",
    "pieces_of",
    "placed",
    "read_as",
    "refuse_failed",
    "thoughts",
    "wants",
]

T = TypeVar("T", bound=msgspec.Struct)

#: Events that end a stream.
ENDS = frozenset(
    f"response.{status}" for status in ("completed", "incomplete", "failed", "cancelled")
)
#: Why an answer may be cut and yet be an answer.
_CUT_REASONS: Mapping[str, str] = {"max_output_tokens": "length", "content_filter": "filter"}
#: Items that are calls of the caller's own tools.
CALLS = frozenset({"function_call", "custom_tool_call"})
#: Items that wait for somebody outside, whatever else they hold.
_ASKING = frozenset(
    {
        "apply_patch_call",
        "computer_call",
        "custom_tool_call",
        "local_shell_call",
        "mcp_approval_request",
        "shell_call",
    }
)
#: Calls that the provider answers, or that our tools do.
_ANSWERED = frozenset(
    {
        "code_interpreter_call",
        "file_search_call",
        "function_call",
        "image_generation_call",
        "mcp_call",
        "web_search_call",
    }
)
#: JSON of an empty text.
EMPTY = b'""'


class Delta(msgspec.Struct):
    """A piece of text; nothing of it is decoded."""

    delta: msgspec.Raw = NULL
    output_index: int | str | None = None
    content_index: int | str | None = 0
    summary_index: int | str | None = 0


class Done(msgspec.Struct):
    """A text that is complete."""

    output_index: int | str | None = None
    content_index: int | str | None = 0
    text: msgspec.Raw = NULL
    refusal: msgspec.Raw = NULL
    arguments: msgspec.Raw = NULL
    input: msgspec.Raw = NULL


class Piece(msgspec.Struct):
    """A part of a message, or of reasoning."""

    type: Any = None
    text: msgspec.Raw = NULL
    refusal: msgspec.Raw = NULL


class Item(msgspec.Struct):
    """An item of ``output``."""

    type: Any = None
    id: Any = None
    call_id: Any = None
    name: Any = None
    namespace: Any = None
    arguments: msgspec.Raw = NULL
    input: msgspec.Raw = NULL
    content: msgspec.Raw = NULL
    summary: msgspec.Raw = NULL


class ItemEvent(msgspec.Struct):
    """An item that begins, or is complete."""

    item: msgspec.Raw = NULL
    output_index: int | str | None = None


class _Named(msgspec.Struct):
    item_id: Any = None
    item: Any = None


class Typed(msgspec.Struct):
    """An event whose name is in its data."""

    type: Any = None


class Response(msgspec.Struct):
    """A whole answer, or what the events around it hold."""

    id: Any = None
    model: Any = None
    created_at: Any = None
    status: Any = None
    incomplete_details: Any = None
    error: Any = None
    type: Any = None
    code: Any = None
    usage: Any = None
    output: msgspec.Raw = NULL


class ResponseEvent(msgspec.Struct):
    """An event with the answer in it."""

    response: msgspec.Raw = NULL


class Mark(msgspec.Struct):
    """Which item one is, without its texts."""

    type: Any = None
    id: Any = None
    call_id: Any = None


P = TypeVar("P", Delta, Done, ItemEvent)
_PLACES = ("output_index", "content_index", "summary_index")
_delta = msgspec.json.Decoder(Delta).decode


def cut_reason(details: Any) -> str:
    """Return the neutral word for why an answer was cut, ``""`` when it is not an answer."""
    return _CUT_REASONS.get(word(table(details).get("reason")), "")


def refuse_failed(status: str, details: Any) -> None:
    """Refuse an answer that failed, was cancelled, or is incomplete for an unknown reason."""
    unfinished = status == "incomplete" and not cut_reason(details)
    if unfinished or status in ("failed", "cancelled"):
        raise ShapeError(status_word(status))


def placed(data: bytes, struct: type[P]) -> P:
    """Decode an event about a place in the output."""
    try:
        found = msgspec.json.decode(data, type=struct)
    except (msgspec.MsgspecError, RecursionError):
        found = read_as(data, struct)
    if any(isinstance(getattr(found, key, None), list | dict) for key in _PLACES):
        msg = "an event has no place that can be read"
        raise ShapeError(msg)
    if found.output_index is None:
        # A server that does not number its items has an id for each of them.
        named = read_as(data, _Named)
        found.output_index = word(named.item_id) or word(table(named.item).get("id"))
    return found


def delta_in(data: bytes) -> Delta:
    """Decode an event with a piece of text: :func:`placed`, as fast as it gets."""
    try:
        found = _delta(data)
    except (msgspec.MsgspecError, RecursionError):
        return placed(data, Delta)
    return placed(data, Delta) if found.output_index is None else found


def read_as(data: bytes | msgspec.Raw, struct: type[T], what: str = "an event") -> T:
    """Decode an event, or a part of one."""
    try:
        return msgspec.json.decode(data, type=struct)
    except (msgspec.MsgspecError, RecursionError):
        found = decode_one(data, struct)
    if found is None:
        msg = f"{what} is not a JSON object"
        raise ShapeError(msg)
    return found


def listed(raw: msgspec.Raw, struct: type[T]) -> list[T | None]:
    """Decode an array of objects; whatever else it is has none."""
    if _first(raw) != b"[":
        return []
    try:
        return msgspec.json.decode(raw, type=list[struct])  # type: ignore[valid-type]
    except (msgspec.MsgspecError, RecursionError):
        return decode_items(bytes(raw), struct)


def _first(raw: msgspec.Raw) -> bytes:
    return bytes(memoryview(raw)[:1])


def names_of(index: int | str | None, item: Item | Mark) -> set[Any]:
    """Return by what an item is known: its place with its sort, its ids."""
    kind = word(item.type)
    place = (index, "call" if kind in CALLS else kind)
    return {place, word(item.id), word(item.call_id)} - {""}


def load(data: bytes) -> Any:
    """Return the tree of an event."""
    try:
        return loads(data)
    except JsonTextError as error:
        msg = f"an event is not JSON: {error}"
        raise ShapeError(msg) from None


def item_in(raw: msgspec.Raw) -> Item | None:
    """Return the item of an event, ``None`` when there is none."""
    return read_as(raw, Item) if _first(raw) == b"{" else None


def pieces_of(raw: msgspec.Raw) -> Sequence[Piece]:
    """Return the parts of an item."""
    if _first(raw) == b'"':  # content of a message as one text
        return [Piece(text=raw)]
    return [piece or Piece() for piece in listed(raw, Piece)]


def thoughts(item: Item) -> bytes:
    """Return JSON of the text to read of a reasoning item."""
    for raw in (item.summary, item.content):
        texts = [bytes(piece.text) for piece in pieces_of(raw)]
        told = [text for text in texts if text[:1] == b'"' and text != EMPTY]
        if told:
            return b'"' + rb"\n\n".join([text[1:-1] for text in told]) + b'"'
    return EMPTY


def given(item: Item) -> bytes:
    """Return JSON of what a call is given."""
    return as_text(bytes(item.input if item.type == "custom_tool_call" else item.arguments))


def as_text(raw: bytes) -> bytes:
    """Return a JSON string; some providers forget to write arguments as text."""
    if raw[:1] == b'"':
        return raw
    return EMPTY if raw == b"null" else encode(raw.decode("utf-8", "replace"))


def wants(items: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return what the output asks for that none of our tools can give.

    An unknown kind of call asks for something if it has an id to answer to; calls that the provider
    answers have none.
    """
    found = [(word(item.get("type")), item.get("call_id")) for item in items]
    named = [(kind, call_id if isinstance(call_id, str) else None) for kind, call_id in found]
    done = {call_id for kind, call_id in named if kind.endswith("_output")}
    return shown(
        kind
        for kind, call_id in named
        if (call_id is None or call_id not in done)
        and (
            kind in _ASKING
            or (kind.endswith("_call") and kind not in _ANSWERED and call_id is not None)
        )
    )
