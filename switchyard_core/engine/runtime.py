"""One route of a policy, ready to serve: its router, rules, latch store and targets."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from switchyard_core.asking import Ask
from switchyard_core.errors import PluginError
from switchyard_core.identity import Identity, read_identity
from switchyard_core.jsonpath import compile_path
from switchyard_core.latches import LatchStore
from switchyard_core.mutation import MutationRules, compile_rules
from switchyard_core.plugins import PluginRegistry
from switchyard_core.policy.model import Policy, Route
from switchyard_core.request import Request
from switchyard_core.router import Mutations, RouteContext, Router, SessionView, TargetView

__all__ = ["RouteRuntime", "SessionReader", "build_runtimes"]

_LOG = logging.getLogger("switchyard")


@dataclass(slots=True, kw_only=True)
class RouteRuntime:
    """What serves one route.

    Args:
        route: The route.
        router: Instance of its route type's router.
        rules: Its mutation rules, compiled.
        store: Its latch store, ``None`` when its options name none.
        targets: All targets of the policy, as routers see them.
        sessions: Reads identities.
        without_identity: Requests so far that a latching route could not attribute.
    """

    route: Route
    router: Router
    rules: MutationRules
    store: LatchStore | None
    targets: Mapping[str, TargetView]
    sessions: SessionReader
    without_identity: int = 0

    async def context(
        self,
        request: Request,
        *,
        housekeeping: bool,
        random: Random,
        clock: Callable[[], float],
        ask: Ask,
    ) -> RouteContext:
        """Return what the router is given for one request."""
        identity = self.sessions.read(request)
        record = None
        if self.store is not None:
            if identity is not None:
                record = await self.store.get(identity)
            else:
                self._note_missing()
        return RouteContext(
            route=self.route.name,
            targets=self.targets,
            session=SessionView(identity=identity, record=record, final=request.session_final),
            mutations=Mutations(request, self.rules),
            housekeeping=housekeeping,
            random=random,
            clock=clock,
            ask=ask,
        )

    def _note_missing(self) -> None:
        self.without_identity += 1
        if self.without_identity == 1:
            _LOG.warning(
                "route=%s requests bring no session id: decided from their history alone, "
                "nothing is latched",
                self.route.name,
            )


class SessionReader:
    """Reads the identity of a request, with a policy's own sources.

    Args:
        sources: ``header:<name>`` or ``body:<JSONPath>``, tried after the known headers.
    """

    def __init__(self, sources: tuple[str, ...]) -> None:
        self._sources = tuple(_source(text) for text in sources)

    def read(self, request: Request) -> Identity | None:
        """Return whom a request belongs to, ``None`` when it does not say."""
        extra = [(name, lambda find=find: find(request)) for name, find in self._sources]
        return read_identity(request.headers, request.mark, user_id=request.user_id, extra=extra)


def _source(text: str) -> tuple[str, Callable[[Request], str | None]]:
    kind, _, place = text.partition(":")
    if kind == "header":
        return text, lambda request: request.headers.get(place)
    path = compile_path(place)

    def from_body(request: Request) -> str | None:
        values = path.values(request.tree())
        return next((value for value in values if isinstance(value, str)), None)

    return text, from_body


def build_runtimes(policy: Policy, registry: PluginRegistry) -> dict[str, RouteRuntime]:
    """Return one runtime per route, by name.

    Args:
        policy: A policy without errors.
        registry: What is installed.

    Raises:
        PluginError: A router or a latch store does not keep its contract.
    """
    views = {
        name: TargetView(
            name=name,
            id=target.id,
            wire_format=target.wire_format,
            origin=target.client.origin,
            context_window=target.context_window,
            on_overflow=target.on_overflow,
        )
        for name, target in policy.targets.items()
    }
    sessions = SessionReader(policy.identity_session)
    return {
        name: RouteRuntime(
            route=route,
            router=_router(route),
            rules=compile_rules(
                route.rule_sets,
                policy.rule_sets,
                unmatched=route.unmatched,
                workspace=route.workspace,
            ),
            store=_store(route, registry),
            targets=views,
            sessions=sessions,
        )
        for name, route in policy.routes.items()
    }


def _router(route: Route) -> Router:
    try:
        router = route.type.router(route.options)
    except Exception as error:
        msg = f"the router of `{route.type.name}` cannot be built: {type(error).__name__}: {error}"
        raise PluginError(msg) from error
    if not isinstance(router, Router):
        msg = f"the router of `{route.type.name}` has no method `route`"
        raise PluginError(msg)
    return router


def _store(route: Route, registry: PluginRegistry) -> LatchStore | None:
    options: Any = route.options
    name = getattr(options, "latch_store", None)
    capacity = getattr(options, "latch_capacity", None)
    if not isinstance(name, str) or not isinstance(capacity, int):
        return None
    store = registry.latch_stores[name].factory(capacity)
    if not isinstance(store, LatchStore):
        msg = f"the latch store `{name}` lacks a method of its contract"
        raise PluginError(msg)
    return store
