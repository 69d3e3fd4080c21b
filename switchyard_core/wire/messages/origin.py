"""What of a Messages body only its provider can read."""

from __future__ import annotations

from collections.abc import Iterator

from switchyard_core.jsonio.tree import ArrayText, ObjectText, encode
from switchyard_core.wire.history import FOREIGN, OriginPart, blank, fixed_text
from switchyard_core.wire.origin import (
    file_text,
    is_set,
    loose_entries,
    whole_item,
)

__all__ = ["COMPACTION", "origin_bound"]

COMPACTION = "compaction"
#: Beginning of the ids of calls that run at the provider.
_AT_PROVIDER = "srvtoolu_"
_SEALS = ("encrypted_content", "encrypted_index")


def origin_bound(body: ObjectText, messages: ArrayText | None) -> list[OriginPart]:
    """Return the parts of messages with the tag ``FOREIGN``, oldest first."""
    parts: list[OriginPart] = []
    later = False
    for index, message in messages.objects() if messages is not None else ():
        content = message.array("content")
        if messages is None or content is None:
            continue
        if messages.tagged(index, FOREIGN):
            parts += _blocks(content, f"messages[{index}].content")
        else:
            later = later or any(_runs_there(block) for _, block in content.objects())
    # Calls at the provider after the handoff have a container of the next provider.
    if is_set(body, "container") and not later:
        parts.append(OriginPart("container", lambda: body.delete("container")))
    return parts


def _blocks(content: ArrayText, where: str) -> Iterator[OriginPart]:
    for number, block in content.objects():
        place, kind = f"{where}[{number}]", block.text("type") or ""
        source = block.object("source")
        if _runs_there(block):
            yield whole_item(content, number, f"{kind} {place}")
        elif kind == COMPACTION:
            yield _compaction(content, number, place, block)
        elif kind == "container_upload" or (source is not None and is_set(source, "file_id")):
            yield file_text(content, number, place)
        elif any(is_set(block, seal) for seal in _SEALS):
            yield whole_item(content, number, f"{kind} {place}")
        else:
            yield from loose_entries(block, "citations", place, (*_SEALS, "file_id"))
            inner = block.array("content") if kind == "tool_result" else None
            if inner is not None:
                yield from _blocks(inner, f"{place}.content")


def _runs_there(block: ObjectText) -> bool:
    """Return whether a block is a call that runs at the provider, or the result of one."""
    if block.text("type") == "server_tool_use":
        return True
    return (block.text("tool_use_id") or "").startswith(_AT_PROVIDER)


def _compaction(content: ArrayText, number: int, place: str, block: ObjectText) -> OriginPart:
    """Return a compaction; one that can be read becomes a text."""
    name = f"{COMPACTION} {place}"
    if blank(block, "content") or block.text("content") is None:
        lost = encode({"type": "text", "text": fixed_text("lost_beginning")})
        return OriginPart(name, lambda: content.set(number, lost), context=True)
    text = encode({"type": "text", "text": block.text("content")})
    return OriginPart(name, lambda: content.set(number, text), done="turned into text:")
