"""Plan stores: plans that wait for approval, and what became of them."""

from switchyard_core.stores.plans.base import (
    PENDING,
    PlanRecord,
    PlanState,
    PlanStore,
    plan_capacity_error,
)
from switchyard_core.stores.plans.memory import MemoryPlanStore

__all__ = [
    "PENDING",
    "MemoryPlanStore",
    "PlanRecord",
    "PlanState",
    "PlanStore",
    "plan_capacity_error",
]
