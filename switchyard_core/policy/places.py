"""Where every key, value and character of a TOML document is.

The values come from tomli, which decides what is valid. The outline has every place of a valid
text; for an invalid one, how far it can be read and what is open there: a string, an array, a
repeated key. (A TOML grammar is no alternative: it rejects inline tables over several lines.)
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import tomli

__all__ = ["STRING", "Lines", "Location", "Node", "Outline", "Place", "Positions", "Repeat"]

#: Path in a document: table keys and array indexes.
Location = tuple[str | int, ...]

#: How a key is given: by ``key = value``, by a header, as the first part of a dotted key, or only
#: through headers of its children.
_Kind = Literal["value", "table", "dotted", "implied"]

_GAP = re.compile(r"(?:[ \t\n]+|#[^\n]*)*")
_SPACE = re.compile(r"[ \t]*")
_BARE_KEY = re.compile(r"[^\s.=\]]+")
_BARE_VALUE = re.compile(r"[^,\]}#\n]*")
#: A TOML string of any kind, with its quotes.
STRING = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*"{3,5}'
    r"|'''(?:[^']|'(?!''))*'{3,5}"
    r'|"(?:[^"\\]|\\.)*"'
    r"|'[^']*'",
    re.DOTALL,
)

#: One source piece of a basic string; the first alternative gives no character.
_PIECE = re.compile(r"(?P<nothing>\\[ \t]*\n[ \t\n]*)|\\u.{4}|\\U.{8}|\\x.{2}|\\.|.", re.DOTALL)


@dataclass(slots=True)
class Node:
    """One key or array element."""

    path: Location
    key: int = -1  # offset at which the key or element begins, -1 when unknown
    value: int = -1  # offset at which its value begins; a table begins at its header's key
    kind: _Kind = "implied"
    children: dict[str | int, Node] = field(default_factory=dict)
    is_table_array: bool = False  # headers in double brackets make its elements

    def child(self, name: str | int, offset: int) -> Node:
        """Return the child of a name, made at an offset if it is new."""
        node = self.children.get(name)
        if node is None:
            node = self.children[name] = Node((*self.path, name), offset, offset)
        return node


class Repeat(NamedTuple):
    """A key or table that was given before, with what it was then."""

    path: Location
    offset: int  # where it is given again
    first: int  # where it was given first
    kind: _Kind


class _Stop(Exception):  # noqa: N818 - control flow, never seen outside
    """The text cannot be read further."""


@dataclass(slots=True)
class _Frame:
    node: Node
    is_array: bool
    count: int = 0


class Outline:
    """Reads a document once, without recursion, even if it is broken; LF line ends, no BOM."""

    def __init__(self, text: str, max_depth: int | None = None) -> None:
        #: The top-level table.
        self.root = Node(())
        #: Where the value begins that is nested too deeply, the string that is not closed, and the
        #: innermost array or inline table that is not closed; -1 when there is none.
        self.deep = self.open_string = self.open_bracket = -1
        #: The first key that was given before.
        self.repeat: Repeat | None = None
        self._text = text
        self._at = 0
        self._max_depth = max_depth
        self._frames: list[_Frame] = []
        try:
            self._read()
        except (_Stop, IndexError, tomli.TOMLDecodeError):
            # Only an invalid text ends early; what was read so far remains.
            if self._frames:
                self.open_bracket = self._frames[-1].node.value

    def _read(self) -> None:
        table = self.root
        while self._skip(_GAP) < len(self._text):
            if self._text.startswith("[[", self._at):
                self._at += 2
                table = self._header(is_array=True)
            elif self._text.startswith("[", self._at):
                self._at += 1
                table = self._header(is_array=False)
            else:
                self._pair(table)

    def _child(self, node: Node, name: str | int, offset: int) -> Node:
        if self._max_depth is not None and len(node.path) >= self._max_depth:
            self.deep = offset
            raise _Stop
        return node.child(name, offset)

    def _repeated(self, node: Node, offset: int) -> None:
        if self.repeat is None:
            self.repeat = Repeat(node.path, offset, node.key, node.kind)

    def _header(self, *, is_array: bool) -> Node:
        node = self.root
        *parents, (name, offset) = self._key()
        for parent, parent_offset in parents:
            node = self._child(node, parent, parent_offset)
            if node.kind == "value":
                self._repeated(node, parent_offset)
            if node.is_table_array:
                node = node.children[len(node.children) - 1]
        node = self._child(node, name, offset)
        if node.kind != "implied" and not (is_array and node.is_table_array):
            self._repeated(node, offset)
        if is_array:
            node.is_table_array, node.kind = True, "table"
            node = self._child(node, len(node.children), offset)
        elif node.kind == "implied":
            # `[a.b]` may come before `[a]`: the table's own header is its place.
            node.key = node.value = offset
        node.kind = "table"
        self._at += 2 if is_array else 1
        return node

    def _pair(self, table: Node) -> None:
        """Read ``key = value``; inside brackets the value is only opened."""
        node = table
        *parents, (name, offset) = self._key()
        for parent, parent_offset in parents:
            node = self._child(node, parent, parent_offset)
            if node.kind in {"value", "table"}:
                self._repeated(node, parent_offset)
            node.kind = "dotted"
        known = name in node.children
        node = self._child(node, name, offset)
        if known:
            self._repeated(node, offset)
        node.kind = "value"
        self._at += 1  # the equals sign
        self._skip(_SPACE)
        if self._frames:
            self._open(node)
        else:
            self._value(node)

    def _value(self, node: Node) -> None:
        self._open(node)
        while self._frames:
            self._skip(_GAP)
            frame = self._frames[-1]
            mark = self._text[self._at]
            if mark in "]}":
                self._at += 1
                self._frames.pop()
            elif mark == ",":
                self._at += 1
            elif frame.is_array:
                child = self._child(frame.node, frame.count, self._at)
                frame.count += 1
                self._open(child)
            else:
                self._pair(frame.node)

    def _open(self, node: Node) -> None:
        node.value = self._at
        mark = self._text[self._at]
        if mark in "[{":
            self._at += 1
            self._frames.append(_Frame(node, is_array=mark == "["))
        elif mark in "\"'":
            self._string()
        else:
            self._skip(_BARE_VALUE)

    def _string(self) -> None:
        start = self._at
        end = self._skip(STRING)
        # Unclosed triple quotes would be read as an empty string and a rest.
        triple = self._text.startswith(('"""', "'''"), start)
        if end == start or (triple and end == start + 2):
            self.open_string = start
            raise _Stop

    def _key(self) -> list[tuple[str, int]]:
        """Read a dotted key and the space after it."""
        parts: list[tuple[str, int]] = []
        while True:
            self._skip(_SPACE)
            start = self._at
            if self._text[start] in "\"'":
                self._string()
                name = tomli.loads(f"k={self._text[start : self._at]}")["k"]
            else:
                self._skip(_BARE_KEY)
                name = self._text[start : self._at]
            parts.append((name, start))
            self._skip(_SPACE)
            if self._text[self._at : self._at + 1] != ".":
                return parts
            self._at += 1

    def _skip(self, pattern: re.Pattern[str]) -> int:
        match = pattern.match(self._text, self._at)
        if match is not None:
            self._at = match.end()
        return self._at


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A position in a text: 1-based line, 1-based column counted in characters."""

    line: int
    column: int

    def of(self, name: str) -> str:
        """Return ``file:line:column``."""
        return f"{name}:{self.line}:{self.column}"


class Lines:
    """Turns offsets of a text with LF line ends into lines and columns."""

    def __init__(self, text: str) -> None:
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def place(self, offset: int) -> Place:
        """Return the place of a character."""
        line = bisect_right(self._starts, offset)
        return Place(line=line, column=offset - self._starts[line - 1] + 1)


class Positions:
    """Finds the place of a key, of a value, or of a character inside a string value.

    A location that does not exist gives the place of its nearest parent.
    """

    def __init__(self, text: str, outline: Outline | None = None) -> None:
        self._text = text
        self._lines = Lines(text)
        self._root = (outline or Outline(text)).root

    def place(
        self, location: Location, *, at_key: bool = False, offset: int | None = None
    ) -> Place:
        """Return where a value begins; a table begins at its header's key.

        ``at_key`` asks for its key (or array element) instead, ``offset`` for a 0-based character
        of a string: one past its end is the closing quote.
        """
        node = self._find(location)
        start = max(node.key if at_key else node.value, 0)
        return self._lines.place(start if offset is None else self._inside(start, offset))

    def is_header(self, location: Location) -> bool:
        """Return whether a table has a header in brackets of its own."""
        node = self._find(location)
        return node.path == location and node.kind == "table"

    def _inside(self, start: int, offset: int) -> int:
        match = STRING.match(self._text, start)
        if match is None:
            return start
        raw = match.group()
        width = 3 if raw.startswith(('"""', "'''")) else 1
        at, end = start + width, match.end() - width
        if width == 3 and self._text.startswith("\n", at):
            at += 1
        if raw[0] == "'":
            return min(at + offset, end)
        for piece in _PIECE.finditer(self._text, at, end):
            if piece.group("nothing") is None:
                if offset <= 0:
                    break
                offset -= 1
            at = piece.end()
        return at

    def _find(self, location: Location) -> Node:
        node = self._root
        for part in location:
            child = node.children.get(part)
            if child is None:
                break
            node = child
        return node
