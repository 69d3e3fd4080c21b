"""Explaining a request to a route that answers by itself: no call, and no plan kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from switchyard_core import Request, WireFormat
from switchyard_core.cli import cli
from switchyard_core.explain.explanation import AnswerExplanation, explain_or_ask
from switchyard_core.policy import load_policy
from switchyard_core.switchyard import Switchyard
from switchyard_core.testing import conversation, registry_of
from switchyard_core.wire import WIRE_FORMATS
from switchyard_core.world import World
from tests.support.policies import PLUGINS

POLICY = Path(__file__).parents[2] / "policies/planner_executor.toml"
PLAN = json.dumps(
    {
        "goal": "Find a gift.",
        "steps": [
            {"step": 1, "action": "Look around", "query": "lens"},
            {"step": 2, "action": "Choose", "query": None},
        ],
    }
)


@pytest.fixture
def engine() -> Switchyard:
    registry = registry_of(PLUGINS)
    return Switchyard(load_policy(POLICY, registry), registry, world=World(environ={}))


def asked(wire_format: WireFormat) -> Request:
    return conversation(wire_format).user("a gift").request("switchyard/shop")


@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
async def test_explanation_ends_at_the_first_question(
    engine: Switchyard, wire_format: WireFormat
) -> None:
    found = await explain_or_ask(engine, asked(wire_format))

    assert isinstance(found, AnswerExplanation)
    told = found.as_json()
    assert (told["route"], told["reason"]["code"]) == ("shop", "plan_first")
    assert (told["would_ask"]["target"], told["would_ask"]["text"]) == ("planner", "a gift")
    assert told["would_ask"]["schema"]["required"] == ["goal", "steps"]
    assert not {"body", "path", "rewrites", "answer"} & set(told)
    text = found.as_text()
    assert "reason    plan_first: asks `planner` for a plan" in text
    assert "would ask planner (provider/large-model)" in text
    assert "| a gift" in text


async def test_replies_carry_it_on_and_at_last_to_the_answer(engine: Switchyard) -> None:
    request = asked("openai_chat")

    half = await explain_or_ask(engine, request, {"planner": [PLAN]})
    whole = await explain_or_ask(
        engine, request, {"planner": [PLAN], "executor": ["Three lenses.", "The first."]}
    )

    assert isinstance(half, AnswerExplanation)
    assert half.as_json()["would_ask"]["target"] == "executor"
    assert half.as_json()["trace"]["asked"][0]["reply"] == PLAN
    assert isinstance(whole, AnswerExplanation)
    told = whole.as_json()
    assert (told["phase"], told["answer"]["switchyard"]["status"]) == ("completed", "completed")
    assert told["answer"]["text"].startswith("Plan: Find a gift.")
    text = whole.as_text(color=True)
    assert "phase     completed" in text
    assert "| The first." in text
    assert text.count("asked     executor: ") == 2


async def test_plan_that_would_wait_is_forgotten(engine: Switchyard) -> None:
    body = {
        "model": "switchyard/shop",
        "messages": [{"role": "user", "content": "a gift"}],
        "switchyard": {"approval": "always"},
    }
    request = Request(wire_format="openai_chat", body=body)

    found = await explain_or_ask(engine, request, {"planner": [PLAN]})

    assert found.as_json()["phase"] == "planned"
    plans = engine.runtimes["shop"].plans
    assert plans is not None
    assert await plans.count() == 0


def test_command_explains_it_and_several_in_order(tmp_path: Path) -> None:
    file = tmp_path / "request.json"
    body = {"model": "switchyard/shop", "messages": [{"role": "user", "content": "a gift"}]}
    file.write_text(json.dumps(body))
    log = tmp_path / "log.jsonl"
    log.write_text(f"{json.dumps(body)}\n{json.dumps(body)}\n")

    one = CliRunner().invoke(cli, ["explain", str(POLICY), str(file)])
    several = CliRunner().invoke(cli, ["explain", str(POLICY), str(log)])

    assert (one.exit_code, several.exit_code) == (0, 0), one.output + several.output
    assert "would ask planner" in one.output
    assert several.output.count("would ask planner") == 2
    assert "timeline  2 requests" in several.output
