"""Keeping an answer while it is passed on, byte for byte as the provider sent it."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Sequence

from switchyard_core.errors import RecordingError
from switchyard_core.formats.endpoints import endpoint_of
from switchyard_core.formats.watching import StreamWatch
from switchyard_core.upstream.base import Outgoing, UpstreamResponse

__all__ = ["Keep", "Tee", "is_stream", "whole"]

#: Records status, headers and chunks of an answer that was read to its end.
Keep = Callable[[int, Sequence[tuple[str, str]], Sequence[bytes]], None]

_LOG = logging.getLogger("switchyard")
_ERROR = 400


def is_stream(answer: UpstreamResponse) -> bool:
    """Return whether an answer is a stream of events that must not be held back."""
    kind = (answer.header("content-type") or "").lower()
    return answer.status < _ERROR and kind.startswith("text/event-stream")


async def whole(
    answer: UpstreamResponse, keep: Keep, gave_up: Callable[[str], None]
) -> UpstreamResponse:
    """Read an answer to its end, record it, and return it as it came.

    Args:
        answer: The provider's.
        keep: Records it.
        gave_up: Called with the reason when it is not recorded.

    Raises:
        UpstreamError: The provider broke off.
        RecordingError: It cannot be recorded.
    """
    chunks: list[bytes] = []
    try:
        async with answer:
            async for chunk in answer.chunks:
                chunks.append(chunk)  # noqa: PERF401  # what came before a failure is dropped
    except BaseException as error:
        gave_up(type(error).__name__)
        raise
    keep(answer.status, answer.headers, chunks)
    return UpstreamResponse(answer.status, answer.headers, _again(chunks))


async def _again(chunks: Sequence[bytes]) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


class Tee:
    """Passes a stream on chunk by chunk, and records it when it was read to its end.

    A client may close a stream after its end mark, without waiting for the connection's end:
    that stream is whole too.

    Args:
        answer: The provider's.
        outgoing: The call; its wire format says how a stream ends.
        keep: Records the stream.
        gave_up: Called with the reason when it is not recorded.
    """

    def __init__(
        self,
        answer: UpstreamResponse,
        outgoing: Outgoing,
        keep: Keep,
        gave_up: Callable[[str], None],
    ) -> None:
        self._answer = answer
        self._keep = keep
        self._gave_up = gave_up
        self._chunks: list[bytes] = []
        self._done = False
        found = endpoint_of(outgoing.path)
        plain = answer.header("content-encoding") in (None, "", "identity")
        # Of a stream that cannot be read on the way only its end tells whether it is whole.
        self._watch = StreamWatch(found[0]) if found is not None and plain else None

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
        self._chunks.append(chunk)
        if self._watch is not None:
            self._watch.see(chunk)
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
        self._keep(self._answer.status, self._answer.headers, self._chunks)

    def _stop(self, why: str) -> None:
        if not self._done:
            self._done = True
            self._gave_up(why)
