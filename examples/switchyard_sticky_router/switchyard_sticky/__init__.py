"""The route type ``sticky``: a session stays with one of several targets."""

from __future__ import annotations

from collections.abc import Iterable

from switchyard_core import RouteType, hookimpl

from switchyard_sticky.router import StickyOptions, StickyRouter

__all__ = ["StickyOptions", "StickyRouter", "switchyard_route_types"]


@hookimpl
def switchyard_route_types() -> Iterable[RouteType]:
    """Return the route type."""
    return (
        RouteType(
            name="sticky",
            options=StickyOptions,
            router=StickyRouter,
            summary="keeps each session on one of several targets",
        ),
    )
