"""The contracts of latch stores and of plan stores, as tests that any store inherits."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from switchyard_core.decision import LatchRecord
from switchyard_core.errors import LatchCapacityError, PlanCapacityError
from switchyard_core.identity import Identity
from switchyard_core.stores import LatchStore, PlanRecord, PlanState, PlanStore
from switchyard_core.testing.conformance.bench import named_like, require

__all__ = ["LatchStoreConformance", "PlanStoreConformance"]

_TASKS = 50
_ROOT = Identity(session="s")
_AGENT = Identity(session="s", agent="a")
_OTHER = Identity(session="t")
_FIRST = LatchRecord(handoff_key=b"0" * 16)
_SECOND = LatchRecord(handoff_key=b"1" * 16, drop_opaque=True, data=bytes(range(256)) * 4)
#: Seconds after which plans expire in these tests.
_TTL_S = 60.0
_START = 1_700_000_000.0
_DATA = bytes(range(256)) * 16


def _with_store(
    capacity: int,
) -> Callable[[Callable[..., Coroutine[Any, Any, None]]], Callable[[Any], None]]:
    """Make a test of a check: it has its own event loop and store."""

    def decorate(check: Callable[..., Coroutine[Any, Any, None]]) -> Callable[[Any], None]:
        def test(self: Any) -> None:
            async def run() -> None:
                # Made inside: a store may hold connections of the loop.
                await check(self, self._given(capacity))

            asyncio.run(run())

        return named_like(check, test)

    return decorate


class LatchStoreConformance:
    """Inherit it in a test module, give :meth:`make`, and pytest runs the contract's tests.

    Each test has its own event loop and its own store.

    Example:
        >>> class TestRedisStore(LatchStoreConformance):
        ...     def make(self, capacity):
        ...         return RedisStore(capacity, prefix=uuid4().hex)
    """

    def make(self, capacity: int) -> LatchStore:
        """Return a new, empty store for at most so many identities."""
        del capacity
        raise AssertionError("say which store is tested: override `make`")

    def _given(self, capacity: int) -> LatchStore:
        return self.make(capacity)

    @_with_store(capacity=3)
    async def test_store_is_a_latch_store(self, store: LatchStore) -> None:
        """It has every method of the contract, and says its capacity."""
        require(isinstance(store, LatchStore), "the store lacks a method of `LatchStore`")
        require(store.capacity == 3, f"a store for 3 identities says {store.capacity}")

    @_with_store(capacity=1)
    async def test_new_identity_is_not_latched(self, store: LatchStore) -> None:
        """An empty store knows no identity."""
        require(await store.get(_ROOT) is None, "`get` of a new identity must be None")
        await _require_count(store, 0)

    @_with_store(capacity=2)
    async def test_first_record_wins(self, store: LatchStore) -> None:
        """Of two requests of one identity the first one's record counts, for both."""
        for record in (_FIRST, _SECOND):
            won = await store.latch(_ROOT, record)
            require(won == _FIRST, f"`latch` must return the first record, not {won}")
        require(await store.get(_ROOT) == _FIRST, "the second record replaced the first one")
        await _require_count(store, 1)

    @_with_store(capacity=1)
    async def test_full_store_refuses_new_identities_and_serves_known_ones(
        self, store: LatchStore
    ) -> None:
        """No identity is ever evicted."""
        await store.latch(_ROOT, _FIRST)
        error = await _refused(store.latch(_OTHER, _FIRST))
        require(error is not None, "a full store must raise LatchCapacityError")
        told = error is not None and (error.status, error.code) == (400, "latch_capacity")
        require(told, "raise what `switchyard_core.stores.capacity_error` returns")
        require(await store.get(_OTHER) is None, "the refused identity was latched")
        won = await store.latch(_ROOT, _SECOND)
        require(won == _FIRST, "a full store must serve the identities that it has")

    @_with_store(capacity=2)
    async def test_update_changes_only_the_latched(self, store: LatchStore) -> None:
        """A record of up to 1024 bytes of data is replaced, and only where there is one."""
        await store.latch(_ROOT, _FIRST)
        require(await store.update(_ROOT, _SECOND), "`update` of a latched one is True")
        require(not await store.update(_OTHER, _SECOND), "`update` of a new one is False")
        require(await store.get(_ROOT) == _SECOND, "`update` must replace the whole record")
        require(await store.get(_OTHER) is None, "`update` must not latch")

    @_with_store(capacity=2)
    async def test_root_and_agent_are_independent(self, store: LatchStore) -> None:
        """A sub-agent's latch is not its session's."""
        await store.latch(_AGENT, _FIRST)
        require(await store.get(_ROOT) is None, "an agent's latch is not the root's")
        require(await store.release(_AGENT), "`release` of a latched one is True")
        require(not await store.release(_AGENT), "`release` of a free one is False")
        await _require_count(store, 0)

    @_with_store(capacity=4)
    async def test_releasing_a_root_releases_its_agents_only(self, store: LatchStore) -> None:
        """The end of a session frees what it held, and nothing else."""
        for identity in (_ROOT, _AGENT, Identity(session="s", agent="b"), _OTHER):
            await store.latch(identity, _FIRST)
        require(await store.release(_ROOT), "`release` of a latched root is True")
        await _require_count(store, 1)
        require(await store.get(_OTHER) == _FIRST, "another session was released")

    @_with_store(capacity=2)
    async def test_releasing_an_unlatched_root_still_frees_its_agents(
        self, store: LatchStore
    ) -> None:
        """A session that only planned may have agents that executed."""
        await store.latch(_AGENT, _FIRST)
        require(await store.release(_ROOT), "`release` is True when an agent was freed")
        await _require_count(store, 0)

    @_with_store(capacity=1)
    async def test_release_frees_a_slot(self, store: LatchStore) -> None:
        """After a release there is room for a new identity."""
        await store.latch(_ROOT, _FIRST)
        await store.release(_ROOT)
        require(await _refused(store.latch(_OTHER, _FIRST)) is None, "a released slot must be free")

    @_with_store(capacity=2)
    async def test_identities_with_joined_names_do_not_collide(self, store: LatchStore) -> None:
        """Session and agent are two values, whatever separator is in them."""
        await store.latch(Identity(session="a", agent="b:c"), _FIRST)
        for session, agent in (("a:b", "c"), ("a", "b"), ("a:b:c", None), ("ab", ":c")):
            found = await store.get(Identity(session=session, agent=agent))
            require(found is None, f"`a`, `b:c` was taken for `{session}`, `{agent}`")

    @_with_store(capacity=1)
    async def test_many_tasks_for_one_slot_admit_one(self, store: LatchStore) -> None:
        """Looking for room and taking it is one step."""
        identities = [Identity(session=str(number)) for number in range(_TASKS)]
        errors = await asyncio.gather(*(_refused(store.latch(each, _FIRST)) for each in identities))
        admitted = errors.count(None)
        require(admitted == 1, f"{admitted} of {_TASKS} tasks got the one slot: make it atomic")
        await _require_count(store, 1)

    @_with_store(capacity=2)
    async def test_many_tasks_of_one_identity_get_one_record(self, store: LatchStore) -> None:
        """Everybody learns which record won."""
        records = [LatchRecord(data=str(number).encode()) for number in range(_TASKS)]
        won = await asyncio.gather(*(store.latch(_ROOT, record) for record in records))
        different = len({record.data for record in won})
        require(different == 1, f"{different} different records won: make it atomic")
        require(await store.get(_ROOT) == won[0], "`latch` returned a record that lost")


class PlanStoreConformance:
    """Inherit it in a test module, give :meth:`make`, and pytest runs the contract's tests.

    Each test has its own event loop and its own store.

    Example:
        >>> class TestRedisPlans(PlanStoreConformance):
        ...     def make(self, capacity, ttl_s, clock):
        ...         return RedisPlans(capacity, ttl_s, clock, prefix=uuid4().hex)
    """

    def make(self, capacity: int, ttl_s: float, clock: Callable[[], float]) -> PlanStore:
        """Return a new, empty store; the tests move its clock, in seconds since the epoch."""
        del capacity, ttl_s, clock
        msg = "say which store is tested: override `make`"
        raise AssertionError(msg)

    def _given(self, capacity: int) -> PlanStore:
        self.now = _START
        return self.make(capacity, _TTL_S, lambda: self.now)

    @_with_store(capacity=3)
    async def test_store_is_a_plan_store(self, store: PlanStore) -> None:
        """It has every part of the contract, and says its limits."""
        require(isinstance(store, PlanStore), "the store lacks a part of `PlanStore`")
        limits = (store.capacity, store.ttl_s)
        require(limits == (3, _TTL_S), f"a store for 3 plans and {_TTL_S} s says {limits}")

    @_with_store(capacity=2)
    async def test_plan_is_kept_as_it_was_given(self, store: PlanStore) -> None:
        """Every field comes back, and a new store knows nothing."""
        record = _plan("a").with_(digest="d", owner=("s", None), data=_DATA)
        require(await store.get("a") is None, "`get` of a new plan must be None")
        await store.add(record)
        require(await store.get("a") == record, "`get` must return the whole record")
        await _require_count(store, 1)

    @_with_store(capacity=2)
    async def test_id_that_is_taken_is_refused(self, store: PlanStore) -> None:
        """A plan never takes another's place unnoticed."""
        await store.add(_plan("a"))
        with contextlib.suppress(ValueError):
            await store.add(_plan("a", "failed"))
            raise AssertionError("`add` with an id that is taken must raise ValueError")
        require(await store.get("a") == _plan("a"), "the plan that was there changed")

    @_with_store(capacity=3)
    async def test_full_store_refuses_new_plans_and_serves_those_it_has(
        self, store: PlanStore
    ) -> None:
        """A plan that is made, waits or runs is never dropped."""
        kept = [_plan("a", "planning"), _plan("b", "planned"), _plan("c", "running")]
        for record in kept:
            await store.add(record)
        error = await _refused(store.add(_plan("d")))
        require(error is not None, "a full store must raise PlanCapacityError")
        told = error is not None and (error.status, error.code) == (400, "plan_capacity")
        require(told, "raise what `switchyard_core.stores.plan_capacity_error` returns")
        for record in kept:
            require(await store.get(record.plan_id) == record, "a plan was dropped")
        require(await store.get("d") is None, "the refused plan was kept")

    @_with_store(capacity=4)
    async def test_expired_plans_go_first_and_then_the_oldest_that_ended(
        self, store: PlanStore
    ) -> None:
        """What is needed least makes room."""
        await store.add(_plan("expired", "planned", _START - 10))
        await store.add(_plan("new end", "failed", _START + 50))
        await store.add(_plan("old end", "completed", _START + 40))
        await store.add(_plan("waits", "planned", _START + 40))
        self.now = _START + 55
        for number, gone in enumerate(("expired", "old end", "new end")):
            await store.add(_plan(f"new {number}", created_s=self.now))
            require(await store.get(gone) is None, f"`{gone}` must go as number {number}")
            await _require_count(store, 4)
        require(await _refused(store.add(_plan("late"))) is not None, "nothing more may go")

    @_with_store(capacity=2)
    async def test_plan_that_waits_expires_and_one_that_runs_does_not(
        self, store: PlanStore
    ) -> None:
        """After its time a plan is `expired`, and a swap of what was read before fails."""
        waits, runs = _plan("a", "planned"), _plan("b", "running")
        for record in (waits, runs):
            await store.add(record)
        self.now = _START + _TTL_S + 1
        found = await store.get("a")
        require(found == waits.with_(state="expired"), f"it must be `expired`, not {found}")
        require(await store.get("b") == runs, "a running plan does not expire")
        changed = await store.swap(waits, waits.with_(state="running"))
        require(not changed, "a plan that expired meanwhile was changed")

    @_with_store(capacity=2)
    async def test_swap_changes_only_what_is_as_it_was_read(self, store: PlanStore) -> None:
        """The one compare-and-set of the contract."""
        before = _plan("a", "planned")
        after = before.with_(state="running", data=_DATA)
        require(not await store.swap(before, after), "`swap` of a new plan is False")
        require(await store.get("a") is None, "`swap` must not add a plan")
        await store.add(before)
        require(await store.swap(before, after), "`swap` of an unchanged plan is True")
        require(await store.get("a") == after, "`swap` must replace the whole record")
        require(not await store.swap(before, after), "`swap` of a changed plan is False")
        await _require_count(store, 1)

    @_with_store(capacity=1)
    async def test_of_many_swaps_one_wins(self, store: PlanStore) -> None:
        """Fifty approvals at the same time start one run."""
        before = _plan("a", "planned")
        await store.add(before)
        wanted = [before.with_(state="running", data=str(n).encode()) for n in range(_TASKS)]
        won = await asyncio.gather(*(store.swap(before, after) for after in wanted))
        require(won.count(True) == 1, f"{won.count(True)} of {_TASKS} swaps won")
        require(await store.get("a") == wanted[won.index(True)], "another record is kept")

    @_with_store(capacity=1)
    async def test_many_tasks_for_one_place_admit_one(self, store: PlanStore) -> None:
        """Looking for room and taking it is one step."""
        plans = [_plan(str(number)) for number in range(_TASKS)]
        errors = await asyncio.gather(*(_refused(store.add(plan)) for plan in plans))
        admitted = errors.count(None)
        require(admitted == 1, f"{admitted} of {_TASKS} tasks got the one place")
        await _require_count(store, 1)

    @_with_store(capacity=1)
    async def test_remove_frees_a_place(self, store: PlanStore) -> None:
        """A plan that is forgotten makes room, whatever its state."""
        await store.add(_plan("a", "running"))
        require(await store.remove("a"), "`remove` of a kept plan is True")
        require(not await store.remove("a"), "`remove` of an unknown plan is False")
        require(await _refused(store.add(_plan("b"))) is None, "a free place must be free")

    @_with_store(capacity=3)
    async def test_limits_may_change_while_it_serves(self, store: PlanStore) -> None:
        """A smaller capacity drops nothing on its own; a shorter time holds at once."""
        for name in ("a", "b", "c"):
            await store.add(_plan(name, "planned"))
        store.capacity = 1
        await _require_count(store, 3)
        require(await _refused(store.add(_plan("d"))) is not None, "there is no room")
        store.ttl_s = 5.0
        self.now = _START + 6
        found = await store.get("a")
        require(found is not None and found.state == "expired", "the new time must hold")
        await store.add(_plan("d", created_s=self.now))
        await _require_count(store, 1)


def _plan(plan_id: str, state: PlanState = "planning", created_s: float = _START) -> PlanRecord:
    return PlanRecord(plan_id=plan_id, state=state, created_s=created_s)


async def _require_count(store: LatchStore | PlanStore, expected: int) -> None:
    found = await store.count()
    require(found == expected, f"`count` must be {expected}, not {found}")


async def _refused(storing: Awaitable[object]) -> LatchCapacityError | PlanCapacityError | None:
    try:
        await storing
    except (LatchCapacityError, PlanCapacityError) as error:
        return error
    return None
