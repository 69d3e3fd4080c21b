"""The routers that ship, with callers and targets that speak different wire formats."""

from __future__ import annotations

import json
from typing import Any

import pytest

from switchyard_core import Request, WireFormat
from switchyard_core.testing import FakeReply, Harness, conversation
from switchyard_core.testing.answers import streamed_text, whole_text
from switchyard_core.testing.validity import validity_problems
from switchyard_core.wire import FORMATS, WIRE_FORMATS
from switchyard_core.wire.answers import stream_bytes
from tests.support.policies import (
    PLANNING_PROMPT,
    ROUTE,
    one_route_harness,
    plan_execute_harness,
)

CHAT, RESPONSES, MESSAGES = WIRE_FORMATS
PAIRS = [(caller, target) for caller in WIRE_FORMATS for target in WIRE_FORMATS if caller != target]
each_pair = pytest.mark.parametrize(("caller", "target"), PAIRS)
FALLBACK = 'type = "fallback"\ntargets = ["large", "small"]\n'
CLASSIFIER = (
    'type = "llm_classifier"\njudge_target = "small"\nstrong_target = "large"\n'
    'weak_target = "small"\n'
)
REVIEW = (
    'type = "plan_review"\ncapable_target = "large"\nefficient_target = "small"\nreview_every = 1\n'
)
NAMED = {"model": "main", "input": "go on", "previous_response_id": "resp_1"}


def spoken(harness: Harness) -> list[tuple[str, WireFormat]]:
    return [(sent.target, sent.wire_format) for sent in harness.upstream.requests]


def problems(harness: Harness) -> list[str]:
    """Return what the providers would not take of what they got."""
    return [
        problem
        for sent in harness.upstream.requests
        for problem in validity_problems(sent.wire_format, sent.body)
    ]


def story(caller: WireFormat, *edits: str, session: str = "s", model: str = "main") -> Request:
    told = conversation(caller).system("You are a coding agent.").user("fix it")
    for path in edits:
        told = told.says(f"Now {path}.").edits("edit_file", path=path, text="x")
    return told.offers("edit_file").request(model, session=session)


@each_pair
async def test_fallback_goes_on_at_a_target_of_another_format(caller, target):
    for stream in (False, True):
        failed = FakeReply(status=500, body={"error": {"message": "down"}})
        yard = one_route_harness(
            caller, route=FALLBACK, far=target, replies=[failed, FakeReply(text="Hello.")]
        )
        asked = conversation(caller).user("a").says("b").user("c").request("main", stream=stream)
        told = await yard.run(asked)
        read = streamed_text if stream else whole_text

        assert spoken(yard) == [("large", caller), ("small", target)]
        assert read(caller, told.answer) == "Hello."
        assert problems(yard) == []


@each_pair
async def test_fallback_comes_back_from_a_target_of_another_format(caller, target):
    error = {"error": {"message": "down", "type": "server_error", "code": "boom"}}
    failed = FakeReply(status=500, body=error)
    yard = one_route_harness(
        target, route=FALLBACK, far=caller, replies=[failed, FakeReply(text="Hi.")]
    )
    told = await yard.run(conversation(caller).user("a").request("main"))

    assert spoken(yard) == [("large", target), ("small", caller)]
    assert whole_text(caller, told.answer) == "Hi."


@each_pair
async def test_failure_inside_an_answer_is_read_in_the_targets_format(caller, target):
    event = FORMATS[target].provider_error_event(500, "down", 0)
    failed = FakeReply(
        chunks=(stream_bytes([event]),), headers=(("content-type", "text/event-stream"),)
    )
    replies = [failed, FakeReply(text="Hi.")]
    yard = one_route_harness(target, route=FALLBACK, far=caller, replies=replies)
    told = await yard.run(conversation(caller).user("a").request("main", stream=True))

    assert spoken(yard) == [("large", target), ("small", caller)]
    assert streamed_text(caller, told.answer) == "Hi."


async def test_named_history_goes_to_a_target_that_may_know_it_and_to_no_other():
    yard = one_route_harness(CHAT, route=FALLBACK, far=RESPONSES)
    first = await yard.run(Request(wire_format=RESPONSES, body=NAMED))
    failed = FakeReply(status=500, body={"error": {"message": "down"}})
    alone = one_route_harness(RESPONSES, route=FALLBACK, far=CHAT, replies=[failed])
    second = await alone.run(Request(wire_format=RESPONSES, body=NAMED))

    assert (first.decision.target, first.decision.reason.code) == ("small", "history")
    assert b"resp_1" in first.outgoing.body
    assert (second.status, len(second.sent)) == (500, 1)


@each_pair
async def test_judge_and_judged_may_speak_different_formats(caller, target):
    for strong, name in ((True, "large"), (False, "small")):
        verdict = FakeReply(text=json.dumps({"strong": strong, "why": "so"}))
        replies = [verdict, FakeReply(text="Done.")]
        yard = one_route_harness(caller, route=CLASSIFIER, far=target, replies=replies)
        told = await yard.run(story(caller))

        assert [sent.target for sent in yard.upstream.requests] == ["small", name]
        assert whole_text(caller, told.answer) == "Done."
        assert problems(yard) == []


@each_pair
async def test_review_passes_a_session_to_and_fro_between_formats(caller, target):
    for planner, executor in ((caller, target), (target, caller), (target, target)):
        yard = one_route_harness(planner, route=REVIEW, far=executor)
        phases = [
            (await yard.run(story(caller, *"abcd"[:count]))).decision.phase for count in range(4)
        ]

        assert phases[:2] == ["planning", "executing"]
        assert "reviewing" in phases
        assert problems(yard) == []
        assert {wire_format for _, wire_format in spoken(yard)} == {planner, executor}


# --- plan_execute ---------------------------------------------------------------------------------


@each_pair
async def test_session_is_planned_in_one_format_and_executed_in_another(caller, target):
    for planner, executor in ((caller, target), (target, caller), (target, target)):
        yard = plan_execute_harness(
            caller, other_origin=True, formats={"planner": planner, "executor": executor}
        )
        served = [
            await yard.run(story(caller, *"ab"[:count], model=ROUTE)) for count in (0, 1, 1, 2)
        ]

        assert [each.decision.target for each in served] == ["planner"] + ["executor"] * 3
        assert [each.outgoing.wire_format for each in served] == [planner] + [executor] * 3
        assert [PLANNING_PROMPT.encode() in each.outgoing.body for each in served] == [
            True, False, False, False,
        ]  # fmt: skip
        assert served[1].outgoing.body == served[2].outgoing.body
        assert problems(yard) == []


async def test_planner_of_the_callers_format_keeps_a_named_history():
    for executor in (CHAT, MESSAGES):
        yard = plan_execute_harness(RESPONSES, formats={"executor": executor})
        body: dict[str, Any] = json.loads(story(RESPONSES, "a", model=ROUTE).body)
        lone = Request(wire_format=RESPONSES, body={**NAMED, "model": ROUTE})
        hidden = [{"type": "item_reference", "id": "msg_1"}, *body["input"]]
        referring = Request(wire_format=RESPONSES, body=body | {"input": hidden})
        prompted = Request(wire_format=RESPONSES, body=body | {"prompt": {"id": "pmpt_1"}})
        told = [await yard.run(each) for each in (lone, referring, prompted)]

        assert [each.decision.target for each in told] == ["planner"] * 3
        codes = [each.decision.reason.code for each in told]
        assert codes == ["history_missing", "origin_bound", "origin_bound"]
        assert b"resp_1" in told[0].outgoing.body


async def test_overflow_at_an_executor_of_another_format_returns_to_the_planner():
    yard = plan_execute_harness(
        MESSAGES,
        formats={"executor": CHAT},
        executor='context_window = 100000\non_overflow = "stay"',
        replies=[
            FakeReply(
                status=400, body={"error": {"message": "x", "code": "context_length_exceeded"}}
            ),
            FakeReply(text="Hello."),
        ],
    )
    told = await yard.run(story(MESSAGES, "a", model=ROUTE))

    assert spoken(yard) == [("executor", CHAT), ("planner", MESSAGES)]
    assert whole_text(MESSAGES, told.answer) == "Hello."


async def test_side_calls_may_go_to_a_target_of_another_format():
    condition = '[[housekeeping]]\npath = "$.metadata.user_id"\ntarget = "executor"\n'
    yard = plan_execute_harness(MESSAGES, formats={"executor": CHAT}, options="\n" + condition)
    asked = (
        conversation(MESSAGES).system("s").user("name it")
        .request(ROUTE, metadata={"user_id": "title"})
    )  # fmt: skip
    told = await yard.run(asked)

    assert (told.decision.phase, told.decision.reason.code) == ("side_call", "housekeeping")
    assert spoken(yard) == [("executor", CHAT)]
    assert whole_text(MESSAGES, told.answer) == "ok"
    assert problems(yard) == []
