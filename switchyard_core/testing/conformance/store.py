"""The contract of latch stores as tests that anybody's store inherits."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from switchyard_core.decision import LatchRecord
from switchyard_core.errors import LatchCapacityError
from switchyard_core.identity import Identity
from switchyard_core.stores import LatchStore
from switchyard_core.testing.conformance.bench import require

__all__ = ["LatchStoreConformance"]

_ROOT = Identity(session="s")
_AGENT = Identity(session="s", agent="a")
_OTHER = Identity(session="t")
_FIRST = LatchRecord(handoff_key=b"0" * 16)
_SECOND = LatchRecord(handoff_key=b"1" * 16, drop_opaque=True, data=bytes(range(256)) * 4)
_TASKS = 50


class LatchStoreConformance:
    """Inherit it in a test module, give :meth:`make`, and pytest runs the contract's tests.

    Each test runs on an event loop of its own and on a store of its own.

    Example:
        >>> class TestRedisStore(LatchStoreConformance):
        ...     def make(self, capacity):
        ...         return RedisStore(capacity, prefix=uuid4().hex)
    """

    def make(self, capacity: int) -> LatchStore:
        """Return a new, empty store.

        Args:
            capacity: Most identities.
        """
        del capacity
        msg = "say which store is tested: override `make`"
        raise AssertionError(msg)

    def test_store_is_a_latch_store(self) -> None:
        """It has every method of the contract, and says its capacity."""
        store = self.make(3)
        require(isinstance(store, LatchStore), "the store lacks a method of `LatchStore`")
        require(store.capacity == 3, f"a store for 3 identities says {store.capacity}")

    def test_new_identity_is_not_latched(self) -> None:
        """An empty store knows nobody."""

        async def check(store: LatchStore) -> None:
            require(await store.get(_ROOT) is None, "`get` of a new identity must be None")
            await _require_count(store, 0)

        self._run(1, check)

    def test_first_record_wins(self) -> None:
        """Of two requests of one identity the first one's record counts, for both."""

        async def check(store: LatchStore) -> None:
            for record in (_FIRST, _SECOND):
                won = await store.latch(_ROOT, record)
                require(won == _FIRST, f"`latch` must return the first record, not {won}")
            require(await store.get(_ROOT) == _FIRST, "the second record replaced the first one")
            await _require_count(store, 1)

        self._run(2, check)

    def test_full_store_refuses_new_identities_and_serves_known_ones(self) -> None:
        """No identity is ever evicted."""

        async def check(store: LatchStore) -> None:
            await store.latch(_ROOT, _FIRST)
            error = await _refused(store, _OTHER)
            require(error is not None, "a full store must raise LatchCapacityError")
            told = error is not None and (error.status, error.code) == (400, "latch_capacity")
            require(told, "raise what `switchyard_core.stores.capacity_error` returns")
            require(await store.get(_OTHER) is None, "the refused identity was latched")
            won = await store.latch(_ROOT, _SECOND)
            require(won == _FIRST, "a full store must serve the identities that it has")

        self._run(1, check)

    def test_update_changes_only_the_latched(self) -> None:
        """A record of up to 1024 bytes of data is replaced, and only where there is one."""

        async def check(store: LatchStore) -> None:
            await store.latch(_ROOT, _FIRST)
            require(await store.update(_ROOT, _SECOND), "`update` of a latched one is True")
            require(not await store.update(_OTHER, _SECOND), "`update` of a new one is False")
            require(await store.get(_ROOT) == _SECOND, "`update` must replace the whole record")
            require(await store.get(_OTHER) is None, "`update` must not latch")

        self._run(2, check)

    def test_root_and_agent_are_independent(self) -> None:
        """A sub-agent's latch is not its session's."""

        async def check(store: LatchStore) -> None:
            await store.latch(_AGENT, _FIRST)
            require(await store.get(_ROOT) is None, "an agent's latch is not the root's")
            require(await store.release(_AGENT), "`release` of a latched one is True")
            require(not await store.release(_AGENT), "`release` of a free one is False")
            await _require_count(store, 0)

        self._run(2, check)

    def test_releasing_a_root_releases_its_agents_only(self) -> None:
        """The end of a session frees what it held, and nothing else."""

        async def check(store: LatchStore) -> None:
            for identity in (_ROOT, _AGENT, Identity(session="s", agent="b"), _OTHER):
                await store.latch(identity, _FIRST)
            require(await store.release(_ROOT), "`release` of a latched root is True")
            await _require_count(store, 1)
            require(await store.get(_OTHER) == _FIRST, "another session was released")

        self._run(4, check)

    def test_releasing_an_unlatched_root_still_frees_its_agents(self) -> None:
        """A session that only planned may have agents that executed."""

        async def check(store: LatchStore) -> None:
            await store.latch(_AGENT, _FIRST)
            require(await store.release(_ROOT), "`release` is True when an agent was freed")
            await _require_count(store, 0)

        self._run(2, check)

    def test_release_frees_a_slot(self) -> None:
        """After a release there is room for a new identity."""

        async def check(store: LatchStore) -> None:
            await store.latch(_ROOT, _FIRST)
            await store.release(_ROOT)
            require(await _refused(store, _OTHER) is None, "a released slot must be free")

        self._run(1, check)

    def test_identities_with_joined_names_do_not_collide(self) -> None:
        """Session and agent are two values, whatever separator stands in them."""

        async def check(store: LatchStore) -> None:
            await store.latch(Identity(session="a", agent="b:c"), _FIRST)
            for session, agent in (("a:b", "c"), ("a", "b"), ("a:b:c", None), ("ab", ":c")):
                found = await store.get(Identity(session=session, agent=agent))
                require(found is None, f"`a`, `b:c` was taken for `{session}`, `{agent}`")

        self._run(2, check)

    def test_many_tasks_for_one_slot_admit_one(self) -> None:
        """Looking for room and taking it is one step."""

        async def check(store: LatchStore) -> None:
            identities = [Identity(session=str(number)) for number in range(_TASKS)]
            refused = await asyncio.gather(*(_refused(store, each) for each in identities))
            admitted = refused.count(None)
            require(admitted == 1, f"{admitted} of {_TASKS} tasks got the one slot: make it atomic")
            await _require_count(store, 1)

        self._run(1, check)

    def test_many_tasks_of_one_identity_get_one_record(self) -> None:
        """Everybody learns which record won."""

        async def check(store: LatchStore) -> None:
            records = [LatchRecord(data=str(number).encode()) for number in range(_TASKS)]
            won = await asyncio.gather(*(store.latch(_ROOT, record) for record in records))
            told = {record.data for record in won}
            require(len(told) == 1, f"{len(told)} different records won: make it atomic")
            require(await store.get(_ROOT) == won[0], "`latch` returned a record that lost")

        self._run(2, check)

    def _run(self, capacity: int, check: Callable[[LatchStore], Awaitable[None]]) -> None:
        async def run() -> None:
            # Made inside: a store may hold connections of the loop.
            await check(self.make(capacity))

        asyncio.run(run())


async def _require_count(store: LatchStore, expected: int) -> None:
    found = await store.count()
    require(found == expected, f"`count` must be {expected}, not {found}")


async def _refused(store: LatchStore, identity: Identity) -> LatchCapacityError | None:
    try:
        await store.latch(identity, _FIRST)
    except LatchCapacityError as error:
        return error
    return None
