"""What to say when nothing is recorded for a call: the nearest recording, and how it differs."""

from __future__ import annotations

import difflib
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from switchyard_core.replay.credentials import without_credentials
from switchyard_core.replay.recording import Recording, fields_of, object_of
from switchyard_core.wire import FORMATS

__all__ = ["difference", "nearest"]

#: Most lines of a difference, and most characters of one line.
MOST_LINES = 40
WIDEST = 120
#: Most recordings that are compared line by line.
_MOST_COMPARED = 20
#: Lines that are compared from the first difference on.
_WINDOW = 400


def nearest(
    recordings: Iterable[Recording], method: str, path: str, body: bytes, fields: Sequence[str]
) -> Recording | None:
    """Return the recording with most equal first items, then fewest different lines, if any."""
    items = _conversation(body)
    found = [each for each in recordings if (each.method, each.path) == (method, path)]
    if not found:
        return None
    shared = {each.file: _shared(items, _conversation(each.body)) for each in found}
    longest = max(shared.values())
    best = [each for each in found if shared[each.file] == longest][:_MOST_COMPARED]
    lines = Counter(_lines(body, fields))

    def differing(each: Recording) -> int:
        theirs = Counter(_lines(each.body, fields))
        return (lines - theirs).total() + (theirs - lines).total()

    return min(best, key=differing)


def difference(recording: Recording, body: bytes, fields: Sequence[str]) -> list[str]:
    """Return a short unified diff of the fields that count; lines with a credential are hidden."""
    before, after = _lines(recording.body, fields), _lines(body, fields)
    # A history may have 100 000 lines, and comparing takes the square of that: what is equal at
    # the beginning is skipped, and what comes long after the first difference is not looked at.
    start = max(0, _shared(before, after) - 1)
    window = slice(start, start + _WINDOW)
    lines = _unified(before[window], after[window])
    shown = list(without_credentials(lines[:MOST_LINES]))
    if len(lines) > MOST_LINES or max(len(before), len(after)) > window.stop:
        shown.append("… (and more)")
    return shown


def _unified(before: list[str], after: list[str]) -> list[str]:
    """Return a unified diff without heads: the numbers of lines that no file has would mislead."""
    # No line is junk: braces and brackets matter in a short window.
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    lines: list[str] = []
    for group in matcher.get_grouped_opcodes(1):
        lines += ["…"] if lines else []
        for tag, start, stop, first, last in group:
            if tag == "equal":
                lines += [f" {line}" for line in before[start:stop]]
                continue
            lines += [f"-{line}" for line in before[start:stop]]
            lines += [f"+{line}" for line in after[first:last]]
    return lines


def _conversation(body: bytes) -> list[Any]:
    tree = object_of(body) or {}
    keys = (each.history_key for each in FORMATS.values())
    items = next((tree[key] for key in keys if key in tree), None)
    return items if isinstance(items, list) else [items]


def _shared(ours: list[Any], theirs: list[Any]) -> int:
    count = 0
    for mine, other in zip(ours, theirs, strict=False):
        if mine != other:
            break
        count += 1
    return count


def _lines(body: bytes, fields: Sequence[str]) -> list[str]:
    """Return the fields of a body that count as lines of a bounded width."""
    tree = object_of(body)
    if tree is None:
        text = body.decode("utf-8", "replace")
    else:
        counted = dict(fields_of(tree, fields))
        text = json.dumps(counted, ensure_ascii=False, indent=1, sort_keys=True)
    lines: list[str] = []
    for line in text.splitlines():
        # A prompt is one line of JSON: broken where its own lines end, and where it is too long.
        for part in line.replace("\\n", "\\n\n").split("\n"):
            lines += [part[at : at + WIDEST] for at in range(0, len(part), WIDEST)]
    return lines
