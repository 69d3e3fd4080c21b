"""The connections to a provider: given back however a call ends, and used again only if clean."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator
from typing import Any

import pytest

from switchyard_core.errors import UpstreamError
from switchyard_core.upstream import HttpUpstream, connections
from tests.upstream.loopback import (
    OK,
    STREAM_HEAD,
    Sockets,
    answers,
    framed,
    outgoing,
    raw_provider,
)

pytestmark = pytest.mark.anyio

STREAM = STREAM_HEAD + framed(b"data: 1\n\n") + framed(b"data: 2\n\n") + b"0\r\n\r\n"


@pytest.fixture(params=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    """Run each test on both loops that the server uses."""
    return "asyncio", {"use_uvloop": request.param == "uvloop"}


async def settled(upstream: HttpUpstream) -> None:
    """Wait until no connection is active."""
    for _ in range(200):
        if not upstream.connections["active"]:
            return
        await asyncio.sleep(0.001)


@contextlib.asynccontextmanager
async def on_sockets(answer: bytes, **options: Any) -> AsyncIterator[tuple[HttpUpstream, Sockets]]:
    """Yield an upstream on sockets without a network, and close it."""
    sockets = Sockets(answer)
    upstream = HttpUpstream("http://provider.test", backend=sockets, max_retries=0, **options)
    try:
        yield upstream, sockets
    finally:
        await upstream.aclose()
        assert sockets.open == 0


async def call(upstream: HttpUpstream) -> bytes:
    async with await upstream.send(outgoing()) as response:
        return await response.read()


@pytest.mark.parametrize("cancels", [1, 2, 3], ids=["once", "twice", "three_times"])
@pytest.mark.parametrize("pause", [0, 1], ids=["at_once", "a_step_apart"])
@pytest.mark.parametrize("answer", [OK, STREAM, OK[:-1], b""], ids=["whole", "stream", "cut", "no"])
async def test_a_call_cancelled_at_any_step_gives_its_connection_back(
    answer: bytes, pause: int, cancels: int
) -> None:
    leaked = []
    for step in range(40):
        async with on_sockets(answer) as (upstream, sockets):
            task = asyncio.ensure_future(call(upstream))
            for _ in range(step):
                await asyncio.sleep(0)
            for _ in range(cancels):
                task.cancel()
                for _ in range(pause):
                    await asyncio.sleep(0)
            await asyncio.gather(task, return_exceptions=True)
            await settled(upstream)
            if upstream.connections["active"] or sockets.open != upstream.connections["idle"]:
                leaked.append(step)

    assert leaked == []


async def test_callers_who_leave_with_the_last_chunk_lose_no_connection() -> None:
    go_on = asyncio.Event()

    async def handle(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, body: bytes
    ) -> None:
        writer.write(STREAM)
        await writer.drain()
        await reader.read()

    async with raw_provider(handle) as provider:
        upstream = HttpUpstream(provider.url, max_connections=60)

        async def leave_at_the_end() -> None:
            task = asyncio.current_task()
            assert task is not None
            response = await upstream.send(outgoing(stream=True))
            async for chunk in response.chunks:
                if chunk.endswith(b"2\n\n"):
                    asyncio.get_running_loop().call_soon(task.cancel)

        leaving = [asyncio.ensure_future(leave_at_the_end()) for _ in range(50)]
        await asyncio.gather(*leaving, return_exceptions=True)
        await settled(upstream)
        go_on.set()

        assert upstream.connections["active"] == 0
        await upstream.aclose()


LATER = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nstale"


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(OK + LATER, id="a_second_answer"),
        pytest.param(OK + b"xyz", id="body_longer_than_its_length"),
        pytest.param(STREAM + LATER, id="a_second_answer_after_a_stream"),
        pytest.param(OK.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n"), id="close"),
        pytest.param(b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok", id="old_http"),
    ],
)
async def test_a_connection_with_bytes_beyond_its_answer_is_not_used_again(answer: bytes) -> None:
    async with on_sockets(answer) as (upstream, sockets):
        first = await call(upstream)
        sockets.answer = OK
        second = await call(upstream)

    assert first in (b"ok", b"data: 1\n\ndata: 2\n\n")
    assert second == b"ok"
    assert len(sockets.opened) == 2


async def test_bytes_that_come_while_a_connection_rests_reach_nobody() -> None:
    late = asyncio.Event()

    async def handle(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, body: bytes
    ) -> None:
        writer.write(OK)
        await late.wait()
        writer.write(LATER)
        await writer.drain()
        await reader.read()

    async with raw_provider(handle, answers(OK)) as provider:
        upstream = HttpUpstream(provider.url, max_retries=0)
        assert await call(upstream) == b"ok"
        assert upstream.connections == {"active": 0, "idle": 1}
        late.set()
        await asyncio.sleep(0.05)
        assert await call(upstream) == b"ok"
        await upstream.aclose()


async def test_a_connection_that_was_closed_at_rest_is_replaced_without_a_word() -> None:
    async def handle(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, body: bytes
    ) -> None:
        writer.write(OK)
        await writer.drain()
        # Closes when the next request comes: nobody could have seen it before.
        await reader.read(1)

    async with raw_provider(handle) as provider:
        upstream = HttpUpstream(provider.url, max_retries=0)
        bodies = [await call(upstream) for _ in range(3)]
        await upstream.aclose()

    assert bodies == [b"ok"] * 3
    assert len(provider.heads) == 3


async def test_a_provider_that_closes_every_connection_is_asked_once_more_and_no_oftener() -> None:
    async with raw_provider(answers(OK), answers(b"")) as provider:
        upstream = HttpUpstream(provider.url, max_retries=0)
        assert await call(upstream) == b"ok"
        with pytest.raises(UpstreamError, match="closed the connection"):
            await call(upstream)
        await upstream.aclose()

    assert len(provider.heads) == 2


async def test_a_further_call_waits_for_a_connection_and_gets_one_when_another_ends() -> None:
    async with on_sockets(OK, max_connections=1) as (upstream, _):
        first = await upstream.send(outgoing())
        waiting = asyncio.ensure_future(call(upstream))
        await asyncio.sleep(0.01)
        assert not waiting.done()
        await first.aclose()
        assert await waiting == b"ok"
        assert upstream.connections == {"active": 0, "idle": 1}


async def test_a_call_that_waits_too_long_for_a_connection_is_a_timeout_and_loses_none() -> None:
    async with on_sockets(OK, max_connections=1, timeout_s=0.05) as (upstream, _):
        async with await upstream.send(outgoing()):
            with pytest.raises(UpstreamError) as caught:
                await upstream.send(outgoing())
        assert await call(upstream) == b"ok"

    assert caught.value.kind == "timeout"


async def test_callers_who_leave_while_they_wait_take_no_connection_with_them() -> None:
    async with on_sockets(OK, max_connections=1) as (upstream, _):
        first = await upstream.send(outgoing())
        waiting = [asyncio.ensure_future(call(upstream)) for _ in range(20)]
        await asyncio.sleep(0.01)
        for task in waiting[::2]:
            task.cancel()
        ending = asyncio.ensure_future(first.aclose())
        for task in waiting[1::4]:
            await asyncio.sleep(0)
            task.cancel()
        await asyncio.gather(ending, *waiting, return_exceptions=True)
        await settled(upstream)

        assert upstream.connections["active"] == 0
        assert await call(upstream) == b"ok"


async def test_a_connection_that_rests_too_long_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "REST_S", 0.02)
    async with on_sockets(OK) as (upstream, sockets):
        await call(upstream)
        assert upstream.connections["idle"] == 1
        await asyncio.sleep(0.1)
        assert upstream.connections["idle"] == 0
        assert sockets.open == 0


async def test_closing_ends_the_calls_that_run() -> None:
    async def handle(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, body: bytes
    ) -> None:
        writer.write(STREAM_HEAD + framed(b"data: 1\n\n"))
        await reader.read()

    async with raw_provider(handle) as provider:
        upstream = HttpUpstream(provider.url)
        response = await upstream.send(outgoing())
        reading = asyncio.ensure_future(response.read())
        await asyncio.sleep(0.02)
        await upstream.aclose()
        with pytest.raises(UpstreamError):
            await reading

    assert upstream.connections == {"active": 0, "idle": 0}


async def test_closing_ends_a_call_whose_connection_is_being_made() -> None:
    class Slow(Sockets):
        async def connect_tcp(self, *args: Any, **options: Any) -> Any:
            await asyncio.sleep(0.02)
            return await super().connect_tcp(*args, **options)

    sockets = Slow()
    upstream = HttpUpstream("http://provider.test", backend=sockets, max_retries=0)
    sending = asyncio.ensure_future(upstream.send(outgoing()))
    await asyncio.sleep(0.01)
    await upstream.aclose()
    with pytest.raises(UpstreamError):
        await sending
    await asyncio.sleep(0.02)

    assert (sockets.open, upstream.connections["active"]) == (0, 0)


async def test_no_answer_carries_the_marker_of_another_call() -> None:
    """Each caller has a marker; the provider misbehaves at random, seeded."""
    chance = random.Random(7)

    async def handle(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, body: bytes
    ) -> None:
        while True:
            answer = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)
            fault = chance.randrange(12)
            writer.write(
                {
                    0: answer + answer,
                    1: answer + body,
                    2: answer[:-1],
                    3: b"HTTP/1.1 204 No Content\r\n\r\n" + body,
                    4: b"",
                }.get(fault, answer)
            )
            await writer.drain()
            if fault in (2, 4, 5):
                return
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
            body = await reader.readexactly(length)

    async with raw_provider(handle) as provider:
        upstream = HttpUpstream(provider.url, max_retries=0, max_connections=8)
        wrong: list[tuple[bytes, bytes]] = []
        good = 0

        async def caller(number: int) -> None:
            nonlocal good
            for turn in range(25):
                marker = b"<%d/%d>" % (number, turn)
                request = asyncio.ensure_future(ask(marker))
                if chance.randrange(10) == 0:
                    await asyncio.sleep(chance.random() / 500)
                    request.cancel()
                with contextlib.suppress(UpstreamError, asyncio.CancelledError):
                    found = await request
                    good += found == marker
                    if found != marker:
                        wrong.append((marker, found))

        async def ask(marker: bytes) -> bytes:
            async with await upstream.send(outgoing(body=marker)) as response:
                return await response.read()

        await asyncio.gather(*(caller(number) for number in range(40)))
        await settled(upstream)
        assert upstream.connections["active"] == 0
        await upstream.aclose()

    assert wrong == []
    assert good > 300


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"HTTP/1.1 600 X\r\ncontent-length: 0\r\n\r\n", id="status_600"),
        pytest.param(b"HTTP/1.1 999 X\r\ncontent-length: 0\r\n\r\n", id="status_999"),
        pytest.param(b"HTTP/1.1 101 X\r\n\r\n", id="upgrade"),
        pytest.param(b"HTTP/1.1 200 X\r\na: \x01\r\ncontent-length: 0\r\n\r\n", id="control_byte"),
        pytest.param(b"HTTP/1.1 200 X\r\na: \x7f\r\ncontent-length: 0\r\n\r\n", id="delete_byte"),
        pytest.param(
            b"HTTP/1.1 200 X\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
            id="length_and_chunks",
        ),
        pytest.param(
            b"HTTP/1.1 200 X\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nabc",
            id="two_lengths",
        ),
        pytest.param(b"HTTP/1.1 204 X\r\n\r\nbody", id="body_after_204"),
        pytest.param(b"HTTP/1.1 204 X\r\ncontent-length: 4\r\n\r\nbody", id="length_with_204"),
        pytest.param(b"HTTP/1.1 204 X\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n", id="204_te"),
        pytest.param(b"HTTP/1.1 304 X\r\ncontent-length: 4\r\n\r\nbody", id="body_after_304"),
    ],
)
async def test_an_answer_that_no_server_may_send_is_a_protocol_error(answer: bytes) -> None:
    async with on_sockets(answer) as (upstream, _):
        with pytest.raises(UpstreamError, match="not HTTP") as caught:
            await call(upstream)
        assert upstream.connections == {"active": 0, "idle": 0}

    assert (caught.value.kind, caught.value.status) == ("protocol", 502)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"HTTP/1.1 204 X\r\n\r\n", id="204"),
        pytest.param(b"HTTP/1.1 204 X\r\ncontent-length: 0\r\n\r\n", id="204_length_0"),
        pytest.param(b"HTTP/1.1 304 X\r\ncontent-length: 4\r\n\r\n", id="304_with_its_length"),
        pytest.param(b"HTTP/1.1 100 X\r\n\r\n" + OK, id="interim_answer"),
        pytest.param(b"HTTP/1.1 599 X\r\na: \xe9\tb\r\ncontent-length: 0\r\n\r\n", id="599_latin"),
        pytest.param(STREAM[:-2] + b"x-trailer: 1\r\n\r\n", id="trailer"),
    ],
)
async def test_a_rare_but_lawful_answer_passes_and_its_connection_is_kept(answer: bytes) -> None:
    async with on_sockets(answer) as (upstream, _):
        response = await upstream.send(outgoing())
        await response.read()

        assert not any(name == "x-trailer" for name, _ in response.headers)
        assert upstream.connections == {"active": 0, "idle": 1}
