"""Where every key and value of a TOML document stands."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass

from switchyard_core.policy.outline import STRING, Location, Node, Outline

__all__ = ["Lines", "Location", "Place", "Positions"]

#: One source piece of a basic string; the first alternative stands for no character at all.
_PIECE = re.compile(r"(?P<nothing>\\[ \t]*\n[ \t\n]*)|\\u.{4}|\\U.{8}|\\x.{2}|\\.|.", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A position in a text: 1-based line, 1-based column counted in characters."""

    line: int
    column: int


class Lines:
    """Turns offsets into lines and columns.

    Args:
        text: A text with LF line ends.
    """

    def __init__(self, text: str) -> None:
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def place(self, offset: int) -> Place:
        """Return the place of a character."""
        line = bisect_right(self._starts, offset)
        return Place(line=line, column=offset - self._starts[line - 1] + 1)


class Positions:
    """Finds the place of a key, of a value, or of a character inside a string value.

    A location that the document does not have gives the place of its nearest known parent,
    so a missing key is reported at its table.

    Args:
        text: A valid TOML document with LF line ends and no byte order mark.
        outline: What was read of it, to save reading it again.
    """

    def __init__(self, text: str, outline: Outline | None = None) -> None:
        self._text = text
        self._lines = Lines(text)
        self._root = (outline or Outline(text)).root

    def key(self, location: Location) -> Place:
        """Return where the key (or array element) at a location begins."""
        return self._lines.place(max(self._find(location).key, 0))

    def value(self, location: Location) -> Place:
        """Return where the value at a location begins; a table begins at its header's key."""
        return self._lines.place(max(self._find(location).value, 0))

    def inside(self, location: Location, offset: int) -> Place:
        """Return where a character of a string value stands.

        Args:
            location: Location of a string.
            offset: 0-based index into the decoded string; an index past its end gives the
                closing quote, and a value that is no string its beginning.
        """
        start = max(self._find(location).value, 0)
        match = STRING.match(self._text, start)
        if match is None:
            return self._lines.place(start)
        raw = match.group()
        width = 3 if raw.startswith(('"""', "'''")) else 1
        at, end = start + width, match.end() - width
        if width == 3 and self._text.startswith("\n", at):
            at += 1
        if raw[0] == "'":
            return self._lines.place(min(at + offset, end))
        for piece in _PIECE.finditer(self._text, at, end):
            if piece.group("nothing") is None:
                if offset <= 0:
                    break
                offset -= 1
            at = piece.end()
        return self._lines.place(at)

    def _find(self, location: Location) -> Node:
        node = self._root
        for part in location:
            child = node.children.get(part)
            if child is None:
                break
            node = child
        return node
