"""Conversations played in order, and their timelines."""

from __future__ import annotations

import pytest

from switchyard_core import Request, Switchyard
from switchyard_core.explain import Rehearsal, Timeline, entry_of
from tests.server.servers import body, policy


def request(session, *, edited=True, **options):
    return Request(
        wire_format="openai_chat",
        body=body("openai_chat", edited=edited),
        headers={"x-switchyard-session-id": session},
        **options,
    )


@pytest.fixture
def engine():
    text = policy("openai_chat", "http://127.0.0.1:1", route="latch_capacity = 2")
    return Switchyard.from_policy_text(text)


async def test_rehearsal_remembers_latches_and_leaves_the_stores_of_the_engine_alone(engine):
    store = engine.runtimes["coding"].store
    rehearsal = Rehearsal(engine)
    before, after = [await rehearsal.play(request("a", edited=e)) for e in (True, False)]
    assert before.found.decision.phase == after.found.decision.phase == "executing"
    assert after.found.decision.reason.code == "latched"
    assert await store.count() == 0


async def test_rehearsal_of_a_full_store_refuses_as_a_server_would(engine):
    rehearsal = Rehearsal(engine)
    played = [await rehearsal.play(request(name)) for name in "abc"]
    assert [each.error.code if each.error else "" for each in played] == ["", "", "latch_capacity"]


async def test_rehearsal_of_a_final_request_frees_its_slot(engine):
    rehearsal = Rehearsal(engine)
    for name in "ab":
        await rehearsal.play(request(name))
    final = await rehearsal.play(request("a", session_final=True))
    after = await rehearsal.play(request("c"))
    assert (final.released, after.error) == (True, None)


async def test_rehearsal_of_a_request_without_route_is_refused(engine):
    unknown = Request(wire_format="openai_chat", body=b'{"model":"x","messages":[]}')
    played = await Rehearsal(engine).play(unknown)
    assert (played.found, played.error.code) == (None, "model_not_found")


# --- the timeline --------------------------------------------------------------------------------

POLICY = policy("openai_chat", "http://127.0.0.1:1", route="latch_capacity = 1")


async def timeline(*requests, text=POLICY):
    rehearsal = Rehearsal(Switchyard.from_policy_text(text))
    played = [await rehearsal.play(each) for each in requests]
    return Timeline([entry_of(number, each) for number, each in enumerate(played, 1)])


async def test_timeline_of_a_session_shows_phases_and_the_latch():
    found = await timeline(
        request("a", edited=False),
        request("a"),
        request("a", edited=False),
        request("a", edited=False, session_final=True),
    )
    assert found.as_text() == (
        "timeline  4 requests\n"
        "planning on planner, request 1\n"
        "   1  no_mutation; no file was edited yet\n"
        "executing on executor, requests 2-4\n"
        "   2  mutation_in_history; Edit at $.messages[1].tool_calls[0]: file_edit by "
        "coding_agents/edit-tools, word `a.py`; latch set\n"
        "   3  latched; the session was handed to the efficient target; latch held\n"
        "   4  latched; the session was handed to the efficient target; latch freed\n"
    )
    entries = found.as_json()["requests"]
    assert [(e["latched_before"], e["latched_after"]) for e in entries] == [
        (False, False),
        (False, True),
        (True, True),
        (True, False),
    ]
    assert (entries[1]["rule"], entries[1]["session"]) == ("edit-tools", "a")


async def test_timeline_of_two_sessions_names_them_and_shows_a_refusal():
    found = await timeline(request("a"), request("b"))
    text = found.as_text()
    assert text.startswith("timeline  2 requests, 2 sessions\nexecuting on executor, request 1\n")
    assert "latch set; session a\nrefused, request 2\n   2  latch_capacity; " in text
    assert text.endswith("session b\n")
    assert found.entries[1].latched_after is False


async def test_timeline_of_a_request_without_route_has_the_error():
    unknown = Request(wire_format="openai_chat", body=b'{"model":"x","messages":[]}')
    found = await timeline(unknown)
    assert found.as_json()["phases"] == [{"phase": "refused", "target": "", "first": 1, "last": 1}]
    assert found.entries[0].reason == "model_not_found"


async def test_timeline_of_a_router_that_asks_says_what_is_missing():
    text = POLICY.split("[routes.coding]")[0] + (
        '[routes.coding]\nid = "coder"\ntype = "llm_classifier"\njudge_target = "executor"\n'
        'strong_target = "planner"\nweak_target = "executor"\n'
    )
    found = await timeline(request("a", edited=False), text=text)
    assert found.as_text() == (
        "timeline  1 request\nwould ask on executor, request 1\n"
        "   1  no reply; give one with --reply executor=FILE\n"
    )


@pytest.mark.parametrize("wire_format", ["openai_chat", "anthropic_messages"])
async def test_timeline_prints_the_deciding_word(wire_format):
    content = body(wire_format, edited=True).replace(b'"Edit"', b'"Bash"')
    content = content.replace(b"file_path", b"command").replace(b"a.py", b"sed -i s/a/b/ x.py")
    text = policy(wire_format, "http://127.0.0.1:1")
    found = await timeline(Request(wire_format=wire_format, body=content), text=text)
    assert found.entries[0].word == "sed"
    assert ", word `sed`" in found.as_text()
