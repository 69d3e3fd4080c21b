"""A lossless, lazy tree over JSON bytes.

Rewrites must change one place of a body and keep the very bytes of all others: numbers such
as ``1.10`` or 70-digit integers, nested duplicate keys, escapes, spacing, key order. So a
body is never decoded and encoded again. It is cut one level deep, only where somebody looks,
and put together from the caller's own bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec

from switchyard_core.jsonio.scan import (
    SPACE,
    STRING,
    JsonTextError,
    cut_array,
    cut_object,
    encode,
    loads,
    match_end,
    skip_value,
)

__all__ = ["MAX_MEMBERS", "ArrayText", "JsonTextError", "ObjectText", "encode", "loads"]

#: Most members of an object that is cut; each costs a thousand times as much as its two bytes.
MAX_MEMBERS = 1000


class _Slot:
    """A value with the whitespace around it, and for a member its key."""

    __slots__ = ("after", "before", "key", "tags", "value")

    def __init__(
        self,
        value: bytes | ObjectText | ArrayText,
        *,
        key: str = "",
        before: bytes = b"",
        after: bytes = b"",
    ) -> None:
        self.value = value
        self.key = key
        self.before = before
        self.after = after
        self.tags: set[str] | None = None

    def copy(self) -> _Slot:
        twin = _Slot(self.value, key=self.key, before=self.before, after=self.after)
        if not isinstance(self.value, bytes):
            twin.value = self.value.copy()
        twin.tags = set(self.tags) if self.tags else None
        return twin

    def raw(self) -> bytes:
        return self.value if isinstance(self.value, bytes) else self.value.dump()


class _Node:
    """What objects and arrays have in common: slots between an opening and a closing."""

    __slots__ = ("_changed", "_data", "_head", "_slots", "_tail")

    _data: bytes
    _head: bytes
    _tail: bytes
    _slots: list[_Slot]
    _changed: bool

    def __len__(self) -> int:
        return len(self._slots)

    @property
    def changed(self) -> bool:
        """Whether anything in here differs from the bytes it was read from."""
        return self._changed or any(
            isinstance(slot.value, _Node) and slot.value.changed for slot in self._slots
        )

    def dump(self) -> bytes:
        """Return the bytes; untouched parts are the very bytes that were read."""
        if not self.changed:
            return self._data
        pieces = [self._head]
        for number, slot in enumerate(self._slots):
            if number:
                pieces.append(b",")
            pieces += (slot.before, slot.raw(), slot.after)
        pieces.append(self._tail)
        return b"".join(pieces)

    def _object_in(self, slot: _Slot) -> ObjectText | None:
        if isinstance(slot.value, bytes):
            if slot.value[:1] != b"{":
                return None
            slot.value = ObjectText(slot.value)
        return slot.value if isinstance(slot.value, ObjectText) else None

    def _array_in(self, slot: _Slot) -> ArrayText | None:
        if isinstance(slot.value, bytes):
            if slot.value[:1] != b"[":
                return None
            slot.value = ArrayText(slot.value)
        return slot.value if isinstance(slot.value, ArrayText) else None


class ObjectText(_Node):
    """A JSON object over its bytes: members in order, values cut but not decoded.

    Args:
        data: Bytes of one JSON object.
        unique: Whether a key that stands twice is an error.

    Raises:
        JsonTextError: The bytes are not a JSON object, it has over a thousand members, or a key
            is there twice and ``unique`` is set.
    """

    __slots__ = ()

    def __init__(self, data: bytes, *, unique: bool = False) -> None:
        values, read = cut_object(data)
        self._data = data
        self._changed = False
        self._split(values, read, unique=unique)

    def _split(self, values: dict[str, msgspec.Raw], read: bytes, *, unique: bool) -> None:
        data = self._data
        position = data.index(b"{") + 1
        self._head = data[:position]
        self._slots = []
        seen: set[str] = set()
        if not values:
            self._tail = data[position:]
            return
        while True:
            start = position
            position = match_end(SPACE, data, position)
            end = match_end(STRING, data, position)
            key = _key_text(data[position:end])
            # A lone surrogate in a key is masked in what msgspec read.
            raw = values.get(key if read is data else _key_text(read[position:end]))
            position = match_end(SPACE, data, match_end(SPACE, data, end) + 1)
            found = b"" if raw is None or key in seen else bytes(raw)
            if found and read.startswith(found, position):
                stop = position + len(found)
                if read[stop : stop + 1] not in (b",", b"}", b" ", b"\n", b"\r", b"\t"):
                    stop = skip_value(read, position)
            else:
                stop = skip_value(read, position)
            if len(self._slots) == MAX_MEMBERS:
                msg = f"too large: an object has over {MAX_MEMBERS} members"
                raise JsonTextError(msg)
            if key in seen and unique:
                msg = f"the key `{key}` stands twice"
                raise JsonTextError(msg, duplicate=key)
            seen.add(key)
            after = match_end(SPACE, data, stop)
            self._slots.append(
                _Slot(
                    data[position:stop],
                    key=key,
                    before=data[start:position],
                    after=data[stop:after],
                )
            )
            position = after + 1
            if data[after : after + 1] == b"}":
                self._tail = data[after:]
                return

    def copy(self) -> ObjectText:
        """Return an independent tree over the same bytes."""
        twin = ObjectText.__new__(ObjectText)
        twin._data, twin._head, twin._tail = self._data, self._head, self._tail
        twin._changed = self._changed
        twin._slots = [slot.copy() for slot in self._slots]
        return twin

    def __contains__(self, key: str) -> bool:
        return any(slot.key == key for slot in self._slots)

    def keys(self) -> tuple[str, ...]:
        """Return the keys in order; a duplicate one stands twice."""
        return tuple(slot.key for slot in self._slots)

    def _slot(self, key: str) -> _Slot | None:
        # The last one counts, as for every JSON reader that providers use.
        for slot in reversed(self._slots):
            if slot.key == key:
                return slot
        return None

    def raw(self, key: str) -> bytes | None:
        """Return the bytes of a member's value, ``None`` when there is none."""
        slot = self._slot(key)
        return None if slot is None else slot.raw()

    def value(self, key: str) -> Any:
        """Return a member's value, parsed; ``None`` when there is none."""
        raw = self.raw(key)
        return None if raw is None else loads(raw)

    def text(self, key: str) -> str | None:
        """Return a member's value if it is a string, else ``None``."""
        raw = self.raw(key)
        if raw is None or raw[:1] != b'"':
            return None
        value: str = loads(raw)
        return value

    def object(self, key: str) -> ObjectText | None:
        """Return a member's value as a tree of its own, ``None`` when it is no object."""
        slot = self._slot(key)
        return None if slot is None else self._object_in(slot)

    def array(self, key: str) -> ArrayText | None:
        """Return a member's value as a tree of its own, ``None`` when it is no array."""
        slot = self._slot(key)
        return None if slot is None else self._array_in(slot)

    def set(self, key: str, raw: bytes) -> None:
        """Replace a member's value, or append a new member."""
        slot = self._slot(key)
        if slot is None:
            self.insert(len(self._slots), key, raw)
            return
        if slot.raw() != raw:
            slot.value = raw
            self._changed = True

    def insert(self, index: int, key: str, raw: bytes) -> None:
        """Insert a new member at ``index``, spaced like its neighbours."""
        lead, colon = b"", b":"
        if self._slots:
            first = self._slots[0]
            lead = first.before[: match_end(SPACE, first.before, 0)]
            colon = first.before[match_end(STRING, first.before, len(lead)) :]
        slot = _Slot(raw, key=key, before=lead + encode(key) + colon)
        if self._slots and index == len(self._slots):
            slot.after, self._slots[-1].after = self._slots[-1].after, b""
        self._slots.insert(index, slot)
        self._changed = True

    def index(self, key: str) -> int:
        """Return the position of a key among the members, the number of members without it."""
        for number, slot in enumerate(self._slots):
            if slot.key == key:
                return number
        return len(self._slots)

    def delete(self, key: str) -> bool:
        """Remove a member, every one of that key; return whether there was one."""
        kept = [slot for slot in self._slots if slot.key != key]
        if len(kept) == len(self._slots):
            return False
        if kept and kept[-1] is not self._slots[-1]:
            kept[-1].after = self._slots[-1].after
        self._slots = kept
        self._changed = True
        return True


class ArrayText(_Node):
    """A JSON array over its bytes: items in order, cut but not decoded.

    Args:
        data: Bytes of one JSON array.

    Raises:
        JsonTextError: The bytes are not a JSON array.
    """

    __slots__ = ()

    def __init__(self, data: bytes) -> None:
        values = cut_array(data)
        self._data = data
        self._changed = False
        position = data.index(b"[") + 1
        self._head = data[:position]
        self._slots = []
        after = position
        for value in values:
            start = position
            position = match_end(SPACE, data, position)
            stop = position + len(bytes(value))
            after = match_end(SPACE, data, stop)
            self._slots.append(
                _Slot(data[position:stop], before=data[start:position], after=data[stop:after])
            )
            position = after + 1
        self._tail = data[after:]

    def copy(self) -> ArrayText:
        """Return an independent tree over the same bytes."""
        twin = ArrayText.__new__(ArrayText)
        twin._data, twin._head, twin._tail = self._data, self._head, self._tail
        twin._changed = self._changed
        twin._slots = [slot.copy() for slot in self._slots]
        return twin

    def raw(self, index: int) -> bytes:
        """Return the bytes of one item."""
        return self._slots[index].raw()

    def value(self, index: int) -> Any:
        """Return one item, parsed."""
        return loads(self.raw(index))

    def object(self, index: int) -> ObjectText | None:
        """Return one item as a tree of its own, ``None`` when it is no object."""
        return self._object_in(self._slots[index])

    def objects(self) -> Iterator[tuple[int, ObjectText]]:
        """Yield index and tree of every item that is an object."""
        for index, slot in enumerate(self._slots):
            node = self._object_in(slot)
            if node is not None:
                yield index, node

    def set(self, index: int, raw: bytes) -> None:
        """Replace one item."""
        if self._slots[index].raw() != raw:
            self._slots[index].value = raw
            self._changed = True

    def insert(self, index: int, raw: bytes) -> None:
        """Insert an item before ``index``, spaced like its neighbours."""
        slot = _Slot(raw)
        if self._slots:
            slot.before = self._slots[-1 if index else 0].before
            if index == len(self._slots):
                slot.after, self._slots[-1].after = self._slots[-1].after, b""
        self._slots.insert(index, slot)
        self._changed = True

    def append(self, raw: bytes) -> None:
        """Add an item at the end."""
        self.insert(len(self._slots), raw)

    def delete(self, index: int) -> None:
        """Remove one item."""
        gone = self._slots.pop(index)
        if self._slots and index == len(self._slots):
            self._slots[-1].after = gone.after
        self._changed = True

    def tag(self, index: int, name: str) -> None:
        """Mark an item for a later rewrite; marks move with their items and are not written."""
        slot = self._slots[index]
        slot.tags = (slot.tags or set()) | {name}

    def tagged(self, index: int, name: str) -> bool:
        """Return whether an item has a mark."""
        tags = self._slots[index].tags
        return bool(tags) and name in tags  # type: ignore[operator]  # bool() narrows for people


def _key_text(raw: bytes) -> str:
    text: str = json.loads(raw) if b"\\" in raw else raw[1:-1].decode("utf-8", "replace")
    return text
