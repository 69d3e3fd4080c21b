"""Where every key and value of a TOML document stands.

The values themselves come from tomli. This reader runs only on text that tomli accepted, so it
never has to decide what is legal: it finds keys, values, strings and brackets, and notes their
offsets. (A TOML grammar was tried for this: it refuses inline tables over several lines, which
tomli takes, and then gives no positions at all.)
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field

import tomli

__all__ = ["Location", "Place", "Positions"]

#: Path in a document: table keys and array indexes.
Location = tuple[str | int, ...]

_GAP = re.compile(r"(?:[ \t\n]+|#[^\n]*)*")
_SPACE = re.compile(r"[ \t]*")
_BARE_KEY = re.compile(r"[^\s.=\]]+")
_BARE_VALUE = re.compile(r"[^,\]}#\n]*")
_STRING = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*"{3,5}'
    r"|'''(?:[^']|'(?!''))*'{3,5}"
    r'|"(?:[^"\\]|\\.)*"'
    r"|'[^']*'",
    re.DOTALL,
)
#: One source piece of a basic string; the first alternative stands for no character at all.
_PIECE = re.compile(r"(?P<nothing>\\[ \t]*\n[ \t\n]*)|\\u.{4}|\\U.{8}|\\x.{2}|\\.|.", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A position in a text: 1-based line, 1-based column counted in characters."""

    line: int
    column: int


@dataclass(slots=True)
class _Node:
    """One key or array element; offsets are -1 until known."""

    key: int = -1
    value: int = -1
    children: dict[str | int, _Node] = field(default_factory=dict)
    is_table_array: bool = False

    def child(self, name: str | int, offset: int) -> _Node:
        node = self.children.get(name)
        if node is None:
            node = self.children[name] = _Node(offset, offset)
        return node


class Positions:
    """Finds the place of a key, of a value, or of a character inside a string value.

    A location that the document does not have gives the place of its nearest known parent,
    so a missing key is reported at its table.

    Args:
        text: A valid TOML document with LF line ends and no byte order mark.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._lines = [0, *(match.end() for match in re.finditer("\n", text))]
        self._root = _Reader(text).read()

    def key(self, location: Location) -> Place:
        """Return where the key (or array element) at a location begins."""
        return self._place(max(self._find(location).key, 0))

    def value(self, location: Location) -> Place:
        """Return where the value at a location begins; a table begins at its header's key."""
        return self._place(max(self._find(location).value, 0))

    def inside(self, location: Location, offset: int) -> Place:
        """Return where a character of a string value stands.

        Args:
            location: Location of a string.
            offset: 0-based index into the decoded string; an index past its end gives the
                closing quote, and a value that is no string its beginning.
        """
        start = max(self._find(location).value, 0)
        match = _STRING.match(self._text, start)
        if match is None:
            return self._place(start)
        raw = match.group()
        width = 3 if raw.startswith(('"""', "'''")) else 1
        at, end = start + width, match.end() - width
        if width == 3 and self._text.startswith("\n", at):
            at += 1
        if raw[0] == "'":
            return self._place(min(at + offset, end))
        while at < end:
            piece = _PIECE.match(self._text, at)
            if piece is None:  # pragma: no cover - the pattern matches any character
                break
            if piece.group("nothing") is None:
                if offset <= 0:
                    break
                offset -= 1
            at = piece.end()
        return self._place(min(at, end))

    def _find(self, location: Location) -> _Node:
        node = self._root
        for part in location:
            child = node.children.get(part)
            if child is None:
                break
            node = child
        return node

    def _place(self, offset: int) -> Place:
        line = bisect_right(self._lines, offset)
        return Place(line=line, column=offset - self._lines[line - 1] + 1)


@dataclass(slots=True)
class _Frame:
    """An array or inline table that is being read."""

    node: _Node
    is_array: bool
    count: int = 0


class _Reader:
    """Reads a valid document once, from front to back, without recursion."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def read(self) -> _Node:
        root = _Node()
        table = root
        while self._skip(_GAP) < len(self._text):
            if self._text.startswith("[[", self._at):
                self._at += 2
                table = self._header(root, is_array=True)
            elif self._text.startswith("[", self._at):
                self._at += 1
                table = self._header(root, is_array=False)
            else:
                self._pair(table, [])
        return root

    def _header(self, root: _Node, *, is_array: bool) -> _Node:
        node = root
        *parents, (name, offset) = self._key()
        for parent, parent_offset in parents:
            node = node.child(parent, parent_offset)
            if node.is_table_array:
                node = node.children[len(node.children) - 1]
        node = node.child(name, offset)
        if is_array:
            node.is_table_array = True
            node = node.child(len(node.children), offset)
        else:
            # `[a.b]` may stand before `[a]`: the table's own header is its place.
            node.key = node.value = offset
        self._at += 2 if is_array else 1
        return node

    def _pair(self, table: _Node, frames: list[_Frame]) -> None:
        """Read ``key = value``; with frames, the value of an inline table's key is opened."""
        node = table
        for name, offset in self._key():
            node = node.child(name, offset)
        self._at += 1  # the equals sign
        self._skip(_SPACE)
        if frames:
            self._open(node, frames)
        else:
            self._value(node)

    def _value(self, node: _Node) -> None:
        frames: list[_Frame] = []
        self._open(node, frames)
        while frames:
            self._skip(_GAP)
            frame = frames[-1]
            mark = self._text[self._at]
            if mark in "]}":
                self._at += 1
                frames.pop()
            elif mark == ",":
                self._at += 1
            elif frame.is_array:
                child = frame.node.child(frame.count, self._at)
                frame.count += 1
                self._open(child, frames)
            else:
                self._pair(frame.node, frames)

    def _open(self, node: _Node, frames: list[_Frame]) -> None:
        node.value = self._at
        mark = self._text[self._at]
        if mark in "[{":
            self._at += 1
            frames.append(_Frame(node, is_array=mark == "["))
        elif mark in "\"'":
            self._skip(_STRING)
        else:
            self._skip(_BARE_VALUE)

    def _key(self) -> list[tuple[str, int]]:
        """Read a dotted key up to and including the space after it."""
        parts: list[tuple[str, int]] = []
        while True:
            self._skip(_SPACE)
            start = self._at
            if self._text[start] in "\"'":
                self._skip(_STRING)
                name = tomli.loads(f"k={self._text[start : self._at]}")["k"]
            else:
                self._skip(_BARE_KEY)
                name = self._text[start : self._at]
            parts.append((name, start))
            self._skip(_SPACE)
            if self._text[self._at] != ".":
                return parts
            self._at += 1

    def _skip(self, pattern: re.Pattern[str]) -> int:
        match = pattern.match(self._text, self._at)
        if match is not None:
            self._at = match.end()
        return self._at
