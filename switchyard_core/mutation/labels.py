"""The five labels of a tool call, the reading of a part of it, and the verdict on it.

An edit that the assistant wrote as text gets a verdict too.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

__all__ = ["LABELS", "READ_ONLY", "Reading", "Verdict", "label_rank", "strongest"]

#: Strongest first: the strongest effect of a call is its label.
LABELS: tuple[str, ...] = ("file_edit", "file_write_other", "scratch_write", "unknown", "read_only")


_RANKS = {label: rank for rank, label in enumerate(LABELS)}


class Reading(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a reader found out about one call or one part of a command."""

    label: str  # one of :data:`LABELS`
    word: str = ""  # what decided: a program, a redirection, a file name
    detail: str = ""  # for people, such as ``writes src/app.py``


#: The reading of a call that changes nothing.
READ_ONLY = Reading(label="read_only")


class Verdict(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The label of one call, or of one edit in a text, and everything needed to explain it.

    Args:
        label: One of the five labels.
        rule_set: Name of the rule set that decided, ``""`` when no rule did.
        rule: Name of the rule, its place (``rules[3]``) when it has none, ``""`` without one.
        jsonpath: Expression that found the call.
        tool: Tool name as the call gives it, ``""`` for an edit in a text.
        call_path: Wire path of the call, or of the turn with the text.
        message: Index of the message that holds the call or the text.
        word: What decided inside the arguments, ``""`` for rules on names alone.
        detail: For people, such as ``writes src/app.py``.
        offset: Index of the edit's first character in the text; ``None`` for a call.
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
    offset: int | None = None

    @property
    def place(self) -> str:
        """What it is about and where that is, for people."""
        if self.offset is None:
            return f"`{self.tool}` at {self.call_path}"
        return f"text at {self.call_path}, character {self.offset}"


def label_rank(label: str) -> int:
    """Return the place of a label in :data:`LABELS`; 0 is the strongest."""
    return _RANKS[label]


def strongest(readings: Iterable[Reading]) -> Reading:
    """Return the first of the strongest readings, ``read_only`` when there are none.

    Readings after the first edit are not taken from the iterable.
    """
    found: Reading | None = None
    for reading in readings:
        if found is None or _RANKS[reading.label] < _RANKS[found.label]:
            found = reading
            if reading.label == LABELS[0]:
                break
    return found or READ_ONLY
