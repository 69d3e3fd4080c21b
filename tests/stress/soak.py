"""Ask a real server for a long time, leave it often, and see that it stays as it was.

    python -m tests.stress.soak --minutes 20 --rate 150 --abort 0.1

It starts `switchyard serve` and a provider that misbehaves, both on loopback; prints a table; and
exits 1 when a promise was broken: an answer that was another's, a status that nothing explains, a
connection to the provider that is never given back, descriptors or memory that grow.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path

from tests.stress.callers import Caller, Tally, plans
from tests.stress.stand import LOOPS, Reading, Stand, standing

#: Part of the time that passes before the first look: caches and pools fill up.
_WARM_UP = 0.1
#: Callers that may wait side by side; more means that the server, or this machine, is too slow.
_MOST_CALLERS = 200
#: How much more memory the server may take at the end than after the warm-up.
_RSS_GROWTH = 1.1
_RSS_SLACK_MB = 10.0


async def soak(stand: Stand, *, seconds: float, rate: float, aborts: float, faults: float) -> Soak:
    """Ask for a while, at an even rate; look at the server at the start, middle and end."""
    result = Soak(rate=rate)
    todo = plans(seed=5, faults=faults, aborts=aborts)
    resting: list[Caller] = []
    running: set[asyncio.Task[None]] = set()

    async def one() -> None:
        caller = resting.pop() if resting else Caller(stand.url, result.tally)
        await caller.ask(next(todo))
        resting.append(caller)

    looks = {"start": _WARM_UP, "middle": 0.5, "end": 1.0}
    begun = time.monotonic()
    for name, part in looks.items():
        while (now := time.monotonic() - begun) < seconds * part and not result.tally.hopeless:
            due = int(now * rate) - result.started
            free = _MOST_CALLERS - len(running)
            for _ in range(min(due, free)):
                result.started += 1
                task = asyncio.create_task(one())
                running.add(task)
                task.add_done_callback(running.discard)
            await asyncio.sleep(1 / rate)
        result.seconds = time.monotonic() - begun
        if name == "end":
            await asyncio.gather(*running)
            for caller in resting:
                await caller.close()
            result.readings[name] = await stand.at_rest()
        else:
            result.readings[name] = await stand.read()
    result.tracebacks = stand.tracebacks()
    return result


class Soak:
    """What was seen."""

    def __init__(self, rate: float) -> None:
        self.tally = Tally()
        self.rate = rate
        self.started = 0
        self.seconds = 0.0
        self.readings: dict[str, Reading] = {}
        self.tracebacks = 0

    def broken(self) -> list[str]:
        """Return the promises that were not kept."""
        start, end = self.readings["start"], self.readings["end"]
        broken = list(self.tally.problems)
        if end.active is None:
            broken.append("the server does not tell its connections to the provider")
        elif end.active:
            broken.append(f"{end.active} connections to the provider were not given back")
        # As many connections as callers may be at rest, to the provider and from it.
        if end.descriptors > start.descriptors + _MOST_CALLERS // 2:
            broken.append(f"descriptors grew from {start.descriptors} to {end.descriptors}")
        if end.rss_mb > start.rss_mb * _RSS_GROWTH + _RSS_SLACK_MB:
            broken.append(f"memory grew from {start.rss_mb:.0f} to {end.rss_mb:.0f} MB")
        if self.tracebacks:
            broken.append(f"the log has {self.tracebacks} tracebacks")
        return broken

    def table(self) -> str:
        """Return the figures for a person."""
        tally = self.tally
        statuses = ", ".join(f"{status}: {n}" for status, n in sorted(tally.statuses.items()))
        aborts = ", ".join(f"{leave}: {n}" for leave, n in sorted(tally.aborts.items()))
        pace = f"{tally.requests / self.seconds:.0f}/s, asked for {self.rate:.0f}/s"
        lines = [
            f"requests     {tally.requests} in {self.seconds:.0f} s ({pace})",
            f"faults       {tally.faults.total() - tally.faults['none']} of the provider",
            f"statuses     {statuses}",
            f"aborts       {tally.aborts.total()} ({aborts})",
        ]
        if len(tally.seconds) > 1:
            cuts = statistics.quantiles(tally.seconds, n=100)
            lines.append(
                f"latency      p50 {cuts[49] * 1000:.0f} ms, p99 {cuts[98] * 1000:.0f} ms"
                " (good answers, the provider's own pauses included)"
            )
        lines.append(f"{'':12} {'active':>8} {'idle':>8} {'descriptors':>12} {'RSS, MB':>8}")
        lines += [
            f"{name:12} {_shown(at.active):>8} {_shown(at.idle):>8}"
            f" {at.descriptors:>12} {at.rss_mb:>8.1f}"
            for name, at in self.readings.items()
        ]
        return "\n".join(lines)


def _shown(count: int | None) -> str:
    return "?" if count is None else str(count)


async def _run(options: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory() as folder:
        async with standing(options.loop, Path(folder)) as stand:
            result = await soak(
                stand,
                seconds=options.minutes * 60,
                rate=options.rate,
                aborts=options.abort,
                faults=options.faults,
            )
    print(f"loop         {options.loop}\n{result.table()}")
    broken = result.broken()
    for problem in broken:
        print(f"BROKEN: {problem}")
    return 1 if broken else 0


def main() -> int:
    """Read the options, run, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=_Formatter)
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--rate", type=float, default=150.0, help="requests a second")
    parser.add_argument("--abort", type=float, default=0.1, help="share of callers that leave")
    parser.add_argument("--faults", type=float, default=0.1, help="share of the provider's faults")
    parser.add_argument("--loop", choices=sorted(LOOPS), default="asyncio")
    return asyncio.run(_run(parser.parse_args()))


class _Formatter(argparse.ArgumentDefaultsHelpFormatter, argparse.RawDescriptionHelpFormatter):
    """Keeps the text as it is and shows the defaults."""


if __name__ == "__main__":
    sys.exit(main())
