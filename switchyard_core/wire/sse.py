"""Server-sent events as bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from switchyard_core.jsonio.tree import encode

__all__ = ["Event", "comment", "sse"]

#: Line ends to Unicode though not to the format; some clients cut lines there. JSON has them
#: inside of strings only, where an escape is the same character.
_LINE_ENDS = (("\x85", b"\\u0085"), ("\u2028", b"\\u2028"), ("\u2029", b"\\u2029"))


@dataclass(frozen=True, slots=True)
class Event:
    """One server-sent event, not encoded yet."""

    data: Mapping[str, Any] | str  # an object, or a word such as `[DONE]`
    name: str = ""


def sse(data: Mapping[str, Any] | str, name: str = "") -> bytes:
    """Return one event."""
    head = f"event: {name}\n".encode() if name else b""
    line = data.encode() if isinstance(data, str) else _line(data)
    return head + b"data: " + line + b"\n\n"


def comment(data: Mapping[str, Any] | None) -> bytes:
    """Return a comment of a stream, JSON or a ping; every conforming client ignores it."""
    if data is None:
        return b": ping\n\n"
    try:
        return b": " + _line(data) + b"\n\n"
    except (TypeError, RecursionError) as error:
        msg = f"the data of a comment is not JSON: {error}"
        raise ValueError(msg) from None


def _line(data: Mapping[str, Any]) -> bytes:
    line = encode(dict(data))
    for character, escape in _LINE_ENDS:
        line = line.replace(character.encode(), escape)
    return line
