"""Two more doors to a fake provider: an httpx transport, and an ASGI application."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, MutableMapping
from typing import Any, Protocol

import httpx

from switchyard_core.errors import UpstreamError
from switchyard_core.jsonio.tree import JsonTextError, loads
from switchyard_core.upstream.base import Outgoing, UpstreamResponse
from switchyard_core.wire import endpoint_of

__all__ = ["FakeApp", "FakeTransport"]

_Message = MutableMapping[str, Any]
#: Set by the client or the server that frames the body.
_FRAMING = frozenset({"host", "content-length", "transfer-encoding", "connection"})


class _Provider(Protocol):
    async def send(self, outgoing: Outgoing) -> UpstreamResponse: ...


class FakeTransport(httpx.AsyncBaseTransport):
    """Gives the requests of an ``httpx.AsyncClient`` to a provider, without a socket.

    A reply that cannot connect raises ``httpx.ConnectError``, a timeout
    ``httpx.ReadTimeout``, and one that breaks off ``httpx.ReadError``.

    Args:
        provider: What is sent to.
    """

    def __init__(self, provider: _Provider) -> None:
        self._provider = provider

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request and return the answer, whose body arrives in the provider's pieces."""
        outgoing = _outgoing(
            request.method,
            request.url.path,
            request.url.query.decode("latin-1"),
            request.headers.multi_items(),
            await request.aread(),
        )
        try:
            answer = await self._provider.send(outgoing)
        except UpstreamError as error:
            timeout = error.kind == "timeout"
            kind = httpx.ReadTimeout if timeout else httpx.ConnectError
            raise kind(error.message, request=request) from error
        return httpx.Response(
            answer.status, headers=list(answer.headers), stream=_Pieces(answer, request)
        )


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


class FakeApp:
    """Serves a provider as an ASGI application, for clients that want a URL.

    What the provider raises is raised to the server, which breaks the connection.

    Args:
        provider: What is sent to.
    """

    def __init__(self, provider: _Provider) -> None:
        self._provider = provider

    async def __call__(
        self,
        scope: _Message,
        receive: Callable[[], Awaitable[_Message]],
        send: Callable[[_Message], Awaitable[None]],
    ) -> None:
        """Answer one request, or the start and stop of a server."""
        if scope["type"] == "lifespan":
            while True:
                kind = (await receive())["type"]
                await send({"type": f"{kind}.complete"})
                if kind == "lifespan.shutdown":
                    return
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body", False):
                break
        headers = [(n.decode("latin-1"), v.decode("latin-1")) for n, v in scope["headers"]]
        query = scope["query_string"].decode("latin-1")
        answer = await self._provider.send(
            _outgoing(scope["method"], scope["path"], query, headers, body)
        )
        pairs = [(name.encode("latin-1"), text.encode("latin-1")) for name, text in answer.headers]
        await send({"type": "http.response.start", "status": answer.status, "headers": pairs})
        async for piece in answer.chunks:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def _outgoing(
    method: str, path: str, query: str, headers: Iterable[tuple[str, str]], body: bytes
) -> Outgoing:
    found = endpoint_of(path)
    try:
        tree = loads(body)
    except JsonTextError:
        tree = None
    fields: dict[str, Any] = tree if isinstance(tree, dict) else {}
    model = fields.get("model")
    return Outgoing(
        wire_format=found[0] if found is not None else "openai_chat",
        path=path,
        headers=tuple((name.lower(), text) for name, text in headers if name not in _FRAMING),
        body=body,
        stream=fields.get("stream") is True,
        target="",
        model=model if isinstance(model, str) else "",
        method=method,
        query=query,
    )
