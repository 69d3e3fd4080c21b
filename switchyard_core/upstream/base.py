"""The interface to a provider: one request out, one answer of raw bytes back.

Everything that reaches a provider goes through :meth:`Upstream.send`, so recording, replay
and the scripted provider are further implementations and need no extra hook.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Protocol, Self

from switchyard_core.decision import Outgoing

__all__ = ["Upstream", "UpstreamResponse"]


class UpstreamResponse:
    """A provider's answer: status, headers, and the body's bytes as they arrive.

    Args:
        status: HTTP status.
        headers: Names in lower case and values, in the order of arrival.
        source: The body, undecoded; one chunk per read from the provider. It raises
            :class:`~switchyard_core.errors.UpstreamError` of kind ``cut`` when the provider
            breaks off.
        close: Ends the call; run once at most, by :meth:`aclose`.

    The body can be read once. Reading on needs no call of :meth:`aclose`; stopping early
    does, or use it as ``async with``.
    """

    __slots__ = ("_close", "_closed", "_held", "_source", "headers", "status")

    def __init__(
        self,
        status: int,
        headers: tuple[tuple[str, str], ...],
        source: AsyncIterator[bytes],
        close: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self.status = status
        self.headers = headers
        self._source = source
        self._close = close
        self._closed = False
        self._held: deque[bytes] = deque()

    @property
    def chunks(self) -> AsyncIterator[bytes]:
        """The body, chunk by chunk; every use continues where the last one stopped."""
        return _Chunks(self)

    def header(self, name: str) -> str | None:
        """Return the first value of a header, ``None`` without one; any case of the name."""
        wanted = name.lower()
        return next((value for key, value in self.headers if key == wanted), None)

    async def peek(self, limit: int) -> bytes:
        """Return up to the first ``limit`` bytes of the body and keep them for the reader.

        Raises:
            UpstreamError: The provider broke off.
        """
        size = sum(map(len, self._held))
        while size < limit and (chunk := await self.ahead()) is not None:
            size += len(chunk)
        return b"".join(self._held)[:limit]

    async def ahead(self) -> bytes | None:
        """Return one more chunk and keep it for the reader, ``None`` at the end of the body.

        Raises:
            UpstreamError: The provider broke off.
        """
        if self._closed:
            return None
        try:
            chunk = await anext(self._source)
        except StopAsyncIteration:
            return None
        self._held.append(chunk)
        return chunk

    @property
    def held(self) -> bytes:
        """The bytes that were read ahead."""
        return b"".join(self._held)

    def replace_held(self, body: bytes, headers: tuple[tuple[str, str], ...]) -> None:
        """Give the reader other bytes than those that were read ahead, and other headers."""
        self.headers = headers
        self._held = deque([body])

    async def read(self, limit: int | None = None) -> bytes:
        """Return the whole body, or its first ``limit`` bytes, and end the call.

        Raises:
            UpstreamError: The provider broke off.
        """
        found: list[bytes] = []
        size = 0
        try:
            async for chunk in self.chunks:
                found.append(chunk)
                size += len(chunk)
                if limit is not None and size >= limit:
                    break
        finally:
            await self.aclose()
        return b"".join(found)[:limit]

    async def aclose(self) -> None:
        """End the call: the provider's connection is closed if the body was not read to its end.

        May be called any number of times, and from another task than the one that reads.
        """
        if self._closed:
            return
        self._closed = True
        self._held.clear()
        if self._close is not None:
            await self._close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.aclose()

    async def _next(self) -> bytes:
        if self._held:
            return self._held.popleft()
        if self._closed:
            raise StopAsyncIteration
        return await anext(self._source)


class _Chunks:
    """Iterator over a response; no generator, so that it may be closed from outside."""

    __slots__ = ("_response",)

    def __init__(self, response: UpstreamResponse) -> None:
        self._response = response

    def __aiter__(self) -> _Chunks:
        return self

    async def __anext__(self) -> bytes:
        return await self._response._next()  # noqa: SLF001 - the two classes are one unit


class Upstream(Protocol):
    """A provider."""

    async def send(self, outgoing: Outgoing) -> UpstreamResponse:
        """Send one request and return the answer once its first byte is there.

        A provider's error status is an answer, not an exception.

        Raises:
            UpstreamError: No answer came: ``connect`` and ``closed`` (502), ``timeout`` (504),
                ``protocol`` (502).
        """
        ...

    async def aclose(self) -> None:
        """Close all connections; calls still running end with an error."""
        ...
