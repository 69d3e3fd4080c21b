"""Tools in a run: whatever goes wrong is told to the model, and the run goes on."""

from __future__ import annotations

import asyncio
import json

import pytest

from switchyard_core import Tool
from tests.planner_executor.gate_world import (
    LANES,
    Say,
    Shop,
    Words,
    calls,
    lanes,
    plan_of,
    tool,
)

ONE = plan_of("use tools")


class Strict(Words):
    """Parameters with one that must be there."""

    number: int


def fails(_given):
    message = "secret of /home/somebody"
    raise ValueError(message)


async def hangs(_given):
    await asyncio.Event().wait()


def results_of(shop: Shop, index: int = -1) -> list[str]:
    """Return the results of tools that an executor call was sent, as text."""
    body = shop.models.asked("executor")[index]
    if shop.target == "openai_chat":
        return [m["content"] for m in body["messages"] if m["role"] == "tool"]
    if shop.target == "openai_responses":
        return [i["output"] for i in body["input"] if i.get("type") == "function_call_output"]
    found = []
    for message in body["messages"]:
        if isinstance(message["content"], list):
            for block in message["content"]:
                if block["type"] == "tool_result":
                    given = block["content"]
                    found.append(given if isinstance(given, str) else given[0]["text"])
    return found


FAULTS = {
    "arguments": (("strict", {"number": "many"}), "strict", "number"),
    "unknown": (("strickt", {}), "", "did you mean `strict`"),
    "exception": (("fails", {}), "fails", "ValueError"),
    "timeout": (("hangs", {}), "hangs", "within 0.01 s"),
}


@pytest.mark.parametrize("fault", FAULTS)
@lanes
async def test_fault_of_a_call_is_told_to_the_model_and_counted(lane, fault):
    call, name, told = FAULTS[fault]
    strict = Tool(name="strict", description="strict", parameters=Strict, function=lambda _: "ok")
    shop = Shop(
        lane,
        plan=ONE,
        executor=[calls(call), Say("went on")],
        tools=[strict, tool("fails", fails), tool("hangs", hangs, timeout_s=0.01)],
    )

    answer = await shop.ask()

    assert answer.extension["status"] == "completed"
    assert "went on" in answer.text
    (result,) = results_of(shop)
    assert result.startswith("error: ")
    assert told in result
    assert "secret" not in result
    assert "Traceback" not in result
    (noted,) = answer.extension["steps"][0]["tool_calls"]
    assert (noted["name"], noted["ok"]) == (call[0], False)
    assert json.loads(noted["arguments"]) == call[1]
    line = f'switchyard_tool_calls_total{{result="{fault}",route="shop",tool="{name}"}} 1.0'
    assert line in await shop.metrics()


@pytest.mark.parametrize("text", ["{", "[]", '{"words": 1}', '{"words": "a", "more": 1}', ""])
async def test_arguments_of_every_kind_are_results(text):
    shop = Shop(LANES[0], plan=ONE, executor=[calls(("look", text)), Say("went on")])

    answer = await shop.ask()

    assert answer.extension["status"] == "completed"
    (result,) = results_of(shop)
    assert result.startswith("error: ") == (text != "")


@lanes
async def test_huge_output_is_cut(lane):
    shop = Shop(
        lane,
        "max_tool_output_chars = 100",
        plan=ONE,
        executor=[calls("look")],
        tools=[tool("look", lambda _given: "x" * 5000)],
    )

    answer = await shop.ask()

    assert answer.statuses == ["completed"]
    (result,) = results_of(shop)
    assert result == "x" * 100 + "\n[cut: 4900 of 5000 characters are missing]"


@lanes
async def test_calls_of_one_reply_run_together_and_answer_in_order(lane):
    both = [asyncio.Event(), asyncio.Event()]

    async def first(_given):
        both[0].set()
        await both[1].wait()
        return "first result"

    async def second(_given):
        await both[0].wait()
        both[1].set()
        return "second result"

    shop = Shop(
        lane,
        plan=ONE,
        executor=[calls("first", "nothing", "second"), Say("went on")],
        tools=[tool("first", first), tool("second", second)],
    )

    answer = await shop.ask()

    told = results_of(shop)
    assert [told[0], told[2]] == ["first result", "second result"]
    assert told[1].startswith("error: ")
    noted = answer.extension["steps"][0]["tool_calls"]
    assert [call["ok"] for call in noted] == [True, False, True]


# --- times -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "code", "text"),
    [
        ("step_timeout_s = 0.02", "step_failed", "it took longer than 0.02 s"),
        ("run_timeout_s = 0.02", "run_timeout", "the run took longer than 0.02 s"),
    ],
)
@pytest.mark.parametrize("where", ["model", "tool"])
@lanes
async def test_time_that_is_over_ends_the_step(lane, options, code, text, where):
    shop = Shop(
        lane,
        options,
        plan=plan_of("use tools", "never"),
        executor=[calls("look")] if where == "tool" else [],
        tools=[tool("look", hangs)],
    )
    if where == "model":

        async def hold(outgoing):
            if outgoing.role == "executor":
                await asyncio.Event().wait()

        shop.models.before = hold

    answer = await shop.ask()

    assert (answer.status, answer.extension["status"]) == (200, "failed")
    assert answer.extension["reason"] == code
    assert answer.statuses == ["failed", "not_run"]
    assert text in answer.extension["steps"][0]["error"]
    assert text in answer.text
    # A call that was under way is not hidden: it may have had an effect.
    noted = answer.extension["steps"][0]["tool_calls"]
    assert [(call["name"], call["ok"]) for call in noted] == [("look", False)] * (where == "tool")


@lanes
async def test_time_of_the_run_ends_it_though_steps_may_fail(lane):
    shop = Shop(
        lane,
        'run_timeout_s = 0.02\non_step_error = "continue"',
        executor=[calls("look")],
        tools=[tool("look", hangs)],
    )

    answer = await shop.ask()

    assert answer.statuses == ["failed", "not_run", "not_run"]
    assert "`run_timeout_s`" in answer.text


@lanes
async def test_steps_go_on_after_a_failed_one_if_the_policy_says_so(lane):
    shop = Shop(lane, 'on_step_error = "continue"', executor=[Say("one"), Say(refusal="no")])

    answer = await shop.ask()

    assert answer.extension["status"] == "failed"
    assert answer.statuses == ["completed", "failed", "completed"]
    assert answer.headers["x-switchyard-phase"] == "failed"
    assert answer.headers["x-switchyard-steps"] == "2/3"


@lanes
async def test_step_has_so_many_rounds_of_tools(lane):
    shop = Shop(lane, "max_tool_rounds = 2", executor=[calls("look")] * 9)

    answer = await shop.ask()

    assert answer.statuses == ["failed", "not_run", "not_run"]
    assert "more than 2 times (`max_tool_rounds`)" in answer.extension["steps"][0]["error"]
    assert len(answer.extension["steps"][0]["tool_calls"]) == 2
    assert len(shop.models.asked("executor")) == 3


@lanes
async def test_exactly_so_many_rounds_are_no_failure(lane):
    shop = Shop(lane, "max_tool_rounds = 2", executor=[calls("look")] * 2)

    assert (await shop.ask()).extension["status"] == "completed"


# --- odd answers -----------------------------------------------------------------------------


@lanes
async def test_cut_answer_is_kept_with_a_warning(lane):
    shop = Shop(lane, executor=[Say("half of", stop="cut")])

    answer = await shop.ask()

    assert answer.extension["status"] == "completed"
    assert answer.extension["steps"][0]["result"] == "half of"
    assert answer.warnings == ["step_truncated"]
    if shop.door == "http":
        assert answer.headers["x-switchyard-warning"] == "step_truncated"


@lanes
async def test_answer_cut_before_its_first_word_fails_the_step(lane):
    shop = Shop(lane, executor=[Say("", stop="cut")])

    answer = await shop.ask()

    assert answer.statuses == ["failed", "not_run", "not_run"]
    assert "cut before it said anything" in answer.text


@lanes
async def test_empty_answer_is_a_warning(lane):
    shop = Shop(lane, executor=[Say("")])

    answer = await shop.ask()

    assert answer.extension["status"] == "completed"
    assert answer.warnings == ["step_empty"]
    assert "(no text)" in answer.text
    # What has no content may not be sent back in Messages.
    if shop.target == "anthropic_messages":
        assert all(m["content"] for m in shop.models.asked("executor")[-1]["messages"])
