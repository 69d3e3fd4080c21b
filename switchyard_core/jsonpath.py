"""JSONPath, compiled once: the language of jsonpath-ng's extended parser.

Paths of children, wildcards, indices, slices and plain filters run as closures of our own,
which a property test holds against jsonpath-ng; everything else runs through jsonpath-ng.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import re2
from jsonpath_ng import exceptions as ng_errors
from jsonpath_ng import jsonpath as ng
from jsonpath_ng.ext import filter as ng_filter
from jsonpath_ng.ext import parser as ng_parser

__all__ = ["Location", "Match", "Path", "PathError", "compile_path"]

#: Keys and indices from the root of a document to a value; indices are never negative.
Location: TypeAlias = tuple[str | int, ...]
#: Where a value was found, and the value.
Match: TypeAlias = tuple[Location, Any]

_Step = Callable[[Location, Any], Iterator[Match]]
_Test = Callable[[Any], bool]


class PathError(ValueError):
    """An expression is not JSONPath.

    Args:
        message: What is wrong, one sentence, lower case, no final stop.
        column: 0-based column inside the expression.
    """

    def __init__(self, message: str, column: int) -> None:
        self.message = message
        self.column = column
        super().__init__(f"{message} at column {column}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Path:
    """A compiled JSONPath expression; safe to share between threads.

    Args:
        expression: The text it was compiled from.
        head: The leading member names when every step is a plain member, such as
            ``("arguments", "command")``; ``None`` for any other path.
        simple: Whether it runs as closures of our own.
    """

    expression: str
    head: tuple[str, ...] | None
    simple: bool
    _find: Callable[[Any], list[Match]]

    def find(self, document: Any) -> list[Match]:
        """Return location and value of every match, in document order of the steps.

        Args:
            document: A tree of dictionaries, lists and scalars; it is not changed.
        """
        return self._find(document)

    def values(self, document: Any) -> list[Any]:
        """Return only the values of the matches."""
        return [value for _, value in self._find(document)]


def compile_path(expression: str) -> Path:
    """Compile an expression.

    Raises:
        PathError: The expression is not JSONPath; carries the column.
    """
    tree = _parse(expression)
    steps = _steps(tree)
    if steps is not None:
        return Path(
            expression=expression,
            head=_members(tree),
            simple=True,
            _find=lambda document: _run(steps, document),
        )
    if _intersects(tree):
        raise PathError("`&` between paths is not available", max(expression.find("&"), 0))
    if "=~" in expression:
        # Elsewhere the pattern would run on a backtracking engine, which a request could stall.
        msg = "`=~` works only in a filter that compares a plain member"
        raise PathError(msg, expression.index("=~"))
    return Path(
        expression=expression, head=None, simple=False, _find=lambda doc: _run_ng(tree, doc)
    )


def _intersects(tree: Any) -> bool:
    """Tell whether a tree holds an intersection, which jsonpath-ng parses but cannot run."""
    if type(tree).__name__ in {"Intersect", "_Intersect"}:
        return True
    parts = (getattr(tree, "left", None), getattr(tree, "right", None))
    return any(_intersects(part) for part in parts if part is not None)


def _run(steps: tuple[_Step, ...], document: Any) -> list[Match]:
    found: list[Match] = [((), document)]
    for step in steps:
        found = [match for location, value in found for match in step(location, value)]
    return found


def _run_ng(tree: ng.JSONPath, document: Any) -> list[Match]:
    try:
        return [(_location(datum), datum.value) for datum in tree.find(document)]
    except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RuntimeError):
        # Arithmetic and string functions of jsonpath-ng raise on values of another type;
        # for a rule that means: no match.
        return []


def _location(datum: ng.DatumInContext) -> Location:
    parts: list[str | int] = []
    current: ng.DatumInContext | None = datum
    while current is not None and current.context is not None:
        path = current.path
        if isinstance(path, ng.Fields):
            parts.append(path.fields[0])
        elif isinstance(path, ng.Index):
            parts.append(_positive(path.indices[0], current.context.value))
        current = current.context
    return tuple(reversed(parts))


def _positive(index: int, container: Any) -> int:
    return index + len(container) if index < 0 else index


@cache
def _parser() -> ng_parser.ExtendedJsonPathParser:
    return ng_parser.ExtendedJsonPathParser()


def _parse(expression: str) -> ng.JSONPath:
    if not expression.strip():
        msg = "the path is empty"
        raise PathError(msg, 0)
    try:
        with warnings.catch_warnings():
            # Old spellings such as a single `&` stay valid for policy authors.
            warnings.simplefilter("ignore", DeprecationWarning)
            tree: ng.JSONPath = _parser().parse(expression)
    except ng_errors.JSONPathError as error:
        raise PathError(*_explained(str(error), expression)) from None
    except Exception as error:  # noqa: BLE001 - its functions raise bare exceptions
        msg = f"not a JSONPath expression: {error}"
        raise PathError(msg, 0) from None
    return tree


def _explained(text: str, expression: str) -> tuple[str, int]:
    """Turn a message of the parser into ours and the 0-based column."""
    if place := re.search(r"at \d+:(\d+) near token (.+?) \(", text):
        column = int(place[1])
        return f"unexpected `{expression[column : column + 12] or place[2]}`", column
    if place := re.search(r"col (\d+)", text):
        column = int(place[1])
        return f"unexpected character `{expression[column : column + 1]}`", column
    if "end of string" in text.lower() or "eof" in text.lower():
        return "the path ends too early", len(expression)
    return text[:1].lower() + text[1:].rstrip("."), 0


def _is_here(tree: ng.JSONPath) -> bool:
    # The functions of the extended grammar are subclasses of `This`.
    return type(tree) in {ng.Root, ng.This}


def _members(tree: ng.JSONPath) -> tuple[str, ...] | None:
    if _is_here(tree):
        return ()
    if isinstance(tree, ng.Fields):
        return tree.fields if len(tree.fields) == 1 else None
    if isinstance(tree, ng.Child):
        left, right = _members(tree.left), _members(tree.right)
        return left + right if left is not None and right is not None else None
    return None


def _steps(tree: ng.JSONPath) -> tuple[_Step, ...] | None:
    """Return the closures for a tree, ``None`` when jsonpath-ng must run it."""
    if _is_here(tree):
        return ()
    if isinstance(tree, ng.Child):
        if isinstance(tree.right, ng.Root):
            return None
        left, right = _steps(tree.left), _steps(tree.right)
        return left + right if left is not None and right is not None else None
    step = _step(tree)
    return None if step is None else (step,)


def _step(tree: ng.JSONPath) -> _Step | None:
    if isinstance(tree, ng.Fields):
        return _member_step(tree.fields)
    if isinstance(tree, ng.Wildcard):
        return _every_child
    if isinstance(tree, ng.Index):
        return _index_step(tree.indices)
    if isinstance(tree, ng.Slice):
        return _slice_step(tree)
    if isinstance(tree, ng_filter.Filter):
        tests = [_test(expression) for expression in tree.expressions]
        known = [test for test in tests if test is not None]
        return _filter_step(known) if len(known) == len(tests) else None
    return None


def _member_step(names: tuple[str, ...]) -> _Step:
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


def _index_step(indices: tuple[int, ...]) -> _Step:
    def step(location: Location, value: Any) -> Iterator[Match]:
        if isinstance(value, list):
            for index in indices:
                if -len(value) <= index < len(value):
                    yield (*location, _positive(index, value)), value[index]

    return step


def _slice_step(tree: ng.Slice) -> _Step | None:
    if tree.step == 0:
        return None
    window = slice(tree.start, tree.end, tree.step)

    def step(location: Location, value: Any) -> Iterator[Match]:
        if isinstance(value, list):
            for index in range(len(value))[window]:
                yield (*location, index), value[index]

    return step


def _filter_step(tests: list[_Test]) -> _Step:
    def step(location: Location, value: Any) -> Iterator[Match]:
        for match in _every_child(location, value):
            if all(test(match[1]) for test in tests):
                yield match

    return step


def _test(expression: ng.JSONPath) -> _Test | None:
    """Return the closure of one comparison in a filter, ``None`` for the kinds that we leave."""
    if not isinstance(expression, ng_filter.Expression):
        return None
    members = _members(expression.target)
    wanted = expression.value
    if not members or not (wanted is None or isinstance(wanted, str | bool | int | float)):
        return None
    operator = expression.op
    if operator is None:
        return lambda value: _member(value, members) is not _MISSING
    if operator in {"==", "="}:
        return lambda value: _equal(_member(value, members), wanted)
    if operator == "!=":
        return lambda value: not _equal(_member(value, members), wanted)
    if operator == "=~" and isinstance(wanted, str):
        return _pattern_test(members, wanted)
    return None


def _pattern_test(members: tuple[str, ...], pattern: str) -> _Test:
    options = re2.Options()
    options.log_errors = False
    try:
        search = re2.compile(pattern, options).search
    except re2.error as error:
        msg = f"bad regular expression `{pattern}`: {_re2_message(error)}"
        raise PathError(msg, 0) from None

    def test(value: Any) -> bool:
        text = _member(value, members)
        return isinstance(text, str) and search(_clean(text)) is not None

    return test


def _re2_message(error: Exception) -> str:
    raw = error.args[0] if error.args else error
    return raw.decode("utf-8", "replace") if isinstance(raw, bytes) else str(raw)


def _clean(text: str) -> str:
    """Replace lone surrogates, which the regular-expression engine cannot encode."""
    return text.encode("utf-8", "replace").decode("utf-8")


_MISSING = object()


def _member(value: Any, members: tuple[str, ...]) -> Any:
    for name in members:
        if not isinstance(value, dict) or name not in value:
            return _MISSING
        value = value[name]
    return value


def _equal(left: Any, right: Any) -> bool:
    """Compare as JSON does: a boolean is never equal to a number."""
    if left is _MISSING:
        return False
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, list | dict):
        return False
    return bool(left == right)
