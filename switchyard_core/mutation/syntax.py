"""Parses code with tree-sitter in bounded time."""

from __future__ import annotations

from dataclasses import dataclass

import tree_sitter

__all__ = ["Parsed", "parse_code"]

#: What is read of a text at a time.
_CHUNK = 16384
#: What is read of a text of which not even the start could be parsed within bounds.
_START = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """A syntax tree and what it took.

    Args:
        tree: Of the text or of its start.
        whole: Whether it is of all of the text.
        work: Hundreds of the parser's operations; one takes some 10 microseconds.
    """

    tree: tree_sitter.Tree
    whole: bool
    work: int


def parse_code(language: tree_sitter.Language, data: bytes, most: int) -> Parsed:
    """Parse a text, or as much of it as a certain amount of work allows.

    Work is counted, not timed, so that a text has the same tree on any machine.

    Args:
        language: The grammar.
        data: The text; a broken one still yields its parts.
        most: Hundreds of operations that the parser may take, and half as many once more for
            the start of a text that needs more.
    """
    tree, work, half = _attempt(language, data, most)
    if tree is not None:
        return Parsed(tree=tree, whole=True, work=work)
    tree, again, _ = _attempt(language, data[:half], most)
    if tree is None:
        tree = tree_sitter.Parser(language).parse(data[:_START])
    return Parsed(tree=tree, whole=False, work=work + again)


def _attempt(
    language: tree_sitter.Language, data: bytes, most: int
) -> tuple[tree_sitter.Tree | None, int, int]:
    """Return the tree if the work suffices, the work, and the place where half of it was done."""
    work = half = 0

    def chunk(offset: int, _point: object) -> bytes:
        return data[offset : offset + _CHUNK]

    def worked(offset: int, _error: object) -> bool:
        nonlocal work, half
        work += 1
        if work <= most // 2:
            half = offset
        return work > most

    try:
        tree = tree_sitter.Parser(language).parse(chunk, progress_callback=worked)
    except ValueError:
        return None, work, half
    return tree, work, half
