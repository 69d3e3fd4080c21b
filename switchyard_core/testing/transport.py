"""A provider for tests behind httpx; imported where it is asked for, since most tests need none."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

import httpx

from switchyard_core.decision import Outgoing
from switchyard_core.errors import UpstreamError
from switchyard_core.upstream.base import UpstreamResponse

__all__ = ["transport_of"]


def transport_of(
    send: Callable[[Outgoing], Awaitable[UpstreamResponse]], outgoing: Callable[..., Outgoing]
) -> httpx.AsyncBaseTransport:
    """Return a transport that sends what ``outgoing`` makes of method, path, query and the rest."""

    async def answer(request: httpx.Request) -> httpx.Response:
        query = request.url.query.decode("latin-1")
        head = (request.method, request.url.path, query, request.headers.multi_items())
        try:
            answer = await send(outgoing(*head, await request.aread()))
        except UpstreamError as error:
            kind = httpx.ReadTimeout if error.kind == "timeout" else httpx.ConnectError
            raise kind(error.message, request=request) from error
        stream = _Pieces(answer, request)
        return httpx.Response(answer.status, headers=list(answer.headers), stream=stream)

    return httpx.MockTransport(answer)


class _Pieces(httpx.AsyncByteStream):
    def __init__(self, answer: UpstreamResponse, request: httpx.Request) -> None:
        self._answer = answer
        self._request = request

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for piece in self._answer.chunks:
                yield piece
        except UpstreamError as error:
            raise httpx.ReadError(error.message, request=self._request) from error

    async def aclose(self) -> None:
        await self._answer.aclose()
