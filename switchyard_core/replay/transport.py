"""Recordings for a caller's own httpx client."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx

from switchyard_core.decision import Outgoing
from switchyard_core.errors import UpstreamError
from switchyard_core.replay.session import Replay
from switchyard_core.upstream.base import UpstreamResponse
from switchyard_core.wire import endpoint_of

__all__ = ["ReplayTransport"]


class ReplayTransport(httpx.AsyncBaseTransport):
    """Recordings for your own ``httpx.AsyncClient``: the files and keys of :class:`Replay`.

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
        self, replay: Replay, inner: httpx.AsyncBaseTransport | None = None, *, route: str = "httpx"
    ) -> None:
        self._replay = replay
        self._inner = inner
        self._route = route

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Answer a request from its recording, or send and record it.

        Raises:
            ReplayError: No recording matches, or none can be made.
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
            raise UpstreamError("the inner transport is not asynchronous", kind="protocol")
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
