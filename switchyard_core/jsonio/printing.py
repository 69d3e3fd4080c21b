"""JSON for people: indented, and otherwise exactly what was sent.

A body is never parsed and written again here: ``1.10`` stays ``1.10``, escapes, duplicate keys
and key order stay, so that a diff of two printed bodies shows what differs between the bytes
and nothing else (only spacing between tokens is lost).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["pretty"]

_TOKEN = re.compile(
    r'[ \t\r\n]*(?:(?P<mark>[\[\]{},:])|(?P<string>"(?:[^"\\\x00-\x1f]++'
    r'|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+")'
    r"|(?P<scalar>-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![0-9.eE+-])"
    r"|(?:true|false|null)(?![0-9A-Za-z_])))"
)
_SPACE = re.compile(r"[ \t\r\n]*")
_STEP = "  "
_CLOSES = {"{": "}", "[": "]"}


def pretty(data: bytes) -> str:
    """Return a JSON text with one member or item per line, indented by two spaces.

    Text that is not JSON is returned as it is, with invalid UTF-8 replaced.

    Example:
        >>> print(pretty(b'{"a":1.10,"b":[]}'))
        {
          "a": 1.10,
          "b": []
        }
    """
    text = data.decode("utf-8", "replace")
    pieces = _indented(text)
    return text if pieces is None else "".join(pieces)


def _tokens(text: str) -> Iterator[str | None]:
    """Yield the tokens and then ``None`` when they reach the end of the text."""
    position = 0
    while match := _TOKEN.match(text, position):
        position = match.end()
        yield match.group().lstrip(" \t\r\n")
    rest = _SPACE.match(text, position)
    if rest is not None and rest.end() == len(text):
        yield None


def _indented(text: str) -> list[str] | None:
    """Return the pieces of the indented text, ``None`` for text that is not JSON."""
    pieces: list[str] = []
    opened: list[str] = []
    # What may come next: `value`, `first` (a value, or the end of an empty array), `key`,
    # `first_key` (a key, or the end of an empty object), `colon`, `after` (a comma, or an end).
    state = "value"
    for piece in _tokens(text):
        if piece is None:
            return pieces if state == "after" and not opened else None
        line = f"\n{_STEP * len(opened)}"
        if opened and piece == _CLOSES[opened[-1]] and state in {"first", "first_key", "after"}:
            opened.pop()
            pieces.append(piece if state != "after" else f"\n{_STEP * len(opened)}{piece}")
            state = "after"
        elif state in {"first_key", "key"} and piece[0] == '"':
            pieces.append(line + piece if state == "first_key" else piece)
            state = "colon"
        elif state == "colon" and piece == ":":
            pieces.append(": ")
            state = "value"
        elif state == "after" and piece == "," and opened:
            pieces.append("," + line)
            state = "key" if opened[-1] == "{" else "value"
        elif state in {"value", "first"} and piece not in "]},:":
            pieces.append(line + piece if state == "first" else piece)
            state = {"{": "first_key", "[": "first"}.get(piece, "after")
            if piece in _CLOSES:
                opened.append(piece)
        else:
            return None
    return None
