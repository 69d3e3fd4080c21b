"""The public object: a policy and its plugins, ready to decide, rewrite, call and serve."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Mapping
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from switchyard_core.answering import AnswerEvent, Ask
from switchyard_core.cases import CaseResult, read_cases, run_cases
from switchyard_core.decision import Decision, Failure, Outgoing, ReleaseAfterSuccess, RewriteReport
from switchyard_core.engine.answering import Answers
from switchyard_core.engine.calling import (
    AskTarget,
    Upstreams,
    connect,
    forwarded_headers,
    headers_for,
    request_path,
    script_findings,
)
from switchyard_core.engine.deciding import Decider, apart
from switchyard_core.engine.opening import Opening
from switchyard_core.engine.replies import FAILURE_BYTES, failure_of
from switchyard_core.engine.response import Outcome, Response, succeeded
from switchyard_core.engine.routes import RequestFacts, Routed, RouteRuntime
from switchyard_core.engine.translating import (
    TranslatedAnswer,
    counts_here,
    endpoint_at,
    estimated_count,
)
from switchyard_core.errors import PolicyError, RefusedError, ReplayError, UpstreamError
from switchyard_core.explain.explanation import Explanation, explain
from switchyard_core.identity import Identity
from switchyard_core.plugins import PluginRegistry
from switchyard_core.policy import Client, Policy, load_policy, load_policy_text
from switchyard_core.replay import Replay
from switchyard_core.request import Request
from switchyard_core.router import RetryingRouter
from switchyard_core.upstream.base import Upstream, UpstreamResponse
from switchyard_core.wire import FORMATS
from switchyard_core.wire.passing import AnswerTrace
from switchyard_core.wire.rewrites import apply_rewrites
from switchyard_core.world import World

if TYPE_CHECKING:
    from switchyard_core.server.app import SwitchyardApp

__all__ = ["Switchyard"]

#: Most further tries that a router may ask for.
MAX_TRIES = 8


class Switchyard:
    """Routes the requests of coding agents by a policy.

    Make one with :meth:`from_policy`; any number of tasks may share it. ``decide`` asks the route's
    router and carries out the effects on the latch store; ``rewrite`` makes the outgoing body;
    ``handle`` does both and the call. Only ``handle`` touches the network and the environment.

    Args:
        policy: A policy without errors.
        registry: The plugins that it was checked with.
        world: Environment, randomness, time and ids; ``None`` is the real one.
        upstreams: Connections to the providers; ``None`` makes them from the policy.
        kept: The routes of the policy before, whose latch stores continue; see :meth:`successor`.
        ask: Makes the calls that routers ask for, in place of ``upstreams``.

    Example:
        >>> yard = Switchyard.from_policy("policies/plan_execute.toml")   # doctest: +SKIP
        >>> decision = await yard.decide(request)                         # doctest: +SKIP
    """

    def __init__(
        self,
        policy: Policy,
        registry: PluginRegistry,
        *,
        world: World | None = None,
        upstreams: Upstreams | None = None,
        kept: Mapping[str, RouteRuntime] | None = None,
        ask: AskTarget | None = None,
    ) -> None:
        self.policy = policy
        self.registry = registry
        self.world = world if world is not None else World()
        self.upstreams = (
            upstreams if upstreams is not None else Upstreams(policy, registry.rewrites, self.world)
        )
        self._ask = ask
        self._decider = Decider(
            policy, registry, world=self.world, ask=ask or self.upstreams.ask, kept=kept or {}
        )
        self.runtimes = self._decider.runtimes
        self._answers = Answers(self._decider, finish=self._finished, world=self.world)

    @classmethod
    def from_policy(
        cls,
        source: str | PathLike[str],
        *,
        registry: PluginRegistry | None = None,
        connect: Callable[[Client], Upstream] = connect,
        world: World | None = None,
        replay: Replay | None = None,
    ) -> Self:
        """Return a switchyard for a policy file.

        Args:
            source: Path of the TOML file.
            registry: Plugins to use; ``None`` takes all installed ones.
            connect: Makes the connection to a provider.
            world: Environment, randomness, time and ids; ``None`` is the real one.
            replay: Recorded model calls to answer from, or a folder to record calls to.

        Raises:
            PolicyError: The policy has errors; carries all of them.
        """
        registry = registry if registry is not None else PluginRegistry.from_entry_points()
        policy = load_policy(Path(source), registry)
        return cls.from_loaded(policy, registry, connect=connect, world=world, replay=replay)

    @classmethod
    def from_policy_text(
        cls,
        text: str,
        *,
        name: str = "policy",
        base_dir: str | PathLike[str] | None = None,
        registry: PluginRegistry | None = None,
        connect: Callable[[Client], Upstream] = connect,
        world: World | None = None,
        replay: Replay | None = None,
    ) -> Self:
        """Return a switchyard for the text of a policy; ``name`` is its name in error messages."""
        registry = registry if registry is not None else PluginRegistry.from_entry_points()
        folder = Path(base_dir) if base_dir is not None else Path()
        policy = load_policy_text(text, name, registry, base_dir=folder)
        return cls.from_loaded(policy, registry, connect=connect, world=world, replay=replay)

    @classmethod
    def from_loaded(
        cls,
        policy: Policy,
        registry: PluginRegistry,
        *,
        connect: Callable[[Client], Upstream] = connect,
        world: World | None = None,
        replay: Replay | None = None,
    ) -> Self:
        """Return a switchyard for a policy that is already loaded."""
        findings = script_findings(policy)
        if findings:
            raise PolicyError(findings)
        world = world if world is not None else World()
        upstreams = Upstreams(policy, registry.rewrites, world, connect=connect, replay=replay)
        return cls(policy, registry, world=world, upstreams=upstreams)

    def successor(self, policy: Policy) -> Switchyard:
        """Return the switchyard for a changed policy; this one finishes its requests.

        Both share the connections of unchanged clients, and the latch stores of routes that kept
        name, type and store. Such a store has the new capacity at once: a lower one evicts nobody
        and refuses new sessions until slots are free. A :class:`PluginError` changes nothing.
        """
        return Switchyard(
            policy,
            self.registry,
            world=self.world,
            upstreams=self.upstreams.following(policy),
            kept=self.runtimes,
            ask=self._ask,
        )

    # --- deciding ------------------------------------------------------------------------

    async def decide(
        self, request: Request, *, dry_run: bool = False, ask: Ask | None = None
    ) -> Decision:
        """Return where a request goes; no network.

        A handoff latches its identity, since the caller will act on it.

        Args:
            request: The request.
            dry_run: Changes nothing; a full store is reported as a warning, and a router that
                asks a model ends the run with :class:`WouldAsk`.
            ask: Answers in place of a model.

        Raises:
            RequestError: The request is refused; nothing was sent and nothing changed.
            PluginError: The router broke its contract.
            UpstreamError: The router asked a model and got no answer.
            WouldAsk: Only with ``dry_run`` and without ``ask``.
        """
        routed = await self._decider.routed(request)
        return await self._decider.decide(routed, dry_run=dry_run, ask=ask)

    def runtime_for(self, request: Request) -> RouteRuntime:
        """Return the route that a request leads to, in whatever wire format."""
        return self._decider.runtime_for(request)

    def facts_of(self, request: Request) -> RequestFacts:
        """Return what can be read of a request that was refused or failed; never raises."""
        model = route = ""
        identity = None
        # Whatever cannot be read has been reported already; the rest is what there is.
        with contextlib.suppress(Exception):
            runtime = self.runtime_for(request)
            route = runtime.route.name
            identity, _ = runtime.sessions(request)
        with contextlib.suppress(Exception):
            model = request.model
        return RequestFacts(model=model, route=route, identity=identity)

    async def explain(self, request: Request) -> Explanation:
        """Return why a request would go where, and its outgoing body; nothing changes.

        Raises:
            RequestError: The request would be refused.
            WouldAsk: The route's router would ask a model first.
        """
        return await explain(self, request)

    async def test(self, tests: str | PathLike[str]) -> tuple[CaseResult, ...]:
        """Run a test file of this policy; nothing is called and nothing changes.

        Returns one result per case, in the order of the file; mistakes in the file are one
        :class:`PolicyError` with all of them.
        """
        cases = read_cases(Path(tests), self.policy, self.registry)
        return (await run_cases(cases, self.policy, self.registry, Switchyard))[0]

    # --- rewriting -----------------------------------------------------------------------

    def rewrite(self, request: Request, decision: Decision) -> Outgoing:
        """Return the outgoing request of a decision: path, headers without credentials, body.

        Pure: the caller's body does not change, and every byte that no rewrite touches is in the
        outgoing body.
        """
        if decision.route and self.runtimes[decision.route].answers:
            raise RefusedError(
                message=f"the route `{decision.route}` asks models itself and "
                "forwards no body: call `handle`",
                code="route_answers",
            )
        target = self.policy.targets[decision.target]
        given, query, endpoint = request.headers, request.query, request.endpoint
        if target.wire_format != request.wire_format:
            given, query = headers_for(request, target.client), ""
            endpoint = endpoint_at(target.wire_format, endpoint) or "create"
        headers = dict(forwarded_headers(given, target.client))
        body, reports = apply_rewrites(
            request.fields.copy(),
            decision.rewrites,
            self.registry.rewrites,
            request.wire_format,
            target.rewrites,
            partial(self.registry.fault, "rewrite"),
            headers,
        )
        return Outgoing(
            wire_format=target.wire_format,
            path=request_path(target.client, endpoint),
            query=query,
            headers=tuple(headers.items()),
            body=body,
            stream=request.stream,
            target=target.name,
            model=target.id,
            route=decision.route,
            role=decision.phase or decision.target,
            reports=reports,
        )

    # --- calling -------------------------------------------------------------------------

    async def handle(
        self, request: Request, *, sent: Callable[[Decision, Outgoing], None] | None = None
    ) -> Response:
        """Decide, rewrite and call; the answer is the provider's own.

        ``sent`` is called with each outgoing request before it is sent.

        Raises:
            RequestError: The request is refused; nothing was sent.
            UpstreamError: The provider could not be reached.
        """
        routed = await self._decider.routed(request)
        if routed.runtime.answers:
            return await self._answers.respond(routed)
        # Who cannot call the provider must not take a slot.
        decision = await self._decider.decide(routed, admit=partial(self._admit, request))
        if request.endpoint != "create" and counts_here(
            request, self.policy.targets[decision.target]
        ):
            return self._response(routed, decision, estimated_count(request))
        start, trace = self.world.monotonic(), None
        for tries in range(MAX_TRIES, -1, -1):
            outgoing = await apart(request, partial(self.rewrite, request, decision))
            if sent is not None:
                sent(decision, outgoing)
            answer: UpstreamResponse | UpstreamError | None = None
            try:
                answer, opening = await self._answer_to(routed, decision, outgoing)
                again = await self._next(routed, decision, answer, opening) if tries else None
                across = outgoing.wire_format != request.wire_format
                if across and again is None and isinstance(answer, UpstreamResponse):
                    target = self.policy.targets[outgoing.target]
                    translated = TranslatedAnswer(routed, target, self.world)
                    answer = await translated.of(answer, opening, certain=decision.frees)
                    trace = translated.trace
            except BaseException as error:
                # The client left, or the router failed: nobody will read this answer.
                if isinstance(answer, UpstreamResponse):
                    await answer.aclose()
                await self._unanswered(routed, decision, start, type(error).__name__)
                raise
            if again is None:
                break
            if opening is not None:
                routed.count(decision.target, opening.usage())
            if isinstance(answer, UpstreamResponse):
                await answer.aclose()
            decision = again
        if isinstance(answer, UpstreamError):
            await self._unanswered(routed, decision, start, answer.kind)
            raise answer
        assert answer is not None  # noqa: S101  # the last try has one
        if trace is None:
            kind, spoken = answer.header("content-type") or "", FORMATS[outgoing.wire_format]
            trace = AnswerTrace(spoken, kind, certain=bool(decision.effects) and decision.frees)
        return self._response(routed, decision, answer, outgoing.reports, opening, trace)

    def _response(
        self,
        routed: Routed,
        decision: Decision,
        answer: UpstreamResponse,
        reports: tuple[RewriteReport, ...] = (),
        opening: Opening | None = None,
        trace: AnswerTrace | None = None,
    ) -> Response:
        return Response(
            answer,
            decision=decision,
            reports=reports,
            finish=partial(self._finished, decision),
            clock=self.world.monotonic,
            check=opening.check if opening is not None else None,
            trace=trace,
            spent=routed.spent,
        )

    def answer(self, request: Request) -> AsyncGenerator[AnswerEvent]:
        """Yield an answering router's answer as events.

        Use ``async with contextlib.aclosing(yard.answer(request)) as events`` where you may stop
        early: closing it cancels the running call.

        Raises:
            RequestError: The request is refused, or its route sends requests to a target.
            UpstreamError: A model could not be asked.
            PluginError: The router broke its contract.
        """
        return self._answers.events(request)

    def rehearse(self, request: Request, ask: Ask) -> AsyncGenerator[AnswerEvent]:
        """Yield what an answering router would answer; ``ask`` replaces the models.

        Nothing is called, kept or counted.
        """
        return self._answers.rehearse(request, ask)

    async def _answer_to(
        self, routed: Routed, decision: Decision, outgoing: Outgoing
    ) -> tuple[UpstreamResponse | UpstreamError, Opening | None]:
        """Return the answer to a call, and its opening where its status is a success."""
        request, route = routed.request, routed.runtime.route
        client = self.policy.targets[decision.target].client
        across = outgoing.wire_format != request.wire_format
        headers = headers_for(request, client) if across else request.headers
        try:
            answer = await self.upstreams.call(client, outgoing, headers)
        except UpstreamError as error:
            return error, None
        if not succeeded(answer.status):
            return answer, None
        wire_format = FORMATS[outgoing.wire_format]
        # A translated answer is named where it is told.
        named = not across and (route.answer_model or wire_format.answer_model) == "requested"
        opening = Opening(
            answer, wire_format, request.endpoint, model=request.model if named else ""
        )
        if opening.streams and not isinstance(routed.runtime.router, RetryingRouter):
            # Nobody would send the request elsewhere: its stream need not wait.
            return opening.response, opening
        try:
            await opening.settle(self.world.monotonic)
        except BaseException as error:
            await answer.aclose()
            if isinstance(error, UpstreamError):
                return error, None
            raise
        return opening.response, opening

    def _admit(self, request: Request, decision: Decision) -> None:
        """Refuse a request whose call would lack its credential, or that the model refuses."""
        target, headers = self.policy.targets[decision.target], request.headers
        refuses = any(rule.do == "refuse" for _, rule in target.accepts.rules)
        if target.wire_format != request.wire_format:
            if counts_here(request, target):
                return
            headers = headers_for(request, target.client)
            # What cannot be translated is not to take a slot either.
            refuses = refuses or bool(decision.effects) or target.on_untranslatable == "refuse"
        if refuses:
            self.rewrite(request, decision)
        self.upstreams.admit(target.client, lambda: self.rewrite(request, decision), headers)

    async def _next(
        self,
        routed: Routed,
        decision: Decision,
        answer: UpstreamResponse | UpstreamError,
        opening: Opening | None,
    ) -> Decision | None:
        """Ask the router for another try after a failure."""
        retries = isinstance(routed.runtime.router, RetryingRouter)
        # Another target would only hide what is to be recorded.
        if not retries or isinstance(answer, ReplayError):
            return None
        if isinstance(answer, UpstreamError):
            failure = Failure(kind="transport", status=0, code=answer.kind, body=b"")
        elif opening is None:
            try:
                failure = failure_of("status", answer.status, await answer.peek(FAILURE_BYTES))
            except UpstreamError:
                return None
        elif opening.check.settled and opening.check.failure:
            failure = failure_of("content", answer.status, opening.check.error)
        else:
            return None
        return await self._decider.again(routed, decision, failure)

    # --- the end -------------------------------------------------------------------------

    async def finish(self, decision: Decision, ok: bool, outcome: Outcome | None = None) -> None:  # noqa: FBT001  # reads well
        """End a request: free what its decision frees after a success.

        ``handle`` does this; a host that calls the model itself must. Without an ``outcome``,
        observers get one without figures.
        """
        if ok and decision.route:
            for effect in decision.effects:
                if isinstance(effect, ReleaseAfterSuccess):
                    await self._release(decision.route, effect.identity)
        if outcome is None:
            outcome = Outcome(status=200 if ok else 0, ok=ok, bytes_out=0, duration_s=0.0)
        if self.registry.notify_finished is not None:
            self.registry.notify_finished(decision, outcome)

    async def _unanswered(
        self, routed: Routed, decision: Decision, start: float, error: str
    ) -> None:
        outcome = Outcome(
            status=0,
            ok=False,
            bytes_out=0,
            duration_s=self.world.monotonic() - start,
            error=error,
            usage_by_target=routed.spent,
        )
        await self.finish(decision, ok=False, outcome=outcome)

    async def _finished(self, decision: Decision, outcome: Outcome) -> None:
        await self.finish(decision, outcome.ok, outcome)

    async def _release(self, route: str, identity: Identity) -> None:
        runtime = self.runtimes[route]
        if runtime.store is not None:
            await runtime.store.release(identity)
        if runtime.route.subagents is not None and identity.agent is None:
            # The session's sub-agents hold their slots where they are served.
            await self._release(runtime.route.subagents, identity)

    def asgi(self, **options: Any) -> SwitchyardApp:
        """Return the server as an ASGI application, to mount or to call in process.

        ``options`` are the keyword arguments of :class:`switchyard_core.server.app.SwitchyardApp`.
        """
        from switchyard_core.server.app import SwitchyardApp  # noqa: PLC0415  # only when served

        return SwitchyardApp(self, **options)

    async def aclose(self) -> None:
        """Wait for tools that must finish, and close every connection to a provider."""
        await asyncio.gather(*(runtime.tools.settle() for runtime in self.runtimes.values()))
        await self.upstreams.aclose()
