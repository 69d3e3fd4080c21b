"""Keeping an answer while it is passed on, byte for byte as the provider sent it."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator

from switchyard_core.errors import RecordingError
from switchyard_core.replay.spool import Spool
from switchyard_core.replay.writing import ANSWER_BYTES, Writer
from switchyard_core.upstream.base import Outgoing, UpstreamResponse
from switchyard_core.wire import endpoint_of, format_of
from switchyard_core.wire.passing import StreamWatch

__all__ = ["Tee", "is_stream", "whole"]

_LOG = logging.getLogger("switchyard")
_ERROR = 400


def is_stream(answer: UpstreamResponse) -> bool:
    """Return whether an answer is a stream of events that must not be held back."""
    kind = (answer.header("content-type") or "").lower()
    return answer.status < _ERROR and kind.startswith("text/event-stream")


async def whole(answer: UpstreamResponse, writer: Writer) -> UpstreamResponse:
    """Read an answer to its end, record it, and return it as it came.

    It is held back, since what cannot be recorded is an error for whoever records; but not
    longer than there is room to keep it.

    Args:
        answer: The provider's.
        writer: Records it.

    Raises:
        UpstreamError: The provider broke off.
        RecordingError: It cannot be recorded.
    """
    spool = Spool(ANSWER_BYTES)

    async def close() -> None:
        spool.close()
        await answer.aclose()

    try:
        async for chunk in answer.chunks:
            if not spool.add(chunk):
                writer.gave_up(spool.lost)
                passed = _passed(spool, chunk, answer)
                return UpstreamResponse(answer.status, answer.headers, passed, close)
    except BaseException as error:
        await close()
        writer.gave_up(type(error).__name__)
        raise
    try:
        await answer.aclose()
        writer.keep(answer.status, answer.headers, tuple(spool.chunks()))
    except BaseException:
        spool.close()
        raise
    return UpstreamResponse(answer.status, answer.headers, _passed(spool), close)


async def _passed(
    spool: Spool, chunk: bytes = b"", answer: UpstreamResponse | None = None
) -> AsyncIterator[bytes]:
    """Yield what was held back, the chunk behind it, and the rest of the answer as it comes."""
    for kept in spool.chunks():
        yield kept
    spool.close()
    if answer is not None:
        yield chunk
        async for more in answer.chunks:
            yield more


class Tee:
    """Passes a stream on chunk by chunk, and records it when it was read to its end.

    A client may close a stream after its end mark, without waiting for the connection's end:
    that stream is whole too. One that is too long to be recorded passes like any other.

    Args:
        answer: The provider's.
        outgoing: The call; its wire format says how a stream ends.
        writer: Records the stream.
    """

    def __init__(self, answer: UpstreamResponse, outgoing: Outgoing, writer: Writer) -> None:
        self._answer = answer
        self._writer = writer
        self._spool = Spool(ANSWER_BYTES)
        self._done = False
        found = endpoint_of(outgoing.path)
        plain = answer.header("content-encoding") in (None, "", "identity")
        # Of a stream that cannot be read on the way only its end tells whether it is whole.
        self._watch = StreamWatch(format_of(found[0])) if found is not None and plain else None

    def __aiter__(self) -> Tee:
        """Return the tee itself."""
        return self

    async def __anext__(self) -> bytes:
        """Return the next chunk.

        Raises:
            StopAsyncIteration: The stream ended and was recorded.
            RecordingError: It ended and cannot be recorded.
            UpstreamError: The provider broke off.
        """
        try:
            chunk = await anext(self._answer.chunks)
        except StopAsyncIteration:
            self._end()
            raise
        except BaseException as error:
            self._stop(f"the stream broke off ({type(error).__name__})")
            raise
        if not self._done:
            if self._watch is not None:
                self._watch.see(chunk)
            if not self._spool.add(chunk):
                self._stop(self._spool.lost)
        return chunk

    async def aclose(self) -> None:
        """End the call; a stream that had not reached its end is not recorded."""
        try:
            if not self._done and self._watch is not None and self._watch.succeeded:
                self._end()
        except RecordingError as error:
            # Nobody reads any more, so nobody can be told but the log.
            _LOG.error("not recorded: %s", error.message)
        finally:
            self._stop("the stream was not read to its end")
            await self._answer.aclose()

    def _end(self) -> None:
        if self._done:
            return
        if self._watch is not None and self._watch.failed:
            self._stop("the stream holds an error event")
            return
        self._done = True
        try:
            chunks = tuple(self._spool.chunks())
            self._writer.keep(self._answer.status, self._answer.headers, chunks)
        finally:
            self._spool.close()

    def _stop(self, why: str) -> None:
        if not self._done:
            self._done = True
            self._spool.close()
            self._writer.gave_up(why)
