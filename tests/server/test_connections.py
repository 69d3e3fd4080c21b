"""What a connection may do to the server, whichever HTTP parser reads it."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import re

import httpx
import pytest

from switchyard_core import Switchyard
from switchyard_core.server import Limits
from switchyard_core.world import World
from tests.server.servers import (
    EVENT_STREAM,
    KEY,
    PATHS,
    BytesProvider,
    Reply,
    all_of,
    answer_to,
    body,
    connected,
    policy,
    served,
)

CHAT = PATHS["openai_chat"]
ALIVE = b"GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"

pytestmark = pytest.mark.parametrize("parser", ["h11", "httptools"])


@contextlib.asynccontextmanager
async def door(parser, provider=None, **options):
    """Yield a way to connect to a server whose callers are read by a parser, and its metrics."""
    async with served(provider or BytesProvider()) as upstream:
        yard = Switchyard.from_policy_text(
            policy("openai_chat", upstream), world=World(environ={"UPSTREAM_KEY": KEY})
        )
        app = yard.asgi(**options)
        async with served(app, parser=parser) as url, asyncio.timeout(20):
            yield Door(url, app)


class Door:
    def __init__(self, url, app):
        self.url, self.app = url, app

    def open(self, *parts):
        return connected(self.url, *parts)

    async def says(self, *parts):
        return await answer_to(self.url, *parts)


async def _flood(reader, writer, part, *, most=1000, pause=0.005):
    """Send a part again and again until the server answers and closes; return all that it said."""
    reading = asyncio.create_task(all_of(reader))
    for _ in range(most):
        with contextlib.suppress(ConnectionError):
            writer.write(part)
            await writer.drain()
        await asyncio.wait({reading}, timeout=pause)
        if reading.done():
            return reading.result()
    reading.cancel()
    pytest.fail("the server reads on")


def status(answer):
    return int(answer[9:12]) if answer else 0


def call(*headers, stream=False, content=None):
    content = body("openai_chat", stream=stream) if content is None else content
    lines = (
        f"POST {CHAT} HTTP/1.1",
        "host: localhost",
        "content-type: application/json",
        f"content-length: {len(content)}",
        *headers,
    )
    return "\r\n".join((*lines, "", "")).encode() + content


async def _until(condition):
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110 - counters have no event
            await asyncio.sleep(0.01)


# --- trailers ----------------------------------------------------------------------------


async def test_key_in_a_trailer_does_not_authenticate(parser):
    provider = BytesProvider()
    content = body("openai_chat")
    request = (
        f"POST {CHAT} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        "connection: close\r\ntransfer-encoding: chunked\r\ntrailer: x-api-key\r\n\r\n"
        f"{len(content):x}\r\n"
    ).encode()
    trailers = b"\r\n0\r\nx-api-key: server-key\r\nauthorization: Bearer server-key\r\n\r\n"
    async with door(parser, provider, server_key="server-key") as found:
        # In one packet the trailers are there before the application has looked at the headers.
        whole = await found.says(request + content + trailers)
        parts = await found.says(request, content, trailers)
    assert (status(whole), status(parts)) == (401, 401)
    assert provider.seen == []


async def test_trailers_are_dropped_and_the_body_is_whole(parser):
    provider = BytesProvider()
    content = body("openai_chat")
    request = (
        f"POST {CHAT} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        "connection: close\r\ntransfer-encoding: chunked\r\n\r\n"
        f"{len(content):x}\r\n"
    ).encode()
    async with door(parser, provider) as found:
        answer = await found.says(
            request + content + b"\r\n0\r\nuser-agent: trailer\r\nhost: evil.example\r\n\r\n"
        )
    assert status(answer) == 200
    assert "trailer" not in provider.seen[0].headers["user-agent"]


async def test_endless_trailers_end_the_connection(parser):
    provider = BytesProvider()
    request = (
        f"POST {CHAT} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        "transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nx-a: "
    ).encode()
    async with door(parser, provider, limits=Limits(header_bytes=4096)) as found:
        async with found.open(request) as (reader, writer):
            assert await _flood(reader, writer, b"x" * 4096) == b""
        assert status(await found.says(ALIVE)) == 200
    assert provider.seen == []


# --- size and number of headers ------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        pytest.param([f"x-{n}: 1" for n in range(80)], 200, id="as_many_as_allowed"),
        pytest.param([f"x-{n}: 1" for n in range(100)], 431, id="too_many"),
        pytest.param([f"x: {n}" for n in range(100)], 431, id="too_many_of_one_name"),
        pytest.param(["x-long: " + "v" * 7000], 200, id="as_long_as_allowed"),
        pytest.param(["x-long: " + "v" * 9000], 431, id="too_long"),
        pytest.param(["x-" + "n" * 9000 + ": 1"], 431, id="name_too_long"),
    ],
)
async def test_headers_beyond_the_limits_are_refused(parser, headers, expected):
    provider = BytesProvider()
    limits = Limits(headers=90, header_bytes=8192)
    async with door(parser, provider, limits=limits) as found:
        request = call("connection: close", *headers)
        answers = [await found.says(request), await found.says(request[:5000], request[5000:])]
    assert [status(answer) for answer in answers] == [expected, expected]
    assert len(provider.seen) == (2 if expected == 200 else 0)


async def test_refusal_of_complete_headers_has_the_callers_shape_and_names_the_option(parser):
    async with door(parser, limits=Limits(headers=10)) as found, httpx.AsyncClient() as client:
        answer = await client.post(
            found.url + CHAT, json={}, headers={f"x-{n}": "1" for n in range(10)}
        )
    assert answer.status_code == 431
    assert answer.json()["error"]["code"] == "headers_too_large"
    assert "--limit headers=" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    "start",
    [
        pytest.param(b"GET /health HTTP/1.1\r\nhost: localhost\r\nx-a: ", id="header"),
        pytest.param(b"GET /", id="target"),
        pytest.param(ALIVE.replace(b"connection: close\r\n", b"") + b"GET /", id="second_request"),
    ],
)
async def test_headers_without_an_end_are_refused_before_they_fill_the_memory(parser, start):
    async with door(parser, limits=Limits(header_bytes=8192)) as found:
        async with found.open(start) as (reader, writer):
            answer = await _flood(reader, writer, b"x" * 4096)
        assert b"HTTP/1.1 431 " in answer
        assert b"8192" in answer
        assert status(await found.says(ALIVE)) == 200


# --- time ----------------------------------------------------------------------------------


async def test_headers_that_drip_get_408_however_often_a_byte_comes(parser):
    async with door(parser, limits=Limits(header_timeout_s=0.4)) as found:
        async with found.open(b"GET /health HTTP/1.1\r\nhost: localhost\r\n") as (reader, writer):
            answer = await _flood(reader, writer, b"x", pause=0.02)
        assert status(answer) == 408
        assert b"0.4 s" in answer
        assert status(await found.says(ALIVE)) == 200


async def test_connection_that_never_speaks_is_closed_without_an_answer(parser):
    async with door(parser, limits=Limits(header_timeout_s=0.3)) as found:
        assert await found.says(b"") == b""


async def test_headers_of_a_second_request_that_drip_get_408(parser):
    async with door(parser, limits=Limits(header_timeout_s=0.4)) as found:
        first = ALIVE.replace(b"connection: close\r\n", b"")
        async with found.open(first) as (reader, writer):
            assert status(await reader.readuntil(b"}")) == 200
            writer.write(b"GET / HTTP/1.1\r\n")
            answer = await _flood(reader, writer, b"x", pause=0.02)
    assert status(answer) == 408


async def test_answer_may_take_longer_than_the_headers_and_the_body(parser):
    slow = Reply(before=lambda: asyncio.sleep(0.8))
    limits = Limits(header_timeout_s=0.3, body_timeout_s=0.3)
    async with door(parser, BytesProvider(slow), limits=limits) as found:
        assert status(await found.says(call("connection: close"))) == 200


@pytest.mark.parametrize("drips", [False, True], ids=["silent", "drips"])
async def test_body_that_makes_no_progress_gets_408_in_the_callers_shape(parser, drips):
    provider = BytesProvider()
    content = b'{"model": "coder", "messages": []' + b" " * 5000
    async with door(parser, provider, limits=Limits(body_timeout_s=0.4)) as found:
        async with found.open(call(content=content)[:-4990]) as (reader, writer):
            answer = await _flood(reader, writer, b" " if drips else b"", pause=0.02)
        assert status(answer) == 408
        assert b'"code":"request_timeout"' in answer.replace(b": ", b":")
        assert found.app.metrics.requests == {("", "", "", "408"): 1}
    assert provider.seen == []


async def test_body_that_comes_slowly_but_steadily_is_served(parser):
    provider = BytesProvider()
    content = body("openai_chat")
    content = content[:-1] + b" " * 6000 + b"}"
    request = call("connection: close", content=content)
    async with (
        door(parser, provider, limits=Limits(body_timeout_s=0.5)) as found,
        found.open() as (reader, writer),
    ):
        for start in range(0, len(request), 1500):
            writer.write(request[start : start + 1500])
            await asyncio.sleep(0.2)
        assert status(await all_of(reader)) == 200
    assert provider.seen[0].body


async def test_rest_of_a_body_that_nobody_reads_does_not_hold_the_connection(parser):
    request = b"GET /health HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100000\r\n\r\n"
    async with (
        door(parser, limits=Limits(header_timeout_s=0.4)) as found,
        found.open(request) as (reader, writer),
    ):
        answer = await _flood(reader, writer, b"x", pause=0.02)
    assert status(answer) == 200
    assert answer.count(b"HTTP/1.1") == 1


# --- number of connections -------------------------------------------------------------------


async def test_connection_beyond_the_limit_gets_503_and_running_ones_go_on(parser, caplog):
    caplog.set_level(logging.WARNING, "switchyard")
    go = asyncio.Event()
    provider = BytesProvider(Reply(before=go.wait))
    async with (
        door(parser, provider, limits=Limits(connections=2)) as found,
        found.open(call("connection: close")) as (first, _),
        found.open(call("connection: close")) as (second, _),
    ):
        await _until(lambda: len(provider.seen) == 2)
        refused = [await found.says(ALIVE) for _ in range(3)]
        go.set()
        served_ones = [await all_of(first), await all_of(second)]
        later = await found.says(ALIVE)
    assert [status(answer) for answer in refused] == [503, 503, 503]
    assert b"connection: close" in refused[0]
    assert [status(answer) for answer in (*served_ones, later)] == [200, 200, 200]
    told = [record.getMessage() for record in caplog.records if "the limit" in record.getMessage()]
    assert told == ["the limit `connections` is reached: new connections are refused"]


async def test_half_open_connections_give_way_so_that_others_are_served(parser):
    part = b"GET /health HTTP/1.1\r\nhost: localhost\r\nx-slow: "
    async with (
        door(parser, limits=Limits(half_open=3)) as found,
        contextlib.AsyncExitStack() as opened,
    ):
        slow = []
        for _ in range(5):
            slow.append((await opened.enter_async_context(found.open(part)))[0])
            await asyncio.sleep(0.05)
        ends = [await all_of(reader) for reader in slow[:2]]
        answers = [await found.says(ALIVE) for _ in range(3)]
        ends.append(await all_of(slow[2]))
    assert [status(end) for end in ends] == [503, 503, 503]
    assert [status(answer) for answer in answers] == [200, 200, 200]


async def test_half_open_connections_give_way_when_all_places_are_taken(parser):
    go = asyncio.Event()
    provider = BytesProvider(Reply(before=go.wait))
    async with (
        door(parser, provider, limits=Limits(connections=3)) as found,
        found.open(call("connection: close")) as (running, _),
        found.open() as (silent, _),
        found.open(b"GET /") as (_, _),
    ):
        await _until(lambda: len(provider.seen) == 1)
        await asyncio.sleep(0.1)
        answer = await found.says(ALIVE)
        go.set()
        ends = [await all_of(silent), await all_of(running)]
    assert [status(end) for end in (answer, *ends)] == [200, 0, 200]


async def test_burst_of_connections_within_the_limits_is_served(parser):
    async with door(parser, limits=Limits(connections=200, half_open=150)) as found:
        answers = await asyncio.gather(*[found.says(ALIVE) for _ in range(150)])
    assert {status(answer) for answer in answers} == {200}


# --- a second request behind the first ---------------------------------------------------------


@pytest.mark.parametrize("streams", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("together", [True, False], ids=["one_packet", "two_packets"])
async def test_client_that_leaves_with_a_second_request_sent_is_counted_as_gone(
    parser, together, streams, caplog
):
    caplog.set_level(logging.INFO)
    never = asyncio.Event()
    reply = Reply(headers=EVENT_STREAM, chunks=(b"data: 1\n\n", b"data: 2\n\n"))
    if streams:
        reply.between = never.wait
    else:
        reply.before = never.wait
    provider = BytesProvider(reply)
    async with door(parser, provider) as found:
        parts = (call(stream=streams), call(stream=streams))
        async with found.open(*([b"".join(parts)] if together else parts)) as (reader, writer):
            await _until(lambda: provider.seen)
            if streams:
                await reader.readuntil(b"data: 1")
            await asyncio.sleep(0.1)
            writer.close()
        async with asyncio.timeout(5):
            await provider.seen[0].gone.wait()
        await _until(found.app.metrics.requests.total)
        assert list(found.app.metrics.requests.values()) == [1]
        (key,) = found.app.metrics.requests
        assert key[3] == "499"
        assert found.app.metrics.active == 0
    assert [r for r in caplog.records if r.exc_info] == []


@pytest.mark.parametrize("together", [True, False], ids=["one_packet", "two_packets"])
async def test_requests_behind_each_other_are_answered_in_order(parser, together):
    replies = [Reply(chunks=(b'{"n": %d}' % n,)) for n in range(3)]
    provider = BytesProvider(*replies)
    parts = (call(), call(), call("connection: close"))
    async with door(parser, provider) as found:
        answer = await found.says(*([b"".join(parts)] if together else parts))
    assert re.findall(rb'\{"n": \d\}', answer) == [b'{"n": 0}', b'{"n": 1}', b'{"n": 2}']


async def test_large_second_request_behind_a_running_one_arrives_whole(parser):
    go = asyncio.Event()
    provider = BytesProvider(Reply(before=go.wait), Reply())
    content = body("openai_chat")[:-1] + b" " * 400_000 + b"}"
    async with (
        door(parser, provider) as found,
        found.open(call()) as (reader, writer),
    ):
        await _until(lambda: provider.seen)
        writer.write(call("connection: close", content=content))
        await asyncio.sleep(0.2)
        go.set()
        answer = await all_of(reader)
    assert answer.count(b"HTTP/1.1 200") == 2
    assert len(provider.seen) == 2


async def test_thousands_of_requests_in_one_packet_are_not_all_kept_in_memory(parser):
    never = asyncio.Event()
    provider = BytesProvider(Reply(before=never.wait))
    many = b"GET /v1/models HTTP/1.1\r\nhost: localhost\r\n\r\n" * 5000
    async with door(parser, provider) as found:
        async with found.open(call() + many):
            await asyncio.sleep(0.5)
            cycles = [o for o in gc.get_objects() if type(o).__name__ == "RequestResponseCycle"]
            assert len(cycles) < 50
        assert status(await found.says(ALIVE)) == 200


async def test_bytes_that_are_not_http_behind_a_request_do_not_get_into_its_answer(parser):
    go = asyncio.Event()
    chunks = (b"data: 1\n\n", b"data: [DONE]\n\n")
    provider = BytesProvider(Reply(headers=EVENT_STREAM, chunks=chunks, between=go.wait))
    async with door(parser, provider) as found, found.open(call(stream=True)) as (reader, writer):
        before = await reader.readuntil(b"data: 1")
        writer.write(b"\x00\x01 garbage\r\n\r\n" * 3)
        await asyncio.sleep(0.2)
        go.set()
        after = await all_of(reader)
    assert status(before) == 200
    answer, _, rest = after.partition(b"0\r\n\r\n")
    assert b"[DONE]" in answer
    assert b"HTTP/1.1" not in answer
    assert status(rest) in (0, 400)
