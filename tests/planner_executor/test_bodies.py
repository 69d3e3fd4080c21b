"""The bodies of the recorded run of four steps, as each target format gets them, to the token."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest

import switchyard_demo_catalog
from switchyard_core.answering import ModelUsage
from switchyard_core.testing import assert_valid_for
from tests.planner_executor.shop import (
    RECORDED_TASK,
    ROOT,
    Shop,
    every_target,
    history_of,
    scripted,
)

#: What the providers of the shipped policy say in its recordings: a plan of four steps.
SCRIPT = ROOT / "policies/recordings/planner_executor.script.json"
CALLS = ("plan", "step-1", "step-1-after-the-search", "step-2", "step-3", "step-4")


def recorded(options="", **settings):
    """Return a shop that plays the replies behind the shipped recordings."""
    planner, executor = json.loads(SCRIPT.read_text("utf-8"))["scripts"]
    return Shop(
        options,
        tools=["search_products"],
        plugins=[switchyard_demo_catalog],
        upstream=scripted(planner["turns"], executor["turns"]),
        **settings,
    )


@every_target
@pytest.mark.parametrize("call", CALLS)
async def test_body(target, call, body_snapshot):
    shop = recorded(target=target)

    await shop.ask(RECORDED_TASK)

    assert shop.sent()[CALLS.index(call)].body == body_snapshot


@every_target
async def test_bodies_are_valid_and_as_many_as_steps_and_rounds_of_tools(target):
    shop = recorded(target=target)

    answer = await shop.ask(RECORDED_TASK)

    for out in shop.sent():
        assert_valid_for(target, out.body)
    assert shop.roles == ["planner", *["executor"] * 5]
    assert len(answer.extension["steps"]) == 4
    usage = answer.extension["usage"]
    assert usage["planner"] == asdict(ModelUsage(input_tokens=335, output_tokens=105))
    assert usage["executor"]["input_tokens"] == 2055
    assert answer.extension["estimate"]["calls"]["expected"] == 5
    # Message of the step, call, its result, text; then message and text per step; then a message.
    last = history_of(shop.bodies("executor")[-1])
    assert len(last) == 4 + 2 + 2 + 1
    for word in ("Seven photography products", "The set: ", "$166.90", "call_search"):
        assert word in json.dumps(last)
