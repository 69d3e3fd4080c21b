"""Compares what a case expects with what came of its request."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from switchyard_core.errors import RequestError
from switchyard_core.explain.explanation import Explanation
from switchyard_core.jsonio.path import compile_path
from switchyard_core.policy.positions import Location
from switchyard_core.workbench.case_models import ExpectModel

__all__ = ["Difference", "differences"]

_SHOWN = 200
_NOTHING = "nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One expectation that does not hold.

    Args:
        what: What was looked at, such as ``target`` or ``body $.model``.
        expected: What was expected, as JSON or in words.
        got: What came instead.
        place: Place of the expectation in the table ``expect``.
    """

    what: str
    expected: str
    got: str
    place: Location


def differences(expect: ExpectModel, found: Explanation | RequestError) -> list[Difference]:
    """Return every expectation that does not hold, in the order of the keys' reference."""
    if isinstance(found, RequestError):
        return list(_of_refusal(expect, found))
    return [*_of_decision(expect, found), *_of_body(expect, found.after)]


def _of_refusal(expect: ExpectModel, error: RequestError) -> Iterator[Difference]:
    if expect.error is None and expect.status is None:
        yield Difference(
            what="decision",
            expected="a decision",
            got=f"refused with {error.status} {error.code}",
            place=(),
        )
    if expect.error is not None and expect.error != error.code:
        yield _differ("error", expect.error, error.code)
    if expect.status is not None and expect.status != error.status:
        yield _differ("status", expect.status, error.status)


def _of_decision(expect: ExpectModel, found: Explanation) -> Iterator[Difference]:
    decision = found.decision
    got = f"a decision for `{decision.target}`"
    for key, wanted in (("error", expect.error), ("status", expect.status)):
        if wanted is not None:
            yield Difference(what=key, expected=_shown(wanted), got=got, place=(key,))
    for key, wanted, actual in (
        ("route", expect.route, decision.route),
        ("target", expect.target, decision.target),
        ("phase", expect.phase, decision.phase),
        ("reason", expect.reason, decision.reason.code),
        ("latched", expect.latched, decision.trace.get("latched_after", False)),
    ):
        if wanted is not None and wanted != actual:
            yield _differ(key, wanted, actual)
    for name, wanted in expect.facts.items():
        fact = decision.reason.facts.get(name)
        if fact != wanted:
            yield _differ("facts", wanted, fact, name)
    warned = sorted(warning.code for warning in decision.warnings)
    if expect.warnings is not None and sorted(expect.warnings) != warned:
        yield _differ("warnings", sorted(expect.warnings), warned)
    changed = [report.name for report in found.reports if report.changes]
    if expect.rewrites is not None and expect.rewrites != changed:
        yield _differ("rewrites", expect.rewrites, changed)


def _of_body(expect: ExpectModel, body: bytes) -> Iterator[Difference]:
    if not expect.body and not expect.absent:
        return
    tree = json.loads(body)
    for path, wanted in expect.body.items():
        values = compile_path(path).values(tree)
        # One value is meant as it is; several are compared as the array of them.
        actual = values[0] if len(values) == 1 else values
        if not values:
            yield Difference(
                what=f"body {path}",
                expected=_shown(wanted),
                got=_NOTHING,
                place=("body", path),
            )
        elif not _same(wanted, actual):
            yield _differ("body", wanted, actual, path)
    for number, path in enumerate(expect.absent):
        values = compile_path(path).values(tree)
        if values:
            yield Difference(
                what=f"absent {path}",
                expected=_NOTHING,
                got=_shown(values[0]),
                place=("absent", number),
            )


def _differ(key: str, wanted: Any, actual: Any, name: str = "") -> Difference:
    return Difference(
        what=f"{key} {name}" if name else key,
        expected=_shown(wanted),
        got=_NOTHING if actual is None and name else _shown(actual),
        place=(key, name) if name else (key,),
    )


def _same(left: Any, right: Any) -> bool:
    """Compare as JSON does: a boolean is never equal to a number."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_same(left[k], right[k]) for k in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_same, left, right))
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    return bool(left == right)


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(text)} characters)"
