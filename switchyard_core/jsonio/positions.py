"""Line and column of the places that paths point to in a JSON text, for findings."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Sequence
from json.decoder import scanstring  # type: ignore[attr-defined]

__all__ = ["locate", "locate_all"]

_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()
#: Where a key or an item begins, and where its value does.
_Place = tuple[int, int]


class _Wanted:
    """A place to look for, and the places inside it."""

    __slots__ = ("found", "inner")

    def __init__(self) -> None:
        self.found: int | None = None
        self.inner: dict[str | int, _Wanted] = {}


def locate(text: str, path: Sequence[str | int]) -> tuple[int, int]:
    """Return line and column (from 1) of the value at a path, for a member of its key.

    A step that is missing in the text ends the walk at the value that should hold it.
    """
    return locate_all(text, [path])[0]


def locate_all(text: str, paths: Iterable[Sequence[str | int]]) -> list[tuple[int, int]]:
    """Return the places of several paths in one walk of the text."""
    root = _Wanted()
    ways: list[list[_Wanted]] = []
    for path in paths:
        ways.append([root])
        for step in path:
            ways[-1].append(ways[-1][-1].inner.setdefault(step, _Wanted()))
    root.found = _after_space(text, 0)
    waiting = [(root, root.found)]
    while waiting:
        node, start = waiting.pop()
        for step, (found, value) in _inside(text, start, node.inner).items():
            node.inner[step].found = found
            waiting.append((node.inner[step], value))
    lines = [0, *(match.end() for match in re.finditer("\n", text))]
    return [_place(lines, way) for way in ways]


def _place(lines: list[int], way: list[_Wanted]) -> tuple[int, int]:
    offset = next(node.found for node in reversed(way) if node.found is not None)
    line = bisect_right(lines, offset)
    return line, offset - lines[line - 1] + 1


def _inside(text: str, start: int, steps: Collection[str | int]) -> dict[str | int, _Place]:
    if not steps or text[start] not in "{[":
        return {}
    return _members(text, start, steps) if text[start] == "{" else _items(text, start, steps)


def _members(text: str, start: int, names: Collection[str | int]) -> dict[str | int, _Place]:
    """Return the places of an object's members; of the last one of a duplicate key."""
    found: dict[str | int, _Place] = {}
    position = _after_space(text, start + 1)
    while text[position] == '"':
        key, end = scanstring(text, position + 1)
        value = _after_space(text, _after_space(text, end) + 1)
        if key in names:
            found[key] = position, value
        position = _after_comma(text, value)
    return found


def _items(text: str, start: int, indices: Collection[str | int]) -> dict[str | int, _Place]:
    found: dict[str | int, _Place] = {}
    last = max((index for index in indices if isinstance(index, int)), default=-1)
    position = _after_space(text, start + 1)
    for index in range(last + 1):
        if text[position] == "]":
            break
        if index in indices:
            found[index] = position, position
        position = _after_comma(text, position)
    return found


def _after_comma(text: str, value: int) -> int:
    """Return where the next key or item, or the closing bracket, begins after a value."""
    end = _after_space(text, _DECODER.raw_decode(text, value)[1])
    return _after_space(text, end + 1) if text[end] == "," else end


def _after_space(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position
