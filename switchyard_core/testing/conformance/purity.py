"""Checks that a decision is a function of the request and its context."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from switchyard_core.jsonio.tree import ObjectText, loads
from switchyard_core.request import Request
from switchyard_core.testing.conformance.bench import Trial, describe, require
from switchyard_core.testing.conformance.watching import Watch, reads_clock, reads_randomness
from switchyard_core.wire import format_of

__all__ = [
    "Untouched",
    "check_clock",
    "check_processes",
    "check_randomness",
    "check_repeats",
    "check_request",
]

#: How often a router is asked with another state of the process's own randomness.
ROUNDS = 8
#: Two seeds that put the members of a set in different orders.
HASH_SEEDS = ("1", "2")
_TIMEOUT_S = 60


async def check_repeats(trial: Trial) -> None:
    """Require the same decision for the same request, from one router and from a new one.

    Raises:
        AssertionError: Names the request and both decisions.
    """
    bench, other = trial.bench(), trial.bench()
    model = bench.runtime.route.id
    first = {
        name: describe(await bench.route(request, what=name))
        for name, request in trial.requests(model).items()
    }
    # In another order: nothing may be left over from the requests before.
    for who in (bench, other):
        for name, request in reversed(list(trial.requests(model).items())):
            again = describe(await who.route(request, what=name))
            require(
                again == first[name],
                f"the router decides differently for the same request and context ({name}): "
                f"{first[name]}, then {again}; keep nothing between requests but the latch record",
            )


async def check_randomness(trial: Trial) -> None:
    """Require that only ``context.random`` draws.

    Raises:
        AssertionError: Names the call, or the request and both decisions.
    """
    advice = "draw from `context.random`, which tests seed"
    await _check_watched(trial, reads_randomness, advice)
    bench = trial.bench()
    state = random.getstate()
    try:
        for name in trial.requests(bench.runtime.route.id):
            found = set()
            for seed in range(ROUNDS):
                random.seed(seed)
                request = trial.requests(bench.runtime.route.id)[name]
                found.add(describe(await bench.route(request, what=name)))
            require(
                len(found) == 1,
                f"the router draws by chance, though its context is the same ({name}): "
                f"{' or '.join(sorted(found))}; {advice}",
            )
    finally:
        random.setstate(state)


async def check_clock(trial: Trial) -> None:
    """Require that nothing but ``context.clock`` tells the time.

    Raises:
        AssertionError: Names the call and its place.
    """
    await _check_watched(trial, reads_clock, "ask `context.clock()`, which tests set")


async def _check_watched(trial: Trial, names: Callable[[Any], str], advice: str) -> None:
    bench = trial.bench()
    for name, request in trial.requests(bench.runtime.route.id).items():
        watch = Watch(names)
        await bench.route(request, what=name, watch=watch)
        require(not watch.seen, f"the router calls {'; '.join(watch.seen)} ({name}): {advice}")


async def check_request(trial: Trial) -> None:
    """Require that a request is after its decision what it was before.

    Raises:
        AssertionError: Names what changed.
    """
    bench = trial.bench()
    for name, request in trial.requests(bench.runtime.route.id).items():
        untouched = Untouched(request)
        await bench.route(request, what=name)
        changed = untouched.changed()
        require(
            not changed,
            f"the router changed {', '.join(changed)} of the request ({name}): return rewrites "
            "in the decision instead, they run on a copy",
        )


class Untouched:
    """What a request is before a router sees it.

    Args:
        request: The request.
    """

    def __init__(self, request: Request) -> None:
        self._request = request
        self._body = request.body
        self._rest = (list(request.headers.items_), request.wire_format)

    def changed(self) -> list[str]:
        """Return the names of the parts that are not what they were."""
        request = self._request
        parts = {
            "its body": self._body == request.body,
            "its headers": self._rest == (list(request.headers.items_), request.wire_format),
            "`request.fields`": request.fields.dump() == self._body,
            "`request.tree()`": request.tree() == loads(self._body),
            "`request.conversation`": _same_conversation(request),
        }
        return [name for name, same in parts.items() if not same]


def _same_conversation(request: Request) -> bool:
    reader = format_of(request.wire_format)
    return bool(request.conversation == reader.read(ObjectText(request.body)))


def check_processes(file: Path, suite: str) -> None:
    """Require the same decisions from processes with different hash seeds.

    Args:
        file: Module that defines the router's tests.
        suite: Qualified name of their class.

    Raises:
        AssertionError: Names the request and both decisions.
    """
    require(
        "<locals>" not in suite,
        f"`{suite}` is made inside a function: another process cannot find it there, so define "
        "the class at the top of its module",
    )
    first, second = (_decided(file, suite, seed) for seed in HASH_SEEDS)
    for name, decision in first.items():
        require(
            decision == second.get(name),
            f"the router decides differently in another process ({name}): {decision}, then "
            f"{second.get(name)}; do not depend on `hash()` or on the order of a set",
        )


def _decided(file: Path, suite: str, seed: str) -> dict[str, str]:
    done = subprocess.run(  # noqa: S603  # our own interpreter and module
        [sys.executable, "-m", "switchyard_core.testing.conformance.child", str(file), suite],
        env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
    )
    require(done.returncode == 0, f"another process could not decide:\n{done.stderr}")
    decided: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return decided
