"""Looking into a Chat Completions request."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Protocol

import msgspec

from switchyard_core.jsonio.tree import ArrayText, ObjectText, loads

__all__ = ["NOTHING", "Holder", "mark_of", "objects_in", "others_in", "printable"]

#: Values that say nothing.
NOTHING = (b"null", b'""', b"[]", b"{}")
_ITEMS = msgspec.json.Decoder(list[dict[str, msgspec.Raw]])
_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
_TEXT = msgspec.json.Decoder(str)


class Holder(Protocol):
    """An object of a body, to be looked into."""

    def keys(self) -> Sequence[str]:
        """Return the keys in order."""

    def raw(self, key: str) -> bytes | None:
        """Return the bytes of a member's value, ``None`` if the object lacks it."""

    def text(self, key: str) -> str | None:
        """Return a member's value if it is a string, else ``None``."""

    def object(self, key: str) -> Holder | None:
        """Return a member's value if it is an object, else ``None``."""


class _Members:
    """An object that is cut but will not change: the tree would take ten times as long."""

    __slots__ = ("_members",)

    def __init__(self, members: dict[str, msgspec.Raw]) -> None:
        self._members = members

    def keys(self) -> Sequence[str]:
        return tuple(self._members)

    def raw(self, key: str) -> bytes | None:
        found = self._members.get(key)
        return None if found is None else bytes(found)

    def text(self, key: str) -> str | None:
        raw = self.raw(key)
        if raw is None or raw[:1] != b'"':
            return None
        try:
            return _TEXT.decode(raw)
        except ValueError:
            value: str = loads(raw)
            return value

    def object(self, key: str) -> Holder | None:
        raw = self.raw(key)
        if raw is None or raw[:1] != b"{":
            return None
        try:
            return _Members(_OBJECT.decode(raw))
        except (msgspec.MsgspecError, RecursionError):
            return ObjectText(raw)


def objects_in(
    holder: Holder, key: str, place: str, odd: list[str]
) -> Iterator[tuple[str, Holder]]:
    """Yield the objects of an array with their places; whatever else is there is named."""
    raw = holder.raw(key)
    if raw is None or raw == b"null":
        return
    if raw[:1] != b"[":
        odd.append(f"{place}{key}, which is not an array")
        return
    for index, item in enumerate(_items(raw)):
        if item is None:
            odd.append(f"{place}{key}[{index}], which is not an object")
        else:
            yield f"{place}{key}[{index}]", item


def _items(raw: bytes) -> Iterator[Holder | None]:
    try:
        listed = _ITEMS.decode(raw)
    except (msgspec.MsgspecError, RecursionError):
        # Odd items, or half an emoji.
        items = ArrayText(raw)
        yield from (items.object(index) for index in range(len(items)))
    else:
        yield from map(_Members, listed)


def others_in(holder: Holder, known: Collection[str], place: str) -> list[str]:
    """Return the members of an object that nobody reads, with their place."""
    return [
        f"{key} of {place}"
        for key in dict.fromkeys(holder.keys())
        if key not in known and holder.raw(key) not in NOTHING
    ]


def mark_of(holder: Holder) -> bytes:
    """Return the JSON of the cache mark on something, ``b""`` for none."""
    raw = holder.raw("cache_control") or b""
    return raw if raw[:1] == b"{" else b""


def printable(kind: str) -> str:
    """Return a type as a report names it."""
    return f"`{kind[:64]}`" if kind and kind.isprintable() else "unknown"
