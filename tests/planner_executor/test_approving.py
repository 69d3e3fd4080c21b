"""A plan waits until somebody approves this very plan; then it runs, once."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from typing import Any

import pytest

from switchyard_core import WIRE_FORMATS
from tests.planner_executor.gate_world import (
    LANES,
    LOOK,
    PLAN,
    PRICES,
    Answered,
    Say,
    Shop,
    calls,
    lanes,
    plan_of,
    tool,
)

ALWAYS = 'approval = "always"'
OPENAI = tuple(lane for lane in LANES if lane[0] != "anthropic_messages")
OTHER = plan_of("ANOTHER action")


def approving(plan: Answered, form: str) -> dict[str, Any]:
    """Return what a request has to have to approve a plan in one of the forms."""
    plan_id, digest = plan.extension["plan_id"], plan.extension["plan_digest"]
    words = f"approve {plan_id} {digest}"
    if form == "header":
        return {"headers": {"x-switchyard-plan": words}}
    if form == "body":
        return {"switchyard": {"approve": {"plan_id": plan_id, "plan_digest": digest}}}
    return {"metadata": {"switchyard_plan": words}}


@lanes
async def test_nothing_runs_before_approval(lane):
    ran: list[str] = []
    shop = Shop(lane, ALWAYS, tools=[tool("look", lambda given: ran.append(given.words))])

    plan = await shop.ask()

    assert plan.extension["status"] == "planned"
    assert plan.headers["x-switchyard-phase"] == "planned"
    assert plan.headers["x-switchyard-plan-digest"] == plan.extension["plan_digest"]
    assert plan.statuses == ["not_run"] * 3
    assert [each.role for each in shop.models.sent] == ["planner"]
    assert ran == []
    # How to go on stands in the text, word for word.
    words = f"approve {plan.extension['plan_id']} {plan.extension['plan_digest']}"
    assert words in plan.text
    assert await shop.state(plan.extension["plan_id"]) == "planned"


@pytest.mark.parametrize(
    ("lane", "form"),
    [
        *((lane, form) for lane in LANES for form in ("header", "body")),
        *((lane, "metadata") for lane in OPENAI),
    ],
)
async def test_approved_plan_runs_in_each_form(lane, form):
    shop = Shop(lane, ALWAYS, executor=[calls("look"), Say("one"), Say("two"), Say("three")])
    plan = await shop.ask()

    done = await shop.ask("go on", **approving(plan, form))

    assert done.extension["status"] == "completed"
    assert [step["result"] for step in done.extension["steps"]] == ["one", "two", "three"]
    assert done.extension["plan_digest"] == plan.extension["plan_digest"]
    assert [each.role for each in shop.models.sent] == ["planner", *["executor"] * 4]
    assert await shop.state(plan.extension["plan_id"]) == "completed"
    # Neither the caller's words about the plan nor the request go anywhere.
    for sent in shop.models.sent[1:]:
        assert b"switchyard" not in sent.body
        assert b"go on" not in sent.body


async def test_metadata_does_not_approve_on_messages():
    shop = Shop(LANES[2], ALWAYS, planner=[Say(PLAN), Say(OTHER)])
    plan = await shop.ask()

    again = await shop.ask("go on", **approving(plan, "metadata"))

    assert again.extension["status"] == "planned"
    assert again.extension["plan_id"] != plan.extension["plan_id"]
    assert shop.models.asked("executor") == []


@lanes
async def test_text_approves_only_exactly_and_where_allowed(lane):
    shop = Shop(lane, f"{ALWAYS}\napproval_by_text = true", planner=[Say(PLAN)] * 6)
    plan = await shop.ask()
    words = f"approve {plan.extension['plan_id']}"

    for text in (f"yes, {words}", f"{words} now", words.upper(), "approve", "yes, go"):
        said = await shop.ask(text)
        assert said.extension["status"] == "planned", text
    assert shop.models.asked("executor") == []

    done = await shop.ask(words)
    assert done.extension["status"] == "completed"


@lanes
async def test_text_of_a_model_or_a_tool_never_approves(lane):
    shop = Shop(lane, f"{ALWAYS}\napproval_by_text = true", planner=[Say(PLAN)] * 4)
    plan = await shop.ask()
    words = f"approve {plan.extension['plan_id']}"

    for last in _not_of_the_user(lane[0], words):
        await shop.ask(messages=[{"role": "user", "content": "TASK"}, *last])

    assert shop.models.asked("executor") == []
    assert await shop.state(plan.extension["plan_id"]) == "planned"


def _not_of_the_user(caller: str, words: str) -> list[list[dict[str, Any]]]:
    said = {"role": "assistant", "content": words}
    if caller == "openai_chat":
        asked: dict[str, Any] = {"name": "look", "arguments": "{}"}
        call = {"id": "c", "type": "function", "function": asked}
        result = {"role": "tool", "tool_call_id": "c", "content": words}
        return [[said], [{"role": "assistant", "content": None, "tool_calls": [call]}, result]]
    if caller == "openai_responses":
        call = {"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"}
        return [[said], [call, {"type": "function_call_output", "call_id": "c", "output": words}]]
    call = {"type": "tool_use", "id": "c", "name": "look", "input": {}}
    output = {"type": "tool_result", "tool_use_id": "c", "content": words}
    return [
        [said],
        [{"role": "assistant", "content": [call]}, {"role": "user", "content": [output]}],
    ]


@lanes
async def test_text_does_not_approve_unless_the_policy_says_so(lane):
    shop = Shop(lane, ALWAYS, planner=[Say(PLAN), Say(OTHER)])
    plan = await shop.ask()

    await shop.ask(f"approve {plan.extension['plan_id']}")

    assert shop.models.asked("executor") == []
    assert await shop.state(plan.extension["plan_id"]) == "planned"


# --- the digest ------------------------------------------------------------------------------


@lanes
async def test_wrong_digest_is_412_and_the_plan_waits_on(lane):
    shop = Shop(lane, ALWAYS)
    plan = await shop.ask()
    plan_id = plan.extension["plan_id"]

    refused = await shop.ask(headers={"x-switchyard-plan": f"approve {plan_id} {'0' * 64}"})

    assert (refused.status, refused.code) == (412, "plan_changed")
    assert refused.headers["x-should-retry"] == "false"
    assert shop.models.asked("executor") == []
    assert (await shop.go_on("approve", plan)).extension["status"] == "completed"


NAMED = f'{ALWAYS}\nquery_tool = "look"'


@pytest.mark.parametrize(
    "change",
    [
        {"tools": ["look"]},
        {"options": f'{NAMED}\nmode = "replan"'},
        {"executor": "planner"},
        {"model": "another-model"},
        {"target": "another"},
        # Of two tools none is named: a step with a query has nothing to use.
        {"options": ALWAYS},
    ],
    ids=["tools", "mode", "executor", "model", "wire_format", "query_tool"],
)
@lanes
async def test_reload_that_changes_what_was_approved_is_412(lane, change):
    shop = Shop(lane, NAMED, tools=[LOOK, tool("peek")])
    plan = await shop.ask()
    if "target" in change:
        change = {"target": WIRE_FORMATS[WIRE_FORMATS.index(shop.target) - 1]}

    await shop.reload(**{"options": NAMED, **change})
    refused = await shop.go_on("approve", plan)

    assert (refused.status, refused.code) == (412, "plan_changed")
    assert shop.models.asked("executor") == []
    # It can still be given up.
    assert (await shop.go_on("reject", plan)).extension["status"] == "rejected"


@lanes
async def test_reload_that_changes_nothing_of_it_keeps_the_plan(lane):
    shop = Shop(lane, ALWAYS)
    plan = await shop.ask()

    await shop.reload('approval = "always"\nmax_steps = 7\nplan_capacity = 9')
    done = await shop.go_on("approve", plan)

    assert done.extension["status"] == "completed"


async def test_same_plan_has_the_same_digest_and_an_edited_one_another():
    shop = Shop(LANES[0], "allow_caller_plans = true\n" + ALWAYS, planner=[Say(PLAN)] * 2)
    edited = plan_of(("find tripods", "tripod"), "choose two", "write a card")

    first, second = await shop.ask(), await shop.ask()
    held = await shop.ask(switchyard={"plan": edited, "approval": "always"})

    digests = [each.extension["plan_digest"] for each in (first, second, held)]
    assert digests[0] == digests[1]
    assert digests[2] != digests[0]
    # The digest of one plan does not approve another.
    words = f"approve {held.extension['plan_id']} {digests[0]}"
    refused = await shop.ask(headers={"x-switchyard-plan": words})
    assert (refused.status, refused.code) == (412, "plan_changed")


# --- once ------------------------------------------------------------------------------------


@lanes
async def test_fifty_approvals_start_one_run(lane):
    shop = Shop(lane, ALWAYS)
    plan = await shop.ask()
    gate = asyncio.Event()

    async def wait(_outgoing: object) -> None:
        await gate.wait()

    shop.models.before = wait
    asking = [asyncio.create_task(shop.go_on("approve", plan)) for _ in range(50)]
    done, running = await asyncio.wait(asking, return_when="FIRST_COMPLETED", timeout=5)
    while len(running) > 1:
        more, running = await asyncio.wait(running, return_when="FIRST_COMPLETED", timeout=5)
        assert more
        done |= more
    gate.set()
    (winner,) = [await task for task in running]

    assert winner.extension["status"] == "completed"
    refused = Counter((each.result().status, each.result().code) for each in done)
    assert refused == {(422, "plan_not_pending"): 49}
    assert {each.result().error["status"] for each in done} == {"running"}
    assert len(shop.models.asked("executor")) == 3


@pytest.mark.parametrize("word", ["approve", "reject", "revise"])
@pytest.mark.parametrize("ended", ["completed", "failed", "rejected"])
@lanes
async def test_plan_that_ended_is_422_with_its_status(lane, ended, word):
    failing = [Say(refusal="I will not")] if ended == "failed" else []
    shop = Shop(lane, ALWAYS, executor=failing)
    plan = await shop.ask()
    await shop.go_on("reject" if ended == "rejected" else "approve", plan)
    before = len(shop.models.sent)

    refused = await shop.go_on(word, plan)

    assert (refused.status, refused.code) == (422, "plan_not_pending")
    assert refused.error["status"] == ended
    assert refused.headers["x-should-retry"] == "false"
    assert len(shop.models.sent) == before


@lanes
async def test_rejected_plan_runs_nothing_and_takes_no_tokens(lane):
    shop = Shop(lane, ALWAYS)
    plan = await shop.ask()

    rejected = await shop.go_on("reject", plan)

    assert rejected.extension["status"] == "rejected"
    assert rejected.headers["x-switchyard-phase"] == "rejected"
    assert "nothing of it ran" in rejected.text
    assert rejected.tokens == (0, 0)
    assert shop.models.asked("executor") == []


@lanes
async def test_each_answer_states_the_tokens_of_its_own_calls(lane):
    shop = Shop(lane, ALWAYS, planner=[Say(PLAN, tokens=(700, 70))])

    plan = await shop.ask()
    done = await shop.go_on("approve", plan)

    assert plan.tokens == (700, 70)
    assert done.tokens == (300, 30)
    usage = done.extension["usage"]
    assert usage["planner"]["input_tokens"] == 700
    assert usage["executor"]["input_tokens"] == 300


# --- whose, and how long ---------------------------------------------------------------------


@lanes
async def test_expired_plan_is_410(lane):
    shop = Shop(lane, f"{ALWAYS}\nplan_ttl_s = 60")
    plan = await shop.ask()
    shop.now += 59
    assert await shop.state(plan.extension["plan_id"]) == "planned"

    shop.now += 1
    refused = await shop.go_on("approve", plan)

    assert (refused.status, refused.code) == (410, "plan_expired")
    assert shop.models.asked("executor") == []


@lanes
async def test_unknown_plan_is_404(lane):
    shop = Shop(lane, ALWAYS)

    refused = await shop.ask(headers={"x-switchyard-plan": f"approve plan_no {'0' * 64}"})

    assert (refused.status, refused.code) == (404, "plan_unknown")
    assert shop.models.sent == []


@pytest.mark.parametrize("other", ["another", None])
@lanes
async def test_plan_of_another_session_is_404(lane, other):
    shop = Shop(lane, ALWAYS)
    plan = await shop.ask(headers={"x-session-id": "mine"})
    theirs = {} if other is None else {"x-session-id": other}

    for word in ("approve", "reject", "revise"):
        refused = await shop.go_on(word, plan, headers=theirs)
        assert (refused.status, refused.code) == (404, "plan_unknown")

    assert len(shop.models.sent) == 1
    done = await shop.go_on("approve", plan, headers={"x-session-id": "mine"})
    assert done.extension["status"] == "completed"


@lanes
async def test_plan_without_a_session_is_for_whoever_names_it(lane):
    shop = Shop(lane, ALWAYS)
    plan = await shop.ask()

    done = await shop.go_on("approve", plan, headers={"x-session-id": "somebody"})

    assert done.extension["status"] == "completed"


# --- by cost, and on demand ------------------------------------------------------------------


@pytest.mark.parametrize(("limit", "status"), [(0.0001, "planned"), (1000.0, "completed")])
@lanes
async def test_over_cost_waits_only_above_the_limit(lane, limit, status):
    options = f'approval = "over_cost"\napproval_over_usd = {limit}'
    shop = Shop(lane, options, prices=PRICES)

    answer = await shop.ask()

    assert answer.extension["status"] == status
    high = answer.extension["estimate"]["cost_usd"]["high"]
    assert (high > limit) == (status == "planned")
    assert len(shop.models.asked("executor")) == (0 if status == "planned" else 3)
    # What runs at once needs no place.
    assert await shop.store.count() == (1 if status == "planned" else 0)


@lanes
async def test_caller_can_want_to_approve(lane):
    shop = Shop(lane)

    plan = await shop.ask(switchyard={"approval": "always"})
    assert plan.extension["status"] == "planned"
    assert shop.models.asked("executor") == []

    done = await shop.go_on("approve", plan)
    assert done.extension["status"] == "completed"


# --- the request that approves ---------------------------------------------------------------


@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
async def test_streamed_approval_is_told_in_the_stream(wire_format):
    lane = next(lane for lane in LANES if lane[0] == wire_format)
    shop = Shop(lane, ALWAYS)
    plan = await shop.ask(stream=True)
    (plan_id,) = shop.store._records
    record = await shop.store.get(plan_id)
    assert plan.headers["x-switchyard-phase"] == "planned"

    words = f"approve {plan_id} {record.digest}"
    done = await shop.ask(headers={"x-switchyard-plan": words}, stream=True)

    assert '"status":"completed"' in done.body["stream"].replace(" ", "")
    assert await shop.state(plan_id) == "completed"


async def test_plan_keeps_the_words_and_pictures_of_its_request():
    shop = Shop(LANES[0], ALWAYS)
    picture = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}

    plan = await shop.ask(
        messages=[{"role": "user", "content": [{"type": "text", "text": "TASK"}, picture]}]
    )

    record = await shop.store.get(plan.extension["plan_id"])
    kept = json.loads(record.data)
    assert kept["text"] == "TASK"
    assert kept["images"] == [{"url": "https://example.com/a.png", "detail": ""}]
    assert kept["prompt_digest"]
