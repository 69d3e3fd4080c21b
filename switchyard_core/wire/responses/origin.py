"""What of a Responses body only its provider can read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from switchyard_core.jsonio.tree import ArrayText, ObjectText, encode
from switchyard_core.wire.history import FOREIGN, OriginPart, decode_items, fixed_text, word
from switchyard_core.wire.origin import (
    file_text,
    is_set,
    loose_entries,
    whole_item,
)
from switchyard_core.wire.shapes import untouched

__all__ = ["hidden_history", "origin_bound"]

_REFERENCE = "item_reference"
_COMPACTIONS = frozenset({"compaction", "compaction_summary", "context_compaction"})
#: Items that are dropped whole; nothing else refers to them.
_SEALED = frozenset(
    {
        "agent_message",
        "image_generation_call",
        "mcp_approval_request",
        "mcp_approval_response",
        "mcp_list_tools",
    }
)
#: Keys of an MCP call that its function call needs, too.
_CALL_TEXTS = ("id", "name", "arguments", "output")
_BOUND_KEYS = ("container_id", "file_id")
#: What the bytes of a history have in them if a part of it hides.
_HIDING = (b'"compaction', b'"context_compaction"', b'"item_reference"')


class _Kind(msgspec.Struct):
    type: Any = None


def origin_bound(items: ArrayText | None, left: list[str]) -> list[OriginPart]:
    """Return the parts of items with the tag ``FOREIGN``, oldest first.

    ``left`` gets a line for what stays, because it has a wrong type.
    """
    if items is None:
        return []
    return [
        part
        for index, item in items.objects()
        if items.tagged(index, FOREIGN)
        for part in _of_item(items, index, item, left)
    ]


def hidden_history(fields: ObjectText) -> tuple[str, ...]:
    """Return the places where a history is hidden: seals, references, a prompt, lone results."""
    raw, places = fields.raw("input") or b"", []
    prompt = fields.object("prompt")
    if prompt is not None and is_set(prompt, "id"):
        places.append("prompt.id")
    if raw[:1] == b"[" and any(mark in raw for mark in _HIDING):
        hiding = _COMPACTIONS | {_REFERENCE}
        items = enumerate(decode_items(raw, _Kind))
        places += [f"input[{n}]" for n, item in items if item and word(item.type) in hiding]
    if not places and b'_call_output"' in raw and b'_call"' not in raw:
        places.append("input")
    return tuple(places)


def _of_item(
    items: ArrayText, index: int, item: ObjectText, left: list[str]
) -> Iterator[OriginPart]:
    kind, place = item.text("type") or "", f"input[{index}]"
    if kind in _COMPACTIONS:
        lost = encode({"type": "message", "role": "user", "content": fixed_text("lost_beginning")})
        yield OriginPart(f"{kind} {place}", lambda: items.set(index, lost), context=True)
    elif kind == _REFERENCE or item.keys() == ("id",):
        yield whole_item(items, index, f"{kind or _REFERENCE} {place}", context=True)
    elif kind == "mcp_call":
        odd = [key for key in _CALL_TEXTS if is_set(item, key) and item.text(key) is None]
        left += [untouched(f"{place}.{key}", item.raw(key) or b"", "string") for key in odd]
        if odd:
            return
        pair = _as_function(item)
        yield OriginPart(
            f"{kind} {place}",
            lambda: _replace(items, index, pair),
            done="turned into a function call:",
        )
    elif kind == "reasoning":
        return
    elif kind in _SEALED or is_set(item, "container_id") or is_set(item, "encrypted_content"):
        yield whole_item(items, index, f"{kind} {place}")
    else:
        environment = item.object("environment")
        if environment is not None and is_set(environment, "container_id"):
            yield OriginPart(f"environment of {place}", lambda: item.delete("environment"))
        for key in ("content", "output"):
            yield from _of_content(item, key, f"{place}.{key}")


def _of_content(item: ObjectText, key: str, where: str) -> Iterator[OriginPart]:
    pieces = item.array(key)
    text_type = "output_text" if item.text("role") == "assistant" else "input_text"
    for number, piece in pieces.objects() if pieces is not None else ():
        place = f"{where}[{number}]"
        if pieces is not None and is_set(piece, "encrypted_content"):
            yield whole_item(pieces, number, f"encrypted_content {place}")
        elif pieces is not None and is_set(piece, "file_id"):
            yield file_text(pieces, number, place, text_type)
        else:
            yield from loose_entries(piece, "annotations", place, _BOUND_KEYS)


def _as_function(item: ObjectText) -> tuple[bytes, bytes]:
    """Return a call of an MCP server as a function's call and output, which anybody can read."""
    call_id = item.text("id") or ""
    call = {
        "type": "function_call",
        "call_id": call_id,
        "name": item.text("name") or "",
        "arguments": item.text("arguments") or "{}",
    }
    said = item.text("output") or item.text("error") or ""
    output = {"type": "function_call_output", "call_id": call_id, "output": said}
    return encode(call), encode(output)


def _replace(items: ArrayText, index: int, pair: tuple[bytes, bytes]) -> None:
    items.set(index, pair[0])
    items.insert(index + 1, pair[1])
