"""Running answering routers: their events, checked; and the answer that they become."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from switchyard_core.answers import (
    Announced,
    AnswerEvent,
    Extension,
    Finished,
    Progress,
    SectionFinished,
    Usage,
)
from switchyard_core.asking import Ask, AskError, ModelCall, ModelReply, ModelUsage, WouldAsk
from switchyard_core.decision import DecisionWarning, Failure
from switchyard_core.engine.contract import ends_task
from switchyard_core.engine.event_contract import breach_of_event
from switchyard_core.errors import PluginError, RequestError, SwitchyardError, UpstreamError
from switchyard_core.request import Request
from switchyard_core.router import AnsweringRouter, RouteContext
from switchyard_core.upstream.base import UpstreamResponse
from switchyard_core.wire.answers import AnswerWriter
from switchyard_core.wire.sse import comment

__all__ = ["KEEPALIVE_S", "AnswerRun", "Tally", "checked_events"]

#: Events that a slow client may leave waiting before the router waits too.
WAITING_EVENTS = 256
#: Seconds of silence in a stream after which a comment is sent, unless a route says otherwise.
KEEPALIVE_S = 10.0
_GATEWAY_TIMEOUT = 504
_ERROR, _LAST_STATUS = 400, 599
_Made = TypeVar("_Made")


@dataclass(slots=True)
class Tally:
    """Counts the tokens of each target that an answer asks.

    Args:
        ask: What makes the calls.
        tokens: What each target took so far, by name.
    """

    ask: Ask
    tokens: dict[str, ModelUsage] = field(default_factory=dict)

    async def __call__(self, target: str, call: ModelCall) -> ModelReply:
        """Ask a target and count."""
        reply = await self.ask(target, call)
        self.tokens[target] = self.tokens.get(target, ModelUsage()) + reply.usage
        return reply


async def checked_events(
    router: AnsweringRouter,
    request: Request,
    context: RouteContext,
    blame: Callable[[str], PluginError],
) -> AsyncGenerator[AnswerEvent]:
    """Yield the events of a router's answer; the last one is ``Finished``.

    Args:
        router: The router.
        request: What it answers.
        context: What it is given.
        blame: Makes the error for a breach of its contract.

    Raises:
        RequestError: The router refuses the request, or a model's provider did; before the
            first event only.
        UpstreamError: A model could not be asked.
        PluginError: The router broke its contract.
        WouldAsk: The context has no models to ask.
    """
    body, begun, finished, breach = request.body, False, False, ""
    events = router.answer(request, context)
    try:
        async for event in events:
            breach = "goes on after `Finished`" if finished else breach_of_event(event)
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
        raise blame(f"failed: {type(error).__name__}: {error}") from error
    finally:
        close = getattr(events, "aclose", None)
        if close is not None:
            with contextlib.suppress(RuntimeError):
                await close()
    if breach or not finished:
        raise blame(breach or "ended its answer without `Finished`")


def _breach_of_refusal(error: RequestError, *, begun: bool) -> str:
    """Return what is wrong with how a router refuses, ``""`` when nothing is."""
    if begun:
        return f"refused the request after it had begun to answer: {error}"
    if not _ERROR <= error.status <= _LAST_STATUS:
        return f"refuses a request with the status {error.status}, which says that nothing is wrong"
    return ""


def _as_refusal(error: AskError, *, begun: bool) -> RequestError | UpstreamError:
    """Return what a caller is told when a model gave no answer and the router did not mind."""
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
    """Return the text of a provider's error, ``""`` when it has none."""
    try:
        found = json.loads(failure.body)["error"]
        message = found if isinstance(found, str) else found["message"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""
    return message if isinstance(message, str) else ""


@dataclass(slots=True, kw_only=True)
class AnswerRun:
    """One answer on its way to the caller.

    Args:
        events: The router's events; see :func:`checked_events`.
        writer: Writes them in the caller's wire format.
        blame: Makes the error for a breach of the router's contract.
        keepalive_s: Seconds of silence after which a comment is sent in a stream.
        progress: Whether ``Progress`` events are sent as comments in a stream.
        phase: The router's word for where the answer stands.
        facts: Further headers, without their prefix.
        warnings: What the caller should know.
    """

    events: AsyncGenerator[AnswerEvent]
    writer: AnswerWriter
    blame: Callable[[str], PluginError]
    keepalive_s: float = KEEPALIVE_S
    progress: bool = False
    phase: str = ""
    facts: dict[str, str] = field(default_factory=dict)
    warnings: list[DecisionWarning] = field(default_factory=list)

    async def whole(self) -> UpstreamResponse:
        """Return the answer when all of it is there.

        Raises like :func:`checked_events`. What fails after the first event is ``final``: a
        client that asked again would have all that was done before done once more.
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
        """Return the answer once it has more than facts for the headers; the rest follows.

        The router goes on after a section when whoever reads the answer has taken it: what it
        does next, the caller has been told before. Raises like :func:`checked_events` for what
        goes wrong until the answer is returned.
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
        except BaseException as error:  # noqa: BLE001  # handed to whoever reads the stream
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
                    # event came at the same time, and the run of a client that left would go on.
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
        """Return what a writer makes of the router's events; that it cannot is the router's fault.

        Raises:
            PluginError: The events make no answer, or hold what is no JSON.
        """
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
    """Return what a router said; raise what it, or a model, failed with."""
    if isinstance(item, BaseException):
        raise item
    return item


async def _once(body: bytes) -> AsyncIterator[bytes]:
    yield body


async def _end(running: asyncio.Future[Any]) -> None:
    """End a router's task and wait until it has cleaned up."""
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError, Exception):
        await running
