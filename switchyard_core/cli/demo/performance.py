"""Plays the demo's story against the real server, on loopback."""

from __future__ import annotations

import asyncio
import difflib
import json
import socket
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import uvicorn

from switchyard_core.cli.demo.story import Step, StoryBook, load_story
from switchyard_core.decision import Outgoing
from switchyard_core.declarations import RewriteType, WireFormat
from switchyard_core.engine.calling import Upstreams
from switchyard_core.identity import Headers
from switchyard_core.jsonio.printing import pretty
from switchyard_core.plugins import PluginRegistry
from switchyard_core.policy import Client, Policy, load_policy
from switchyard_core.replay import Replay
from switchyard_core.server.run import bind, url_of
from switchyard_core.switchyard import Switchyard
from switchyard_core.upstream.base import UpstreamResponse
from switchyard_core.wire import format_of
from switchyard_core.world import World

__all__ = ["Performance", "Scene"]

_WAIT_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """One request of the demo and what became of it."""

    number: int
    step: Step
    status: int
    headers: dict[str, str]
    answer: bytes
    body: bytes
    sent: tuple[bytes, ...]
    latched: int
    capacity: int

    def diff(self) -> list[str]:
        """Return the unified diff of the caller's body and the outgoing one, without its header."""
        if not self.sent:
            return []
        before, after = (pretty(body).splitlines() for body in (self.body, self.sent[-1]))
        return list(difflib.unified_diff(before, after, lineterm="", n=1))[2:]

    def error(self) -> dict[str, Any]:
        """Return the error object of the answer, empty when it has none."""
        try:
            found = json.loads(self.answer).get("error")
        except (ValueError, AttributeError):
            return {}
        return found if isinstance(found, dict) else {}

    def problems(self) -> list[str]:
        """Return each unexpected value as one sentence."""
        expect = self.step.expect
        found: list[tuple[str, object, object]] = [("the status", self.status, expect.status)]
        if expect.code:
            # The Messages shape has no code; the text ends with it.
            error = self.error()
            code = error.get("code") or str(error.get("message")).rpartition("(")[2].rstrip(")")
            found.append(("the code", code, expect.code))
            found.append(("the number of calls to a provider", len(self.sent), 0))
        else:
            target = self.headers.get("x-switchyard-target", "").rpartition("_")[2]
            found.append(("the target", target, expect.target))
            for word, wanted in (("phase", expect.phase), ("reason", expect.reason)):
                found.append((f"the {word}", self.headers.get(f"x-switchyard-{word}"), wanted))
            found.append(("the number of calls to a provider", len(self.sent), 1))
        found.append(("the number of latched sessions", self.latched, expect.latched))
        return [
            f"{what} is {got!r}, expected {wanted!r}"
            for what, got, wanted in found
            if got != wanted
        ]


class _Watched(Upstreams):
    """Connections that keep the bodies which are sent, or answered from a recording."""

    def __init__(
        self,
        policy: Policy,
        rewrites: Mapping[str, RewriteType],
        replay: Replay | None,
        bodies: list[bytes],
    ) -> None:
        super().__init__(policy, rewrites, World(), replay=replay)
        self._bodies = bodies

    async def call(self, client: Client, outgoing: Outgoing, headers: Headers) -> UpstreamResponse:
        self._bodies.append(outgoing.body)
        return await super().call(client, outgoing, headers)


class Performance:
    """The demo on one server, in one wire format after another.

    Raises PolicyError when its policy does not load, OSError when the port is in use.
    """

    def __init__(
        self,
        *,
        registry: PluginRegistry | None = None,
        port: int = 0,
        story: StoryBook | None = None,
        replay: Replay | None = None,
    ) -> None:
        self._story = story if story is not None else load_story()
        self._sent: list[bytes] = []
        registry = registry if registry is not None else PluginRegistry.from_entry_points()
        policy = load_policy(Path(__file__).with_name("demo.toml"), registry)
        upstreams = _Watched(policy, registry.rewrites, replay, self._sent)
        self._yard = Switchyard(policy, registry, upstreams=upstreams)
        self._listener = bind("127.0.0.1", port)
        self.url = url_of(self._listener)

    async def play(self, *wire_formats: WireFormat) -> AsyncIterator[tuple[WireFormat, Scene]]:
        """Send every request in each wire format and yield each result."""
        async with self._served(), httpx.AsyncClient(base_url=self.url, trust_env=False) as http:
            for wire_format in wire_formats:
                for number, step in enumerate(self._story.steps, 1):
                    yield wire_format, await self._scene(http, wire_format, number, step)

    async def _scene(
        self, http: httpx.AsyncClient, wire_format: WireFormat, number: int, step: Step
    ) -> Scene:
        body = self._story.body(step, wire_format)
        headers = {"content-type": "application/json", "x-switchyard-session-id": step.session}
        if step.final:
            headers["x-switchyard-session-final"] = "true"
        self._sent.clear()
        path = "/v1" + format_of(wire_format).paths["create"]
        answer = await http.post(path, content=body, headers=headers, timeout=_WAIT_S)
        store = self._yard.runtimes[wire_format].store
        return Scene(
            number=number,
            step=step,
            status=answer.status_code,
            headers=dict(answer.headers),
            answer=answer.content,
            body=body,
            sent=tuple(self._sent),
            latched=await store.count() if store is not None else 0,
            capacity=store.capacity if store is not None else 0,
        )

    @asynccontextmanager
    async def _served(self) -> AsyncIterator[None]:
        config = uvicorn.Config(
            self._yard.asgi(), log_level="critical", access_log=False, ws="none", lifespan="on"
        )
        server = _QuietServer(config)
        running = asyncio.ensure_future(server.serve(sockets=[self._listener]))
        try:
            ready = asyncio.ensure_future(server.ready.wait())
            await asyncio.wait({ready, running}, return_when=asyncio.FIRST_COMPLETED)
            ready.cancel()
            yield
        finally:
            server.should_exit = True
            await running
            self._listener.close()


class _QuietServer(uvicorn.Server):
    """A uvicorn server without signal handlers: Ctrl-C ends the demo like any command."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the command."""
        yield
