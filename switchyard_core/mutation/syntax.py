"""Parses code with tree-sitter in bounded time."""

from __future__ import annotations

import time
from collections.abc import Callable

import tree_sitter

__all__ = ["parse_code"]

#: Processor time that one parse may take, and more for each byte. The parsers recover from some
#: errors in time that grows with the square of the text: 100 KB of `a|a|…|` take minutes.
_SECONDS = 0.05
_SECONDS_PER_BYTE = 1e-6
#: What is read of a text that could not be parsed in time.
_START = 4096
_CHUNK = 16384
#: More of an operator than any command has that somebody wrote.
_MANY = 1000


def parse_code(
    language: tree_sitter.Language,
    data: bytes,
    *,
    slow: bytes = b"",
    clock: Callable[[], float] = time.thread_time,
) -> tuple[tree_sitter.Tree, bool]:
    """Return the syntax tree of a text, and whether that is the tree of all of it.

    Args:
        language: The grammar.
        data: The text; a broken one still yields its parts.
        slow: An operator of which the grammar recovers so slowly that it does not even look
            at the clock; a text that is full of it is not parsed as a whole.
        clock: Gives seconds; processor time, so that a busy machine changes nothing.
    """
    if len(data) <= _START:
        return tree_sitter.Parser(language).parse(data), True
    if slow and data.count(slow) > _MANY:
        return tree_sitter.Parser(language).parse(data[:_START]), False
    end = clock() + _SECONDS + _SECONDS_PER_BYTE * len(data)

    def chunk(offset: int, _point: object) -> bytes:
        return data[offset : offset + _CHUNK]

    def late(_offset: int, _error: object) -> bool:
        return clock() > end

    try:
        return tree_sitter.Parser(language).parse(chunk, progress_callback=late), True
    except ValueError:
        return tree_sitter.Parser(language).parse(data[:_START]), False
