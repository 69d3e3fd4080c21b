"""Plan stores: plans that wait for approval, and what became of them."""

from switchyard_core.plans.base import (
    PENDING,
    PlanRecord,
    PlanState,
    PlanStore,
    plan_capacity_error,
)
from switchyard_core.plans.memory import MemoryPlanStore

__all__ = [
    "PENDING",
    "MemoryPlanStore",
    "PlanRecord",
    "PlanState",
    "PlanStore",
    "plan_capacity_error",
]
