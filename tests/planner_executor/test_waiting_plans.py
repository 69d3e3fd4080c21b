"""A plan waits until somebody approves this very plan; then it runs, once."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import Counter

import pytest

from switchyard_core.wire import WIRE_FORMATS
from tests.planner_executor.shop import (
    EXECUTOR,
    LOOK,
    OTHER,
    PLAN,
    PRICES,
    REFUSED,
    RESULTS,
    Shop,
    about,
    calls,
    failed,
    plan_of,
    tool,
)

ALWAYS = 'approval = "always"'
ONE = f"{ALWAYS}\nplan_capacity = 1"
IMAGE = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}


class Held:
    """Holds one call to a model back until it is told."""

    def __init__(self, role, number=1):
        self.reached, self.gate = asyncio.Event(), asyncio.Event()
        self.cancelled = False
        self._role = role
        self._left = number

    async def __call__(self, call):
        self._left -= call.role == self._role
        if call.role != self._role or self._left:
            return
        self.reached.set()
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise


async def gone(asking):
    """Let a caller go away, and wait until everything is done with it."""
    asking.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await asking


async def left(shop, held, **request):
    """Ask, and go away as soon as a call is held."""
    shop.models.before = held
    asking = asyncio.create_task(shop.ask(**request))
    await held.reached.wait()
    await gone(asking)
    shop.models.before = None
    assert held.cancelled


async def test_waiting_plan_says_how_to_approve_it_and_runs_nothing():
    ran: list[str] = []
    shop = Shop(ALWAYS, tools=[tool("look", lambda given: ran.append(given.words))], door="http")

    plan = await shop.ask()

    assert (plan.extension["status"], plan.phase) == ("planned", "planned")
    assert plan.headers["x-switchyard-plan-digest"] == plan.extension["plan_digest"]
    assert plan.statuses == ["not_run"] * 3
    assert (shop.roles, ran) == (["planner"], [])
    assert about("approve", plan)["x-switchyard-plan"] in plan.text
    assert await shop.state(plan) == "planned"


@pytest.mark.parametrize("form", ["header", "body", "metadata"])
async def test_approved_plan_runs_in_each_form(form):
    shop = Shop(ALWAYS, executor=RESULTS)
    plan = await shop.ask()
    words = about("approve", plan)
    keys = {key: plan.extension[key] for key in ("plan_id", "plan_digest")}
    more = {
        "header": {"headers": words},
        "body": {"switchyard": {"approve": keys}},
        "metadata": {"metadata": {"switchyard_plan": words["x-switchyard-plan"]}},
    }[form]

    done = await shop.ask("go on", **more)

    assert done.extension["status"] == "completed"
    assert done.results == ["RESULT-ONE", "RESULT-TWO", "RESULT-THREE"]
    assert done.extension["plan_digest"] == plan.extension["plan_digest"]
    assert shop.roles == ["planner", *["executor"] * 4]
    assert await shop.state(plan) == "completed"
    # Neither the caller's words about the plan nor the request reach the executor.
    assert "switchyard" not in shop.raw("executor")
    assert "go on" not in shop.raw("executor")


@pytest.mark.parametrize("caller", WIRE_FORMATS)
async def test_text_approves_only_exactly_and_only_where_the_policy_says_so(caller):
    shop = Shop(f"{ALWAYS}\napproval_by_text = true", caller=caller, planner=[PLAN] * 7)
    plan = await shop.ask()
    words = f"approve {plan.extension['plan_id']}"

    for text in (f"yes, {words}", f"{words} now", words.upper(), "approve", "yes, go"):
        assert (await shop.ask(text)).extension["status"] == "planned", text
    shop.reload(ALWAYS)
    assert (await shop.ask(words)).extension["status"] == "planned"
    assert shop.bodies("executor") == []

    shop.reload(f"{ALWAYS}\napproval_by_text = true")
    assert (await shop.ask(words)).extension["status"] == "completed"


async def test_same_plan_has_the_same_digest_and_an_edited_one_another():
    shop = Shop(f"allow_caller_plans = true\n{ALWAYS}", planner=[PLAN] * 2)
    edited = plan_of(("find tripods", "tripod"), "choose two")

    first, second = await shop.ask(), await shop.ask()
    held = await shop.ask(switchyard={"plan": edited, "approval": "always"})

    digests = [each.extension["plan_digest"] for each in (first, second, held)]
    assert digests[0] == digests[1] != digests[2]
    # The digest of one plan does not approve another, nor does a wrong one.
    for digest in (digests[0], "0" * 64):
        words = f"approve {held.extension['plan_id']} {digest}"
        (await shop.ask(headers={"x-switchyard-plan": words})).refused(412, "plan_changed")
    assert shop.bodies("executor") == []
    assert (await shop.tell("approve", held)).extension["status"] == "completed"


NAMED = f'{ALWAYS}\nquery_tool = "look"'


@pytest.mark.parametrize(
    "change",
    [
        {"tools": ["look"]},
        {"options": f'{NAMED}\nmode = "replan"'},
        {"executor": "planner"},
        {"model": "another-model"},
        {"target": "anthropic_messages"},
        # Of two tools none is named: a step with a query has nothing to use.
        {"options": ALWAYS},
    ],
    ids=["tools", "mode", "executor", "model", "wire_format", "query_tool"],
)
async def test_reload_that_changes_what_was_approved_is_412(change):
    shop = Shop(NAMED, tools=[LOOK, tool("peek")])
    plan = await shop.ask()

    shop.reload(**{"options": NAMED, **change})
    (await shop.tell("approve", plan)).refused(412, "plan_changed")

    assert shop.bodies("executor") == []
    # It can still be given up.
    assert (await shop.tell("reject", plan)).extension["status"] == "rejected"


async def test_reload_that_changes_nothing_of_it_keeps_the_plan():
    shop = Shop(ALWAYS)
    plan = await shop.ask()

    shop.reload(f"{ALWAYS}\nmax_steps = 7\nplan_capacity = 9")

    assert (await shop.tell("approve", plan)).extension["status"] == "completed"


async def test_fifty_approvals_start_one_run():
    shop = Shop(ALWAYS, door="http")
    plan = await shop.ask()
    shop.models.before = held = Held("executor")
    asking = [asyncio.create_task(shop.tell("approve", plan)) for _ in range(50)]
    async with asyncio.timeout(10):
        while sum(task.done() for task in asking) < 49:  # noqa: ASYNC110  # nobody tells
            await asyncio.sleep(0.001)
    held.gate.set()
    answers = [await task for task in asking]

    refused = [answer for answer in answers if answer.status != 200]
    assert Counter((each.code, each.error["status"]) for each in refused) == {
        ("plan_not_pending", "running"): 49
    }
    assert len(shop.bodies("executor")) == 3


@pytest.mark.parametrize("ended", ["completed", "failed", "rejected"])
async def test_plan_that_ended_is_422_with_its_status(ended):
    shop = Shop(ALWAYS, executor=[REFUSED] if ended == "failed" else [])
    plan = await shop.ask()
    await shop.tell("reject" if ended == "rejected" else "approve", plan)
    before = len(shop.sent())

    for word in ("approve", "reject", "revise"):
        refused = await shop.tell(word, plan)
        refused.refused(422, "plan_not_pending")
        assert refused.error["status"] == ended

    assert len(shop.sent()) == before


async def test_rejected_plan_runs_nothing_and_takes_no_tokens():
    shop = Shop(ALWAYS)
    plan = await shop.ask()

    rejected = await shop.tell("reject", plan)

    assert (rejected.extension["status"], rejected.phase) == ("rejected", "rejected")
    assert "nothing of it ran" in rejected.text
    assert rejected.tokens == (0, 0)
    assert rejected.statuses == ["not_run"] * 3
    assert shop.bodies("executor") == []


async def test_each_answer_states_the_tokens_of_its_own_calls():
    shop = Shop(ALWAYS)

    plan = await shop.ask()
    done = await shop.tell("approve", plan)

    assert (plan.tokens, done.tokens) == ((100, 10), (300, 30))
    usage = done.extension["usage"]
    assert usage["planner"]["input_tokens"] == 100
    assert usage["executor"]["input_tokens"] == 300


# --- whose, and for how long -----------------------------------------------------------------


async def test_expired_plan_is_410():
    shop = Shop(f"{ALWAYS}\nplan_ttl_s = 60")
    plan = await shop.ask()
    shop.harness.now += 59
    assert await shop.state(plan) == "planned"

    shop.harness.now += 1
    (await shop.tell("approve", plan)).refused(410, "plan_expired")

    assert shop.bodies("executor") == []


async def test_unknown_plan_is_404():
    shop = Shop(ALWAYS)

    for words in (f"approve plan_no {'0' * 64}", "reject plan_no", "revise plan_no"):
        (await shop.ask(headers={"x-switchyard-plan": words})).refused(404, "plan_unknown")

    assert shop.sent() == []


async def test_plan_of_another_session_is_404():
    shop = Shop(ALWAYS)
    plan = await shop.ask(session="mine")

    for theirs in ({"session": "another"}, {}):
        for word in ("approve", "reject", "revise"):
            (await shop.tell(word, plan, **theirs)).refused(404, "plan_unknown")

    assert len(shop.sent()) == 1
    assert (await shop.tell("approve", plan, session="mine")).extension["status"] == "completed"


async def test_plan_without_a_session_is_for_whoever_names_it():
    shop = Shop(ALWAYS)

    done = await shop.tell("approve", await shop.ask(), session="somebody")

    assert done.extension["status"] == "completed"


# --- which plans wait ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limit", "status"), [(0.0001, "planned"), (1000.0, "completed")], ids=["above", "below"]
)
async def test_over_cost_waits_only_above_the_limit(limit, status):
    options = f'approval = "over_cost"\napproval_over_usd = {limit}'
    shop = Shop(options, more=PRICES)

    answer = await shop.ask()

    assert answer.extension["status"] == status
    high = answer.extension["estimate"]["cost_usd"]["high"]
    assert (high > limit) == (status == "planned")
    assert len(shop.bodies("executor")) == (0 if status == "planned" else 3)
    # What runs at once needs no place.
    assert await shop.store.count() == (1 if status == "planned" else 0)


async def test_caller_can_ask_for_approval():
    shop = Shop()

    plan = await shop.ask(switchyard={"approval": "always"})

    assert plan.extension["status"] == "planned"
    assert shop.bodies("executor") == []
    assert (await shop.tell("approve", plan)).extension["status"] == "completed"


async def test_plan_above_the_cost_limit_is_refused_before_any_step():
    shop = Shop("max_cost_usd = 0.01", more=PRICES)

    refused = await shop.ask()

    refused.refused(400, "plan_too_costly")
    assert refused.error["estimate"]["cost_usd"]["high"] > 0.01
    (await shop.ask(switchyard={"plan": PLAN})).refused(400, "plan_too_costly")
    assert shop.bodies("executor") == []
    allowing = Shop("max_cost_usd = 1000", more=PRICES)
    assert (await allowing.ask()).extension["status"] == "completed"


async def test_cost_limit_that_a_reload_lowers_refuses_an_approval():
    shop = Shop(f"{ALWAYS}\nmax_cost_usd = 1000", more=PRICES)
    plan = await shop.ask()

    shop.reload(f"{ALWAYS}\nmax_cost_usd = 0.01")
    (await shop.tell("approve", plan)).refused(400, "plan_too_costly")

    assert shop.bodies("executor") == []


# --- places in the store ---------------------------------------------------------------------


async def test_full_store_refuses_before_the_planner_is_asked():
    shop = Shop(ONE, planner=[PLAN] * 2)
    plan = await shop.ask()

    (await shop.ask()).refused(400, "plan_capacity")

    assert len(shop.sent()) == 1
    # A plan that ended makes room.
    await shop.tell("reject", plan)
    assert (await shop.ask()).extension["status"] == "planned"


async def test_plan_that_is_being_made_holds_a_place():
    shop = Shop(ONE)
    shop.models.before = held = Held("planner")
    first = asyncio.create_task(shop.ask())
    await held.reached.wait()

    (await shop.ask()).refused(400, "plan_capacity")

    held.gate.set()
    assert (await first).extension["status"] == "planned"


async def test_full_store_refuses_a_callers_plan_only_if_it_is_to_wait():
    shop = Shop("plan_capacity = 1")
    held = {"plan": PLAN, "approval": "always"}
    await shop.ask(switchyard=held)

    (await shop.ask(switchyard=held)).refused(400, "plan_capacity")

    assert (await shop.ask(switchyard={"plan": PLAN})).extension["status"] == "completed"


@pytest.mark.parametrize(
    ("reply", "status", "options"),
    [
        ("1. look", 502, ONE),
        (failed(400), 400, ONE),
        (PLAN, 400, f"{ONE}\nmax_cost_usd = 0.00001"),
    ],
    ids=["unusable", "provider", "too costly"],
)
async def test_place_is_given_back_when_there_is_no_plan(reply, status, options):
    shop = Shop(options, planner=[reply] * 3, more=PRICES)

    for _ in range(3):
        assert (await shop.ask()).status == status

    assert await shop.store.count() == 0
    assert len(shop.sent()) == 3


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_place_is_given_back_when_the_caller_leaves_while_planning(stream):
    shop = Shop(ONE)

    await left(shop, Held("planner"), stream=stream)

    assert await shop.store.count() == 0


async def test_plan_whose_place_went_to_another_meanwhile_takes_a_new_one():
    shop = Shop(f"{ONE}\nplan_ttl_s = 10", planner=[PLAN, OTHER])
    shop.models.before = held = Held("planner")
    first = asyncio.create_task(shop.ask())
    await held.reached.wait()

    # The first one takes longer than plans are kept, so that a second one gets its place.
    shop.harness.now += 11
    shop.models.before = None
    second = await shop.ask()
    shop.harness.now += 11
    held.gate.set()

    assert second.extension["status"] == "planned"
    assert (await shop.tell("approve", await first)).extension["status"] == "completed"


async def test_store_keeps_the_words_and_pictures_of_the_request():
    shop = Shop(ALWAYS)
    content = [{"type": "text", "text": "TASK"}, IMAGE]

    plan = await shop.ask(messages=[{"role": "user", "content": content}])

    record = await shop.store.get(plan.extension["plan_id"])
    kept = json.loads(record.data)
    assert kept["user"]["text"] == "TASK"
    assert kept["user"]["images"] == [{"url": "https://example.com/a.png", "detail": ""}]
    assert kept["prompt_digest"]


async def test_store_does_not_say_where_the_executor_is():
    shop = Shop(ALWAYS)
    plan = await shop.ask()

    record = await shop.store.get(plan.extension["plan_id"])

    assert b"executing.test" not in record.data
    assert EXECUTOR.encode() in record.data


# --- leaving a run ---------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_leaving_an_approved_run_fails_it_and_starts_no_later_step(stream):
    shop = Shop(ALWAYS)
    plan = await shop.ask()

    # The second step's call is the one that is cut.
    await left(shop, Held("executor", 2), headers=about("approve", plan), stream=stream)

    assert await shop.state(plan) == "failed"
    assert len(shop.bodies("executor")) == 2
    assert (await shop.tell("approve", plan)).error["status"] == "failed"


@pytest.mark.parametrize("approval", ["none", "always"])
@pytest.mark.parametrize("seen", ["plan_created", "step_started", "tool_called", "step_finished"])
async def test_closing_the_events_ends_everything_inside_at_once(approval, seen):
    shop = Shop(f'approval = "{approval}"', executor=[calls("look")])
    headers = about("approve", await shop.ask()) if approval == "always" else {}
    tasks = len(asyncio.all_tasks())

    async with contextlib.aclosing(shop.events(headers=headers)) as events:
        async for event in events:
            if getattr(event, "data", {}).get("event") == seen:
                break

    # Nothing is left to the collector of garbage, which would end it in a task of its own.
    assert len(asyncio.all_tasks()) == tasks
    assert [each.state for each in shop.store._records.values()] in ([], ["failed"])


async def test_tool_with_side_effects_ends_its_work_though_the_caller_left():
    begun, gate, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def order(_given):
        begun.set()
        await gate.wait()
        ended.set()

    shop = Shop(
        ALWAYS,
        plan=plan_of("order it", "say thanks"),
        executor=[calls("order")],
        tools=[tool("order", order, side_effects=True)],
    )
    plan = await shop.ask()
    asking = asyncio.create_task(shop.tell("approve", plan))
    await begun.wait()
    await gone(asking)

    assert await shop.state(plan) == "failed"
    assert not ended.is_set()
    gate.set()
    await asyncio.wait_for(ended.wait(), 5)
    assert len(shop.bodies("executor")) == 1


async def test_tool_without_side_effects_is_cancelled_when_the_caller_leaves():
    begun, cancelled = asyncio.Event(), asyncio.Event()

    async def search(_given):
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    shop = Shop(executor=[calls("look")], tools=[tool("look", search)])
    asking = asyncio.create_task(shop.ask())
    await begun.wait()
    await gone(asking)

    await asyncio.wait_for(cancelled.wait(), 5)
    assert len(shop.bodies("executor")) == 1


# --- revising --------------------------------------------------------------------------------


async def test_revised_plan_has_the_feedback_and_another_digest():
    shop = Shop(ALWAYS, planner=[PLAN, OTHER])
    plan = await shop.ask()

    revised = await shop.tell("revise", plan, "FEEDBACK-WORD cheaper")

    assert revised.extension["status"] == "planned"
    assert revised.extension["plan_id"] == plan.extension["plan_id"]
    assert revised.extension["plan_digest"] != plan.extension["plan_digest"]
    assert revised.extension["plan"]["steps"][0]["action"] == "ANOTHER action"
    # The planner sees the request, its plan, and what the person says about it; never tools.
    second = shop.sent("planner")[1].body.decode()
    for word in ("TASK-WORD", "GOAL-WORD", "ACTION-ONE", "FEEDBACK-WORD"):
        assert word in second
    assert "tools" not in shop.bodies("planner")[1]
    (await shop.tell("approve", plan)).refused(412, "plan_changed")
    assert (await shop.tell("approve", revised)).statuses == ["completed"]


async def test_plan_can_be_revised_five_times():
    plans = [plan_of(f"try {number}") for number in range(6)]
    shop = Shop(ALWAYS, planner=plans)
    plan = await shop.ask()
    for _ in range(5):
        plan = await shop.tell("revise", plan)
        assert plan.extension["status"] == "planned"

    (await shop.tell("revise", plan)).refused(400, "plan_revisions_used_up")

    assert len(shop.sent()) == 6
    assert (await shop.tell("approve", plan)).extension["status"] == "completed"


async def test_text_does_not_approve_a_revised_plan():
    shop = Shop(f"{ALWAYS}\napproval_by_text = true", planner=[PLAN, OTHER])
    plan = await shop.ask()
    await shop.tell("revise", plan)

    refused = await shop.ask(f"approve {plan.extension['plan_id']}")

    refused.refused(412, "plan_changed")


@pytest.mark.parametrize("reply", ["no plan", failed(500)], ids=["unusable", "provider"])
async def test_revision_that_fails_keeps_the_plan(reply):
    shop = Shop(ALWAYS, planner=[PLAN, reply])
    plan = await shop.ask()

    assert (await shop.tell("revise", plan)).status >= 500
    assert (await shop.tell("approve", plan)).extension["status"] == "completed"


async def test_revision_that_the_caller_leaves_keeps_the_plan():
    shop = Shop(ALWAYS, planner=[PLAN, OTHER])
    plan = await shop.ask()
    shop.models.before = held = Held("planner")
    revising = asyncio.create_task(shop.tell("revise", plan))
    await held.reached.wait()
    busy = await shop.tell("approve", plan)
    await gone(revising)

    # While it is revised, nobody can approve it.
    assert (busy.status, busy.error["status"]) == (422, "planning")
    assert (await shop.tell("approve", plan)).extension["status"] == "completed"


async def test_revision_needs_words():
    shop = Shop(ALWAYS)

    refused = await shop.tell("revise", await shop.ask(), " ")

    refused.refused(400, "no_user_text")


# --- a caller's own plan ---------------------------------------------------------------------


async def test_callers_plan_runs_without_planner_and_store():
    made, given = Shop(executor=RESULTS), Shop(executor=RESULTS)

    await made.ask()
    done = await given.ask(switchyard={"plan": PLAN})

    assert done.extension["status"] == "completed"
    assert done.results == ["RESULT-ONE", "RESULT-TWO", "RESULT-THREE"]
    assert set(given.roles) == {"executor"}
    assert await given.store.count() == 0
    assert "TASK-WORD" not in given.raw()
    # It makes the very calls of a plan that was made.
    assert [out.body for out in given.sent()] == [out.body for out in made.sent("executor")]


@pytest.mark.parametrize(
    ("reason", "plan"),
    [
        ("schema", {"goal": "g", "steps": [{"step": 1}]}),
        ("numbering", plan_of("a", first=2)),
        ("too_many_steps", plan_of(*["a"] * 13)),
    ],
)
async def test_callers_plan_is_checked_like_a_made_one(reason, plan):
    shop = Shop()

    refused = await shop.ask(switchyard={"plan": plan})

    refused.refused(400, "plan_invalid")
    assert refused.error["reason"] == reason
    assert json.loads(refused.error["raw_text"]) == plan
    assert shop.sent() == []


async def test_callers_plan_with_a_query_needs_a_tool_for_it():
    shop = Shop(tools=[])

    refused = await shop.ask(switchyard={"plan": PLAN})

    refused.refused(400, "plan_invalid")
    assert "query" in refused.message
    assert shop.sent() == []


async def test_callers_plan_is_refused_where_plans_are_approved():
    shop = Shop(ALWAYS)

    (await shop.ask(switchyard={"plan": PLAN})).refused(400, "caller_plans_off")

    assert shop.sent() == []
    allowing = Shop(f"{ALWAYS}\nallow_caller_plans = true")
    assert (await allowing.ask(switchyard={"plan": PLAN})).extension["status"] == "completed"


@pytest.mark.parametrize(("text", "word"), [("FOR-WHAT", "FOR-WHAT"), (" ", "GOAL-WORD")])
async def test_dear_plan_of_the_caller_waits_and_can_be_revised(text, word):
    options = 'approval = "over_cost"\napproval_over_usd = 0.0001'
    shop = Shop(options, planner=[OTHER], more=PRICES)

    plan = await shop.ask(text, switchyard={"plan": PLAN})

    assert plan.extension["status"] == "planned"
    assert shop.sent() == []
    revised = await shop.tell("revise", plan, "cheaper")
    assert word in shop.raw("planner")
    assert (await shop.tell("approve", revised)).statuses == ["completed"]
