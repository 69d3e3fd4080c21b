"""The handoff: its prompt, its conversions, and what handoff.md says of one wire format."""

from __future__ import annotations

import pytest

from switchyard_core import Request, UpstreamError
from switchyard_core.testing import Call, FakeReply, call, conversation
from tests.support.policies import EXECUTOR, PLANNER, PLANNING_PROMPT

EDIT = {"path": "src/app.py"}
PROMPT = "Carry the plan out."
WITH_PROMPT = f'handoff_prompt = "{PROMPT}"'


def has_prompt(served) -> bool:
    return PROMPT.encode() in served.outgoing.body


@pytest.fixture
def edited(story):
    return story.edits("edit_file", **EDIT)


# --- where the handoff prompt is ---------------------------------------------------------------


async def test_with_a_session_the_prompt_is_in_the_request_that_latches(world, story, edited):
    w = world(options=WITH_PROMPT)

    planning = await w.ask(story.request(session="s"))
    handoff = await w.ask(edited.request(session="s"))
    later = await w.ask(edited.reads("read_file", path="a").request(session="s"))

    assert [has_prompt(s) for s in (planning, handoff, later)] == [False, True, False]


async def test_prompt_without_a_session_is_where_the_last_turn_holds_the_first_edit(
    world, story, edited
):
    w = world(options=WITH_PROMPT)
    turns = [
        story,
        edited,
        edited.reads("read_file", path="a"),
        edited.edits("edit_file", **EDIT),
        story.reads("read_file", path="a").parallel(
            call("read_file", path="b"), call("edit_file", **EDIT)
        ),
    ]

    served = [await w.ask(told.request()) for told in turns]

    assert [has_prompt(s) for s in served] == [False, True, False, False, True]


@pytest.mark.parametrize("session", ["s", None], ids=["session", "nameless"])
async def test_open_call_puts_the_prompt_off_to_the_next_request(world, story, edited, session):
    w = world(options=WITH_PROMPT)

    transition = await w.ask(
        story.edits("edit_file", answered=False, **EDIT).request(session=session)
    )
    answered = await w.ask(edited.request(session=session))
    retried = await w.ask(edited.request(session=session))
    later = await w.ask(edited.reads("read_file", path="a").request(session=session))

    assert transition.phase == "executing"
    assert [has_prompt(s) for s in (transition, answered, retried, later)] == [
        False,
        True,
        True,
        False,
    ]


# --- conversions -------------------------------------------------------------------------------


async def test_conversions_hold_for_the_whole_execution_phase(world, story):
    w = world(options="planner_reasoning_as_text = true", other_origin=True)
    handoff = story.reasoning("plan thoughts", encrypted="SECRET-1").edits("edit_file", **EDIT)
    later = handoff.reasoning("own thoughts", encrypted="SECRET-2").reads("read_file", path="a")

    for told in (handoff, later, later.edits("edit_file", **EDIT)):
        served = await w.ask(told.request(session="s"))

        assert b"SECRET-1" not in served.outgoing.body
        assert b"plan thoughts" in served.outgoing.body
    assert b"SECRET-2" in served.outgoing.body


async def test_conversions_hold_without_a_session_too(world, story):
    w = world(other_origin=True)
    told = story.reasoning("t", encrypted="SECRET-1").edits("edit_file", **EDIT)
    told = told.reasoning("u", encrypted="SECRET-2").reads("read_file", path="a")

    served = await w.ask(told.request())

    assert b"SECRET-1" not in served.outgoing.body
    assert b"SECRET-2" in served.outgoing.body


# --- where prompts are -------------------------------------------------------------------------


@pytest.mark.parametrize("position", ["prepend", "append"])
async def test_planning_prompt_stands_before_or_after_the_callers(
    world, story, wire_format, position
):
    served = await world(options=f'planning_prompt_position = "{position}"').ask(story.request())

    first, second = PLANNING_PROMPT, "house rules"
    if position == "append":
        first, second = second, first
    if wire_format == "openai_chat":
        assert [m["content"] for m in served.tree["messages"]] == [first, second, "fix the bug"]
    elif wire_format == "anthropic_messages":
        assert str(served.tree["system"]).index(first) < str(served.tree["system"]).index(second)
    else:
        assert served.outgoing.body.index(first.encode()) < served.outgoing.body.index(
            second.encode()
        )


@pytest.mark.parametrize("wire_format", ["anthropic_messages"], indirect=True)
async def test_our_block_has_no_cache_mark_and_theirs_keep_theirs(world, wire_format):
    told = conversation(wire_format).system("house rules", cached=True).user("fix", cached=True)

    served = await world().ask(told.request())

    assert served.tree["system"][0] == {"type": "text", "text": PLANNING_PROMPT}
    assert served.tree["system"][1:] == told.build()["system"]
    assert served.outgoing.body.count(b"cache_control") == told.body().count(b"cache_control")


async def test_handoff_prompt_is_the_last_user_text(world, edited, wire_format):
    served = await world(options=WITH_PROMPT).ask(edited.request())

    items = served.tree["input" if wire_format == "openai_responses" else "messages"]
    last = items[-1]
    assert last["role"] == "user"
    if wire_format == "anthropic_messages":
        assert [block["type"] for block in last["content"]] == ["tool_result", "text"]
        assert last["content"][-1]["text"] == PROMPT
    else:
        assert last["content"] == PROMPT


# --- the rest of the body ----------------------------------------------------------------------


async def test_nothing_else_changes_but_the_model(world, story, edited):
    w = world()

    planning = await w.ask(story.request(session="s"))
    executing = await w.ask(edited.request(session="s"))
    latched = await w.ask(edited.request(session="s"))

    assert planning.tree["model"] == PLANNER
    for served, told in ((executing, edited), (latched, edited)):
        assert served.outgoing.body == told.body(model=EXECUTOR)


# --- origins and opaque reasoning ---------------------------------------------------------


@pytest.mark.parametrize(
    ("setting", "other", "kept"),
    [
        ("auto", False, True),
        ("auto", True, False),
        ("keep", True, True),
        ("drop", False, False),
    ],
)
async def test_opaque_reasoning_stays_within_an_origin_only(world, story, setting, other, kept):
    w = world(options=f'opaque_reasoning = "{setting}"', other_origin=other)
    told = story.reasoning("t", encrypted="SECRET").edits("edit_file", **EDIT)

    for session in ("s", "s", None):
        served = await w.ask(told.request(session=session))

        assert (b"SECRET" in served.outgoing.body) is kept


async def test_target_may_switch_a_rewrite_off(world, story):
    w = world(executor="rewrites = { drop_opaque_reasoning = false }", other_origin=True)
    told = story.reasoning("t", encrypted="SECRET").edits("edit_file", **EDIT)

    served = await w.ask(told.request())

    assert b"SECRET" in served.outgoing.body


async def test_compacted_history_has_nothing_of_the_planner_to_convert(world, story, edited):
    w = world(other_origin=True)
    await w.ask(edited.request(session="s"))
    told = story.reasoning("own", encrypted="EXECUTORS").reads("read_file", path="a")

    served = await w.ask(told.request(session="s"))

    assert (served.phase, b"EXECUTORS" in served.outgoing.body) == ("executing", True)


# --- the repair retry ---------------------------------------------------------------------

REFUSAL = FakeReply(
    status=400, body={"error": {"message": "Invalid `signature` in `thinking` block"}}
)


async def test_repair_drops_refused_reasoning_once_and_remembers(world, story):
    w = world(replies=[REFUSAL])
    told = story.reasoning("t", encrypted="SECRET").edits("edit_file", **EDIT)

    repaired = await w.ask(told.request(session="s"))
    later = await w.ask(told.reads("read_file", path="a").request(session="s"))

    assert repaired.status == 200
    assert [b"SECRET" in outgoing.body for outgoing in repaired.sent] == [True, False]
    assert repaired.warnings == ("reasoning_dropped",)
    assert [b"SECRET" in outgoing.body for outgoing in later.sent] == [False]


async def test_repair_keeps_the_handoff_prompt(world, story):
    w = world(replies=[REFUSAL], options=WITH_PROMPT)
    told = story.reasoning("t", encrypted="SECRET").edits("edit_file", **EDIT)

    repaired = await w.ask(told.request(session="s"))

    assert [PROMPT.encode() in outgoing.body for outgoing in repaired.sent] == [True, True]


async def test_repair_is_tried_once_then_the_providers_error_goes_on(world, story):
    w = world(replies=[REFUSAL, REFUSAL, REFUSAL])
    told = story.reasoning("t", encrypted="SECRET").edits("edit_file", **EDIT)

    served = await w.ask(told.request(session="s"))

    assert (served.status, len(served.sent)) == (400, 2)


@pytest.mark.parametrize(
    "reply",
    [
        FakeReply(status=400, body={"error": {"message": "max_tokens is too large"}}),
        FakeReply(status=500, body={"error": {"message": "signature service down"}}),
    ],
    ids=["other_400", "server_error"],
)
async def test_other_errors_are_passed_on_as_they_are(world, story, reply):
    w = world(replies=[reply])

    served = await w.ask(story.reasoning("t", encrypted="S").edits("edit_file", **EDIT).request())

    assert (served.status, len(served.sent)) == (reply.status, 1)


async def test_planner_errors_are_never_repaired(world, story):
    served = await world(replies=[REFUSAL]).ask(story.request())

    assert (served.status, len(served.sent)) == (400, 1)


@pytest.mark.parametrize("door", ["library"], indirect=True)
async def test_unreachable_provider_is_an_error_and_frees_nothing(world, story, edited):
    w = world(replies=[FakeReply(), UpstreamError("connection refused")])
    await w.ask(edited.request(session="s"))

    with pytest.raises(UpstreamError):
        await w.ask(story.request(session="s", final=True))

    assert await w.latched() == 1


# --- the window guard ---------------------------------------------------------------------

TINY = "context_window = 10\n"


async def test_window_send_is_the_default_and_warns(world, edited):
    served = await world(executor=TINY).ask(edited.request(session="s"))

    assert (served.phase, served.warnings) == ("executing", ("context_window",))


async def test_window_stay_goes_on_planning_and_does_not_latch(world, edited):
    w = world(executor=TINY + 'on_overflow = "stay"')

    served = await w.ask(edited.request(session="s"))

    assert (served.target, served.phase, served.reason) == ("planner", "planning", "window_stay")
    assert PLANNING_PROMPT.encode() in served.outgoing.body
    assert await w.latched() == 0


async def test_window_reject_refuses_before_latching(world, edited):
    w = world(executor=TINY + 'on_overflow = "reject"')

    served = await w.ask(edited.request(session="s"))

    assert (served.status, served.code, served.sent) == (400, "context_length_exceeded", ())
    assert await w.latched() == 0


# --- targets ------------------------------------------------------------------------------


async def test_target_settings_reach_the_body(world, edited):
    w = world(
        executor='system_prompt = "Be brief."\nreasoning_effort = "low"\nextra_body = { seed = 7 }'
    )

    served = await w.ask(edited.request())

    assert b"Be brief." in served.outgoing.body
    assert b'"low"' in served.outgoing.body
    assert served.tree["seed"] == 7


async def test_unknown_model_lists_the_routes(world, story):
    served = await world().ask(story.request(model="switchyard/plan-exceute"))

    assert (served.status, served.code) == (404, "model_not_found")
    assert "did you mean `switchyard/plan-execute`?" in served.message


@pytest.mark.parametrize("endpoint", ["count_tokens"])
@pytest.mark.parametrize("wire_format", ["anthropic_messages"], indirect=True)
async def test_token_count_goes_to_the_sessions_target_and_latches_nothing(
    world, story, edited, endpoint, wire_format
):
    w = world()
    headers = {"x-switchyard-session-id": "s"}

    def count(told):
        return Request(
            wire_format=wire_format, body=told.body(), headers=headers, endpoint=endpoint
        )

    before = await w.ask(count(story))
    edit = await w.ask(count(edited))

    assert [before.target, edit.target] == ["planner", "executor"]
    assert before.sent[0].path == "/v1/messages/count_tokens"
    assert PLANNING_PROMPT.encode() not in before.outgoing.body
    assert await w.latched() == 0


async def test_call_shapes_in_parallel_are_one_turn(world, story):
    told = story.parallel(
        Call(name="read_file", arguments={"path": "a"}), Call(name="edit_file", arguments=EDIT)
    )

    served = await world(options=WITH_PROMPT).ask(told.request())

    assert has_prompt(served)


# --- rare cases -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "reply",
    [
        FakeReply(
            status=400, body={"error": {"message": "Unsupported parameter: reasoning.effort"}}
        ),
        FakeReply(status=429, body={"error": {"message": "too many reasoning tokens"}}),
    ],
    ids=["parameter", "rate_limit"],
)
async def test_repair_only_when_reasoning_itself_is_refused(world, story, reply):
    w = world(replies=[reply])
    told = story.reasoning("t", encrypted="SECRET").edits("edit_file", **EDIT)

    served = await w.ask(told.request(session="s"))

    assert (len(served.sent), served.warnings) == (1, ())


async def test_repair_needs_something_to_drop(world, edited):
    w = world(replies=[REFUSAL])

    served = await w.ask(edited.request(session="s"))

    assert (served.status, len(served.sent), served.warnings) == (400, 1, ())


@pytest.mark.parametrize("wire_format", ["openai_responses"], indirect=True)
async def test_retry_of_the_handoff_drops_the_planners_continuation_again(world, edited):
    w = world(other_origin=True)

    first = await w.ask(edited.request(session="s", previous_response_id="resp_1"))
    again = await w.ask(edited.request(session="s", previous_response_id="resp_1"))
    own = await w.ask(
        edited.reads("read_file", path="a").request(session="s", previous_response_id="resp_2")
    )

    assert first.outgoing.body == again.outgoing.body
    assert b"resp_1" not in first.outgoing.body
    assert b"resp_2" in own.outgoing.body


@pytest.mark.parametrize("wire_format", ["openai_responses"], indirect=True)
async def test_repair_drops_the_planners_continuation_too(world, story):
    refusal = FakeReply(status=400, body={"error": {"code": "invalid_encrypted_content"}})
    w = world(options='opaque_reasoning = "keep"', other_origin=True, replies=[refusal])
    told = story.reasoning("t", encrypted="SECRET").edits("edit_file", **EDIT)

    served = await w.ask(told.request(session="s", previous_response_id="resp_1"))

    assert [b"resp_1" in outgoing.body for outgoing in served.sent] == [False, False]


async def test_interrupted_edit_gets_the_handoff_prompt_at_once(world, story):
    told = story.edits("edit_file", answered=False, **EDIT).user("stop, do that instead")

    for session in ("s", None):
        served = await world(options=WITH_PROMPT).ask(told.request(session=session))

        assert has_prompt(served)


async def test_window_stay_holds_for_side_calls_too(world, edited, wire_format):
    w = world(executor=TINY + 'on_overflow = "stay"')
    top = {"x-codex-turn-metadata": '{"request_kind": "compaction"}'}

    served = await w.ask(edited.request(headers=top))

    assert (served.target, served.reason) == ("planner", "housekeeping")


@pytest.mark.parametrize("wire_format", ["anthropic_messages"], indirect=True)
async def test_token_count_is_never_refused_for_its_size_and_is_converted(
    world, story, wire_format
):
    w = world(executor=TINY + 'on_overflow = "reject"', other_origin=True)
    told = story.reasoning("t", encrypted="SECRET").edits("edit_file", **EDIT)

    served = await w.ask(
        Request(wire_format=wire_format, body=told.body(), endpoint="count_tokens")
    )

    assert (served.status, b"SECRET" in served.outgoing.body) == (200, False)


async def test_text_within_an_origin_changes_nothing_that_text_does_not_need(
    world, story, wire_format
):
    stray = {
        "openai_chat": {"role": "tool", "tool_call_id": "gone", "content": "x"},
        "openai_responses": {"type": "function_call_output", "call_id": "gone", "output": "x"},
        "anthropic_messages": {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "gone", "content": "x"}],
        },
    }[wire_format]
    told = story.reasoning("thought", encrypted="E").edits("edit_file", **EDIT).item(stray)

    served = await world(options="planner_reasoning_as_text = true").ask(told.request())

    assert b"thought" in served.outgoing.body
    assert b'"gone"' in served.outgoing.body
