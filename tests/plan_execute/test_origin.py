"""A history with parts that only the planner's provider can read, at another provider."""

from __future__ import annotations

import json

import pytest

from switchyard_core import Request
from switchyard_core.testing import FakeReply, conversation
from tests.support.policies import PLANNING_PROMPT

EDIT = {"path": "src/app.py"}
FILES = {
    "openai_chat": {"type": "file", "file": {"file_id": "file-1"}},
    "openai_responses": {"type": "input_file", "file_id": "file-1"},
    "anthropic_messages": {"type": "document", "source": {"type": "file", "file_id": "file-1"}},
}
COMPACTION = {"type": "compaction", "encrypted_content": "SEALED"}
TOO_LONG = FakeReply(status=400, body={"error": {"code": "context_length_exceeded"}})


@pytest.fixture
def attached(wire_format):
    """A history with a file, and an edit of the planner."""
    message = {"role": "user", "content": [FILES[wire_format]]}
    return conversation(wire_format).system("house rules").item(message)


@pytest.fixture
def edited(attached):
    return attached.edits("edit_file", **EDIT)


@pytest.mark.parametrize("setting", ["", 'on_origin_bound = "stay"'], ids=["default", "stay"])
async def test_planner_goes_on_where_context_would_be_lost(world, edited, setting):
    w = world(other_origin=True, options=setting)

    served = await w.ask(edited.request(session="s"))

    assert (served.target, served.phase) == ("planner", "planning")
    assert (served.reason, served.warnings) == ("origin_bound", ("origin_bound",))
    assert b"file-1" in served.outgoing.body
    assert PLANNING_PROMPT.encode() in served.outgoing.body
    assert await w.latched() == 0


async def test_drop_hands_off_without_the_file(world, edited):
    w = world(other_origin=True, options='on_origin_bound = "drop"')

    served = await w.ask(edited.request(session="s"))

    assert (served.target, served.reason) == ("executor", "mutation_in_history")
    assert b"file-1" not in served.outgoing.body
    assert b"not available here" in served.outgoing.body


async def test_send_hands_off_with_the_file(world, edited):
    w = world(other_origin=True, options='on_origin_bound = "send"')

    served = await w.ask(edited.request(session="s"))

    assert (served.target, b"file-1" in served.outgoing.body) == ("executor", True)


async def test_one_origin_reads_its_own_parts(world, edited):
    served = await world().ask(edited.request(session="s"))

    assert (served.target, b"file-1" in served.outgoing.body) == ("executor", True)


async def test_parts_that_came_after_the_handoff_are_the_executors(world, wire_format):
    told = conversation(wire_format).user("fix").edits("edit_file", **EDIT).reads("read", path="a")
    later = told.item({"role": "user", "content": [FILES[wire_format]]})
    w = world(other_origin=True)
    await w.ask(told.request(session="s"))

    served = await w.ask(later.request(session="s"))

    assert (served.target, b"file-1" in served.outgoing.body) == ("executor", True)


async def test_target_may_switch_the_rewrite_off(world, wire_format, edited):
    w = world(
        other_origin=True,
        options='on_origin_bound = "drop"',
        executor="rewrites = { drop_origin_bound = false }",
    )

    served = await w.ask(edited.request())

    assert b"file-1" in served.outgoing.body


# --- sessions that were handed off --------------------------------------------------------------


def compact(told, wire_format="openai_responses"):
    return Request(
        wire_format=wire_format,
        body=told.body(),
        endpoint="compact",
        headers={"x-switchyard-session-id": "s"},
    )


@pytest.mark.parametrize("wire_format", ["openai_responses"], indirect=True)
async def test_compaction_of_the_planner_keeps_a_latched_session_there(world, wire_format):
    w = world(other_origin=True, executor='context_window = 2000\non_overflow = "stay"')
    told = conversation(wire_format).user("fix").edits("edit_file", **EDIT)
    large = told.reads("read", path="a", result="x" * 9000)
    await w.ask(told.request(session="s"))

    compaction = await w.ask(compact(large))
    sealed = conversation(wire_format).item(COMPACTION).user("go on")
    stays = [
        await w.ask(each.request(session="s"))
        for each in (sealed, sealed.edits("edit_file", **EDIT))
    ]
    plain = await w.ask(conversation(wire_format).user("afresh").request(session="s"))
    own = await w.ask(sealed.request(session="s"))

    assert (compaction.target, compaction.reason) == ("planner", "housekeeping")
    for served in stays:
        assert (served.target, served.reason) == ("planner", "origin_bound")
        assert set(served.warnings) == {"history_missing", "origin_bound"}
    assert (plain.target, own.target) == ("executor", "executor")
    assert await w.latched() == 1


@pytest.mark.parametrize("wire_format", ["openai_responses"], indirect=True)
async def test_compaction_of_the_executor_never_reaches_the_planner(world, wire_format):
    w = world(other_origin=True, executor='context_window = 2000\non_overflow = "stay"')
    told = conversation(wire_format).user("fix").edits("edit_file", **EDIT)
    await w.ask(told.request(session="s"))
    assert (await w.ask(compact(told))).target == "executor"
    sealed = conversation(wire_format).item(COMPACTION).reads("read", path="a", result="x" * 9000)

    served = await w.ask(sealed.request(session="s"))

    assert (served.target, b"SEALED" in served.outgoing.body) == ("executor", True)
    assert "context_window" in served.warnings


@pytest.mark.parametrize("wire_format", ["openai_responses"], indirect=True)
async def test_overflow_is_not_retried_where_the_planner_cannot_read_the_history(
    world, wire_format
):
    w = world(
        other_origin=True, executor='on_overflow = "stay"\ncontext_window = 9999999',
        replies=[FakeReply(), TOO_LONG],
    )  # fmt: skip
    told = conversation(wire_format).user("fix").edits("edit_file", **EDIT)
    await w.ask(told.request(session="s"))
    sealed = conversation(wire_format).item(COMPACTION).user("go on")

    served = await w.ask(sealed.request(session="s"))

    assert (served.status, len(served.sent)) == (400, 1)


@pytest.mark.parametrize("door", ["library"], indirect=True)
@pytest.mark.parametrize("wire_format", ["openai_responses"], indirect=True)
async def test_sealed_history_is_missing_history(world, wire_format):
    told = conversation(wire_format).item(COMPACTION).user("go on")

    warned = await world().ask(told.request(session="s"))
    refused = await world(options='on_missing_history = "reject"').ask(told.request(session="s"))

    assert (warned.target, warned.reason) == ("planner", "history_missing")
    assert (refused.status, refused.code) == (400, "history_required")
    assert json.loads(refused.answer)["error"]["param"] == "input[0]"
    assert "`input[0]`" in refused.message


@pytest.mark.parametrize("side", [False, True], ids=["turn", "side_call"])
async def test_side_calls_are_converted_too(world, wire_format, side):
    signed = {
        "openai_chat": {"role": "assistant", "content": "x", "reasoning_signature": "SEAL"},
        "openai_responses": {"type": "agent_message", "content": "SEAL"},
        "anthropic_messages": {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "x"},
                {"type": "server_tool_use", "id": "srvtoolu_1", "name": "SEAL"},
            ],
        },
    }[wire_format]
    told = conversation(wire_format).user("fix").item(signed).edits("edit_file", **EDIT)
    top = '[[housekeeping]]\nheader = "x-purpose"\nequals = "side"'
    headers = {"x-purpose": "side"} if side else {}

    served = await world(other_origin=True, options=top).ask(told.request(headers=headers))

    assert (served.target, b"SEAL" in served.outgoing.body) == ("executor", False)
