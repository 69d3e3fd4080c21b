"""Recording from providers over real HTTP: compressed answers, and the httpx adapter."""

from __future__ import annotations

import contextlib
import gzip
import json

import httpx
import pytest

from switchyard_core import Replay
from switchyard_core.errors import ReplayMiss
from switchyard_core.replay import ReplayTransport
from switchyard_core.upstream import HttpUpstream
from tests.replay.calls import call, chunks, files, outgoing, tree
from tests.upstream.loopback import answers, framed, http, raw_provider

ANSWER = b'{"id":"x","text":"w\xc3\xb6rld"}'
EVENTS = b"".join(
    b'data: {"choices":[{"delta":{"content":"w\xc3\xb6rld %d"}}]}\n\n' % n for n in range(30)
)
STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-encoding: gzip\r\n"
    b"transfer-encoding: chunked\r\n\r\n"
)


@contextlib.asynccontextmanager
async def recording(folder, provider):
    upstream = Replay(folder, "record").upstream(
        None, lambda _client: HttpUpstream(provider.url, max_retries=0)
    )
    try:
        yield upstream
    finally:
        await upstream.aclose()


async def replayed(folder, sent):
    return await Replay(folder).upstream(None, lambda _client: pytest.fail("connected")).send(sent)


async def test_a_gzipped_answer_is_passed_on_raw_and_stored_decoded(tmp_path):
    packed = gzip.compress(ANSWER)
    whole = http(200, packed, "content-type: application/json", "content-encoding: gzip")
    sent = call("openai_chat")

    async with raw_provider(answers(whole)) as provider, recording(tmp_path, provider) as upstream:
        live = await upstream.send(sent)
        assert live.header("content-encoding") == "gzip"
        assert await live.read() == packed

    stored = tree(tmp_path)["responses"][0]
    assert stored["body"] == json.loads(ANSWER)
    assert stored["headers"] == {"content-type": "application/json"}
    played = await replayed(tmp_path, sent)
    assert await played.read() == ANSWER
    assert played.header("content-encoding") is None
    assert played.header("content-length") is None


async def test_a_gzipped_stream_is_passed_on_raw_and_stored_decoded(tmp_path):
    packed = gzip.compress(EVENTS)
    pieces = [packed[at : at + 11] for at in range(0, len(packed), 11)]
    stream = STREAM_HEAD + b"".join(map(framed, [*pieces, b""]))
    sent = call("openai_chat", stream=True)

    async with raw_provider(answers(stream)) as provider, recording(tmp_path, provider) as upstream:
        assert b"".join(await chunks(await upstream.send(sent))) == packed

    assert "wörld 29" in next(tmp_path.iterdir()).read_text("utf-8")
    played = await chunks(await replayed(tmp_path, sent))
    assert b"".join(played) == EVENTS


async def test_neither_url_nor_headers_of_the_request_are_stored(tmp_path):
    sent = call("openai_chat")

    async with (
        raw_provider(answers(http(200, ANSWER))) as provider,
        recording(tmp_path, provider) as upstream,
    ):
        await chunks(await upstream.send(sent))
        assert b"top-secret" in provider.heads[0]

    text = next(tmp_path.iterdir()).read_text("utf-8")
    assert "127.0.0.1" not in text
    assert "top-secret" not in text


async def test_the_httpx_adapter_has_the_same_files_and_keys(tmp_path):
    body = b'{"model":"m","messages":[]}'
    whole = http(200, gzip.compress(ANSWER), "content-encoding: gzip")

    async with raw_provider(answers(whole)) as provider:
        transport = ReplayTransport(Replay(tmp_path, "record"))
        async with httpx.AsyncClient(transport=transport, base_url=provider.url) as client:
            live = await client.post("/v1/chat/completions", content=body)
    assert live.content == ANSWER

    assert len(files(tmp_path)) == 1
    played = await replayed(tmp_path, outgoing("openai_chat", body))
    assert await played.read() == ANSWER
    async with httpx.AsyncClient(transport=ReplayTransport(Replay(tmp_path))) as client:
        again = await client.post("https://elsewhere.test/v1/chat/completions", content=body)
        assert again.json() == json.loads(ANSWER)
        with pytest.raises(ReplayMiss):
            await client.post("https://elsewhere.test/v1/chat/completions", content=b"{}")


async def test_the_httpx_adapter_records_a_stream(tmp_path):
    def handle(_request):
        return httpx.Response(200, headers={"content-type": "text/event-stream"}, content=EVENTS)

    transport = ReplayTransport(Replay(tmp_path, "record"), httpx.MockTransport(handle))
    async with (
        httpx.AsyncClient(transport=transport) as client,
        client.stream("POST", "https://a.test/v1/chat/completions", content=b"{}") as live,
    ):
        assert await live.aread() == EVENTS

    assert "".join(tree(tmp_path)["responses"][0]["chunks"]).encode() == EVENTS
