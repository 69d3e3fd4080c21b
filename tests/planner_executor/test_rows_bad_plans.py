"""Acceptance: what is no plan is an error with its reason and raw text, and nothing runs."""

from __future__ import annotations

import asyncio
import json

import pytest

from switchyard_core import WIRE_FORMATS, UpstreamError
from switchyard_core.testing import FakeReply
from tests.planner_executor.rows_world import PLANNER_USAGE, Shop, plan_json, planned
from tests.support.routes import said

every_target = pytest.mark.parametrize("target", WIRE_FORMATS)
every_caller = pytest.mark.parametrize("caller", WIRE_FORMATS)


def steps(*numbers, **more):
    """Return a plan whose steps have these numbers."""
    rows = [{"step": n, "action": f"do {n}", "query": None, **more} for n in numbers]
    return json.dumps({"goal": "a goal", "steps": rows})


GOOD = plan_json()
BAD = {
    "refusal": ("refused", {"text": "I will not plan this.", "stop": "refusal"}),
    "cut_in_the_middle": ("truncated", {"text": GOOD[:60], "stop": "length"}),
    "cut_though_it_reads_well": ("truncated", {"text": GOOD, "stop": "length"}),
    "nothing": ("empty", {"text": ""}),
    "blank": ("empty", {"text": " \n\t"}),
    "prose": ("not_json", {"text": "1. Search for a tripod\n2. Write a card"}),
    "prose_before_json": ("not_json", {"text": f"Here is the plan: {GOOD}"}),
    "fenced": ("not_json", {"text": f"```json\n{GOOD}\n```"}),
    "broken_json": ("not_json", {"text": GOOD[:-1]}),
    "not_a_number": ("not_json", {"text": '{"goal": NaN, "steps": []}'}),
    "list": ("schema", {"text": "[]"}),
    "text": ("schema", {"text": '"a plan"'}),
    "no_goal": ("schema", {"text": '{"steps": []}'}),
    "no_steps": ("schema", {"text": '{"goal": "a goal"}'}),
    "no_action": ("schema", {"text": '{"goal": "g", "steps": [{"step": 1, "query": null}]}'}),
    "more_in_the_plan": ("schema", {"text": '{"goal": "g", "steps": [], "notes": "x"}'}),
    "more_in_a_step": ("schema", {"text": steps(1, tool="search_products")}),
    "key_twice": ("schema", {"text": '{"goal": "g", "goal": "h", "steps": []}'}),
    "number_as_text": ("schema", {"text": steps("1")}),
    "number_as_fraction": ("schema", {"text": steps(1.0)}),
    "steps_as_object": ("schema", {"text": '{"goal": "g", "steps": {}}'}),
    "action_null": ("schema", {"text": steps(1, action=None)}),
    "blank_action": ("schema", {"text": steps(1, action="  ")}),
    "query_as_list": ("schema", {"text": steps(1, query=["a"])}),
    "gap": ("numbering", {"text": steps(1, 3)}),
    "twice": ("numbering", {"text": steps(1, 2, 2)}),
    "from_zero": ("numbering", {"text": steps(0, 1, 2)}),
    "below_zero": ("numbering", {"text": steps(-1)}),
    "too_many": ("too_many_steps", {"text": steps(*range(1, 14))}),
}


async def refused(shop, caller):
    """Return the refusals of a shop: through both doors, whole and as a stream."""
    return [
        await shop.ask(caller, door=door, stream=stream)
        for door in ("library", "http")
        for stream in (False, True)
    ]


@every_caller
@pytest.mark.parametrize("case", BAD)
async def test_r19_what_is_no_plan_is_an_error_with_reason_and_raw_text(case, caller):
    reason, turn = BAD[case]
    # Reached through another format than the caller's, too: the error is the caller's own.
    for target in (caller, WIRE_FORMATS[WIRE_FORMATS.index(caller) - 1]):
        shop = Shop("openai_chat", target, plans=[{**turn, "usage": PLANNER_USAGE}])

        for answer in await refused(shop, caller):
            error = answer.error
            assert (answer.status, error["code"], error["reason"]) == (502, "plan_unusable", reason)
            assert error["raw_text"] == turn["text"]
            assert answer.headers["x-should-retry"] == "false"
            assert f"({reason})" in error["message"]
            assert "no step ran" in error["message"]
            assert "Traceback" not in error["message"]
        assert [out.role for out in shop.provider.sent] == ["planner"] * 4


@every_target
async def test_r04_prose_is_an_error_and_never_guessed_at(target):
    shop = Shop(target, plans=[planned("1. search for a tripod\n2. write a card")])

    answer = await shop.ask(target)

    assert answer.error["reason"] == "not_json"
    assert [out.role for out in shop.provider.sent] == ["planner"]


@pytest.mark.parametrize("lenient", [False, True])
@every_target
async def test_r04_structured_answer_is_read_once_as_json(target, lenient):
    options = 'planner_output = "lenient"' if lenient else ""
    text = f"```json\n{GOOD}\n```" if lenient else f"\n {GOOD}\n"
    shop = Shop(target, plans=[planned(text)], options=options)

    answer = await shop.ask(target)

    assert answer.extension["plan"] == json.loads(GOOD)


@every_caller
async def test_r19_raw_text_is_its_first_4000_characters(caller):
    text = "ä" * 3999 + "END and more " + "x" * 5000
    shop = Shop(caller, plans=[planned(text)])

    for answer in await refused(shop, caller):
        assert answer.error["raw_text"] == text[:4000]
        assert len(answer.error["message"]) < 600


@pytest.mark.parametrize("target", ["openai_chat", "openai_responses"])
async def test_r19_words_of_a_refusal_are_the_raw_text(target):
    part = {"type": "refusal", "refusal": "REFUSAL-WORD"}
    body = {
        "openai_chat": {
            "choices": [
                {
                    "message": {"role": "assistant", "content": None, "refusal": "REFUSAL-WORD"},
                    "finish_reason": "stop",
                }
            ]
        },
        "openai_responses": {
            "status": "completed",
            "output": [{"type": "message", "role": "assistant", "content": [part]}],
        },
    }[target]
    shop = Shop(target, instead=lambda _: FakeReply(body=body))

    for answer in await refused(shop, "anthropic_messages"):
        assert (answer.error["reason"], answer.error["raw_text"]) == ("refused", "REFUSAL-WORD")
    assert len(shop.provider.sent) == 4


@every_target
async def test_permutation_is_sorted_and_said(target):
    shop = Shop(target, plans=[planned(steps(2, 3, 1))], turns=[{"text": "done"}])

    answer = await shop.ask(target, door="http")

    assert [step["step"] for step in answer.extension["plan"]["steps"]] == [1, 2, 3]
    assert answer.headers["x-switchyard-warning"] == "plan_reordered"
    assert [raw.count("do 1") for raw in shop.raw] == [1, 1, 1]
    assert "do 2" not in shop.raw[0]


@every_target
async def test_query_without_a_tool_to_use_it_with_is_no_plan(target):
    shop = Shop(target, tools="[]")

    answer = await shop.ask(target)

    assert (answer.status, answer.error["reason"]) == (502, "schema")
    assert "query_tool" in answer.error["message"]
    assert [out.role for out in shop.provider.sent] == ["planner"]


@every_target
@pytest.mark.parametrize("retries", [1, 2])
async def test_planner_is_told_its_fault_as_often_as_the_policy_says(target, retries):
    shop = Shop(target, plans=[planned(steps(1, 3))], options=f"planner_retries = {retries}")

    answer = await shop.ask(target)

    assert answer.error["reason"] == "numbering"
    assert [out.role for out in shop.provider.sent] == ["planner"] * (1 + retries)
    again = shop.provider.sent[-1].body.decode()
    assert "numbered 1, 3" in again
    assert "REQUEST-WORD" in again


@every_target
async def test_plan_that_is_right_the_second_time_runs(target):
    replies = [said(target, "no plan")]
    shop = Shop(
        target,
        instead=lambda _: replies.pop() if replies else None,
        options="planner_retries = 1",
    )

    answer = await shop.ask(target)

    assert answer.extension["status"] == "completed"
    assert [out.role for out in shop.provider.sent] == ["planner"] * 2 + ["executor"] * 4


# --- a planner that gives no answer ------------------------------------------------------


@every_caller
@pytest.mark.parametrize("status", [400, 401, 403, 404, 429, 500, 503, 529])
async def test_planner_that_fails_gives_the_providers_status(caller, status):
    body = {"error": {"message": "PROVIDER-WORD", "type": "some_error", "code": "some_code"}}
    shop = Shop(instead=lambda _: FakeReply(status=status, body=body))

    for answer in await refused(shop, caller):
        assert (answer.status, answer.error["code"]) == (status, "some_code")
        assert "PROVIDER-WORD" in answer.error["message"]
        # Nothing ran, so a client may try again as with any route.
        assert "x-should-retry" not in answer.headers
    assert [out.role for out in shop.provider.sent] == ["planner"] * 4


@every_caller
async def test_what_the_planners_provider_says_of_another_try_reaches_the_caller(caller):
    said_by_it = (("retry-after", "7"), ("retry-after-ms", "7000"), ("x-should-retry", "true"))
    headers = (("content-type", "application/json"), ("x-other", "word"), *said_by_it)
    shop = Shop(instead=lambda _: FakeReply(status=429, headers=headers))

    for answer in await refused(shop, caller):
        assert answer.status == 429
        assert set(said_by_it) <= set(answer.headers.items())
        assert "x-other" not in answer.headers


@every_caller
@pytest.mark.parametrize("kind", ["connect", "closed", "timeout"])
async def test_planner_that_cannot_be_reached_is_a_bad_gateway(caller, kind):
    shop = Shop(instead=lambda _: UpstreamError("no line", kind=kind))

    for answer in await refused(shop, caller):
        assert answer.status == (504 if kind == "timeout" else 502)
        assert answer.error["code"] == f"upstream_{kind}"
    assert [out.role for out in shop.provider.sent] == ["planner"] * 4


@every_caller
async def test_planner_whose_answer_is_none_is_a_bad_gateway(caller):
    shop = Shop(instead=lambda _: FakeReply(body=b"<html>"))

    for answer in await refused(shop, caller):
        assert answer.status == 502
    assert [out.role for out in shop.provider.sent] == ["planner"] * 4


@every_caller
async def test_planner_that_takes_too_long_is_a_timeout(caller):
    async def never(out):
        await asyncio.Event().wait()

    shop = Shop(before=never, options="planner_timeout_s = 0.01")

    for answer in await refused(shop, caller):
        assert (answer.status, answer.error["code"]) == (504, "planner_timeout")
    assert [out.role for out in shop.provider.sent] == ["planner"] * 4


@every_caller
async def test_policy_without_the_planners_key_asks_nobody(caller):
    shop = Shop(environ={"EXECUTING_KEY": "k"})

    for answer in await refused(shop, caller):
        assert answer.error["code"] == "missing_api_key"
    assert shop.provider.sent == []
