"""Conditions on a request, as a policy writes them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from pydantic import Field, model_validator

from switchyard_core import (
    JSONPath,
    JSONPathText,
    OptionError,
    Options,
    PatternText,
    Request,
    compile_path,
    compile_pattern,
)

__all__ = ["Condition", "Test", "compile_condition"]

Test = Callable[[Request], bool]

_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_TESTS = ("equals", "in_", "not_in", "matches", "exists")


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

    path: JSONPathText | None = None
    header: str | None = None
    equals: Any = None
    in_: list[Any] | None = Field(default=None, alias="in")
    not_in: list[Any] | None = None
    matches: PatternText | None = None
    exists: bool | None = None
    not_: bool = Field(default=False, alias="not")

    @model_validator(mode="after")
    def _is_one_test(self) -> Condition:
        if (self.path is None) == (self.header is None):
            msg = "a condition needs either `path` or `header`"
            raise OptionError(msg, fix="give exactly one of them")
        tests = [name.rstrip("_") for name in _TESTS if getattr(self, name) is not None]
        if not tests:
            msg = "a condition needs one of `equals`, `in`, `not_in`, `matches`, `exists`"
            raise OptionError(msg, fix="add the test; `exists = true` asks only for a value")
        if len(tests) > 1:
            msg = f"a condition has one test, not {' and '.join(f'`{name}`' for name in tests)}"
            raise OptionError(msg, fix="write one condition per test; all of a rule must hold")
        return self

    @model_validator(mode="after")
    def _can_change(self) -> Condition:
        if self.in_ == []:
            msg = "`in` is empty, so no value is in it"
            raise OptionError(msg, fix="list a value, or remove the condition")
        if self.not_in == []:
            msg = "`not_in` is empty, so it asks only whether there is a value"
            raise OptionError(msg, fix="list a value, or write `exists = true`")
        if self.header is None:
            return self
        if not _HEADER_NAME.fullmatch(self.header):
            msg = "`header` is not the name of a header, so no request has it"
            raise OptionError(msg, fix="use letters, digits and hyphens")
        wanted = [self.equals] if self.equals is not None else self.in_
        if wanted is not None and not any(isinstance(value, str) for value in wanted):
            msg = "the value of a header is text, so it never equals anything else"
            raise OptionError(msg, fix="write the value in quotes")
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
    name = condition.header or ""
    return lambda request: [request.headers[name]] if name in request.headers else []


def _test(condition: Condition) -> Callable[[list[Any]], bool]:
    if condition.exists is not None:
        wanted = condition.exists
        return lambda values: bool(values) == wanted
    if condition.matches is not None:
        found = compile_pattern(condition.matches)
        return lambda values: any(isinstance(v, str) and found(v) for v in values)
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
