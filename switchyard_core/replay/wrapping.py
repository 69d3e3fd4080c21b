"""Recording and replay at the two places where calls go out."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Protocol

import httpx

from switchyard_core.errors import UpstreamError
from switchyard_core.upstream.base import Outgoing, Upstream, UpstreamResponse
from switchyard_core.wire import endpoint_of

__all__ = ["ReplayTransport", "ReplayUpstream"]


class _Sends(Protocol):
    async def send(
        self,
        outgoing: Outgoing,
        call: Callable[[], Awaitable[UpstreamResponse]],
        key_fields: Sequence[str] | None = None,
    ) -> UpstreamResponse: ...


class ReplayUpstream:
    """A connection that serves or records, around one that sends.

    Args:
        replay: The recordings.
        connect: Makes the inner connection, when the first call is sent.
        key_fields: Fields that tell calls apart, ``None`` for those of ``replay``.
    """

    def __init__(
        self,
        replay: _Sends,
        connect: Callable[[], Upstream],
        key_fields: Sequence[str] | None = None,
    ) -> None:
        self._replay = replay
        self._connect = connect
        self._key_fields = key_fields
        self._inner: Upstream | None = None

    async def send(self, outgoing: Outgoing) -> UpstreamResponse:
        """Answer a call from its recording, or send and record it.

        Raises:
            ReplayError: There is no recording, or none can be made.
            UpstreamError: The provider gave no answer.
        """
        return await self._replay.send(outgoing, lambda: self._send(outgoing), self._key_fields)

    async def _send(self, outgoing: Outgoing) -> UpstreamResponse:
        if self._inner is None:
            self._inner = self._connect()
        return await self._inner.send(outgoing)

    async def aclose(self) -> None:
        """Close the inner connection, if there is one."""
        if self._inner is not None:
            await self._inner.aclose()


class ReplayTransport(httpx.AsyncBaseTransport):
    """The same for an ``httpx.AsyncClient`` of one's own: same files, same keys.

    Requests pass as they are; recordings are made and found by method, path and body.

    Args:
        replay: The recordings.
        inner: What sends; ``None`` makes httpx's own transport when the first call is sent, in
            the mode ``replay`` never.
        route: First word in the names of new files.

    Example:
        >>> transport = ReplayTransport(Replay("recordings"))       # doctest: +SKIP
        >>> client = httpx.AsyncClient(transport=transport)         # doctest: +SKIP
    """

    def __init__(
        self,
        replay: _Sends,
        inner: httpx.AsyncBaseTransport | None = None,
        *,
        route: str = "httpx",
    ) -> None:
        self._replay = replay
        self._inner = inner
        self._route = route

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Answer a request from its recording, or send and record it.

        Raises:
            ReplayError: There is no recording, or none can be made.
            httpx.TransportError: The inner transport failed.
        """
        body = await request.aread()
        found = endpoint_of(request.url.path)
        outgoing = Outgoing(
            wire_format=found[0] if found is not None else "openai_chat",
            path=request.url.path,
            headers=(),
            body=body,
            stream=False,
            target="",
            model="",
            method=request.method,
            route=self._route,
        )
        answer = await self._replay.send(outgoing, lambda: self._send(request))
        return httpx.Response(
            answer.status, headers=list(answer.headers), stream=_Body(answer), request=request
        )

    async def _send(self, request: httpx.Request) -> UpstreamResponse:
        if self._inner is None:
            self._inner = httpx.AsyncHTTPTransport()
        answer = await self._inner.handle_async_request(request)
        stream = answer.stream
        if not isinstance(stream, httpx.AsyncByteStream):
            msg = "the inner transport is not asynchronous"
            raise UpstreamError(msg, kind="protocol")
        headers = tuple((n.lower(), value) for n, value in answer.headers.multi_items())
        return UpstreamResponse(answer.status_code, headers, aiter(stream), stream.aclose)

    async def aclose(self) -> None:
        """Close the inner transport, if there is one."""
        if self._inner is not None:
            await self._inner.aclose()


class _Body(httpx.AsyncByteStream):
    def __init__(self, answer: UpstreamResponse) -> None:
        self._answer = answer

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._answer.chunks:
            yield chunk

    async def aclose(self) -> None:
        await self._answer.aclose()
