"""Plan on a capable model, execute on an efficient one.

Until the agent edits a file, every request goes to the capable target with a planning
instruction. The first edit moves the whole conversation to the efficient target, and the
session stays there.
"""

from __future__ import annotations

from collections.abc import Iterable

from switchyard_core import RouteType, hookimpl
from switchyard_plan_execute.options import PlanExecuteOptions
from switchyard_plan_execute.router import PlanExecuteRouter

__all__ = ["PlanExecuteOptions", "PlanExecuteRouter", "switchyard_route_types"]


@hookimpl
def switchyard_route_types() -> Iterable[RouteType]:
    """Return the route type ``plan_execute``."""
    return (
        RouteType(
            name="plan_execute",
            options=PlanExecuteOptions,
            router=PlanExecuteRouter,
            summary="plans on a capable model; after the first edit an efficient one takes over "
            "(not `planner_executor`)",
        ),
    )
