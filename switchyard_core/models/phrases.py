"""What a provider's failed answer means, by the phrases of ``phrases.toml``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import tomli

__all__ = ["meaning_of"]

# Some servers escape more than JSON demands, such as the quotes inside of a quoted error.
_ESCAPED = re.compile(r"\\+u00([2-7][0-9a-f])")
_SPACED = re.compile(r'(?<="):\s+')


@dataclass(frozen=True, slots=True)
class _Phrases:
    """The table: the fragments of each phrase by kind, and which kinds hold when."""

    by_kind: dict[str, tuple[tuple[str, ...], ...]]
    about_the_request: tuple[str, ...]
    about_the_answer: tuple[str, ...]
    beside_the_request: frozenset[int]


@cache
def _phrases() -> _Phrases:
    table = tomli.loads((files(__package__) / "phrases.toml").read_text("utf-8"))
    by_kind: dict[str, list[tuple[str, ...]]] = {}
    for row in table["phrase"]:
        found = (tuple(phrase.split("|")) for phrase in row["any"])
        by_kind.setdefault(row["kind"], []).extend(found)
    return _Phrases(
        by_kind={kind: tuple(phrases) for kind, phrases in by_kind.items()},
        about_the_request=tuple(table["about_the_request"]),
        about_the_answer=tuple(table["about_the_answer"]),
        beside_the_request=frozenset(table["beside_the_request"]),
    )


def meaning_of(answer: bytes | str, status: int) -> str:
    """Return what a provider's answer means, ``""`` when no phrase is in it.

    Args:
        answer: Its body, or the text of its error.
        status: Its HTTP status: a phrase about the request counts only where the request may be at
            fault, so not with 401 or 429.

    Returns:
        ``overflow``, ``signature``, ``reasoning_missing``, ``parameter``, ``order``,
        ``overloaded``, ``refusal``, ``silent_overflow`` or ``not_overflow``.
    """
    text = answer if isinstance(answer, str) else answer.decode("utf-8", "replace")
    text = _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text.lower())
    text = _SPACED.sub(":", text.replace("\\", ""))
    table = _phrases()
    kinds = table.about_the_answer
    if status not in table.beside_the_request:
        kinds = (*table.about_the_request, *kinds)
    for kind in kinds:
        if _is_in(text, kind) and not (kind == "overflow" and _is_in(text, "not_overflow")):
            return kind
    return ""


def _is_in(text: str, kind: str) -> bool:
    return any(all(part in text for part in phrase) for phrase in _phrases().by_kind[kind])
