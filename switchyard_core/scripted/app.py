"""The scripted provider over HTTP: an ASGI application that records what it was asked."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any, Literal

from switchyard_core.declarations import WireFormat
from switchyard_core.scripted.player import Player, Reply
from switchyard_core.scripted.script import Script

__all__ = ["Outcome", "RecordedRequest", "ScriptedProviderApp"]

#: How a request ended: still ``open``, ``answered`` to the end, ``broken`` by a scripted drop or
#: cut, or ``disconnected`` by the client.
Outcome = Literal["open", "answered", "broken", "disconnected"]

_Message = MutableMapping[str, Any]
_Receive = Callable[[], Awaitable[_Message]]
_Send = Callable[[_Message], Awaitable[None]]


@dataclass(slots=True, kw_only=True)
class RecordedRequest:
    """One request as it arrived, and how it ended."""

    method: str
    path: str
    query: str
    headers: tuple[tuple[str, str], ...]  # names in lower case and values, credentials included
    body: bytes
    wire_format: WireFormat | None  # format of the endpoint, `None` for those that have none
    model: str  # empty when none was asked for
    stream: bool
    script: int | None
    turn: int | None
    status: int  # 0 for a dropped connection
    outcome: Outcome = "open"

    def header(self, name: str) -> str | None:
        """Return the first value of a header, ``None`` without one."""
        return next((value for key, value in self.headers if key == name.lower()), None)

    def json(self) -> Any:
        """Return the body as a tree; a ``ValueError`` when it is not JSON."""
        return json.loads(self.body)


class ScriptedProviderApp:
    """A provider for tests and demos, in all three wire formats, chosen by the end of the path.

    Only uvicorn really breaks connections off (``drop``, ``cut``); in process
    (``httpx.ASGITransport``) these faults raise :class:`ConnectionResetError`.
    """

    def __init__(
        self,
        script: Script,
        *,
        #: Waits before answers and between events, in seconds.
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        now: Callable[[], float] = time.time,  # seconds since the epoch, for the times in answers
        strict: str | None = None,  # name of the provider whose refusals are played
    ) -> None:
        self._player = Player(script, now, strict)
        self._sleep = sleep
        #: Every request in order of arrival; tests may clear it.
        self.requests: list[RecordedRequest] = []

    async def __call__(self, scope: _Message, receive: _Receive, send: _Send) -> None:
        """Answer one request, or the start and stop of a server."""
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
            return
        body = await _read_body(receive)
        if body is None:
            return
        headers = tuple(
            (name.decode("latin-1").lower(), value.decode("latin-1"))
            for name, value in scope["headers"]
        )
        reply = self._player.play(scope["method"], scope["path"], headers, body)
        choice = reply.choice
        record = RecordedRequest(
            method=scope["method"],
            path=scope["path"],
            query=scope["query_string"].decode("latin-1"),
            headers=headers,
            body=body,
            wire_format=reply.wire_format,
            model=reply.model,
            stream=reply.stream,
            script=None if choice is None else choice.script,
            turn=None if choice is None else choice.number,
            status=0 if reply.ending == "drop" else reply.status,
        )
        self.requests.append(record)
        await self._answer(reply, record, receive, send)

    async def _answer(
        self, reply: Reply, record: RecordedRequest, receive: _Receive, send: _Send
    ) -> None:
        """Send the reply unless the client goes away first."""
        sending = asyncio.ensure_future(self._send(reply, record, send))
        leaving = asyncio.ensure_future(_disconnected(receive))
        try:
            await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if not sending.done():
                record.outcome = "disconnected"
                return
            sending.result()
            if reply.ending == "whole":
                return
            record.outcome = "broken"
            await _break_off(send, leaving)
        finally:
            sending.cancel()
            leaving.cancel()
            await asyncio.gather(sending, leaving, return_exceptions=True)

    async def _send(self, reply: Reply, record: RecordedRequest, send: _Send) -> None:
        if reply.delay_s:
            await self._sleep(reply.delay_s)
        if reply.ending == "drop":
            return
        headers = [
            (name.encode("latin-1"), value.encode("latin-1")) for name, value in reply.headers
        ]
        await send({"type": "http.response.start", "status": reply.status, "headers": headers})
        for number, chunk in enumerate(reply.chunks):
            if number and reply.event_delay_s:
                await self._sleep(reply.event_delay_s)
            if reply.ending == "whole" and number == len(reply.chunks) - 1:
                # Before the last byte leaves: who has read the answer may look at the record.
                record.outcome = "answered"
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        if reply.ending == "whole":
            record.outcome = "answered"
            await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _break_off(send: _Send, leaving: asyncio.Future[None]) -> None:
    """Close the client's connection without finishing the answer.

    ASGI has no message for this, and uvicorn answers a raised error with a 500, so the transport
    comes from the method that uvicorn gives us.
    """
    transport = getattr(getattr(send, "__self__", None), "transport", None)
    if transport is None:
        msg = "the script breaks the connection here"
        raise ConnectionResetError(msg)
    transport.close()
    await leaving


async def _read_body(receive: _Receive) -> bytes | None:
    """Return the whole body, ``None`` when the client leaves early."""
    parts: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(parts)


async def _disconnected(receive: _Receive) -> None:
    # After the body there is only one more message: that the client went away.
    await receive()


async def _lifespan(receive: _Receive, send: _Send) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
