"""Checks of what an answer asks: its request decides it, and nothing is left running."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from typing import Any

from switchyard_core.testing.conformance.bench import Bench, Trial, require
from switchyard_core.testing.conformance.interview import (
    Interview,
    answering_bench,
    every_request,
)
from switchyard_core.testing.conformance.watching import Watch, reads_clock, reads_randomness
from switchyard_core.testing.validity import validity_problems

__all__ = [
    "check_bodies",
    "check_calls",
    "check_clock",
    "check_closing",
    "check_randomness",
    "check_silence",
    "check_targets",
]

#: Most calls of one answer that are held back, one after the other.
_CALLS = 8
#: Turns of the event loop in which what was left running would show itself.
_TURNS = 5
#: Seconds after which an answer that was closed and did not end is given up.
_PATIENCE_S = 5.0


async def check_calls(trial: Trial) -> None:
    """Require the same calls byte for byte, whatever clock, randomness and ids are.

    Raises:
        AssertionError: Names the request and both bodies.
    """
    bench, other = trial.bench(), trial.bench()
    model = bench.runtime.route.id
    state = random.getstate()
    try:
        first = {}
        for name, request in trial.requests(model).items():
            random.seed(0)
            told = Interview(bench, request, what=name)
            await told.run()
            first[name] = told.calls
        # In another order: nothing may be left over from the requests before.
        for setting, who in enumerate((bench, other), 1):
            for name, request in reversed(list(trial.requests(model).items())):
                random.seed(setting)
                told = Interview(who, request, what=name, setting=setting)
                await told.run()
                _require_same(first[name], told.calls, name)
    finally:
        random.setstate(state)


def _require_same(
    before: list[tuple[str, bytes]], after: list[tuple[str, bytes]], name: str
) -> None:
    targets = [[target for target, _ in calls] for calls in (before, after)]
    advice = (
        "nothing random or dated, no id, and nothing of another request may decide or stand in a "
        "call, or it cannot be replayed"
    )
    require(
        targets[0] == targets[1],
        f"the router asks differently for the same request and replies ({name}): "
        f"{targets[0]}, then {targets[1]}; {advice}",
    )
    for (target, one), (_, another) in zip(before, after, strict=True):
        require(
            one == another,
            f"the router asks `{target}` differently for the same request and replies ({name}): "
            f"{one.decode(errors='replace')}, then {another.decode(errors='replace')}; {advice}",
        )


async def check_targets(trial: Trial) -> None:
    """Require that an answer asks only targets that its route declares.

    Raises:
        AssertionError: Names the target.
    """
    bench = trial.bench()
    declared = ", ".join(bench.runtime.route.targets) or "none"
    for name, request in every_request(trial, bench).items():
        told = Interview(bench, request, what=name)
        try:
            await told.run()
        except AssertionError:
            if not told.strangers:
                raise
        require(
            not told.strangers,
            f"the router asked {sorted(set(told.strangers))}, which its options do not name "
            f"({name}): type such options as `TargetName`; declared here: {declared}",
        )


async def check_silence(trial: Trial) -> None:
    """Require that ``route()`` asks nobody.

    Raises:
        AssertionError: Names the target.
    """
    bench = answering_bench(trial.bench())
    for name, request in every_request(trial, bench).items():
        try:
            await bench.route(request, what=name)
        except AssertionError:
            if not bench.asked:
                raise
        require(
            not bench.asked,
            f"`route` asks {sorted(bench.asked)} ({name}): it says which target `answer` asks "
            "first and why, and only `answer` may ask",
        )


async def check_bodies(trial: Trial) -> None:
    """Require that the calls for a valid request are bodies that their providers take.

    Raises:
        AssertionError: Names the request, the target and what the provider would refuse.
    """
    bench = trial.bench()
    for name, request in trial.requests(bench.runtime.route.id).items():
        if validity_problems(request.wire_format, request.body):
            continue
        told = Interview(bench, request, what=name)
        await told.run()
        for sent in told.asked:
            problems = validity_problems(sent.wire_format, sent.body)
            require(
                not problems,
                f"the router asks `{sent.target}`, which speaks {sent.wire_format}, with a body "
                f"that its provider refuses ({name}): {'; '.join(problems)}; keep a conversation "
                "in a `Transcript` of the target's wire format",
            )


async def check_randomness(trial: Trial) -> None:
    """Require that an answer draws from nothing but ``context.random`` and ``context.new_id``.

    Raises:
        AssertionError: Names the call and its place.
    """
    advice = "draw from `context.random`, and make ids with `context.new_id`"
    await _check_watched(trial, reads_randomness, advice)


async def check_clock(trial: Trial) -> None:
    """Require that nothing but ``context.clock`` tells the time to an answer.

    Raises:
        AssertionError: Names the call and its place.
    """
    advice = "ask `context.clock()`, which tests set; `asyncio.timeout` may be used"
    await _check_watched(trial, reads_clock, advice)


async def _check_watched(trial: Trial, names: Callable[[Any], str], advice: str) -> None:
    bench = trial.bench()
    for name, request in trial.requests(bench.runtime.route.id).items():
        # The engine measures how long tools take.
        watch = Watch(names, spared=("switchyard_core",))
        await Interview(bench, request, what=name).run(watch=watch)
        require(not watch.seen, f"the answer calls {'; '.join(watch.seen)} ({name}): {advice}")


async def check_closing(trial: Trial) -> None:
    """Require that an answer which is closed early leaves no call behind, and begins none.

    Raises:
        AssertionError: Names the request, and when it was closed.
    """
    bench = trial.bench()
    model = bench.runtime.route.id
    for name in trial.requests(model):
        async for what, told in _closed(trial, bench, model, name):
            begun = len(told.asked)
            for _ in range(_TURNS):
                await asyncio.sleep(0)
            require(
                not told.open and len(told.asked) == begun,
                f"a call goes on after the answer was closed ({name}, {what}): await calls inside "
                "`answer`, and several at once in an `asyncio.TaskGroup`, which ends them",
            )


async def _closed(
    trial: Trial, bench: Bench, model: str, name: str
) -> AsyncIterator[tuple[str, Interview]]:
    """Yield answers to a request that were closed: at each of their calls, after each event."""
    for number in range(_CALLS):
        told = Interview(bench, trial.requests(model)[name], what=name, hold=number)
        running = asyncio.ensure_future(told.run())
        held = asyncio.ensure_future(told.held.wait())
        await asyncio.wait((running, held), return_when=asyncio.FIRST_COMPLETED)
        held.cancel()
        if running.done():
            running.result()
            events = len(told.events)
            break
        running.cancel()
        done, _ = await asyncio.wait((running,), timeout=_PATIENCE_S)
        require(
            done,
            f"the answer does not end when it is closed ({name}, in call {number + 1}): let "
            "`CancelledError` pass, and wait for nothing on the way",
        )
        yield f"in call {number + 1}", told
    else:
        events = 0
    for taken in range(1, events):
        told = Interview(bench, trial.requests(model)[name], what=name)
        await told.run(stop=taken)
        yield f"after {taken} events", told
