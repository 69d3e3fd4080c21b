"""The arguments of a tool call while their pieces come; each character is looked at once.

Servers say arguments more than once: twice in a row, whole behind their pieces, or each piece with
all that stood before it. What can be told for certain is said once; all else passes as it came.
"""

from __future__ import annotations

import json
import re
from hashlib import blake2b

from switchyard_core.jsonio.tree import JsonTextError, encode, loads

__all__ = ["Arguments"]

_EMPTY = b'""'
_IN_STRING = re.compile(r'["\\]')
_OUTSIDE = re.compile(r"[^\s\w.+-]")
#: Behind what a value may begin, an object too; at the beginning there is nothing.
_BEFORE_VALUES = frozenset(":,[")


class _Extent:
    """How far the JSON of an object has come."""

    __slots__ = ("_depth", "_escaped", "_inside", "_last", "is_odd", "is_over")

    def __init__(self) -> None:
        self._depth = 0
        self._inside = self._escaped = False
        self._last = ""  # what stands last outside of strings, but for spaces
        self.is_over = False
        #: Whether it is no object, or something follows its end.
        self.is_odd = False

    @property
    def takes_object(self) -> bool:
        """Whether the beginning of an object may follow, as JSON or in a text."""
        return self._inside or self._last in _BEFORE_VALUES

    def add(self, text: str) -> None:
        """Go on over a piece."""
        at = 1 if self._escaped and text else 0
        self._escaped = self._escaped and not text
        while at < len(text) and not self.is_odd:
            at = self._string(text, at) if self._inside else self._structure(text, at)

    def _string(self, text: str, at: int) -> int:
        found = _IN_STRING.search(text, at)
        if found is None:
            return len(text)
        if found[0] == '"':
            self._inside = False
            return found.end()
        self._escaped = found.end() == len(text)
        return found.end() + 1

    def _structure(self, text: str, at: int) -> int:
        found = _OUTSIDE.search(text, at)
        end = len(text) if found is None else found.start()
        if text[at:end].strip():
            self._note("0")
        if found is not None:
            self._note(found[0])
        return end + 1

    def _note(self, mark: str) -> None:
        if self.is_over or (not self._depth and mark != "{"):
            self.is_odd = True
            return
        self._last, self._inside = mark, mark == '"'
        if mark in "{[":
            self._depth += 1
        elif mark in "}]":
            self._depth -= 1
            self.is_over = not self._depth


class Arguments:
    """Takes pieces of arguments, JSON strings with their quotes, and keeps what they say anew."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self._extent = _Extent()
        self._seen = 0  # number of the pieces that the extent covers
        self._digest: bytes | None = None  # of the object that they are; `b""` for none
        #: All that was said, where each piece says it again.
        self._grown: str | None = None
        self._may_grow = True
        #: What came behind the object; it may be the same once more.
        self._behind: list[bytes] = []

    def add(self, raw: bytes) -> None:
        """Take a piece."""
        if not self.pieces:
            raw = _once(raw)
        elif raw[:2] == b'"{' or self._behind or self._grown is not None:
            raw = self._news(raw)
        if raw != _EMPTY:
            self.pieces.append(raw)

    def end(self) -> None:
        """Take what came behind the object, unless it is the same."""
        if self._behind and _digest(_joined(self._behind)) != self._digest:
            self.pieces += self._behind
        self._behind = []

    def forget(self) -> None:
        """Let the texts go; what they were is still known."""
        self.pieces = []

    @property
    def is_object(self) -> bool:
        """Whether they are a complete object so far."""
        if self._digest is None:
            self._look()
        return bool(self._digest)

    def are(self, raw: bytes) -> bool:
        """Return whether a text says the same object."""
        return raw[-2:] == b'}"' and self.is_object and _digest(loads(raw)) == self._digest

    def _look(self) -> None:
        for raw in self.pieces[self._seen :]:
            self._extent.add(loads(raw))
        self._seen = len(self.pieces)
        if self._extent.is_odd:
            self._digest = b""
        elif self._extent.is_over:
            self._digest = _digest(_joined(self.pieces))

    def _news(self, raw: bytes) -> bytes:
        """Return what a piece adds."""
        if self._grown is not None:
            return self._growth(raw)
        if self._behind or self.is_object:
            if self._behind or not self.are(raw):
                self._behind.append(raw)
            return _EMPTY
        if self._may_grow and self._digest is None and not self._extent.takes_object:
            # No JSON has an object here.
            self._grown = _joined(self.pieces)
            return self._growth(raw)
        return raw

    def _growth(self, raw: bytes) -> bytes:
        text, known = loads(raw), self._grown or ""
        if not text.startswith(known):
            self._grown, self._may_grow = None, False
            return raw
        self._grown = text
        return encode(text[len(known) :])


def _once(raw: bytes) -> bytes:
    """Return the first half of a text that is an object twice, any other text as it is."""
    half, odd = divmod(len(raw) - 2, 2)
    if odd or raw[-2:] != b'}"' or raw[1 : half + 1] != raw[half + 1 : -1]:
        return raw
    once = raw[: half + 1] + b'"'
    return once if _digest(loads(once)) else raw


def _joined(pieces: list[bytes]) -> str:
    return "".join([loads(piece) for piece in pieces])


def _digest(text: str) -> bytes:
    """Return a mark of the object in a text, however it is written; ``b""`` for no object."""
    try:
        value = loads(text.encode("utf-8", "surrogatepass"))
    except (JsonTextError, RecursionError):
        return b""
    if not isinstance(value, dict):
        return b""
    return blake2b(json.dumps(value, sort_keys=True).encode(), digest_size=16).digest()
