"""Taking a decision: which route, what its router says, what its target needs, its effects."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from operator import attrgetter
from typing import Any, TypeVar

from switchyard_core.answering import Ask, AskError, ModelCall, ModelReply, WouldAsk
from switchyard_core.decision import (
    Decision,
    DecisionWarning,
    Failure,
    Latch,
    LatchRecord,
    Reason,
    ReleaseAfterSuccess,
    Remember,
    Rewrite,
    UpdateRecord,
)
from switchyard_core.engine.calling import AskTarget, RouterAsk, model_fit, target_settings
from switchyard_core.engine.response import ends_task
from switchyard_core.engine.routes import Routed, RouteRuntime, build_runtimes
from switchyard_core.engine.side_calls import PHASE, redirected, side_call_of
from switchyard_core.engine.translating import across_formats
from switchyard_core.errors import (
    LatchCapacityError,
    PluginError,
    RefusedError,
    ReplayError,
    RequestError,
    UnknownModelError,
    UpstreamError,
    nearest,
    with_place,
)
from switchyard_core.identity import Identity
from switchyard_core.mutation import Verdict
from switchyard_core.plugins import PluginRegistry
from switchyard_core.policy.models import Policy, Target
from switchyard_core.request import Request
from switchyard_core.router import Mutations, RetryingRouter, RouteContext, estimate_tokens
from switchyard_core.stores import LatchStore, capacity_error
from switchyard_core.world import World

__all__ = ["Decider", "apart"]

T = TypeVar("T")

#: Bytes of a body from which on work on it is done in a thread; commas, of one with tiny items.
LARGE_BYTES, LARGE_COMMAS = 256 * 1024, 4000
#: How often a decision is taken again because another request of the identity was faster.
MAX_RACES = 3


class Decider:
    """Decides for one policy; touches the latch stores and nothing else."""

    def __init__(
        self,
        policy: Policy,
        registry: PluginRegistry,
        *,
        world: World,
        ask: AskTarget,
        kept: Mapping[str, RouteRuntime],
    ) -> None:
        self._ask = ask
        self._world = world
        self._policy = policy
        self._registry = registry
        self._needs = {target.name: _needs(target) for target in policy.targets.values()}
        self._side_needs = {
            target.name: (*model_fit(target, side_call=True), *_needs(target)[-1:])
            for target in policy.targets.values()
        }
        self.runtimes = build_runtimes(policy, registry, kept, world)
        self._by_id = policy.model_ids.exact

    def runtime_for(self, request: Request) -> RouteRuntime:
        """Return the route that a request leads to, in whatever wire format."""
        name = self._by_id.get(request.model)
        if name is None:
            route = self._policy.route_for(request.model)
            if route is None:
                raise self._unknown(request.model)
            name = route.name
        runtime = self.runtimes[name]
        delegate = runtime.route.subagents
        if delegate is not None:
            # A client's upkeep of its root counts as the root's: it has no agent here.
            identity, _ = runtime.sessions(request)
            if identity is not None and identity.agent is not None:
                runtime = self.runtimes[delegate]
        return runtime

    async def routed(self, request: Request) -> Routed:
        """Return a request with its route, checked; a :class:`RequestError` refuses it."""
        return await apart(request, partial(self._routed, request))

    def _routed(self, request: Request) -> Routed:
        runtime = self.runtime_for(request)
        request.check()
        named = request.model in self._by_id or self._policy.names_route(request.model)
        return runtime.routed(
            request, side_call_of(request, self._policy.housekeeping, named=named)
        )

    def _unknown(self, model: str) -> UnknownModelError:
        routes = self._policy.routes.values()
        ids = [each for route in routes for each in (route.id, *route.aliases)]
        near = nearest(model, ids)
        hint = f"; did you mean `{near}`?" if near else ""
        known = ", ".join(sorted(route.id for route in routes))
        what = f"no route has the model id `{model[:200]}`{hint}"
        if not model:
            what = "the request names no `model`, and the policy has no `default_route`"
        return UnknownModelError(
            message=f"{what} (routes: {known})",
            code="model_not_found",
            status=404,
            param="model",
        )

    async def decide(
        self,
        routed: Routed,
        *,
        dry_run: bool = False,
        ask: Ask | None = None,
        admit: Callable[[Decision], object] | None = None,
    ) -> Decision:
        """Return where a request goes; see :meth:`Switchyard.decide`.

        ``admit`` may refuse a decision before it has any effect.
        """
        request, runtime = routed.request, routed.runtime
        if runtime.answers:
            _must_be_asked(routed)
            ask = self._silent(runtime)
        for _ in range(MAX_RACES):
            asking = self.asking(routed, dry_run=dry_run, instead=ask)
            context = await runtime.context(routed, asking, self._world, dry_run=dry_run)
            chosen = None
            if routed.side_call is not None:
                chosen = redirected(routed, routed.side_call, self._policy)
            if chosen is None:
                reads = runtime.route.rule_sets and context.session.record is None
                if reads and not runtime.answers and _is_large(request.body):
                    await asyncio.to_thread(_label, routed)
                chosen = await self._route(routed, context, asking)
            decision = self._complete(routed, chosen, context, dry_run=dry_run)
            if admit is not None:
                admit(decision)
            settled = await self._apply(runtime, decision, dry_run=dry_run)
            if settled is not None:
                break
        else:
            settled = decision
        if self._registry.notify_decision is not None:
            self._registry.notify_decision(settled, request)
        return settled

    async def again(self, routed: Routed, failed: Decision, failure: Failure) -> Decision | None:
        """Return the router's next try after a failure, ``None`` without one."""
        runtime, router = routed.runtime, routed.runtime.router
        # A side call with a target of its own was not the router's decision.
        own = routed.side_call is not None and failed.phase == PHASE
        if own or not isinstance(router, RetryingRouter):
            return None
        asking = self.asking(routed, dry_run=False)
        context = await runtime.context(routed, asking, self._world)
        try:
            with asking.heeded():
                decision = await router.next(routed.request, failed, failure, context)
        except ReplayError:
            raise
        except BaseException as error:
            if ends_task(error):
                raise
            raise self.blame(runtime, f"failed: {with_place(error)}") from error
        if decision is None:
            return None
        self._check(runtime, decision)
        try:
            rewrites = self._rewrites(routed.request, decision)
        except RefusedError:
            # The caller had better learn why the first target failed.
            return None
        decision = decision.with_(
            rewrites=rewrites,
            route=context.route,
            identity=routed.identity,
            warnings=(*decision.warnings, *runtime.unfit_identity(routed)),
        )
        return await self._apply(runtime, decision, dry_run=False) or decision

    def _silent(self, runtime: RouteRuntime) -> Ask:
        """Return ``context.ask`` for ``route`` of an answering router, which must not ask."""

        async def ask(name: str, _call: ModelCall) -> ModelReply:
            raise self.blame(runtime, f"asks `{name}` in `route`; it may in `answer` only")

        return ask

    def asking(self, routed: Routed, *, dry_run: bool, instead: Ask | None = None) -> RouterAsk:
        """Return ``context.ask`` for one request; ``instead`` replaces the models."""
        return RouterAsk(routed, self._ask, dry_run=dry_run, instead=instead)

    async def _route(self, routed: Routed, context: RouteContext, asking: RouterAsk) -> Decision:
        request, runtime = routed.request, routed.runtime
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
            raise self.blame(runtime, f"failed: {with_place(error)}") from error
        if request.body is not body or request.fields.changed:
            raise self.blame(runtime, "changed the request; it must return rewrites instead")
        self._check(runtime, decision)
        return decision

    def _check(self, runtime: RouteRuntime, decision: Decision) -> None:
        breach = _breach_of(decision, self._registry.rewrites)
        if not breach and decision.target not in runtime.route.targets:
            declared = ", ".join(runtime.route.targets) or "none"
            breach = (
                f"chose the target `{decision.target}`, which the route "
                f"`{runtime.route.name}` does not declare (declared: {declared})"
            )
        if breach:
            raise self.blame(runtime, breach)

    def blame(self, runtime: RouteRuntime, what: str) -> PluginError:
        """Return the error for a router that broke its contract."""
        return self._registry.fault("route_type", runtime.route.type.name, what)

    def _complete(
        self, routed: Routed, decision: Decision, context: RouteContext, *, dry_run: bool
    ) -> Decision:
        """Add the rewrites and warnings of the target, and the trace."""
        request, runtime = routed.request, routed.runtime
        rewrites: tuple[Rewrite, ...] = ()
        warnings = decision.warnings
        # A router that answers sends no body of the caller, so nothing is rewritten or measured.
        if not runtime.answers:
            rewrites = self._rewrites(request, decision)
            overflow = _overflow(self._policy.targets[decision.target], request)
            warnings = (*warnings, *runtime.unfit_identity(routed), *overflow)
        return decision.with_(
            rewrites=rewrites,
            warnings=warnings,
            route=context.route,
            identity=routed.identity,
            trace=_trace_of(routed, context, decision, dry_run=dry_run),
        )

    def _rewrites(self, request: Request, decision: Decision) -> tuple[Rewrite, ...]:
        """Return the router's rewrites and those that the target needs."""
        own, needs = decision.rewrites, self._needs[decision.target]
        target = self._policy.targets[decision.target]
        if request.endpoint != "create":
            needs = self._side_needs[decision.target]
        if target.wire_format != request.wire_format:
            return across_formats(request, own, target, needs)
        if request.endpoint == "create" and target.tool_id_style is not None:
            own = tuple(rewrite for rewrite in own if rewrite.name != "remap_tool_ids")
        asked = set(map(attrgetter("name"), own))
        return (*own, *[rewrite for rewrite in needs if rewrite.name not in asked])

    async def _apply(
        self, runtime: RouteRuntime, decision: Decision, *, dry_run: bool
    ) -> Decision | None:
        """Carry out a decision's effects; ``None`` when it must be taken again."""
        store = runtime.store
        if store is None:
            lost = runtime.lost_effects(decision.effects, dry_run=dry_run)
            return decision.with_(warnings=(*decision.warnings, *lost)) if lost else decision
        for effect in decision.effects:
            if isinstance(effect, Latch):
                if dry_run:
                    known = await store.get(effect.identity) is not None
                    if not known and await store.count() >= store.capacity:
                        decision = _warned(
                            decision, "latch_capacity", capacity_error(store.capacity).message
                        )
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
    """Run some work on a request, for a large one in a thread so that other requests proceed."""
    if not _is_large(request.body):
        return work()
    return await asyncio.to_thread(work)


def _is_large(body: bytes) -> bool:
    return len(body) >= LARGE_BYTES or body.count(b",") >= LARGE_COMMAS


def _label(routed: Routed) -> None:
    """Read and label the history; the request and the rules keep the results."""
    # No label is among none, so nothing is left unread.
    Mutations(routed.request, routed.runtime.rules).first(())


def _must_be_asked(routed: Routed) -> None:
    if routed.request.endpoint != "create":
        raise RefusedError(
            message=f"the route `{routed.runtime.route.id}` asks several "
            f"models for each answer: it does not serve `{routed.request.endpoint}`",
            code="endpoint_not_served",
            headers={"x-should-retry": "false"},
        )


def _needs(target: Target) -> tuple[Rewrite, ...]:
    """Return the rewrites of every turn of a target; the last one names the model."""
    named = Rewrite(name="set_model", parameters={"id": target.id})
    made = [*target_settings(target), *model_fit(target), named]
    if not target.accepts_prefill:
        made.insert(-1, Rewrite(name="end_with_user_turn"))
    if target.tool_id_style is not None:
        style = {"when": "always", "style": target.tool_id_style}
        made.insert(0, Rewrite(name="remap_tool_ids", parameters=style))
    if target.system_prompt is not None:
        prompt = {"text": target.system_prompt}
        made.insert(0, Rewrite(name="insert_system_prompt", parameters=prompt))
    return tuple(made)


def _overflow(target: Target, request: Request) -> tuple[DecisionWarning, ...]:
    """Return a warning for a request over the target's window; refuse it if the target says so."""
    # A token count is how a client learns that a request is too large.
    if request.endpoint != "create" or target.context_window is None:
        return ()
    estimate = estimate_tokens(request)
    if estimate <= target.context_window:
        return ()
    size = f"about {estimate} tokens, over the {target.context_window}"
    if target.on_overflow == "reject":
        raise RefusedError(
            message=f"this request has {size} of the target `{target.name}`; nothing was "
            "sent: compact the conversation and try again",
            code="context_length_exceeded",
            headers={"x-should-retry": "false"},
        )
    return (DecisionWarning(code="context_window", detail=f"the request has {size} declared"),)


def _warned(decision: Decision, code: str, detail: str) -> Decision:
    warning = DecisionWarning(code=code, detail=detail)
    return decision.with_(warnings=(*decision.warnings, warning))


async def _remember(store: LatchStore, effect: Remember, decision: Decision) -> Decision:
    """Keep a record, new or not; add a warning to the decision when there is no room."""
    if await store.update(effect.identity, effect.record):
        return decision
    try:
        await store.latch(effect.identity, effect.record)
    except LatchCapacityError:
        return _warned(
            decision,
            "memory_full",
            f"all {store.capacity} session slots of this route are taken: nothing is "
            "remembered for this session",
        )
    return decision


_FIELDS: tuple[tuple[str, type, str], ...] = (
    ("target", str, "a string"),
    ("phase", str, "a string"),
    ("reason", Reason, "a Reason of strings"),
    ("rewrites", tuple, "a tuple of Rewrite"),
    ("warnings", tuple, "a tuple of DecisionWarning"),
    ("effects", tuple, "a tuple of effects on identities"),
    ("trace", Mapping, "a mapping"),
)


def _breach_of(decision: Any, rewrites: Mapping[str, object]) -> str:
    """Return what is wrong with a router's decision, as the end of a sentence, or ``""``.

    The text holds no value of the decision except the name of an unknown rewrite.
    """
    # One function with loops in it: this runs on every request.
    if not isinstance(decision, Decision):
        return f"returned {type(decision).__name__}, not a Decision"
    wrong = next((f for f in _FIELDS if not isinstance(getattr(decision, f[0]), f[1])), None)
    if wrong is None:
        wrong = _wrong_inside(decision)
    if wrong is not None:
        found = type(getattr(decision, wrong[0])).__name__
        return f"returned a Decision whose `{wrong[0]}` is {found}, not {wrong[2]}"
    for rewrite in decision.rewrites:
        if rewrite.name not in rewrites:
            known = ", ".join(sorted(rewrites))
            return (
                f"asked for the rewrite `{rewrite.name}`, which no installed plugin gives "
                f"(known: {known})"
            )
    return ""


def _wrong_inside(decision: Decision) -> tuple[str, type, str] | None:
    """Return the field with a value of a wrong type, ``None`` without one."""
    reason, (_, _, of_reason, of_rewrites, of_warnings, of_effects, _) = decision.reason, _FIELDS
    if not isinstance(reason.facts, Mapping):
        return of_reason
    for text in (reason.code, reason.detail, *reason.facts, *reason.facts.values()):
        if not isinstance(text, str):
            return of_reason
    for rewrite in decision.rewrites:
        if not (
            isinstance(rewrite, Rewrite)
            and isinstance(rewrite.name, str)
            and isinstance(rewrite.parameters, Mapping)
        ):
            return of_rewrites
    for warning in decision.warnings:
        if not (
            isinstance(warning, DecisionWarning)
            and isinstance(warning.code, str)
            and isinstance(warning.detail, str)
        ):
            return of_warnings
    for effect in decision.effects:
        if not (isinstance(effect, _EFFECTS) and isinstance(effect.identity, Identity)) or not (
            isinstance(effect, ReleaseAfterSuccess) or isinstance(effect.record, LatchRecord)
        ):
            return of_effects
    return None


_EFFECTS = (Latch, UpdateRecord, Remember, ReleaseAfterSuccess)


def _trace_of(
    routed: Routed, context: RouteContext, decision: Decision, *, dry_run: bool
) -> dict[str, Any]:
    identity, record, call = routed.identity, context.session.record, routed.side_call
    route = routed.runtime.route
    trace: dict[str, Any] = {
        "route": route.id,
        "route_type": route.type.name,
        "identity": None,
        "housekeeping": call.mark if call is not None else "",
        "kind": call.kind if call is not None else "",
        "final": context.session.final,
        "latched_before": record is not None,
        "latched_after": record is not None
        or any(isinstance(effect, Latch) for effect in decision.effects),
        "calls": None,
        **decision.trace,
    }
    if identity is not None:
        trace["identity"] = asdict(identity)
    if context.mutations.scanned:
        # An explanation lists every call; a request is not held up for those behind the first.
        verdicts = context.mutations.verdicts if dry_run else context.mutations.labelled
        trace["calls"] = [_told(verdict) for verdict in verdicts]
        if dry_run and verdicts:
            trace["workspace"] = [root._asdict() for root in context.mutations.workspace]
    return trace


def _told(verdict: Verdict) -> dict[str, Any]:
    """Return a verdict as plain data."""
    told = {
        "tool": verdict.tool,
        "call": verdict.call_path,
        "label": verdict.label,
        "rule_set": verdict.rule_set,
        "rule": verdict.rule,
        "word": verdict.word,
        "detail": verdict.detail,
    }
    return told if verdict.offset is None else {**told, "offset": verdict.offset}
