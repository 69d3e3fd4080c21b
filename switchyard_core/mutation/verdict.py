"""What the rules say about a call, and what is wrong with a rule set."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

__all__ = ["RuleProblem", "Verdict"]


class Verdict(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The label of one call and everything needed to explain it.

    Args:
        label: One of the five labels.
        rule_set: Name of the rule set that decided, ``""`` when no rule did.
        rule: Name of the rule, its place (``rules[3]``) when it has none, ``""`` without one.
        jsonpath: Expression that found the call.
        tool: Tool name as the call gives it.
        call_path: Wire path of the call.
        message: Index of the message that holds the call.
        word: What decided inside the arguments, ``""`` for rules on names alone.
        detail: For a person, such as ``writes src/app.py``.
    """

    label: str
    rule_set: str
    rule: str
    jsonpath: str
    tool: str
    call_path: str
    message: int
    word: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleProblem:
    """Something wrong in a rule set; the policy check turns it into a finding.

    Args:
        code: ``SY4xx``.
        message: One sentence, lower case, no final stop, user input in back-ticks.
        location: Keys and indices inside the rule-set table.
        column: 0-based column inside the string at that place, if one is known.
        fix: What to do about it.
        notes: Further lines.
    """

    code: str
    message: str
    location: tuple[str | int, ...]
    column: int | None = None
    fix: str = ""
    notes: tuple[str, ...] = ()
