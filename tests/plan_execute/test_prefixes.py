"""Thinking that is bound to its prefix: nothing that was inserted ever moves."""

from __future__ import annotations

import json

import pytest

from switchyard_core.testing import FakeReply, FakeUpstream, Harness
from tests.support.policies import EXECUTOR, PLANNER, PLANNING_PROMPT, PLUGINS, plan_execute
from tests.support.prefixes import BOUND, TOO_LONG, Client, StrictClaude

PROMPT = "Carry the plan out."
OPTIONS = f"""
handoff_prompt = "{PROMPT}"

[[housekeeping]]
header = "x-purpose"
equals = "side"
"""
WINDOW = 'context_window = 10_000\non_overflow = "stay"'
#: Metadata are not part of the prefix, but of the size.
LARGE = {"metadata": {"user_id": "x" * 50_000}}
#: Planners and executors: who reads whose thinking is in the profiles of the models.
PAIRS = {
    "strangers": ("claude-opus-5-5", "claude-sonnet-5-5"),
    "small_executor": ("claude-sonnet-5-5", "claude-haiku-5-5"),
    "planner_reads": ("claude-fable-5-1", "claude-opus-5-5"),
    "executor_reads": ("claude-opus-5-5", "claude-fable-5-1"),
    "one_model": ("claude-opus-5-5", "claude-opus-5-5"),
}
UNBOUND = ("claude-opus-4-8", "claude-opus-4-7")


def client(
    pair: tuple[str, str] = PAIRS["strangers"], *, profile: str = "", other_origin: bool = False
) -> Client:
    provider = StrictClaude()
    text = plan_execute(
        "anthropic_messages",
        options=OPTIONS,
        planner=profile,
        executor=f"{WINDOW}\n{profile}",
        other_origin=other_origin,
    )
    text = text.replace(PLANNER, pair[0]).replace(EXECUTOR, pair[1])
    upstream = FakeUpstream(before=provider)
    return Client(Harness(text, plugins=PLUGINS, upstream=upstream), provider)


def said(body) -> tuple[bool, int]:
    """Return whether a body has the planning instruction, and how many handoff prompts."""
    text = json.dumps(body)
    return PLANNING_PROMPT in text, text.count(PROMPT)


@pytest.fixture(params=PAIRS)
def pair(request):
    return PAIRS[request.param]


async def plan(c: Client) -> None:
    """Read, and make the first edit."""
    await c.user("fix the bug", tool="read")
    await c.turn("read")
    await c.turn("edit")


async def test_session_of_thirty_turns_moves_no_prefix(pair):
    c, targets = client(pair), []

    async def turn(*args, **more):
        served = await c.turn(*args, **more)
        targets.append(served.target)
        assert served.status == 200, served.answer
        return served

    await c.user("fix the bug", tool="read")
    for _ in range(4):
        await turn("read")
    await turn("edit")
    for _ in range(5):
        await turn("read")
    first = await turn("read", **LARGE)
    assert first.reason == "window_stay"
    for _ in range(3):
        await turn("edit")
    await c.harness.ask(c.request())  # its answer is lost, and the client sends it again
    await turn("read", **LARGE)
    await turn("read", **LARGE)
    c.provider.replies.append(FakeReply(status=400, body=BOUND))
    assert (await turn("read")).warnings == ("reasoning_dropped",)
    for _ in range(3):
        await turn("read")
    c.provider.replies.append(TOO_LONG)
    assert (await turn("read")).warnings == ("overflow_retried",)
    assert (await turn("read")).reason == "window_stay"
    summary = await c.aside("Summarise.", whole=True)
    assert (summary.target, summary.reason) == ("planner", "housekeeping")
    c.history[:] = [{"role": "user", "content": "Summary: a.py was edited."}]
    await turn("read")
    await turn("edit")
    await turn("read")
    await c.aside("A title, please.", whole=False)
    for _ in range(4):
        await turn("edit")

    # Of some models it is not known what they read: the provider says so, once in a session.
    assert len(c.provider.refused) == (first.warnings == ("reasoning_dropped",))
    assert targets == (
        ["planner"] * 5
        + ["executor"] * 5
        + ["planner"]
        + ["executor"] * 3
        + ["planner"] * 2
        + ["executor"] * 4
        + ["planner"] * 2
        + ["executor"] * 7
    )
    # After the compaction the edits are the executor's own: none of them is the handoff.
    assert [said(body)[1] for name, body in c.provider.bodies if name == "executor"][-7:] == [0] * 7


async def test_provider_refuses_where_insertions_move():
    c = client(profile="profile = false")
    await plan(c)
    await c.turn("read")

    served = await c.turn("read")

    assert served.status == 400
    assert "bound to a different conversation" in c.provider.refused[0]


async def test_handoff_prompt_stays_behind_the_first_edits_result(pair):
    c = client(pair)
    await plan(c)
    for _ in range(3):
        await c.turn("edit")

    executing = [body for name, body in c.provider.bodies if name == "executor"]
    assert [said(body) for body in executing] == [(False, 1)] * 3
    places = [
        index
        for body in executing
        for index, message in enumerate(body["messages"])
        if PROMPT in json.dumps(message)
    ]
    assert places == [6, 6, 6]


async def test_prompt_that_waited_for_a_result_has_its_place_too():
    c = client()
    await plan(c)
    answered = c.history.pop()

    c.provider.replies.append(FakeReply())  # the API takes no call without a result
    await c.harness.ask(c.request())
    c.history.append(answered)
    await c.turn("read")
    await c.turn("read")

    counts = [said(body)[1] for name, body in c.provider.bodies if name == "executor"]
    assert (counts, c.provider.refused) == ([0, 1, 1], [])


@pytest.mark.parametrize("bound", [True, False])
async def test_side_call_of_the_planner_has_the_instruction_where_thinking_needs_it(bound):
    c = client(PAIRS["strangers"] if bound else UNBOUND)
    await c.user("fix the bug", tool="read")

    compaction = await c.aside("Summarise.", whole=True)
    title = await c.aside("A title, please.", whole=False)

    assert (said(compaction.tree)[0], said(title.tree)[0]) == (bound, False)
    assert compaction.reason == title.reason == "housekeeping"


async def test_side_call_of_the_executor_keeps_the_handoff_prompt_where_thinking_needs_it():
    c = client()
    await plan(c)
    before = await c.aside("Summarise.", whole=True)
    await c.turn("read")

    after = await c.aside("Summarise.", whole=True)

    assert [said(served.tree) for served in (before, after)] == [(False, 0), (False, 1)]
    assert c.provider.refused == []


async def test_thinking_is_dropped_where_the_executor_reads_it_and_kept_elsewhere(pair):
    c = client(pair)
    await plan(c)
    await c.turn("read")
    await c.turn("read")

    sent = json.dumps(c.provider.bodies[-1][1])
    kept = [seal in sent for _, seal in c.provider.seals[:4]]
    reads = pair in (PAIRS["executor_reads"], PAIRS["one_model"])
    assert kept == [not reads] * 3 + [True]  # the last one is the executor's own


async def test_planner_gets_the_clients_own_bytes_and_its_instruction_again():
    c = client(("claude-sonnet-5-5", "claude-opus-5-5"))  # which it does not read
    await plan(c)
    await c.turn("read")

    served = await c.turn("read", **LARGE)

    sent = c.provider.bodies[-1][1]
    own = json.loads(c.request(c.history[:-2], **LARGE).body)
    assert served.target == "planner"
    assert sent["system"] == [{"type": "text", "text": PLANNING_PROMPT}, *own["system"]]
    assert {**sent, "system": 0, "model": 0} == {**own, "system": 0, "model": 0}


async def test_refused_thinking_is_dropped_once_and_stays_dropped():
    c = client()
    await plan(c)
    await c.turn("read")
    c.system = "other house rules"

    refused = await c.turn("read")
    later = [await c.turn("read") for _ in range(2)]

    assert refused.warnings == ("reasoning_dropped",)
    assert (refused.status, len(refused.sent)) == (200, 2)
    assert [(s.status, s.warnings, len(s.sent)) for s in later] == [(200, (), 1)] * 2


async def test_planner_that_refuses_thinking_gets_the_history_without():
    c = client()
    await c.user("look", tool="read")
    c.system = "other house rules"

    served = await c.turn("read")

    assert (served.status, served.target, served.warnings) == (
        200, "planner", ("reasoning_dropped",),
    )  # fmt: skip
    assert said(served.tree)[0]


async def test_foreign_executor_and_planner_never_see_each_others_thinking():
    c = client(other_origin=True)
    await plan(c)
    await c.turn("read")
    await c.turn("read", **LARGE)
    await c.turn("read")

    assert [target for target, _ in c.provider.seals] == (
        ["planner"] * 3 + ["executor", "planner", "executor"]
    )
    for target, body in c.provider.bodies:
        sent = json.dumps(body)
        assert {maker for maker, seal in c.provider.seals if seal in sent} <= {target}
    assert c.provider.refused == []
