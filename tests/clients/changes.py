"""What differs between a caller's body and the outgoing one, byte by byte."""

from __future__ import annotations

import json
import re


def with_model(body: bytes, model: str) -> bytes:
    """Return the body with its top-level ``model`` replaced and every other byte kept.

    Raises:
        ValueError: The name stands at more places, so that the right one is not certain.
    """
    old = re.escape(json.dumps(json.loads(body)["model"]).encode())
    found = list(re.finditer(rb'"model"\s*:\s*(%s)' % old, body))
    if len(found) != 1:
        raise ValueError(f"`model` stands at {len(found)} places")
    start, end = found[0].span(1)
    return body[:start] + json.dumps(model).encode() + body[end:]


def inserted(before: bytes, after: bytes) -> bytes | None:
    """Return the one run of bytes that was inserted into ``before`` to give ``after``.

    Returns:
        The run, empty when both are equal, ``None`` when no single insertion explains it.
    """
    extra = len(after) - len(before)
    if extra < 0:
        return None
    at = next(
        (i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), len(before)
    )
    return after[at : at + extra] if after[at + extra :] == before[at:] else None
