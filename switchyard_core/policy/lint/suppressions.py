"""Comments that suppress a lint rule on one line, each with its reason.

``# switchyard: allow unused-target -- the canary uses it`` is at the end of the line that a finding
names, or alone on a line above it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from switchyard_core.declarations import LintRule
from switchyard_core.errors import Finding
from switchyard_core.policy.document import Document
from switchyard_core.policy.lint.base import Rule
from switchyard_core.policy.places import STRING, Lines
from switchyard_core.policy.secrets import shown
from switchyard_core.policy.wording import suggestion

__all__ = ["Suppression", "suppressions", "without_suppressed"]

#: A whole comment, or a string, in which `#` does not begin one.
_PIECE = re.compile(rf"(?P<comment>#[^\n]*)|(?:{STRING.pattern})", re.DOTALL)
_MARK = re.compile(r"#\s*switchyard:\s*(?P<rest>.*)")
_ALLOW = re.compile(r"allow\s+(?P<name>[^\s,]+)\s*(?:--\s*(?P<reason>.*))?")
#: Limits the search for nearest names, so that every check is short.
_MOST_GUESSED = 100
_FORM = "write `# switchyard: allow <name> -- <reason>`"


@dataclass(frozen=True, slots=True, kw_only=True)
class Suppression:
    """One comment."""

    line: int  # 1-based line of the comment
    column: int  # 1-based column of the comment
    covers: int  # the line whose findings it suppresses
    name: str  # the rule that it names, ``""`` when the comment is malformed
    reason: str  # ``""`` when none is given


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
    document: Document,
    found: Iterable[Finding],
    rules: Sequence[Rule | LintRule],
    ran: Collection[str],
) -> list[Finding]:
    """Return findings without the suppressed ones, and add findings about suppressions.

    ``ran`` names the rules that ran: a suppression of another one may still be needed.
    """
    by_name = {rule.name: rule for rule in reversed(rules)}
    left: dict[tuple[str, str, int], list[Finding]] = {}
    for finding in found:
        left.setdefault((finding.code, finding.file, finding.line), []).append(finding)
    wrong: list[Finding] = []
    for file in (document, *document.included):
        for comment in suppressions(file.text):
            rule = by_name.get(comment.name)
            if rule is None:
                wrong.append(_refused(file, comment, rules, guess=len(wrong) < _MOST_GUESSED))
            elif not comment.reason:
                message = f"the suppression of `{rule.name}` has no reason"
                wrong.append(_finding(file, comment, "SY191", message, _FORM))
            elif not left.pop((rule.code, file.name, comment.covers), []) and rule.name in ran:
                message = f"unused suppression of `{rule.name}`"
                wrong.append(_finding(file, comment, "SY193", message, "remove the comment"))
    return [*chain.from_iterable(left.values()), *wrong]


def _refused(
    document: Document, comment: Suppression, rules: Sequence[Rule | LintRule], *, guess: bool
) -> Finding:
    if not comment.name:
        return _finding(document, comment, "SY191", "not a valid suppression", _FORM)
    message = f"unknown lint rule `{shown(comment.name)}`"
    if not guess:
        return _finding(document, comment, "SY192", message, "`switchyard rule` lists them")
    names = sorted({rule.name for rule in rules})
    coded = {rule.code: rule.name for rule in rules}
    fix = suggestion(comment.name, names, "use one of these")
    if comment.name.upper() in coded:
        fix = f"write its name, `{coded[comment.name.upper()]}`"
    return _finding(document, comment, "SY192", message, fix, f"lint rules: {', '.join(names)}")


def _finding(
    document: Document, comment: Suppression, code: str, message: str, fix: str, *notes: str
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
