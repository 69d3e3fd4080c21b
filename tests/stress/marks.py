"""What ties an answer to its request: a number and a fault, written into the request's text."""

from __future__ import annotations

import re
from dataclasses import dataclass

#: 24 characters, the length of one delta of the scripted provider: no delta cuts a mark.
_MARK = "[mark:%017x]"
_IN_ANSWER = re.compile(rb"\[mark:([0-9a-f]{17})\]")
_IN_REQUEST = re.compile(rb"\[mark:([0-9a-f]{17})\] fault:([a-z0-9_]+)")

#: How often an answer repeats its mark, so that any part of it can be told from another's.
REPEATS = 6


@dataclass(frozen=True, slots=True)
class Mark:
    """One request of a stress test, and what the provider is to do with it."""

    number: int
    fault: str

    @property
    def text(self) -> str:
        return _MARK % self.number

    @property
    def question(self) -> str:
        """Text for the request."""
        return f"{self.text} fault:{self.fault}"

    @property
    def answer(self) -> str:
        """Text of the answer."""
        return self.text * REPEATS


def read_question(body: bytes) -> Mark | None:
    """Return the mark of a request, ``None`` if it has none."""
    found = _IN_REQUEST.search(body)
    return Mark(int(found[1], 16), found[2].decode()) if found else None


def numbers_in(data: bytes) -> set[int]:
    """Return the numbers of all whole marks in an answer."""
    return {int(number, 16) for number in _IN_ANSWER.findall(data)}


def count_in(data: bytes | bytearray) -> int:
    """Return how many whole marks an answer, or a part of it, holds."""
    return len(_IN_ANSWER.findall(data))
