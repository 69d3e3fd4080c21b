"""The bodies of the recorded run of four steps, as each target format gets them, to the token."""

from __future__ import annotations

import json

import pytest

from switchyard_core import WIRE_FORMATS
from switchyard_core.testing import assert_valid_for
from tests.planner_executor.rows_world import ASKED, history_of, recorded

CALLS = ("plan", "step-1", "step-1-after-the-search", "step-2", "step-3", "step-4")

every_target = pytest.mark.parametrize("target", WIRE_FORMATS)


@every_target
@pytest.mark.parametrize("call", CALLS)
async def test_body(target, call, body_snapshot):
    shop = recorded(target)

    # The caller's format and its limit of tokens have no part in them.
    await shop.ask("openai_chat", ASKED)

    assert len(shop.provider.sent) == len(CALLS)
    assert shop.provider.sent[CALLS.index(call)].body == body_snapshot


@every_target
async def test_bodies_are_valid_for_the_provider(target):
    shop = recorded(target)

    await shop.ask(target, ASKED)

    for out in shop.provider.sent:
        assert_valid_for(target, out.body)


@every_target
async def test_r29_one_call_for_the_plan_one_per_step_and_one_per_tool_round(target):
    shop = recorded(target)

    answer = await shop.ask(target, ASKED)

    assert [out.role for out in shop.provider.sent] == ["planner", *["executor"] * 5]
    assert len(answer.extension["steps"]) == 4
    # What the spec's own run took, and what this one is expected to take.
    usage = answer.extension["usage"]
    assert usage["planner"] == {"input_tokens": 335, "output_tokens": 105, "cached_tokens": 0}
    assert usage["executor"]["input_tokens"] == 2055
    assert answer.extension["estimate"]["calls"]["expected"] == 5


@every_target
async def test_r14_step_four_holds_the_results_of_three_steps(target):
    shop = recorded(target)

    await shop.ask(target, ASKED)

    # Message of the step, call, its result, text; then message and text per step; then a message.
    last = history_of(shop.executor_bodies[-1])
    assert len(last) == 4 + 2 + 2 + 1
    text = json.dumps(last)
    for word in ("Seven photography products", "The set: ", "$166.90", "call_search"):
        assert word in text
