"""Paths and patterns of a policy on bodies that were made to be slow for them."""

from __future__ import annotations

import json

import httpx
import pytest

from switchyard_core import PolicyError
from tests.server.servers import BytesProvider, running

RULES = """
[[housekeeping]]
path = "$..*"
matches = "(a+)+!"
[[mutation_rules.own.rules]]
label = "file_edit"
match = ["re:(a+)+!"]
path = "$..[?(@.name =~ '(a+)+!')].name"
[[mutation_rules.own.rules]]
label = "file_edit"
match = ["re:^(a|aa)+!"]
path = "$..*"
"""
ROUTE = 'mutation_rules = ["own"]'


def nested(levels):
    return json.loads("[" * levels + '"aaaa"' + "]" * levels)


@pytest.mark.parametrize(
    "more",
    [
        pytest.param({"x": "a" * 200_000}, id="long_text"),
        pytest.param({"x": nested(400)}, id="deep"),
        pytest.param({"x": [nested(200) for _ in range(50)]}, id="deep_and_wide"),
        pytest.param({"x": [{"name": "a" * 100}] * 500}, id="many_names"),
    ],
)
async def test_no_body_makes_a_path_slow(more):
    call = {
        "id": "c",
        "type": "function",
        "function": {"name": "a" * 60, "arguments": json.dumps(more)},
    }
    body = {
        "model": "coder",
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c", "content": "done"},
        ],
        **more,
    }
    provider = BytesProvider()
    async with (
        running("openai_chat", provider, top="", route=ROUTE + RULES) as (url, _),
        httpx.AsyncClient(timeout=20) as client,
    ):
        answer = await client.post(url + "/v1/chat/completions", json=body)
    assert answer.status_code == 200
    assert answer.headers["x-switchyard-target"] == "planner"


@pytest.mark.parametrize(
    ("path", "value"),
    [
        pytest.param("$.x.`sub(/(a+)+$/, b)`", "a" * 60 + "!", id="sub"),
        pytest.param("$.x..*..*..*..*", nested(200), id="descendants"),
    ],
)
async def test_a_path_that_some_body_makes_slow_is_not_served(path, value):
    with pytest.raises(PolicyError, match="SY401"):
        await _ask(f"[[housekeeping]]\npath = '{path}'\n", value)


async def _ask(rules, value):
    body = {"model": "coder", "messages": [{"role": "user", "content": "hi"}], "x": value}
    async with (
        running("openai_chat", BytesProvider(), route=rules) as (url, _),
        httpx.AsyncClient(timeout=20) as client,
    ):
        await client.post(url + "/v1/chat/completions", json=body)
