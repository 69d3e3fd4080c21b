"""The contract of latch stores catches stores that are wrong in one way."""

from __future__ import annotations

import asyncio
import inspect

import pytest

from switchyard_core.errors import LatchCapacityError
from switchyard_core.stores import MemoryLatchStore
from switchyard_core.testing import LatchStoreConformance


class LastWins(MemoryLatchStore):
    async def latch(self, identity, record):
        await super().latch(identity, record)
        self._records[identity.key] = record
        return record


class Racing(MemoryLatchStore):
    """Looks for room, waits, and takes it."""

    async def latch(self, identity, record):
        known = self._records.get(identity.key)
        full = len(self._records) >= self.capacity and known is None
        await asyncio.sleep(0)
        if full:
            return await super().latch(identity, record)
        self._records[identity.key] = known or record
        return known or record


class Evicting(MemoryLatchStore):
    async def latch(self, identity, record):
        try:
            return await super().latch(identity, record)
        except LatchCapacityError:
            self._records.pop(next(iter(self._records)))
            return await super().latch(identity, record)


class Joining(MemoryLatchStore):
    async def get(self, identity):
        joined = f"{identity.session}:{identity.agent}"
        found = {f"{session}:{agent}": r for (session, agent), r in self._records.items()}
        return found.get(joined)


class Forgetful(MemoryLatchStore):
    async def release(self, identity):
        return self._records.pop(identity.key, None) is not None


class Latching(MemoryLatchStore):
    async def update(self, identity, record):
        self._records[identity.key] = record
        return True


class Leaking(MemoryLatchStore):
    async def release(self, identity):
        return identity.key in self._records


class OwnError(MemoryLatchStore):
    async def latch(self, identity, record):
        try:
            return await super().latch(identity, record)
        except LatchCapacityError:
            raise LatchCapacityError(message="full", code="full") from None


class Unlike:
    def __init__(self, capacity):
        self.capacity = capacity


def failures(make):
    suite = type("TestStore", (LatchStoreConformance,), {"make": lambda _self, n: make(n)})()
    found = set()
    for name, test in inspect.getmembers(suite, inspect.ismethod):
        if name.startswith("test_"):
            try:
                test()
            except (AssertionError, AttributeError, LatchCapacityError):
                found.add(name)
    return found


@pytest.mark.parametrize(
    ("make", "test"),
    [
        (LastWins, "test_first_record_wins"),
        (Racing, "test_many_tasks_for_one_slot_admit_one"),
        (Racing, "test_many_tasks_of_one_identity_get_one_record"),
        (Evicting, "test_full_store_refuses_new_identities_and_serves_known_ones"),
        (OwnError, "test_full_store_refuses_new_identities_and_serves_known_ones"),
        (Joining, "test_identities_with_joined_names_do_not_collide"),
        (Forgetful, "test_releasing_a_root_releases_its_agents_only"),
        (Forgetful, "test_releasing_an_unlatched_root_still_frees_its_agents"),
        (Leaking, "test_release_frees_a_slot"),
        (Leaking, "test_root_and_agent_are_independent"),
        (Latching, "test_update_changes_only_the_latched"),
        (Unlike, "test_store_is_a_latch_store"),
        (Unlike, "test_new_identity_is_not_latched"),
    ],
)
def test_wrong_store_is_caught(make, test):
    assert test in failures(make)


def test_right_store_passes():
    assert failures(MemoryLatchStore) == set()


def test_store_of_another_capacity_is_caught():
    assert "test_store_is_a_latch_store" in failures(lambda _n: MemoryLatchStore(99))


def test_suite_without_a_store_says_what_is_missing():
    with pytest.raises(AssertionError, match="override `make`"):
        LatchStoreConformance().make(1)
