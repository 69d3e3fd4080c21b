"""Finds the calls in code that write files, by the patterns of its language."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, cached_property
from typing import Any

from switchyard_core.mutation.shell.session import Input, Reader, Session
from switchyard_core.mutation.shell.table import is_plain
from switchyard_core.mutation.tables import load_table
from switchyard_core.patterns import linear

__all__ = ["CODE", "pattern_reader", "scan_patterns"]

#: Steps for the shortest piece of code, and for a match of a pattern.
CODE = 15
_MATCH = 2
#: Signs around the words of a command that is a list.
_LISTED = re.compile(r"[\"',\[\]]+")
_ASSIGNMENT = re.compile(r"(?<![\w$@])([$@]?\w+)\s*=\s*(?:\w{1,40}\(\s*)?(['\"])([^'\"]{1,4096})\2")


def pattern_reader(language: str) -> Reader:
    """Return a reader that searches code by the patterns of a language."""

    def read(text: str, session: Session, _stdin: Input) -> None:
        session.spend(CODE)
        scan_patterns(language, text, session)

    return read


def scan_patterns(language: str, text: str, session: Session) -> None:
    """Record what code writes by the patterns of its language."""
    needed = load_table("languages").get(language, {}).get("needs", "")
    if needed not in text:
        return
    comments, patterns = _patterns(language)
    if comments is not None:
        text = comments.sub("", text)
    code = _Code(text)
    for pattern, entry in patterns:
        for match in pattern.finditer(text):
            session.spend(_MATCH)
            groups = match.groupdict()
            if not groups.get(entry.get("unless", "")):
                _record(entry, groups, match[0], code, session)


def _record(
    entry: Mapping[str, Any],
    groups: Mapping[str, str | None],
    found: str,
    code: _Code,
    session: Session,
) -> None:
    """Record what a match of a pattern does."""
    word = session.word
    if entry.get("paths"):
        path = code.literal(groups.get("path"))
        if "://" not in path:
            cap = None if is_plain(path) else entry.get("usually")
            session.write(path, word, cap=entry.get("cap", cap))
        return
    if "label" in entry:
        session.add(entry["label"], word, f"{word} code: {found.strip()[:40]}")
        return
    command = groups.get("shell") or code.literal(groups.get("command"))
    if entry.get("words"):
        command = _LISTED.sub(" ", command)
    if command:
        session.inner().read(command, "bash")
    else:
        session.add("unknown", word, "runs a command that cannot be seen")


class _Code:
    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def _assigned(self) -> Mapping[str, str]:
        found = _ASSIGNMENT.findall(self._text)
        return {name.lstrip("$@"): value for name, _, value in reversed(found)}

    def literal(self, path: str | None) -> str:
        """Return a quoted path, or what a variable holds; ``""`` when it cannot be told."""
        path = (path or "").strip()
        if path[:1] in {"'", '"', "`"}:
            return path.strip("'\"`")
        if re.fullmatch(r"[$@]?\w+", path):
            return self._assigned.get(path.lstrip("$@"), "")
        return "" if re.search(r"[(\[{$]", path) else path


@cache
def _patterns(
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
