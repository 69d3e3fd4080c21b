"""What a client sees when a provider breaks off, and a provider when a client does."""

from __future__ import annotations

import asyncio
import json

import httpx
import pytest

from switchyard_core.clients import Client, Retries
from switchyard_core.wire import WIRE_FORMATS
from switchyard_core.wire.passing import WHOLE_BYTES
from tests.server.servers import (
    EVENT_STREAM,
    EVENTS,
    PATHS,
    BytesProvider,
    Reply,
    body,
    running,
)

PLAIN = ("content-type", "application/json")
LENGTH = ("content-length", "99")
JSON = {"content-type": "application/json"}


@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
async def test_stream_that_is_cut_after_content_ends_with_an_error_event(wire_format):
    *first, last = EVENTS[wire_format]
    chunks = (*first, last[:-4])
    provider = BytesProvider(Reply(headers=EVENT_STREAM, chunks=chunks, cut=True))
    async with running(wire_format, provider) as (url, app), httpx.AsyncClient() as client:
        answer = await client.post(
            url + PATHS[wire_format], content=body(wire_format, stream=True), headers=JSON
        )
    sent = b"".join(chunks)
    assert answer.content.startswith(sent + b"\n\n")
    head, _, data = answer.content[len(sent) + 2 :].partition(b"data: ")
    event = json.loads(data)
    if wire_format == "openai_chat":
        assert head == b""
        assert event["error"]["code"] == "upstream_cut"
    elif wire_format == "openai_responses":
        assert head == b"event: error\n"
        assert (event["type"], event["code"], event["sequence_number"]) == (
            "error", "upstream_cut", 1,
        )  # fmt: skip
    else:
        assert head == b"event: error\n"
        assert event["error"]["type"] == "api_error"
    assert app.metrics.errors == {("coding", "upstream_cut"): 1}


@pytest.mark.parametrize(
    "headers",
    [(PLAIN,), (PLAIN, LENGTH)],
    ids=["chunked", "with_length"],
)
@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
async def test_whole_answer_that_is_cut_is_a_real_error(wire_format, headers):
    provider = BytesProvider(Reply(headers=headers, chunks=(b'{"half":', b" "), cut=True))
    async with running(wire_format, provider) as (url, app), httpx.AsyncClient() as client:
        answer = await client.post(
            url + PATHS[wire_format], content=body(wire_format), headers=JSON
        )
    assert answer.status_code == 502
    assert "connection lost" in answer.text
    assert app.metrics.errors == {("coding", "upstream_cut"): 1}


@pytest.mark.parametrize(
    "reply",
    [
        Reply(chunks=(b'{"half":"' + b"x" * WHOLE_BYTES, b" "), cut=True),
        Reply(
            headers=(("content-type", "text/event-stream"), ("content-encoding", "unknown")),
            chunks=(b"half", b" "),
            cut=True,
        ),
    ],
    ids=["large", "encoded"],
)
@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
async def test_answer_that_is_cut_never_looks_complete(wire_format, reply, caplog):
    provider = BytesProvider(reply)
    async with running(wire_format, provider) as (url, app), httpx.AsyncClient() as client:
        call = client.stream(
            "POST", url + PATHS[wire_format], content=body(wire_format), headers=JSON
        )
        with pytest.raises(httpx.RemoteProtocolError):  # noqa: PT012 - the failure is at the end
            async with call as answer:
                assert answer.status_code == 200
                async for _ in answer.aiter_raw():
                    pass
        assert (await client.get(url + "/health")).status_code == 200
    assert app.metrics.errors == {("coding", "upstream_cut"): 1}


@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
async def test_stream_that_fails_before_any_byte_is_a_real_error(wire_format):
    provider = BytesProvider(Reply(headers=EVENT_STREAM, chunks=(), cut=True))
    async with running(wire_format, provider) as (url, _), httpx.AsyncClient() as client:
        answer = await client.post(
            url + PATHS[wire_format], content=body(wire_format, stream=True), headers=JSON
        )
    assert answer.status_code == 502
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-switchyard-target"] == "planner"
    if wire_format == "anthropic_messages":
        assert answer.json()["type"] == "error"
        assert answer.json()["request_id"] == answer.headers["request-id"]
    else:
        assert answer.json()["error"]["code"] == "upstream_closed"


async def test_provider_that_is_silent_too_long_gives_504():
    async def hang():
        await asyncio.sleep(30)

    provider = BytesProvider(Reply(before=hang))
    client_keys = 'api_key_env = "UPSTREAM_KEY"\ntimeout_ms = 200'
    async with (
        running("openai_chat", provider, client=client_keys) as (url, _),
        httpx.AsyncClient() as client,
    ):
        answer = await client.post(
            url + PATHS["openai_chat"], content=body("openai_chat"), headers=JSON
        )
    assert answer.status_code == 504
    assert answer.json()["error"]["code"] == "upstream_timeout"


@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
async def test_client_that_leaves_before_the_headers_cancels_the_call(wire_format):
    arrived = asyncio.Event()

    async def hang():
        arrived.set()
        await asyncio.sleep(30)

    provider = BytesProvider(Reply(before=hang))
    async with running(wire_format, provider) as (url, app):
        async with httpx.AsyncClient() as client:
            call = asyncio.create_task(
                client.post(url + PATHS[wire_format], content=body(wire_format), headers=JSON)
            )
            await arrived.wait()
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)
        async with asyncio.timeout(5):
            await provider.seen[0].gone.wait()
        await _until(lambda: app.metrics.active == 0)
    assert app.metrics.errors == {("coding", "client_gone"): 1}


@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
async def test_client_that_leaves_inside_a_stream_cancels_the_call(wire_format):
    async def hang():
        await asyncio.sleep(30)

    provider = BytesProvider(Reply(headers=EVENT_STREAM, chunks=EVENTS[wire_format], between=hang))
    async with running(wire_format, provider) as (url, app):
        async with (
            httpx.AsyncClient() as client,
            client.stream(
                "POST",
                url + PATHS[wire_format],
                content=body(wire_format, stream=True),
                headers=JSON,
            ) as answer,
        ):
            assert await anext(answer.aiter_raw()) == EVENTS[wire_format][0]
        async with asyncio.timeout(5):
            await provider.seen[0].gone.wait()
        await _until(lambda: app.metrics.active == 0)
    assert [key[3] for key in app.metrics.requests] == ["499"]


async def test_client_that_reads_nothing_holds_the_provider_back_and_leaving_cancels_it():
    size, count = 1 << 20, 64
    sent = 0

    async def note():
        nonlocal sent
        sent += 1

    provider = BytesProvider(
        Reply(headers=EVENT_STREAM, chunks=(b"x" * size,) * count, between=note)
    )
    async with running("openai_chat", provider) as (url, app):
        host, port = url.removeprefix("http://").split(":")
        _, writer = await asyncio.open_connection(host, int(port), limit=1024)
        content = body("openai_chat", stream=True)
        writer.write(
            b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
            b"content-length: %d\r\n\r\n" % len(content) + content
        )
        await _until(lambda: sent > 0)
        before = -1
        while before != sent:
            before = sent
            await asyncio.sleep(0.3)
        assert sent < count - 20
        writer.transport.abort()
        async with asyncio.timeout(5):
            await provider.seen[0].gone.wait()
        await _until(lambda: app.metrics.active == 0)


async def test_client_that_leaves_inside_its_body_is_counted_as_gone_and_nothing_is_sent():
    provider = BytesProvider()
    async with running("openai_chat", provider) as (url, app):
        host, port = url.removeprefix("http://").split(":")
        _, writer = await asyncio.open_connection(host, int(port))
        writer.write(
            b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
            b"content-length: 999\r\n\r\n{"
        )
        await writer.drain()
        await asyncio.sleep(0.1)
        writer.transport.abort()
        async with httpx.AsyncClient() as client:
            assert (await client.get(url + "/health")).status_code == 200
    assert provider.seen == []
    assert app.metrics.requests == {("", "", "", "499"): 1}
    assert app.metrics.errors == {("", "client_gone"): 1}


async def _until(condition):
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110 - counters have no event
            await asyncio.sleep(0.01)


async def test_stream_that_is_cut_ends_as_trials_with_the_client_say(monkeypatch):
    one = Client(name="one", order=1, user_agent="one/", retries=Retries(cut="break"))
    two = Client(name="two", order=2, user_agent="two/", retries=Retries(cut="event"))
    monkeypatch.setattr("switchyard_core.clients.clients", lambda: (one, two))
    provider = BytesProvider(
        Reply(headers=EVENT_STREAM, chunks=EVENTS["openai_chat"][:1], cut=True)
    )
    async with running("openai_chat", provider) as (url, _), httpx.AsyncClient() as client:

        async def told(agent):
            headers = {**JSON, "user-agent": agent}
            content = body("openai_chat", stream=True)
            return await client.post(url + PATHS["openai_chat"], content=content, headers=headers)

        assert b"upstream_cut" in (await told("two/1.0")).content
        assert b"upstream_cut" in (await told("three/1.0")).content
        with pytest.raises(httpx.RemoteProtocolError):
            await told("one/1.0")
