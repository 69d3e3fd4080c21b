from __future__ import annotations

import asyncio

import httpx
import pytest

from switchyard_core.wire import WIRE_FORMATS
from tests.server.servers import (
    EVENT_STREAM,
    EVENTS,
    KEY,
    PATHS,
    BytesProvider,
    Reply,
    body,
    running,
)

JSON = {"content-type": "application/json"}
SESSION = {**JSON, "x-switchyard-session-id": "s-1"}


@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
async def test_stream_passes_byte_for_byte_and_only_model_changes_when_latched(wire_format):
    chunks = EVENTS[wire_format]
    provider = BytesProvider(Reply(headers=EVENT_STREAM, chunks=chunks))
    sent = body(wire_format, stream=True, edited=True)
    async with running(wire_format, provider) as (url, _), httpx.AsyncClient() as client:
        answer = await client.post(url + PATHS[wire_format], content=sent, headers=SESSION)

    assert answer.content == b"".join(chunks)
    assert provider.seen[0].body == sent.replace(b'"coder"', b'"small-model"')
    assert answer.headers["x-switchyard-target"] == "executor"
    assert answer.headers["x-switchyard-phase"] == "executing"
    assert answer.headers["x-switchyard-reason"] == "mutation_in_history"
    assert answer.headers["x-switchyard-route"] == "coding"
    assert answer.headers["x-model-router-selected-model"] == "small-model"
    assert "x-switchyard-warning" not in answer.headers


@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
async def test_whole_answer_passes_with_its_length_and_status(wire_format):
    content = b'{ "id": "x", "n": 1.10, "t": "\xc3\xa4\\u00e4" }\n'
    headers = (
        ("content-type", "application/json; odd=1"),
        ("content-length", str(len(content))),
        ("x-ratelimit-remaining", "7"),
        ("x-request-id", "theirs"),
        ("set-cookie", "a=b"),
        ("connection", "x-odd"),
        ("x-odd", "1"),
        ("alt-svc", "h3"),
    )
    provider = BytesProvider(Reply(headers=headers, chunks=(content[:5], content[5:])))
    async with running(wire_format, provider) as (url, _), httpx.AsyncClient() as client:
        answer = await client.post(
            url + PATHS[wire_format] + "?beta=true", content=body(wire_format), headers=JSON
        )

    assert answer.content == content
    assert answer.headers["content-length"] == str(len(content))
    assert answer.headers["content-type"] == "application/json; odd=1"
    assert answer.headers["x-ratelimit-remaining"] == "7"
    assert answer.headers["x-request-id"] == "theirs"
    assert answer.headers["x-switchyard-request-id"].startswith("req_")
    assert not {"set-cookie", "x-odd", "alt-svc"} & set(answer.headers)
    assert provider.seen[0].query == "beta=true"
    assert b'"x":1.10, "big":' + b"7" * 70 in provider.seen[0].body
    assert b'"z":{"d":1,"d":2}' in provider.seen[0].body
    assert b"Plan first." in provider.seen[0].body


@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
async def test_each_chunk_arrives_before_the_next_is_sent(wire_format):
    gate = asyncio.Semaphore(0)
    first, *rest = EVENTS[wire_format]
    provider = BytesProvider(
        Reply(headers=EVENT_STREAM, chunks=(first, *rest), between=gate.acquire)
    )
    async with (
        running(wire_format, provider) as (url, _),
        httpx.AsyncClient() as client,
        client.stream(
            "POST",
            url + PATHS[wire_format],
            content=body(wire_format, stream=True),
            headers=JSON,
        ) as answer,
    ):
        chunks = answer.aiter_raw()
        assert await anext(chunks) == first
        for chunk in rest:
            gate.release()
            assert await anext(chunks) == chunk


@pytest.mark.parametrize("path", ["/chat/completions", "/v1/chat/completions/"])
async def test_paths_work_without_version_and_with_a_final_slash(path):
    provider = BytesProvider()
    async with running("openai_chat", provider) as (url, _), httpx.AsyncClient() as client:
        answer = await client.post(url + path, content=body("openai_chat"), headers=JSON)
    assert answer.status_code == 200


@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
async def test_provider_error_keeps_status_body_and_retry_after(wire_format):
    content = b'{"error":{"type":"x","message":"slow down"}}'
    reply = Reply(
        status=429,
        headers=(("content-type", "application/json"), ("retry-after", "9")),
        chunks=(content,),
    )
    provider = BytesProvider(reply)
    async with running(wire_format, provider) as (url, _), httpx.AsyncClient() as client:
        answer = await client.post(
            url + PATHS[wire_format], content=body(wire_format), headers=JSON
        )
    assert (answer.status_code, answer.content) == (429, content)
    assert answer.headers["retry-after"] == "9"
    assert len(provider.seen) == 1


async def test_closed_connection_is_tried_again_before_the_first_byte():
    provider = BytesProvider(Reply(chunks=(), cut=True), Reply())
    async with (
        running("openai_chat", provider, retries=1) as (url, _),
        httpx.AsyncClient() as client,
    ):
        answer = await client.post(
            url + PATHS["openai_chat"], content=body("openai_chat"), headers=JSON
        )
    assert answer.status_code == 200
    assert [seen.body for seen in provider.seen] == [provider.seen[0].body] * 2


async def test_headers_to_the_provider_hold_its_key_and_no_credential_of_the_caller():
    provider = BytesProvider()
    headers = {
        **SESSION,
        "authorization": "Bearer callers-own",
        "x-api-key": "callers-own",
        "cookie": "callers-own",
        "user-agent": "agent/1",
    }
    async with running("openai_chat", provider) as (url, _), httpx.AsyncClient() as client:
        await client.post(url + PATHS["openai_chat"], content=body("openai_chat"), headers=headers)
    got = provider.seen[0].headers
    assert got["authorization"] == f"Bearer {KEY}"
    assert "callers-own" not in str(got)
    assert "x-switchyard-session-id" not in got
    assert got["user-agent"].startswith("agent/1 switchyard/")


@pytest.mark.parametrize(
    ("wire_format", "path"),
    [
        ("anthropic_messages", "/v1/messages/count_tokens"),
        ("openai_responses", "/v1/responses/input_tokens"),
        ("openai_responses", "/v1/responses/compact"),
    ],
)
async def test_side_calls_go_where_the_session_is_and_set_no_latch(wire_format, path):
    provider = BytesProvider()
    async with running(wire_format, provider) as (url, app), httpx.AsyncClient() as client:
        sent = body(wire_format, edited=True)
        answer = await client.post(url + path, content=sent, headers=SESSION)
        assert answer.status_code == 200
        assert await app.engine.runtimes["coding"].store.count() == 0
    assert provider.seen[0].path == path
    assert provider.seen[0].json()["model"] == "small-model"
