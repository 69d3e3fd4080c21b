"""Checks of what is sent on for a router's decisions."""

from __future__ import annotations

from collections.abc import AsyncIterator

from switchyard_core.decision import Decision
from switchyard_core.request import Request
from switchyard_core.testing.conformance.bench import Bench, Trial, require
from switchyard_core.testing.conformance.bodies import require_key_order, require_unknown_fields
from switchyard_core.testing.conformance.samples import odd_request
from switchyard_core.testing.validity import validity_problems

__all__ = ["check_idempotence", "check_key_order", "check_unknown_fields", "check_validity"]

_WHO = "the router's rewrites"


async def check_unknown_fields(trial: Trial) -> None:
    """Require that unknown fields are sent on with the bytes in which they came.

    Raises:
        AssertionError: Names the field and the request.
    """
    async for name, request, _, body in _sent(trial, trial.bench(), odd=True):
        require_unknown_fields(request, body, what=name, who=_WHO, removes=trial.removes)


async def check_key_order(trial: Trial) -> None:
    """Require that the caller's keys keep their order.

    Raises:
        AssertionError: Names the object and both orders.
    """
    async for name, request, _, body in _sent(trial, trial.bench(), odd=True):
        require_key_order(request, body, what=name, who=_WHO)


async def check_idempotence(trial: Trial) -> None:
    """Require that the rewrites of a decision change nothing when they run again.

    Raises:
        AssertionError: Names the request.
    """
    bench = trial.bench()
    async for name, request, decision, body in _sent(trial, bench, odd=False):
        rewritten = Request(wire_format=request.wire_format, body=body, headers=request.headers)
        again = bench.rewritten(rewritten, decision, what=name)
        require(
            again == body,
            f"{_WHO} change a body that they have already rewritten ({name}): "
            f"{_difference(body, again)}; look whether the change is there before you make it",
        )


async def check_validity(trial: Trial) -> None:
    """Require that a valid body is valid when it is sent on.

    Raises:
        AssertionError: Names the request and what the provider would refuse.
    """
    async for name, request, _, body in _sent(trial, trial.bench(), odd=False):
        if not validity_problems(request.wire_format, request.body):
            problems = validity_problems(request.wire_format, body)
            require(
                not problems,
                f"{_WHO} make a body that the provider refuses ({name}): {'; '.join(problems)}",
            )


async def _sent(
    trial: Trial, bench: Bench, *, odd: bool
) -> AsyncIterator[tuple[str, Request, Decision, bytes]]:
    for name, request in trial.requests(bench.runtime.route.id).items():
        asked = odd_request(request) if odd else request
        sent = await bench.sent(asked, what=name)
        if sent is not None:
            yield name, asked, *sent


def _difference(before: bytes, after: bytes) -> str:
    """Return where two bodies part, with a little of what follows."""
    start = next(
        (n for n, (one, other) in enumerate(zip(before, after, strict=False)) if one != other),
        min(len(before), len(after)),
    )
    cut = slice(max(0, start - 20), start + 60)
    return (
        f"…{before[cut].decode(errors='replace')}… became …{after[cut].decode(errors='replace')}…"
    )
