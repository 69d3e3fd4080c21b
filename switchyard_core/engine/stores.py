"""The stores of a route: latches and plans, new ones or those that it goes on with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from switchyard_core.plugins import PluginRegistry
from switchyard_core.policy.models import Route
from switchyard_core.stores import LatchStore, PlanStore

__all__ = ["Kept", "latch_store", "plan_store", "resize"]

#: Route and stores before a reload: what a route may go on with.
Kept = tuple[Route, LatchStore | None, PlanStore | None]


def latch_store(route: Route, registry: PluginRegistry, kept: Kept | None) -> LatchStore | None:
    """Return a route's latch store, ``None`` when its options name none.

    Args:
        route: The route.
        registry: What is installed.
        kept: Route and stores of the same name before a reload. Records belong to the router
            that wrote them: another route type, or another store, begins with nothing.

    Raises:
        PluginError: The store does not keep its contract.
    """
    name, capacity = _latch_options(route)
    if name is None or capacity is None:
        return None
    if (
        kept is not None
        and kept[1] is not None
        and kept[0].type is route.type
        and _latch_options(kept[0])[0] == name
    ):
        return kept[1]
    store = registry.latch_stores[name].factory(capacity)
    if not isinstance(store, LatchStore):
        raise registry.fault("latch_store", name, "lacks a method of its contract")
    return store


def plan_store(
    route: Route, registry: PluginRegistry, kept: Kept | None, clock: Callable[[], float]
) -> PlanStore | None:
    """Return a route's plan store, ``None`` when its options name none.

    Args:
        route: The route.
        registry: What is installed.
        kept: As for :func:`latch_store`.
        clock: Seconds since the epoch.

    Raises:
        PluginError: The store cannot be made or does not keep its contract.
    """
    options = _plan_options(route)
    if options is None:
        return None
    name, capacity, ttl_s = options
    if kept is not None and kept[2] is not None and kept[0].type is route.type:
        before = _plan_options(kept[0])
        if before is not None and before[0] == name:
            return kept[2]
    try:
        store = registry.plan_stores[name].factory(capacity, ttl_s, clock)
    except Exception as error:
        what = f"cannot be made: {type(error).__name__}: {error}"
        raise registry.fault("plan_store", name, what) from error
    if not isinstance(store, PlanStore):
        raise registry.fault("plan_store", name, "lacks a part of its contract")
    return store


def resize(route: Route, latches: LatchStore | None, plans: PlanStore | None) -> None:
    """Give the stores that a route goes on with the limits that its options have now."""
    capacity = _latch_options(route)[1]
    if latches is not None and capacity is not None:
        latches.capacity = capacity
    options = _plan_options(route)
    if plans is not None and options is not None:
        _, plans.capacity, plans.ttl_s = options


def _latch_options(route: Route) -> tuple[str | None, int | None]:
    """Return name and capacity of a route's latch store, ``None`` twice when it has none."""
    options: Any = route.options
    name = getattr(options, "latch_store", None)
    capacity = getattr(options, "latch_capacity", None)
    if not isinstance(name, str) or not isinstance(capacity, int):
        return None, None
    return name, capacity


def _plan_options(route: Route) -> tuple[str, int, float] | None:
    """Return name, capacity and time in seconds of a route's plan store, if it has one."""
    options: Any = route.options
    name = getattr(options, "plan_store", None)
    capacity = getattr(options, "plan_capacity", None)
    ttl_s = getattr(options, "plan_ttl_s", None)
    if not (isinstance(name, str) and isinstance(capacity, int) and isinstance(ttl_s, int | float)):
        return None
    return name, capacity, float(ttl_s)
