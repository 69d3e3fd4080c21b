"""Parses bash and JavaScript with tree-sitter in bounded time."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

import msgspec
import tree_sitter
import tree_sitter_bash
import tree_sitter_javascript

from switchyard_core.mutation.shell.quoting import Heredoc, bounded, inline_heredocs
from switchyard_core.mutation.shell.session import TOO_MUCH, Budget, Session

__all__ = ["Parsed", "Script", "parse", "parse_bash", "parse_code"]

#: Bytes read at a time, and the bytes that are parsed when nothing else can be.
_CHUNK = 16384
_START = 256
#: Bytes of a short text, whose work is not counted, and its bytes per hundred operations.
_SHORT = 128
_COUNTED = 16
#: Hundreds of parser operations that a text may take, by language, and the steps of one hundred.
_MOST_WORK = {"bash": 400, "javascript": 120}
_WORK = 6
#: The cost of errors grows with the square of the operators: such squares per step.
_OPERATORS_PER_STEP = 40
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
#: The grammar reads the keyword before a group as a program.
_TIMED_GROUP = re.compile(
    r"(?:^|(?<=[;&|\n(]))[ \t]*\b(?:time[ \t]+(?:-p[ \t]+)?|coproc[ \t]+(?:\w+[ \t]+)?)(?=[({])",
    re.MULTILINE,
)
#: Replaced by blanks: the grammar reads the sign before a group as one before a program, and an
#: escaped word on its own line as an argument of the line before.
_BLANK = re.compile(rb"(?<![^\s;&|(])!(?=[ \t]+\{\s)|(?<=\n)([ \t]*)\\(?=[A-Za-z_])")
#: It reads an escaped sign in a test as a redirection.
_ESCAPED = re.compile(rb"(?<=[ \t])\\[<>](?=[ \t])")


class Parsed(msgspec.Struct, frozen=True, gc=False):
    """A syntax tree and what it took."""

    tree: tree_sitter.Tree  # of the text or of its start
    whole: bool  # whether it is of all of the text
    work: int  # hundreds of the parser's operations; one takes some 10 microseconds


class Script(msgspec.Struct, frozen=True, eq=False):
    """A parsed bash script."""

    root: tree_sitter.Node  # of the tree
    source: str  # the text of the tree's offsets
    heredocs: Mapping[int, Heredoc]  # by the offset of the quoted word in its place


def parse_bash(text: str, session: Session) -> Script:
    """Return the tree of a script; what could not be read of it is an effect."""
    if "time" in text or "coproc" in text:
        text = _TIMED_GROUP.sub(lambda match: " " * len(match[0]), text)
    if "<<" not in text:
        return Script(_bash_tree(text, session), text, {})
    inlined = inline_heredocs(text)
    root = _bash_tree(inlined.source, session)
    if root.has_error and not (inlined.whole and inlined.source == text):
        session.add("unknown", "shell", "a heredoc that is not understood")
    return Script(root, inlined.source, inlined.heredocs)


def _bash_tree(code: str, session: Session) -> tree_sitter.Node:
    if not code.isascii():
        # The grammar's scanner looks characters up in a table of 256 (tree-sitter-bash issue 337)
        # and crashes the process on others. One byte per character also makes offsets characters.
        code = _NOT_ASCII.sub("x", code)
    data = code.encode("ascii")
    if b"!" in data or b"\n" in data:
        data = _BLANK.sub(lambda match: b" " * len(match[0]), data)
    if b"\\" in data:
        data = _ESCAPED.sub(b"==", data)
    shown, operators = bounded(data)
    if cost := operators * operators // _OPERATORS_PER_STEP:
        session.spend(cost)
    parsed = parse("bash", shown, session.budget)
    if not parsed.whole or len(shown) < len(data):
        session.add("unknown", "shell", TOO_MUCH)
    if session.budget.left < 0:
        session.spend(0)
    return parsed.tree.root_node


def parse(language: str, data: bytes, budget: Budget) -> Parsed:
    """Parse a text, or as much of it as a budget allows; see :func:`parse_code`."""
    parsed = parse_code(language, data, min(_MOST_WORK[language], budget.left // _WORK))
    budget.left -= parsed.work * _WORK
    return parsed


def parse_code(language: str, data: bytes, most: int) -> Parsed:
    """Parse a text, or as much of it as ``most`` hundreds of operations allow.

    Work is counted, not timed, so that a text has the same tree on any machine. A short text is
    charged by its length: counting would cost as much as parsing it. The start of a text that needs
    more work is parsed with half as much again.
    """
    if len(data) <= _SHORT:
        short = tree_sitter.Parser(_grammar(language)).parse(data)
        return Parsed(short, whole=True, work=1 + len(data) // _COUNTED)
    tree, work, half = _attempt(language, data, most)
    if tree is not None:
        return Parsed(tree, whole=True, work=work)
    tree, again, _ = _attempt(language, data[:half], most)
    if tree is None:
        tree = tree_sitter.Parser(_grammar(language)).parse(data[:_START])
    return Parsed(tree, whole=False, work=work + again)


def _attempt(language: str, data: bytes, most: int) -> tuple[tree_sitter.Tree | None, int, int]:
    """Return the tree if the work suffices, the work, and the place at half of it."""
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
        tree = tree_sitter.Parser(_grammar(language)).parse(chunk, progress_callback=worked)
    except ValueError:
        return None, work, half
    return tree, work, half


@cache
def _grammar(language: str) -> tree_sitter.Language:
    module = tree_sitter_bash if language == "bash" else tree_sitter_javascript
    return tree_sitter.Language(module.language())
