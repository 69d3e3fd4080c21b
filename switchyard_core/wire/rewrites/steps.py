"""Rules of profiles, taken apart once for all requests."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from switchyard_core.jsonio.tree import encode
from switchyard_core.models.schema import Rule, ValueTest, glob_test
from switchyard_core.wire.rewrites.repairs import REPAIRS

__all__ = ["Rules", "Step", "Test"]

#: What follows the letters that a member must begin with; those JSON never escapes.
_LITERAL = re.compile(r"[^A-Za-z0-9_.-].*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Test:
    """A test of ``when``, taken apart once for all requests."""

    key: str
    path: tuple[tuple[str, bool], ...]
    test: ValueTest


@dataclass(frozen=True, slots=True)
class Step:
    """A rule, taken apart once for all requests."""

    who: str
    rule: Rule
    path: tuple[tuple[str, bool], ...]  # each key, and whether each item of its array is meant
    #: A history that lacks all words of one of these has nothing to change.
    words: tuple[tuple[bytes, ...], ...]
    keeps: Callable[[str], bool] | None  # the members that stay
    needs: frozenset[str]  # keys at the top without which there is nothing to do
    whole: tuple[Test, ...]  # tests of the request
    inside: tuple[Test, ...]  # tests that are made at each item of an array
    #: Whether there may be something to do where its first key is missing.
    creates: bool


class Rules(tuple[Mapping[str, Any], ...]):  # noqa: SLOT001 - a tuple has no room for `steps`
    """Rules as plain data, each with its giver (``by``); they are read once."""

    steps: tuple[Step, ...]

    def __new__(cls, rules: Sequence[Mapping[str, Any]]) -> Self:
        """Read the rules."""
        made = super().__new__(cls, rules)
        made.steps = tuple(map(_read, rules))
        return made

    @classmethod
    def of(cls, rules: Sequence[tuple[str, Rule]]) -> Self:
        """Return the rules of a profile."""
        made = super().__new__(
            cls,
            [
                {"by": who, **rule.model_dump(mode="json", by_alias=True, exclude_unset=True)}
                for who, rule in rules
            ],
        )
        made.steps = tuple(_step(who, rule) for who, rule in rules)
        return made


def _read(rule: Mapping[str, Any]) -> Step:
    told = dict(rule)
    who = str(told.pop("by", "fit"))
    return _step(who, Rule.model_validate_json(encode(told)))


def _step(who: str, read: Rule) -> Step:
    path = _split(read.path) if read.path else ()
    prefixes = _prefixes(path)
    tests = [_test(key, wanted) for key, wanted in read.when.items()]
    creates = read.do in ("set", "default", "refuse")
    needs = {test.path[0][0] for test in tests if _wants_a_value(test)}
    if path and not creates:
        needs.add(path[0][0])
    return Step(
        who=who,
        rule=read,
        path=path,
        words=_words(read, path),
        keeps=glob_test(read.members) if read.members is not None else None,
        needs=frozenset(needs),
        whole=tuple(test for test in tests if not test.key.startswith(prefixes)),
        inside=tuple(test for test in tests if test.key.startswith(prefixes)),
        creates=creates,
    )


def _test(key: str, wanted: Any) -> Test:
    test = wanted if isinstance(wanted, ValueTest) else ValueTest(equals=wanted)
    return Test(key=key, path=_split(key), test=test)


def _wants_a_value(test: Test) -> bool:
    """Return whether a test fails for a request without the first key of its path."""
    return test.key not in ("has_tools", "thinking_on") and test.test.present is not False


def _words(rule: Rule, path: Sequence[tuple[str, bool]]) -> tuple[tuple[bytes, ...], ...]:
    """Return the words of a history that has something to change."""
    if rule.do == "convert":
        return tuple(filter(None, [REPAIRS[rule.to or ""].words]))
    if not any(many for _, many in path):
        return ()
    words: list[tuple[bytes, ...]] = [(encode(key),) for key, _ in path[1:]]
    members = rule.members or ()
    if members and all(glob.startswith("!") for glob in members):
        words.append(tuple(_LITERAL.sub("", glob[1:]).encode() for glob in members))
    return tuple(words)


def _split(path: str) -> tuple[tuple[str, bool], ...]:
    return tuple((part.removesuffix("[]"), part.endswith("[]")) for part in path.split("."))


def _prefixes(path: Sequence[tuple[str, bool]]) -> tuple[str, ...]:
    """Return the paths to the items that a path leads through, with the dot behind each."""
    found, text = [], ""
    for key, many in path:
        text += f"{key}[]." if many else f"{key}."
        if many:
            found.append(text)
    return tuple(found)
