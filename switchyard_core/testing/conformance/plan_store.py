"""The contract of plan stores as tests that anybody's store inherits."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from switchyard_core.errors import PlanCapacityError
from switchyard_core.stores import PlanRecord, PlanState, PlanStore
from switchyard_core.testing.conformance.bench import require

__all__ = ["PlanStoreConformance"]

#: Seconds after which plans expire in these tests.
TTL_S = 60.0
_START = 1_700_000_000.0
_TASKS = 50
_DATA = bytes(range(256)) * 16


class _Clock:
    """Says what a test sets it to."""

    def __init__(self) -> None:
        self.now = _START

    def __call__(self) -> float:
        return self.now


class PlanStoreConformance:
    """Inherit it in a test module, give :meth:`make`, and pytest runs the contract's tests.

    Each test runs on an event loop of its own and on a store of its own.

    Example:
        >>> class TestRedisPlans(PlanStoreConformance):
        ...     def make(self, capacity, ttl_s, clock):
        ...         return RedisPlans(capacity, ttl_s, clock, prefix=uuid4().hex)
    """

    def make(self, capacity: int, ttl_s: float, clock: Callable[[], float]) -> PlanStore:
        """Return a new, empty store.

        Args:
            capacity: Most plans.
            ttl_s: Seconds after which a plan that does not run expires.
            clock: Seconds since the epoch; the tests move it.
        """
        del capacity, ttl_s, clock
        msg = "say which store is tested: override `make`"
        raise AssertionError(msg)

    def test_store_is_a_plan_store(self) -> None:
        """It has every part of the contract, and says its limits."""
        store = self.make(3, TTL_S, _Clock())
        require(isinstance(store, PlanStore), "the store lacks a part of `PlanStore`")
        limits = (store.capacity, store.ttl_s)
        require(limits == (3, TTL_S), f"a store for 3 plans and {TTL_S} s says {limits}")

    def test_plan_is_kept_as_it_was_given(self) -> None:
        """Every field comes back, and a new store knows nothing."""

        async def check(store: PlanStore, _clock: _Clock) -> None:
            record = _plan("a").with_(digest="d", owner=("s", None), data=_DATA)
            require(await store.get("a") is None, "`get` of a new plan must be None")
            await store.add(record)
            require(await store.get("a") == record, "`get` must return the whole record")
            await _require_count(store, 1)

        self._run(2, check)

    def test_id_that_is_taken_is_refused(self) -> None:
        """A plan never takes another's place unnoticed."""

        async def check(store: PlanStore, _clock: _Clock) -> None:
            await store.add(_plan("a"))
            try:
                await store.add(_plan("a", "failed"))
            except ValueError:
                refused = True
            else:
                refused = False
            require(refused, "`add` with an id that is taken must raise ValueError")
            require(await store.get("a") == _plan("a"), "the plan that was there changed")

        self._run(2, check)

    def test_full_store_refuses_new_plans_and_serves_those_it_has(self) -> None:
        """A plan that is made, waits or runs is never dropped."""

        async def check(store: PlanStore, _clock: _Clock) -> None:
            kept = [_plan("a", "planning"), _plan("b", "planned"), _plan("c", "running")]
            for record in kept:
                await store.add(record)
            error = await _refused(store, _plan("d"))
            require(error is not None, "a full store must raise PlanCapacityError")
            told = error is not None and (error.status, error.code) == (400, "plan_capacity")
            require(told, "raise what `switchyard_core.stores.plan_capacity_error` returns")
            for record in kept:
                require(await store.get(record.plan_id) == record, "a plan was dropped")
            require(await store.get("d") is None, "the refused plan was kept")

        self._run(3, check)

    def test_expired_plans_go_first_and_then_the_oldest_that_ended(self) -> None:
        """What is needed least makes room."""

        async def check(store: PlanStore, clock: _Clock) -> None:
            await store.add(_plan("expired", "planned", _START - 10))
            await store.add(_plan("new end", "failed", _START + 50))
            await store.add(_plan("old end", "completed", _START + 40))
            await store.add(_plan("waits", "planned", _START + 40))
            clock.now = _START + 55
            for number, gone in enumerate(("expired", "old end", "new end")):
                await store.add(_plan(f"new {number}", created_s=clock.now))
                require(await store.get(gone) is None, f"`{gone}` must go as number {number}")
                await _require_count(store, 4)
            require(await _refused(store, _plan("late")) is not None, "nothing more may go")

        self._run(4, check)

    def test_plan_that_waits_expires_and_one_that_runs_does_not(self) -> None:
        """After its time a plan reads `expired`; whoever read it before cannot change it."""

        async def check(store: PlanStore, clock: _Clock) -> None:
            waits, runs = _plan("a", "planned"), _plan("b", "running")
            for record in (waits, runs):
                await store.add(record)
            clock.now = _START + TTL_S + 1
            found = await store.get("a")
            require(found == waits.with_(state="expired"), f"it must be `expired`, not {found}")
            require(await store.get("b") == runs, "a running plan does not expire")
            changed = await store.swap(waits, waits.with_(state="running"))
            require(not changed, "a plan that expired meanwhile was changed")

        self._run(2, check)

    def test_swap_changes_only_what_is_as_it_was_read(self) -> None:
        """The one compare-and-set of the contract."""

        async def check(store: PlanStore, _clock: _Clock) -> None:
            before = _plan("a", "planned")
            after = before.with_(state="running", data=_DATA)
            require(not await store.swap(before, after), "`swap` of a new plan is False")
            require(await store.get("a") is None, "`swap` must not add a plan")
            await store.add(before)
            require(await store.swap(before, after), "`swap` of an unchanged plan is True")
            require(await store.get("a") == after, "`swap` must replace the whole record")
            require(not await store.swap(before, after), "`swap` of a changed plan is False")
            await _require_count(store, 1)

        self._run(2, check)

    def test_of_many_swaps_one_wins(self) -> None:
        """Fifty approvals at the same time start one run."""

        async def check(store: PlanStore, _clock: _Clock) -> None:
            before = _plan("a", "planned")
            await store.add(before)
            wanted = [before.with_(state="running", data=str(n).encode()) for n in range(_TASKS)]
            won = await asyncio.gather(*(store.swap(before, after) for after in wanted))
            require(won.count(True) == 1, f"{won.count(True)} of {_TASKS} swaps won")
            require(await store.get("a") == wanted[won.index(True)], "another record is kept")

        self._run(1, check)

    def test_many_tasks_for_one_place_admit_one(self) -> None:
        """Looking for room and taking it is one step."""

        async def check(store: PlanStore, _clock: _Clock) -> None:
            refused = await asyncio.gather(
                *(_refused(store, _plan(str(number))) for number in range(_TASKS))
            )
            admitted = refused.count(None)
            require(admitted == 1, f"{admitted} of {_TASKS} tasks got the one place")
            await _require_count(store, 1)

        self._run(1, check)

    def test_remove_frees_a_place(self) -> None:
        """A plan that is forgotten makes room, whatever its state."""

        async def check(store: PlanStore, _clock: _Clock) -> None:
            await store.add(_plan("a", "running"))
            require(await store.remove("a"), "`remove` of a kept plan is True")
            require(not await store.remove("a"), "`remove` of an unknown plan is False")
            require(await _refused(store, _plan("b")) is None, "a free place must be free")

        self._run(1, check)

    def test_limits_may_change_while_it_serves(self) -> None:
        """A smaller capacity drops nothing by itself; a shorter time holds at once."""

        async def check(store: PlanStore, clock: _Clock) -> None:
            for name in ("a", "b", "c"):
                await store.add(_plan(name, "planned"))
            store.capacity = 1
            await _require_count(store, 3)
            require(await _refused(store, _plan("d")) is not None, "there is no room")
            store.ttl_s = 5.0
            clock.now = _START + 6
            found = await store.get("a")
            require(found is not None and found.state == "expired", "the new time must hold")
            await store.add(_plan("d", created_s=clock.now))
            await _require_count(store, 1)

        self._run(3, check)

    def _run(self, capacity: int, check: Callable[[PlanStore, _Clock], Awaitable[None]]) -> None:
        async def run() -> None:
            # Made inside: a store may hold connections of the loop.
            clock = _Clock()
            await check(self.make(capacity, TTL_S, clock), clock)

        asyncio.run(run())


def _plan(plan_id: str, state: PlanState = "planning", created_s: float = _START) -> PlanRecord:
    return PlanRecord(plan_id=plan_id, state=state, created_s=created_s)


async def _require_count(store: PlanStore, expected: int) -> None:
    found = await store.count()
    require(found == expected, f"`count` must be {expected}, not {found}")


async def _refused(store: PlanStore, record: PlanRecord) -> PlanCapacityError | None:
    try:
        await store.add(record)
    except PlanCapacityError as error:
        return error
    return None
