"""The default latch store: a bounded table in this process, gone with a restart."""

from __future__ import annotations

import threading

from switchyard_core.decision import LatchRecord
from switchyard_core.identity import Identity
from switchyard_core.stores.latches.base import capacity_error

__all__ = ["MemoryLatchStore"]


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
