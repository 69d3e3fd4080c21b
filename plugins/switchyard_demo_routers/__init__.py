"""Seven small route types: to begin with, to compare with, and to copy from.

``noop`` has one target, ``passthrough`` lets the client choose, ``random`` draws lots, and
``rules`` decides by conditions on the request. ``llm_classifier`` asks a judge model,
``fallback`` tries the next target when one fails, and ``plan_review`` plans, executes, and lets
the planner look again.
"""

from __future__ import annotations

from collections.abc import Iterable

from switchyard_core import RouteType, hookimpl
from switchyard_demo_routers.fallback import FallbackOptions, FallbackRouter
from switchyard_demo_routers.llm_classifier import LlmClassifierOptions, LlmClassifierRouter
from switchyard_demo_routers.noop import NoopOptions, NoopRouter
from switchyard_demo_routers.passthrough import PassthroughOptions, PassthroughRouter
from switchyard_demo_routers.plan_review import PlanReviewRouter
from switchyard_demo_routers.random import RandomOptions, RandomRouter
from switchyard_demo_routers.reviews import PlanReviewOptions
from switchyard_demo_routers.rules import RulesOptions, RulesRouter

__all__ = [
    "FallbackOptions",
    "FallbackRouter",
    "LlmClassifierOptions",
    "LlmClassifierRouter",
    "NoopOptions",
    "NoopRouter",
    "PassthroughOptions",
    "PassthroughRouter",
    "PlanReviewOptions",
    "PlanReviewRouter",
    "RandomOptions",
    "RandomRouter",
    "RulesOptions",
    "RulesRouter",
    "switchyard_route_types",
]


@hookimpl
def switchyard_route_types() -> Iterable[RouteType]:
    """Return the seven route types."""
    return (
        RouteType(
            name="noop",
            options=NoopOptions,
            router=NoopRouter,
            summary="sends every request to one target",
        ),
        RouteType(
            name="passthrough",
            options=PassthroughOptions,
            router=PassthroughRouter,
            summary="sends a request to the target that the client names as its model",
        ),
        RouteType(
            name="random",
            options=RandomOptions,
            router=RandomRouter,
            summary="draws a target by weights, per session or per request",
        ),
        RouteType(
            name="rules",
            options=RulesOptions,
            router=RulesRouter,
            summary="sends a request to the target of the first rule that holds for it",
        ),
        RouteType(
            name="llm_classifier",
            options=LlmClassifierOptions,
            router=LlmClassifierRouter,
            summary="asks a judge model whether a task needs the strong target or the weak one",
        ),
        RouteType(
            name="fallback",
            options=FallbackOptions,
            router=FallbackRouter,
            summary="sends a request to the first target, and after a failure to the next",
        ),
        RouteType(
            name="plan_review",
            options=PlanReviewOptions,
            router=PlanReviewRouter,
            summary="plan_execute whose planner looks again after some turns or failed results",
        ),
    )
