"""Keeps credentials out of recordings: what holds one is not written at all.

A recording is committed and shared. Cutting a secret out would change what was sent, so the
person who records decides; the message names the field and never its value.

Recordings are full of long random words (ids, signatures, pictures), so only what has the
beginning of a known kind of key counts, not everything that looks random, and not in fields
that hold opaque data.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from switchyard_core.policy.secrets import shown
from switchyard_core.replay.keys import object_of
from switchyard_core.replay.tables import plain_name, tables

__all__ = ["credential_in_body", "credential_in_stream", "without_credentials"]

_CREDENTIAL = re.compile(
    r"""
      # OpenAI, Anthropic, Stripe and those like them; not `sk_buff_head_init`
      (?<![A-Za-z0-9])(?:sk|pk|rk)[-_](?:[A-Za-z0-9]*[-_]){0,8}
        (?:(?=[A-Za-z]*[0-9])(?=[0-9]*[A-Za-z])[A-Za-z0-9]{12,}|[A-Za-z0-9]{20,})
    | (?<![A-Za-z0-9])(?:sk|pk|rk)[-_]
        (?=[\w-]*[0-9])(?=[\w-]*[a-z])(?=[\w-]*[A-Z])[A-Za-z0-9_-]{32,}
    | \bgh[pousr]_[A-Za-z0-9]{16,}
    | \bgithub_pat_[A-Za-z0-9_]{16,}
    | \bglpat-[A-Za-z0-9_-]{16,}
    | \bhf_[A-Za-z0-9]{16,}
    | \bxox[abeoprs]-[A-Za-z0-9-]{10,}
    | \b(?:AKIA|ASIA)[A-Z0-9]{16}\b
    | \bAIza[A-Za-z0-9_-]{30,}
    | \beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.
    | (?i:\b(?:bearer|basic))\s+(?=[A-Za-z+/_.=-]*[0-9])[A-Za-z0-9+/_.=-]{16,}
    | -----BEGIN\ [A-Z ]*PRIVATE\ KEY
    # user and password in a URL, but not the placeholders that every manual has
    | ://[^/\s@:"']*:(?!(?i:pass(?:word|wd)?|secret|changeme|postgres|root|admin|user|test|x+|[*]+
        |[$<{%][^@]*)@)[^/\s@"']+@
    """,
    re.VERBOSE,
)
_DEEPEST = 100


def credential_in_body(body: bytes) -> str | None:
    """Return where a body seems to hold a credential, ``None`` when it does not.

    Args:
        body: A whole body; text that is no JSON object is looked at as it is.

    Returns:
        A path such as ``tools[0].headers.Authorization``, or ``the body``.
    """
    tree = object_of(body)
    if tree is None:
        return "the body" if _CREDENTIAL.search(body.decode("utf-8", "replace")) else None
    return _first(tree)


def credential_in_stream(body: bytes) -> str | None:
    """Return where a stream of events seems to hold a credential, ``None`` when it does not.

    Each event is looked at, and the texts that their pieces make together.

    Args:
        body: The whole stream.
    """
    pieces: dict[tuple[str, ...], str] = {}
    number = 0
    for line in body.decode("utf-8", "replace").splitlines():
        name, _, data = line.partition(":")
        tree = object_of(data.strip().encode("utf-8")) if name == "data" else None
        if tree is None:
            if name != "data" or data.strip() == "[DONE]":
                continue
            if _CREDENTIAL.search(data):
                return f"event {number + 1}"
        else:
            found = _first(tree)
            if found is not None:
                return f"event {number + 1}: {found}"
            for group, text in _pieces(tree):
                pieces[group] = pieces.get(group, "") + text
        number += 1
    for group, text in pieces.items():
        if _of_text(text):
            return f"the text of `{group[-1]}` in the stream's events together"
    return None


def without_credentials(lines: Iterable[str]) -> Iterator[str]:
    """Yield lines; those that seem to hold a credential are replaced."""
    for line in lines:
        yield f"{line[:1]} (hidden: looks like a credential)" if _CREDENTIAL.search(line) else line


def _first(tree: Any) -> str | None:
    return next(_found(tree, "", 0), None)


def _found(value: Any, path: str, depth: int) -> Iterator[str]:
    """Yield the paths of fields that seem to hold credentials."""
    if depth > _DEEPEST:
        return
    if isinstance(value, dict):
        for key, item in value.items():
            place = f"{path}.{shown(key)}" if path else shown(key)
            if isinstance(item, str):
                if plain_name(key) in tables().credential_fields:
                    if item.strip():
                        yield place
                elif key not in tables().opaque_fields and _of_text(item):
                    yield place
            else:
                yield from _found(item, place, depth + 1)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            if isinstance(item, str):
                if _of_text(item):
                    yield f"{path}[{index}]"
            else:
                yield from _found(item, f"{path}[{index}]", depth + 1)


def _of_text(text: str) -> bool:
    """Return whether a text holds a credential, or is JSON with one, as arguments of calls are."""
    if text.startswith("data:"):
        return False
    if _CREDENTIAL.search(text):
        return True
    if not text.lstrip().startswith("{"):
        return False
    try:
        return _first(json.loads(text)) is not None
    except (ValueError, RecursionError):
        return False


def _pieces(value: Any, group: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the texts of an event that go on in the next, by what tells them apart."""
    if isinstance(value, dict):
        marks = tuple(f"{key}={value[key]}" for key in ("index", "output_index") if key in value)
        for key, item in value.items():
            if isinstance(item, str):
                if key in tables().delta_fields:
                    yield (*group, *marks, key), item
            else:
                yield from _pieces(item, (*group, *marks))
    elif isinstance(value, list):
        for item in value:
            yield from _pieces(item, group)
