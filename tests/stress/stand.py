"""A real server between a provider that misbehaves and the callers, watched from outside."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import httpx

from tests.clients.serve import started
from tests.server.servers import PATHS
from tests.stress.provider import MisbehavingProvider

#: What `switchyard serve` does without the extra `fast`, though it is installed.
PLAIN = "import sys; sys.modules['uvloop'] = sys.modules['httptools'] = None"
#: Event loop and HTTP parser of the server, by name: what runs before it.
LOOPS: dict[str, str] = {"asyncio": PLAIN, "uvloop": "import uvloop, httptools"}

_GAUGE = re.compile(r"^switchyard_upstream_connections\{(.*)\} (\d+)", re.MULTILINE)
_ACTIVE = re.compile(r"^switchyard_active_requests(?:\{.*\})? (\d+)", re.MULTILINE)
#: How long the server may take to notice that the last callers left.
_SETTLES_S = 10.0


def policy(provider: str) -> str:
    """Return a policy with a route for each wire format, named after it."""
    parts = ["schema_version = 1"]
    parts += [
        f"""
[llm_clients.{wire_format}]
format = "{wire_format}"
base_url = "{provider}"
timeout_ms = 10000

[targets.{wire_format}_planner]
id = "big-model"
llm_client = "{wire_format}"

[targets.{wire_format}_executor]
id = "small-model"
llm_client = "{wire_format}"

[routes.{wire_format}]
id = "{wire_format}"
type = "plan_execute"
capable_target = "{wire_format}_planner"
efficient_target = "{wire_format}_executor"
"""
        for wire_format in PATHS
    ]
    return "\n".join(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What the server holds at one moment.

    Args:
        active: Connections to the provider that serve a request, as the server tells;
            ``None`` when it does not tell.
        idle: Those that wait for one.
        descriptors: Open files and sockets of the process.
        rss_mb: Its resident memory.
    """

    active: int | None
    idle: int | None
    descriptors: int
    rss_mb: float


@dataclass(kw_only=True)
class Stand:
    """A server that runs."""

    url: str
    pid: int
    log: Path
    provider: MisbehavingProvider

    async def read(self) -> Reading:
        """Look at the server as it is now."""
        text = await self._metrics()
        counts: dict[str, int] = {}
        for labels, value in _GAUGE.findall(text):
            state = re.search(r'state="(\w+)"', labels)
            assert state is not None, labels
            counts[state[1]] = counts.get(state[1], 0) + int(value)
        process = Path("/proc") / str(self.pid)
        pages = int((process / "statm").read_text().split()[1])
        return Reading(
            active=counts.get("active"),
            idle=counts.get("idle"),
            descriptors=len(list((process / "fd").iterdir())),
            rss_mb=pages * os.sysconf("SC_PAGESIZE") / 1e6,
        )

    async def at_rest(self) -> Reading:
        """Wait until no request runs any more, and look then."""
        end = time.monotonic() + _SETTLES_S
        while time.monotonic() < end:
            found = _ACTIVE.search(await self._metrics())
            reading = await self.read()
            if found and found[1] == "0" and not reading.active:
                break
            await asyncio.sleep(0.1)
        return await self.read()

    def tracebacks(self) -> int:
        """Return how many tracebacks the log has; a fault of a provider or a caller has none."""
        return self.log.read_text(errors="replace").count("Traceback (most recent call last)")

    async def _metrics(self) -> str:
        async with httpx.AsyncClient(trust_env=False, timeout=20) as client:
            return (await client.get(self.url + "/metrics")).text


@contextlib.asynccontextmanager
async def standing(loop: str, folder: Path) -> AsyncIterator[Stand]:
    """Start a provider and a server; ``loop`` is a key of :data:`LOOPS`."""
    async with MisbehavingProvider() as provider:
        with started(policy(provider.url), folder, before=LOOPS[loop]) as server:
            yield Stand(url=server.url, pid=server.pid, log=server.log, provider=provider)
