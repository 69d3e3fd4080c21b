"""The contract of plan stores catches stores that are wrong in one way."""

from __future__ import annotations

import asyncio
import inspect

import pytest

from switchyard_core.errors import PlanCapacityError
from switchyard_core.stores import MemoryPlanStore
from switchyard_core.testing import PlanStoreConformance


class Replacing(MemoryPlanStore):
    async def add(self, record):
        self._records.pop(record.plan_id, None)
        await super().add(record)


class Dropping(MemoryPlanStore):
    async def add(self, record):
        try:
            await super().add(record)
        except PlanCapacityError:
            self._records.pop(next(iter(self._records)))
            await super().add(record)


class OwnError(MemoryPlanStore):
    async def add(self, record):
        try:
            await super().add(record)
        except PlanCapacityError:
            raise PlanCapacityError(message="full", code="full") from None


class Hoarding(MemoryPlanStore):
    def _droppable(self):
        return []


class Unordered(MemoryPlanStore):
    def _droppable(self):
        return super()._droppable()[::-1]


class Lasting(MemoryPlanStore):
    def _expired(self, record):
        return False


class Hasty(MemoryPlanStore):
    async def get(self, plan_id):
        record = await super().get(plan_id)
        if record is not None and self._clock() - record.created_s > self.ttl_s:
            return record.with_(state="expired")
        return record


class Racing(MemoryPlanStore):
    """Looks, waits, and writes."""

    async def swap(self, before, after):
        same = await self.get(before.plan_id) == before
        await asyncio.sleep(0)
        if same:
            self._records[before.plan_id] = after
        return same

    async def add(self, record):
        full = len(self._records) >= self.capacity
        await asyncio.sleep(0)
        if full:
            await super().add(record)
        self._records[record.plan_id] = record


class Blind(MemoryPlanStore):
    async def swap(self, before, after):
        self._records[before.plan_id] = after
        return True


class Stale(MemoryPlanStore):
    """Compares with what was stored, not with what it says now."""

    async def swap(self, before, after):
        if self._records.get(before.plan_id) != before:
            return False
        self._records[before.plan_id] = after
        return True


class Leaking(MemoryPlanStore):
    async def remove(self, plan_id):
        return plan_id in self._records


class Fixed(MemoryPlanStore):
    """Does not notice that its limits change."""

    def __init__(self, capacity, ttl_s, clock):
        super().__init__(capacity, ttl_s, clock)
        self._first = capacity

    async def add(self, record):
        self.capacity = self._first
        await super().add(record)


class Losing(MemoryPlanStore):
    async def add(self, record):
        await super().add(record.with_(data=record.data[:1024]))


class Unlike:
    def __init__(self, capacity, ttl_s, clock):
        self.capacity = capacity


def failures(make):
    methods = {"make": lambda _self, *limits: make(*limits)}
    suite = type("TestStore", (PlanStoreConformance,), methods)()
    found = set()
    for name, test in inspect.getmembers(suite, inspect.ismethod):
        if name.startswith("test_"):
            try:
                test()
            except (AssertionError, AttributeError, PlanCapacityError):
                found.add(name)
    return found


@pytest.mark.parametrize(
    ("make", "test"),
    [
        (Replacing, "test_id_that_is_taken_is_refused"),
        (Dropping, "test_full_store_refuses_new_plans_and_serves_those_it_has"),
        (OwnError, "test_full_store_refuses_new_plans_and_serves_those_it_has"),
        (Hoarding, "test_expired_plans_go_first_and_then_the_oldest_that_ended"),
        (Unordered, "test_expired_plans_go_first_and_then_the_oldest_that_ended"),
        (Lasting, "test_plan_that_waits_expires_and_one_that_runs_does_not"),
        (Hasty, "test_plan_that_waits_expires_and_one_that_runs_does_not"),
        (Stale, "test_plan_that_waits_expires_and_one_that_runs_does_not"),
        (Racing, "test_of_many_swaps_one_wins"),
        (Racing, "test_many_tasks_for_one_place_admit_one"),
        (Blind, "test_swap_changes_only_what_is_as_it_was_read"),
        (Leaking, "test_remove_frees_a_place"),
        (Fixed, "test_limits_may_change_while_it_serves"),
        (Losing, "test_plan_is_kept_as_it_was_given"),
        (Unlike, "test_store_is_a_plan_store"),
    ],
)
def test_wrong_store_is_caught(make, test):
    assert test in failures(make)


def test_right_store_passes():
    assert failures(MemoryPlanStore) == set()


def test_store_of_other_limits_is_caught():
    def make(_capacity, ttl_s, clock):
        return MemoryPlanStore(99, ttl_s, clock)

    assert "test_store_is_a_plan_store" in failures(make)


def test_suite_without_a_store_says_what_is_missing():
    with pytest.raises(AssertionError, match="override `make`"):
        PlanStoreConformance().make(1, 1.0, lambda: 0.0)
