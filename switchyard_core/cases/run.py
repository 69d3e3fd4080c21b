"""Decides the requests of a policy's test file and compares the results.

No call, no environment, a fixed clock and a fixed seed: a run gives the same result everywhere.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from switchyard_core.cases.file import (
    Case,
    CaseFile,
    ExpectModel,
    Step,
    lost,
    policy_of,
    read_cases,
)
from switchyard_core.engine.calling import script_findings
from switchyard_core.engine.response import Outcome
from switchyard_core.errors import Finding, PluginError, PolicyError, RequestError
from switchyard_core.explain.explanation import Explanation, Question, explain_or_ask
from switchyard_core.jsonio.path import compile_path
from switchyard_core.plugins import PluginRegistry
from switchyard_core.policy import Policy, load_policy
from switchyard_core.policy.places import Location
from switchyard_core.policy.values import same_json
from switchyard_core.world import World

if TYPE_CHECKING:
    from switchyard_core.switchyard import Switchyard

__all__ = [
    "CaseResult",
    "Coverage",
    "FileResult",
    "Mismatch",
    "State",
    "Uncovered",
    "run_cases",
    "run_file",
]

#: ``ERROR`` means that the case could not run.
State = Literal["PASS", "FAIL", "ERROR"]

_SEED = 0
#: Most characters of a value in a mismatch.
_SHOWN = 200
_NOTHING = "nothing"


#: Makes the switchyard of a case: the class ``Switchyard``, which is above this room.
Maker: TypeAlias = "Callable[..., Switchyard]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mismatch:
    """One expectation that does not hold."""

    what: str  # what was compared, such as ``target`` or ``body $.model``
    expected: str  # as JSON or in words
    got: str
    where: str  # ``file:line:column`` of the expectation

    def render(self) -> str:
        """Return it as one line."""
        return f"{self.where}: {self.what}: expected {self.expected}, got {self.got}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """The result of a case."""

    name: str
    where: str  # ``file:line:column`` of the case
    state: State
    mismatches: tuple[Mismatch, ...] = ()  # why it failed
    error: str = ""  # why it could not run
    story: str = ""  # the explanation of the request, for people


@dataclass(frozen=True, slots=True, kw_only=True)
class Uncovered:
    """A part of a policy that no case exercised."""

    kind: Literal["route", "rule"]
    name: str  # name of the route; rule set and rule with a slash between
    where: str  # ``file:line:column`` of it


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """What the cases of one policy exercised; rules of packs are not counted.

    A route counts when a request led to it, a rule when it decided a call's label.
    """

    routes: int  # how many the policy has
    rules: int  # how many its own rule sets have
    uncovered: tuple[Uncovered, ...]  # those that no case exercised, in the order of the policy

    def missing(self, kind: Literal["route", "rule"]) -> int:
        """Return how many of a kind no case exercised."""
        return sum(part.kind == kind for part in self.uncovered)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileResult:
    """The result of a test file."""

    file: str  # the test file as the user gave it
    policy: str  # the policy that it is about
    #: mistakes in the policy or in the test file; no case was run then
    findings: tuple[Finding, ...] = ()
    cases: tuple[CaseResult, ...] = ()  # one result per case, in the order of the file
    coverage: Coverage | None = None  # what the cases exercised, ``None`` when none was run

    def count(self, state: State) -> int:
        """Return how many cases ended in a state; each mistake of the file is an ``ERROR``."""
        mistakes = len(self.findings) if state == "ERROR" else 0
        return mistakes + sum(case.state == state for case in self.cases)


def run_file(tests: Path, registry: PluginRegistry, make: Maker) -> FileResult:
    """Run the test file of a policy; ``make`` is ``Switchyard``, which is above this room."""
    policy_path = policy_of(tests)
    file, name = str(tests), str(policy_path)
    if not policy_path.exists():
        return FileResult(file=file, policy=name, findings=(lost(tests),))
    try:
        policy = load_policy(policy_path, registry)
        wrong = script_findings(policy)
        cases = None if wrong else read_cases(tests, policy, registry)
    except PolicyError as error:
        cases, wrong = None, error.findings
    if cases is None:
        errors = tuple(found for found in wrong if found.severity == "error")
        return FileResult(file=file, policy=name, findings=errors)
    results, coverage = asyncio.run(run_cases(cases, policy, registry, make))
    return FileResult(file=file, policy=name, cases=results, coverage=coverage)


async def run_cases(
    cases: CaseFile, policy: Policy, registry: PluginRegistry, make: Maker
) -> tuple[tuple[CaseResult, ...], Coverage]:
    """Run cases, each on its own switchyard, so that none sees what another latched."""
    exercised = _Exercised()
    yard = partial(_yard, policy, registry, make)
    results = tuple([await _run(case, cases, yard, exercised) for case in cases.cases])
    return results, exercised.coverage(policy, registry)


@dataclass(slots=True, kw_only=True)
class _Exercised:
    """The routes and rules that cases exercised."""

    routes: set[str] = field(default_factory=set)
    rules: set[tuple[str, str]] = field(default_factory=set)

    def add(self, found: Explanation | Question) -> None:
        if isinstance(found, Question):
            self.routes.add(found.route)
            return
        self.routes.add(found.decision.route)
        for call in found.decision.trace.get("calls") or ():
            if call.get("rule"):
                self.rules.add((call["rule_set"], call["rule"]))

    def coverage(self, policy: Policy, registry: PluginRegistry) -> Coverage:
        """Compare with all that a policy has; the packs of the registry are left out."""
        where = policy.document.where
        uncovered = [
            Uncovered(kind="route", name=name, where=where(("routes", name), at_key=True))
            for name in policy.routes
            if name not in self.routes
        ]
        rules = [
            (name, key, place, own or f"{key}[{place}]")
            for name, model in policy.rule_sets.items()
            if name not in registry.rule_sets
            for key, names in (
                ("rules", [rule.name for rule in model.rules]),
                ("text", [rule.name for rule in model.text]),
            )
            for place, own in enumerate(names)
        ]
        uncovered += [
            Uncovered(
                kind="rule",
                name=f"{name}/{label}",
                where=where(("mutation_rules", name, key, place), at_key=True),
            )
            for name, key, place, label in rules
            if (name, label) not in self.rules
        ]
        return Coverage(routes=len(policy.routes), rules=len(rules), uncovered=tuple(uncovered))


async def _run(
    case: Case, file: CaseFile, make: Callable[[], Switchyard], exercised: _Exercised
) -> CaseResult:
    def ended(state: State, **more: Any) -> CaseResult:
        return CaseResult(name=case.name, where=file.where(case.location), state=state, **more)

    try:
        yard = make()
        for number, step in enumerate(case.before, 1):
            trouble = await _earlier(yard, step, exercised)
            if trouble:
                return ended("ERROR", error=f"earlier request {number} {trouble}")
        found = await _decide(yard, case.step, exercised)
    except PluginError as error:
        return ended("ERROR", error=str(error))
    if isinstance(found, Question):
        return ended("ERROR", error=_unanswered(found), story=found.as_text())
    wrong = tuple(
        Mismatch(
            what=what,
            expected=expected,
            got=got,
            where=file.where((*case.location, "expect", *place)),
        )
        for place, what, expected, got in _differences(case.expect, found)
    )
    story = _refusal(found) if isinstance(found, RequestError) else found.as_text()
    return ended("FAIL" if wrong else "PASS", mismatches=wrong, story=story)


def _yard(policy: Policy, registry: PluginRegistry, make: Maker) -> Switchyard:
    numbers = count(1)
    world = World(
        environ={},
        random=Random(_SEED),  # noqa: S311  # lots that can be drawn again
        clock=lambda: 0.0,
        new_id=lambda prefix: f"{prefix}_{next(numbers):024x}",
    )
    return make(policy, registry, world=world)


async def _decide(
    yard: Switchyard, step: Step, exercised: _Exercised
) -> Explanation | Question | RequestError:
    try:
        found = await explain_or_ask(yard, step.request, step.replies, dry_run=False)
    except RequestError as error:
        name = yard.facts_of(step.request).route
        if name:
            exercised.routes.add(name)
        return error
    exercised.add(found)
    return found


async def _earlier(yard: Switchyard, step: Step, exercised: _Exercised) -> str:
    """Decide an earlier request; return why it was not served, ``""`` if it was."""
    found = await _decide(yard, step, exercised)
    if isinstance(found, RequestError):
        return f"was refused: {found.status} {found.code}: {found.message}"
    if isinstance(found, Question):
        return _unanswered(found)
    taken = {} if step.usage is None else {found.decision.target: step.usage}
    outcome = Outcome(status=200, ok=True, bytes_out=0, duration_s=0.0, usage_by_target=taken)
    await yard.finish(found.decision, ok=True, outcome=outcome)
    return ""


def _unanswered(question: Question) -> str:
    target = question.target
    return f'would ask `{target}`: add its reply, replies = {{ {target} = ["..."] }}'


def _refusal(error: RequestError) -> str:
    place = f" at `{error.param}`" if error.param else ""
    return f"refused   {error.status} {error.code}{place}\n          {error.message}\n"


# --- expected and actual values ---------------------------------------------------------------

#: An expectation that does not hold: its place in ``expect``, what was compared, the expected
#: value, the actual one.
_Difference = tuple[Location, str, str, str]


def _differences(expect: ExpectModel, found: Explanation | RequestError) -> Iterator[_Difference]:
    if isinstance(found, RequestError):
        yield from _of_refusal(expect, found)
    else:
        yield from _of_decision(expect, found)
        yield from _of_body(expect, found.after)


def _of_refusal(expect: ExpectModel, error: RequestError) -> Iterator[_Difference]:
    if expect.error is None and expect.status is None:
        yield (), "decision", "a decision", f"refused with {error.status} {error.code}"
    if expect.error is not None and expect.error != error.code:
        yield _differ("error", expect.error, error.code)
    if expect.status is not None and expect.status != error.status:
        yield _differ("status", expect.status, error.status)


def _of_decision(expect: ExpectModel, found: Explanation) -> Iterator[_Difference]:
    decision = found.decision
    for key, wanted in (("error", expect.error), ("status", expect.status)):
        if wanted is not None:
            yield (key,), key, _shown(wanted), f"a decision for `{decision.target}`"
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


def _of_body(expect: ExpectModel, body: bytes) -> Iterator[_Difference]:
    if not expect.body and not expect.absent:
        return
    tree = json.loads(body)
    for path, wanted in expect.body.items():
        values = compile_path(path).values(tree)
        # Several values are compared as an array.
        actual = values[0] if len(values) == 1 else values
        if not values:
            yield ("body", path), f"body {path}", _shown(wanted), _NOTHING
        elif not same_json(wanted, actual):
            yield _differ("body", wanted, actual, path)
    for number, path in enumerate(expect.absent):
        values = compile_path(path).values(tree)
        if values:
            yield ("absent", number), f"absent {path}", _NOTHING, _shown(values[0])


def _differ(key: str, wanted: Any, actual: Any, name: str = "") -> _Difference:
    got = _NOTHING if actual is None and name else _shown(actual)
    if name:
        return (key, name), f"{key} {name}", _shown(wanted), got
    return (key,), key, _shown(wanted), got


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(text)} characters)"
