"""Four small route types: to begin with, to compare with, and to copy from.

``noop`` has one target, ``passthrough`` lets the client choose, ``random`` draws lots, and
``rules`` decides by conditions on the request.
"""

from __future__ import annotations

from collections.abc import Iterable

from switchyard_core import RouteType, hookimpl
from switchyard_demo_routers.noop import NoopOptions, NoopRouter
from switchyard_demo_routers.passthrough import PassthroughOptions, PassthroughRouter
from switchyard_demo_routers.random import RandomOptions, RandomRouter
from switchyard_demo_routers.rules import RulesOptions, RulesRouter

__all__ = [
    "NoopOptions",
    "NoopRouter",
    "PassthroughOptions",
    "PassthroughRouter",
    "RandomOptions",
    "RandomRouter",
    "RulesOptions",
    "RulesRouter",
    "switchyard_route_types",
]


@hookimpl
def switchyard_route_types() -> Iterable[RouteType]:
    """Return the four route types."""
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
    )
