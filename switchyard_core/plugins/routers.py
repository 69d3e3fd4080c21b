"""What the router of a route type must have, checked on its class and on what a factory makes."""

from __future__ import annotations

import inspect
from typing import Literal

from switchyard_core.decision import Latch, Remember, UpdateRecord

__all__ = ["latching_effect", "router_problem"]


def router_problem(router: object, kind: Literal["routes", "answers"]) -> str:
    """Return what is wrong with the methods of a router, ``""`` when nothing is.

    Args:
        router: The router, or its class.
        kind: Kind of its route type.

    Returns:
        The end of a sentence that begins with the router.
    """
    method = getattr(router, "route", None)
    if not callable(method):
        return "has no method `route`"
    if inspect.isroutine(method) and not inspect.iscoroutinefunction(inspect.unwrap(method)):
        return "has a method `route` that is not `async def`"
    if kind == "routes":
        return ""
    method = getattr(router, "answer", None)
    if not callable(method):
        return "answers by itself and has no method `answer`"
    if inspect.isroutine(method) and not inspect.isasyncgenfunction(inspect.unwrap(method)):
        return "has a method `answer` that is no asynchronous generator: `async def` with `yield`"
    return ""


def latching_effect(router: object) -> str:
    """Return the name of an effect that a router's own methods make and that needs a latch store.

    ``""`` when none is seen: one that a function outside of the class makes is not.
    """
    for kind in type(router).__mro__:
        for method in filter(inspect.isfunction, vars(kind).values()):
            for name in method.__code__.co_names:
                if method.__globals__.get(name) in (Latch, UpdateRecord, Remember):
                    return name
    return ""
