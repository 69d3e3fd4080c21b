"""The store that lives in the process: the contract of all stores, and what it promises besides."""

from __future__ import annotations

import asyncio
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchyard_core import Identity, LatchRecord
from switchyard_core.errors import LatchCapacityError
from switchyard_core.stores import MemoryLatchStore, capacity_error
from switchyard_core.testing import LatchStoreConformance


class TestMemoryLatchStore(LatchStoreConformance):
    def make(self, capacity):
        return MemoryLatchStore(capacity)


IDENTITIES = st.builds(
    Identity, session=st.sampled_from("abc"), agent=st.sampled_from([None, "x", "y"])
)


@given(st.lists(st.tuples(st.sampled_from(["latch", "release"]), IDENTITIES)), st.integers(1, 4))
def test_any_sequence_stays_within_capacity_and_agrees_with_a_set(steps, capacity):
    async def run() -> None:
        store, model = MemoryLatchStore(capacity), set()
        for verb, identity in steps:
            if verb == "latch":
                full = len(model) >= capacity and identity.key not in model
                try:
                    await store.latch(identity, LatchRecord())
                    assert not full
                    model.add(identity.key)
                except LatchCapacityError:
                    assert full
            else:
                gone = {
                    key
                    for key in model
                    if key == identity.key
                    or (identity.agent is None and key[0] == identity.session)
                }
                assert await store.release(identity) == bool(gone)
                model -= gone
            assert await store.count() == len(model) <= capacity
            assert not store._agents.keys() - {key[0] for key in model if key[1] is not None}

    asyncio.run(run())


async def test_threads_never_exceed_the_capacity():
    store = MemoryLatchStore(10)
    refused: list[int] = []

    def work(start: int) -> None:
        async def latch_all() -> None:
            for number in range(start, start + 25):
                try:
                    await store.latch(Identity(session=str(number)), LatchRecord())
                except LatchCapacityError:
                    refused.append(number)

        asyncio.run(latch_all())

    threads = [threading.Thread(target=work, args=(start,)) for start in range(0, 100, 25)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert await store.count() == 10
    assert len(refused) == 90


def test_record_with_too_much_data_is_refused():
    with pytest.raises(ValueError, match="at most 1024 bytes"):
        LatchRecord(data=b"x" * 1025)


def test_capacity_error_says_what_an_operator_can_do():
    error = capacity_error(3)

    assert "Raise `latch_capacity` of the route and reload the policy" in error.message
    assert "all 3 session slots" in error.message
    assert (error.status, error.headers["x-should-retry"]) == (400, "false")
