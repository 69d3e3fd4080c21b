"""The end of an answer: told once, whoever leaves meanwhile."""

from __future__ import annotations

import asyncio
import time

from switchyard_core import Decision, Outcome, Reason, Response
from switchyard_core.upstream.base import UpstreamResponse


async def _chunks():
    yield b"whole"


async def test_a_caller_cancelled_at_any_step_ends_its_request_once():
    told: dict[int, list[Outcome]] = {}
    for step in range(12):
        outcomes = told[step] = []

        async def slowly() -> None:
            await asyncio.sleep(0)

        async def finish(outcome: Outcome, outcomes: list[Outcome] = outcomes) -> None:
            await asyncio.sleep(0)
            outcomes.append(outcome)

        response = Response(
            UpstreamResponse(200, (), _chunks(), slowly),
            decision=Decision(target="t", reason=Reason(code="c")),
            reports=(),
            finish=finish,
            clock=time.monotonic,
        )

        async def read(response: Response = response) -> None:
            async with response:
                await response.read()

        task = asyncio.ensure_future(read())
        for _ in range(step):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await asyncio.sleep(0.005)

    # Step 0: the task was cancelled before it began, so there was nothing to end.
    assert {step: len(outcomes) for step, outcomes in told.items() if step} == dict.fromkeys(
        range(1, 12), 1
    )
