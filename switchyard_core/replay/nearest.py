"""What to say when nothing is recorded for a call: the nearest recording, and how it differs."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Sequence
from typing import Any

from switchyard_core.replay.credentials import without_credentials
from switchyard_core.replay.keys import fields_of, object_of
from switchyard_core.replay.recording import Recording

__all__ = ["difference", "nearest"]

#: Most lines of a difference, and most characters of one line.
MOST_LINES = 40
WIDEST = 120
#: Most recordings that are compared line by line.
_MOST_COMPARED = 20


def nearest(
    recordings: Iterable[Recording], method: str, path: str, body: bytes, fields: Sequence[str]
) -> Recording | None:
    """Return the recording that is most like a call, ``None`` when none has its path.

    The one whose conversation begins with the most equal items counts as nearest, then the one
    with the fewest differing lines.

    Args:
        recordings: All there are.
        method: HTTP method of the call.
        path: Its path.
        body: Its body.
        fields: The fields that count.
    """
    items = _conversation(body)
    found = [each for each in recordings if (each.method, each.path) == (method, path)]
    if not found:
        return None
    shared = {each.file: _shared(items, _conversation(each.body)) for each in found}
    longest = max(shared.values())
    best = [each for each in found if shared[each.file] == longest][:_MOST_COMPARED]
    lines = _lines(body, fields)
    return min(best, key=lambda each: len(_differing(_lines(each.body, fields), lines)))


def difference(recording: Recording, body: bytes, fields: Sequence[str]) -> list[str]:
    """Return how a call differs from a recording, as a short unified diff without heads.

    Only fields that count are compared. Long texts are broken into lines; a line that seems to
    hold a credential is hidden.

    Args:
        recording: What is recorded.
        body: Body of the call.
        fields: The fields that count.
    """
    before, after = _lines(recording.body, fields), _lines(body, fields)
    lines = list(difflib.unified_diff(before, after, lineterm="", n=1))[2:]
    shown = list(without_credentials(lines[:MOST_LINES]))
    if len(lines) > MOST_LINES:
        shown.append(f"… ({len(lines) - MOST_LINES} more lines)")
    return shown


def _conversation(body: bytes) -> list[Any]:
    tree = object_of(body) or {}
    items = tree.get("messages", tree.get("input"))
    return items if isinstance(items, list) else [items]


def _shared(ours: list[Any], theirs: list[Any]) -> int:
    """Return how many items two conversations have in common from their beginning."""
    count = 0
    for mine, other in zip(ours, theirs, strict=False):
        if mine != other:
            break
        count += 1
    return count


def _differing(before: list[str], after: list[str]) -> list[str]:
    return [line for line in difflib.ndiff(before, after) if line[0] in "+-"]


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
            pieces = [part[at : at + WIDEST] for at in range(0, len(part), WIDEST)]
            lines += pieces
    return lines
