"""``mode = "replan"``: a new plan for the rest after a step that failed, and never otherwise."""

from __future__ import annotations

import asyncio

import pytest

from tests.planner_executor.shop import (
    BLOCKED,
    PLAN,
    PRICES,
    REFUSED,
    Shop,
    calls,
    either_way,
    every_target,
    failed,
    plan_of,
    said,
    tool,
)

REPLAN = 'mode = "replan"'
ALWAYS = f'{REPLAN}\napproval = "always"'
REST = plan_of("another way", "finish", first=2, goal="ignored")


async def test_blocked_step_is_planned_again_with_what_was_done():
    shop = Shop(
        REPLAN,
        planner=[PLAN, plan_of("another way", "finish", first=3)],
        executor=["RESULT-ONE", BLOCKED, "three", "four"],
    )

    answer = await shop.ask()

    assert answer.extension["status"] == "completed"
    assert answer.statuses == ["completed", "failed", "completed", "completed"]
    steps = answer.extension["plan"]["steps"]
    assert [step["step"] for step in steps] == [1, 2, 3, 4]
    assert answer.extension["plan"]["goal"] == PLAN["goal"]
    assert "WHY-WORD sold out" in answer.text
    first, second = (out.body.decode() for out in shop.sent("planner"))
    for word in ("GOAL-WORD", "ACTION-ONE", "RESULT-ONE", "ACTION-TWO", "WHY-WORD"):
        assert word in second
    # Not the request: the goal stands for it. And no tools.
    assert "TASK-WORD" in first
    assert "TASK-WORD" not in second
    assert "tools" not in shop.bodies("planner")[1]
    # The blocked call is not answered, so the next step must not be sent with it.
    assert "WHY-WORD" not in shop.raw("executor")


async def test_step_may_be_blocked_without_a_reason():
    for arguments in ("{", {}, {"reason": " "}, {"reason": 3}):
        shop = Shop(REPLAN, planner=[PLAN, REST], executor=[calls(("report_blocked", arguments))])

        answer = await shop.ask()

        assert answer.extension["steps"][0]["error"] == "it cannot be done"


async def test_executor_is_offered_the_way_out_only_in_this_mode():
    for options, offered in ((REPLAN, True), ("", False)):
        shop = Shop(options)
        await shop.ask()
        for out in shop.sent():
            assert (b"report_blocked" in out.body) == (offered and out.role == "executor")


@pytest.mark.parametrize("reply", [failed(400, "executor"), REFUSED], ids=["status", "refused"])
async def test_failed_step_is_planned_again(reply):
    answer = await Shop(REPLAN, planner=[PLAN, REST], executor=[reply]).ask()

    assert answer.statuses == ["failed", "completed", "completed"]
    assert answer.extension["status"] == "completed"


async def test_nothing_is_planned_again_in_the_default_mode():
    shop = Shop(executor=["one", failed(400, "executor")])

    assert (await shop.ask()).extension["status"] == "failed"
    assert len(shop.bodies("planner")) == 1


def breaks(_given):
    raise RuntimeError


@pytest.mark.parametrize(
    "function", [lambda _given: "no products match", breaks], ids=["empty search", "exception"]
)
async def test_tool_that_finds_nothing_or_fails_is_not_a_failed_step(function):
    shop = Shop(
        REPLAN,
        executor=[calls("look"), "nothing was found"],
        tools=[tool("look", function)],
    )

    assert (await shop.ask()).statuses == ["completed"] * 3
    assert len(shop.bodies("planner")) == 1


@pytest.mark.parametrize("most", [1, 2])
async def test_plan_is_replaced_at_most_max_replans_times(most):
    rests = [plan_of("again", first=2 + number) for number in range(5)]
    options = f"{REPLAN}\nmax_replans = {most}"
    shop = Shop(options, planner=[PLAN, *rests], executor=[BLOCKED] * 9)

    answer = await shop.ask()

    assert answer.extension["status"] == "failed"
    assert answer.extension["reason"] == "replans_used_up"
    assert answer.statuses == ["failed"] * (most + 1)
    assert len(shop.bodies("planner")) == 1 + most


UNUSABLE = {
    "prose": ("I would look again", "plan_unusable"),
    "numbers": (plan_of("from one"), "plan_unusable"),
    "empty": ({"goal": "g", "steps": []}, "plan_unusable"),
    "refused": (REFUSED, "plan_unusable"),
    "status": (failed(503), "planner_failed"),
    "transport": (failed(0), "planner_failed"),
}


@either_way
@pytest.mark.parametrize("fault", UNUSABLE)
async def test_unusable_new_plan_ends_the_run_as_failed(fault, stream):
    reply, reason = UNUSABLE[fault]
    shop = Shop(REPLAN, planner=[PLAN, reply], executor=["one", BLOCKED])

    answer = await shop.ask(stream=stream)

    assert answer.status == 200
    if stream:
        assert f'"{reason}"' in answer.stream
        assert '"status":"failed"' in answer.stream
        return
    assert answer.extension["status"] == "failed"
    assert answer.extension["reason"] == reason
    assert answer.statuses == ["completed", "failed", "not_run"]
    assert "Not run: step 3" in answer.text
    assert "The run ended early" in answer.text


@pytest.mark.parametrize(
    ("option", "reason"),
    [("planner_timeout_s", "planner_failed"), ("run_timeout_s", "run_timeout")],
)
async def test_planner_that_is_too_slow_to_plan_again_ends_the_run(option, reason):
    shop = Shop(f"{REPLAN}\n{option} = 0.05", planner=[PLAN, REST], executor=[BLOCKED])

    async def slow(call):
        if call.role == "planner" and "WHY-WORD" in call.text:
            await asyncio.Event().wait()

    shop.models.before = slow
    answer = await shop.ask()

    assert (answer.extension["status"], answer.extension["reason"]) == ("failed", reason)
    assert answer.statuses == ["failed", "not_run", "not_run"]
    error = answer.extension["steps"][0]["error"]
    assert ("no plan within 0.05 s" in error) == (reason == "planner_failed")


# --- approval --------------------------------------------------------------------------------


@every_target
async def test_new_plan_waits_for_approval_and_the_conversation_continues(target):
    shop = Shop(
        ALWAYS,
        target=target,
        planner=[said(PLAN, tokens=(500, 50)), plan_of("another way", first=3)],
        executor=[calls("look"), "one", BLOCKED, "three"],
    )
    plan = await shop.ask()

    waits = await shop.tell("approve", plan)

    assert waits.extension["status"] == "planned"
    assert waits.statuses == ["completed", "failed", "not_run"]
    assert waits.extension["plan_id"] == plan.extension["plan_id"]
    assert waits.extension["plan_digest"] != plan.extension["plan_digest"]
    assert "Nothing of the new steps has run" in waits.text
    assert "another way" in waits.text
    # What decides about the approval is what the new step would take, not the old plan.
    assert waits.extension["estimate"]["calls"]["low"] == 1
    assert waits.extension["estimate"]["actual"]["calls"] == 0
    before = len(shop.sent())
    # The first approval is used up.
    (await shop.tell("approve", plan)).refused(412, "plan_changed")

    done = await shop.tell("approve", waits)

    assert done.extension["status"] == "completed"
    assert done.statuses == ["completed", "failed", "completed"]
    assert done.tokens == (100, 10)
    assert done.extension["usage"]["planner"]["input_tokens"] == 600
    assert done.extension["estimate"]["actual"]["calls"] == 1
    assert len(shop.sent()) == before + 1
    # What was said continues to the byte, tool calls and all.
    last, blocked = shop.bodies("executor")[-1], shop.bodies("executor")[2]
    key = "input" if target == "openai_responses" else "messages"
    assert last[key][: len(blocked[key])] == blocked[key]
    assert len(last[key]) == len(blocked[key]) + 1
    raw = shop.sent("executor")[2].body
    history = raw[raw.index(b'"%s"' % key.encode()) : raw.rindex(b"ACTION-TWO")]
    assert history in shop.sent()[-1].body


async def test_first_approval_can_cover_new_plans():
    options = f'{ALWAYS}\nreplan_approval = "inherit"'
    shop = Shop(options, planner=[PLAN, REST], executor=[BLOCKED])
    plan = await shop.ask()

    assert (await shop.tell("approve", plan)).extension["status"] == "completed"
    assert await shop.state(plan) == "completed"


async def test_text_does_not_approve_a_plan_that_was_made_again():
    options = f"{ALWAYS}\napproval_by_text = true"
    shop = Shop(options, planner=[PLAN, REST], executor=[BLOCKED])
    plan = await shop.ask()
    words = f"approve {plan.extension['plan_id']}"
    waits = await shop.ask(words)
    assert waits.extension["status"] == "planned"

    # As an SDK does that sends a request again.
    (await shop.ask(words)).refused(412, "plan_changed")

    assert len(shop.bodies("executor")) == 1
    assert (await shop.tell("approve", waits)).extension["status"] == "completed"


async def test_new_plan_that_waits_can_be_rejected_and_not_revised():
    shop = Shop(ALWAYS, planner=[PLAN, REST], executor=[BLOCKED])
    waits = await shop.tell("approve", await shop.ask())

    (await shop.tell("revise", waits)).refused(400, "plan_begun")
    rejected = await shop.tell("reject", waits)

    assert rejected.extension["status"] == "rejected"
    assert "no further step of it runs" in rejected.text
    assert len(shop.bodies("executor")) == 1


#: Longer, and so dearer, than the first plan.
LONGER = plan_of(*["more"] * 12, first=2)


@pytest.mark.parametrize("given", [False, True], ids=["made", "given"])
async def test_new_plan_of_a_run_that_needed_no_approval_can_be_approved(given):
    options = f'{REPLAN}\napproval = "over_cost"\napproval_over_usd = 1.9'
    planner = [LONGER] if given else [PLAN, LONGER]
    shop = Shop(options, planner=planner, executor=[BLOCKED], more=PRICES)

    waits = await shop.ask(**({"switchyard": {"plan": PLAN}} if given else {}))

    assert waits.extension["status"] == "planned"
    done = await shop.tell("approve", waits)
    assert done.extension["status"] == "completed"
    assert done.statuses == ["failed", *["completed"] * 12]


async def test_cheap_new_plan_of_a_run_without_approval_runs_on():
    options = f'{REPLAN}\napproval = "over_cost"\napproval_over_usd = 1000'
    shop = Shop(options, planner=[PLAN, REST], executor=[BLOCKED], more=PRICES)

    answer = await shop.ask()

    assert answer.extension["status"] == "completed"
    record = await shop.store.get(answer.extension["plan_id"])
    assert (record.state, record.data) == ("completed", b"")


async def test_new_plan_above_the_cost_limit_is_not_run():
    options = f"{REPLAN}\nmax_cost_usd = 1.9"
    shop = Shop(options, planner=[PLAN, LONGER], executor=[BLOCKED], more=PRICES)

    answer = await shop.ask()

    assert answer.extension["status"] == "failed"
    assert answer.extension["reason"] == "plan_too_costly"
    assert len(shop.bodies("executor")) == 1


async def test_last_step_shows_a_new_plan_that_waits():
    options = f'{ALWAYS}\nanswer = "last_step"'
    shop = Shop(options, planner=[PLAN, REST], executor=[BLOCKED])

    waits = await shop.tell("approve", await shop.ask())

    assert "another way" in waits.text
    assert waits.extension["plan_digest"] in waits.text
    assert (await shop.tell("approve", waits)).text.strip() == "done"
