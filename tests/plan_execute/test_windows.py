"""Windows: sessions that were handed off, and executors that say that a request is too long."""

from __future__ import annotations

import pytest

from switchyard_core import Request
from switchyard_core.testing import FakeReply
from tests.support.policies import PLANNING_PROMPT

EDIT = {"path": "src/app.py"}
STAY = 'context_window = 200_000\non_overflow = "stay"'
TOO_LONG = FakeReply(
    status=400, body={"error": {"message": "prompt is too long: 300001 tokens > 200000 maximum"}}
)
SIDE = '[[housekeeping]]\nheader = "x-purpose"\nequals = "compaction"'
COMPACTION = {"x-purpose": "compaction"}
PROMPT = "Carry the plan out."


@pytest.fixture
def edited(story):
    return story.edits("edit_file", **EDIT)


@pytest.fixture
def large(edited):
    """A history of 300,000 tokens."""
    return edited.reads("read_file", path="a", result="x" * 1_200_000)


async def test_latched_session_over_the_executors_window_goes_on_at_the_planner(
    world, edited, large
):
    w = world(executor=STAY)
    await w.ask(edited.request(session="s"))

    over = await w.ask(large.request(session="s"))
    compacted = await w.ask(edited.request(session="s"))

    assert (over.target, over.phase, over.reason) == ("planner", "planning", "window_stay")
    assert PLANNING_PROMPT.encode() in over.outgoing.body
    assert await w.latched() == 1
    assert (compacted.target, compacted.reason) == ("executor", "latched")


async def test_compaction_over_the_executors_window_goes_to_the_planner(world, edited, large):
    w = world(executor=STAY, options=SIDE)
    await w.ask(edited.request(session="s"))

    served = await w.ask(large.request(session="s", headers=COMPACTION))

    assert (served.target, served.reason) == ("planner", "housekeeping")
    assert PLANNING_PROMPT.encode() not in served.outgoing.body


@pytest.mark.parametrize("latched", [True, False], ids=["latched", "handoff"])
async def test_executors_own_overflow_is_one_try_at_the_planner(world, edited, latched):
    w = world(executor=STAY, replies=[*([FakeReply()] if latched else []), TOO_LONG])
    if latched:
        await w.ask(edited.request(session="s"))

    served = await w.ask(edited.request(session="s"))

    assert (served.status, served.target, served.reason) == (200, "planner", "window_stay")
    assert served.warnings == ("overflow_retried",)
    assert [outgoing.target for outgoing in served.sent] == ["executor", "planner"]
    assert PLANNING_PROMPT.encode() in served.outgoing.body


async def test_planners_own_overflow_ends_it(world, edited):
    w = world(executor=STAY, replies=[TOO_LONG, TOO_LONG])

    served = await w.ask(edited.request(session="s"))

    assert (served.status, len(served.sent)) == (400, 2)


async def test_overflow_is_remembered_until_the_history_is_shorter(world, story, edited):
    w = world(executor=STAY, replies=[FakeReply(), TOO_LONG])
    longer = edited.reads("read_file", path="a")
    await w.ask(edited.request(session="s"))
    await w.ask(longer.request(session="s"))

    next_turn = await w.ask(longer.reads("read_file", path="b").request(session="s"))
    compacted = await w.ask(story.request(session="s"))

    assert (next_turn.target, next_turn.reason, len(next_turn.sent)) == (
        "planner",
        "window_stay",
        1,
    )
    assert compacted.target == "executor"


async def test_overflow_of_a_side_call_goes_to_the_planner_as_it_is(world, edited):
    w = world(executor=STAY, options=SIDE, replies=[FakeReply(), TOO_LONG])
    await w.ask(edited.request(session="s"))

    served = await w.ask(edited.request(session="s", headers=COMPACTION))

    assert (served.target, served.reason) == ("planner", "housekeeping")
    assert served.warnings == ("overflow_retried",)
    assert PLANNING_PROMPT.encode() not in served.outgoing.body


@pytest.mark.parametrize("setting", ["send", "reject"])
async def test_overflow_is_the_callers_where_the_policy_does_not_say_stay(world, edited, setting):
    executor = f'context_window = 200_000\non_overflow = "{setting}"'

    served = await world(executor=executor, replies=[TOO_LONG]).ask(edited.request(session="s"))

    assert (served.status, len(served.sent), served.warnings) == (400, 1, ())


async def test_final_request_frees_its_slot_after_the_second_try(world, edited):
    w = world(executor=STAY, replies=[FakeReply(), TOO_LONG])
    await w.ask(edited.request(session="s"))

    await w.ask(edited.request(session="s", final=True))

    assert await w.latched() == 0


async def test_turns_of_the_planner_since_the_handoff_are_converted_for_another_origin(
    world, story, large
):
    w = world(executor=STAY, other_origin=True)
    told = story.reasoning("t", encrypted="PLAN-1").edits("edit_file", **EDIT)
    own = told.reasoning("u", encrypted="OWN-1").reads("read_file", path="a")
    stayed = own.reasoning("v", encrypted="PLAN-2").reads("read_file", path="b")
    await w.ask(told.request(session="s"))

    there = await w.ask(own.request(session="s", user="x" * 900_000))
    back = await w.ask(stayed.request(session="s"))
    kept = await w.ask(
        stayed.reasoning("w", encrypted="OWN-2").reads("read_file", path="c").request(session="s")
    )

    def seals(served):
        names = ("PLAN-1", "OWN-1", "PLAN-2", "OWN-2")
        return [name for name in names if name.encode() in served.outgoing.body]

    assert (there.target, seals(there)) == ("planner", ["PLAN-1"])
    assert (back.target, seals(back)) == ("executor", ["OWN-1"])
    assert (kept.target, seals(kept)) == ("executor", ["OWN-1", "OWN-2"])


@pytest.mark.parametrize("wire_format", ["anthropic_messages"], indirect=True)
async def test_token_count_follows_the_session(world, edited, large, wire_format):
    w = world(executor=STAY)
    await w.ask(edited.request(session="s"))

    served = await w.ask(
        Request(
            wire_format=wire_format,
            body=large.body(),
            endpoint="count_tokens",
            headers={"x-switchyard-session-id": "s"},
        )
    )

    assert served.target == "planner"
