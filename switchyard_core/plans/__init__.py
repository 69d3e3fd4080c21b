"""Plan stores: plans that wait for approval, and what became of them."""

from switchyard_core.plans.base import (
    PENDING,
    PlanRecord,
    PlanState,
    PlanStore,
    plan_capacity_error,
)

__all__ = ["PENDING", "PlanRecord", "PlanState", "PlanStore", "plan_capacity_error"]
