"""What clients try before they make a call: a WebSocket, other paths, a request without a model."""

from __future__ import annotations

import json
import logging

import httpx
import pytest

from switchyard_core import Switchyard
from switchyard_core.wire import WIRE_FORMATS
from tests.server.servers import PATHS, BytesProvider, answer_to, body, policy, running, served

JSON = {"content-type": "application/json"}
UPGRADE = (
    b"GET /v1/responses HTTP/1.1\r\nhost: localhost\r\nconnection: Upgrade\r\n"
    b"upgrade: websocket\r\nsec-websocket-version: 13\r\n"
    b"sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)


@pytest.mark.parametrize("parser", ["h11", "httptools"])
async def test_websocket_is_426_with_one_plain_line_in_the_log(parser, caplog):
    caplog.set_level(logging.INFO)
    yard = Switchyard.from_policy_text(policy("openai_responses", "http://127.0.0.1:9"))
    async with served(yard.asgi(), parser=parser) as url:
        answer = await answer_to(url, UPGRADE)

    head, _, content = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 426 ")
    assert b"upgrade: http/1.1" in head.lower()
    assert json.loads(content)["error"]["code"] == "upgrade_not_supported"
    lines = [line for line in caplog.records if line.name != "asyncio"]
    told = [line.getMessage() for line in lines if line.levelno >= logging.WARNING]
    assert [line for line in told if "WebSocket library" in line or "Unsupported" in line] == []
    assert len([line for line in lines if "status=426" in line.getMessage()]) == 1


@pytest.mark.parametrize("parser", ["h11", "httptools"])
async def test_connection_serves_http_after_another_upgrade_than_a_websocket(parser):
    yard = Switchyard.from_policy_text(policy("openai_chat", "http://127.0.0.1:9"))
    async with served(yard.asgi(), parser=parser) as url:
        request = (
            b"GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close, upgrade\r\n"
            b"upgrade: h2c\r\n\r\n"
        )
        answer = await answer_to(url, request)

    assert answer.startswith(b"HTTP/1.1 200 ")


async def test_websocket_that_a_host_has_taken_is_refused():
    app = Switchyard.from_policy_text(policy("openai_chat", "http://127.0.0.1:9")).asgi()
    sent = []

    async def send(message):
        sent.append(message)

    async def receive():
        return {"type": "websocket.connect"}

    extensions = {"websocket.http.response": {}}
    await app({"type": "websocket", "extensions": extensions}, receive, send)
    await app({"type": "websocket"}, receive, send)

    assert [message.get("status", message["type"]) for message in sent] == [
        426,
        "websocket.http.response.body",
        "websocket.close",
    ]


@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
@pytest.mark.parametrize("model", [b"", b'"model":null,'], ids=["absent", "null"])
async def test_request_without_a_model_is_served_by_the_default_route(wire_format, model):
    provider = BytesProvider()
    content = body(wire_format).replace(b'"model" : "coder",', model)
    top = 'default_route = "coding"'
    async with running(wire_format, provider, top=top) as (url, _), httpx.AsyncClient() as client:
        answer = await client.post(url + PATHS[wire_format], content=content, headers=JSON)

    assert answer.status_code == 200
    assert json.loads(provider.seen[0].body)["model"] == "big-model"


async def test_request_without_a_model_and_without_a_default_route_says_what_is_missing():
    async with running("openai_chat", BytesProvider()) as (url, _), httpx.AsyncClient() as client:
        answer = await client.post(
            url + PATHS["openai_chat"], content=b'{"messages":[]}', headers=JSON
        )

    assert answer.status_code == 404
    assert "names no `model`, and the policy has no `default_route`" in answer.text


@pytest.mark.parametrize(
    ("wire_format", "path"),
    [
        ("openai_responses", "/backend-api/codex/responses"),
        ("anthropic_messages", "/v1/v1/messages"),
    ],
)
async def test_path_of_a_client_reaches_the_call(wire_format, path):
    provider = BytesProvider()
    async with running(wire_format, provider) as (url, _), httpx.AsyncClient() as client:
        answer = await client.post(url + path, content=body(wire_format), headers=JSON)

    assert answer.status_code == 200
    assert provider.seen[0].path == PATHS[wire_format]


async def test_codex_gets_its_model_list_below_its_own_path():
    path = "/backend-api/codex/models?client_version=0.171.0"
    provider = BytesProvider()
    async with running("openai_responses", provider) as (url, _), httpx.AsyncClient() as client:
        answer = await client.get(url + path)

    assert answer.json()["models"] == []
