"""The steps of a path as closures, each from one value to those that it leads to.

Every step takes its values one by one and gives each of them once, whatever the document is.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeAlias

from jsonpath_ng import jsonpath as ng
from jsonpath_ng.ext import filter as ng_filter
from jsonpath_ng.ext import iterable as ng_iterable
from jsonpath_ng.ext import string as ng_string

from switchyard_core.patterns import PatternError, compile_pattern

__all__ = ["Location", "Match", "Step", "UnavailableError", "members_of", "run", "steps_of"]

#: Keys and indices from the root of a document to a value; indices are never negative.
Location: TypeAlias = tuple[str | int, ...]
#: Where a value was found, and the value.
Match: TypeAlias = tuple[Location, Any]

#: From a value and where it is, to the values that a step leads to.
Step: TypeAlias = Callable[[Location, Any], Iterator[Match]]
_Test = Callable[[Any], bool]
_ORDER: Mapping[str, Callable[[Any, Any], bool]] = MappingProxyType(
    {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
)
#: Kinds of the parser's trees that are not run, and what to use instead; names of classes, of
#: which some are private.
_REFUSED = MappingProxyType(
    {
        "Intersect": ("`&` between paths", ""),
        "Operation": ("arithmetic", ": compare the values in a filter"),
        "Parent": ("`parent`", ": filter the parent, such as `$.items[?(@.name)]`"),
        "Path": ("`path`", ""),
        "SortedThis": ("sorting", ": no rule sees an order"),
        "Sub": ("`sub`", ": test the text in a filter with `=~`"),
        "Union": ("`|` between paths", ": list names in brackets, such as `$['a','b']`"),
        "Where": ("`where`", ": use a filter, such as `$.items[?(@.name)]`"),
        "WhereNot": ("`wherenot`", ": use a filter, such as `$.items[?(!@.name)]`"),
    }
)


class UnavailableError(Exception):
    """A part of an expression is not run; ``near`` is how the part begins, if it has a place."""

    def __init__(self, message: str, near: str = "") -> None:
        self.message = message
        self.near = near
        super().__init__(message)


def _is_here(tree: ng.JSONPath) -> bool:
    # The functions of the extended grammar are subclasses of `This`.
    return type(tree) in {ng.Root, ng.This}


def members_of(tree: ng.JSONPath) -> tuple[str, ...] | None:
    """Return the names of a tree that goes from member to member, ``None`` for any other."""
    if _is_here(tree):
        return ()
    if isinstance(tree, ng.Fields):
        return tree.fields if len(tree.fields) == 1 else None
    if isinstance(tree, ng.Child):
        left, right = members_of(tree.left), members_of(tree.right)
        return left + right if left is not None and right is not None else None
    return None


def steps_of(tree: ng.JSONPath, *, first: bool) -> tuple[Step, ...]:
    """Return the closures for a tree; ``first`` says that it begins at the document."""
    if isinstance(tree, ng.Root) and not first:
        msg = "`$` is allowed only at the beginning of a path; in a filter `@` is the value"
        raise UnavailableError(msg, near="$")
    if _is_here(tree):
        return ()
    if isinstance(tree, ng.Child):
        return steps_of(tree.left, first=first) + steps_of(tree.right, first=False)
    if isinstance(tree, ng.Descendants):
        right = steps_of(tree.right, first=False)
        return (*steps_of(tree.left, first=first), _every_descendant, *right)
    return (_step(tree),)


def _step(tree: ng.JSONPath) -> Step:
    if isinstance(tree, ng.Fields):
        return _member_step(tree.fields)
    if isinstance(tree, ng.Wildcard):
        return _every_child
    if isinstance(tree, ng.Index):
        return _index_step(tree.indices)
    if isinstance(tree, ng.Slice):
        return _slice_step(tree)
    if isinstance(tree, ng_filter.Filter):
        return _filter_step([_test(expression) for expression in tree.expressions])
    if isinstance(tree, ng_iterable.Len | ng_iterable.Keys | ng_string.Split | ng_string.Str):
        return _function_step(tree)
    name = type(tree).__name__.removeprefix("_")
    what, instead = _REFUSED.get(name, ("a part of this path", ""))
    msg = f"{what} is not available{instead}"
    raise UnavailableError(msg, near=what.split("`")[1] if "`" in what else "")


def run(steps: tuple[Step, ...], document: Any) -> Iterator[Match]:
    """Yield what steps lead to from a document, one by one."""
    found: Iterator[Match] = iter([((), document)])
    for step in steps:
        found = _through(step, found)
    return found


def _through(step: Step, found: Iterator[Match]) -> Iterator[Match]:
    for location, value in found:
        yield from step(location, value)


def _member_step(names: tuple[str, ...]) -> Step:
    if len(set(names)) < len(names):
        msg = "a name is listed twice"
        raise UnavailableError(msg, near="[")

    def step(location: Location, value: Any) -> Iterator[Match]:
        if isinstance(value, dict):
            for name in names:
                if name in value:
                    yield (*location, name), value[name]

    return step


def _every_child(location: Location, value: Any) -> Iterator[Match]:
    if isinstance(value, list):
        for index, child in enumerate(value):
            yield (*location, index), child
    elif isinstance(value, dict):
        for name, child in value.items():
            yield (*location, name), child


def _every_descendant(location: Location, value: Any) -> Iterator[Match]:
    """Yield a value and all below it, in document order, however deep."""
    waiting: list[Iterator[Match]] = [iter([(location, value)])]
    while waiting:
        match = next(waiting[-1], None)
        if match is None:
            waiting.pop()
            continue
        yield match
        if isinstance(match[1], list | dict):
            waiting.append(_every_child(*match))


def _index_step(indices: tuple[int, ...]) -> Step:
    def step(location: Location, value: Any) -> Iterator[Match]:
        if isinstance(value, list):
            size = len(value)
            places = (i + size if i < 0 else i for i in indices if -size <= i < size)
            # Two indices of one item would double what comes behind, at each such step.
            for place in dict.fromkeys(places):
                yield (*location, place), value[place]

    return step


def _slice_step(tree: ng.Slice) -> Step:
    if tree.step == 0:
        msg = "the step of a slice is not 0"
        raise UnavailableError(msg, near=":0")
    window = slice(tree.start, tree.end, tree.step)

    def step(location: Location, value: Any) -> Iterator[Match]:
        if isinstance(value, list):
            for index in range(len(value))[window]:
                yield (*location, index), value[index]

    return step


def _filter_step(tests: Sequence[_Test]) -> Step:
    def step(location: Location, value: Any) -> Iterator[Match]:
        for match in _every_child(location, value):
            if all(test(match[1]) for test in tests):
                yield match

    return step


def _function_step(tree: ng.JSONPath) -> Step:
    of_text = isinstance(tree, ng_string.Str)

    def step(_location: Location, value: Any) -> Iterator[Match]:
        if of_text and isinstance(value, list | dict):
            return
        try:
            found = tree.find(value)
        except ValueError:
            # Python turns no integer of some thousand digits into text.
            return
        for datum in found:
            # What was made has no place in the document.
            yield (), datum.value

    return step


def _test(tree: ng.JSONPath) -> _Test:
    if isinstance(tree, ng_filter.Or | ng_filter.And):
        tests = [_test(operand) for operand in tree.operands]
        together = any if isinstance(tree, ng_filter.Or) else all
        return lambda value: together(test(value) for test in tests)
    if not isinstance(tree, ng_filter.Expression):
        msg = "a filter is made of comparisons"
        raise UnavailableError(msg, near="?")
    if isinstance(tree.value, ng.JSONPath):
        msg = "a comparison has a text, a number, true, false or null on its right side"
        raise UnavailableError(msg, near=tree.op)
    holds = _comparison(tree.op, tree.value)
    members = None if isinstance(tree.target, ng.Root) else members_of(tree.target)
    steps = steps_of(tree.target, first=False)
    if members:
        return lambda value: holds(_member(value, members))

    def test(value: Any) -> bool:
        match = None
        for match in run(steps, value):
            if holds(match[1]):
                return True
        return match is None and holds(_MISSING)

    return test


def _comparison(sign: str | None, wanted: Any) -> _Test:
    """Return the closure that compares a value, or :data:`_MISSING`, with a literal."""
    if sign is None:
        return lambda value: value is not _MISSING
    if sign == "!":
        return lambda value: value is _MISSING
    if sign in {"==", "="}:
        return lambda value: _equal(value, wanted)
    if sign == "!=":
        return lambda value: not _equal(value, wanted)
    if sign == "=~":
        return _pattern(wanted)
    ordered, with_equal = _ORDER[sign], sign.endswith("=")

    def test(value: Any) -> bool:
        if _are_ordered(value, wanted):
            return ordered(value, wanted)
        return with_equal and _equal(value, wanted)

    return test


def _pattern(pattern: Any) -> _Test:
    if not isinstance(pattern, str):
        msg = "`=~` needs a regular expression in quotes"
        raise UnavailableError(msg, near="=~")
    try:
        found = compile_pattern(pattern)
    except PatternError as error:
        msg = f"bad regular expression `{pattern}`: {error.message}"
        raise UnavailableError(msg) from None
    return lambda value: isinstance(value, str) and found(value)


_MISSING = object()


def _member(value: Any, members: tuple[str, ...]) -> Any:
    for name in members:
        if not isinstance(value, dict) or name not in value:
            return _MISSING
        value = value[name]
    return value


def _are_ordered(left: Any, right: Any) -> bool:
    """Return whether two values have an order: two numbers or two texts."""
    if isinstance(left, bool) or isinstance(right, bool):
        return False
    kinds = str if isinstance(left, str) else int | float
    return isinstance(left, kinds) and isinstance(right, kinds)


def _equal(left: Any, right: Any) -> bool:
    """Compare as JSON does: a boolean is never equal to a number."""
    if left is _MISSING:
        return False
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, list | dict):
        return False
    return bool(left == right)
