"""Where in a JSON text a path points to, for findings with line and column."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from json.decoder import scanstring  # type: ignore[attr-defined]

__all__ = ["locate"]

_SPACE = re.compile(r"[ \t\r\n]*")


def locate(text: str, path: Sequence[str | int]) -> tuple[int, int]:
    """Return line and column (from 1) of the value at a path, or of its key.

    Args:
        text: Valid JSON.
        path: Keys and indices from the root. A step that is not in the text, such as a key
            that is missing, ends the walk at the value that should hold it.

    Returns:
        The place of the last step found: of the key for a member of an object, of the value
        for an item of an array.
    """
    found = value = _after_space(text, 0)
    for step in path:
        place = _member(text, value, step) if isinstance(step, str) else _item(text, value, step)
        if place is None:
            break
        found, value = place
    line_start = text.rfind("\n", 0, found) + 1
    return text.count("\n", 0, found) + 1, found - line_start + 1


def _member(text: str, start: int, name: str) -> tuple[int, int] | None:
    """Return the positions of a member's key and value; of the last one if it stands twice."""
    found = None
    if text[start] != "{":
        return None
    position = _after_space(text, start + 1)
    while text[position] == '"':
        key, end = scanstring(text, position + 1)
        value = _after_space(text, _after_space(text, end) + 1)
        if key == name:
            found = position, value
        position = _after_comma(text, value)
    return found


def _item(text: str, start: int, index: int) -> tuple[int, int] | None:
    if text[start] != "[":
        return None
    position = _after_space(text, start + 1)
    for _ in range(index):
        if text[position] == "]":
            return None
        position = _after_comma(text, position)
    return None if text[position] == "]" else (position, position)


def _after_comma(text: str, value: int) -> int:
    """Return where the next key or item begins after a value, or the closing bracket."""
    end = _after_space(text, json.JSONDecoder().raw_decode(text, value)[1])
    return _after_space(text, end + 1) if text[end] == "," else end


def _after_space(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position
