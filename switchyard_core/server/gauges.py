"""What a route's stores and tools stand at, read when somebody asks for the metrics."""

from __future__ import annotations

from switchyard_core.engine.routes import RouteRuntime
from switchyard_core.server.metrics import Gauge

__all__ = ["route_gauges"]


async def route_gauges(name: str, runtime: RouteRuntime) -> list[Gauge]:
    """Return the gauges of one route: those of the stores that it has, and its tools' calls.

    Args:
        name: Name of the route.
        runtime: What serves it.
    """
    labels = (("route", name),)
    gauges: list[Gauge] = []
    if runtime.store is not None:
        gauges += [
            Gauge(
                name="switchyard_latches",
                help="Sessions that are latched.",
                labels=labels,
                value=await runtime.store.count(),
            ),
            Gauge(
                name="switchyard_latch_capacity",
                help="Sessions that can be latched.",
                labels=labels,
                value=runtime.store.capacity,
            ),
            Gauge(
                name="switchyard_requests_without_identity",
                help="Requests so far that brought no session id.",
                labels=labels,
                value=runtime.without_identity,
            ),
        ]
    if runtime.plans is not None:
        gauges += [
            Gauge(
                name="switchyard_plans",
                help="Plans that are kept, those that ended or expired among them.",
                labels=labels,
                value=await runtime.plans.count(),
            ),
            Gauge(
                name="switchyard_plan_capacity",
                help="Plans that can be kept.",
                labels=labels,
                value=runtime.plans.capacity,
            ),
        ]
    gauges += [
        Gauge(
            name="switchyard_tool_calls_total",
            help="Calls of tools that models asked for, by what came of them.",
            labels=(*labels, ("tool", tool), ("result", word)),
            value=count,
            kind="counter",
        )
        for (tool, word), count in sorted(runtime.tool_calls.items())
    ]
    return gauges
