"""What routes remember: identities that were handed off, and plans that wait for approval."""

from switchyard_core.stores.latches import LatchStore, capacity_error
from switchyard_core.stores.memory import MemoryLatchStore, MemoryPlanStore
from switchyard_core.stores.plans import (
    PENDING,
    PlanRecord,
    PlanState,
    PlanStore,
    plan_capacity_error,
)

__all__ = [
    "PENDING",
    "LatchStore",
    "MemoryLatchStore",
    "MemoryPlanStore",
    "PlanRecord",
    "PlanState",
    "PlanStore",
    "capacity_error",
    "plan_capacity_error",
]
