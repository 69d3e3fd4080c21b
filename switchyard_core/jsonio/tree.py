"""A lossless, lazy tree over JSON bytes.

Rewrites change one place of a body and keep the very bytes of all others: numbers such as ``1.10``
or 70-digit integers, nested duplicate keys, escapes, spacing, key order. So a body is never decoded
and encoded again, but cut one level deep where somebody looks, and put together from its own bytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from math import isfinite
from typing import Any, Self

import msgspec

from switchyard_core.jsonio.scan import (
    ARRAY,
    OBJECT,
    SPACE,
    STRING,
    JsonTextError,
    cut_array,
    cut_object,
    loads,
    match_end,
    skip_value,
)

__all__ = [
    "MAX_MEMBERS",
    "ArrayText",
    "JsonTextError",
    "ObjectText",
    "array_of",
    "encode",
    "loads",
    "object_of",
]

#: Most members of an object that is cut; each costs a thousand times as much as its two bytes.
MAX_MEMBERS = 1000
#: A key (group 1) with its colon and the whitespace around.
_KEY = re.compile(rb'[ \t\r\n]*("[^"\\]*(?:\\.[^"\\]*)*")[ \t\r\n]*:[ \t\r\n]*', re.DOTALL)
_SPACES = b" \t\r\n"
_ENDS = (b",", b"}", b" ", b"\n", b"\r", b"\t")
_TEXT = msgspec.json.Decoder(str)


def encode(value: Any) -> bytes:
    """Return compact JSON for a value of ours; key order is kept."""
    try:
        return msgspec.json.encode(value)
    except (UnicodeEncodeError, msgspec.MsgspecError, OverflowError, TypeError):
        # Lone surrogates and integers beyond 64 bits: the standard library writes both.
        return _dumped(value)


def _dumped(value: Any) -> bytes:
    """Return compact ASCII; raw JSON stays as it is, and numbers that are too large are null."""
    if isinstance(value, msgspec.Raw):
        return bytes(value)
    if isinstance(value, Mapping):
        members = [json.dumps(key).encode() + b":" + _dumped(each) for key, each in value.items()]
        return b"{" + b",".join(members) + b"}"
    if isinstance(value, list | tuple):
        return b"[" + b",".join(map(_dumped, value)) + b"]"
    if isinstance(value, float) and not isfinite(value):
        return b"null"
    return json.dumps(value).encode("ascii")


def object_of(members: Mapping[str, Any]) -> bytes:
    """Return a JSON object of ours; a value that is ``bytes`` is JSON already."""
    return b"{" + b",".join([encode(key) + b":" + _json(members[key]) for key in members]) + b"}"


def array_of(items: Iterable[Any]) -> bytes:
    """Return a JSON array of ours; an item that is ``bytes`` is JSON already."""
    return b"[" + b",".join(map(_json, items)) + b"]"


def _json(value: Any) -> bytes:
    return value if isinstance(value, bytes) else encode(value)


class _Slot(msgspec.Struct, eq=False):
    """A value with the whitespace around it, and for a member its key."""

    value: bytes | ObjectText | ArrayText
    key: str = ""
    before: bytes = b""
    after: bytes = b""
    tags: frozenset[str] = frozenset()


class _Node:
    """What objects and arrays have in common: slots between an opening and a closing."""

    __slots__ = ("_changed", "_data", "_head", "_members", "_parent", "_slots", "_tail")

    _data: bytes
    _head: bytes
    _tail: bytes
    _slots: list[_Slot]
    #: The slot of each key; the last one counts, as for every JSON reader that providers use.
    _members: dict[str, _Slot]
    _parent: _Node | None
    _changed: bool

    def __len__(self) -> int:
        return len(self._slots)

    @property
    def changed(self) -> bool:
        """Whether anything in here differs from the bytes it was read from."""
        return self._changed

    def dump(self) -> bytes:
        """Return the bytes; untouched parts are the very bytes that were read."""
        if not self._changed:
            return self._data
        pieces = [self._head]
        for number, slot in enumerate(self._slots):
            if number:
                pieces.append(b",")
            value = slot.value
            pieces += (
                slot.before,
                value if isinstance(value, bytes) else value.dump(),
                slot.after,
            )
        pieces.append(self._tail)
        return b"".join(pieces)

    def copy(self) -> Self:
        """Return an independent tree over the same bytes."""
        twin = self.__class__.__new__(self.__class__)
        twin._data, twin._head, twin._tail = self._data, self._head, self._tail
        twin._parent, twin._changed, twin._slots, twin._members = None, self._changed, [], {}
        for slot in self._slots:
            value = slot.value
            if not isinstance(value, bytes):
                value = value.copy()
                value._parent = twin
            made = _Slot(value, slot.key, slot.before, slot.after, slot.tags)
            twin._slots.append(made)
            twin._members[slot.key] = made
        return twin

    def _change(self) -> None:
        """Note a change, here and in whatever holds this."""
        node: _Node | None = self
        while node is not None and not node._changed:
            node._changed = True
            node = node._parent

    def _object_in(self, slot: _Slot) -> ObjectText | None:
        value = slot.value
        if isinstance(value, bytes) and value[:1] == b"{":
            slot.value = value = ObjectText(value)
            value._parent = self
        return value if isinstance(value, ObjectText) else None

    def _array_in(self, slot: _Slot) -> ArrayText | None:
        value = slot.value
        if isinstance(value, bytes) and value[:1] == b"[":
            slot.value = value = ArrayText(value)
            value._parent = self
        return value if isinstance(value, ArrayText) else None


class ObjectText(_Node):
    """A JSON object over its bytes: members in order, values cut but not decoded.

    Args:
        data: Bytes of one JSON object.
        unique: Whether a key that appears twice is an error.

    Raises:
        JsonTextError: The bytes are not a JSON object, it has over a thousand members, or a key
            is there twice and ``unique`` is set.
    """

    __slots__ = ()

    def __init__(self, data: bytes, *, unique: bool = False) -> None:
        try:
            values, read = OBJECT.decode(data), data
        except (msgspec.MsgspecError, RecursionError):
            values, read = cut_object(data)
        self._data, self._parent, self._changed = data, None, False
        self._slots, self._members = [], {}
        position = data.index(b"{") + 1
        self._head = data[:position]
        self._tail = data[position:]
        members = self._members
        while values:
            start, match = position, _KEY.match(data, position)
            if match is None:  # pragma: no cover  # msgspec reads no such object
                msg = f"the key at byte {start} cannot be read"
                raise JsonTextError(msg)
            position, quoted = match.end(), match[1]
            key = _key_text(quoted) if b"\\" in quoted else quoted[1:-1].decode("utf-8", "replace")
            # A lone surrogate in a key is masked in what msgspec read.
            known = key if read is data else _key_text(read[match.start(1) : match.end(1)])
            raw = None if key in members else values.get(known)
            found = b"" if raw is None else bytes(raw)
            stop = position + len(found)
            if (
                not found
                or not read.startswith(found, position)
                or read[stop : stop + 1] not in _ENDS
            ):
                stop = skip_value(read, position)
            if len(self._slots) == MAX_MEMBERS:
                msg = f"too large: an object has over {MAX_MEMBERS} members"
                raise JsonTextError(msg)
            if key in members and unique:
                msg = f"the key `{key}` appears twice"
                raise JsonTextError(msg, duplicate=key)
            after = match_end(SPACE, data, stop) if data[stop] in _SPACES else stop
            slot = _Slot(data[position:stop], key, data[start:position], data[stop:after])
            self._slots.append(slot)
            members[key] = slot
            position = after + 1
            if data[after] == ord("}"):
                self._tail = data[after:]
                break

    def __contains__(self, key: str) -> bool:
        return key in self._members

    def keys(self) -> tuple[str, ...]:
        """Return the keys in order; a duplicate one appears twice."""
        return tuple([slot.key for slot in self._slots])

    def raw(self, key: str) -> bytes | None:
        """Return the bytes of a member's value, ``None`` if the object lacks it."""
        slot = self._members.get(key)
        if slot is None:
            return None
        value = slot.value
        return value if isinstance(value, bytes) else value.dump()

    def value(self, key: str) -> Any:
        """Return a member's value, parsed; ``None`` if the object lacks it."""
        raw = self.raw(key)
        return None if raw is None else loads(raw)

    def text(self, key: str) -> str | None:
        """Return a member's value if it is a string, else ``None``."""
        slot = self._members.get(key)
        raw = None if slot is None else slot.value
        if not isinstance(raw, bytes) or raw[:1] != b'"':
            return None
        try:
            return _TEXT.decode(raw)
        except ValueError:
            value: str = loads(raw)
            return value

    def object(self, key: str) -> ObjectText | None:
        """Return a member's value as a tree, ``None`` when it is not an object."""
        slot = self._members.get(key)
        return None if slot is None else self._object_in(slot)

    def array(self, key: str) -> ArrayText | None:
        """Return a member's value as a tree, ``None`` when it is not an array."""
        slot = self._members.get(key)
        return None if slot is None else self._array_in(slot)

    def set(self, key: str, raw: bytes) -> None:
        """Replace a member's value, or append a new member."""
        slot = self._members.get(key)
        if slot is None:
            self.insert(len(self._slots), key, raw)
        elif self.raw(key) != raw:
            slot.value = raw
            self._change()

    def insert(self, index: int, key: str, raw: bytes) -> None:
        """Insert a new member at ``index``, spaced like its neighbours."""
        lead, colon = b"", b":"
        if self._slots:
            first = self._slots[0]
            lead = first.before[: match_end(SPACE, first.before, 0)]
            colon = first.before[match_end(STRING, first.before, len(lead)) :]
        slot = _Slot(raw, key, lead + encode(key) + colon)
        if self._slots and index == len(self._slots):
            slot.after, self._slots[-1].after = self._slots[-1].after, b""
        self._slots.insert(index, slot)
        self._members = {slot.key: slot for slot in self._slots}
        self._change()

    def become(self, raw: bytes) -> None:
        """Replace the whole object by another one."""
        other = ObjectText(raw)
        for slot in other._slots:
            if not isinstance(slot.value, bytes):
                slot.value._parent = self
        self._head, self._tail = other._head, other._tail
        self._slots, self._members = other._slots, other._members
        self._change()

    def index(self, key: str) -> int:
        """Return the position of a key among the members, the number of members without it."""
        for number, slot in enumerate(self._slots):
            if slot.key == key:
                return number
        return len(self._slots)

    def delete(self, key: str) -> bool:
        """Remove a member, every one of that key; return whether there was one."""
        if key not in self._members:
            return False
        kept = [slot for slot in self._slots if slot.key != key]
        if kept and kept[-1] is not self._slots[-1]:
            kept[-1].after = self._slots[-1].after
        self._slots = kept
        del self._members[key]
        self._change()
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
        try:
            values = ARRAY.decode(data)
        except (msgspec.MsgspecError, RecursionError):
            values = cut_array(data)
        self._data, self._parent, self._changed = data, None, False
        self._slots, self._members = [], {}
        position = after = data.index(b"[") + 1
        self._head = data[:position]
        for value in values:
            start = position
            if data[position] in _SPACES:
                position = match_end(SPACE, data, position)
            stop = after = position + len(bytes(value))
            if data[stop] in _SPACES:
                after = match_end(SPACE, data, stop)
            slot = _Slot(data[position:stop], "", data[start:position], data[stop:after])
            self._slots.append(slot)
            position = after + 1
        self._tail = data[after:]

    def raw(self, index: int) -> bytes:
        """Return the bytes of one item."""
        value = self._slots[index].value
        return value if isinstance(value, bytes) else value.dump()

    def value(self, index: int) -> Any:
        """Return one item, parsed."""
        return loads(self.raw(index))

    def object(self, index: int) -> ObjectText | None:
        """Return one item as a tree, ``None`` when it is not an object."""
        return self._object_in(self._slots[index])

    def objects(self) -> Iterator[tuple[int, ObjectText]]:
        """Yield index and tree of every item that is an object."""
        for index, slot in enumerate(self._slots):
            node = self._object_in(slot)
            if node is not None:
                yield index, node

    def set(self, index: int, raw: bytes) -> None:
        """Replace one item."""
        if self.raw(index) != raw:
            self._slots[index].value = raw
            self._change()

    def insert(self, index: int, raw: bytes) -> None:
        """Insert an item before ``index``, spaced like its neighbours."""
        slot = _Slot(raw)
        if self._slots:
            slot.before = self._slots[-1 if index else 0].before
            if index == len(self._slots):
                slot.after, self._slots[-1].after = self._slots[-1].after, b""
        self._slots.insert(index, slot)
        self._change()

    def append(self, raw: bytes) -> None:
        """Add an item at the end."""
        self.insert(len(self._slots), raw)

    def delete(self, index: int) -> None:
        """Remove one item."""
        gone = self._slots.pop(index)
        if self._slots and index == len(self._slots):
            self._slots[-1].after = gone.after
        self._change()

    def tag(self, index: int, name: str) -> None:
        """Mark an item for a later rewrite; marks move with their items and are not written."""
        self._slots[index].tags |= {name}

    def tagged(self, index: int, name: str) -> bool:
        """Return whether an item has a mark."""
        return name in self._slots[index].tags


def _key_text(raw: bytes) -> str:
    text: str = json.loads(raw) if b"\\" in raw else raw[1:-1].decode("utf-8", "replace")
    return text
