"""The engine: a policy and its plugins, applied to requests.

``decide`` asks the route's router and carries out the effects on the latch store; ``rewrite``
makes the outgoing body; ``handle`` does both and the call. Only ``handle`` touches the network
and reads the environment.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from random import Random

from switchyard_core.asking import Ask
from switchyard_core.decision import (
    Decision,
    Failure,
    ReleaseAfterSuccess,
)
from switchyard_core.engine.answered import Answers
from switchyard_core.engine.asking import Asker, AskTarget
from switchyard_core.engine.clients import Upstreams
from switchyard_core.engine.deciding import Decider, apart
from switchyard_core.engine.known import Known, known_of
from switchyard_core.engine.outgoing import credential, error_code, forwarded_headers
from switchyard_core.engine.response import Outcome, Response, succeeded
from switchyard_core.engine.runtime import RouteRuntime
from switchyard_core.errors import RefusedError, ReplayError, UpstreamError
from switchyard_core.identity import Headers, Identity
from switchyard_core.plugins import PluginRegistry
from switchyard_core.policy.model import Client, Policy
from switchyard_core.request import Request
from switchyard_core.rewrites import RewriteReport, apply_rewrites
from switchyard_core.router import RetryingRouter, fresh_id
from switchyard_core.upstream.base import Outgoing, UpstreamResponse
from switchyard_core.wire import format_of
from switchyard_core.wire.passing import StreamWatch

__all__ = ["Engine", "Rewritten"]

#: Most bytes of a failed answer that a router sees.
FAILURE_BYTES = 65536
#: Most further tries that a router may ask for.
MAX_TRIES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewritten:
    """What goes to the provider, and what each rewrite changed."""

    outgoing: Outgoing
    reports: tuple[RewriteReport, ...]


class Engine:
    """Applies one policy.

    Args:
        policy: A policy without errors.
        registry: The plugins that it was checked with.
        upstreams: Connections to the providers; ``None`` makes them from the policy.
        environ: Where API keys stand; read when a call is made.
        random: Source of randomness for routers.
        clock: Seconds since the epoch, for routers.
        monotonic: A monotonic clock in seconds, for durations.
        new_id: Makes ids of plans and answers from a prefix; tests inject it.
        kept: The routes of the policy before, whose latch stores go on; see :meth:`successor`.
        ask: Makes the calls that routers ask for, in place of the engine's own; tests inject it.
    """

    def __init__(  # noqa: PLR0913  # all that a test or a host may put in place of the real thing
        self,
        policy: Policy,
        registry: PluginRegistry,
        *,
        upstreams: Upstreams | None = None,
        environ: Mapping[str, str] | None = None,
        random: Random | None = None,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
        new_id: Callable[[str], str] = fresh_id,
        kept: Mapping[str, RouteRuntime] | None = None,
        ask: AskTarget | None = None,
    ) -> None:
        self.policy = policy
        self.registry = registry
        self.upstreams = upstreams if upstreams is not None else Upstreams(policy.clients)
        self._environ = os.environ if environ is None else environ
        self._monotonic = monotonic
        self._random = random if random is not None else Random()  # noqa: S311  # no secrets
        self._clock = clock
        self._new_id = new_id
        self._ask = ask
        self._decider = Decider(
            policy,
            registry,
            random=self._random,
            clock=clock,
            kept=kept,
            new_id=new_id,
            ask=ask or Asker(policy.targets, registry.rewrites, self._asked).ask,
        )
        self.runtimes = self._decider.runtimes
        #: The routes that answer by themselves.
        self.answers = Answers(
            self._decider, finish=self._finished, clock=clock, monotonic=monotonic, new_id=new_id
        )

    def successor(self, policy: Policy) -> Engine:
        """Return the engine for a changed policy; this one goes on with what it has begun.

        Both share the connections of clients that did not change, and the latch stores of
        routes that kept their name, type and store. Such a store has the new capacity at once;
        one below what is latched evicts nobody, and refuses new sessions until slots are free.

        Args:
            policy: A policy without errors, checked with this engine's plugins.

        Raises:
            PluginError: A router or a latch store does not keep its contract; nothing changed.
        """
        return Engine(
            policy,
            self.registry,
            upstreams=self.upstreams.following(policy.clients),
            environ=self._environ,
            random=self._random,
            clock=self._clock,
            monotonic=self._monotonic,
            new_id=self._new_id,
            kept=self.runtimes,
            ask=self._ask,
        )

    @property
    def environ(self) -> Mapping[str, str]:
        """Where API keys stand; read when a call is made."""
        return self._environ

    def runtime_for(self, request: Request) -> RouteRuntime:
        """Return the route that serves a request; raises like :meth:`decide`."""
        return self._decider.runtime_for(request)

    def known(self, request: Request) -> Known:
        """Return what is known of a request that was refused or failed; never raises for it."""
        return known_of(request, self._decider.route_of)

    async def decide(
        self, request: Request, *, dry_run: bool = False, ask: Ask | None = None
    ) -> Decision:
        """Return where a request goes, and latch its identity when it hands off.

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
        return await self._decider.decide(request, dry_run=dry_run, ask=ask)

    async def finish(self, decision: Decision, ok: bool, outcome: Outcome | None = None) -> None:  # noqa: FBT001  # the spec's own signature
        """End a request: free what its decision frees after a success.

        ``handle`` does this; a host that calls the model itself must.

        Args:
            decision: The decision that was carried out.
            ok: Whether the call succeeded and its answer was delivered whole.
            outcome: For observers; one without figures is made when it is missing.
        """
        if ok and decision.route:
            for effect in decision.effects:
                if isinstance(effect, ReleaseAfterSuccess):
                    await self._release(decision.route, effect.identity)
        if outcome is None:
            outcome = Outcome(status=200 if ok else 0, ok=ok, bytes_out=0, duration_s=0.0)
        self.registry.notify_finished(decision, outcome)

    async def _finished(self, decision: Decision, outcome: Outcome) -> None:
        await self.finish(decision, ok=outcome.ok, outcome=outcome)

    async def _release(self, route: str, identity: Identity) -> None:
        runtime = self.runtimes[route]
        if runtime.store is not None:
            await runtime.store.release(identity)
        if runtime.route.subagents is not None and identity.agent is None:
            # The session's sub-agents hold their slots where they are served.
            await self._release(runtime.route.subagents, identity)

    # --- rewriting -----------------------------------------------------------------------

    def rewrite(self, request: Request, decision: Decision) -> Rewritten:
        """Return what is sent for a decision; the request's own body is not changed.

        The headers hold no credential: it is added when the call is made.
        """
        if decision.route and self.runtimes[decision.route].answers:
            raise RefusedError(
                message=f"the route `{decision.route}` answers by itself: no body of the caller's "
                "is sent on; call `handle`",
                code="route_answers",
            )
        target = self.policy.targets[decision.target]
        body, reports = apply_rewrites(
            request.fields.copy(),
            decision.rewrites,
            self.registry.rewrites,
            request.wire_format,
            target.rewrites,
            partial(self.registry.fault, "rewrite"),
        )
        outgoing = Outgoing(
            wire_format=target.wire_format,
            path="/v1" + format_of(target.wire_format).paths[request.endpoint],
            query=request.query,
            headers=forwarded_headers(request.headers, target.client),
            body=body,
            stream=request.stream,
            target=target.name,
            model=target.id,
            route=decision.route,
            role=decision.phase or decision.target,
        )
        return Rewritten(outgoing=outgoing, reports=reports)

    # --- calling -------------------------------------------------------------------------

    async def handle(
        self,
        request: Request,
        *,
        sent: Callable[[Decision, Rewritten], None] | None = None,
    ) -> Response:
        """Decide, rewrite and call; the answer is the provider's own.

        Args:
            request: The request.
            sent: Called with each outgoing request, before it is sent.

        Raises:
            RequestError: The request is refused; nothing was sent.
            UpstreamError: The provider could not be reached.
        """
        if (await apart(request, partial(self.runtime_for, request))).answers:
            return await self.answers.respond(request)
        # Who cannot call the provider must not take a slot.
        decision = await self._decider.decide(
            request, admit=lambda made: self._admit(request, made)
        )
        start = self._monotonic()
        for tries in range(MAX_TRIES, -1, -1):
            rewritten = await apart(request, partial(self.rewrite, request, decision))
            if sent is not None:
                sent(decision, rewritten)
            answer: UpstreamResponse | UpstreamError
            try:
                answer = await self._send(request, decision, rewritten.outgoing)
            except UpstreamError as error:
                answer = error
            except BaseException:
                await self.finish(decision, ok=False)
                raise
            try:
                again = await self._next(request, decision, answer) if tries else None
            except BaseException:
                # The client left, or the router failed: nobody will read this answer.
                if isinstance(answer, UpstreamResponse):
                    await answer.aclose()
                await self.finish(decision, ok=False)
                raise
            if again is None:
                break
            if isinstance(answer, UpstreamResponse):
                await answer.aclose()
            decision = again
        return await self._response(decision, rewritten, answer, start)

    async def _response(
        self,
        decision: Decision,
        rewritten: Rewritten,
        answer: UpstreamResponse | UpstreamError,
        start: float,
    ) -> Response:
        if isinstance(answer, UpstreamError):
            duration = self._monotonic() - start
            outcome = Outcome(
                status=0, ok=False, bytes_out=0, duration_s=duration, error=answer.kind
            )
            await self.finish(decision, ok=False, outcome=outcome)
            raise answer

        frees = any(isinstance(effect, ReleaseAfterSuccess) for effect in decision.effects)
        watch = StreamWatch(format_of(rewritten.outgoing.wire_format)) if frees else None

        async def finish(outcome: Outcome) -> None:
            await self._finished(decision, outcome)

        return Response(
            answer,
            decision=decision,
            reports=rewritten.reports,
            finish=finish,
            clock=self._monotonic,
            watch=watch,
        )

    async def call(self, client: Client, outgoing: Outgoing, headers: Headers) -> UpstreamResponse:
        """Send a request by a client, with its credential; a recording may answer instead.

        Args:
            client: Who sends.
            outgoing: What is sent, without a credential.
            headers: The caller's, for a client that sends the caller's own credential on.

        Raises:
            RequestError: There is no credential, and the request would reach a provider.
            ReplayError: Recordings are in use, and there is none for it or none can be made.
            UpstreamError: The provider gave no answer.
        """
        key_fields = self.policy.replay.key_fields
        if self.upstreams.sends(outgoing, key_fields):
            keys = credential(client, headers, self._environ)
            outgoing = replace(outgoing, headers=(*outgoing.headers, *keys))
        return await self.upstreams.send(client, outgoing, key_fields)

    async def _asked(
        self, request: Request, client: Client, outgoing: Outgoing
    ) -> UpstreamResponse:
        return await self.call(client, outgoing, request.headers)

    async def _send(
        self, request: Request, decision: Decision, outgoing: Outgoing
    ) -> UpstreamResponse:
        client = self.policy.targets[decision.target].client
        return await self.call(client, outgoing, request.headers)

    def _admit(self, request: Request, decision: Decision) -> None:
        """Refuse a request whose call would lack its credential."""
        if self.upstreams.replay is not None:
            outgoing = self.rewrite(request, decision).outgoing
            if not self.upstreams.sends(outgoing, self.policy.replay.key_fields):
                return
        credential(self.policy.targets[decision.target].client, request.headers, self._environ)

    async def _next(
        self, request: Request, decision: Decision, answer: UpstreamResponse | UpstreamError
    ) -> Decision | None:
        """Ask the router for another try after a failure."""
        if not isinstance(self.runtimes[decision.route].router, RetryingRouter):
            return None
        if isinstance(answer, ReplayError):
            # Another target would only hide what is to be recorded.
            return None
        if isinstance(answer, UpstreamError):
            failure = Failure(kind="transport", status=0, code=answer.kind, body=b"")
        elif succeeded(answer.status):
            return None
        else:
            try:
                body = await answer.peek(FAILURE_BYTES)
            except UpstreamError:
                return None
            failure = Failure(kind="status", status=answer.status, code=error_code(body), body=body)
        return await self._decider.again(request, decision, failure)

    async def aclose(self) -> None:
        """Wait for tools that must not be cut off, and close every connection to a provider."""
        await asyncio.gather(*(runtime.tools.settle() for runtime in self.runtimes.values()))
        await self.upstreams.aclose()
