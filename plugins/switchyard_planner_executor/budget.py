"""Comparing what a plan may cost with what the policy allows."""

from __future__ import annotations

from switchyard_planner_executor.estimate import Estimate
from switchyard_planner_executor.options import PlannerExecutorOptions

__all__ = ["is_dear", "over_limit"]


def over_limit(estimate: Estimate, options: PlannerExecutorOptions) -> float | None:
    """Return the high estimate in US dollars if ``max_cost_usd`` forbids it, else ``None``."""
    cost, limit = estimate.cost_usd, options.max_cost_usd
    return None if limit is None or cost is None or cost.high <= limit else cost.high


def is_dear(estimate: Estimate, options: PlannerExecutorOptions) -> bool:
    """Return whether a plan is over ``approval_over_usd``; only with ``over_cost``."""
    if options.approval != "over_cost":
        return False
    cost, limit = estimate.cost_usd, options.approval_over_usd
    # Without a price nobody can say that it is cheap.
    return cost is None or limit is None or cost.high > limit
