"""Parses bash in bounded time."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

import tree_sitter
import tree_sitter_bash

from switchyard_core.mutation.budget import TOO_MUCH
from switchyard_core.mutation.shell.heredocs import inline_heredocs
from switchyard_core.mutation.shell.marks import bounded
from switchyard_core.mutation.shell.session import Session
from switchyard_core.mutation.syntax import parse_code

__all__ = ["Script", "parse_bash"]

_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
#: Hundreds of operations that parsing one script may take, and the steps that such a hundred is.
_MOST_WORK = 400
_WORK = 6
_MARKS_PER_STEP = 40
#: The grammar takes the keyword in front of a group for a program.
_TIMED_GROUP = re.compile(
    r"(?:^|(?<=[;&|\n(]))[ \t]*\btime[ \t]+(?:-p[ \t]+)?(?=[({])", re.MULTILINE
)
#: What is shown to the grammar as a blank: it takes the sign in front of a group for one in front
#: of a program, and an escaped word on a line of its own for an argument of the line before.
_BLANK = re.compile(rb"(?<![^\s;&|(])!(?=[ \t]+\{\s)|(?<=\n)([ \t]*)\\(?=[A-Za-z_])")
#: It takes an escaped sign in a test for a redirection.
_ESCAPED = re.compile(rb"(?<=[ \t])\\[<>](?=[ \t])")
#: It takes what is behind such a word of a heredoc for a part of it, without an error.
_PARTLY_QUOTED = re.compile(r"<<-?[ \t]*\w++['\"\\]")


class Script(NamedTuple):
    """A parsed script.

    Args:
        root: Of the tree.
        source: What the tree's places are places in.
        expanding: Where quoted words begin that are the body of a heredoc with substitutions.
    """

    root: tree_sitter.Node
    source: str
    expanding: frozenset[int]


@cache
def _language() -> tree_sitter.Language:
    return tree_sitter.Language(tree_sitter_bash.language())


def parse_bash(text: str, session: Session) -> Script:
    """Return the tree of a script; what could not be read of it is an effect.

    Args:
        text: The script.
        session: Pays for it.
    """
    text = _TIMED_GROUP.sub(lambda match: " " * len(match[0]), text)
    root, whole = _parse(text, session)
    if not (whole and "<<" in text and (root.has_error or _PARTLY_QUOTED.search(text))):
        return Script(root, text, frozenset())
    inlined = inline_heredocs(text)
    if inlined is None or inlined.source == text:
        if inlined is None and root.has_error:
            session.add("unknown", "shell", "a heredoc that is not understood")
        return Script(root, text, frozenset())
    root, _ = _parse(inlined.code, session)
    if root.has_error:
        session.add("unknown", "shell", "a heredoc in what is not understood")
    return Script(root, inlined.source, inlined.expanding)


def _parse(text: str, session: Session) -> tuple[tree_sitter.Node, bool]:
    """Return the tree of a text, and whether it is of all of it."""
    # The grammar's scanner looks characters up in a table of 256 (tree-sitter-bash issue 337) and
    # crashes the process on others. One byte per character also makes offsets character places.
    code = _NOT_ASCII.sub("x", text).encode("ascii")
    shown, marks = bounded(_corrected(code))
    # Errors among so many operators may cost the square of them.
    session.spend(marks * marks // _MARKS_PER_STEP)
    parsed = parse_code(_language(), shown, min(_MOST_WORK, session.budget.left // _WORK))
    whole = parsed.whole and len(shown) == len(code)
    if not whole:
        session.add("unknown", "shell", TOO_MUCH)
    session.spend(parsed.work * _WORK)
    return parsed.tree.root_node, whole


def _corrected(code: bytes) -> bytes:
    """Return a script of the same layout without what the grammar misreads."""
    if b"!" in code or b"\n" in code:
        code = _BLANK.sub(lambda match: b" " * len(match[0]), code)
    if b"\\<" in code or b"\\>" in code:
        code = _ESCAPED.sub(b"==", code)
    return code
