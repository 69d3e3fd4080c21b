"""The contract of latch stores: which identities have been handed off."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from switchyard_core.decision import LatchRecord
from switchyard_core.errors import LatchCapacityError
from switchyard_core.identity import Identity

__all__ = ["LatchStore", "capacity_error"]


@runtime_checkable
class LatchStore(Protocol):
    """Remembers identities, exactly up to a capacity, never evicting one.

    One instance serves one route. All methods may be called from many tasks at once. A policy
    reload with another ``latch_capacity`` sets ``capacity`` while the store serves: a smaller
    one evicts nobody, and new identities are refused until enough slots are free.
    """

    capacity: int

    async def get(self, identity: Identity) -> LatchRecord | None:
        """Return the record of a latched identity, ``None`` when it is not latched."""

    async def latch(self, identity: Identity, record: LatchRecord) -> LatchRecord:
        """Latch an identity and return the record that won.

        The first writer wins: an identity that is latched already keeps its record.

        Raises:
            LatchCapacityError: The identity is new and the store is full; nothing changed.
        """

    async def update(self, identity: Identity, record: LatchRecord) -> bool:
        """Replace the record of a latched identity; return whether it was latched."""

    async def release(self, identity: Identity) -> bool:
        """Free an identity's slot, for a root its sub-agents' too; return whether one was."""

    async def count(self) -> int:
        """Return how many identities are latched."""


def capacity_error(capacity: int) -> LatchCapacityError:
    """Return the error for a new identity at a full store, the same from every store."""
    return LatchCapacityError(
        message=(
            f"switchyard is at capacity: all {capacity} session slots of this route are latched, "
            "so this session cannot be handed to the efficient model; nothing was sent to a "
            "provider. Raise `latch_capacity` of the route and reload the policy, by SIGHUP or "
            "`--reload`: latched sessions keep their slots. Or free a slot by "
            "`x-switchyard-session-final: true` on the last request of a session. Then send this "
            "request again with its history intact."
        ),
        code="latch_capacity",
        status=400,
        headers={"x-should-retry": "false"},
    )
