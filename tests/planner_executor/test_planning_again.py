"""``mode = "replan"``: a new plan of the rest after a step that failed, and never otherwise."""

from __future__ import annotations

import asyncio

import pytest

from switchyard_core import PolicyError, UpstreamError
from switchyard_core.testing import FakeReply
from switchyard_planner_executor import UnknownModeError, get_mode
from tests.planner_executor.gate_world import (
    LANES,
    PLAN,
    PRICES,
    Say,
    Shop,
    calls,
    lanes,
    plan_of,
    tool,
)

REPLAN = 'mode = "replan"'
ALWAYS = f'{REPLAN}\napproval = "always"'
BLOCKED = calls(("report_blocked", {"reason": "WHYWORD sold out"}))
REST = plan_of("another way", "finish", first=2, goal="ignored")


@lanes
async def test_blocked_step_is_planned_again_with_what_was_done(lane):
    shop = Shop(
        lane,
        REPLAN,
        plan=plan_of("DONEWORD first", "LOSTWORD second", "third"),
        planner=[
            Say(plan_of("DONEWORD first", "LOSTWORD second", "third")),
            Say(plan_of("another way", "finish", first=3)),
        ],
        executor=[Say("RESULTWORD one"), BLOCKED, Say("three"), Say("four")],
    )

    answer = await shop.ask()

    assert answer.extension["status"] == "completed"
    assert answer.statuses == ["completed", "failed", "completed", "completed"]
    steps = answer.extension["plan"]["steps"]
    assert [step["step"] for step in steps] == [1, 2, 3, 4]
    assert answer.extension["plan"]["goal"] == "GOALWORD"
    assert "WHYWORD sold out" in answer.text
    first, second = (each for each in shop.models.sent if each.role == "planner")
    for word in (b"GOALWORD", b"DONEWORD", b"RESULTWORD", b"LOSTWORD", b"WHYWORD"):
        assert word in second.body
    # Not the request: the goal stands for it. And no tools.
    assert b"TASKWORD" in first.body
    assert b"TASKWORD" not in second.body
    assert "tools" not in shop.models.asked("planner")[1]
    # The blocked call is not answered, so the next step must not be sent with it.
    assert b"WHYWORD" not in shop.models.sent[-1].body


@lanes
async def test_executor_is_offered_the_way_out_only_in_this_mode(lane):
    for options, offered in ((REPLAN, True), ("", False)):
        shop = Shop(lane, options)
        await shop.ask()
        for sent in shop.models.sent:
            assert (b"report_blocked" in sent.body) == (offered and sent.role == "executor")


@lanes
async def test_failed_call_is_planned_again(lane):
    failing = FakeReply(status=400, body={"error": {"message": "no"}})
    shop = Shop(lane, REPLAN, planner=[Say(PLAN), Say(REST)], executor=[failing])

    answer = await shop.ask()

    assert answer.statuses == ["failed", "completed", "completed"]
    assert answer.extension["status"] == "completed"


@lanes
async def test_empty_search_is_no_failure(lane):
    shop = Shop(
        lane,
        REPLAN,
        executor=[calls("look"), Say("nothing was found")],
        tools=[tool("look", lambda _given: "no products match")],
    )

    answer = await shop.ask()

    assert answer.statuses == ["completed"] * 3
    assert len(shop.models.asked("planner")) == 1


@lanes
async def test_failed_tool_is_no_failed_step(lane):
    def broken(_given):
        raise RuntimeError

    shop = Shop(lane, REPLAN, executor=[calls("look")], tools=[tool("look", broken)])

    answer = await shop.ask()

    assert answer.statuses == ["completed"] * 3
    assert len(shop.models.asked("planner")) == 1


@pytest.mark.parametrize("most", [1, 2])
@lanes
async def test_plan_is_replaced_at_most_max_replans_times(lane, most):
    rests = [Say(plan_of("again", first=2 + number)) for number in range(5)]
    options = f"{REPLAN}\nmax_replans = {most}"
    shop = Shop(lane, options, planner=[Say(PLAN), *rests], executor=[BLOCKED] * 9)

    answer = await shop.ask()

    assert answer.extension["status"] == "failed"
    assert answer.extension["reason"] == "replans_used_up"
    assert answer.statuses == ["failed"] * (most + 1)
    assert len(shop.models.asked("planner")) == 1 + most


UNUSABLE = {
    "prose": (Say("I would look again"), "plan_unusable"),
    "numbers": (Say(plan_of("from one")), "plan_unusable"),
    "empty": (Say({"goal": "g", "steps": []}), "plan_unusable"),
    "refused": (Say(refusal="I will not"), "plan_unusable"),
    "status": (FakeReply(status=503, body={}), "planner_failed"),
    "transport": (UpstreamError("gone"), "planner_failed"),
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("fault", UNUSABLE)
@lanes
async def test_unusable_new_plan_ends_the_run_as_failed(lane, fault, stream):
    reply, reason = UNUSABLE[fault]
    shop = Shop(lane, REPLAN, planner=[Say(PLAN), reply], executor=[Say("one"), BLOCKED])

    answer = await shop.ask(stream=stream)

    assert answer.status == 200
    if stream:
        assert f'"{reason}"' in answer.body["stream"]
        assert '"status":"failed"' in answer.body["stream"].replace(" ", "")
        return
    assert answer.extension["status"] == "failed"
    assert answer.extension["reason"] == reason
    assert answer.statuses == ["completed", "failed", "not_run"]
    assert "Not run: step 3" in answer.text
    assert "The run ended early" in answer.text


async def test_slow_planner_ends_the_run_as_failed():
    shop = Shop(
        LANES[0],
        f"{REPLAN}\nplanner_timeout_s = 0.01",
        planner=[Say(PLAN), Say(REST)],
        executor=[BLOCKED],
    )
    asked = []

    async def slow(outgoing):
        asked.append(outgoing.role)
        if asked.count("planner") == 2 and outgoing.role == "planner":
            await asyncio.Event().wait()

    shop.models.before = slow
    answer = await shop.ask()

    assert answer.extension["reason"] == "planner_failed"
    assert "within 0.01 s" in answer.extension["steps"][0]["error"]


# --- approval --------------------------------------------------------------------------------


@lanes
async def test_new_plan_waits_for_approval_and_the_conversation_goes_on(lane):
    shop = Shop(
        lane,
        ALWAYS,
        planner=[Say(PLAN, tokens=(500, 50)), Say(plan_of("another way", first=3))],
        executor=[calls("look"), Say("one"), BLOCKED, Say("three")],
    )
    plan = await shop.ask()

    waits = await shop.go_on("approve", plan)

    assert waits.extension["status"] == "planned"
    assert waits.statuses == ["completed", "failed", "not_run"]
    assert waits.extension["plan_id"] == plan.extension["plan_id"]
    assert waits.extension["plan_digest"] != plan.extension["plan_digest"]
    assert "Nothing of the new steps has run" in waits.text
    assert "another way" in waits.text
    # What decides about the approval is what the new step would take, not the old plan.
    assert waits.extension["estimate"]["calls"]["low"] == 1
    assert waits.extension["estimate"]["actual"]["calls"] == 0
    before = len(shop.models.sent)
    assert before == 5
    # The first approval is used up.
    old = await shop.go_on("approve", plan)
    assert (old.status, old.code) == (412, "plan_changed")

    done = await shop.go_on("approve", waits)

    assert done.extension["status"] == "completed"
    assert done.statuses == ["completed", "failed", "completed"]
    assert done.tokens == (100, 10)
    assert done.extension["estimate"]["actual"]["calls"] == 1
    # What was said goes on to the byte, tool calls and all.
    last, blocked = shop.models.asked("executor")[-1], shop.models.asked("executor")[2]
    key = "input" if shop.target == "openai_responses" else "messages"
    assert last[key][: len(blocked[key])] == blocked[key]
    assert len(last[key]) == len(blocked[key]) + 1
    raw = shop.models.sent[3].body
    said = raw[raw.index(b'"%s"' % key.encode()) : raw.rindex(b"find tripods")]
    assert said in shop.models.sent[-1].body
    assert len(shop.models.sent) == before + 1


@lanes
async def test_first_approval_can_cover_new_plans(lane):
    shop = Shop(
        lane,
        f'{ALWAYS}\nreplan_approval = "inherit"',
        planner=[Say(PLAN), Say(REST)],
        executor=[BLOCKED],
    )
    plan = await shop.ask()

    done = await shop.go_on("approve", plan)

    assert done.extension["status"] == "completed"
    assert await shop.state(plan.extension["plan_id"]) == "completed"


@lanes
async def test_words_approve_no_plan_that_was_made_again(lane):
    shop = Shop(
        lane,
        f"{ALWAYS}\napproval_by_text = true",
        planner=[Say(PLAN), Say(REST)],
        executor=[BLOCKED],
    )
    plan = await shop.ask()
    words = f"approve {plan.extension['plan_id']}"
    waits = await shop.ask(words)
    assert waits.extension["status"] == "planned"

    # As an SDK does that sends a request again.
    again = await shop.ask(words)

    assert (again.status, again.code) == (412, "plan_changed")
    assert len(shop.models.asked("executor")) == 1
    assert (await shop.go_on("approve", waits)).extension["status"] == "completed"


@lanes
async def test_new_plan_that_waits_can_be_rejected_and_not_revised(lane):
    shop = Shop(lane, ALWAYS, planner=[Say(PLAN), Say(REST)], executor=[BLOCKED])
    waits = await shop.go_on("approve", await shop.ask())

    refused = await shop.go_on("revise", waits)
    assert (refused.status, refused.code) == (400, "plan_begun")
    rejected = await shop.go_on("reject", waits)

    assert rejected.extension["status"] == "rejected"
    assert "no further step of it runs" in rejected.text
    assert len(shop.models.asked("executor")) == 1


@pytest.mark.parametrize("given", [False, True])
@lanes
async def test_new_plan_of_a_run_that_needed_no_approval_can_be_approved(lane, given):
    options = f'{REPLAN}\napproval = "over_cost"\napproval_over_usd = 1.9'
    # The plan of the rest is longer, and so dearer, than the first one.
    shop = Shop(
        lane,
        options,
        planner=[*([] if given else [Say(PLAN)]), Say(plan_of(*["more"] * 12, first=2))],
        executor=[BLOCKED],
        prices=PRICES,
    )

    waits = await shop.ask(**({"switchyard": {"plan": PLAN}} if given else {}))
    assert waits.extension["status"] == "planned"
    done = await shop.go_on("approve", waits)

    assert done.extension["status"] == "completed"
    assert done.statuses == ["failed", *["completed"] * 12]


@lanes
async def test_cheap_new_plan_of_a_run_without_approval_goes_on(lane):
    options = f'{REPLAN}\napproval = "over_cost"\napproval_over_usd = 1000'
    shop = Shop(lane, options, planner=[Say(PLAN), Say(REST)], executor=[BLOCKED], prices=PRICES)

    answer = await shop.ask()

    assert answer.extension["status"] == "completed"
    (record,) = shop.store._records.values()
    assert (record.state, record.data) == ("completed", b"")


@lanes
async def test_new_plan_over_the_limit_of_cost_is_not_run(lane):
    options = f"{REPLAN}\nmax_cost_usd = 1.9"
    shop = Shop(
        lane,
        options,
        planner=[Say(PLAN), Say(plan_of(*["more"] * 12, first=2))],
        executor=[BLOCKED],
        prices=PRICES,
    )

    answer = await shop.ask()

    assert answer.extension["status"] == "failed"
    assert answer.extension["reason"] == "plan_too_costly"
    assert len(shop.models.asked("executor")) == 1


@lanes
async def test_last_step_shows_a_new_plan_that_waits(lane):
    shop = Shop(
        lane,
        f'{ALWAYS}\nanswer = "last_step"',
        planner=[Say(PLAN), Say(REST)],
        executor=[BLOCKED],
    )

    waits = await shop.go_on("approve", await shop.ask())

    assert "another way" in waits.text
    assert waits.extension["plan_digest"] in waits.text
    assert (await shop.go_on("approve", waits)).text.strip() == "done"


# --- the reserved mode -----------------------------------------------------------------------


def test_magentic_is_a_named_error_of_the_policy():
    with pytest.raises(PolicyError) as raised:
        Shop(LANES[0], 'mode = "magentic"')

    (finding,) = raised.value.findings
    assert finding.code == "SY315"
    assert finding.path == "routes.shop.mode"
    assert (finding.line, finding.column) == (24, 8)
    assert "reserved" in finding.message
    assert "plan_then_execute, replan" in finding.message


def test_magentic_is_a_named_error_of_the_library():
    with pytest.raises(UnknownModeError, match=r"reserved.*modes: plan_then_execute, replan"):
        get_mode("magentic")
    assert issubclass(UnknownModeError, ValueError)
