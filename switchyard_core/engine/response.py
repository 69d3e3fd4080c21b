"""A provider's answer on its way to the caller."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Self

from switchyard_core.answering import ModelUsage
from switchyard_core.decision import Decision, RewriteReport
from switchyard_core.upstream.base import UpstreamResponse
from switchyard_core.upstream.encoding import Decoder, EncodingError, content_encoding
from switchyard_core.wire.passing import AnswerTrace
from switchyard_core.wire.success import SuccessCheck

__all__ = ["Outcome", "Response", "ends_task", "succeeded"]

# Maximum size of an encoded answer that is looked at, once decoded.
_DECODED_BYTES = 64 * 1024 * 1024


def succeeded(status: int) -> bool:
    """Return whether a provider's status is a success; nobody follows redirects."""
    return 200 <= status < 300


def ends_task(error: BaseException) -> bool:
    """Return whether an exception comes from the host ending this task, not from the code in it.

    A plugin may raise anything, ``SystemExit`` and ``CancelledError`` included. Only a cancelled
    task and a closed generator end here; the class of the error alone does not tell.
    """
    if isinstance(error, Exception):
        return False
    task = asyncio.current_task()
    return isinstance(error, GeneratorExit) or (task is not None and task.cancelling() > 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a request ended; what ``switchyard_request_finished`` observers get.

    Args:
        status: HTTP status of the provider, 0 when there was no answer.
        ok: Whether the whole answer was a success and reached the caller.
        bytes_out: Bytes of the body passed to the caller.
        duration_s: Seconds from the call to the end of the answer.
        error: Why it failed, ``""`` when it did not.
        usage_by_target: Tokens that providers reported, by the name of the target: those of the
            answer, of answers that another try replaced, and of the calls that the router made.
    """

    status: int
    ok: bool
    bytes_out: int
    duration_s: float
    error: str = ""
    usage_by_target: Mapping[str, ModelUsage] = field(default_factory=dict)

    @property
    def usage(self) -> ModelUsage | None:
        """All tokens together, ``None`` when no provider reported any."""
        found = self.usage_by_target.values()
        return sum(found, ModelUsage()) if found else None


class Response:
    """Status, headers and raw body of an answer, with the decision behind it.

    Read :attr:`chunks` to the end, or call :meth:`aclose` (``async with`` does): both end the
    request and carry out the rest of its decision.

    Args:
        upstream: The provider's answer.
        decision: The decision that was carried out last.
        reports: What each rewrite changed in the body.
        finish: Called once at the end with the outcome.
        clock: A monotonic clock in seconds.
        check: Tells whether an answer is a success by what it says.
        trace: Tells what an answer of a provider took, and whether a stream ended well. ``None``
            takes every complete stream for a success, and so does an unknown encoding.
        spent: Usage by target of the calls that the router made.
    """

    def __init__(
        self,
        upstream: UpstreamResponse,
        *,
        decision: Decision,
        reports: tuple[RewriteReport, ...],
        finish: Callable[[Outcome], Awaitable[None]],
        clock: Callable[[], float],
        check: SuccessCheck | None = None,
        trace: AnswerTrace | None = None,
        spent: Mapping[str, ModelUsage] = MappingProxyType({}),
    ) -> None:
        self.status = upstream.status
        self.headers = upstream.headers
        self.decision = decision
        self.reports = reports
        #: What a provider's answer showed so far, ``None`` when nobody can read it.
        self.trace = trace
        self._upstream = upstream
        self._finish = finish
        self._clock = clock
        self._check = check
        self._start = clock()
        self._spent = spent
        self._bytes = 0
        self._last = b""
        self._ending: asyncio.Future[None] | None = None
        #: How the request ended, ``None`` while it runs.
        self.outcome: Outcome | None = None
        self._decoder: Decoder | None = None
        try:
            if encoding := content_encoding(upstream.headers):
                self._decoder = Decoder(encoding, _DECODED_BYTES)
        except EncodingError:
            self.trace = None

    @property
    def chunks(self) -> AsyncIterator[bytes]:
        """The body's bytes as they arrive, untouched.

        Raises:
            UpstreamError: The provider broke off.
        """
        return self._read()

    async def _read(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._upstream.chunks:
                self._bytes += len(chunk)
                self._last = chunk
                yield chunk
                self._note_last()
        except BaseException as error:
            await self._end(ok=False, error=type(error).__name__)
            raise
        ok = succeeded(self.status)
        if ok and self._check is not None and self._check.failure:
            await self._end(ok=False, error=self._check.failure)
            return
        if ok and self.trace is not None and self.trace.broken_stream:
            await self._end(ok=False, error="the stream ended without its end mark")
            return
        await self._end(ok=ok)

    def _note_last(self) -> None:
        """Note the chunk that was passed on last, also when its reader left with it."""
        chunk, self._last = self._last, b""
        if not chunk or self.trace is None or self.trace.apart:
            return
        try:
            self.trace.note(chunk if self._decoder is None else self._decoder.feed(chunk))
        except EncodingError:
            self.trace = None

    @property
    def usage_by_target(self) -> Mapping[str, ModelUsage]:
        """Tokens that providers reported so far, by the name of the target."""
        if self.outcome is not None:
            return self.outcome.usage_by_target
        self._note_last()
        found = dict(self._spent)
        told = self.trace.tokens() if self.trace is not None else None
        if told is not None:
            target = self.decision.target
            found[target] = found.get(target, ModelUsage()) + told
        return found

    async def read(self) -> bytes:
        """Return the whole body."""
        return b"".join([chunk async for chunk in self.chunks])

    async def aclose(self) -> None:
        """End the request; an answer that was not read to its end counts as failed."""
        await self._end(ok=False, error="closed before its end")

    async def _end(self, *, ok: bool, error: str = "") -> None:
        """End the request once, in a task that a caller who leaves does not cancel."""
        if self._ending is None:
            self._ending = asyncio.ensure_future(self._conclude(ok=ok, error=error))
        await asyncio.shield(self._ending)

    async def _conclude(self, *, ok: bool, error: str) -> None:
        await self._upstream.aclose()
        self.outcome = Outcome(
            status=self.status,
            ok=ok,
            bytes_out=self._bytes,
            duration_s=self._clock() - self._start,
            error=error if ok or error else f"status {self.status}",
            usage_by_target=self.usage_by_target,
        )
        await self._finish(self.outcome)

    async def __aenter__(self) -> Self:
        """Return the response itself."""
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        """End the request."""
        await self.aclose()
