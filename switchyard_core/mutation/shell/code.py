"""Finds the calls in a piece of code that write files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from switchyard_core.mutation.shell.javascript_code import scan_javascript
from switchyard_core.mutation.shell.python_code import scan_python
from switchyard_core.mutation.shell.session import MAX_DEPTH, Session
from switchyard_core.mutation.shell.special import run_text
from switchyard_core.mutation.tables import load_table
from switchyard_core.patterns import linear

__all__ = ["scan_code", "scan_patterns"]


#: Steps that it takes to look at the shortest piece of code, and at what a pattern found.
_CODE = 15
_MATCH = 2
_ASSIGNMENT = re.compile(r"(?<![\w$@])([$@]?\w+)\s*=\s*(?:\w{1,40}\(\s*)?(['\"])([^'\"]{1,4096})\2")


def scan_code(language: str, text: str, session: Session, word: str) -> None:
    """Record what a piece of code writes.

    Args:
        language: ``python``, ``javascript``, or a language of ``data/languages.toml``.
        text: The code; code that cannot be parsed is searched by patterns.
        session: Gets the effects.
        word: The interpreter, for verdicts.
    """
    if session.depth > MAX_DEPTH or not session.budget.take(len(text)):
        session.add("unknown", word, "nested too deeply")
        return
    session.spend(_CODE)
    if language == "python":
        if not scan_python(text, session, word):
            scan_patterns("python", text, session, word)
    elif language == "javascript":
        scan_javascript(text, session, word)
    else:
        scan_patterns(language, text, session, word)


def scan_patterns(language: str, text: str, session: Session, word: str) -> None:
    """Record what the pattern list of a language finds in a text."""
    comments, patterns = _compiled(language)
    if comments is not None:
        text = comments.sub("", text)
    assigned = _Assigned(text)
    for pattern, entry in patterns:
        for match in pattern.finditer(text):
            session.spend(_MATCH)
            groups = match.groupdict()
            if command := groups.get("shell"):
                run_text(command, session.inner())
            elif entry.get("paths"):
                _write_literal(groups.get("path"), assigned, session, word, entry.get("cap"))
            else:
                session.add(entry["label"], word, f"{word} code: {match[0].strip()[:40]}")


class _Assigned:
    """Literal texts that variables of a script are given; read once, when the first is asked."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._values: Mapping[str, str] | None = None

    def value(self, name: str) -> str:
        """Return the first text that a variable is given, ``""`` without one."""
        if self._values is None:
            found = _ASSIGNMENT.findall(self._text)
            self._values = {name.lstrip("$@"): value for name, _, value in reversed(found)}
        return self._values.get(name.lstrip("$@"), "")


def _write_literal(
    path: str | None, assigned: _Assigned, session: Session, word: str, cap: str | None
) -> None:
    """Record a write to a quoted path, or to a variable that holds one."""
    path = (path or "").strip()
    if path[:1] in {"'", '"', "`"}:
        session.write(path.strip("'\"`"), word, cap=cap)
        return
    if path and re.fullmatch(r"[$@]?\w+", path):
        session.write(assigned.value(path), word, cap=cap)
        return
    session.write("" if re.search(r"[(\[{$]", path) else path, word, cap=cap)


@cache
def _compiled(
    language: str,
) -> tuple[re.Pattern[str] | None, tuple[tuple[re.Pattern[str], dict[str, Any]], ...]]:
    table = load_table("languages").get(language, {})
    comments = table.get("comments")
    return (
        linear(comments) if comments else None,
        tuple(
            (linear(entry["pattern"], ignore_case=entry.get("ignore_case", False)), entry)
            for entry in table.get("patterns", ())
        ),
    )
