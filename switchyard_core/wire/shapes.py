"""Which JSON types the values of a body have, and what is said of one that has another.

A value of a wrong type is sent as it came: the provider decides about it. What looks into a value
looks at its type first, and tells when it is another one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from switchyard_core.jsonio.tree import ArrayText, ObjectText

__all__ = [
    "STRING",
    "JsonType",
    "Shape",
    "fits",
    "list_of",
    "odd_values",
    "still_untouched",
    "text_or_list_of",
    "type_of",
    "untouched",
]

JsonType: TypeAlias = Literal["object", "array", "string", "number", "boolean", "null"]

_TYPES: Mapping[bytes, JsonType] = {
    b"{": "object",
    b"[": "array",
    b'"': "string",
    b"t": "boolean",
    b"f": "boolean",
    b"n": "null",
}


#: What a report says of a value that it names.
_LEFT = ": it was sent untouched"
_NUMBER = re.compile(r"\[\d+\]")
_STEP = re.compile(r"\[\]|[^.\[\]]+")


@dataclass(frozen=True, slots=True)
class Shape:
    """The types that a value may have, and the shapes of its members or its items."""

    types: tuple[JsonType, ...]
    members: Mapping[str, Shape] = field(default_factory=dict)
    items: Shape | None = None


STRING = Shape(("string",))


def list_of(**members: Shape) -> Shape:
    """Return the shape of an array of objects, with those of some members."""
    return Shape(("array",), items=Shape(("object",), members))


def text_or_list_of(**members: Shape) -> Shape:
    """Return the shape of a text, or of an array of objects."""
    return Shape(("string", "array"), items=Shape(("object",), members))


def untouched(place: str, raw: bytes, *wanted: JsonType) -> str:
    """Return what a report says of a value that has none of the wanted types."""
    types = " or ".join(map(_named, wanted))
    return f"{place} is {_named(type_of(raw))}, not {types}{_LEFT}"


def odd_values(body: ObjectText, shape: Shape) -> list[str]:
    """Return a line for every value of a body that has another type than its shape says."""
    # Nearly every body is right, and then no place has to be named.
    return [] if fits(body, shape) else list(_odd(body, shape, ""))


def still_untouched(body: ObjectText, lines: Sequence[str]) -> set[str]:
    """Return those lines of which the value is still in a body, wherever its items are now.

    Where fewer are left than were told, those at their place count, then the last ones: a
    handoff cuts what is oldest.
    """
    told = {line: line.partition(", not ")[0] for line in lines if line.endswith(_LEFT)}
    ways = {
        tuple(_STEP.findall(_NUMBER.sub("[]", head.partition(" is ")[0]))) for head in told.values()
    }
    there = [head for way in sorted(ways) for head in _heads(body, way, "")]
    kept = set(lines) - set(told)
    left = Counter(_NUMBER.sub("[]", head) for head in there)
    at_its_place = set(there)
    newest = [*reversed(told)]
    # `sorted` keeps the order of equals.
    for line in sorted(newest, key=lambda line: told[line] not in at_its_place):
        sort = _NUMBER.sub("[]", told[line])
        if left[sort]:
            left[sort] -= 1
            kept.add(line)
    return kept


def _heads(holder: ObjectText, way: Sequence[str], place: str) -> Iterator[str]:
    """Yield place and type of every value that a way leads to."""
    (key, *rest), many = way or ("",), way[1:2] == ("[]",)
    array, where = holder.array(key) if many else None, f"{place}{key}"
    if not rest:
        yield f"{where} is {_named(type_of(holder.raw(key) or b'null'))}"
    elif not many:
        inner = holder.object(key)
        if inner is not None:
            yield from _heads(inner, tuple(rest), f"{where}.")
    elif array is not None and rest[1:]:
        for index, item in array.objects():
            yield from _heads(item, tuple(rest[1:]), f"{where}[{index}].")
    elif array is not None:
        for index in range(len(array)):
            yield f"{where}[{index}] is {_named(type_of(array.raw(index)))}"


def type_of(raw: bytes) -> JsonType:
    """Return the type of some JSON."""
    return _TYPES.get(raw[:1], "number")


def _named(kind: JsonType) -> str:
    if kind == "null":
        return kind
    return f"an {kind}" if kind in ("object", "array") else f"a {kind}"


def fits(holder: ObjectText, shape: Shape) -> bool:
    """Return whether the members of an object have the types of a shape, all the way down."""
    for key, inner in shape.members.items():
        raw = holder.raw(key)
        if raw is None or raw == b"null":
            continue
        kind = type_of(raw)
        if kind not in inner.types:
            return False
        if kind == "array" and inner.items is not None:
            array = holder.array(key)
            for index in range(len(array) if array is not None else 0):
                item = array.object(index) if array is not None else None
                if item is None or not fits(item, inner.items):
                    return False
    return True


def _odd(holder: ObjectText, shape: Shape, place: str) -> Iterator[str]:
    for key, inner in shape.members.items():
        raw, where = holder.raw(key), f"{place}{key}"
        if raw is None or raw == b"null":
            continue
        if type_of(raw) not in inner.types:
            yield untouched(where, raw, *inner.types)
        array = holder.array(key)
        if array is not None and inner.items is not None:
            yield from _odd_items(array, inner.items, where)


def _odd_items(array: ArrayText, shape: Shape, place: str) -> Iterator[str]:
    for index in range(len(array)):
        item, where = array.object(index), f"{place}[{index}]"
        if item is None:
            yield untouched(where, array.raw(index), *shape.types)
        else:
            yield from _odd(item, shape, f"{where}.")
