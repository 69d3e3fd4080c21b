"""A provider for tests: keeps what was sent and plays what it was given."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from switchyard_core.errors import UpstreamError
from switchyard_core.jsonio.tree import encode
from switchyard_core.scripted import Player, Script, Scripted, Turn
from switchyard_core.testing.doors import FakeApp, FakeTransport
from switchyard_core.upstream.base import Outgoing, UpstreamResponse

__all__ = ["FakeReply", "FakeUpstream"]

_ANSWER = Script(version=1, scripts=(Scripted(turns=(Turn(text="ok"),)),))


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeReply:
    """An answer to play.

    Args:
        status: HTTP status.
        body: The body: bytes, or a tree that is written as JSON.
        chunks: The body in pieces, in place of ``body``.
        headers: Names in lower case and values.
        cut: Whether the connection breaks after the last piece.
    """

    status: int = 200
    body: bytes | Mapping[str, Any] = b"{}"
    chunks: tuple[bytes, ...] = ()
    headers: tuple[tuple[str, str], ...] = (("content-type", "application/json"),)
    cut: bool = False

    def pieces(self) -> tuple[bytes, ...]:
        """Return the body in the pieces in which it arrives."""
        if self.chunks:
            return self.chunks
        return (self.body if isinstance(self.body, bytes) else encode(dict(self.body)),)


class FakeUpstream:
    """Stands in for a provider behind :class:`~switchyard_core.Upstream`; no socket.

    Args:
        replies: Played in order, an error is raised; when none is left, a valid answer of the
            request's wire format says "ok", as a stream if one was asked for.
        before: Awaited with each request before it is answered, to hold it back.

    Attributes:
        requests: Everything that was sent, in order.
        closed: Whether the connections were closed.
    """

    def __init__(
        self,
        *replies: FakeReply | UpstreamError,
        before: Callable[[Outgoing], Awaitable[None]] | None = None,
    ) -> None:
        self.requests: list[Outgoing] = []
        self.closed = False
        self._replies = list(replies)
        self._before = before
        self._player = Player(_ANSWER, lambda: 0.0)

    async def send(self, outgoing: Outgoing) -> UpstreamResponse:
        """Keep a request and play the next reply.

        Raises:
            UpstreamError: The next reply is one.
        """
        self.requests.append(outgoing)
        if self._before is not None:
            await self._before(outgoing)
        if not self._replies:
            return self._valid(outgoing)
        reply = self._replies.pop(0)
        if isinstance(reply, UpstreamError):
            raise reply
        return UpstreamResponse(reply.status, reply.headers, _play(reply.pieces(), cut=reply.cut))

    def transport(self) -> FakeTransport:
        """Return this provider as a transport for ``httpx.AsyncClient``."""
        return FakeTransport(self)

    def app(self) -> FakeApp:
        """Return this provider as an ASGI application."""
        return FakeApp(self)

    async def aclose(self) -> None:
        """Note that the connections were closed."""
        self.closed = True

    def _valid(self, outgoing: Outgoing) -> UpstreamResponse:
        reply = self._player.play(
            outgoing.method, outgoing.path, outgoing.headers, outgoing.body, outgoing.wire_format
        )
        return UpstreamResponse(reply.status, reply.headers, _play(reply.chunks, cut=False))


async def _play(chunks: tuple[bytes, ...], *, cut: bool) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk
    if cut:
        message = "the connection broke off inside the answer"
        raise UpstreamError(message, kind="cut")
