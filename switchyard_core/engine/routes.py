"""One route of a policy at run time: its router, rules, stores, tools and targets."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any

from switchyard_core.answering import Ask, ModelUsage
from switchyard_core.clients import SideCall
from switchyard_core.decision import DecisionWarning, Effect, ReleaseAfterSuccess
from switchyard_core.declarations import LatchOptions
from switchyard_core.errors import with_place
from switchyard_core.identity import MAX_LENGTH, Identity, read_identity
from switchyard_core.jsonio.path import compile_path
from switchyard_core.mutation import MutationRules, compile_rules
from switchyard_core.plugins import PluginRegistry
from switchyard_core.plugins.loading import router_problem
from switchyard_core.policy.models import Policy, Route
from switchyard_core.request import Request
from switchyard_core.router import (
    Mutations,
    RouteContext,
    Router,
    SessionView,
    TargetView,
)
from switchyard_core.stores import LatchStore, PlanStore
from switchyard_core.tools import Toolbox
from switchyard_core.world import World

__all__ = ["RequestFacts", "RouteRuntime", "Routed", "build_runtimes"]

_LOG = logging.getLogger("switchyard")

#: Reads whom a request belongs to, or the place of an id that cannot be used.
SessionReader = Callable[[Request], tuple[Identity | None, str]]
#: Route and stores before a reload: what a route may continue with.
Kept = tuple[Route, LatchStore | None, PlanStore | None]


@dataclass(slots=True, kw_only=True)
class RouteRuntime:
    """What serves one route."""

    route: Route
    router: Router
    rules: MutationRules
    #: Its latch store, `None` when its options are not :class:`.LatchOptions`.
    store: LatchStore | None
    targets: Mapping[str, TargetView]  # all targets of the policy
    sessions: SessionReader
    #: Whether its router writes the answer.
    answers: bool = False
    plans: PlanStore | None = None
    tools: Toolbox = field(default_factory=Toolbox)
    #: Calls of tools so far, by tool (`""` for unknown ones) and `ok` or the error's word.
    tool_calls: Counter[tuple[str, str]] = field(default_factory=Counter)
    without_identity: int = 0
    #: What the log has reported: requests without an id or with an unusable one, lost effects.
    told: set[str] = field(default_factory=set)

    def routed(self, request: Request, side_call: SideCall | None = None) -> Routed:
        """Return a request as this route gets it."""
        identity, _ = self.sessions(request)
        return Routed(request=request, runtime=self, identity=identity, side_call=side_call)

    async def context(
        self,
        routed: Routed,
        ask: Ask,
        world: World,
        *,
        dry_run: bool = False,
    ) -> RouteContext:
        """Return the router's input for one request; ``dry_run`` neither counts nor logs."""
        request, identity, record = routed.request, routed.identity, None
        if self.store is not None:
            if identity is not None:
                record = await self.store.get(identity)
            elif not dry_run:
                self._note_missing(routed)
        return RouteContext(
            route=self.route.name,
            targets=self.targets,
            session=SessionView(identity=identity, record=record, final=request.session_final),
            mutations=Mutations(request, self.rules),
            side_call=routed.side_call,
            random=world.random,
            clock=world.clock,
            ask=ask,
            new_id=world.new_id,
            tools=self.tools,
            plans=self.plans,
        )

    def unfit_identity(self, routed: Routed) -> tuple[DecisionWarning, ...]:
        """Return a warning for a request that is not latched because its id is unusable."""
        if routed.identity is not None or self.store is None:
            return ()
        _, place = self.sessions(routed.request)
        if not place:
            return ()
        detail = (
            f"`{place}` is not a usable session or agent id (at most {MAX_LENGTH} ASCII "
            "characters): this request is decided from its history alone, and nothing is latched"
        )
        return (DecisionWarning(code="session_id_unfit", detail=detail),)

    def lost_effects(
        self, effects: Iterable[Effect], *, dry_run: bool
    ) -> tuple[DecisionWarning, ...]:
        """Return a warning for effects that need a latch store, on a route without one.

        The log reports it once per route, and not for a ``dry_run``.
        """
        # Without a store there is nothing to release, and a route of sub-agents may have one.
        needed = {type(e).__name__ for e in effects if not isinstance(e, ReleaseAfterSuccess)}
        if not needed:
            return ()
        detail = (
            f"the effect `{'`, `'.join(sorted(needed))}` is dropped: a route of type "
            f"`{self.route.type.name}` has no latch store, since its options do not inherit "
            "`LatchOptions`; nothing is remembered for this session"
        )
        if not dry_run:
            self._log_once(logging.WARNING, "lost", detail)
        return (DecisionWarning(code="no_latch_store", detail=detail),)

    def follow(self, before: RouteRuntime) -> None:
        """Continue the counters of the same route under the policy before; update store limits."""
        latches = self.store if self.store is before.store else None
        plans = self.plans if self.plans is before.plans else None
        _resize(self.route, latches, plans)
        self.told = before.told & {"lost"}
        if latches is not None:
            self.without_identity, self.told = before.without_identity, set(before.told)

    @property
    def kept(self) -> Kept:
        """What the same route may continue with after a reload."""
        return self.route, self.store, self.plans

    def _note_missing(self, routed: Routed) -> None:
        """Count a request without identity; the log gives the reason once."""
        self.without_identity += 1
        unfit = self.unfit_identity(routed)
        if unfit:
            self._log_once(logging.WARNING, "unfit", unfit[0].detail)
        else:
            detail = "requests bring no session id: decided from their history alone, "
            self._log_once(logging.INFO, "missing", detail + "nothing is latched")

    def _log_once(self, level: int, topic: str, detail: str) -> None:
        if topic not in self.told:
            self.told.add(topic)
            _LOG.log(level, "route=%s %s", self.route.name, detail)


@dataclass(frozen=True, slots=True, kw_only=True)
class Routed:
    """A request with its route."""

    request: Request
    runtime: RouteRuntime
    identity: Identity | None
    side_call: SideCall | None  # what is known of a client's side call
    #: Tokens by target of the router's own calls, and of answers that were not passed on.
    spent: dict[str, ModelUsage] = field(default_factory=dict)

    def count(self, target: str, usage: ModelUsage | None) -> None:
        """Add what a call took."""
        if usage is not None and usage != ModelUsage():
            self.spent[target] = self.spent.get(target, ModelUsage()) + usage


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestFacts:
    """As much of a request as could be read, for the log and the counters."""

    model: str = ""
    route: str = ""
    identity: Identity | None = None


def session_reader(sources: Sequence[str]) -> SessionReader:
    """Return what reads the identity of a request; ``sources`` of a policy come last."""
    finders = [_source(text) for text in sources]

    def read(request: Request) -> tuple[Identity | None, str]:
        extra = [(name, partial(find, request)) for name, find in finders] if finders else ()
        return read_identity(
            request.headers,
            request.mark,
            wire_format=request.wire_format,
            body=request.at,
            extra=extra,
        )

    return read


def _source(text: str) -> tuple[str, Callable[[Request], str | None]]:
    kind, _, place = text.partition(":")
    if kind == "header":
        return text, lambda request: request.headers.get(place)
    path = compile_path(place)

    def from_body(request: Request) -> str | None:
        values = path.values(request.tree())
        return next((value for value in values if isinstance(value, str)), None)

    return text, from_body


def build_runtimes(
    policy: Policy,
    registry: PluginRegistry,
    kept: Mapping[str, RouteRuntime] = MappingProxyType({}),
    world: World = World(),  # noqa: B008  # frozen
) -> dict[str, RouteRuntime]:
    """Return one runtime per route, by name.

    A route of the same name and type in ``kept`` with the same store continues with that store
    under the new limits. A lower capacity evicts nobody; new sessions wait for free slots.
    """
    sessions = session_reader(policy.identity_session)

    def build(route: Route, before: RouteRuntime | None) -> RouteRuntime:
        share = before.kept if before is not None else None
        tools = {name: registry.tools[name] for name in route.tools}
        if before is None:
            tool_calls: Counter[tuple[str, str]] = Counter()
            box = Toolbox(tools, lambda tool, word: tool_calls.update([(tool, word)]))
        else:
            # Runs that began before a reload are counted with those that follow.
            tool_calls, box = before.tool_calls, before.tools.following(tools)
        return RouteRuntime(
            route=route,
            router=_router(route, registry),
            rules=compile_rules(
                route.rule_sets,
                policy.rule_sets,
                unmatched=route.unmatched,
                workspace=route.workspace,
            ),
            store=_latch_store(route, registry, share),
            targets=policy.targets,
            sessions=sessions,
            answers=route.type.kind == "answers",
            plans=_plan_store(route, registry, share, world.clock),
            tools=box,
            tool_calls=tool_calls,
        )

    runtimes = {name: build(route, kept.get(name)) for name, route in policy.routes.items()}
    for name, runtime in runtimes.items():
        before = kept.get(name)
        if before is not None:
            runtime.follow(before)
    return runtimes


def _router(route: Route, registry: PluginRegistry) -> Router:
    name = route.type.name
    try:
        router = route.type.router(route.options)
    except Exception as error:
        what = f"cannot be built: {with_place(error)}"
        raise registry.fault("route_type", name, what) from error
    problem = router_problem(router, route.type.kind)
    if problem or not isinstance(router, Router):
        raise registry.fault("route_type", name, problem or "has no method `route`")
    return router


def _latch_store(route: Route, registry: PluginRegistry, kept: Kept | None) -> LatchStore | None:
    """Return a route's latch store, ``None`` when its options are not :class:`.LatchOptions`."""
    options = route.options
    if not isinstance(options, LatchOptions):
        return None
    name = options.latch_store
    if kept is not None and kept[1] is not None and kept[0].type is route.type:
        before = kept[0].options
        if isinstance(before, LatchOptions) and before.latch_store == name:
            return kept[1]
    store = registry.latch_stores[name].factory(options.latch_capacity)
    if not isinstance(store, LatchStore):
        raise registry.fault("latch_store", name, "lacks a method of its contract")
    return store


def _plan_store(
    route: Route, registry: PluginRegistry, kept: Kept | None, clock: Callable[[], float]
) -> PlanStore | None:
    """Return a route's plan store, ``None`` when its options name none."""
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
        what = f"cannot be made: {with_place(error)}"
        raise registry.fault("plan_store", name, what) from error
    if not isinstance(store, PlanStore):
        raise registry.fault("plan_store", name, "lacks a part of its contract")
    return store


def _resize(route: Route, latches: LatchStore | None, plans: PlanStore | None) -> None:
    """Give shared stores the limits of the new options."""
    if latches is not None and isinstance(route.options, LatchOptions):
        latches.capacity = route.options.latch_capacity
    options = _plan_options(route)
    if plans is not None and options is not None:
        _, plans.capacity, plans.ttl_s = options


def _plan_options(route: Route) -> tuple[str, int, float] | None:
    """Return name, capacity and seconds to live of a route's plan store, if it has one."""
    options: Any = route.options
    name = getattr(options, "plan_store", None)
    capacity = getattr(options, "plan_capacity", None)
    ttl_s = getattr(options, "plan_ttl_s", None)
    if not (isinstance(name, str) and isinstance(capacity, int) and isinstance(ttl_s, int | float)):
        return None
    return name, capacity, float(ttl_s)
