"""Whatever is sent, the caller gets a status in its own shape, and the server lives on."""

from __future__ import annotations

import asyncio
import json

import httpx
import pytest

from switchyard_core.wire import WIRE_FORMATS
from tests.server.servers import PATHS, BytesProvider, body, running

JSON = {"content-type": "application/json"}
HISTORY = {"openai_chat": "messages", "openai_responses": "input", "anthropic_messages": "messages"}

BODIES = {
    "not_json": (b"hello", 400, "invalid_json"),
    "cut": (b'{"model": "coder", ', 400, "invalid_json"),
    "empty": (b"", 400, "invalid_json"),
    "array": (b"[1]", 400, "invalid_json"),
    "scalar": (b"3", 400, "invalid_json"),
    "deep": (b'{"model":"coder","H":' + b"[" * 100_000 + b"]" * 100_000 + b"}", 400, "invalid"),
    "deep_elsewhere": (b"[" * 100_000 + b"]" * 100_000, 400, "invalid_json"),
    "not_utf8": (b'{"model":"coder","H":[],"x":"\xff"}', 400, "invalid_json"),
    "duplicate_key": (b'{"model":"coder","model":"x","H":[]}', 400, "duplicate_key"),
    "no_model": (b'{"H":[]}', 404, "model_not_found"),
    "model_null": (b'{"model":null,"H":[]}', 404, "model_not_found"),
    "model_blank": (b'{"model":"","H":[]}', 404, "model_not_found"),
    "model_number": (b'{"model":5,"H":[]}', 400, "invalid_type"),
    "history_number": (b'{"model":"coder","H":5}', 400, "invalid_type"),
    "history_object": (b'{"model":"coder","H":{}}', 400, "invalid_type"),
    "unknown_model": (b'{"model":"nope","H":[]}', 404, "model_not_found"),
}


def _problem(answer, wire_format):
    """Return code and message of an error in the shape of a format."""
    found = answer.json()
    if wire_format == "anthropic_messages":
        assert set(found) == {"type", "error", "request_id"}
        assert set(found["error"]) == {"type", "message"}
        return found["error"]["message"], found["error"]["message"]
    assert set(found) == {"error"}
    assert set(found["error"]) == {"message", "type", "param", "code"}
    return found["error"]["code"], found["error"]["message"]


@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
async def test_bad_body_is_refused_in_the_callers_shape_and_nothing_is_sent(wire_format):
    provider = BytesProvider()
    async with running(wire_format, provider) as (url, _), httpx.AsyncClient() as client:
        for name, (content, status, code) in BODIES.items():
            answer = await client.post(
                url + PATHS[wire_format],
                content=content.replace(b'"H"', f'"{HISTORY[wire_format]}"'.encode()),
                headers=JSON,
            )
            found, message = _problem(answer, wire_format)
            assert (answer.status_code, code in found) == (status, True), (name, found)
            assert message, name
            assert "Traceback" not in answer.text
        assert provider.seen == []
        answer = await client.post(
            url + PATHS[wire_format], content=body(wire_format), headers=JSON
        )
        assert answer.status_code == 200


@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
async def test_unknown_model_lists_the_routes(wire_format):
    async with running(wire_format, BytesProvider()) as (url, _), httpx.AsyncClient() as client:
        content = json.dumps({"model": "codr", HISTORY[wire_format]: []})
        answer = await client.post(url + PATHS[wire_format], content=content, headers=JSON)
    _, message = _problem(answer, wire_format)
    assert "did you mean `coder`?" in message
    assert "(routes: coder)" in message


@pytest.mark.parametrize("announced", [True, False], ids=["announced", "chunked"])
@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
async def test_body_over_the_limit_gives_413_that_reaches_the_client(wire_format, announced):
    block = b" " * (1 << 20)

    async def parts():
        for _ in range(65):
            yield block

    content = block * 65 if announced else parts()
    async with (
        running(wire_format, BytesProvider()) as (url, _),
        httpx.AsyncClient(timeout=25) as client,
    ):
        answer = await client.post(url + PATHS[wire_format], content=content, headers=JSON)
        alive = await client.get(url + "/health")
    code, message = _problem(answer, wire_format)
    assert (answer.status_code, alive.status_code) == (413, 200)
    assert "body_too_large" in code
    assert "67108864" in message


async def test_body_over_the_limit_is_refused_before_a_client_that_asks_first_sends_it():
    async with running("openai_chat", BytesProvider(), options={"max_body": 10}) as (url, _):
        host, port = url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(
            b"POST /v1/responses HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\n"
            b"content-type: application/json\r\ncontent-length: 11\r\n\r\n"
        )
        async with asyncio.timeout(3):
            assert (await reader.readline()).startswith(b"HTTP/1.1 413")
            await reader.read()
        writer.close()
        await writer.wait_closed()


async def test_body_of_exactly_the_limit_is_accepted():
    content = body("openai_chat")
    options = {"max_body": len(content)}
    async with (
        running("openai_chat", BytesProvider(), options=options) as (url, _),
        httpx.AsyncClient() as client,
    ):
        for extra, status in ((b"", 200), (b" ", 413)):
            answer = await client.post(
                url + PATHS["openai_chat"], content=content + extra, headers=JSON
            )
            assert answer.status_code == status


@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
async def test_wrong_media_types_give_415_and_so_does_a_missing_one(wire_format):
    async with running(wire_format, BytesProvider()) as (url, _), httpx.AsyncClient() as client:
        results = []
        for headers in (
            {"content-type": "text/plain"},
            {"content-type": "application/x-www-form-urlencoded"},
            {"content-type": "text/json"},
            {"content-type": "text/plain; application/json"},
            {},
            {"content-type": "application/json", "content-encoding": "lz4"},
            {"content-type": "application/vnd.x+json; charset=utf-8"},
        ):
            answer = await client.post(
                url + PATHS[wire_format], content=body(wire_format), headers=headers
            )
            results.append(answer.status_code)
            if answer.status_code != 200:
                _problem(answer, wire_format)
    assert results == [415, 415, 415, 415, 415, 415, 200]


@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
async def test_wrong_method_gives_405_with_allow(wire_format):
    async with running(wire_format, BytesProvider()) as (url, _), httpx.AsyncClient() as client:
        for method, path, allowed in (
            ("GET", PATHS[wire_format], "POST"),
            ("DELETE", PATHS[wire_format], "POST"),
            ("PUT", "/v1/models", "GET"),
            ("GET", "/v1/decision", "POST"),
        ):
            headers = {"anthropic-version": "1"} if wire_format == "anthropic_messages" else {}
            answer = await client.request(method, url + path, headers=headers)
            assert (answer.status_code, answer.headers["allow"]) == (405, allowed)
            _problem(answer, wire_format)


async def test_unknown_path_gives_404_in_the_shape_that_the_caller_reads():
    async with running("openai_chat", BytesProvider()) as (url, _), httpx.AsyncClient() as client:
        for path, headers, shape in (
            ("/v1/embeddings", {}, "openai_chat"),
            ("/v1/responses/resp_1", {}, "openai_responses"),
            ("/v1/messages/batches", {}, "anthropic_messages"),
            ("/v1/files", {"anthropic-version": "2023-06-01"}, "anthropic_messages"),
        ):
            answer = await client.post(url + path, content=b"{}", headers=headers)
            assert answer.status_code == 404
            _problem(answer, shape)
            assert answer.headers["connection"] == "close"


async def test_unknown_path_lists_the_paths_and_names_the_nearest():
    async with running("openai_chat", BytesProvider()) as (url, _), httpx.AsyncClient() as client:
        for path, told in (
            ("/v1/chat/completion", "did you mean `/v1/chat/completions`?"),
            ("/chat/completionss", "did you mean `/v1/chat/completions`?"),
            ("/v1/message", "did you mean `/v1/messages`?"),
            ("/metric", "did you mean `/metrics`?"),
            ("/v1/model", "did you mean `/v1/models`?"),
            ("/zzz", "nothing is served at `/zzz` (paths: /v1/chat/completions, "),
        ):
            answer = await client.post(url + path, content=b"{}")
            assert answer.status_code == 404
            assert told in answer.text
            for each in ("/v1/responses", "/v1/messages", "/v1/models", "/v1/decision", "/health"):
                assert each in answer.text
