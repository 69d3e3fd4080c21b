"""The steps of a run: what goes wrong is told, and nothing that was done is lost."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest

from switchyard_core import Tool
from switchyard_core.testing import FakeReply
from tests.planner_executor.shop import (
    PLAN,
    PLANNED,
    REFUSED,
    TURNS,
    Shop,
    Words,
    calls,
    every_caller,
    every_target,
    failed,
    history_of,
    plan_of,
    said,
    scripted,
    tool,
)

ONE = plan_of("use tools")
#: Without a query, so that nothing waits for a tool.
STEPS = plan_of("ACTION-ONE", "ACTION-TWO", "ACTION-THREE")


class Strict(Words):
    """Parameters with one that must be there."""

    number: int


def fails(_given):
    message = "secret of /home/user"
    raise ValueError(message)


async def hangs(_given):
    await asyncio.Event().wait()


def results_of(shop: Shop, index: int = -1) -> list[str]:
    """Return the results of tools that an executor call was sent, as text."""
    body = shop.bodies("executor")[index]
    if shop.target == "openai_chat":
        return [m["content"] for m in body["messages"] if m["role"] == "tool"]
    if shop.target == "openai_responses":
        return [i["output"] for i in body["input"] if i.get("type") == "function_call_output"]
    contents = [m["content"] for m in body["messages"] if isinstance(m["content"], list)]
    blocks = [block for content in contents for block in content]
    given = [block["content"] for block in blocks if block["type"] == "tool_result"]
    return [text if isinstance(text, str) else text[0]["text"] for text in given]


# --- tools -----------------------------------------------------------------------------------

FAULTS = {
    "arguments": (("strict", {"number": "many"}), "number"),
    "unknown": (("strickt", {}), "did you mean `strict`"),
    "exception": (("fails", {}), "ValueError"),
    "timeout": (("hangs", {}), "within 0.01 s"),
}


@pytest.mark.parametrize("fault", FAULTS)
@every_target
async def test_fault_of_a_tool_call_is_told_to_the_model(target, fault):
    call, told = FAULTS[fault]
    strict = Tool(name="strict", description="strict", parameters=Strict, function=lambda _: "ok")
    shop = Shop(
        target=target,
        plan=ONE,
        executor=[calls(call), "went on"],
        tools=[strict, tool("fails", fails), tool("hangs", hangs, timeout_s=0.01)],
    )

    answer = await shop.ask()

    assert answer.extension["status"] == "completed"
    assert "went on" in answer.text
    (result,) = results_of(shop)
    assert result.startswith("error: ")
    assert told in result
    assert not any(word in result for word in ("secret", "Traceback"))
    (noted,) = answer.extension["steps"][0]["tool_calls"]
    assert (noted["name"], noted["ok"]) == (call[0], False)
    assert json.loads(noted["arguments"]) == call[1]


async def test_arguments_of_every_kind_are_results():
    for text in ("{", "[]", '{"words": 1}', '{"words": "a", "more": 1}', ""):
        shop = Shop(plan=ONE, executor=[calls(("look", text)), "went on"])

        answer = await shop.ask()

        assert answer.extension["status"] == "completed", text
        (result,) = results_of(shop)
        assert result.startswith("error: ") == (text != ""), text


@every_target
async def test_huge_output_is_cut(target):
    shop = Shop(
        "max_tool_output_chars = 100",
        target=target,
        plan=ONE,
        executor=[calls("look")],
        tools=[tool("look", lambda _given: "x" * 5000)],
    )

    assert (await shop.ask()).statuses == ["completed"]
    assert results_of(shop) == ["x" * 100 + "\n[cut: 4900 of 5000 characters are missing]"]


@every_target
async def test_calls_of_one_reply_run_together_and_answer_in_order(target):
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
        target=target,
        plan=ONE,
        executor=[calls("first", "nothing", "second"), "went on"],
        tools=[tool("first", first), tool("second", second)],
    )

    answer = await shop.ask()

    told = results_of(shop)
    assert [told[0], told[2]] == ["first result", "second result"]
    assert told[1].startswith("error: ")
    noted = answer.extension["steps"][0]["tool_calls"]
    assert [call["ok"] for call in noted] == [True, False, True]


async def test_step_may_use_all_its_rounds_of_tools_and_no_more():
    enough, more = (
        Shop("max_tool_rounds = 2", executor=[calls("look")] * number) for number in (2, 9)
    )

    assert (await enough.ask()).extension["status"] == "completed"
    answer = await more.ask()

    assert answer.statuses == ["failed", "not_run", "not_run"]
    step = answer.extension["steps"][0]
    assert "more than 2 times (`max_tool_rounds`)" in step["error"]
    assert len(step["tool_calls"]) == 2
    assert len(more.bodies("executor")) == 3


# --- steps that fail -------------------------------------------------------------------------

#: Word of the log, what the second step ends with, what is told.
FAILURES = {
    "status": ("upstream", failed(429, "executor"), "asking `executor` gave status 429"),
    "transport": ("upstream", failed(0, "executor"), "asking `executor`"),
    "refused": ("refused", REFUSED, "the executor refused: I will not"),
    "truncated": ("truncated", replace(said(""), stop="length"), "cut before it said anything"),
    "unfamiliar": (
        "unfamiliar_call",
        replace(calls("look"), wants=("custom_tool_call",)),
        "the executor waits for `custom_tool_call`",
    ),
}


@pytest.mark.parametrize("case", FAILURES)
async def test_failed_step_gives_what_was_done(case):
    code, reply, told = FAILURES[case]
    shop = Shop(executor=["RESULT-ONE", reply], door="http")

    answer = await shop.ask()

    assert (answer.extension["status"], answer.extension["reason"]) == ("failed", "step_failed")
    assert answer.statuses == ["completed", "failed", "not_run"]
    assert answer.results[0] == "RESULT-ONE"
    step = answer.extension["steps"][1]
    assert told in step["error"]
    # Of a reply that waits for what no tool is, not even the other calls are made.
    assert step["tool_calls"] == []
    assert "## Step 2: ACTION-TWO choose one\n\nThis step failed: " in answer.text
    assert told in answer.text
    assert "Not run: step 3." in answer.text
    assert "ACTION-THREE" not in shop.raw("executor")
    assert answer.extension["estimate"]["actual"]["calls"] == 2
    assert answer.phase == "failed"
    assert answer.headers["x-switchyard-steps"] == "1/3"
    log = Shop("progress_events = true", executor=["RESULT-ONE", reply])
    assert f'"code":"{code}"' in (await log.ask(stream=True)).stream


async def test_first_step_that_fails_is_an_answer_too():
    answer = await Shop(executor=[REFUSED]).ask()

    assert answer.status == 200
    assert answer.statuses == ["failed", "not_run", "not_run"]
    assert "Not run: steps 2, 3." in answer.text


@every_caller
@every_target
async def test_failure_at_the_provider_is_a_failed_step_in_every_format(caller, target):
    faults = {"cut": {"kind": "cut"}, "drop": {"kind": "drop"}, "529": {"status": 529}}
    told = {"cut": "failed", "drop": "failed", "529": "gave status 529"}
    for case, fault in faults.items():
        upstream = scripted([PLANNED], TURNS, [{"turn": 2, **fault}])
        shop = Shop(caller=caller, target=target, upstream=upstream, door="http")

        answer = await shop.ask()

        assert answer.statuses == ["completed", "failed", "not_run"], case
        assert answer.results[0] == TURNS[1]["text"]
        assert told[case] in answer.extension["steps"][1]["error"]
        assert len(shop.bodies("executor")) == 3


#: An answer in each format that waits for what no tool is, and the word for it.
UNFAMILIAR = {
    "openai_chat": (
        "function_call",
        {
            "choices": [
                {
                    "message": {
                        "role": "assistant",
                        "content": "Look:",
                        "function_call": {"name": "look", "arguments": "{}"},
                    },
                    "finish_reason": "function_call",
                }
            ]
        },
    ),
    "openai_responses": (
        "custom_tool_call",
        {
            "status": "completed",
            "output": [
                {"type": "custom_tool_call", "call_id": "c", "name": "patch", "input": "x"},
                {"type": "function_call", "call_id": "d", "name": "look", "arguments": "{}"},
            ],
        },
    ),
    "anthropic_messages": (
        "pause_turn",
        {"content": [{"type": "text", "text": "Searching"}], "stop_reason": "pause_turn"},
    ),
}


@every_target
async def test_unreadable_and_unfamiliar_answers_fail_the_step(target):
    word, body = UNFAMILIAR[target]
    for reply, told in ((body, f"`{word}`"), ({}, "not an answer")):

        async def instead(out, reply=reply):
            return FakeReply(body=reply) if out.role == "executor" else None

        shop = Shop(target=target, upstream=scripted([PLANNED], TURNS, before=instead))

        answer = await shop.ask()

        assert answer.statuses == ["failed", "not_run", "not_run"], told
        step = answer.extension["steps"][0]
        assert told in step["error"]
        assert step["tool_calls"] == []


async def test_rest_runs_after_a_failed_step_where_the_policy_says_so():
    options = 'on_step_error = "continue"'
    shop = Shop(options, executor=["one", REFUSED], door="http")

    answer = await shop.ask()

    assert answer.extension["status"] == "failed"
    assert answer.statuses == ["completed", "failed", "completed"]
    assert answer.headers["x-switchyard-steps"] == "2/3"
    assert "Not run" not in answer.text
    assert "ACTION-THREE" in history_of(shop.bodies("executor")[-1])[-1]["content"]


async def test_tokens_of_a_failed_step_are_counted():
    refusal = replace(said("", tokens=(7, 3)), refusal="No.")
    shop = Shop(executor=["one", refusal])

    answer = await shop.ask()

    assert answer.extension["steps"][1]["usage"]["input_tokens"] == 7
    assert answer.tokens == (100 + 100 + 7, 10 + 10 + 3)


# --- times -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "reason", "text"),
    [
        ("step_timeout_s = 0.02", "step_failed", "it took longer than 0.02 s"),
        ("run_timeout_s = 0.02", "run_timeout", "the run took longer than 0.02 s"),
    ],
    ids=["step", "run"],
)
@pytest.mark.parametrize("where", ["model", "tool"])
async def test_time_that_is_over_ends_the_step(options, reason, text, where):
    shop = Shop(
        options,
        plan=plan_of("use tools", "never"),
        executor=[calls("look")] if where == "tool" else [],
        tools=[tool("look", hangs)],
    )
    if where == "model":

        async def hold(call):
            if call.role == "executor":
                await asyncio.Event().wait()

        shop.models.before = hold

    answer = await shop.ask()

    assert (answer.extension["status"], answer.extension["reason"]) == ("failed", reason)
    assert answer.statuses == ["failed", "not_run"]
    step = answer.extension["steps"][0]
    assert text in step["error"]
    assert text in answer.text
    # A call that was under way is not hidden: it may have had an effect.
    noted = [(call["name"], call["ok"]) for call in step["tool_calls"]]
    assert noted == [("look", False)] * (where == "tool")


async def test_time_of_the_run_ends_it_though_steps_may_fail():
    options = 'run_timeout_s = 0.02\non_step_error = "continue"'
    shop = Shop(options, executor=[calls("look")], tools=[tool("look", hangs)])

    answer = await shop.ask()

    assert answer.statuses == ["failed", "not_run", "not_run"]
    assert "`run_timeout_s`" in answer.text


# --- odd answers -----------------------------------------------------------------------------


async def test_cut_answer_is_kept_with_a_warning():
    shop = Shop(executor=[replace(said("half of"), stop="length")], door="http")

    answer = await shop.ask()

    assert answer.extension["status"] == "completed"
    assert answer.results[0] == "half of"
    assert [warning["code"] for warning in answer.extension["warnings"]] == ["step_truncated"]
    assert answer.warnings == ("step_truncated",)


@every_target
async def test_empty_answer_is_a_warning(target):
    shop = Shop(target=target, executor=[said("")])

    answer = await shop.ask()

    assert answer.extension["status"] == "completed"
    assert answer.warnings == ("step_empty",)
    assert "(no text)" in answer.text
    # What has no content may not be sent back in Messages.
    if target == "anthropic_messages":
        assert all(m["content"] for m in shop.bodies("executor")[-1]["messages"])


# --- the text of the answer ------------------------------------------------------------------


async def test_last_step_is_the_whole_text_where_the_policy_says_so():
    shop = Shop('answer = "last_step"', executor=["one", "two", "THREE"])

    answer = await shop.ask()

    assert answer.text == "THREE\n\n"
    assert answer.results == ["one", "two", "THREE"]
    assert answer.extension["plan"] == PLAN


async def test_last_step_that_failed_says_so():
    answer = await Shop('answer = "last_step"', executor=["one", REFUSED]).ask()

    assert "Step 2 failed: the executor refused" in answer.text


async def test_actual_figures_are_beside_the_expected_ones():
    shop = Shop(executor=[calls("look")])

    answer = await shop.ask()

    found = answer.extension["estimate"]
    assert found["actual"] == {"calls": 4, "input_tokens": 400, "output_tokens": 40}
    assert (found["calls"]["expected"], found["cost_usd"]) == (4, None)
    assert "no price" in answer.text
    expected = found["input_tokens"]["expected"]
    assert f"400 input tokens (expected {expected:,})" in answer.text
