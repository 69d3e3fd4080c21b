"""The server where callers and targets speak different wire formats."""

from __future__ import annotations

import httpx

from switchyard_core.server.app import SwitchyardApp
from switchyard_core.testing import Harness, conversation
from switchyard_core.wire import WIRE_FORMATS
from tests.server.servers import PATHS
from tests.support.policies import PLUGINS, plan_execute

CHAT, RESPONSES, MESSAGES = WIRE_FORMATS
JSON = {"content-type": "application/json"}
ROUTE = "switchyard/plan-execute"
SUBAGENTS = """
[routes.sub]
id = "sub"
type = "passthrough"
targets = ["executor"]
"""


def harness(**settings: str) -> Harness:
    options = settings.pop("options", "")
    text = plan_execute(MESSAGES, formats={"executor": CHAT}, options=options)
    return Harness(text, plugins=PLUGINS)


def edited(**headers: str):
    told = conversation(MESSAGES).user("fix it").edits("edit_file", path="a")
    return told.request(ROUTE, headers=headers)


async def test_counts_follow_the_session_and_are_estimated_where_no_target_counts():
    yard = harness()
    path = PATHS[MESSAGES] + "/count_tokens"
    async with yard.client() as client:
        plan = conversation(MESSAGES).user("hi").request(ROUTE)
        counted = await client.post(path, content=plan.body, headers=JSON)
        estimated = await client.post(path, content=edited().body, headers=JSON)

    assert "x-switchyard-token-count" not in counted.headers
    assert estimated.status_code == 200
    assert estimated.headers["x-switchyard-token-count"] == "estimated"
    assert estimated.headers["x-switchyard-target"] == "executor"
    assert estimated.json()["input_tokens"] > 0
    assert len(yard.upstream.requests) == 1


async def test_dry_run_shows_what_would_be_sent_in_the_targets_format():
    yard = harness()
    app = SwitchyardApp(yard.engine, dry_run=True)
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        shown = await client.post(PATHS[MESSAGES], content=edited().body, headers=JSON)
        count = await client.post(
            PATHS[MESSAGES] + "/count_tokens", content=edited().body, headers=JSON
        )

    assert shown.json()["path"] == "/v1/chat/completions"
    assert '"tool_calls"' in shown.json()["body"]
    assert (count.json()["path"], count.json()["url"]) == ("", "")
    assert yard.upstream.requests == []


async def test_sub_agents_may_be_served_by_a_route_of_another_format():
    yard = harness(options='subagents = "sub"\n' + SUBAGENTS)
    headers = {**JSON, "x-claude-code-session-id": "s", "x-claude-code-agent-id": "a1"}
    body = conversation(MESSAGES).user("look").request(ROUTE).body
    async with yard.client() as client:
        answer = await client.post(PATHS[MESSAGES], content=body, headers=headers)

    assert answer.status_code == 200
    assert answer.json()["type"] == "message"
    assert answer.headers["x-switchyard-route"] == "sub"
    assert yard.upstream.requests[-1].wire_format == CHAT


async def test_refusal_is_in_the_callers_shape_and_sets_no_latch():
    yard = harness()
    body = {"model": ROUTE, "input": "go on", "previous_response_id": "resp_1"}
    headers = {**JSON, "x-switchyard-session-id": "s"}
    async with yard.client() as client:
        answer = await client.post(PATHS[RESPONSES], json=body, headers=headers)

    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == "history_required"
    assert answer.headers["x-should-retry"] == "false"
    assert await yard.latched() == 0
