"""Where requests are fitted to the model of their target, and where not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from switchyard_core import Request
from switchyard_core.answering import ModelCall
from switchyard_core.errors import RefusedError
from switchyard_core.testing import FakeReply, Harness
from tests.support.policies import PLUGINS

POLICY = """
schema_version = 1

[llm_clients.anthropic]
format = "anthropic_messages"
base_url = "https://api.anthropic.com"

[targets.planner]
id = "claude-opus-4-8"
llm_client = "anthropic"

[targets.executor]
id = "claude-haiku-4-5"
llm_client = "anthropic"
{executor}

[routes.main]
id = "coder"
type = "plan_execute"
capable_target = "planner"
efficient_target = "executor"
mutation_rules = ["coding_agents"]
"""
EDIT = {"file_path": "/w/a.py", "old_string": "a", "new_string": "b"}
HISTORY: list[dict[str, Any]] = [
    {"role": "user", "content": "fix it"},
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "s"},
            {"type": "tool_use", "id": "t1", "name": "Edit", "input": EDIT},
        ],
    },
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "ok"}]},
]
BUILT_FOR_OPUS = {
    "model": "coder",
    "max_tokens": 128000,
    "thinking": {"type": "adaptive"},
    "output_config": {"effort": "high"},
}


def harness(executor: str = "", **more: Any) -> Harness:
    text = POLICY.replace("{executor}", executor)
    return Harness(text, plugins=PLUGINS, **more)


def request(messages: list[dict[str, Any]], endpoint: Any = "create", **fields: Any) -> Request:
    body = {**BUILT_FOR_OPUS, "messages": messages, **fields}
    headers = {"x-switchyard-session-id": "s", "anthropic-beta": "one,two"}
    return Request(wire_format="anthropic_messages", body=body, headers=headers, endpoint=endpoint)


async def test_body_built_for_the_planner_fits_the_executor() -> None:
    explained = await harness().explain(request(HISTORY))

    body = json.loads(explained.after)
    assert explained.decision.target == "executor"
    assert body["max_tokens"] == 64000
    assert body["thinking"] == {"type": "enabled", "budget_tokens": 16384}
    assert "output_config" not in body
    text = explained.as_text()
    assert "rewrite   fit_model\n          lowered max_tokens from 128000 to 64000" in text
    assert "          removed output_config.effort (claude-haiku-4-5)\n" in text
    assert json.loads(json.dumps(explained.as_json()))["rewrites"][-2]["name"] == "fit_model"


async def test_planner_is_fitted_too_and_keeps_what_it_takes() -> None:
    routed = await harness().run(request(HISTORY[:1], temperature=0.2))

    body = json.loads(routed.outgoing.body)
    assert routed.decision.target == "planner"
    assert "temperature" not in body
    assert {key: body[key] for key in ("thinking", "output_config", "max_tokens")} == {
        key: BUILT_FOR_OPUS[key] for key in ("thinking", "output_config", "max_tokens")
    }


async def test_rewrite_can_be_switched_off() -> None:
    yard = harness("rewrites = { fit_model = false }")

    routed = await yard.run(request(HISTORY))

    body = json.loads(routed.outgoing.body)
    assert body["thinking"] == {"type": "adaptive"}
    (report,) = [r for r in routed.outgoing.reports if r.name == "fit_model"]
    assert report.skipped == "switched off by the target"


async def test_target_of_which_nothing_is_known_has_no_such_rewrite() -> None:
    yard = harness("profile = false")

    decision = await yard.decide(request(HISTORY))

    assert [rewrite.name for rewrite in decision.rewrites] == ["set_model"]


async def test_headers_are_fitted_and_reported() -> None:
    fit = """
[[targets.executor.fit]]
header = "anthropic-beta"
do = "drop_header"
members = ["two"]

[[targets.executor.fit]]
header = "anthropic-beta"
do = "add_header"
value = "three"
"""
    routed = await harness(fit).run(request(HISTORY))

    assert dict(routed.outgoing.headers)["anthropic-beta"] == "one,three"
    (report,) = [r for r in routed.outgoing.reports if r.name == "fit_model"]
    assert report.changes[-2:] == (
        "removed from the header anthropic-beta: two (fit)",
        "added to the header anthropic-beta: three (fit)",
    )


async def test_refused_request_is_not_sent_and_takes_no_slot() -> None:
    fit = '[[targets.executor.fit]]\ndo = "refuse"\npath = "metadata"\nwhy = "no metadata"\n'
    yard = harness(fit, replies=[FakeReply()])

    with pytest.raises(RefusedError, match="no metadata"):
        await yard.engine.handle(request(HISTORY, metadata={}))

    assert yard.upstream.requests == []
    assert await yard.latched() == 0


async def test_token_count_is_fitted_without_what_only_an_answer_needs() -> None:
    fit = '[[targets.executor.fit]]\npath = "top_k"\ndo = "default"\nvalue = 5\n'
    yard = harness(fit)
    await yard.run(request(HISTORY))

    routed = await yard.run(request(HISTORY, endpoint="count_tokens"))

    body = json.loads(routed.outgoing.body)
    assert routed.decision.target == "executor"
    assert "output_config" not in body
    assert (body["max_tokens"], "top_k" in body) == (128000, False)


async def test_question_of_a_router_is_fitted() -> None:
    yard = harness('[[targets.executor.fit]]\npath = "temperature"\ndo = "drop"\n')
    call = ModelCall(text="?", temperature=0.0, max_output_tokens=100000)

    outgoing = yard.engine.upstreams.question(request(HISTORY), "executor", call)

    body = json.loads(outgoing.body)
    assert body["max_tokens"] == 64000
    assert "temperature" not in body


async def test_body_that_breaks_no_rule_is_sent_byte_for_byte() -> None:
    data = json.dumps(
        {"model": "claude-haiku-4-5", "max_tokens": 5, "messages": HISTORY, "odd": 1.10}, indent=3
    ).replace("1.1", "1.10")
    sent = Request(
        wire_format="anthropic_messages",
        body=data.replace("claude-haiku-4-5", "coder").encode(),
        headers={"x-switchyard-session-id": "s"},
    )

    routed = await harness("system_prompt = 'x'").run(sent)
    plain = await harness("rewrites = { fit_model = false }\nsystem_prompt = 'x'").run(sent)

    assert routed.decision.target == "executor"
    assert routed.outgoing.body == plain.outgoing.body
