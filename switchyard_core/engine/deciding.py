"""Taking a decision: which route, what its router says, what its target needs, its effects."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from difflib import get_close_matches
from functools import partial
from random import Random
from typing import Any, TypeVar

from switchyard_core.asking import Ask, AskError, ModelCall, ModelReply, WouldAsk
from switchyard_core.decision import (
    Decision,
    DecisionWarning,
    Failure,
    Latch,
    Remember,
    UpdateRecord,
)
from switchyard_core.declarations import Rewrite
from switchyard_core.engine.asking import RouterAsk
from switchyard_core.engine.contract import breach_of, ends_task
from switchyard_core.engine.housekeeping import housekeeping_mark
from switchyard_core.engine.runtime import RouteRuntime, build_runtimes
from switchyard_core.engine.tracing import trace_of
from switchyard_core.errors import (
    LatchCapacityError,
    PluginError,
    RefusedError,
    ReplayError,
    RequestError,
    UnknownModelError,
    UpstreamError,
)
from switchyard_core.plugins import PluginRegistry
from switchyard_core.policy.model import Policy
from switchyard_core.request import Request
from switchyard_core.router import RetryingRouter, RouteContext, estimate_tokens, fresh_id
from switchyard_core.stores import LatchStore, capacity_error

__all__ = ["Decider", "apart"]

T = TypeVar("T")

#: Bytes of a body from which on work on it is done in a thread; commas, of one with tiny items.
LARGE_BYTES, LARGE_COMMAS = 256 * 1024, 4000
#: How often a decision is taken again because another request of the identity was faster.
MAX_RACES = 3


class Decider:
    """Decides for one policy; touches the latch stores and nothing else.

    Args:
        policy: A policy without errors.
        registry: The plugins that it was checked with.
        random: Source of randomness for routers.
        clock: Seconds since the epoch, for routers.
        new_id: Makes ids, for routers.
        ask: Asks a target on a router's account: the request that is routed, the target, the
            call, and the name of the route.
        kept: The routes of the policy before, whose latch stores go on; see
            :func:`build_runtimes`.
    """

    def __init__(
        self,
        policy: Policy,
        registry: PluginRegistry,
        *,
        random: Random,
        clock: Callable[[], float],
        ask: Callable[[Request, str, ModelCall, str], Awaitable[ModelReply]],
        new_id: Callable[[str], str] = fresh_id,
        kept: Mapping[str, RouteRuntime] | None = None,
    ) -> None:
        self._ask = ask
        self._new_id = new_id
        self._policy = policy
        self._registry = registry
        self._random = random
        self._clock = clock
        self.runtimes = build_runtimes(policy, registry, kept or {}, clock)
        self._by_model = {
            model: name
            for name, route in policy.routes.items()
            for model in (route.id, *route.aliases)
        }

    def route_of(self, request: Request) -> RouteRuntime:
        """Return the route that a request leads to, in whatever wire format it is.

        Raises:
            BodyError: The body cannot be read.
            UnknownModelError: No route has the model id.
        """
        name = self._by_model.get(request.model, self._policy.default_route)
        if name is None:
            raise self._unknown(request.model)
        runtime = self.runtimes[name]
        delegate = runtime.route.subagents
        if delegate is not None:
            # A client's upkeep of its root counts as the root's: it has no agent here.
            identity = runtime.sessions.read(request)
            if identity is not None and identity.agent is not None:
                runtime = self.runtimes[delegate]
        return runtime

    def runtime_for(self, request: Request) -> RouteRuntime:
        """Return the route that serves a request.

        Raises:
            BodyError: The body cannot be read.
            UnknownModelError: No route has the model id.
            RefusedError: The route's targets speak another wire format.
        """
        runtime = self.route_of(request)
        served = runtime.route.wire_format
        if served is not None and served != request.wire_format:
            raise RefusedError(
                message=f"the route `{runtime.route.id}` is served in `{served}`, and this "
                f"request is in `{request.wire_format}`; switchyard does not translate between "
                "wire formats yet: use a client or a route of the other format",
                code="wire_format_not_served",
                param="model",
                headers={"x-should-retry": "false"},
            )
        return runtime

    def _unknown(self, model: str) -> UnknownModelError:
        routes = ", ".join(sorted(route.id for route in self._policy.routes.values()))
        near = get_close_matches(model, list(self._by_model), n=1)
        hint = f"; did you mean `{near[0]}`?" if near else ""
        return UnknownModelError(
            message=f"no route has the model id `{model[:200]}`{hint} (routes: {routes})",
            code="model_not_found",
            status=404,
            param="model",
        )

    async def decide(
        self,
        request: Request,
        *,
        dry_run: bool = False,
        ask: Ask | None = None,
        admit: Callable[[Decision], object] | None = None,
    ) -> Decision:
        """Return where a request goes; see :meth:`Engine.decide`.

        ``admit`` may refuse a decision before it has any effect.
        """
        runtime = await apart(request, partial(self._opened, request))
        if runtime.answers:
            _must_be_asked(runtime, request)
            ask = self._silent(runtime)
        mark = self.mark_of(request)
        for _ in range(MAX_RACES):
            asking = self.asking(runtime, request, dry_run=dry_run, instead=ask)
            context = await self.context(runtime, request, mark, asking, dry_run=dry_run)
            if context.session.record is None:
                await _read_ahead(runtime, request)
            routed = await self._routed(runtime, request, context, asking)
            if runtime.answers:
                # No body of the caller's is sent on, so there is nothing to rewrite or to fit.
                decision = routed.with_(
                    rewrites=(), route=context.route, identity=context.session.identity
                )
            else:
                decision = self._guard_window(self._complete(routed, request, context), request)
            decision = decision.with_(
                trace=trace_of(runtime, context, mark, decision, dry_run=dry_run)
            )
            if admit is not None:
                admit(decision)
            settled = await self._apply(runtime, decision, dry_run=dry_run)
            if settled is not None:
                break
        else:
            settled = decision
        self._registry.notify_decision(settled, request)
        return settled

    def _opened(self, request: Request) -> RouteRuntime:
        runtime = self.runtime_for(request)
        request.check()
        return runtime

    async def context(
        self, runtime: RouteRuntime, request: Request, mark: str, ask: Ask, *, dry_run: bool = False
    ) -> RouteContext:
        """Return what a router is given for a request."""
        return await runtime.context(
            request,
            housekeeping=bool(mark),
            random=self._random,
            clock=self._clock,
            new_id=self._new_id,
            ask=ask,
            dry_run=dry_run,
        )

    def mark_of(self, request: Request) -> str:
        """Return what marks a request as a client's side call, ``""`` when nothing does."""
        return housekeeping_mark(request, self._policy.housekeeping)

    def _silent(self, runtime: RouteRuntime) -> Ask:
        """Return ``context.ask`` for ``route`` of an answering router, which must not ask."""

        async def ask(name: str, _call: ModelCall) -> ModelReply:
            raise self.blame(runtime, f"asks `{name}` in `route`; it may in `answer` only")

        return ask

    def asking(
        self, runtime: RouteRuntime, request: Request, *, dry_run: bool, instead: Ask | None = None
    ) -> RouterAsk:
        """Return ``context.ask`` for one request; ``instead`` answers in place of a model."""
        return RouterAsk(runtime.route, request, self._ask, dry_run=dry_run, instead=instead)

    async def _routed(
        self, runtime: RouteRuntime, request: Request, context: RouteContext, asking: RouterAsk
    ) -> Decision:
        body = request.body
        try:
            with asking.heeded():
                decision = await runtime.router.route(request, context)
        except (RequestError, ReplayError, WouldAsk):
            raise
        except AskError as error:
            raise UpstreamError(error.message, kind=error.failure.kind) from error
        except BaseException as error:
            if ends_task(error):
                raise
            raise self.blame(runtime, f"failed: {type(error).__name__}: {error}") from error
        if request.body is not body or request.fields.changed:
            raise self.blame(runtime, "changed the request; it must return rewrites instead")
        return self._checked(runtime, decision)

    def _checked(self, runtime: RouteRuntime, decision: Any) -> Decision:
        breach = breach_of(decision, self._registry.rewrites)
        if breach:
            raise self.blame(runtime, breach)
        checked: Decision = decision
        if checked.target not in runtime.route.targets:
            declared = ", ".join(runtime.route.targets) or "none"
            raise self.blame(
                runtime,
                f"chose the target `{checked.target}`, which the route "
                f"`{runtime.route.name}` does not declare (declared: {declared})",
            )
        return checked

    def blame(self, runtime: RouteRuntime, what: str) -> PluginError:
        """Return the error for a router that broke its contract."""
        return self._registry.fault("route_type", runtime.route.type.name, what)

    def _complete(self, decision: Decision, request: Request, context: RouteContext) -> Decision:
        """Add what the target needs of every request."""
        target = self._policy.targets[decision.target]
        rewrites = list(decision.rewrites)
        names = {rewrite.name for rewrite in rewrites}

        def add(name: str, **parameters: Any) -> None:
            if name not in names:
                rewrites.append(Rewrite(name=name, parameters=parameters))

        if request.endpoint == "create":
            if target.system_prompt is not None:
                add("insert_system_prompt", text=target.system_prompt)
            if target.tool_id_style is not None:
                rewrites = [rewrite for rewrite in rewrites if rewrite.name != "remap_tool_ids"]
                names.discard("remap_tool_ids")
                add("remap_tool_ids", when="always", style=target.tool_id_style)
            if target.extra_body:
                add("target_parameters", extra_body=dict(target.extra_body))
            if target.reasoning_effort is not None:
                add("reasoning_effort", effort=target.reasoning_effort)
            if not target.accepts_prefill:
                add("end_with_user_turn")
        add("set_model", id=target.id)
        unfit = self.runtimes[context.route].unfit_identity(request, context.session.identity)
        return decision.with_(
            rewrites=tuple(rewrites),
            route=context.route,
            identity=context.session.identity,
            warnings=(*decision.warnings, *unfit),
        )

    def _guard_window(self, decision: Decision, request: Request) -> Decision:
        target = self._policy.targets[decision.target]
        # A token count is how a client learns that a request is too large.
        fits = request.endpoint != "create" or (
            target.context_window is None or estimate_tokens(request) <= target.context_window
        )
        if fits:
            return decision
        size = f"about {estimate_tokens(request)} tokens, over the {target.context_window}"
        if target.on_overflow == "reject":
            raise RefusedError(
                message=f"this request has {size} of the target `{target.name}`; nothing was "
                "sent: compact the conversation and try again",
                code="context_length_exceeded",
                headers={"x-should-retry": "false"},
            )
        warning = DecisionWarning(code="context_window", detail=f"the request has {size} declared")
        return decision.with_(warnings=(*decision.warnings, warning))

    async def again(self, request: Request, failed: Decision, failure: Failure) -> Decision | None:
        """Return the router's next try after a failure, ``None`` when it has none.

        Raises:
            PluginError: The router broke its contract.
        """
        runtime = self.runtimes[failed.route]
        if not isinstance(runtime.router, RetryingRouter):
            return None
        mark = self.mark_of(request)
        asking = self.asking(runtime, request, dry_run=False)
        context = await self.context(runtime, request, mark, asking)
        try:
            with asking.heeded():
                decision = await runtime.router.next(request, failed, failure, context)
        except ReplayError:
            raise
        except BaseException as error:
            if ends_task(error):
                raise
            raise self.blame(runtime, f"failed: {type(error).__name__}: {error}") from error
        if decision is None:
            return None
        decision = self._complete(self._checked(runtime, decision), request, context)
        return await self._apply(runtime, decision, dry_run=False) or decision

    async def _apply(
        self, runtime: RouteRuntime, decision: Decision, *, dry_run: bool
    ) -> Decision | None:
        """Carry out a decision's effects; ``None`` when it must be taken again.

        Raises:
            LatchCapacityError: The store is full; nothing changed.
        """
        store = runtime.store
        if store is None:
            return decision
        for effect in decision.effects:
            if isinstance(effect, Latch):
                if dry_run:
                    known = await store.get(effect.identity) is not None
                    if not known and await store.count() >= store.capacity:
                        full = DecisionWarning(
                            code="latch_capacity", detail=capacity_error(store.capacity).message
                        )
                        decision = decision.with_(warnings=(*decision.warnings, full))
                    continue
                winner = await store.latch(effect.identity, effect.record)
                if winner != effect.record:
                    # Another request of this identity made the transition meanwhile.
                    return None
            elif isinstance(effect, UpdateRecord) and not dry_run:
                await store.update(effect.identity, effect.record)
            elif isinstance(effect, Remember) and not dry_run:
                decision = await _remember(store, effect, decision)
        return decision


async def apart(request: Request, work: Callable[[], T]) -> T:
    """Do some work on a request; on a large one in a thread, so that other requests go on."""
    if not _is_large(request.body):
        return work()
    return await asyncio.to_thread(work)


def _is_large(body: bytes) -> bool:
    return len(body) >= LARGE_BYTES or body.count(b",") >= LARGE_COMMAS


async def _read_ahead(runtime: RouteRuntime, request: Request) -> None:
    """Read and label the history of a large request apart: a router reads it where it runs.

    What is read is kept by the request, and what is labelled by the rules.
    """

    def read() -> None:
        for _ in runtime.rules.iterate(
            request.conversation, body=request.tree, wire_format=request.wire_format
        ):
            pass

    if _is_large(request.body) and runtime.route.rule_sets and not runtime.answers:
        await asyncio.to_thread(read)


def _must_be_asked(runtime: RouteRuntime, request: Request) -> None:
    """Refuse a side call about a conversation that no single model serves."""
    if request.endpoint != "create":
        raise RefusedError(
            message=f"the route `{runtime.route.id}` answers by itself, with several models: it "
            f"does not serve `{request.endpoint}`",
            code="endpoint_not_served",
            headers={"x-should-retry": "false"},
        )


async def _remember(store: LatchStore, effect: Remember, decision: Decision) -> Decision:
    """Keep a record, new or not; return the decision, with a warning when there is no room."""
    if await store.update(effect.identity, effect.record):
        return decision
    try:
        await store.latch(effect.identity, effect.record)
    except LatchCapacityError:
        full = DecisionWarning(
            code="memory_full",
            detail=f"all {store.capacity} session slots of this route are taken: nothing is "
            "remembered for this session",
        )
        return decision.with_(warnings=(*decision.warnings, full))
    return decision
