"""The contract of latch stores, run against every store."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest

from switchyard_core import Identity, LatchCapacityError, LatchRecord, LatchStore

ROOT = Identity(session="s")
AGENT = Identity(session="s", agent="a")
OTHER = Identity(session="t")
FIRST = LatchRecord(handoff_key=b"0" * 16)
SECOND = LatchRecord(handoff_key=b"1" * 16, drop_opaque=True, data=b"x")


class LatchStoreContract:
    """Inherit and give ``make``: a fixture that returns a store of a capacity."""

    @pytest.fixture
    def make(self) -> Callable[[int], LatchStore]:
        pytest.fail("a store's tests give `make`")

    async def test_new_identity_is_not_latched(self, make):
        store = make(1)

        assert await store.get(ROOT) is None
        assert await store.count() == 0

    async def test_latch_first_record_wins(self, make):
        store = make(2)

        assert await store.latch(ROOT, FIRST) == FIRST
        assert await store.latch(ROOT, SECOND) == FIRST
        assert await store.get(ROOT) == FIRST
        assert await store.count() == 1

    async def test_latch_at_capacity_rejects_new_and_serves_known(self, make):
        store = make(1)
        await store.latch(ROOT, FIRST)

        with pytest.raises(LatchCapacityError) as caught:
            await store.latch(OTHER, FIRST)

        assert caught.value.status == 400
        assert caught.value.code == "latch_capacity"
        assert "all 1 session slots" in caught.value.message
        assert await store.get(OTHER) is None
        assert await store.latch(ROOT, SECOND) == FIRST

    async def test_update_changes_only_the_latched(self, make):
        store = make(2)
        await store.latch(ROOT, FIRST)

        assert await store.update(ROOT, SECOND)
        assert not await store.update(OTHER, SECOND)
        assert await store.get(ROOT) == SECOND
        assert await store.get(OTHER) is None

    async def test_root_and_agent_are_independent(self, make):
        store = make(2)
        await store.latch(AGENT, FIRST)

        assert await store.get(ROOT) is None
        assert await store.release(AGENT)
        assert not await store.release(AGENT)
        assert await store.count() == 0

    async def test_releasing_a_root_releases_its_agents_only(self, make):
        store = make(4)
        for identity in (ROOT, AGENT, Identity(session="s", agent="b"), OTHER):
            await store.latch(identity, FIRST)

        assert await store.release(ROOT)

        assert await store.count() == 1
        assert await store.get(OTHER) == FIRST

    async def test_releasing_an_unlatched_root_still_frees_its_agents(self, make):
        store = make(2)
        await store.latch(AGENT, FIRST)

        assert await store.release(ROOT)
        assert await store.count() == 0

    async def test_release_frees_a_slot(self, make):
        store = make(1)
        await store.latch(ROOT, FIRST)
        await store.release(ROOT)

        assert await store.latch(OTHER, FIRST) == FIRST

    async def test_identities_with_joined_names_do_not_collide(self, make):
        store = make(2)
        await store.latch(Identity(session="a", agent="b:c"), FIRST)

        assert await store.get(Identity(session="a:b", agent="c")) is None

    async def test_fifty_tasks_for_one_slot_admit_one(self, make):
        store = make(1)

        async def one(number: int) -> bool:
            try:
                await store.latch(Identity(session=str(number)), FIRST)
            except LatchCapacityError:
                return False
            return True

        admitted = await asyncio.gather(*(one(number) for number in range(50)))

        assert sum(admitted) == 1
        assert await store.count() == 1

    async def test_threads_never_exceed_the_capacity(self, make):
        store = make(10)
        refused: list[int] = []

        def work(start: int) -> None:
            async def latch_all() -> None:
                for number in range(start, start + 25):
                    try:
                        await store.latch(Identity(session=str(number)), FIRST)
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
