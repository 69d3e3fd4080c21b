from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchyard_core import Identity, LatchCapacityError, LatchRecord, MemoryLatchStore
from tests.latches.contract import LatchStoreContract


class TestMemoryLatchStore(LatchStoreContract):
    @pytest.fixture
    def make(self):
        return MemoryLatchStore


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


def test_record_with_too_much_data_is_refused():
    with pytest.raises(ValueError, match="at most 1024 bytes"):
        LatchRecord(data=b"x" * 1025)
