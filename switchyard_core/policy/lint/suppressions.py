"""Comments that suppress a lint rule on one line, each with its reason.

``# switchyard: allow unused-target -- the canary uses it`` is at the end of the line that a finding
names, or alone on a line above it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from switchyard_core.errors import Finding
from switchyard_core.policy.document import Document
from switchyard_core.policy.places import STRING, Lines
from switchyard_core.policy.secrets import shown
from switchyard_core.policy.wording import suggestion

__all__ = ["Lint", "Suppression", "suppressions", "without_suppressed"]

#: A whole comment, or a string, in which a `#` begins none.
_PIECE = re.compile(rf"(?P<comment>#[^\n]*)|(?:{STRING.pattern})", re.DOTALL)
_MARK = re.compile(r"#\s*switchyard:\s*(?P<rest>.*)")
_ALLOW = re.compile(r"allow\s+(?P<name>[^\s,]+)\s*(?:--\s*(?P<reason>.*))?")
#: Names whose nearest one is looked for: a check of any policy ends soon.
_MOST_GUESSED = 100
_FORM = "write `# switchyard: allow <name> -- <reason>`"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lint:
    """A lint rule as suppressions see it.

    Args:
        name: What a comment calls it.
        code: Code of its findings.
        ran: Whether it ran; when it did not, nobody knows whether a suppression is needed.
    """

    name: str
    code: str
    ran: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Suppression:
    """One comment.

    Args:
        line: 1-based line of the comment.
        column: 1-based column of the comment.
        covers: The line whose findings it suppresses.
        name: The rule that it names, ``""`` when the comment is malformed.
        reason: ``""`` when none is given.
    """

    line: int
    column: int
    covers: int
    name: str
    reason: str


def suppressions(text: str) -> Iterator[Suppression]:
    """Yield the suppressions of a valid TOML text with LF line ends."""
    lines, rows = Lines(text), text.split("\n")
    below = _code_below(rows)
    for piece in _PIECE.finditer(text):
        mark = _MARK.fullmatch(piece["comment"] or "")
        if mark is None:
            continue
        place = lines.place(piece.start())
        allow = _ALLOW.fullmatch(mark["rest"].strip())
        yield Suppression(
            line=place.line,
            column=place.column,
            covers=place.line
            if rows[place.line - 1][: place.column - 1].strip()
            else below[place.line],
            name=allow["name"] if allow else "",
            reason=(allow["reason"] or "").strip() if allow else "",
        )


def _code_below(rows: Sequence[str]) -> list[int]:
    """Return for each line the number of the one under it that a comment above covers, or 0.

    Further comments may come in between: each of them has one rule and one reason.
    """
    below = [0] * (len(rows) + 1)
    for number in range(len(rows) - 1, 0, -1):
        row = rows[number].strip()
        if row.startswith("#"):
            below[number] = below[number + 1]
        elif row:
            below[number] = number + 1
    return below


def without_suppressed(
    document: Document, found: Iterable[Finding], lints: Sequence[Lint]
) -> list[Finding]:
    """Return findings without the suppressed ones, with what is wrong with suppressions.

    Args:
        document: The policy.
        found: Findings of lint rules.
        lints: Every lint rule there is.
    """
    by_name = {lint.name: lint for lint in reversed(lints)}
    left: dict[tuple[str, str, int], list[Finding]] = {}
    for finding in found:
        left.setdefault((finding.code, finding.file, finding.line), []).append(finding)
    wrong: list[Finding] = []
    for file in (document, *document.included):
        for comment in suppressions(file.text):
            lint = by_name.get(comment.name)
            if lint is None:
                wrong.append(_refused(file, comment, lints, guess=len(wrong) < _MOST_GUESSED))
            elif not comment.reason:
                message = f"no reason is given for allowing `{lint.name}`"
                wrong.append(_finding(file, comment, "SY191", message, _FORM))
            elif not left.pop((lint.code, file.name, comment.covers), []) and lint.ran:
                message = f"nothing here needs `{lint.name}` to be allowed"
                wrong.append(_finding(file, comment, "SY193", message, "remove the comment"))
    return [*chain.from_iterable(left.values()), *wrong]


def _refused(
    document: Document, comment: Suppression, lints: Sequence[Lint], *, guess: bool
) -> Finding:
    """Return the finding for a comment that names no lint rule."""
    if not comment.name:
        return _finding(document, comment, "SY191", "not a suppression", _FORM)
    message = f"no lint rule is called `{shown(comment.name)}`"
    if not guess:
        return _finding(document, comment, "SY192", message, "`switchyard rule` lists them")
    names = sorted({lint.name for lint in lints})
    coded = {lint.code: lint.name for lint in lints}
    fix = suggestion(comment.name, names, "use one of these")
    if comment.name.upper() in coded:
        fix = f"write its name, `{coded[comment.name.upper()]}`"
    notes = (f"lint rules: {', '.join(names)}",)
    return _finding(document, comment, "SY192", message, fix, notes)


def _finding(
    document: Document,
    comment: Suppression,
    code: str,
    message: str,
    fix: str,
    notes: tuple[str, ...] = (),
) -> Finding:
    return Finding(
        code=code,
        message=message,
        file=document.name,
        line=comment.line,
        column=comment.column,
        severity="warning",
        notes=notes,
        fix=fix,
    )
