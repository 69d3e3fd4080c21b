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

__all__ = ["switchyard_route_types"]


_SUMMARIES = {
    "noop": "sends every request to one target",
    "passthrough": "sends a request to the target that the client names as its model",
    "random": "draws a target by weights, per session or per request",
    "rules": "sends a request to the target of the first rule that holds for it",
    "llm_classifier": "asks a judge model whether a task needs the strong target or the weak one",
    "fallback": "sends a request to the first target, and after a failure to the next",
    "plan_review": "plan_execute whose planner looks again after some turns or failed results",
}


@hookimpl
def switchyard_route_types() -> Iterable[RouteType]:
    """Return the seven route types."""
    return tuple(
        RouteType(name=name, options=options, router=router, summary=_SUMMARIES[name])
        for name, options, router in (
            ("noop", NoopOptions, NoopRouter),
            ("passthrough", PassthroughOptions, PassthroughRouter),
            ("random", RandomOptions, RandomRouter),
            ("rules", RulesOptions, RulesRouter),
            ("llm_classifier", LlmClassifierOptions, LlmClassifierRouter),
            ("fallback", FallbackOptions, FallbackRouter),
            ("plan_review", PlanReviewOptions, PlanReviewRouter),
        )
    )
