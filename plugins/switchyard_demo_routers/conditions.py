"""Conditions on a request, as a policy writes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import re2
from pydantic import AfterValidator, Field, model_validator

from switchyard_core import JSONPath, Options, PathError, Request, compile_path

__all__ = ["Condition", "Test", "compile_condition"]

Test = Callable[[Request], bool]

_TESTS = ("equals", "in_", "not_in", "matches", "exists")


def _is_path(text: str) -> str:
    try:
        compile_path(text)
    except PathError as error:
        msg = f"{error.message} at character {error.column + 1} of the path"
        raise ValueError(msg) from None
    return text


def _is_pattern(text: str) -> str:
    _pattern(text)
    return text


class Condition(Options):
    """A test of the values that a path finds in the body, or of one header.

    Args:
        path: JSONPath on the request body; the test holds if it holds for one value.
        header: Name of a header, in any case, in place of ``path``.
        equals: The value is this one; a boolean never equals a number.
        in_: The value is one of these (key ``in``).
        not_in: There is a value and it is none of these.
        matches: The value is text in which this regular expression (RE2) is found.
        exists: Whether there is a value at all.
        not_: Turns the answer round (key ``not``).
    """

    path: Annotated[str, AfterValidator(_is_path)] | None = None
    header: str | None = None
    equals: Any = None
    in_: list[Any] | None = Field(default=None, alias="in")
    not_in: list[Any] | None = None
    matches: Annotated[str, AfterValidator(_is_pattern)] | None = None
    exists: bool | None = None
    not_: bool = Field(default=False, alias="not")

    @model_validator(mode="after")
    def _is_one_test(self) -> Condition:
        if (self.path is None) == (self.header is None):
            msg = "a condition needs either `path` or `header`"
            raise ValueError(msg)
        if sum(getattr(self, name) is not None for name in _TESTS) != 1:
            msg = "a condition needs one of `equals`, `in`, `not_in`, `matches`, `exists`"
            raise ValueError(msg)
        return self


def compile_condition(condition: Condition) -> Test:
    """Return a condition as a function of a request; it does not fail on any request."""
    values, holds = _values(condition), _test(condition)
    wanted = not condition.not_
    return lambda request: holds(values(request)) == wanted


def _values(condition: Condition) -> Callable[[Request], list[Any]]:
    if condition.path is not None:
        path: JSONPath = compile_path(condition.path)
        return lambda request: path.values(request.tree())
    name = (condition.header or "").strip()
    return lambda request: [request.headers[name]] if name in request.headers else []


def _test(condition: Condition) -> Callable[[list[Any]], bool]:
    if condition.exists is not None:
        wanted = condition.exists
        return lambda values: bool(values) == wanted
    if condition.matches is not None:
        search = _pattern(condition.matches)
        return lambda values: any(isinstance(v, str) and search(v) for v in values)
    if condition.not_in is not None:
        refused = condition.not_in
        return lambda values: bool(values) and not _meets(values, refused)
    listed = [condition.equals] if condition.in_ is None else condition.in_
    return lambda values: _meets(values, listed)


def _meets(values: list[Any], listed: list[Any]) -> bool:
    return any(_same(value, other) for value in values for other in listed)


def _same(left: Any, right: Any) -> bool:
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    return bool(left == right)


def _pattern(text: str) -> Callable[[str], bool]:
    options = re2.Options()
    options.log_errors = False
    try:
        search = re2.compile(text, options).search
    except re2.error as error:
        reason = error.args[0] if error.args else error
        said = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        msg = f"bad regular expression: {said}"
        raise ValueError(msg) from None
    # Half of an emoji, as some clients send it, cannot be encoded for the engine.
    return lambda value: search(value.encode("utf-8", "replace").decode()) is not None
