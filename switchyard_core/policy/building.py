"""Tries out the router that a plugin gives to a route: it is built once.

A policy is not in order when serving it fails at once, so the check does what serving does
first. What was built is thrown away. (Latch stores are not built: one may connect to a server.)
"""

from __future__ import annotations

from switchyard_core.plugins.loading import router_problem
from switchyard_core.policy.draft import Draft
from switchyard_core.policy.model import Route
from switchyard_core.policy.secrets import one_line

__all__ = ["check_router"]


def check_router(draft: Draft, route: Route) -> bool:
    """Report a router that cannot be built or does not keep its contract.

    Args:
        draft: The policy.
        route: A route that is in order otherwise.

    Returns:
        Whether the router can be used.
    """
    name = route.type.name
    try:
        router = route.type.router(route.options)
    except Exception as error:  # noqa: BLE001 - a plugin's router may raise anything
        what = f"cannot be built: {one_line(error)}"
    else:
        what = router_problem(router, route.type.kind)
    if what:
        draft.report(
            "SY505",
            str(draft.registry.fault("route_type", name, what)),
            ("routes", route.name, "type"),
            fix="report this to the author of the plugin",
        )
    return not what
