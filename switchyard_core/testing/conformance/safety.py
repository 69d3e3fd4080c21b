"""Checks that a router decides for every request, and touches nobody's session but its own."""

from __future__ import annotations

import re
from collections.abc import Mapping

from switchyard_core.decision import Decision, Failure, Latch
from switchyard_core.errors import RequestError
from switchyard_core.request import Request
from switchyard_core.router import RetryingRouter
from switchyard_core.testing.conformance.bench import Bench, Trial, describe, require
from switchyard_core.testing.conformance.samples import (
    empty_requests,
    huge_request,
    side_calls,
)

__all__ = [
    "check_dry_run",
    "check_effects",
    "check_empty",
    "check_housekeeping",
    "check_huge",
    "check_reason",
    "check_targets",
]

_CODE = re.compile(r"[a-z][a-z0-9_]*")
_FAILURES = (
    Failure(kind="transport", status=0, code="connect", body=b""),
    Failure(kind="status", status=429, code="rate_limit_error", body=b"{}"),
    Failure(kind="status", status=500, code="server_error", body=b""),
    Failure(kind="status", status=400, code="context_length_exceeded", body=b"no JSON"),
)


async def check_empty(trial: Trial) -> None:
    """Require an outcome for requests with next to nothing in them.

    Raises:
        AssertionError: Names the history and what was raised.
    """
    bench = trial.bench()
    for name, request in empty_requests(trial.wire_format, bench.runtime.route.id).items():
        _require_target(bench, await bench.route(request, what=f"a request with {name}"), name)


async def check_huge(trial: Trial) -> None:
    """Require an outcome for a request of two megabytes.

    Raises:
        AssertionError: Names what was raised.
    """
    bench = trial.bench()
    what = "a request with a thousand tool calls"
    request = huge_request(trial.wire_format, bench.runtime.route.id)
    _require_target(bench, await bench.route(request, what=what), what)


async def check_targets(trial: Trial) -> None:
    """Require that a router chooses and asks only targets that its route declares.

    Raises:
        AssertionError: Names the target.
    """
    bench = trial.bench()
    for name, request in _all_requests(trial, bench).items():
        outcome = await bench.route(request, what=name)
        _require_target(bench, outcome, name)
        if isinstance(outcome, Decision):
            await _check_next(bench, request, outcome, name)
    strangers = bench.asked - set(bench.runtime.route.targets)
    require(
        not strangers,
        f"the router asked {sorted(strangers)}, which its options do not name: {_advice(bench)}",
    )


async def _check_next(bench: Bench, request: Request, failed: Decision, name: str) -> None:
    if isinstance(bench.runtime.router, RetryingRouter):
        for failure in _FAILURES:
            what = f"{name}, after {failure.code}"
            again = await bench.next(request, failed, failure, what=what)
            if again is not None:
                _require_target(bench, again, what)


def _require_target(bench: Bench, outcome: Decision | RequestError, name: str) -> None:
    if isinstance(outcome, Decision):
        require(
            outcome.target in bench.runtime.route.targets,
            f"the router chose `{outcome.target}`, which its options do not name ({name}): "
            f"{_advice(bench)}",
        )


def _advice(bench: Bench) -> str:
    declared = ", ".join(bench.runtime.route.targets) or "none"
    return f"type such options as `TargetName`; declared here: {declared}"


async def check_reason(trial: Trial) -> None:
    """Require a snake_case code as the reason of each decision, and a word or none as phase.

    Raises:
        AssertionError: Names the word.
    """
    bench = trial.bench()
    for name, request in _all_requests(trial, bench).items():
        outcome = await bench.route(request, what=name)
        if isinstance(outcome, Decision):
            code, phase = outcome.reason.code, outcome.phase
            require(
                _CODE.fullmatch(code),
                f"the reason's code {code!r} is no word ({name}): use snake_case, and put the "
                "sentence into `detail`",
            )
            require(
                not phase or _CODE.fullmatch(phase),
                f"the phase {phase!r} is no word ({name}): use snake_case, or leave it out",
            )


async def check_housekeeping(trial: Trial) -> None:
    """Require that side calls latch nothing.

    Raises:
        AssertionError: Names the request.
    """
    bench = trial.bench()
    model = bench.runtime.route.id
    requests = {**trial.requests(model), **side_calls(trial.wire_format, model)}
    for name, request in requests.items():
        outcome = await bench.route(request, what=name, housekeeping=True)
        latches = isinstance(outcome, Decision) and any(
            isinstance(effect, Latch) for effect in outcome.effects
        )
        require(
            not latches,
            f"the router latches for a side call ({name}): give no `Latch` when "
            "`context.housekeeping` is true",
        )


async def check_effects(trial: Trial) -> None:
    """Require that effects name the request's own identity.

    Raises:
        AssertionError: Names the effect.
    """
    bench = trial.bench()
    for name, request in _all_requests(trial, bench).items():
        outcome = await bench.route(request, what=name)
        own = bench.runtime.sessions.read(request)
        for effect in outcome.effects if isinstance(outcome, Decision) else ():
            require(
                effect.identity == own,
                f"{type(effect).__name__} names {effect.identity}, and the request is of {own} "
                f"({name}): use `context.session.identity`",
            )


async def check_dry_run(trial: Trial) -> None:
    """Require that a rehearsal leaves the store and the router as they were.

    Raises:
        AssertionError: Names the request and what differs.
    """
    plain, rehearsed = trial.bench(), trial.bench()
    expected = [
        (name, describe(await plain.decide(request, what=name)))
        for name, request in trial.requests(plain.runtime.route.id).items()
    ]
    for name, decision in expected:
        request, again = (trial.requests(plain.runtime.route.id)[name] for _ in range(2))
        rehearsed.harness.engine.runtime_for(request)
        before = await rehearsed.latches(request)
        await rehearsed.decide(request, what=name, dry_run=True)
        after = await rehearsed.latches(request)
        require(
            before == after,
            f"a dry run changed the latch store ({name}): {before}, then {after}; return effects "
            "in the decision, the engine applies them",
        )
        found = describe(await rehearsed.decide(again, what=name))
        require(
            found == decision,
            f"after a dry run the router decides differently ({name}): {decision}, then {found}; "
            "keep nothing in the router, a dry run is not to be seen",
        )


def _all_requests(trial: Trial, bench: Bench) -> Mapping[str, Request]:
    model = bench.runtime.route.id
    return {**trial.requests(model), **empty_requests(trial.wire_format, model)}
