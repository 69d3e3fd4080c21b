"""Side calls: which requests are one, and where a policy sends them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from switchyard_core import Request, WireFormat
from switchyard_core.clients import clients
from switchyard_core.engine.side_calls import side_call_of
from switchyard_core.testing import FakeReply, FakeUpstream, Harness
from tests.support.policies import PLUGINS

RECORDED: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "data" / "side-calls.json").read_text()
)
FORMATS: dict[str, WireFormat] = {
    "/v1/messages": "anthropic_messages",
    "/v1/chat/completions": "openai_chat",
}
SESSION = {"x-claude-code-session-id": "s"}
OPENCODE = {"user-agent": "opencode/1.18.33", "x-session-id": "ses_1"}
TOOLS = {"tools": [{"name": "Read", "input_schema": {"type": "object"}}]}


def recorded(name: str, **changes: Any) -> Request:
    found = RECORDED[name]
    return Request(
        wire_format=FORMATS[found["path"]],
        body=found["body"] | changes,
        headers=found["headers"],
    )


def request(
    wire_format: WireFormat,
    *,
    system: str = "You are a coding agent.",
    user: str = "fix it",
    headers: dict[str, str] | None = None,
    model: str = "capable",
    **more: Any,
) -> Request:
    said = {"role": "user", "content": user}
    body: dict[str, Any] = {"model": model}
    if wire_format == "openai_responses":
        body |= {"instructions": system, "input": [said]}
    elif wire_format == "openai_chat":
        body |= {"messages": [{"role": "system", "content": system}, said]}
    else:
        body |= {"system": system, "messages": [said]}
    return Request(wire_format=wire_format, body=body | more, headers=headers or {})


def kind(found: Request, *, named: bool = True) -> str:
    call = side_call_of(found, (), named=named)
    return "" if call is None else call.kind


# --- which requests are one --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("main", ""),
        ("main-later", ""),
        ("agent-own-model", ""),
        ("agent-haiku", "small_model"),
        ("agent-haiku-later", "small_model"),
        ("explore", "small_model"),
        ("compaction", "compaction"),
        ("opencode-title", "title"),
        ("opencode-main", ""),
    ],
)
def test_recorded_request_is_told_from_a_turn(name, expected):
    assert kind(recorded(name), named=False) == expected


def test_small_model_that_a_route_names_is_a_turn_like_any_other():
    assert kind(recorded("explore"), named=True) == ""


def test_session_that_was_started_on_a_small_model_is_not_a_side_call():
    assert kind(recorded("main", model="claude-haiku-4-5-20251001"), named=False) == ""


CASES = {
    "claude-code-topic": (
        request(
            "anthropic_messages",
            system="Analyze if this message indicates a new conversation topic. If it does, …",
        ),
        "topic",
    ),
    "claude-code-bash-prefix": (
        request(
            "anthropic_messages",
            system="Your task is to process Bash commands that an AI coding agent wants to run.",
        ),
        "bash_prefix",
    ),
    "claude-code-summary": (
        request(
            "anthropic_messages",
            system="Summarize this coding conversation in under 50 characters.",
        ),
        "summary",
    ),
    "claude-code-title": (
        request("anthropic_messages", system="Generate a concise, sentence-case title (3-7 words)"),
        "title",
    ),
    "claude-code-web-fetch": (
        request(
            "anthropic_messages", user="\nWeb page content:\n---\npage\n---\n", headers=SESSION
        ),
        "web_fetch",
    ),
    "claude-code-web-search": (
        request(
            "anthropic_messages",
            system="You are an assistant for performing a web search tool use",
            user="Perform a web search for the query: weather",
            headers=SESSION,
            tools=[{"type": "web_search_20250305", "name": "web_search"}],
        ),
        "web_search",
    ),
    "claude-code-suggestion": (
        request("anthropic_messages", user="[SUGGESTION MODE: …]", headers=SESSION, **TOOLS),
        "suggestion",
    ),
    "claude-code-compaction": (
        request(
            "anthropic_messages",
            user="CRITICAL: Respond with TEXT ONLY. Do NOT call any tools.",
            headers=SESSION,
            **TOOLS,
        ),
        "compaction",
    ),
    "claude-code-structured-side-call": (
        request("anthropic_messages", headers=SESSION, output_config={"format": {"type": "x"}}),
        "title",
    ),
    "opencode-title": (
        request(
            "anthropic_messages",
            system="You are a title generator. You output ONLY a thread title. Nothing else.",
        ),
        "title",
    ),
    "opencode-summary": (
        request(
            "openai_responses",
            system="Summarize what was done in this conversation. "
            "Write like a pull request description.",
        ),
        "summary",
    ),
    "opencode-compaction": (
        request(
            "openai_chat",
            system="You are an anchored context summarization assistant for coding sessions.",
            headers=OPENCODE,
        ),
        "compaction",
    ),
    "opencode-side-call": (request("openai_responses", headers=OPENCODE), "title"),
    "codex-compaction": (
        request(
            "openai_responses",
            headers={"x-codex-turn-metadata": '{"request_kind": "compaction"}'},
        ),
        "compaction",
    ),
    "codex-request-kind": (
        request(
            "openai_responses", headers={"x-codex-turn-metadata": '{"request_kind": "memory"}'}
        ),
        "upkeep",
    ),
    "codex-compact": (
        request("openai_responses", headers={"x-openai-subagent": "compact"}),
        "compaction",
    ),
    "codex-upkeep": (
        request("openai_responses", headers={"x-openai-subagent": "memory_consolidation"}),
        "upkeep",
    ),
    "codex-compaction-prompt": (
        request(
            "openai_responses",
            user="You are performing a CONTEXT CHECKPOINT COMPACTION. Create a handoff summary.",
        ),
        "compaction",
    ),
    "pi-compaction": (
        request("openai_chat", system="You are a context summarization assistant. Your task …"),
        "compaction",
    ),
    "qwen-compaction": (
        request(
            "openai_chat",
            system="You are the component that summarizes internal chat history into a given "
            "structure.",
        ),
        "compaction",
    ),
    "qwen-next-speaker": (
        request(
            "openai_chat",
            user="Analyze *only* the content and structure of your immediately preceding response",
        ),
        "next_speaker",
    ),
    "cline-compaction": (
        request(
            "openai_chat",
            user='<explicit_instructions type="summarize_task">\n'
            "The current conversation is rapidly running out of context. Now, …",
        ),
        "compaction",
    ),
    "aider-commit-message": (
        request(
            "openai_chat",
            system="You are an expert software engineer that generates concise, one-line Git "
            "commit messages based on the provided diffs.",
        ),
        "commit_message",
    ),
    "aider-summary": (
        request(
            "openai_chat",
            system="*Briefly* summarize this partial conversation about programming.",
        ),
        "summary",
    ),
}


def test_every_mark_of_every_client_has_a_case():
    assert {mark.name for client in clients() for mark in client.side_calls} == CASES.keys()


@pytest.mark.parametrize("name", CASES)
def test_mark_holds_for_what_the_client_sends(name):
    found, expected = CASES[name]
    call = side_call_of(found, ())

    assert call is not None
    assert (call.kind, call.mark) == (expected, name)


@pytest.mark.parametrize(
    "found",
    [
        request("anthropic_messages", headers=SESSION, **TOOLS),
        request("anthropic_messages", user="why CRITICAL: Respond with TEXT ONLY", headers=SESSION),
        request("anthropic_messages", user="CRITICAL: Respond with TEXT ONLY"),
        request("anthropic_messages", system="Generate a concise, sentence-case title", **TOOLS),
        request("anthropic_messages", user="Generate a concise, sentence-case title"),
        request("openai_chat", user="You are a context summarization assistant."),
        request("openai_responses", headers={"x-codex-turn-metadata": '{"request_kind": "turn"}'}),
        request("openai_chat", headers={"x-session-affinity": "ses_1"}),
    ],
)
def test_turn_that_resembles_a_mark_is_a_turn(found):
    assert kind(found) == ""


# --- where a policy sends them -----------------------------------------------------------------


def harness(
    housekeeping: str, *, small: str = "", tail: str = "", origin: str = "near", replies: Any = ()
) -> Harness:
    text = f"""
schema_version = 1
default_route = "main"

[llm_clients.near]
format = "anthropic_messages"
base_url = "https://near.test"
api_key_env = "NEAR_KEY"

[llm_clients.far]
format = "anthropic_messages"
base_url = "https://far.test"
api_key_env = "FAR_KEY"

[targets.planner]
id = "large-1"
llm_client = "near"

[targets.executor]
id = "large-2"
llm_client = "near"

[targets.small]
id = "claude-haiku-4-5"
llm_client = "{origin}"
{small}

[routes.main]
id = "plan-execute"
type = "plan_execute"
capable_target = "planner"
efficient_target = "executor"

{tail}
{housekeeping}
"""
    return Harness(text, plugins=PLUGINS, replies=replies)


TITLES = '[[housekeeping]]\nkinds = ["title", "small_model"]\ntarget = "small"\n'
GLOB = """
[routes.small]
id = "small"
aliases = ["claude-haiku-*"]
type = "passthrough"
targets = ["small"]
"""


async def decided(world: Harness, asked: Request) -> tuple[str, str, str]:
    decision = await world.engine.decide(asked)
    return decision.target, decision.phase, decision.reason.code


async def test_side_call_of_a_kind_goes_to_its_target_with_its_body_as_it_was():
    world = harness(TITLES)
    asked = CASES["claude-code-structured-side-call"][0]

    decision = await world.engine.decide(asked)
    sent = json.loads(world.engine.rewrite(asked, decision).body)

    assert (decision.target, decision.phase) == ("small", "side_call")
    assert decision.reason.code == "housekeeping"
    assert decision.reason.facts["kind"] == "title"
    assert decision.effects == ()
    assert sent == json.loads(asked.body) | {"model": "claude-haiku-4-5"}


@pytest.mark.parametrize("name", ["agent-haiku", "agent-haiku-later", "explore", "explore-later"])
async def test_subagents_on_a_small_model_stay_on_it_by_a_glob(name):
    world = harness("", tail=GLOB)
    asked = recorded(name)

    decision = await world.engine.decide(asked)
    sent = json.loads(world.engine.rewrite(asked, decision).body)

    assert (decision.route, decision.target) == ("small", "small")
    assert sent == json.loads(asked.body) | {"model": "claude-haiku-4-5"}


@pytest.mark.parametrize("name", ["main", "agent-own-model"])
async def test_other_requests_of_that_session_are_planned(name):
    world = harness("", tail=GLOB)

    assert (await decided(world, recorded(name)))[:2] == ("planner", "planning")


async def test_subagents_on_a_small_model_stay_on_it_by_a_condition():
    assert await decided(harness(TITLES), recorded("explore")) == (
        "small",
        "side_call",
        "housekeeping",
    )


async def test_side_call_without_a_target_goes_where_the_session_is():
    assert await decided(harness(""), recorded("explore")) == (
        "planner",
        "planning",
        "housekeeping",
    )


async def test_side_call_that_does_not_fit_is_left_to_the_router():
    world = harness(TITLES, small="context_window = 10")

    assert (await decided(world, CASES["claude-code-title"][0]))[0] == "planner"


async def test_token_count_is_made_where_the_session_is():
    world = harness('[[housekeeping]]\nheader = "x-a"\ntarget = "small"\n')
    found = RECORDED["main"]
    asked = Request(
        wire_format="anthropic_messages",
        body=found["body"],
        headers={"x-a": "1"},
        endpoint="count_tokens",
    )

    assert (await decided(world, asked))[0] == "planner"


async def test_condition_of_the_policy_marks_and_sends():
    world = harness(
        '[[housekeeping]]\nheader = "x-mine"\nequals = "sum"\nkind = "compaction"\n'
        'target = "small"\n'
    )
    asked = request("anthropic_messages", headers={"x-mine": "sum"})

    decision = await world.engine.decide(asked)

    assert decision.target == "small"
    assert decision.reason.facts == {"kind": "compaction", "mark": "housekeeping[0]"}
    assert await decided(world, request("anthropic_messages", headers={"x-mine": "no"})) == (
        "planner",
        "planning",
        "no_mutation",
    )


@pytest.mark.parametrize("origin", ["near", "far"])
async def test_reasoning_stays_behind_where_the_target_has_another_origin(origin):
    world = harness('[[housekeeping]]\nkinds = ["compaction"]\ntarget = "small"\n', origin=origin)
    asked = recorded("compaction")
    messages = json.loads(asked.body)["messages"]
    thinking = {"type": "thinking", "thinking": "t", "signature": "s"}
    messages[1]["content"].insert(0, thinking)
    asked = recorded("compaction", messages=messages)

    decision = await world.engine.decide(asked)
    sent = world.engine.rewrite(asked, decision).body

    assert (decision.target, decision.phase) == ("small", "side_call")
    assert (b'"signature"' in sent) is (origin == "near")


async def test_side_call_sets_no_latch_and_a_final_one_frees_the_slot():
    world = harness(TITLES)
    asked = CASES["claude-code-structured-side-call"][0]
    final = Request(
        wire_format="anthropic_messages",
        body=asked.body,
        headers={**SESSION, "x-switchyard-session-final": "true"},
    )

    assert (await world.engine.decide(asked)).effects == ()
    assert len((await world.engine.decide(final)).effects) == 1


async def test_explanation_names_mark_and_kind():
    found = await harness(TITLES).engine.explain(CASES["claude-code-title"][0])

    assert "side call claude-code-title (title)" in found.as_text()
    assert found.decision.trace["kind"] == "title"


async def test_failed_side_call_is_the_clients_to_try_again():
    tail = """
[routes.safe]
id = "safe"
type = "fallback"
targets = ["planner", "executor"]
"""
    failure = FakeReply(status=500, body=b'{"type":"error"}')
    world = harness(TITLES, tail=tail, replies=[failure, FakeReply()])
    asked = request(
        "anthropic_messages",
        model="safe",
        headers=SESSION,
        output_config={"format": {"type": "json_schema"}},
    )

    served = await world.ask(asked)

    assert (served.target, served.status) == ("small", 500)
    assert len(served.sent) == 1


async def test_side_call_at_a_prefix_bound_target_has_no_thinking_of_another_prefix():
    policy = (Path(__file__).parents[2] / "policies" / "claude-code.toml").read_text("utf-8")
    policy += '\n[[housekeeping]]\nkinds = ["compaction"]\ntarget = "planner"\n'
    script = {"version": 1, "scripts": [{"turns": [{"reasoning": "Look.", "text": "I see."}]}]}
    upstream = FakeUpstream(script=script, strict="anthropic")
    world = Harness(policy, plugins=PLUGINS, upstream=upstream)
    said = [{"role": "user", "content": "fix it"}]
    more = {"headers": {**SESSION, "x-api-key": "of-the-caller"}, "max_tokens": 9000, **TOOLS}

    planned = await world.ask(request("anthropic_messages", messages=said, **more))
    said += [
        {"role": "assistant", "content": json.loads(planned.answer)["content"]},
        {"role": "user", "content": "CRITICAL: Respond with TEXT ONLY. Do NOT call any tools."},
    ]
    served = await world.ask(request("anthropic_messages", messages=said, **more))

    assert (served.target, served.phase, served.status) == ("planner", "side_call", 200)
