"""JSONPath, compiled once: jsonpath-ng reads an expression, closures of our own run it.

What a path may cost is settled here, before any request comes. A path has one ``..`` at most, and
:data:`MAX_SPREADS` steps that go through all children, so it looks at each value of a document a
small number of times, however the document is made. Regular expressions run in linear time. What
cannot promise that is refused when it is compiled, so no request can be the one that is too much.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from jsonpath_ng import exceptions as ng_errors
from jsonpath_ng import jsonpath as ng
from jsonpath_ng.ext import filter as ng_filter
from jsonpath_ng.ext import iterable as ng_iterable
from jsonpath_ng.ext import parser as ng_parser

from switchyard_core.jsonio.path_steps import (
    Match,
    Step,
    UnavailableError,
    members_of,
    run,
    steps_of,
)

__all__ = ["MAX_LENGTH", "MAX_PARTS", "MAX_SPREADS", "Path", "PathError", "compile_path"]

#: Most characters of an expression.
MAX_LENGTH = 4096
#: Most names, numbers, wildcards and comparisons of an expression.
MAX_PARTS = 100
#: Most steps that go through all children: ``*``, ``..``, slices, filters and ``keys``.
MAX_SPREADS = 10


class PathError(ValueError):
    """An expression is not JSONPath, or could cost too much.

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
    """

    expression: str
    head: tuple[str, ...] | None
    _steps: tuple[Step, ...]

    def find(self, document: Any) -> list[Match]:
        """Return location and value of every match in a tree, in document order of the steps."""
        return list(run(self._steps, document))

    def matches(self, document: Any) -> Iterator[Match]:
        """Yield the matches of :meth:`find` one by one: in deep documents locations are long."""
        return run(self._steps, document)

    def values(self, document: Any) -> list[Any]:
        """Return only the values of the matches."""
        return [value for _, value in run(self._steps, document)]


def compile_path(expression: str) -> Path:
    """Compile an expression of jsonpath-ng's extended grammar, as far as its cost is bounded.

    Raises:
        PathError: The expression is not JSONPath, or could cost too much; carries the column.
    """
    return _compiled(expression)


# A policy's packs have the same few expressions, and a reload has all of them again.
@lru_cache(maxsize=1024)
def _compiled(expression: str) -> Path:
    tree = _parse(expression)
    try:
        _check_size(tree)
        return Path(expression=expression, head=members_of(tree), _steps=steps_of(tree, first=True))
    except UnavailableError as refused:
        column = expression.rfind(refused.near) if refused.near else 0
        raise PathError(refused.message, max(column, 0)) from None


def _parse(expression: str) -> ng.JSONPath:
    if not expression.strip():
        msg = "the path is empty"
        raise PathError(msg, 0)
    if len(expression) > MAX_LENGTH:
        msg = f"the path is longer than {MAX_LENGTH} characters"
        raise PathError(msg, MAX_LENGTH)
    try:
        with warnings.catch_warnings():
            # Old spellings such as a single `&` stay valid for policy authors.
            warnings.simplefilter("ignore")
            tree: ng.JSONPath = _parser().parse(expression)
    except ng_errors.JSONPathError as error:
        raise PathError(*_explained(str(error), expression)) from None
    except Exception as error:  # noqa: BLE001 - its functions raise bare exceptions
        msg = f"it cannot be read: {error}"
        raise PathError(msg, 0) from None
    return tree


@cache
def _parser() -> ng_parser.ExtendedJsonPathParser:
    return ng_parser.ExtendedJsonPathParser()


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


def _check_size(tree: ng.JSONPath) -> None:
    """Refuse an expression with too many parts, before anything walks down it."""
    parts = spreads = descents = 0
    waiting: list[Any] = [tree]
    while waiting:
        node = waiting.pop()
        inner = _inner(node)
        waiting += inner
        parts += not inner
        descents += isinstance(node, ng.Descendants)
        spreads += isinstance(
            node, (ng.Descendants, ng.Wildcard, ng.Slice, ng_filter.Filter, ng_iterable.Keys)
        )
    if parts > MAX_PARTS:
        msg = f"the path has {parts} parts, and {MAX_PARTS} are allowed"
        raise UnavailableError(msg)
    if descents > 1:
        msg = "a path has one `..` at most, or a request could make it take minutes: name the steps"
        raise UnavailableError(msg, near="..")
    if spreads > MAX_SPREADS:
        msg = f"a path goes through all children at most {MAX_SPREADS} times, not {spreads}"
        raise UnavailableError(msg)


def _inner(node: Any) -> list[Any]:
    if isinstance(node, ng_filter.Filter):
        return list(node.expressions)
    if isinstance(node, ng_filter.Or | ng_filter.And):
        return list(node.operands)
    found = (getattr(node, name, None) for name in ("left", "right", "target", "value"))
    return [part for part in found if isinstance(part, ng.JSONPath)]
