"""Deciding many requests one after the other as a server would, with nothing changed outside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from switchyard_core.decision import Latch, LatchRecord, ReleaseAfterSuccess, Remember, UpdateRecord
from switchyard_core.errors import LatchCapacityError, RequestError
from switchyard_core.explain.explanation import Explanation, Question, explain_or_ask
from switchyard_core.identity import Identity
from switchyard_core.request import Request
from switchyard_core.stores import LatchStore, capacity_error
from switchyard_core.switchyard import Switchyard

__all__ = ["Rehearsal", "RehearsalStore", "Rehearsed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsed:
    """What became of one request.

    Args:
        found: Its explanation, or the question at which it ends; ``None`` when it is refused
            before there is one.
        error: Why a server would refuse it, ``None`` when it would not.
        released: Whether it frees its session's slot when it succeeds.
    """

    found: Explanation | Question | None
    error: RequestError | None = None
    released: bool = False


class Rehearsal:
    """Plays requests in order; each finds the latches that those before it have set.

    Args:
        engine: What decides; neither it nor its latch stores are changed, and nobody is called.
        replies: Texts of replies by target, as for
            :func:`~switchyard_core.explain.explanation.explain_or_ask`.
    """

    def __init__(
        self, engine: Switchyard, replies: Mapping[str, Sequence[str]] | None = None
    ) -> None:
        self._engine = engine.successor(engine.policy)
        self._replies = replies
        for runtime in self._engine.runtimes.values():
            if runtime.store is not None:
                runtime.store = RehearsalStore(runtime.store)

    async def play(self, request: Request) -> Rehearsed:
        """Decide the next request; every call is taken to succeed.

        Raises:
            PluginError: A router broke its contract.
        """
        try:
            found = await explain_or_ask(self._engine, request, self._replies)
        except RequestError as error:
            return Rehearsed(found=None, error=error)
        if isinstance(found, Question):
            return Rehearsed(found=found)
        released = False
        for effect in found.decision.effects:
            if isinstance(effect, ReleaseAfterSuccess):
                released |= await self._release(found.decision.route, effect.identity)
            else:
                try:
                    await self._keep(found.decision.route, effect)
                except LatchCapacityError as error:
                    return Rehearsed(found=found, error=error)
        return Rehearsed(found=found, released=released)

    async def _keep(self, route: str, effect: Latch | UpdateRecord | Remember) -> None:
        store = self._engine.runtimes[route].store
        if store is None:
            return
        if isinstance(effect, Latch):
            await store.latch(effect.identity, effect.record)
        elif not await store.update(effect.identity, effect.record) and isinstance(
            effect, Remember
        ):
            try:
                await store.latch(effect.identity, effect.record)
            except LatchCapacityError:
                # The router can do without; the explanation of a server has a warning then.
                return

    async def _release(self, route: str, identity: Identity) -> bool:
        runtime = self._engine.runtimes[route]
        released = runtime.store is not None and await runtime.store.release(identity)
        if runtime.route.subagents is not None and identity.agent is None:
            released |= await self._release(runtime.route.subagents, identity)
        return released


class RehearsalStore:
    """A latch store that reads through to another one and keeps all changes to itself.

    Args:
        inner: Only ``get`` and ``count`` of it are called.
    """

    def __init__(self, inner: LatchStore) -> None:
        self.capacity = inner.capacity
        self._inner = inner
        self._own: dict[tuple[str, str | None], LatchRecord] = {}
        # Slots of the other store that count as free here.
        self._freed: set[tuple[str, str | None]] = set()
        self._ended: set[str] = set()
        self._more = 0

    async def get(self, identity: Identity) -> LatchRecord | None:
        """Return the record of an identity as it is after all that was played."""
        own = self._own.get(identity.key)
        if own is not None or identity.key in self._freed:
            return own
        if identity.agent is not None and identity.session in self._ended:
            return None
        return await self._inner.get(identity)

    async def latch(self, identity: Identity, record: LatchRecord) -> LatchRecord:
        """Latch an identity here; the first record wins."""
        present = await self.get(identity)
        if present is not None:
            return present
        if await self.count() >= self.capacity:
            raise capacity_error(self.capacity)
        self._own[identity.key] = record
        self._more += 1
        return record

    async def update(self, identity: Identity, record: LatchRecord) -> bool:
        """Replace the record of a latched identity here."""
        if await self.get(identity) is None:
            return False
        self._own[identity.key] = record
        return True

    async def release(self, identity: Identity) -> bool:
        """Free an identity's slot here and, for a root, those of its known sub-agents."""
        released = await self._free(identity)
        if identity.agent is None:
            for session, agent in list(self._own):
                if session == identity.session and agent is not None:
                    released |= await self._free(Identity(session=session, agent=agent))
            self._ended.add(identity.session)
        return released

    async def _free(self, identity: Identity) -> bool:
        if await self.get(identity) is None:
            return False
        self._own.pop(identity.key, None)
        self._freed.add(identity.key)
        self._more -= 1
        return True

    async def count(self) -> int:
        """Return how many identities are latched after all that was played."""
        return await self._inner.count() + self._more
