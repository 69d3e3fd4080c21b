"""The default stores: bounded tables in this process, gone with a restart."""

from __future__ import annotations

import threading
from collections.abc import Callable

from switchyard_core.decision import LatchRecord
from switchyard_core.identity import Identity
from switchyard_core.stores.latches import capacity_error
from switchyard_core.stores.plans import PENDING, PlanRecord, plan_capacity_error

__all__ = ["MemoryLatchStore", "MemoryPlanStore"]


class MemoryLatchStore:
    """Exact under threads and tasks: every change happens under one lock.

    Args:
        capacity: Most identities, at least 1.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._lock = threading.Lock()
        self._records: dict[tuple[str, str | None], LatchRecord] = {}
        # Sub-agents by session, so that a root's release needs no scan of the table.
        self._agents: dict[str, set[str]] = {}

    async def get(self, identity: Identity) -> LatchRecord | None:
        """Return the record of a latched identity."""
        return self._records.get(identity.key)

    async def latch(self, identity: Identity, record: LatchRecord) -> LatchRecord:
        """Latch an identity; the first record wins."""
        with self._lock:
            present = self._records.get(identity.key)
            if present is not None:
                return present
            if len(self._records) >= self.capacity:
                raise capacity_error(self.capacity)
            self._records[identity.key] = record
            if identity.agent is not None:
                self._agents.setdefault(identity.session, set()).add(identity.agent)
            return record

    async def update(self, identity: Identity, record: LatchRecord) -> bool:
        """Replace the record of a latched identity."""
        with self._lock:
            if identity.key not in self._records:
                return False
            self._records[identity.key] = record
            return True

    async def release(self, identity: Identity) -> bool:
        """Free an identity's slot and, for a root, its sub-agents'."""
        with self._lock:
            released = self._records.pop(identity.key, None) is not None
            if identity.agent is None:
                for agent in self._agents.pop(identity.session, ()):
                    released |= self._records.pop((identity.session, agent), None) is not None
            else:
                agents = self._agents.get(identity.session, set())
                agents.discard(identity.agent)
                if not agents:
                    self._agents.pop(identity.session, None)
            return released

    async def count(self) -> int:
        """Return how many identities are latched."""
        return len(self._records)


class MemoryPlanStore:
    """Exact under threads and tasks: every change happens under one lock.

    Plans stay until their place is needed, so that a client learns as long as possible that its
    plan expired or ended.

    Args:
        capacity: Most plans, at least 1.
        ttl_s: Seconds after which a plan that does not run expires.
        clock: Seconds since the epoch.
    """

    def __init__(self, capacity: int, ttl_s: float, clock: Callable[[], float]) -> None:
        self.capacity = capacity
        self.ttl_s = ttl_s
        self._clock = clock
        self._lock = threading.Lock()
        # In the order in which they were added.
        self._records: dict[str, PlanRecord] = {}

    async def add(self, record: PlanRecord) -> None:
        """Keep a new plan; others make room for it, expired ones first."""
        with self._lock:
            if record.plan_id in self._records:
                msg = f"the plan id `{record.plan_id}` is taken"
                raise ValueError(msg)
            excess = len(self._records) + 1 - self.capacity
            if excess > 0:
                droppable = self._droppable()
                if len(droppable) < excess:
                    raise plan_capacity_error(self.capacity)
                for plan_id in droppable[:excess]:
                    del self._records[plan_id]
            self._records[record.plan_id] = record

    async def get(self, plan_id: str) -> PlanRecord | None:
        """Return a plan in its present state."""
        with self._lock:
            return self._now(plan_id)

    async def swap(self, before: PlanRecord, after: PlanRecord) -> bool:
        """Replace a record if it is still as it was read; both must be of one plan."""
        if before.plan_id != after.plan_id:
            msg = f"`{after.plan_id}` cannot take the place of `{before.plan_id}`"
            raise ValueError(msg)
        with self._lock:
            # A plan that expired since it was read is not as it was.
            if self._now(before.plan_id) != before:
                return False
            self._records[before.plan_id] = after
            return True

    async def remove(self, plan_id: str) -> bool:
        """Forget a plan."""
        with self._lock:
            return self._records.pop(plan_id, None) is not None

    async def count(self) -> int:
        """Return how many plans are kept, those that expired or ended among them."""
        return len(self._records)

    def _now(self, plan_id: str) -> PlanRecord | None:
        record = self._records.get(plan_id)
        if record is not None and record.state == "planned" and self._expired(record):
            return record.with_(state="expired")
        return record

    def _expired(self, record: PlanRecord) -> bool:
        if record.state == "running":
            return False
        return record.state == "expired" or self._clock() - record.created_s >= self.ttl_s

    def _droppable(self) -> list[str]:
        """Return the plans that may go: expired ones, then ended ones, oldest first."""
        found = [
            (not expired, record.created_s, plan_id)
            for plan_id, record in self._records.items()
            for expired in (self._expired(record),)
            if expired or record.state not in PENDING
        ]
        # A stable sort: plans of one moment go in the order in which they came.
        return [plan_id for *_, plan_id in sorted(found, key=lambda row: row[:2])]
