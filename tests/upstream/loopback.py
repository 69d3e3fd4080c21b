"""Servers on loopback and small requests for the tests of this folder."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import httpcore

from switchyard_core.decision import Outgoing
from switchyard_core.declarations import WireFormat
from switchyard_core.scripted import Script, ScriptedProviderApp, check_script

STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
)

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter, bytes], Awaitable[None]]


def script_of(*turns: dict[str, Any], **more: Any) -> Script:
    """Return a script with one entry of these turns; ``more`` are further keys of the entry."""
    script, findings = check_script(
        json.dumps({"version": 1, "scripts": [{"turns": list(turns), **more}]})
    )
    assert script is not None, [finding.render() for finding in findings]
    return script


def outgoing(path: str = "/v1/chat/completions", **changes: Any) -> Outgoing:
    """Return a small request; ``changes`` replace its fields."""
    wire_format: WireFormat = "openai_chat"
    values: dict[str, Any] = {
        "wire_format": wire_format,
        "path": path,
        "headers": (("content-type", "application/json"),),
        "body": b'{"model":"m","messages":[]}',
        "stream": False,
        "target": "t",
        "model": "m",
    }
    return Outgoing(**{**values, **changes})


@dataclass
class RawProvider:
    """A provider that speaks bytes: what it got, and how often it was connected to."""

    url: str = ""
    heads: list[bytes] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    gone: asyncio.Event = field(default_factory=asyncio.Event)


@contextlib.asynccontextmanager
async def raw_provider(*handlers: Handler) -> AsyncIterator[RawProvider]:
    """Serve handlers on loopback, one per request; the last one repeats."""
    seen = RawProvider()
    tasks: set[asyncio.Task[Any]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = 0
            for line in head.lower().split(b"\r\n"):
                if line.startswith(b"content-length:"):
                    length = int(line.partition(b":")[2])
            body = await reader.readexactly(length)
            seen.heads.append(head)
            seen.bodies.append(body)
            await handlers[min(len(seen.heads), len(handlers)) - 1](reader, writer, body)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()
            tasks.discard(task)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    seen.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield seen
    finally:
        server.close()
        for task in tuple(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()


def answers(data: bytes) -> Handler:
    """Return a handler that sends these bytes and closes."""

    async def handle(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, body: bytes
    ) -> None:
        writer.write(data)
        await writer.drain()

    return handle


def framed(data: bytes) -> bytes:
    """Return one chunk of a chunked body."""
    return b"%x\r\n%s\r\n" % (len(data), data)


def http(status: int, body: bytes = b"", *headers: str) -> bytes:
    """Return the bytes of a whole answer."""
    lines = [f"HTTP/1.1 {status} X", f"content-length: {len(body)}", "connection: close", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


@dataclass
class Provider:
    """A scripted provider behind uvicorn."""

    url: str
    app: ScriptedProviderApp


OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


class Sockets(httpcore.AsyncNetworkBackend):
    """Sockets without a network: each answers every request with the same bytes, or never opens."""

    def __init__(self, answer: bytes | Exception = OK) -> None:
        self.answer = answer
        #: Those that were opened.
        self.opened: list[Socket] = []

    @property
    def open(self) -> int:
        """Sockets that were not closed."""
        return sum(not socket.closed for socket in self.opened)

    @property
    def target(self) -> str:
        """Path and query of the first request."""
        return self.opened[0].sent.split(b" ")[1].decode()

    @property
    def headers(self) -> dict[str, str]:
        """Headers of the first request, names in lower case."""
        lines = self.opened[0].sent.partition(b"\r\n\r\n")[0].decode("latin-1").split("\r\n")[1:]
        return {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}

    async def connect_tcp(self, *args: Any, **options: Any) -> Socket:
        """Open a socket."""
        if isinstance(self.answer, Exception):
            raise self.answer
        self.opened.append(Socket(self.answer))
        return self.opened[-1]


class Socket(httpcore.AsyncNetworkStream):
    """One of these sockets: it closes slowly, as the real ones do."""

    def __init__(self, answer: bytes) -> None:
        self.answer = answer
        self.sent = b""
        self.closed = False
        self._coming = b""

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Take a part of a request; its head brings the answer."""
        if b" HTTP/1.1\r\n" in buffer:
            self._coming += self.answer
        self.sent += buffer

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Return what is left of the answer."""
        await asyncio.sleep(0)
        data, self._coming = self._coming[:max_bytes], self._coming[max_bytes:]
        return data

    async def aclose(self) -> None:
        """Close."""
        await asyncio.sleep(0)
        self.closed = True

    def get_extra_info(self, info: str) -> Any:
        """Tell whether a byte waits."""
        return bool(self._coming) if info == "is_readable" else None
