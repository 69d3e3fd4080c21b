"""A server under callers that leave and a provider that breaks HTTP: nothing leaks, nothing mixes.

`.ci/run stress` runs them, once with the event loop and the parser of a plain installation, once
with those of the extra `fast`. `SWITCHYARD_STRESS_TIMES=10` makes them ten times as long.
"""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import os
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.stress.callers import Caller, Tally, plans, swarm
from tests.stress.marks import Mark
from tests.stress.provider import LATE_S
from tests.stress.stand import LOOPS, standing

TIMES = int(os.environ.get("SWITCHYARD_STRESS_TIMES", "1"))
#: Callers side by side. Few: a server in a rush notices a caller that left too late to be caught.
CALLERS = 12

pytestmark = [
    pytest.mark.stress,
    pytest.mark.timeout(150 * TIMES),
    pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="reads /proc"),
]


@pytest.fixture(
    params=[
        pytest.param(
            name,
            marks=pytest.mark.skipif(
                name == "uvloop" and not (find_spec("uvloop") and find_spec("httptools")),
                reason="the extra `fast` is not installed",
            ),
        )
        for name in LOOPS
    ]
)
def loop(request):
    return request.param


async def test_10000_aborts_at_random_moments_lose_no_connection(loop, tmp_path):
    wanted = 10_000 * TIMES
    tally = Tally()
    leaving = itertools.takewhile(
        lambda _: tally.aborts.total() < wanted, plans(seed=1, faults=0.0, aborts=0.95)
    )
    async with standing(loop, tmp_path) as stand:
        await swarm(stand.url, itertools.islice(plans(2, faults=0, aborts=0), 500), callers=CALLERS)
        before = await stand.at_rest()
        await swarm(stand.url, leaving, callers=CALLERS, tally=tally)
        after = await stand.at_rest()

        print(f"{tally.aborts} {before} {after}")
        assert not tally.problems, "\n".join(tally.problems)
        # So many connections to the provider may be at rest more than before.
        assert after.descriptors <= before.descriptors + 2 * CALLERS
        assert after.active == 0
        assert stand.tracebacks() == 0


async def test_no_answer_carries_anothers_mark_whatever_the_provider_does(loop, tmp_path):
    todo = itertools.islice(plans(seed=3, faults=0.6, aborts=0.1), 1_000 * TIMES)
    async with standing(loop, tmp_path) as stand:
        tally = await swarm(stand.url, todo, callers=CALLERS)
        after = await stand.at_rest()

        print(f"{tally.faults} {tally.statuses} {after}")
        assert not tally.problems, "\n".join(tally.problems)
        assert after.active == 0
        assert stand.tracebacks() == 0


async def test_an_answer_that_comes_again_while_its_connection_rests_reaches_nobody(loop, tmp_path):
    tally = Tally()
    async with standing(loop, tmp_path) as stand:
        caller = Caller(stand.url, tally)
        for plan in itertools.islice(plans(seed=4, faults=0.0, aborts=0.0), 40):
            again = Mark(plan.mark.number + (1 << 31), "late_duplicate")
            await caller.ask(dataclasses.replace(plan, mark=again))
            await asyncio.sleep(LATE_S * 2)
            await caller.ask(plan)
        await caller.close()

        assert not tally.problems, "\n".join(tally.problems)
