"""The scripted provider behind the upstream interface: no socket, no server."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, Awaitable, Callable

from switchyard_core.decision import Outgoing
from switchyard_core.declarations import WireFormat
from switchyard_core.errors import UpstreamError
from switchyard_core.scripted.player import Player, Reply
from switchyard_core.scripted.script import Script
from switchyard_core.upstream.base import UpstreamResponse
from switchyard_core.upstream.retries import Retries

__all__ = ["ScriptedUpstream"]


class ScriptedUpstream:
    """A provider that plays a script, for demos and tests: ``format = "scripted"``."""

    def __init__(
        self,
        script: Script,
        wire_format: WireFormat,  # the one wire format that it speaks
        *,
        max_retries: int = 0,  # further tries after a failure, as a client on HTTP makes them
        #: Waits, in seconds: before answers, between events, between tries.
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        now: Callable[[], float] = time.time,  # seconds since the epoch, for the times in answers
        strict: str | None = None,  # name of the provider whose refusals are played
    ) -> None:
        self._player = Player(script, now, strict)
        self._wire_format: WireFormat = wire_format
        self._sleep = sleep
        self._retries = Retries(max_retries=max_retries, sleep=sleep)

    async def send(self, outgoing: Outgoing) -> UpstreamResponse:
        """Play the reply to one request; see :meth:`Upstream.send`."""
        return await self._retries.run(lambda: self._try(outgoing))

    async def aclose(self) -> None:
        """Do nothing: no connection is open."""

    async def _try(self, outgoing: Outgoing) -> UpstreamResponse:
        reply = self._player.play(
            outgoing.method, outgoing.path, outgoing.headers, outgoing.body, self._wire_format
        )
        if reply.delay_s:
            await self._sleep(reply.delay_s)
        if reply.ending == "drop":
            message = "connection lost: the scripted provider closed it before it answered"
            raise UpstreamError(message, kind="closed")
        body = self._body(reply)

        async def close() -> None:
            # A task that reads at this moment ends when it wakes up.
            with contextlib.suppress(RuntimeError):
                await body.aclose()

        return UpstreamResponse(reply.status, reply.headers, body, close)

    async def _body(self, reply: Reply) -> AsyncGenerator[bytes, None]:
        for number, chunk in enumerate(reply.chunks):
            if number and reply.event_delay_s:
                await self._sleep(reply.event_delay_s)
            yield chunk
        if reply.ending == "cut":
            message = "connection lost: the scripted provider broke off in the middle of an answer"
            raise UpstreamError(message, kind="cut")
