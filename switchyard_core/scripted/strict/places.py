"""Places in a request, as rules name them.

A place is a path of keys: ``thinking.type``, ``messages[].content[]`` for every item,
``messages[-1].role`` for the last one, ``tools[type=custom|web_*,strict]`` for the items whose
``type`` is one of these and whose ``strict`` is set. ``@path``, ``@bytes``, ``@tokens`` and
``@header.NAME`` are of the request and not of its body.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

from switchyard_core.declarations import Endpoint
from switchyard_core.scripted.select import Asked

__all__ = ["Place", "Sent", "alike", "found", "parents"]

#: The way to a value: keys and indexes.
Place = tuple[str | int, ...]

_STEP = re.compile(r"([^.\[\]]+)((?:\[[^\]]*\])*)")
_BRACKET = re.compile(r"\[([^\]]*)\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """A request as a provider gets it."""

    asked: Asked
    path: str
    endpoint: Endpoint
    model: str  # the id as the provider's rules name it

    def listed(self, key: str) -> Sequence[Mapping[str, Any]]:
        """Return the items of a list in the body; anything else in their place is an empty one."""
        value = self.asked.body.get(key)
        items = value if isinstance(value, list) else []
        return [item if isinstance(item, dict) else {} for item in items]

    @property
    def tokens(self) -> int:
        """The tokens that the scripted provider counts."""
        return max(1, len(self.asked.raw) // 4)

    def words(self, header: str) -> tuple[str, ...]:
        """Return the words of a header that is a list."""
        text = self.asked.headers.get(header, "")
        return tuple(word.strip() for word in text.split(",") if word.strip())


def found(sent: Sent, place: str) -> Iterator[tuple[Place, Any]]:
    """Yield every value at a place, or at each of ``a | b``; ``null`` counts as absent."""
    if " | " in place:
        for each in place.split(" | "):
            yield from found(sent, each)
        return
    if place.startswith("@"):
        for value in _of_request(sent, place[1:]):
            yield (place,), value
        return
    for at, value in _walk(sent.asked.body, _steps(place), ()):
        if value is not None:
            yield at, value


def parents(sent: Sent, place: str) -> Iterator[tuple[Place, Mapping[str, Any], str]]:
    """Yield every object that could have the last key of a place, and that key."""
    before, _, key = place.rpartition(".")
    objects = found(sent, before) if before else [((), sent.asked.body)]
    for at, value in objects:
        if isinstance(value, dict):
            yield at, value, key


def alike(value: Any, wanted: Any) -> bool:
    """Return whether a value is a wanted one; ``*`` in a wanted text matches any text."""
    if isinstance(wanted, str) and isinstance(value, str):
        return fnmatchcase(value, wanted) if "*" in wanted else value == wanted
    return (type(value) is type(wanted) and bool(value == wanted)) or _same_number(value, wanted)


def _same_number(value: Any, wanted: Any) -> bool:
    numbers = (int, float)
    if isinstance(value, bool) or isinstance(wanted, bool):
        return False
    return isinstance(value, numbers) and isinstance(wanted, numbers) and value == wanted


def _of_request(sent: Sent, name: str) -> Iterator[Any]:
    if name == "path":
        yield sent.path
    elif name == "bytes":
        yield len(sent.asked.raw)
    elif name == "tokens":
        yield sent.tokens
    else:
        yield from sent.words(name.removeprefix("header."))


@cache
def _steps(place: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the keys of a place, each with what its brackets say."""
    return tuple((match[1], tuple(_BRACKET.findall(match[2]))) for match in _STEP.finditer(place))


def _walk(
    value: Any, steps: tuple[tuple[str, tuple[str, ...]], ...], at: Place
) -> Iterator[tuple[Place, Any]]:
    if not steps:
        yield at, value
        return
    (key, brackets), rest = steps[0], steps[1:]
    if not isinstance(value, dict) or key not in value:
        return
    for place, item in _items(value[key], brackets, (*at, key)):
        yield from _walk(item, rest, place)


def _items(value: Any, brackets: tuple[str, ...], at: Place) -> Iterator[tuple[Place, Any]]:
    if not brackets:
        yield at, value
        return
    if not isinstance(value, list):
        return
    first, rest = brackets[0], brackets[1:]
    for index, item in enumerate(value):
        if first == "-1":
            chosen = index == len(value) - 1
        else:
            chosen = all(_has(item, part) for part in first.split(",") if part)
        if chosen:
            yield from _items(item, rest, (*at, index))


def _has(item: Any, wish: str) -> bool:
    if not isinstance(item, dict):
        return False
    key, equals, words = wish.partition("=")
    value = item.get(key)
    if not equals:
        return bool(value)
    value = value if isinstance(value, str) else str(value).lower()
    return any(alike(value, word) for word in words.split("|"))
