"""The route type ``rules``: an ordered list of conditions on the request."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from pydantic import Field, model_validator

from switchyard_core import (
    Decision,
    JSONPathText,
    OptionError,
    Options,
    PatternText,
    Reason,
    Request,
    RouteContext,
    TargetName,
)
from switchyard_core.jsonio import compile_path
from switchyard_core.patterns import compile_pattern

__all__ = ["Condition", "Rule", "RulesOptions", "RulesRouter"]

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
        not_: Reverses the result (key ``not``).
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

    def compiled(self) -> Test:
        """Return the condition as a function of a request; it does not fail on any request."""
        values, holds = self._values(), self._test()
        return lambda request: holds(values(request)) != self.not_

    def _values(self) -> Callable[[Request], list[Any]]:
        if self.path is not None:
            path = compile_path(self.path)
            return lambda request: path.values(request.tree())
        name = self.header or ""
        return lambda request: [request.headers[name]] if name in request.headers else []

    def _test(self) -> Callable[[list[Any]], bool]:
        if self.exists is not None:
            return lambda values: bool(values) == self.exists
        if self.matches is not None:
            found = compile_pattern(self.matches)
            return lambda values: any(isinstance(v, str) and found(v) for v in values)
        if self.not_in is not None:
            refused = self.not_in
            return lambda values: bool(values) and not _meets(values, refused)
        listed = [self.equals] if self.in_ is None else self.in_
        return lambda values: _meets(values, listed)


def _meets(values: list[Any], listed: list[Any]) -> bool:
    return any(_same(value, other) for value in values for other in listed)


def _same(left: Any, right: Any) -> bool:
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    return bool(left == right)


class Rule(Options):
    """One rule.

    Args:
        target: Serves the requests for which every condition holds.
        where: Conditions, one or more.
        name: For reasons and logs; the number of the rule when absent.
    """

    target: TargetName
    where: list[Condition] = Field(min_length=1)
    name: str | None = None


class RulesOptions(Options):
    """Options of ``type = "rules"``.

    Args:
        rules: Tried in order; the first that holds decides.
        default_target: Serves the requests for which none holds.
    """

    rules: list[Rule] = Field(default_factory=list)
    default_target: TargetName


class RulesRouter:
    """Sends a request to the target of the first rule whose conditions all hold."""

    def __init__(self, options: RulesOptions) -> None:
        self._default = options.default_target
        self._rules = tuple(
            (
                rule.name or f"rules[{number}]",
                rule.target,
                tuple(condition.compiled() for condition in rule.where),
            )
            for number, rule in enumerate(options.rules)
        )

    async def route(self, request: Request, context: RouteContext) -> Decision:  # noqa: ARG002  # protocol
        """Return the target of the first rule that holds, or the default."""
        for name, target, tests in self._rules:
            if all(test(request) for test in tests):
                reason = Reason(
                    code="rule", detail=f"the rule `{name}` holds", facts={"rule": name}
                )
                return Decision(target=target, reason=reason)
        reason = Reason(code="no_rule", detail="no rule holds for this request")
        return Decision(target=self._default, reason=reason)
