"""Answering routers: their events, checked, and the answer that they become."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

from switchyard_core.answering import (
    Announced,
    AnswerEvent,
    Ask,
    AskError,
    Extension,
    Finished,
    Progress,
    SectionFinished,
    Usage,
    WouldAsk,
)
from switchyard_core.decision import Decision, DecisionWarning, Failure
from switchyard_core.engine.deciding import Decider
from switchyard_core.engine.events import breach_of_event
from switchyard_core.engine.response import Outcome, Response, ends_task
from switchyard_core.engine.routes import Routed
from switchyard_core.errors import (
    PluginError,
    RefusedError,
    RequestError,
    SwitchyardError,
    UpstreamError,
    with_place,
)
from switchyard_core.request import Request
from switchyard_core.router import AnsweringRouter, RouteContext
from switchyard_core.stores import MemoryPlanStore
from switchyard_core.upstream.base import UpstreamResponse
from switchyard_core.wire import FORMATS
from switchyard_core.wire.answers import AnswerWriter, answer_id, answer_writer, comment
from switchyard_core.world import World

__all__ = ["Answers", "checked_events"]

#: Events that a slow client may leave waiting before the router waits too.
WAITING_EVENTS = 256
#: Seconds of silence in a stream after which a comment is sent, unless a route sets another value.
KEEPALIVE_S = 10.0
_GATEWAY_TIMEOUT = 504
_ERROR, _LAST_STATUS = 400, 599
_Made = TypeVar("_Made")


#: Ends a request with what came of it.
_Finish = Callable[[Decision, Outcome], Awaitable[None]]


class Answers:
    """Lets the routers of kind ``answers`` answer."""

    def __init__(self, decider: Decider, *, finish: _Finish, world: World) -> None:
        self._decider = decider
        self._finish = finish
        self._world = world

    async def events(self, request: Request) -> AsyncGenerator[AnswerEvent]:
        """Yield the events of the router's answer; raises as :func:`checked_events`."""
        routed = await self._decider.routed(request)
        if not routed.runtime.answers:
            raise RefusedError(
                message=f"the route `{routed.runtime.route.id}` forwards requests and answers none",
                code="route_does_not_answer",
                param="model",
            )
        decision = await self._decider.decide(routed)
        ok, start = False, self._world.monotonic()
        try:
            events = self._run(routed)
            async with contextlib.aclosing(events):
                async for event in events:
                    yield event
            ok = True
        finally:
            await self._end(routed, decision, start, ok=ok)

    async def rehearse(self, request: Request, ask: Ask) -> AsyncGenerator[AnswerEvent]:
        """Yield what the router would answer; ``ask`` replaces the models, no plan is kept."""
        events = self._run(await self._decider.routed(request), rehearse=ask)
        async with contextlib.aclosing(events):
            async for event in events:
                yield event

    async def respond(self, routed: Routed) -> Response:
        """Return the answer in the wire format of the request, whole or as a stream."""
        decision = await self._decider.decide(routed)
        request, runtime = routed.request, routed.runtime
        wire_format = FORMATS[request.wire_format]
        options: Any = runtime.route.options
        run = AnswerRun(
            events=self._run(routed),
            writer=answer_writer(
                wire_format,
                model=runtime.route.id,
                answer_id=answer_id(wire_format, self._world.new_id),
                created_s=int(self._world.clock()),
                include_usage=wire_format.includes_usage(request.fields),
            ),
            blame=partial(self._decider.blame, runtime),
            keepalive_s=float(getattr(options, "keepalive_s", KEEPALIVE_S)),
            progress=bool(getattr(options, "progress_events", False)),
        )
        start = self._world.monotonic()
        try:
            answer = await (run.streamed() if request.stream else run.whole())
        except BaseException as error:
            await self._end(routed, decision, start, ok=False, error=type(error).__name__)
            raise
        said = decision.with_(
            phase=run.phase or decision.phase,
            warnings=(*decision.warnings, *run.warnings),
        )

        return Response(
            answer,
            decision=said,
            reports=(),
            finish=partial(self._finish, said),
            clock=self._world.monotonic,
            spent=routed.spent,
        )

    async def _run(
        self, routed: Routed, *, rehearse: Ask | None = None
    ) -> AsyncGenerator[AnswerEvent]:
        decider, runtime = self._decider, routed.runtime
        asking = decider.asking(routed, dry_run=False, instead=rehearse)
        context = await runtime.context(routed, asking, self._world, dry_run=rehearse is not None)
        if rehearse is not None and context.plans is not None:
            clock = self._world.clock
            plans = MemoryPlanStore(context.plans.capacity, context.plans.ttl_s, clock)
            context = replace(context, plans=plans)
        if not isinstance(runtime.router, AnsweringRouter):
            raise decider.blame(runtime, "has no method `answer`")
        blame = partial(decider.blame, runtime)
        events = checked_events(runtime.router, routed.request, context, blame)
        # A call without a recording ends the answer, whatever the router makes of it.
        with asking.heeded():
            async with contextlib.aclosing(events):
                async for event in events:
                    yield event

    async def _end(
        self, routed: Routed, decision: Decision, start: float, *, ok: bool, error: str = ""
    ) -> None:
        outcome = Outcome(
            status=200 if ok else 0,
            ok=ok,
            bytes_out=0,
            duration_s=self._world.monotonic() - start,
            error=error,
            usage_by_target=routed.spent,
        )
        await self._finish(decision, outcome)


async def checked_events(
    router: AnsweringRouter,
    request: Request,
    context: RouteContext,
    blame: Callable[[str], PluginError],
) -> AsyncGenerator[AnswerEvent]:
    """Yield the events of a router's answer; the last one is ``Finished``.

    An answer that breaks the contract ends in a :class:`PluginError`. A :class:`RequestError`
    passes before the first event only.
    """
    body, begun, finished, breach = request.body, False, False, ""
    events = router.answer(request, context)
    try:
        async for event in events:
            breach = "yields an event after `Finished`" if finished else breach_of_event(event)
            if request.body is not body or request.fields.changed:
                breach = "changed the request"
            if breach:
                break
            finished = isinstance(event, Finished)
            yield event
            begun = True
    except PluginError as error:
        if error.plugin:
            raise
        raise blame(str(error)) from error
    except (UpstreamError, WouldAsk):
        raise
    except RequestError as error:
        what = _breach_of_refusal(error, begun=begun)
        if what:
            raise blame(what) from error
        raise
    except AskError as error:
        raise _as_refusal(error, begun=begun) from error
    except BaseException as error:
        if ends_task(error):
            raise
        raise blame(f"failed: {with_place(error)}") from error
    finally:
        close = getattr(events, "aclose", None)
        if close is not None:
            with contextlib.suppress(RuntimeError):
                await close()
    if breach or not finished:
        raise blame(breach or "ended its answer without `Finished`")


def _breach_of_refusal(error: RequestError, *, begun: bool) -> str:
    if begun:
        return f"refused the request after it had begun to answer: {error}"
    if not _ERROR <= error.status <= _LAST_STATUS:
        return f"refuses a request with the status {error.status}: use one from 400 to 599"
    return ""


def _as_refusal(error: AskError, *, begun: bool) -> RequestError | UpstreamError:
    """Return what the caller gets when a model gave no answer and the router let that pass."""
    failure = error.failure
    if begun:
        return UpstreamError(error.message, kind="cut")
    if failure.kind != "status" or failure.status < 400:  # HTTP
        status = _GATEWAY_TIMEOUT if failure.code == "timeout" else 502
        return UpstreamError(error.message, kind=failure.code or "protocol", status=status)
    said = _provider_message(failure)
    return RequestError(
        message=f"{error.message}: {said}" if said else error.message,
        code=failure.code or f"provider_{failure.status}",
        status=failure.status,
        headers=failure.retry,
    )


def _provider_message(failure: Failure) -> str:
    try:
        found = json.loads(failure.body)["error"]
        message = found if isinstance(found, str) else found["message"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""
    return message if isinstance(message, str) else ""


@dataclass(slots=True, kw_only=True)
class AnswerRun:
    """One answer on its way to the caller."""

    events: AsyncGenerator[AnswerEvent]  # the router's events; see :func:`checked_events`
    writer: AnswerWriter  # writes them in the caller's wire format
    blame: Callable[[str], PluginError]  # makes the error for a breach of the router's contract
    keepalive_s: float = KEEPALIVE_S  # seconds of silence after which a comment is sent in a stream
    progress: bool = False  # whether `Progress` events are sent as comments in a stream
    phase: str = ""  # the router's word for the state of the answer
    facts: dict[str, str] = field(default_factory=dict)  # further headers, without their prefix
    warnings: list[DecisionWarning] = field(default_factory=list)

    async def whole(self) -> UpstreamResponse:
        """Return the answer when it is complete.

        An error after the first event is ``final``: a second try would repeat all work done so far.
        """
        begun = False
        try:
            async with contextlib.aclosing(self.events):
                async for event in self.events:
                    begun = True
                    self._hear(event)
                    self._made(partial(self.writer.note, event))
            body = self._made(self.writer.whole)
        except SwitchyardError as error:
            error.final = error.final or begun
            raise
        return self._response("application/json", _once(body))

    async def streamed(self) -> UpstreamResponse:
        """Return the answer once an event beyond the headers' facts arrives; the rest follows.

        After a section the router waits until the client has read it. Errors before the answer is
        returned raise as :func:`checked_events` does.
        """
        queue: asyncio.Queue[AnswerEvent | BaseException | None] = asyncio.Queue(WAITING_EVENTS)
        # One task for all of the router's code, so that its timeouts and locks hold.
        running = asyncio.ensure_future(self._run(queue))
        opening: list[AnswerEvent] = []
        try:
            while not opening or isinstance(opening[-1], (Announced, Usage, Extension)):
                item = _event(await queue.get())
                if item is None:
                    break
                self._hear(item)
                opening.append(item)
        except BaseException as error:
            await _end(running)
            if isinstance(error, SwitchyardError):
                error.final = error.final or bool(opening)
            raise

        async def close() -> None:
            await _end(running)

        return self._response("text/event-stream", self._stream(opening, queue, running), close)

    async def _run(self, queue: asyncio.Queue[AnswerEvent | BaseException | None]) -> None:
        end: BaseException | None = None
        try:
            async with contextlib.aclosing(self.events):
                async for event in self.events:
                    await queue.put(event)
                    if isinstance(event, SectionFinished):
                        await queue.join()
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001  # handed to the reader of the stream
            end = error
        await queue.put(end)

    async def _stream(
        self,
        opening: list[AnswerEvent],
        queue: asyncio.Queue[AnswerEvent | BaseException | None],
        running: asyncio.Future[None],
    ) -> AsyncIterator[bytes]:
        try:
            yield self.writer.begin() + b"".join(map(self._written, opening))
            for _ in opening:
                queue.task_done()
            while True:
                try:
                    # Not `wait_for`: before Python 3.12 it forgets that it was cancelled when an
                    # event came at the same time, and the run would outlive its client.
                    async with asyncio.timeout(self.keepalive_s):
                        found = await queue.get()
                except TimeoutError:
                    yield comment(None)
                    continue
                item = _event(found)
                if item is None:
                    break
                self._hear(item)
                chunk = self._written(item)
                if chunk:
                    yield chunk
                queue.task_done()
            yield self._made(self.writer.end)
        finally:
            await _end(running)

    def _written(self, event: AnswerEvent) -> bytes:
        if not isinstance(event, Progress):
            return self._made(partial(self.writer.event, event))
        return self._made(partial(comment, event.data)) if self.progress else b""

    def _made(self, write: Callable[[], _Made]) -> _Made:
        """Return what a writer makes of events; events that it refuses are the router's fault."""
        try:
            return write()
        except ValueError as error:
            raise self.blame(f"yields what makes no answer: {error}") from error

    def _hear(self, event: AnswerEvent) -> None:
        if isinstance(event, Announced):
            self.phase = event.phase or self.phase
            self.facts.update(event.facts)
            self.warnings += event.warnings
        elif isinstance(event, Finished):
            self.phase = event.status

    def _response(
        self,
        content_type: str,
        body: AsyncIterator[bytes],
        close: Callable[[], Awaitable[None]] | None = None,
    ) -> UpstreamResponse:
        headers = [("content-type", content_type)]
        if content_type == "text/event-stream":
            headers += [("cache-control", "no-cache"), ("x-accel-buffering", "no")]
        headers += [(f"x-switchyard-{name}", value) for name, value in self.facts.items()]
        return UpstreamResponse(200, tuple(headers), body, close)


def _event(item: AnswerEvent | BaseException | None) -> AnswerEvent | None:
    """Return an event; raise an error that a router or a model ended with."""
    if isinstance(item, BaseException):
        raise item
    return item


async def _once(body: bytes) -> AsyncIterator[bytes]:
    yield body


async def _end(running: asyncio.Future[Any]) -> None:
    """Cancel a router's task and wait for its cleanup."""
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError, Exception):
        await running
