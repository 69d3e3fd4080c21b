"""A provider on loopback that misbehaves as it is asked to, one fault per request.

It frames HTTP by hand, because every fault here is one that an HTTP library refuses to commit.
Each answer carries the mark of its request in its text and in the header ``x-request-id``.
"""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Self

from switchyard_core import Outgoing
from switchyard_core.testing import FakeReply, FakeUpstream
from switchyard_core.wire import endpoint_of
from tests.stress.marks import Mark, read_question


@dataclass(kw_only=True)
class Exchange:
    """One request, and the pieces of the answer that it should get."""

    mark: Mark
    tries: int
    writer: asyncio.StreamWriter
    random: random.Random
    stream: bool
    pieces: list[bytes]
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def body(self) -> bytes:
        return b"".join(self.pieces)

    def head(self, *framing: str) -> bytes:
        lines = [f"HTTP/1.1 {self.status} Status", f"x-request-id: {self.mark.text}"]
        kind = "text/event-stream" if self.stream else "application/json"
        named = {"content-type": kind, **self.headers}
        lines += [f"{name}: {value}" for name, value in named.items()]
        return "\r\n".join([*lines, *framing]).encode() + b"\r\n\r\n"

    def counted(self) -> bytes:
        """Return the whole answer, framed by its length."""
        return self.head(f"content-length: {len(self.body)}") + self.body

    def turn_into_error(self, status: int) -> None:
        """Make the answer an error of the provider's own."""
        self.status, self.stream = status, False
        error = {"message": self.mark.answer, "type": "provider_error"}
        self.pieces = [json.dumps({"error": error}).encode()]

    async def write(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def pause(self, longest_s: float) -> None:
        await asyncio.sleep(self.random.uniform(0.0, longest_s))

    async def send(self, pause_s: float = 0.004) -> None:
        """Send a good answer, piece by piece: a stream in chunks, another by its length."""
        if not self.stream:
            await self.write(self.head(f"content-length: {len(self.body)}"))
        else:
            await self.write(self.head("transfer-encoding: chunked"))
        # The end of a stream comes at once, so that a caller can leave just as the answer ends.
        paced = len(self.pieces) - (3 if self.stream else 0)
        for number, piece in enumerate(self.pieces):
            if number < paced:
                await self.pause(pause_s)
            await self.write(b"%x\r\n%s\r\n" % (len(piece), piece) if self.stream else piece)
        if self.stream:
            await self.write(b"0\r\n\r\n")


#: When a late duplicate comes, in seconds after its answer.
LATE_S = 0.02

#: A fault: it answers, and says whether the connection serves another request.
Fault = Callable[[Exchange], Awaitable[bool]]


async def _good(asked: Exchange) -> bool:
    await asked.send()
    return True


async def _slow(asked: Exchange) -> bool:
    await asked.pause(0.05)
    await asked.send(pause_s=0.05)
    return True


async def _duplicate(asked: Exchange) -> bool:
    await asked.write(asked.counted() * 2)
    return True


async def _late_duplicate(asked: Exchange) -> bool:
    """Send the answer again when nobody asks."""
    await asked.send()
    await asyncio.sleep(LATE_S)
    await asked.write(asked.counted())
    return True


async def _long_body(asked: Exchange) -> bool:
    """Send more than the length says; what is too much looks like an answer."""
    await asked.write(asked.counted() + b" " * asked.random.choice((0, 1, 40)) + asked.counted())
    return True


async def _long_chunks(asked: Exchange) -> bool:
    """Go on after the last chunk."""
    await asked.write(asked.head("transfer-encoding: chunked"))
    body = asked.body
    await asked.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body) + asked.counted())
    return True


async def _body_on_204(asked: Exchange) -> bool:
    asked.status = 204
    await asked.write(asked.counted())
    return True


async def _cut(asked: Exchange) -> bool:
    if asked.stream:
        await asked.write(asked.head("transfer-encoding: chunked"))
        for piece in asked.pieces[: len(asked.pieces) // 2]:
            await asked.write(b"%x\r\n%s\r\n" % (len(piece), piece))
    else:
        whole = asked.counted()
        await asked.write(whole[: len(whole) - len(asked.body) // 2])
    await asked.pause(0.01)
    return False


async def _cut_head(asked: Exchange) -> bool:
    await asked.write(asked.counted()[:40])
    return False


async def _silent(asked: Exchange) -> bool:
    return False


async def _closed_after(asked: Exchange) -> bool:
    """Close right behind a good answer, without a word about it."""
    await asked.send()
    return False


async def _closed_at_rest(asked: Exchange) -> bool:
    await asked.send()
    await asked.pause(0.05)
    return False


async def _says_close(asked: Exchange) -> bool:
    asked.headers["connection"] = "close"
    await asked.send()
    return False


async def _until_close(asked: Exchange) -> bool:
    """Frame the answer by the end of the connection, as HTTP/1.0 did."""
    await asked.write(asked.head("connection: close"))
    for piece in asked.pieces:
        await asked.pause(0.004)
        await asked.write(piece)
    return False


async def _garbage(asked: Exchange) -> bool:
    await asked.write(b"\x16\x03\x01 this is not HTTP\r\n\r\n" + asked.body)
    return False


async def _compressed(asked: Exchange) -> bool:
    asked.headers["content-encoding"] = "gzip"
    asked.pieces = [gzip.compress(asked.body, compresslevel=1)]
    await asked.send()
    return True


async def _refused(asked: Exchange) -> bool:
    asked.turn_into_error(400)
    await asked.send()
    return True


def _once(status: int) -> Fault:
    async def fault(asked: Exchange) -> bool:
        if asked.tries > 1:
            return await _good(asked)
        asked.headers["retry-after-ms"] = "5"
        asked.turn_into_error(status)
        await asked.send()
        return True

    return fault


#: What a request may ask for, by name.
FAULTS: dict[str, Fault] = {
    "none": _good,
    "slow": _slow,
    "duplicate": _duplicate,
    "late_duplicate": _late_duplicate,
    "long_body": _long_body,
    "long_chunks": _long_chunks,
    "body_on_204": _body_on_204,
    "cut": _cut,
    "cut_head": _cut_head,
    "silent": _silent,
    "closed_after": _closed_after,
    "closed_at_rest": _closed_at_rest,
    "says_close": _says_close,
    "until_close": _until_close,
    "garbage": _garbage,
    "gzip": _compressed,
    "refused": _refused,
    "once_429": _once(429),
    "once_500": _once(500),
    "once_529": _once(529),
}


class MisbehavingProvider:
    """Serves on a free port of 127.0.0.1 while the context is open.

    Attributes:
        url: Where it listens.
        asked: Requests by fault.
        connections: Connections that are open now.
    """

    def __init__(self) -> None:
        self.url = ""
        self.asked: Counter[str] = Counter()
        self._tries: Counter[int] = Counter()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._server: asyncio.Server | None = None

    @property
    def connections(self) -> int:
        return len(self._tasks)

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=2048)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            while await self._exchange(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()
            self._tasks.discard(task)

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = await reader.readuntil(b"\r\n\r\n")
        path = head.split(b" ", 2)[1].decode()
        length = next(
            int(line.partition(b":")[2])
            for line in head.lower().split(b"\r\n")
            if line.startswith(b"content-length:")
        )
        raw = await reader.readexactly(length)
        mark, endpoint = read_question(raw), endpoint_of(path)
        assert mark is not None, raw[:200]
        assert endpoint is not None, path
        self.asked[mark.fault] += 1
        self._tries[mark.number] += 1
        body = json.loads(raw)
        stream = bool(body.get("stream"))
        answer = await FakeUpstream(FakeReply(text=mark.answer)).send(
            Outgoing(
                wire_format=endpoint[0],
                path=path,
                headers=(),
                body=raw,
                stream=stream,
                target="",
                model=body["model"],
            )
        )
        pieces = [piece async for piece in answer.chunks]
        if not stream:
            whole = b"".join(pieces)
            third = len(whole) // 3
            pieces = [whole[:third], whole[third : 2 * third], whole[2 * third :]]
        exchange = Exchange(
            mark=mark,
            tries=self._tries[mark.number],
            writer=writer,
            random=random.Random(mark.number),
            stream=stream,
            pieces=pieces,
        )
        return await FAULTS[mark.fault](exchange)
