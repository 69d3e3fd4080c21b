"""What is known of a request that was refused or failed, for the log and the counters."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass

from switchyard_core.engine.runtime import RouteRuntime
from switchyard_core.identity import Identity
from switchyard_core.request import Request

__all__ = ["Known", "known_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """As much of a request as could be read.

    Args:
        model: The model id that was asked for, ``""`` when there is none.
        route: Name of the route that it leads to, ``""`` when it leads to none.
        identity: Whom the request belongs to.
    """

    model: str = ""
    route: str = ""
    identity: Identity | None = None


def known_of(request: Request, route_of: Callable[[Request], RouteRuntime]) -> Known:
    """Return what is known of a request; no part that is broken makes it fail.

    Args:
        request: The request; what was read of it before is not read again.
        route_of: Finds the route of a request.
    """
    model = route = ""
    identity = None
    # Whatever cannot be read has been reported already; the rest is what there is.
    with contextlib.suppress(Exception):
        runtime = route_of(request)
        route = runtime.route.name
        identity = runtime.sessions.read(request)
    with contextlib.suppress(Exception):
        model = request.model
    return Known(model=model, route=route, identity=identity)
