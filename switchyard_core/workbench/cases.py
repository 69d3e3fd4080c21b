"""Policy tests: decides the requests of a test file and compares what comes of them.

Nothing is called, the environment is not read, the clock stands still and lots are drawn from
a fixed seed, so a run gives the same result everywhere.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from random import Random
from typing import Literal

from switchyard_core.engine.calling import script_findings
from switchyard_core.errors import Finding, PluginError, PolicyError, RequestError
from switchyard_core.explain.explanation import Explanation, Question, explain_or_ask
from switchyard_core.plugins import PluginRegistry
from switchyard_core.policy import Policy, load_policy
from switchyard_core.switchyard import Switchyard
from switchyard_core.workbench.case_file import Case, CaseFile, Step, lost, policy_of, read_cases
from switchyard_core.workbench.coverage import Coverage
from switchyard_core.workbench.expectations import differences
from switchyard_core.world import World

__all__ = ["CaseResult", "FileResult", "Mismatch", "State", "run_cases", "run_file"]

#: ``ERROR`` means that the case could not be carried out, so it says nothing of the policy.
State = Literal["PASS", "FAIL", "ERROR"]

_SEED = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Mismatch:
    """One expectation that does not hold.

    Args:
        what: What was looked at, such as ``target``.
        expected: What was expected, as JSON.
        got: What came instead.
        where: ``file:line:column`` of the expectation.
    """

    what: str
    expected: str
    got: str
    where: str

    def render(self) -> str:
        """Return it as one line."""
        return f"{self.where}: {self.what}: expected {self.expected}, got {self.got}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """What came of a case.

    Args:
        name: Name of the case.
        where: ``file:line:column`` of the case.
        state: ``PASS``, ``FAIL`` or ``ERROR``.
        mismatches: Why it failed.
        error: Why it could not be carried out.
        story: The explanation of the request, for people; ``""`` when there is none.
    """

    name: str
    where: str
    state: State
    mismatches: tuple[Mismatch, ...] = ()
    error: str = ""
    story: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileResult:
    """What came of a test file.

    Args:
        file: The test file as the user gave it.
        policy: The policy that it is about.
        findings: Mistakes in the policy or in the test file; no case was run then.
        cases: One result per case, in the order of the file.
        coverage: What the cases exercised, ``None`` when none was run.
    """

    file: str
    policy: str
    findings: tuple[Finding, ...] = ()
    cases: tuple[CaseResult, ...] = ()
    coverage: Coverage | None = None

    def count(self, state: State) -> int:
        """Return how many cases ended in a state; a file with mistakes is one ``ERROR``."""
        mistakes = 1 if self.findings and state == "ERROR" else 0
        return mistakes + sum(case.state == state for case in self.cases)


@dataclass(slots=True, kw_only=True)
class _Seen:
    """What the cases of a file have exercised so far."""

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


def run_file(tests: Path, registry: PluginRegistry) -> FileResult:
    """Run the test file of a policy; never raises for what is wrong with one of them.

    Args:
        tests: The test file, ``<name>.test.toml``; its policy ``<name>.toml`` is beside it.
        registry: Installed plugins.
    """
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
    results, coverage = asyncio.run(run_cases(cases, policy, registry))
    return FileResult(file=file, policy=name, cases=results, coverage=coverage)


async def run_cases(
    cases: CaseFile, policy: Policy, registry: PluginRegistry
) -> tuple[tuple[CaseResult, ...], Coverage]:
    """Run cases, each on an engine of its own, so that none sees what another latched.

    Args:
        cases: The cases.
        policy: The policy that they were read for.
        registry: The plugins that it was checked with.
    """
    seen = _Seen()
    results = tuple([await _run(case, cases, policy, registry, seen) for case in cases.cases])
    return results, Coverage.of(policy, registry, routes=seen.routes, rules=seen.rules)


async def _run(
    case: Case, file: CaseFile, policy: Policy, registry: PluginRegistry, seen: _Seen
) -> CaseResult:
    where = file.where(case.location)
    try:
        numbers = count(1)
        engine = Switchyard(
            policy,
            registry,
            world=World(
                environ={},
                random=Random(_SEED),  # noqa: S311  # lots that can be drawn again
                clock=lambda: 0.0,
                new_id=lambda prefix: f"{prefix}_{next(numbers):024x}",
            ),
        )
        for number, step in enumerate(case.before, 1):
            trouble = await _earlier(engine, step, seen)
            if trouble:
                trouble = f"earlier request {number} {trouble}"
                return CaseResult(name=case.name, where=where, state="ERROR", error=trouble)
        found = await _decide(engine, case.step, seen)
    except PluginError as error:
        return CaseResult(name=case.name, where=where, state="ERROR", error=str(error))
    if isinstance(found, Question):
        return CaseResult(
            name=case.name,
            where=where,
            state="ERROR",
            error=_unanswered(found),
            story=found.as_text(),
        )
    story = _refusal(found) if isinstance(found, RequestError) else found.as_text()
    mismatches = tuple(
        Mismatch(
            what=wrong.what,
            expected=wrong.expected,
            got=wrong.got,
            where=file.where((*case.location, "expect", *wrong.place)),
        )
        for wrong in differences(case.expect, found)
    )
    state: State = "FAIL" if mismatches else "PASS"
    return CaseResult(name=case.name, where=where, state=state, mismatches=mismatches, story=story)


async def _decide(
    engine: Switchyard, step: Step, seen: _Seen
) -> Explanation | Question | RequestError:
    try:
        found = await explain_or_ask(engine, step.request, step.replies, dry_run=False)
    except RequestError as error:
        name = engine.facts_of(step.request).route
        if name:
            seen.routes.add(name)
        return error
    seen.add(found)
    return found


async def _earlier(engine: Switchyard, step: Step, seen: _Seen) -> str:
    """Decide an earlier request; return why it was not served, ``""`` if it was."""
    found = await _decide(engine, step, seen)
    if isinstance(found, RequestError):
        return f"was refused: {found.status} {found.code}: {found.message}"
    if isinstance(found, Question):
        return _unanswered(found)
    await engine.finish(found.decision, ok=True)
    return ""


def _unanswered(question: Question) -> str:
    target = question.target
    return f'would ask `{target}`: add its reply, replies = {{ {target} = ["..."] }}'


def _refusal(error: RequestError) -> str:
    place = f" at `{error.param}`" if error.param else ""
    return f"refused   {error.status} {error.code}{place}\n          {error.message}\n"
