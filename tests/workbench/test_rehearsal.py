from __future__ import annotations

import pytest

from switchyard_core import Identity, LatchCapacityError, LatchRecord, Request, Switchyard
from switchyard_core.stores import LatchStore, MemoryLatchStore
from switchyard_core.workbench.rehearsal import Rehearsal, RehearsalStore
from tests.server.servers import body, policy

A, B = Identity(session="a", source="test"), Identity(session="b", source="test")
SUB = Identity(session="a", agent="1", source="test")
OTHER = LatchRecord(data=b"other")


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


async def test_rehearsal_remembers_latches_and_leaves_the_engine_as_it_was(engine):
    rehearsal = Rehearsal(engine)
    before, after = [await rehearsal.play(request("a", edited=e)) for e in (True, False)]
    assert before.found.decision.phase == after.found.decision.phase == "executing"
    assert after.found.decision.reason.code == "latched"
    assert await engine.runtimes["coding"].store.count() == 0


async def test_rehearsal_finds_the_latches_of_the_engine(engine):
    await engine.decide(request("a"))
    played = await Rehearsal(engine).play(request("a", edited=False))
    assert played.found.decision.reason.code == "latched"


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


# --- the store ---------------------------------------------------------------------------


@pytest.fixture
async def inner():
    store = MemoryLatchStore(3)
    await store.latch(A, LatchRecord())
    await store.latch(SUB, LatchRecord())
    return store


async def test_store_reads_through_and_writes_nothing(inner):
    store = RehearsalStore(inner)
    assert isinstance(store, LatchStore)
    assert await store.latch(A, OTHER) == LatchRecord()
    assert await store.latch(B, OTHER) == OTHER
    assert await store.update(A, OTHER)
    assert (await store.get(A), await inner.get(A)) == (OTHER, LatchRecord())
    assert (await store.count(), await inner.count()) == (3, 2)


async def test_store_that_is_full_refuses_new_identities(inner):
    store = RehearsalStore(inner)
    await store.latch(B, OTHER)
    with pytest.raises(LatchCapacityError):
        await store.latch(Identity(session="c", source="test"), OTHER)
    assert not await store.update(Identity(session="c", source="test"), OTHER)


async def test_store_release_frees_a_session_with_its_agents_here_only(inner):
    store = RehearsalStore(inner)
    later = Identity(session="a", agent="2", source="test")
    await store.latch(later, OTHER)
    assert await store.release(A)
    assert [await store.get(each) for each in (A, SUB, later)] == [None, None, None]
    assert not await store.release(A)
    assert await store.latch(A, OTHER) == OTHER
    assert await inner.count() == 2
