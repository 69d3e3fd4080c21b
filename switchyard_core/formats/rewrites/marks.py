"""Keeping within the provider's limit of cache marks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from switchyard_core.declarations import RewriteScope
from switchyard_core.formats.rewrites.companions import needed
from switchyard_core.formats.rewrites.pairs import RepairParameters
from switchyard_core.jsontext import ArrayText, ObjectText

__all__ = ["limit_marks"]

MAX_MARKS = 4


def limit_marks(
    body: ObjectText, parameters: RepairParameters, scope: RewriteScope
) -> Sequence[str]:
    """Leave at most four ``cache_control`` marks, and none on an empty text block.

    The earliest marks on messages go first, then those on system blocks and tools from the
    front; a mark that stays keeps its ttl.
    """
    if not needed(parameters.when, scope):
        return ()
    changes = []
    marked: list[tuple[str, ObjectText]] = []
    # A mark on the request itself takes a place too.
    room = MAX_MARKS - ((body.raw("cache_control") or b"null") != b"null")
    for place, block in _blocks(body):
        if (block.raw("cache_control") or b"null") == b"null":
            continue
        if block.text("type") == "text" and not (block.text("text") or "").strip():
            block.delete("cache_control")
            changes.append(f"removed the cache mark of the empty {place}")
        else:
            marked.append((place, block))
    messages = [entry for entry in marked if entry[0].startswith("messages")]
    others = [entry for entry in marked if not entry[0].startswith("messages")]
    for place, block in (messages + others)[: max(0, len(marked) - room)]:
        block.delete("cache_control")
        changes.append(f"removed the cache mark of {place}")
    return changes


def _blocks(body: ObjectText) -> Iterator[tuple[str, ObjectText]]:
    """Yield every place where a mark may stand, in the order in which a prompt is cached."""
    for key in ("tools", "system"):
        array = body.array(key)
        if array is not None:
            yield from ((f"{key}[{index}]", block) for index, block in array.objects())
    messages = body.array("messages")
    if messages is None:
        return
    for index, message in messages.objects():
        content = message.array("content")
        if content is not None:
            yield from _content(f"messages[{index}].content", content)


def _content(place: str, content: ArrayText) -> Iterator[tuple[str, ObjectText]]:
    for index, block in content.objects():
        inner = block.array("content") if block.text("type") == "tool_result" else None
        if inner is not None:
            yield from _content(f"{place}[{index}].content", inner)
        yield f"{place}[{index}]", block
