"""Places in the plan store: taken before the planner is asked, given back when nothing waits."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from switchyard_core import UpstreamError
from switchyard_core.testing import FakeReply
from tests.planner_executor.gate_world import (
    LANES,
    LOOK,
    PLAN,
    PRICES,
    Caller,
    Say,
    Shop,
    calls,
    lanes,
    plan_of,
    tool,
)

ALWAYS = 'approval = "always"'
ONE = f"{ALWAYS}\nplan_capacity = 1"
OTHER = plan_of("ANOTHER action")


async def until(true, seconds=5.0):
    """Wait until something is so."""
    async with asyncio.timeout(seconds):
        while not true():  # noqa: ASYNC110  # of what it waits for nobody tells
            await asyncio.sleep(0)


class Held:
    """Holds the calls to one model back until it is told."""

    def __init__(self, role, number=1):
        self.reached = asyncio.Event()
        self.gate = asyncio.Event()
        self.cancelled = False
        self._role = role
        self._left = number

    async def __call__(self, outgoing):
        if outgoing.role != self._role:
            return
        self._left -= 1
        if self._left:
            return
        self.reached.set()
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise


@lanes
async def test_full_store_refuses_before_the_planner_is_asked(lane):
    shop = Shop(lane, ONE, planner=[Say(PLAN)] * 2)
    plan = await shop.ask()

    refused = await shop.ask()

    assert (refused.status, refused.code) == (400, "plan_capacity")
    assert refused.headers["x-should-retry"] == "false"
    assert len(shop.models.sent) == 1
    # A plan that ended makes room.
    await shop.go_on("reject", plan)
    assert (await shop.ask()).extension["status"] == "planned"


@lanes
async def test_plan_that_is_being_made_holds_a_place(lane):
    shop = Shop(lane, ONE)
    shop.models.before = held = Held("planner")
    first = asyncio.create_task(shop.ask())
    await held.reached.wait()

    refused = await shop.ask()

    assert (refused.status, refused.code) == (400, "plan_capacity")
    held.gate.set()
    assert (await first).extension["status"] == "planned"


@lanes
async def test_full_store_refuses_a_plan_of_the_caller_that_is_to_wait(lane):
    shop = Shop(lane, "plan_capacity = 1")
    held = {"plan": PLAN, "approval": "always"}
    await shop.ask(switchyard=held)

    refused = await shop.ask(switchyard=held)

    assert (refused.status, refused.code) == (400, "plan_capacity")
    assert (await shop.ask(switchyard={"plan": PLAN})).extension["status"] == "completed"


FAILURES = {
    "unusable": (Say("1. look"), 502, ALWAYS),
    "provider": (FakeReply(status=400, body={"error": {"message": "no"}}), 400, ALWAYS),
    "too costly": (Say(PLAN), 400, f"{ALWAYS}\nmax_cost_usd = 0.00001"),
}


@pytest.mark.parametrize("failure", FAILURES)
@lanes
async def test_place_is_given_back_when_there_is_no_plan(lane, failure):
    reply, status, options = FAILURES[failure]
    shop = Shop(lane, f"{options}\nplan_capacity = 1", planner=[reply] * 3, prices=PRICES)

    for _ in range(3):
        assert (await shop.ask()).status == status

    assert await shop.store.count() == 0
    assert len(shop.models.sent) == 3


async def test_place_is_given_back_when_the_planner_cannot_be_reached():
    # In the library such a failure is raised, not answered.
    shop = Shop(LANES[0], ONE, planner=[UpstreamError("gone")])

    with pytest.raises(UpstreamError):
        await shop.ask()

    assert await shop.store.count() == 0


@pytest.mark.parametrize("stream", [False, True])
@lanes
async def test_place_is_given_back_when_the_client_leaves_while_planning(lane, stream):
    shop = Shop(lane, ONE)
    shop.models.before = held = Held("planner")
    request = shop.request(stream=stream)

    if lane[2] == "http":
        caller = Caller(shop.app, request)
        await held.reached.wait()
        await caller.leave()
    else:
        asking = asyncio.create_task(shop.yard.handle(request))
        await held.reached.wait()
        asking.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asking

    assert held.cancelled
    assert await shop.store.count() == 0
    assert shop.models.ended == []


# --- leaving a run ---------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True])
@lanes
async def test_leaving_an_approved_run_fails_it_and_starts_no_later_step(lane, stream):
    shop = Shop(lane, ALWAYS)
    plan = await shop.ask()
    plan_id, digest = plan.extension["plan_id"], plan.extension["plan_digest"]
    # The second step's call is the one that is cut.
    shop.models.before = held = Held("executor", 2)
    words = {"x-switchyard-plan": f"approve {plan_id} {digest}"}
    request = shop.request(headers=words, stream=stream)

    if lane[2] == "http":
        caller = Caller(shop.app, request)
        await held.reached.wait()
        assert await shop.state(plan_id) == "running"
        await caller.leave()
    else:
        asking = asyncio.create_task(_read(shop, request))
        await held.reached.wait()
        asking.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asking

    assert held.cancelled
    assert await shop.state(plan_id) == "failed"
    assert len(shop.models.asked("executor")) == 2
    shop.models.before = None
    again = await shop.go_on("approve", plan)
    assert (again.status, again.error["status"]) == (422, "failed")


async def _read(shop, request):
    async with await shop.yard.handle(request) as response:
        await response.read()


async def test_run_whose_events_nobody_wants_any_more_is_failed_at_once():
    shop = Shop(LANES[0], ALWAYS)
    plan = await shop.ask()
    plan_id, digest = plan.extension["plan_id"], plan.extension["plan_digest"]
    words = {"x-switchyard-plan": f"approve {plan_id} {digest}"}

    async with contextlib.aclosing(shop.yard.answer(shop.request(headers=words))) as events:
        async for _event in events:
            break

    assert await shop.state(plan_id) == "failed"
    assert shop.models.asked("executor") == []


@pytest.mark.parametrize("approval", ["none", "always"])
@pytest.mark.parametrize("seen", ["step_started", "tool_called", "step_finished"])
async def test_closing_events_ends_everything_inside_at_once(approval, seen):
    shop = Shop(LANES[0], f'approval = "{approval}"', executor=[calls("look")])
    headers = {}
    if approval == "always":
        found = (await shop.ask()).extension
        headers = {"x-switchyard-plan": f"approve {found['plan_id']} {found['plan_digest']}"}
    request = shop.request(headers=headers)
    tasks = len(asyncio.all_tasks())

    async with contextlib.aclosing(shop.yard.answer(request)) as events:
        async for event in events:
            if getattr(event, "data", {}).get("event") == seen:
                break

    # Nothing is left to the collector of garbage, which would end it in a task of its own.
    assert len(asyncio.all_tasks()) == tasks
    assert [each.state for each in shop.store._records.values()] in ([], ["failed"])


@lanes
async def test_tool_with_side_effects_ends_its_work_though_the_client_left(lane):
    begun, gate, ended = asyncio.Event(), asyncio.Event(), []

    async def order(given):
        begun.set()
        await gate.wait()
        ended.append(given.words)
        return "ordered"

    shop = Shop(
        lane,
        ALWAYS,
        plan=plan_of("order it", "say thanks"),
        executor=[calls("order")],
        tools=[tool("order", order, side_effects=True)],
    )
    plan = await shop.ask()
    found = plan.extension
    words = {"x-switchyard-plan": f"approve {found['plan_id']} {found['plan_digest']}"}

    caller = Caller(shop.app, shop.request(headers=words))
    await begun.wait()
    await caller.leave()
    assert await shop.state(found["plan_id"]) == "failed"
    assert ended == []
    gate.set()
    await until(lambda: ended)

    assert ended == ["tripod"]
    assert len(shop.models.asked("executor")) == 1


@lanes
async def test_tool_without_side_effects_is_cancelled_when_the_client_leaves(lane):
    begun, cancelled = asyncio.Event(), []

    async def search(_given):
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    shop = Shop(lane, executor=[calls("look")], tools=[tool("look", search)])

    caller = Caller(shop.app, shop.request())
    await begun.wait()
    await caller.leave()
    await until(lambda: cancelled)

    assert len(shop.models.asked("executor")) == 1


# --- revising --------------------------------------------------------------------------------


@lanes
async def test_revised_plan_has_the_feedback_and_another_digest(lane):
    shop = Shop(lane, ALWAYS, planner=[Say(PLAN), Say(OTHER)])
    plan = await shop.ask()

    revised = await shop.go_on("revise", plan, text="FEEDBACKWORD cheaper")

    assert revised.extension["status"] == "planned"
    assert revised.extension["plan_id"] == plan.extension["plan_id"]
    assert revised.extension["plan_digest"] != plan.extension["plan_digest"]
    assert revised.extension["plan"]["steps"][0]["action"] == "ANOTHER action"
    sent = shop.models.sent[-1]
    assert sent.role == "planner"
    # The planner sees the request, its plan, and what the person says of it; never tools.
    for word in (b"TASKWORD", b"GOALWORD", b"find tripods", b"FEEDBACKWORD"):
        assert word in sent.body
    assert "tools" not in shop.models.asked("planner")[-1]

    old = await shop.go_on("approve", plan)
    assert (old.status, old.code) == (412, "plan_changed")
    done = await shop.go_on("approve", revised)
    assert done.statuses == ["completed"]


@lanes
async def test_plan_can_be_revised_five_times(lane):
    plans = [plan_of(f"try {number}") for number in range(6)]
    shop = Shop(lane, ALWAYS, planner=[Say(each) for each in plans])
    plan = await shop.ask()
    for _ in range(5):
        plan = await shop.go_on("revise", plan)
        assert plan.extension["status"] == "planned"

    refused = await shop.go_on("revise", plan)

    assert (refused.status, refused.code) == (400, "plan_revisions_used_up")
    assert refused.headers["x-should-retry"] == "false"
    assert len(shop.models.sent) == 6
    assert (await shop.go_on("approve", plan)).extension["status"] == "completed"


@pytest.mark.parametrize("reply", [Say("no plan"), FakeReply(status=500, body={})])
@lanes
async def test_failing_revise_keeps_the_plan(lane, reply):
    shop = Shop(lane, ALWAYS, planner=[Say(PLAN), reply])
    plan = await shop.ask()

    refused = await shop.go_on("revise", plan)

    assert refused.status >= 500
    assert (await shop.go_on("approve", plan)).extension["status"] == "completed"


async def test_revise_that_the_client_leaves_keeps_the_plan():
    shop = Shop(LANES[0], ALWAYS, planner=[Say(PLAN), Say(OTHER)])
    plan = await shop.ask()
    shop.models.before = held = Held("planner")
    words = {"x-switchyard-plan": f"revise {plan.extension['plan_id']}"}

    caller = Caller(shop.app, shop.request("cheaper", headers=words))
    await held.reached.wait()
    # Meanwhile it is nobody's to approve.
    busy = await shop.go_on("approve", plan)
    assert (busy.status, busy.error["status"]) == (422, "planning")
    await caller.leave()

    assert (await shop.go_on("approve", plan)).extension["status"] == "completed"


async def test_revise_needs_words():
    shop = Shop(LANES[0], ALWAYS)
    plan = await shop.ask()

    refused = await shop.go_on("revise", plan, text=" ")

    assert (refused.status, refused.code) == (400, "no_user_text")


# --- a slow planner --------------------------------------------------------------------------


async def test_plan_whose_place_went_to_another_meanwhile_takes_a_new_one():
    shop = Shop(LANES[0], f"{ONE}\nplan_ttl_s = 10", planner=[Say(PLAN), Say(OTHER)])
    shop.models.before = held = Held("planner")
    first = asyncio.create_task(shop.ask())
    await held.reached.wait()

    # The first one takes longer than plans are kept, so that a second one gets its place.
    shop.now += 11
    shop.models.before = None
    second = await shop.ask()
    shop.now += 11
    held.gate.set()
    plan = await first

    assert second.extension["status"] == "planned"
    done = await shop.go_on("approve", plan)
    assert done.extension["status"] == "completed"


# --- a plan in the body ----------------------------------------------------------------------


@lanes
async def test_plan_in_the_body_runs_without_planner_and_store(lane):
    shop = Shop(lane, executor=[calls("look"), Say("one"), Say("two"), Say("three")])

    done = await shop.ask(switchyard={"plan": PLAN})

    assert done.extension["status"] == "completed"
    assert [step["result"] for step in done.extension["steps"]] == ["one", "two", "three"]
    assert {each.role for each in shop.models.sent} == {"executor"}
    assert await shop.store.count() == 0
    assert all(b"TASKWORD" not in each.body for each in shop.models.sent)


@lanes
async def test_plan_in_the_body_makes_the_calls_of_a_made_one(lane):
    says = [calls("look"), Say("one"), Say("two"), Say("three")]
    made, given = Shop(lane, executor=says), Shop(lane, executor=says)

    await made.ask()
    await given.ask(switchyard={"plan": PLAN})

    bodies = [each.body for each in made.models.sent if each.role == "executor"]
    assert [each.body for each in given.models.sent] == bodies


BAD_PLANS = {
    "schema": {"goal": "g", "steps": [{"step": 1}]},
    "numbering": {"goal": "g", "steps": [{"step": 2, "action": "a", "query": None}]},
    "too_many_steps": plan_of(*["a"] * 13),
}


@pytest.mark.parametrize("reason", BAD_PLANS)
@lanes
async def test_plan_in_the_body_is_checked_like_a_made_one(lane, reason):
    shop = Shop(lane)

    refused = await shop.ask(switchyard={"plan": BAD_PLANS[reason]})

    assert (refused.status, refused.code) == (400, "plan_invalid")
    assert refused.error["reason"] == reason
    assert refused.error["raw_text"]
    assert shop.models.sent == []


@lanes
async def test_plan_in_the_body_with_a_query_needs_a_tool_for_it(lane):
    shop = Shop(lane, tools=[])

    refused = await shop.ask(switchyard={"plan": PLAN})

    assert (refused.status, refused.code) == (400, "plan_invalid")
    assert "query" in refused.error["message"]
    assert shop.models.sent == []


@lanes
async def test_plan_in_the_body_is_off_where_plans_are_approved(lane):
    shop = Shop(lane, ALWAYS)

    refused = await shop.ask(switchyard={"plan": PLAN})

    assert (refused.status, refused.code) == (400, "caller_plans_off")
    assert shop.models.sent == []

    allowing = Shop(lane, f"{ALWAYS}\nallow_caller_plans = true")
    assert (await allowing.ask(switchyard={"plan": PLAN})).extension["status"] == "completed"


@lanes
async def test_dear_plan_in_the_body_waits(lane):
    options = 'approval = "over_cost"\napproval_over_usd = 0.0001'
    shop = Shop(lane, options, prices=PRICES, tools=[LOOK])

    plan = await shop.ask("FORWHAT", switchyard={"plan": PLAN})

    assert plan.extension["status"] == "planned"
    assert shop.models.sent == []
    shop.models.says["planner"] = [Say(OTHER)]
    revised = await shop.go_on("revise", plan, text="cheaper")
    assert b"FORWHAT" in shop.models.sent[-1].body
    assert (await shop.go_on("approve", revised)).statuses == ["completed"]
