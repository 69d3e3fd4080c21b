"""Requests to routes that answer by themselves: as events, as a response, or rehearsed."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Any

from switchyard_core.answers import AnswerEvent
from switchyard_core.asking import Ask, ModelUsage
from switchyard_core.decision import Decision
from switchyard_core.engine.answering import (
    KEEPALIVE_S,
    AnswerRun,
    Tally,
    checked_events,
)
from switchyard_core.engine.deciding import Decider
from switchyard_core.engine.response import Outcome, Response
from switchyard_core.errors import RefusedError
from switchyard_core.request import Request
from switchyard_core.router import AnsweringRouter
from switchyard_core.stores import MemoryPlanStore
from switchyard_core.wire import format_of
from switchyard_core.wire.answers import answer_id, answer_writer

__all__ = ["Answers"]


#: Ends a request with what came of it.
_Finish = Callable[[Decision, Outcome], Awaitable[None]]


class Answers:
    """Lets the routers of kind ``answers`` answer.

    Args:
        decider: Finds routes and makes contexts.
        finish: Ends a request.
        clock: Seconds since the epoch.
        monotonic: A monotonic clock in seconds.
        new_id: Makes the ids of answers.
    """

    def __init__(
        self,
        decider: Decider,
        *,
        finish: _Finish,
        clock: Callable[[], float],
        monotonic: Callable[[], float],
        new_id: Callable[[str], str],
    ) -> None:
        self._decider = decider
        self._finish = finish
        self._clock = clock
        self._monotonic = monotonic
        self._new_id = new_id

    async def events(self, request: Request) -> AsyncGenerator[AnswerEvent]:
        """Yield what the router says to a request, unwritten.

        Raises:
            RequestError: The request is refused, or its route does not answer by itself.
            UpstreamError: A model could not be asked.
            PluginError: The router broke its contract.
        """
        runtime = self._decider.runtime_for(request)
        if not runtime.answers:
            raise RefusedError(
                message=f"the route `{runtime.route.id}` sends requests on and answers none",
                code="route_does_not_answer",
                param="model",
            )
        decision = await self._decider.decide(request)
        ok, start = False, self._monotonic()
        try:
            events = self._run(request, decision, {})
            async with contextlib.aclosing(events):
                async for event in events:
                    yield event
            ok = True
        finally:
            await self._end(decision, start, ok=ok)

    async def rehearse(
        self, request: Request, decision: Decision, ask: Ask
    ) -> AsyncGenerator[AnswerEvent]:
        """Yield what the router would say; ``ask`` answers for the models, no plan is kept."""
        events = self._run(request, decision, {}, rehearse=ask)
        async with contextlib.aclosing(events):
            async for event in events:
                yield event

    async def respond(self, request: Request) -> Response:
        """Return the answer in the wire format of the request, whole or as a stream.

        Raises:
            RequestError: The request is refused, or a model's provider refused the first call.
            UpstreamError: A model could not be asked.
            PluginError: The router broke its contract.
        """
        decision = await self._decider.decide(request)
        runtime = self._decider.runtimes[decision.route]
        route, wire_format = runtime.route, format_of(request.wire_format)
        options: Any = route.options
        tokens: dict[str, ModelUsage] = {}
        run = AnswerRun(
            events=self._run(request, decision, tokens),
            writer=answer_writer(
                wire_format,
                model=route.id,
                answer_id=answer_id(wire_format, self._new_id),
                created_s=int(self._clock()),
                include_usage=wire_format.includes_usage(request.fields),
            ),
            blame=partial(self._decider.blame, runtime),
            keepalive_s=float(getattr(options, "keepalive_s", KEEPALIVE_S)),
            progress=bool(getattr(options, "progress_events", False)),
        )
        start = self._monotonic()
        try:
            answer = await (run.streamed() if request.stream else run.whole())
        except BaseException as error:
            await self._end(decision, start, ok=False, error=type(error).__name__)
            raise
        said = decision.with_(
            phase=run.phase or decision.phase,
            warnings=(*decision.warnings, *run.warnings),
        )

        async def finish(outcome: Outcome) -> None:
            await self._finish(said, outcome)

        return Response(
            answer,
            decision=said,
            reports=(),
            finish=finish,
            clock=self._monotonic,
            tokens=tokens,
        )

    async def _run(
        self,
        request: Request,
        decision: Decision,
        tokens: dict[str, ModelUsage],
        *,
        rehearse: Ask | None = None,
    ) -> AsyncGenerator[AnswerEvent]:
        decider = self._decider
        runtime = decider.runtimes[decision.route]
        asking = decider.asking(runtime, request, dry_run=False, instead=rehearse)
        context = await decider.context(
            runtime,
            request,
            decider.mark_of(request),
            Tally(asking, tokens),
            dry_run=rehearse is not None,
        )
        if rehearse is not None and context.plans is not None:
            plans = MemoryPlanStore(context.plans.capacity, context.plans.ttl_s, self._clock)
            context = replace(context, plans=plans)
        if not isinstance(runtime.router, AnsweringRouter):
            raise decider.blame(runtime, "has no method `answer`")
        blame = partial(decider.blame, runtime)
        events = checked_events(runtime.router, request, context, blame)
        # A call without a recording ends the answer, whatever the router makes of it.
        with asking.heeded():
            async with contextlib.aclosing(events):
                async for event in events:
                    yield event

    async def _end(self, decision: Decision, start: float, *, ok: bool, error: str = "") -> None:
        outcome = Outcome(
            status=200 if ok else 0,
            ok=ok,
            bytes_out=0,
            duration_s=self._monotonic() - start,
            error=error,
        )
        await self._finish(decision, outcome)
