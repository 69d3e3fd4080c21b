"""A server that only explains: whatever comes, no provider hears of it."""

from __future__ import annotations

import json

import httpx
import pytest

from switchyard_core import Switchyard
from switchyard_core.world import World
from tests.server.servers import KEY, BytesProvider, body, policy, running, served

TOP = 'fallback_client = "provider"'
JSON = {"content-type": "application/json", "x-switchyard-session-id": "s"}
ASKING = """
[routes.judged]
id = "judged"
type = "llm_classifier"
judge_target = "executor"
strong_target = "planner"
weak_target = "executor"

[routes.planned]
id = "planned"
type = "planner_executor"
planner_target = "planner"
executor_target = "executor"

[routes.tried]
id = "tried"
type = "fallback"
targets = ["planner", "executor"]
"""


@pytest.mark.parametrize(
    ("method", "path", "model"),
    [
        pytest.param("POST", "/v1/chat/completions", "coder", id="routed"),
        pytest.param("POST", "/v1/chat/completions", "judged", id="router_that_asks"),
        pytest.param("POST", "/v1/chat/completions", "planned", id="router_that_answers"),
        pytest.param("POST", "/v1/chat/completions", "tried", id="router_that_tries_again"),
        pytest.param("POST", "/v1/decision", "coder", id="decision"),
        pytest.param("GET", "/v1/models", "", id="models"),
        pytest.param("GET", "/v1/files?limit=2", "", id="fallback_get"),
        pytest.param("POST", "/v1/embeddings", "any", id="fallback_post"),
        pytest.param("DELETE", "/v1/files/f", "", id="fallback_delete"),
        pytest.param("HEAD", "/v1/files/f", "", id="head"),
    ],
)
async def test_no_provider_is_called_whatever_is_asked(method, path, model):
    provider = BytesProvider()
    async with served(provider) as upstream:
        yard = Switchyard.from_policy_text(
            policy("openai_chat", upstream, top=TOP, route=ASKING),
            world=World(environ={"UPSTREAM_KEY": KEY}),
        )
        async with served(yard.asgi(dry_run=True)) as url, httpx.AsyncClient() as client:
            text = {"model": model, "messages": [{"role": "user", "content": "hi"}]}
            if path == "/v1/decision":
                text = {"input_format": "openai_chat", "request": text}
            content = json.dumps(text) if method == "POST" else None
            answer = await client.request(method, url + path, content=content, headers=JSON)
    assert answer.status_code == 200, answer.text
    assert provider.seen == []


@pytest.mark.parametrize(
    ("wire_format", "path"),
    [
        ("anthropic_messages", "/v1/messages/count_tokens"),
        ("openai_responses", "/v1/responses/input_tokens"),
        ("openai_responses", "/v1/responses/compact"),
    ],
)
async def test_side_calls_are_explained_and_not_made(wire_format, path):
    provider = BytesProvider()
    async with (
        running(wire_format, provider, options={"dry_run": True}, environ={}) as (url, _),
        httpx.AsyncClient() as client,
    ):
        answer = await client.post(url + path, content=body(wire_format), headers=JSON)
    assert (answer.status_code, answer.json()["path"]) == (200, path)
    assert provider.seen == []


async def test_what_would_be_passed_on_is_said():
    provider = BytesProvider()
    async with (
        running("openai_chat", provider, top=TOP, options={"dry_run": True}) as (url, _),
        httpx.AsyncClient() as client,
    ):
        answer = await client.put(
            url + "/v1/files/a%2Fb?x=%20y", content=b"raw", headers={"authorization": "Bearer c"}
        )
    assert answer.json() == {
        "fallback_client": "provider",
        "method": "PUT",
        "path": "/v1/files/a%2Fb",
        "query": "x=%20y",
        "body_bytes": 3,
    }
    assert provider.seen == []
