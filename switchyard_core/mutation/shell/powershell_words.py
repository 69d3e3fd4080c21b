"""Takes PowerShell apart into commands and words."""

from __future__ import annotations

import re
from collections.abc import Iterator

from switchyard_core.mutation.shell.session import MAX_DEPTH, Session

__all__ = ["commands_of", "unquoted"]

#: Characters that are copied, and parentheses that are matched, in a step.
_COPIED = 500
_MATCHED = 4
_PARENTHESIS = re.compile(r"[()]")
_TOKEN = re.compile(
    r"""(?P<space>[ \t`]+)
    |(?P<comment>\#[^\n]*)
    |(?P<redirect>(?:[0-9*]?>>?(?:&[0-9])?))
    |(?P<end>\n+|;|\|\||&&|\||\{|\}|&(?!&))
    |(?P<comma>,)
    |(?P<word>(?:'(?:[^']|'')*'|"(?:[^"`]|`.|"")*"|\((?:[^()]++|\((?:[^()]++|\([^()]*+\))*+\))*+\)|@?\{[^{}]*\}(?=\.)|`.|[^\s;|&{},'"()><\#`]++|\#|[()>`])+)
    |(?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)


def commands_of(
    text: str, session: Session, depth: int = 0
) -> Iterator[tuple[list[str], list[str]]]:
    """Yield the commands of a text: their words, and the paths that they are redirected to.

    Args:
        text: The text.
        session: Pays for every word and sign.
        depth: How many parentheses are around it.
    """
    words: list[str] = []
    redirects: list[str] = []
    pending = False
    joined = False
    for match in _TOKEN.finditer(text):
        kind, token = match.lastgroup, match[0]
        session.spend()
        if kind == "end":
            if words or redirects:
                yield words, redirects
                words, redirects = [], []
            pending = joined = False
        elif kind == "redirect":
            pending = "&" not in token
        elif kind == "comma":
            joined = True
        elif kind == "word":
            if "(" in token and token[0] not in "'[":
                yield from _inner_commands(token, session, depth + 1)
            if pending:
                redirects.append(unquoted(token))
                pending = False
            elif joined and words:
                words[-1] += f",{token}"
                session.spend(len(words[-1]) // _COPIED)
            else:
                words.append(token)
            joined = False
    if words or redirects:
        yield words, redirects


def _inner_commands(
    token: str, session: Session, depth: int
) -> Iterator[tuple[list[str], list[str]]]:
    """Yield the commands in the parentheses of a word."""
    if depth > MAX_DEPTH:
        session.add("unknown", "powershell", "nested too deeply")
        return
    session.spend(token.count("(") // _MATCHED)
    for text in _groups(token):
        yield from commands_of(text, session, depth)


def _groups(token: str) -> list[str]:
    """Return what stands in the outermost parentheses of a word."""
    groups: list[str] = []
    depth = start = 0
    for match in _PARENTHESIS.finditer(token):
        if match[0] == "(":
            depth += 1
            if depth == 1:
                start = match.end()
        elif depth:
            depth -= 1
            if not depth:
                groups.append(token[start : match.start()])
    return groups


def unquoted(word: str) -> str:
    """Return a word without the quotes around it."""
    word = word.strip()
    if len(word) > 1 and word[0] in "'\"" and word[-1] == word[0]:
        return word[1:-1]
    return word
