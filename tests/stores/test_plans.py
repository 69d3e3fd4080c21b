"""The store that lives in the process: the contract of all stores, and what it promises besides."""

from __future__ import annotations

import asyncio
import threading

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from switchyard_core.errors import PlanCapacityError
from switchyard_core.stores import PENDING, MemoryPlanStore, PlanRecord
from switchyard_core.testing import PlanStoreConformance


class TestMemoryPlanStore(PlanStoreConformance):
    def make(self, capacity, ttl_s, clock):
        return MemoryPlanStore(capacity, ttl_s, clock)


STATES = st.sampled_from(
    ["planning", "planned", "running", "completed", "failed", "rejected", "expired"]
)
IDS = st.sampled_from("abcdefgh")


class Plans(RuleBasedStateMachine):
    """Any sequence of calls, beside a plain model of what must be kept."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 100.0
        self.store = MemoryPlanStore(3, 10.0, lambda: self.now)
        self.model: dict[str, PlanRecord] = {}

    def expired(self, record):
        if record.state == "running":
            return False
        return record.state == "expired" or self.now - record.created_s >= self.store.ttl_s

    def droppable(self):
        """Names of plans that may go, in the order in which they must."""
        expired = [r for r in self.model.values() if self.expired(r)]
        ended = [r for r in self.model.values() if not self.expired(r) and r.state not in PENDING]
        oldest = [sorted(group, key=lambda r: r.created_s) for group in (expired, ended)]
        return [record.plan_id for group in oldest for record in group]

    @rule(plan_id=IDS, state=STATES, age=st.integers(-2, 12))
    def add(self, plan_id, state, age):
        record = PlanRecord(plan_id=plan_id, state=state, created_s=self.now - age)
        taken = plan_id in self.model
        excess = len(self.model) + 1 - self.store.capacity
        going = self.droppable()[: max(excess, 0)]
        if taken:
            with pytest.raises(ValueError, match="is taken"):
                asyncio.run(self.store.add(record))
        elif len(going) < excess:
            with pytest.raises(PlanCapacityError) as raised:
                asyncio.run(self.store.add(record))
            assert f"{self.store.capacity} plan" in raised.value.message
        else:
            asyncio.run(self.store.add(record))
            for gone in going:
                del self.model[gone]
            self.model[plan_id] = record

    @rule(plan_id=IDS, state=STATES, fresh=st.booleans())
    def swap(self, plan_id, state, fresh):
        read = asyncio.run(self.store.get(plan_id))
        before = read if read is not None and fresh else PlanRecord(plan_id=plan_id, digest="old")
        after = before.with_(state=state, digest="new")
        won = asyncio.run(self.store.swap(before, after))
        assert won is (fresh and read is not None)
        if won:
            self.model[plan_id] = after

    @rule(plan_id=IDS)
    def remove(self, plan_id):
        assert asyncio.run(self.store.remove(plan_id)) is (plan_id in self.model)
        self.model.pop(plan_id, None)

    @rule(seconds=st.integers(1, 6))
    def wait(self, seconds):
        self.now += seconds

    @rule(capacity=st.integers(1, 5), ttl_s=st.sampled_from([5.0, 10.0]))
    def reload(self, capacity, ttl_s):
        self.store.capacity, self.store.ttl_s = capacity, ttl_s
        self.shrunk = len(self.model)

    @invariant()
    def keeps_exactly_the_model_and_nothing_pending_is_lost(self):
        assert asyncio.run(self.store.count()) == len(self.model)
        for plan_id, record in self.model.items():
            if record.state == "planned" and self.expired(record):
                record = record.with_(state="expired")  # noqa: PLW2901  # as it reads now
            assert asyncio.run(self.store.get(plan_id)) == record

    @precondition(lambda self: not hasattr(self, "shrunk"))
    @invariant()
    def stays_within_the_capacity(self):
        assert len(self.store._records) <= self.store.capacity


TestPlans = Plans.TestCase
TestPlans.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


def at_once(count, work):
    """Run a coroutine function in many threads, which begin together."""
    barrier, results = threading.Barrier(count), []

    def run(number: int) -> None:
        barrier.wait()
        results.append(asyncio.run(work(number)))

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_of_swaps_in_many_threads_one_wins():
    store = MemoryPlanStore(1, 60.0, lambda: 0.0)
    before = PlanRecord(plan_id="a", state="planned")
    asyncio.run(store.add(before))

    won = at_once(50, lambda n: store.swap(before, before.with_(state="running", digest=str(n))))

    assert won.count(True) == 1


def test_threads_never_exceed_the_capacity():
    store = MemoryPlanStore(10, 60.0, lambda: 0.0)

    async def fill(start):
        refused = 0
        for number in range(20):
            try:
                await store.add(PlanRecord(plan_id=f"{start} {number}"))
            except PlanCapacityError:
                refused += 1
        return refused

    refused = at_once(5, fill)

    assert asyncio.run(store.count()) == 10
    assert sum(refused) == 90


def test_full_store_says_what_to_do_and_that_a_retry_is_no_use():
    store = MemoryPlanStore(1, 60.0, lambda: 0.0)
    asyncio.run(store.add(PlanRecord(plan_id="a")))

    with pytest.raises(PlanCapacityError) as raised:
        asyncio.run(store.add(PlanRecord(plan_id="b")))

    assert (raised.value.status, raised.value.code) == (400, "plan_capacity")
    assert raised.value.headers == {"x-should-retry": "false"}
    assert "no model was asked" in raised.value.message


async def test_plan_cannot_take_the_place_of_another():
    store = MemoryPlanStore(2, 60.0, lambda: 0.0)
    record = PlanRecord(plan_id="a")
    await store.add(record)

    with pytest.raises(ValueError, match="`b` cannot take the place of `a`"):
        await store.swap(record, PlanRecord(plan_id="b"))
    assert await store.get("a") == record


async def test_plan_in_the_making_that_ran_out_of_time_gives_way_but_can_still_be_finished():
    now = [0.0]
    store = MemoryPlanStore(1, 60.0, lambda: now[0])
    slow = PlanRecord(plan_id="slow", created_s=0.0)
    await store.add(slow)
    now[0] = 60.0

    assert await store.swap(slow, slow.with_(digest="d"))
    await store.add(PlanRecord(plan_id="next", created_s=60.0))
    assert await store.get("slow") is None
