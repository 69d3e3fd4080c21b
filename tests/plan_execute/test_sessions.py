"""Sessions: capacity, final requests, housekeeping, retries, continuation by id."""

from __future__ import annotations

import asyncio
import json

import pytest

from switchyard_core import Request
from switchyard_core.testing import FakeReply
from tests.support.cases import each_of
from tests.support.policies import PLANNING_PROMPT, ROUTE

EDIT = {"path": "src/app.py"}
PROMPT = "Carry the plan out."
SMALL = 'latch_capacity = 1\nhandoff_prompt = "Carry the plan out."'
SUBAGENT = {"x-switchyard-is-subagent": "true", "x-switchyard-agent-id": "a"}


@pytest.fixture
def edited(story):
    return story.edits("edit_file", **EDIT)


# --- capacity ----------------------------------------------------------------------------------


async def test_at_capacity_a_new_handoff_is_refused_before_any_call(world, story, edited):
    w = world(options=SMALL)
    await w.ask(edited.request(session="first"))

    refused = await w.ask(edited.request(session="second"))
    known = await w.ask(edited.reads("read_file", path="a").request(session="first"))
    planning = await w.ask(story.request(session="third"))

    assert (refused.status, refused.code, refused.sent) == (400, "latch_capacity", ())
    assert [known.phase, planning.phase] == ["executing", "planning"]
    assert await w.latched() == 1


async def test_fifty_handoffs_for_one_slot_admit_one(world, edited):
    w = world(options=SMALL)

    served = await asyncio.gather(*(w.ask(edited.request(session=str(n))) for n in range(50)))

    assert sorted(s.status for s in served) == [200] + [400] * 49
    assert len(w.upstream.requests) == 1
    assert await w.latched() == 1


async def test_capacity_error_says_what_to_do_and_is_not_retried(world, edited):
    w = world(options=SMALL)
    await w.ask(edited.request(session="first"))

    refused = await w.ask(edited.request(session="second"))

    assert "all 1 session slots" in refused.message
    assert "nothing was sent" in refused.message
    assert "x-switchyard-session-final: true" in refused.message
    assert dict(refused.headers)["x-should-retry"] == "false"


async def test_retry_after_a_slot_is_freed_succeeds(world, edited):
    w = world(options=SMALL)
    await w.ask(edited.request(session="first"))
    await w.ask(edited.request(session="second"))
    await w.ask(edited.request(session="first", final=True))

    retried = await w.ask(edited.request(session="second"))

    assert (retried.phase, retried.reason) == ("executing", "mutation_in_history")
    assert PROMPT.encode() in retried.outgoing.body


# --- final requests ----------------------------------------------------------------------------


async def test_final_request_uses_the_latch_and_frees_the_slot(world, story, edited):
    w = world()
    await w.ask(edited.request(session="s"))

    final = await w.ask(story.request(session="s", final=True))

    assert (final.phase, final.reason) == ("executing", "latched")
    assert await w.latched() == 0


@pytest.mark.parametrize("name", ["x-switchyard-session-final", "x-dynamo-session-final"])
@each_of(
    ("word", "frees"),
    [("true", True), ("1", True), (" YES ", True), ("On", True), ("false", False), ("", False)],
)
async def test_final_header_words(world, story, edited, name, word, frees):
    w = world()
    await w.ask(edited.request(session="s"))

    await w.ask(story.request(session="s", headers={name: word}))

    assert await w.latched() == (0 if frees else 1)


@pytest.mark.parametrize("door", ["library"], indirect=True)
async def test_final_as_a_library_argument(world, story, edited, wire_format):
    w = world()
    await w.ask(edited.request(session="s"))
    headers = {"x-switchyard-session-id": "s"}

    await w.ask(
        Request(wire_format=wire_format, body=story.body(), headers=headers, session_final=True)
    )

    assert await w.latched() == 0


async def test_failed_final_request_keeps_its_slot_for_the_retry(world, story, edited):
    w = world(replies=[FakeReply(), FakeReply(status=500, body={"error": {"message": "x"}})])
    await w.ask(edited.request(session="s"))

    failed = await w.ask(story.request(session="s", final=True))
    held = await w.latched()
    retried = await w.ask(story.request(session="s", final=True))

    assert (failed.status, held) == (500, 1)
    assert (retried.phase, await w.latched()) == ("executing", 0)


async def test_final_handoff_needs_no_slot_and_works_at_capacity(world, edited):
    w = world(options=SMALL)
    await w.ask(edited.request(session="first"))

    served = await w.ask(edited.request(session="second", final=True))

    assert (served.phase, served.reason) == ("executing", "final_handoff")
    assert PROMPT.encode() in served.outgoing.body
    assert await w.latched() == 1


async def test_final_request_of_a_root_frees_its_subagents(world, story, edited):
    w = world()
    await w.ask(edited.request(session="s", headers=SUBAGENT))
    await w.ask(edited.request(session="s"))

    await w.ask(story.request(session="s", final=True))

    assert await w.latched() == 0


async def test_final_on_a_planning_request_changes_nothing_of_it(world, story, edited):
    w = world()
    await w.ask(edited.request(session="other"))

    plain = await w.ask(story.request(session="s"))
    final = await w.ask(story.request(session="s", final=True))

    assert (final.phase, final.reason) == ("planning", "no_mutation")
    assert final.outgoing.body == plain.outgoing.body
    assert await w.latched() == 1


# --- housekeeping and retries ------------------------------------------------------------------


async def test_planning_and_nameless_requests_use_no_slot(world, story, edited):
    w = world()

    await w.ask(story.request(session="s"))
    await w.ask(edited.request())

    assert await w.latched() == 0


def as_side_call(wire_format, body):
    """Return the headers and the body of a side call as a client of that format marks it."""
    bare = {key: value for key, value in body.items() if key != "tools"}
    if wire_format == "openai_responses":
        metadata = {"session_id": "s", "thread_id": "s", "request_kind": "compaction"}
        return {"x-codex-turn-metadata": json.dumps(metadata)}, bare
    if wire_format == "anthropic_messages":
        config = {"output_config": {"format": {"type": "json_schema"}}}
        return {"x-claude-code-session-id": "s"}, bare | config
    return {"user-agent": "opencode/1.18.33", "x-session-id": "s"}, bare


@pytest.mark.parametrize("latched", [False, True])
@pytest.mark.parametrize("told", ["plain", "edited"])
async def test_side_calls_go_where_the_session_is(world, story, edited, wire_format, latched, told):
    w = world(options=f'handoff_prompt = "{PROMPT}"')
    headers, body = as_side_call(wire_format, (edited if told == "edited" else story).build())
    if latched:
        await w.ask(edited.request(session="s"))

    served = await w.ask(Request(wire_format=wire_format, body=body, headers=headers))

    expected = "executor" if latched or told == "edited" else "planner"
    assert (served.target, served.reason) == (expected, "housekeeping")
    assert served.tree == body | {"model": served.tree["model"]}
    assert await w.latched() == (1 if latched else 0)


async def test_marks_need_all_their_parts(world, story, wire_format):
    body = {key: value for key, value in story.build().items() if key != "tools"}

    served = await world().ask(
        Request(
            wire_format=wire_format,
            body=body | {"output_config": {"format": {}}},
            headers={"session-id": "s"},
        )
    )

    assert served.reason == "no_mutation"
    assert PLANNING_PROMPT.encode() in served.outgoing.body


async def test_policy_may_add_a_condition(world, story):
    top = '[[housekeeping]]\nheader = "x-purpose"\nequals = "title"'
    w = world(options=top)

    marked = await w.ask(story.request(headers={"x-purpose": "title"}))
    plain = await w.ask(story.request(headers={"x-purpose": "work"}))

    assert [marked.reason, plain.reason] == ["housekeeping", "no_mutation"]


async def test_retry_gets_the_same_body(world, story, edited):
    w = world(options=f'handoff_prompt = "{PROMPT}"')

    for told in (story, edited):
        first = await w.ask(told.request(session="s"))
        again = await w.ask(told.request(session="s"))

        assert again.outgoing.body == first.outgoing.body
    assert PROMPT.encode() in first.outgoing.body


async def test_not_streamed_repeat_of_a_broken_stream_gets_the_prompt_again(world, edited):
    w = world(options=f'handoff_prompt = "{PROMPT}"')

    await w.ask(edited.request(session="s", stream=True))
    repeated = await w.ask(edited.request(session="s"))

    assert (repeated.phase, PROMPT.encode() in repeated.outgoing.body) == ("executing", True)


# --- continuation by id ------------------------------------------------------------------------

responses_only = pytest.mark.parametrize("wire_format", ["openai_responses"], indirect=True)
CONTINUED = {
    "model": ROUTE,
    "previous_response_id": "resp_1",
    "input": [{"type": "function_call_output", "call_id": "c", "output": "ok"}],
}


@responses_only
@pytest.mark.parametrize("key", ["previous_response_id", "conversation"])
async def test_missing_history_is_planned_with_a_warning(world, wire_format, key):
    body = {"model": ROUTE, key: "x", "input": "go on"}

    served = await world().ask(Request(wire_format=wire_format, body=body))

    assert (served.phase, served.reason) == ("planning", "history_missing")
    assert served.warnings == ("history_missing",)
    assert served.tree[key] == "x"


@responses_only
@pytest.mark.parametrize("latched", [False, True])
async def test_missing_history_is_rejected_when_the_policy_says_so(
    world, edited, wire_format, latched
):
    w = world(options='on_missing_history = "reject"')
    if latched:
        await w.ask(edited.request(session="s"))
    headers = {"x-switchyard-session-id": "s"}

    served = await w.ask(Request(wire_format=wire_format, body=CONTINUED, headers=headers))

    assert (served.status, served.code, served.sent) == (400, "history_required", ())
    assert "`input`" in served.message
    assert "omit `previous_response_id` and `conversation`" in served.message


@responses_only
async def test_latched_session_stays_with_the_warning(world, edited, wire_format):
    w = world()
    await w.ask(edited.request(session="s"))
    headers = {"x-switchyard-session-id": "s"}

    served = await w.ask(Request(wire_format=wire_format, body=CONTINUED, headers=headers))

    assert (served.phase, served.reason) == ("executing", "latched")
    assert served.warnings == ("history_missing",)


# --- sub-agents on a route of their own --------------------------------------------------

CHEAP = """
subagents = "cheap"
[routes.cheap]
id = "cheap"
type = "plan_execute"
capable_target = "executor"
efficient_target = "planner"
"""


async def test_subagents_are_served_by_the_route_that_the_policy_names(world, story, edited):
    w = world(options=CHEAP)

    root = await w.ask(story.request(session="s"))
    agent = await w.ask(story.request(session="s", headers=SUBAGENT))
    upkeep = {"session-id": "s", "thread-id": "t", "x-openai-subagent": "compact"}
    compaction = await w.ask(story.request(headers=upkeep))

    assert [served.target for served in (root, agent, compaction)] == [
        "planner",
        "executor",
        "planner",
    ]


async def test_final_request_of_a_root_frees_subagents_of_another_route(world, story, edited):
    w = world(options=CHEAP)
    cheap = w.engine.runtimes["cheap"].store
    await w.ask(edited.request(session="s", headers=SUBAGENT))
    held = await cheap.count()

    await w.ask(story.request(session="s", final=True))

    assert (held, await cheap.count(), await w.latched()) == (1, 0, 0)


# --- rare cases -------------------------------------------------------------------------------

STREAMS = {
    "openai_chat": (
        b'data: {"choices":[]}\n\n',
        b'data: {"error":{"message":"x"}}\n\n',
        b"data: [DONE]\n\n",
    ),
    "openai_responses": (
        b'event: response.created\ndata: {"type":"response.created"}\n\n',
        b'event: error\ndata: {"type":"error"}\n\n',
        b'event: response.completed\ndata: {"type":"response.completed"}\n\n',
    ),
    "anthropic_messages": (
        b'event: message_start\ndata: {"type":"message_start"}\n\n',
        b'event: error\ndata: {"type":"error"}\n\n',
        b'event: message_stop\ndata: {"type":"message_stop"}\n\n',
    ),
}
SSE = (("content-type", "text/event-stream; charset=utf-8"),)


@pytest.mark.parametrize(("ending", "held"), [("error", 1), ("nothing", 1), ("end", 0)])
async def test_final_stream_frees_the_slot_only_when_it_ends_as_it_should(
    world, story, edited, wire_format, ending, held
):
    start, error, end = STREAMS[wire_format]
    # The mark is cut by the border between two chunks.
    pieces = {
        "error": (start, error[:9], error[9:]),
        "nothing": (start,),
        "end": (start, end[:9], end[9:]),
    }
    w = world(replies=[FakeReply(), FakeReply(chunks=pieces[ending], headers=SSE)])
    await w.ask(edited.request(session="s"))

    await w.ask(story.request(session="s", final=True, stream=True))

    assert await w.latched() == held


async def test_final_side_call_of_a_root_frees_its_subagents(world, story, edited, wire_format):
    w = world()
    await w.ask(edited.request(session="s", headers=SUBAGENT))
    headers, body = as_side_call(wire_format, story.build())
    headers |= {"x-switchyard-session-final": "true"}

    await w.ask(Request(wire_format=wire_format, body=body, headers=headers))

    assert await w.latched() == 0
