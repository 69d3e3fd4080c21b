"""The five labels of a tool call, and what a reader says about one."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

__all__ = ["LABELS", "READ_ONLY", "Reading", "label_rank", "strongest"]

#: Strongest first: of several effects of one call, the first in this order labels it.
LABELS: tuple[str, ...] = (
    "file_edit",
    "file_write_other",
    "scratch_write",
    "unknown",
    "read_only",
)


class Reading(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a reader found out about one call or one part of a command.

    Args:
        label: One of :data:`LABELS`.
        word: What decided: a program, a redirection, a file name.
        detail: For a person, such as ``writes src/app.py``.
    """

    label: str
    word: str = ""
    detail: str = ""


def label_rank(label: str) -> int:
    """Return the place of a label in :data:`LABELS`; 0 is the strongest."""
    return LABELS.index(label)


def strongest(readings: Iterable[Reading]) -> Reading:
    """Return the first of the strongest readings, ``read_only`` when there are none."""
    found: Reading | None = None
    for reading in readings:
        if found is None or label_rank(reading.label) < label_rank(found.label):
            found = reading
            if reading.label == LABELS[0]:
                # Nothing is stronger: what is read one by one need not be read further.
                break
    return found or READ_ONLY


#: The reading of a call that changes nothing.
READ_ONLY = Reading(label="read_only")
