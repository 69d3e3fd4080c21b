"""What only the provider that made it can read: seals, files and ids, in every wire format.

Each format lists the parts of its own bodies, among the items that another provider made; a rewrite
removes them. Reasoning is not among them: :meth:`~.BodyView.reasoning` has it.
"""

from __future__ import annotations

from collections.abc import Iterator

from switchyard_core.jsonio.tree import ArrayText, ObjectText, encode
from switchyard_core.wire.history import OriginPart, fixed_text

__all__ = ["file_text", "is_set", "loose_entries", "whole_item"]


def is_set(holder: ObjectText, key: str) -> bool:
    """Return whether an object has a value that is not null."""
    return (holder.raw(key) or b"null") != b"null"


def whole_item(array: ArrayText, index: int, name: str, *, context: bool = False) -> OriginPart:
    """Return an element of an array as one part."""
    return OriginPart(name, lambda: array.delete(index), context)


def file_text(array: ArrayText, index: int, place: str, text_type: str = "text") -> OriginPart:
    """Return a file that is named by its id; a fixed text takes its place."""
    text = encode({"type": text_type, "text": fixed_text("lost_file")})
    return OriginPart(f"the file of {place}", lambda: array.set(index, text), context=True)


def loose_entries(
    holder: ObjectText, key: str, place: str, bound: tuple[str, ...]
) -> Iterator[OriginPart]:
    """Yield the entries of a list, such as citations, that have one of some keys."""
    entries = holder.array(key)
    if entries is None:
        return
    found = [n for n, entry in entries.objects() if any(is_set(entry, name) for name in bound)]
    if not found:
        return

    def remove() -> None:
        for number in reversed(found):
            entries.delete(number)
        if not len(entries):
            holder.delete(key)

    yield OriginPart(f"{len(found)} {key} of {place}", remove)
