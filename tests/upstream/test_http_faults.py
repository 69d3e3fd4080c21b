"""The HTTP client when things go wrong: retries, drops, silence, and callers who leave."""

from __future__ import annotations

import asyncio

import pytest

from switchyard_core.errors import UpstreamError
from switchyard_core.upstream import HttpUpstream
from tests.upstream.loopback import STREAM_HEAD, answers, framed, http, outgoing, raw_provider

pytestmark = pytest.mark.anyio


class Sleeps:
    """A clock that stands still and remembers the waits."""

    def __init__(self) -> None:
        self.waits: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.waits.append(seconds)


@pytest.mark.parametrize(
    "status", [400, 401, 403, 404, 408, 409, 413, 422, 429, 500, 502, 503, 529]
)
async def test_every_status_is_returned_at_once_since_agents_try_again(status: int) -> None:
    async with raw_provider(answers(http(status, b'{"error":1}'))) as provider:
        upstream = HttpUpstream(provider.url, max_retries=3, sleep=_never)
        response = await upstream.send(outgoing())
        assert (response.status, await response.read()) == (status, b'{"error":1}')
        await upstream.aclose()

    assert len(provider.heads) == 1


async def test_failing_answer_is_returned_untouched_with_the_time_to_wait() -> None:
    answer = http(529, b'{"error": {"x": 1.10}}', "retry-after: 7", "request-id: r1")
    async with raw_provider(answers(answer)) as provider:
        upstream = HttpUpstream(provider.url, max_retries=3, sleep=_never)
        response = await upstream.send(outgoing())
        assert (response.header("retry-after"), response.header("request-id")) == ("7", "r1")
        assert await response.read() == b'{"error": {"x": 1.10}}'
        await upstream.aclose()


async def _never(seconds: float) -> None:
    raise AssertionError(f"waited {seconds} s")


async def test_nobody_listening_is_a_connect_error_after_retries() -> None:
    sleep = Sleeps()
    upstream = HttpUpstream("http://127.0.0.1:9", max_retries=2, sleep=sleep)

    with pytest.raises(UpstreamError, match=r"cannot connect to http://127\.0\.0\.1:9$") as caught:
        await upstream.send(outgoing())

    assert (caught.value.kind, caught.value.status) == ("connect", 502)
    assert len(sleep.waits) == 2


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="no_byte"),
        pytest.param(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n", id="only_headers"),
        pytest.param(STREAM_HEAD, id="only_stream_headers"),
    ],
)
async def test_drop_before_the_first_byte_is_tried_again_then_closed(data: bytes) -> None:
    sleep = Sleeps()
    async with raw_provider(answers(data)) as provider:
        upstream = HttpUpstream(provider.url, max_retries=1, sleep=sleep)
        with pytest.raises(UpstreamError, match="closed the connection") as caught:
            await upstream.send(outgoing())
        await upstream.aclose()

    assert (caught.value.kind, caught.value.status) == ("closed", 502)
    assert len(provider.heads) == 2


async def test_garbage_instead_of_http_is_a_protocol_error() -> None:
    async with raw_provider(answers(b"SSH-2.0-x\r\n\r\n")) as provider:
        upstream = HttpUpstream(provider.url, max_retries=0)
        with pytest.raises(UpstreamError) as caught:
            await upstream.send(outgoing())
        await upstream.aclose()

    assert caught.value.kind == "protocol"


async def test_drop_after_the_first_byte_is_a_cut_and_never_tried_again() -> None:
    async with raw_provider(answers(STREAM_HEAD + framed(b"data: 1\n\n"))) as provider:
        upstream = HttpUpstream(provider.url, max_retries=3)
        response = await upstream.send(outgoing(stream=True))
        assert await anext(response.chunks) == b"data: 1\n\n"
        with pytest.raises(UpstreamError, match="broke off") as caught:
            await anext(response.chunks)
        await response.aclose()
        await upstream.aclose()

    assert (caught.value.kind, caught.value.status) == ("cut", 502)
    assert len(provider.heads) == 1


async def _silence(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, body: bytes) -> None:
    await reader.read()


@pytest.mark.parametrize("head", [b"", STREAM_HEAD], ids=["no_head", "head"])
async def test_silence_before_the_first_byte_is_a_timeout_without_retry(head: bytes) -> None:
    async def handle(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, body: bytes
    ) -> None:
        writer.write(head)
        await _silence(reader, writer, body)

    async with raw_provider(handle) as provider:
        upstream = HttpUpstream(provider.url, timeout_s=0.1, max_retries=3)
        with pytest.raises(UpstreamError) as caught:
            await upstream.send(outgoing())
        await upstream.aclose()

    assert (caught.value.kind, caught.value.status) == ("timeout", 504)
    assert "0.1 s" in caught.value.message
    assert len(provider.heads) == 1


async def test_silence_inside_an_answer_is_a_cut() -> None:
    async def handle(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, body: bytes
    ) -> None:
        writer.write(STREAM_HEAD + framed(b"data: 1\n\n"))
        await _silence(reader, writer, body)

    async with raw_provider(handle) as provider:
        upstream = HttpUpstream(provider.url, timeout_s=0.1)
        response = await upstream.send(outgoing(stream=True))
        await anext(response.chunks)
        with pytest.raises(UpstreamError, match="sent nothing") as caught:
            await anext(response.chunks)
        await upstream.aclose()

    assert (caught.value.kind, caught.value.status) == ("cut", 504)


@pytest.mark.parametrize(
    "how",
    [
        "cancelled_before_answer",
        "cancelled_before_body",
        "cancelled_reader",
        "closed",
        "closed_by_other",
    ],
)
async def test_leaving_closes_the_providers_connection(how: str) -> None:
    gone, asked = asyncio.Event(), asyncio.Event()

    async def handle(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, body: bytes
    ) -> None:
        if how == "cancelled_before_body":
            writer.write(STREAM_HEAD)
        elif how != "cancelled_before_answer":
            writer.write(STREAM_HEAD + framed(b"data: 1\n\n"))
        asked.set()
        assert await reader.read() == b""
        gone.set()

    async with raw_provider(handle) as provider:
        upstream = HttpUpstream(provider.url, max_retries=3)
        if how.startswith("cancelled_before"):
            task = asyncio.ensure_future(upstream.send(outgoing()))
            await asked.wait()
            await asyncio.sleep(0.05)
            task.cancel()
        else:
            response = await upstream.send(outgoing(stream=True))
            await anext(response.chunks)
            reading = asyncio.ensure_future(response.read())
            await asyncio.sleep(0.05)
            if how == "cancelled_reader":
                reading.cancel()
            elif how == "closed_by_other":
                await response.aclose()
                with pytest.raises(UpstreamError):
                    await reading
            else:
                reading.cancel()
                await asyncio.gather(reading, return_exceptions=True)
                await response.aclose()
                await response.aclose()
        await asyncio.wait_for(gone.wait(), 2)
        await upstream.aclose()

    assert len(provider.heads) == 1
