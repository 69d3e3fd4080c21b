"""Real coding agents do a small job through ``switchyard serve`` on the shipped policies."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from switchyard_core.scripted import RecordedRequest
from tests.clients.agents import Agent, Workplace
from tests.clients.calls import FIXED, Turn
from tests.clients.changes import inserted, with_model
from tests.clients.roster import wanted
from tests.clients.scenario import FINISHED, alone, split, told_by, turns
from tests.clients.shipped import Shipped, shipped
from tests.clients.tap import Exchange
from tests.clients.watched import account, assert_only_the_right_key_arrived, tries, watched
from tests.support.listening import listening

pytestmark = [pytest.mark.clients, pytest.mark.timeout(300)]

#: Rewrites whose effect is checked byte by byte, without asking the code that made it.
SIMPLE = {"set_model", "insert_planning_prompt"}


with_claude = pytest.mark.parametrize(
    "agent", [pytest.param(a, id=a.id) for a in wanted() if a.id == "claude-messages"]
)
each_agent = pytest.mark.parametrize("agent", [pytest.param(a, id=a.id) for a in wanted()])


@each_agent
def test_client_on_the_provider_itself_edits_the_file(agent: Agent, place: Workplace) -> None:
    """The control run: a failure here is the client's or the script's, not switchyard's."""
    provider = alone(agent, place.repo)
    with listening(provider) as port:
        done = agent.run(port.url, place)

    assert (done.returncode, place.calc) == (0, FIXED), done.stdout
    assert FINISHED in done.stdout


@each_agent
def test_client_through_switchyard_plans_on_one_model_and_executes_on_the_other(
    agent: Agent, place: Workplace, tmp_path: Path
) -> None:
    policy = shipped(agent.policy)
    provider = split(agent, place.repo, policy)
    with watched(provider, policy, tmp_path, server_key=agent.server_key) as tap:
        done = agent.run(tap.url, place)

    story = account(tap.exchanges, provider.requests) + done.stdout
    assert (done.returncode, place.calc) == (0, FIXED), story
    assert FINISHED in done.stdout
    sent = [e for e in tap.exchanges if e.request.wire_format]
    received = tries(sent, [r for r in provider.requests if r.wire_format])
    formats = policy.formats
    assert [r for got in received for r in got if r.wire_format != formats[r.model]] == [], story
    main = [(e, r) for e, r in zip(sent, received, strict=True) if not e.is_side_call]
    models = [got[-1].model for _, got in main]
    after = len(turns(agent.style, place.repo)) - 2
    assert models == [policy.planner] * 2 + [policy.executor] * after, story
    phases = [exchange.headers["x-switchyard-phase"] for exchange, _ in main]
    assert phases == ["planning"] * 2 + ["executing"] * after
    for exchange, got in zip(sent, received, strict=True):
        _assert_only_named_rewrites_changed(exchange, got[0], policy)
        for request in got:
            assert_only_the_right_key_arrived(request, policy)
    _assert_only_reasoning_was_refused(sent, received)


@with_claude
def test_claude_code_continues_with_its_model_and_all_of_its_thinking(
    agent: Agent, place: Workplace, tmp_path: Path
) -> None:
    """It drops the thinking of answers that name another model, and resumes with what they name."""
    policy = shipped(agent.policy)
    provider = split(agent, place.repo, policy)
    resumed = replace(agent, arguments=("-c", *agent.arguments))
    with watched(provider, policy, tmp_path) as tap:
        done = agent.run(tap.url, place)
        first = len(tap.exchanges)
        again = resumed.run(tap.url, place)

    story = account(tap.exchanges, provider.requests) + done.stdout + again.stdout
    assert (done.returncode, again.returncode) == (0, 0), story
    main = [e for e in tap.exchanges if e.request.wire_format and not e.is_side_call]
    bodies = [json.loads(e.request.raw) for e in main]
    assert len({body["model"] for body in bodies}) == 1, story
    later = [json.loads(e.request.raw) for e in tap.exchanges[first:] if e in main]
    thinking = [
        block
        for message in later[0]["messages"]
        if isinstance(message["content"], list)
        for block in message["content"]
        if block["type"] == "thinking"
    ]
    reasoned = sum("reasoning" in turn for turn in turns(agent.style, place.repo))
    assert len(thinking) == reasoned, story
    assert {e.headers["x-switchyard-phase"] for e in main[-1:]} == {"executing"}


@with_claude
def test_claude_code_keeps_titles_and_explore_on_the_small_model(
    agent: Agent, place: Workplace, tmp_path: Path
) -> None:
    policy = shipped(agent.policy)
    explore = {"subagent_type": "Explore", "description": "look", "prompt": "Where is add?"}
    stories: dict[str, list[Turn]] = {
        f"^{policy.planner}$": [
            {"reasoning": "Ask.", "calls": [{"name": "Agent", "arguments": explore}]},
            {"text": FINISHED},
        ],
        "^claude-haiku-4-5$": [{"text": "In calc.py."}],
    }
    noisy = {k: v for k, v in agent.environment.items() if "NONESSENTIAL" not in k}
    provider = told_by(agent, stories, policy)
    with watched(provider, policy, tmp_path) as tap:
        done = replace(agent, environment=noisy).run(tap.url, place)

    story = account(tap.exchanges, provider.requests) + done.stdout
    assert done.returncode == 0, story
    served = {
        (e.headers.get("x-switchyard-phase"), e.headers["x-switchyard-target"])
        for e in tap.exchanges
        if e.request.wire_format and not e.request.path.startswith("/v1/messages/count")
    }
    asked_small = [r for r in provider.requests if r.model == "claude-haiku-4-5"]
    sub_agents = [e for e in tap.exchanges if b"Where is add?" in e.request.raw[-60_000:]]
    assert ("side_call", "small") in served, story
    assert ("planning", "planner") in served, story
    assert any(e.headers.get("x-switchyard-target") == "small" for e in sub_agents), story
    assert {r.status for r in asked_small} == {200}, story


@with_claude
@pytest.mark.parametrize(
    ("name", "is_bound"), [("claude-code", True), ("claude-code-haiku", False)]
)
def test_compaction_while_planning_has_the_instruction_where_thinking_is_bound_to_it(
    agent: Agent, place: Workplace, tmp_path: Path, name: str, is_bound: bool
) -> None:
    policy = shipped(name)
    plan, *_ = turns(agent.style, place.repo)
    stories: dict[str, list[Turn]] = {f"^{policy.planner}$": [plan, {"text": FINISHED}]}
    provider = told_by(agent, stories, policy)
    prompt = agent.arguments.index("-p") + 1
    said = ("-c", *agent.arguments[:prompt], "/compact", *agent.arguments[prompt + 1 :])
    with watched(provider, policy, tmp_path) as tap:
        done = agent.run(tap.url, place)
        first = len(tap.exchanges)
        compacted = replace(agent, arguments=said).run(tap.url, place)

    story = account(tap.exchanges, provider.requests) + done.stdout + compacted.stdout
    assert (done.returncode, compacted.returncode) == (0, 0), story
    calls = [e for e in tap.exchanges[first:] if e.request.wire_format]
    (compaction,) = [e for e in calls if e.headers["x-switchyard-reason"] == "housekeeping"]
    assert compaction.headers["x-switchyard-target"] == "planner", story
    assert compaction.status == 200, story
    assert ("insert_planning_prompt" in compaction.rewrites) is is_bound, story


#: What seals reasoning on Responses; a second try is made without it.
_SEALED = b'encrypted_content":'


def _assert_only_reasoning_was_refused(
    sent: list[Exchange], received: list[list[RecordedRequest]]
) -> None:
    """A strict provider may refuse the reasoning of another model; a latched session knows it."""
    for exchange, got in zip(sent, received, strict=True):
        if len(got) == 1:
            continue
        first, second = got
        assert _SEALED in first.body
        assert _SEALED not in second.body
        assert exchange.headers["x-switchyard-reason"] != "latched"


def _assert_only_named_rewrites_changed(
    exchange: Exchange, request: RecordedRequest, policy: Shipped
) -> None:
    """What arrived is what was announced, and small changes are looked at without our code."""
    assert request.body.decode() == exchange.explained["body"]
    if not exchange.rewrites <= SIMPLE:
        return
    expected = with_model(exchange.request.raw, request.model)
    if "insert_planning_prompt" not in exchange.rewrites:
        assert request.body == expected
        return
    assert request.model == policy.planner
    assert not exchange.is_side_call
    run = inserted(expected, request.body)
    assert run is not None, f"{request.path}: more changed than one insertion"
    assert b"plan" in run.lower()
