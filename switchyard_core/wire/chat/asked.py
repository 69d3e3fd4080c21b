"""Looking into a Chat Completions request."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from switchyard_core.jsonio.tree import ObjectText

__all__ = ["NOTHING", "mark_of", "objects_in", "others_in", "printable"]

#: Values that say nothing.
NOTHING = (b"null", b'""', b"[]", b"{}")


def objects_in(
    holder: ObjectText, key: str, place: str, odd: list[str]
) -> Iterator[tuple[str, ObjectText]]:
    """Yield the objects of an array with their places; whatever else is there is named."""
    raw, items = holder.raw(key), holder.array(key)
    if items is None:
        if raw is not None and raw != b"null":
            odd.append(f"{place}{key}, which is not an array")
        return
    for index in range(len(items)):
        item = items.object(index)
        if item is None:
            odd.append(f"{place}{key}[{index}], which is not an object")
        else:
            yield f"{place}{key}[{index}]", item


def others_in(holder: ObjectText, known: Collection[str], place: str) -> list[str]:
    """Return the members of an object that nobody reads, with their place."""
    return [
        f"{key} of {place}"
        for key in dict.fromkeys(holder.keys())
        if key not in known and holder.raw(key) not in NOTHING
    ]


def mark_of(holder: ObjectText) -> bytes:
    """Return the JSON of the cache mark on something, ``b""`` for none."""
    raw = holder.raw("cache_control") or b""
    return raw if raw[:1] == b"{" else b""


def printable(kind: str) -> str:
    """Return a type as a report names it."""
    return f"`{kind[:64]}`" if kind and kind.isprintable() else "unknown"
