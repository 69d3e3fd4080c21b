"""The contract of plan stores: which plans wait for approval, and what became of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, Self, runtime_checkable

from switchyard_core.errors import PlanCapacityError

__all__ = ["PENDING", "PlanRecord", "PlanState", "PlanStore", "plan_capacity_error"]

PlanState = Literal["planning", "planned", "running", "completed", "failed", "rejected", "expired"]

#: States of plans that a full store must keep.
PENDING: frozenset[str] = frozenset({"planning", "planned", "running"})


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRecord:
    """What a plan store keeps of one plan.

    Args:
        plan_id: Its id, unique in the store.
        digest: Digest of the plan and of what it would be run with, ``""`` while it is made.
        state: Its state. Only a ``planned`` one can be approved.
        owner: Key of the identity that asked for it, ``None`` when the request named none.
        created_s: Seconds since the epoch; a plan that is not ``running`` expires after the
            store's time from here.
        data: What belongs to the router.
    """

    plan_id: str
    digest: str = ""
    state: PlanState = "planning"
    owner: tuple[str, str | None] | None = None
    created_s: float = 0.0
    data: bytes = b""

    def with_(self, **changes: Any) -> Self:
        """Return a copy with some fields replaced."""
        return replace(self, **changes)


@runtime_checkable
class PlanStore(Protocol):
    """Keeps plans, exactly up to a capacity.

    One instance serves one route. All methods may be called from many tasks at once. When a new
    plan needs room, expired plans go first, then those that ended, oldest first; a plan that is
    being made, waits or runs is never dropped. A reload sets ``capacity`` and ``ttl_s`` while
    the store serves.
    """

    capacity: int
    ttl_s: float

    async def add(self, record: PlanRecord) -> None:
        """Keep a new plan.

        Raises:
            PlanCapacityError: The store is full of plans that must be kept; nothing changed.
            ValueError: The id is taken.
        """

    async def get(self, plan_id: str) -> PlanRecord | None:
        """Return a plan in its present state, ``None`` when it is not kept.

        A ``planned`` one past its time has the state ``expired``.
        """

    async def swap(self, before: PlanRecord, after: PlanRecord) -> bool:
        """Replace a record if it is still as it was read, in one step; return whether it was.

        Of many callers with the same ``before`` one wins.
        """

    async def remove(self, plan_id: str) -> bool:
        """Forget a plan; return whether it was kept."""

    async def count(self) -> int:
        """Return how many plans are kept."""


def plan_capacity_error(capacity: int) -> PlanCapacityError:
    """Return the error for a new plan at a full store, the same from every store."""
    word = "plan" if capacity == 1 else "plans"
    return PlanCapacityError(
        message=(
            f"switchyard is at capacity: {capacity} {word} of this route wait for approval or "
            "run; no model was asked. Approve or reject one of them, or wait until one expires."
        ),
        code="plan_capacity",
        status=400,
        headers={"x-should-retry": "false"},
    )
