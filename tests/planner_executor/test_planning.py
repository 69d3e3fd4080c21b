"""What the planner's answer becomes: a plan, or an error with its reason and text, and no step."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest

from switchyard_core import Switchyard, UpstreamError
from switchyard_core.testing import FakeReply, FakeUpstream, registry_of
from switchyard_core.wire import WIRE_FORMATS
from switchyard_core.world import World
from switchyard_planner_executor import UnusablePlanError
from tests.planner_executor.shop import (
    GOAL,
    LOOK,
    PLAN,
    PLANNED,
    PLUGINS,
    REFUSED,
    TURNS,
    Shelf,
    Shop,
    every_caller,
    every_target,
    policy_text,
    said,
    scripted,
)

GOOD = json.dumps(PLAN)


def steps(*numbers: int) -> str:
    """Return a plan whose steps have these numbers."""
    rows = [{"step": n, "action": f"do {n}", "query": None} for n in numbers]
    return json.dumps({"goal": GOAL, "steps": rows})


#: One per reason; what else has which reason is in test_plan.py.
UNUSABLE = {
    "refused": REFUSED,
    "truncated": replace(said(GOOD), stop="length"),
    "empty": said(" \n\t"),
    "not_json": said(f"Here is the plan: {GOOD}"),
    "schema": said('{"goal": "g", "steps": [], "notes": "x"}'),
    "numbering": said(steps(1, 3)),
    "too_many_steps": said(steps(*range(1, 14))),
}


@pytest.mark.parametrize("door", ["library", "http"])
@every_caller
@every_target
async def test_unusable_plan_is_an_error_with_reason_and_raw_text(target, caller, door):
    for reason, reply in UNUSABLE.items():
        shop = Shop(caller=caller, target=target, door=door, planner=[reply] * 2)

        for stream in (False, True):
            answer = await shop.ask(stream=stream)

            answer.refused(502, "plan_unusable")
            assert answer.error["reason"] == reason
            assert answer.error["raw_text"] == (reply.refusal or reply.text)
            assert f"({reason})" in answer.message
            assert "no step ran" in answer.message
            assert "Traceback" not in answer.message
        assert shop.roles == ["planner"] * 2


@pytest.mark.parametrize("target", ["openai_chat", "openai_responses"])
async def test_words_of_a_providers_refusal_are_the_raw_text(target):
    part = {"type": "refusal", "refusal": "REFUSAL-WORD"}
    message = {"role": "assistant", "content": None, "refusal": "REFUSAL-WORD"}
    body = {
        "openai_chat": {"choices": [{"message": message, "finish_reason": "stop"}]},
        "openai_responses": {
            "status": "completed",
            "output": [{"type": "message", "role": "assistant", "content": [part]}],
        },
    }[target]
    shop = Shop(target=target, upstream=FakeUpstream(FakeReply(body=body)))

    answer = await shop.ask()

    assert (answer.error["reason"], answer.error["raw_text"]) == ("refused", "REFUSAL-WORD")


async def test_raw_text_is_its_first_4000_characters():
    text = "ä" * 3999 + "END and more " + "x" * 5000

    answer = await Shop(planner=[text]).ask()

    assert answer.error["raw_text"] == text[:4000]
    assert len(answer.message) < 600


async def test_error_of_an_unusable_plan_has_all_of_its_text():
    text = "no plan " * 5000
    shop = Shop(planner=[text])

    with pytest.raises(UnusablePlanError) as caught:
        async for _ in shop.harness.engine.answer(shop.request()):
            pass

    assert caught.value.raw_text == text
    assert caught.value.code == "plan_unusable"


@every_target
async def test_plan_is_read_once_as_json_and_without_a_fence_only_if_allowed(target):
    for options, text in (
        ("", f"\n {GOOD}\n"),
        ('planner_output = "lenient"', f"```json\n{GOOD}\n```"),
    ):
        answer = await Shop(options, target=target, planner=[text]).ask()

        assert answer.extension["plan"] == PLAN


async def test_permutation_is_sorted_with_a_warning():
    shop = Shop(planner=[steps(2, 3, 1)], door="http")

    answer = await shop.ask()

    assert [step["step"] for step in answer.extension["plan"]["steps"]] == [1, 2, 3]
    assert answer.warnings == ("plan_reordered",)
    assert [out.body.count(b"do 1") for out in shop.sent("executor")] == [1, 1, 1]
    assert b"do 2" not in shop.sent("executor")[0].body


async def test_query_without_a_tool_to_use_it_with_makes_a_plan_unusable():
    shop = Shop(tools=[])

    answer = await shop.ask()

    assert (answer.status, answer.error["reason"]) == (502, "schema")
    assert "query_tool" in answer.message
    assert shop.roles == ["planner"]


async def test_planner_that_calls_a_tool_gets_no_result_and_makes_no_plan():
    turns = [{"calls": [{"name": "look", "arguments": {"words": "tripod"}}]}]
    for target in WIRE_FORMATS:
        shop = Shop(target=target, upstream=scripted(turns, TURNS))

        (await shop.ask()).refused(502, "plan_unusable")

        assert len(shop.sent()) == 1


@pytest.mark.parametrize("retries", [1, 2])
async def test_planner_is_told_its_fault_as_often_as_the_policy_says(retries):
    shop = Shop(f"planner_retries = {retries}", planner=[steps(1, 3)] * 9)

    answer = await shop.ask()

    assert answer.error["reason"] == "numbering"
    assert shop.roles == ["planner"] * (1 + retries)
    again = shop.sent()[-1].body.decode()
    assert "numbered 1, 3; they must be 1 to 2" in again
    assert "TASK-WORD" in again


@every_target
async def test_plan_that_is_right_the_second_time_runs(target):
    for options in ("planner_retries = 1", 'planner_retries = 1\nplanner_sees = "conversation"'):
        shop = Shop(options, target=target, planner=["no plan", PLAN])

        answer = await shop.ask()

        assert answer.extension["status"] == "completed"
        assert answer.extension["usage"]["planner"]["input_tokens"] == 200
        assert "TASK-WORD" in shop.sent("planner")[1].body.decode()


async def test_empty_plan_is_an_answer_that_says_so():
    for stream in (False, True):
        shop = Shop(plan={"goal": "Nothing to do.", "steps": []}, door="http")

        answer = await shop.ask(stream=stream)

        assert answer.status == 200
        assert answer.warnings == ("plan_empty",)
        assert shop.bodies("executor") == []
        if stream:
            assert "The plan has no steps." in answer.stream
            continue
        assert "Nothing to do." in answer.text
        assert "The plan has no steps." in answer.text
        assert (answer.extension["status"], answer.statuses) == ("completed", [])


# --- a planner that gives no answer ----------------------------------------------------------


@every_caller
@pytest.mark.parametrize("status", [400, 401, 429, 500, 529])
async def test_planner_that_fails_gives_the_providers_status_and_advice(caller, status):
    body = {"error": {"message": "PROVIDER-WORD", "type": "some_error", "code": "some_code"}}
    advice = (("retry-after", "7"), ("retry-after-ms", "7000"))
    headers = (("content-type", "application/json"), ("x-other", "word"), *advice)
    reply = FakeReply(status=status, body=body, headers=headers)
    shop = Shop(caller=caller, upstream=FakeUpstream(reply, reply), door="http")

    for stream in (False, True):
        answer = await shop.ask(stream=stream)

        assert answer.status == status
        assert "PROVIDER-WORD" in answer.message
        assert set(advice) <= set(answer.headers.items())
        assert "x-other" not in answer.headers
        # Nothing ran, so a client may try again as with any route, unless it would fail again.
        assert answer.headers.get("x-should-retry") == ("false" if status in (400, 401) else None)
    assert shop.roles == ["planner"] * 2


@every_caller
async def test_planner_that_cannot_be_reached_is_a_bad_gateway(caller):
    replies = {
        "upstream_connect": (502, UpstreamError("no line", kind="connect")),
        "upstream_timeout": (504, UpstreamError("no line", kind="timeout")),
        "upstream_protocol": (502, FakeReply(body=b"<html>")),
    }
    for code, (status, reply) in replies.items():
        shop = Shop(caller=caller, upstream=FakeUpstream(reply), door="http")

        answer = await shop.ask()

        assert answer.status == status, code
        assert "planner" in answer.message
        assert shop.roles == ["planner"]


async def test_planner_that_takes_too_long_is_a_timeout():
    async def never(_call):
        await asyncio.Event().wait()

    shop = Shop("planner_timeout_s = 0.01")
    shop.models.before = never

    answer = await shop.ask()

    assert (answer.status, answer.code) == (504, "planner_timeout")


async def test_missing_key_of_the_planner_asks_nobody_and_one_of_the_executor_fails_a_step():
    upstream = scripted([PLANNED], TURNS)
    shop = Shop()
    for environ, code in (({"EXECUTING_KEY": "k"}, "missing_api_key"), ({"PLANNING_KEY": "k"}, "")):
        yard = Switchyard.from_policy_text(
            policy_text(),
            registry=registry_of([*PLUGINS, Shelf([LOOK])]),
            connect=lambda _client: upstream,
            world=World(environ=environ),
        )
        shop.harness.engine = yard

        answer = await shop.ask()

        assert answer.code == code
        assert len(upstream.requests) == (0 if code else 1)
    assert answer.statuses == ["failed", "not_run", "not_run"]
    assert "EXECUTING_KEY" in answer.extension["steps"][0]["error"]


async def test_targets_may_speak_different_formats():
    for planner in WIRE_FORMATS:
        for target in WIRE_FORMATS:
            shop = Shop(target=target, planner_format=planner)

            assert (await shop.ask()).extension["status"] == "completed"
            assert [out.wire_format for out in shop.sent()] == [planner, *[target] * 3]
