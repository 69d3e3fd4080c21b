"""A provider for tests: keeps what was sent, and plays replies or a script, without a socket."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from switchyard_core.decision import Outgoing
from switchyard_core.errors import UpstreamError
from switchyard_core.jsonio.tree import JsonTextError, encode, loads
from switchyard_core.scripted import check_script
from switchyard_core.scripted.player import Player
from switchyard_core.upstream.base import UpstreamResponse
from switchyard_core.wire import endpoint_of

if TYPE_CHECKING:
    import httpx

__all__ = ["FakeReply", "FakeUpstream"]

#: Set by the client or the server that frames the body.
_FRAMING = frozenset({"host", "content-length", "transfer-encoding", "connection"})
_JSON = (("content-type", "application/json"),)
_Message = MutableMapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeReply:
    """An answer to play."""

    status: int = 200  # HTTP status
    #: What a model says: a whole valid answer of the request's wire format is played
    text: str | None = None
    #: Otherwise the body: bytes, or a tree that is written as JSON; `None` is a valid answer that
    #: says "ok", of a failure `{}`
    body: bytes | Mapping[str, Any] | None = None
    chunks: tuple[bytes, ...] = ()  # The body in pieces, in place of `body`
    #: Names in lower case and values
    headers: tuple[tuple[str, str], ...] = _JSON
    cut: bool = False  # Whether the connection breaks after the last piece

    def pieces(self) -> tuple[bytes, ...]:
        """Return the body in the pieces in which it arrives."""
        if self.chunks:
            return self.chunks
        return (self.body if isinstance(self.body, bytes) else encode(dict(self.body or {})),)

    @property
    def said(self) -> str | None:
        """What a model says, ``None`` where the bytes of the answer are given."""
        given = self.chunks or self.body is not None or self.status != 200 or self.headers != _JSON
        return self.text if self.text is not None or given else "ok"


class FakeUpstream:
    """Stands in for a provider behind :class:`~switchyard_core.upstream.Upstream`; no socket.

    Args:
        replies: Played in order, an error is raised. When none is left, the script is played.
        script: A script of docs/scripted_provider.md as a tree; its delays are left out. By
            default every request gets a valid answer that says "ok", as a stream if one was
            asked for.
        strict: Provider whose refusals are played before the script, such as ``anthropic``, or one
            for each target by its name; see docs/scripted_provider.md.
        before: Awaited with each request before it is answered, to hold it back. A reply or an
            error that it returns is played in place of the next one.

    ``requests`` is everything that was sent, ``replies`` those that are left.
    """

    def __init__(
        self,
        *replies: FakeReply | UpstreamError,
        script: Mapping[str, Any] | None = None,
        strict: str | Mapping[str, str] | None = None,
        before: Callable[[Outgoing], Awaitable[FakeReply | UpstreamError | None]] | None = None,
    ) -> None:
        self.requests: list[Outgoing] = []
        self.closed = False
        self.replies = list(replies)
        self._before = before
        played = script or _saying("ok")
        by_target = strict if isinstance(strict, Mapping) else {}
        self._player = _player(played, strict if isinstance(strict, str) else None)
        self._players = {target: _player(played, name) for target, name in by_target.items()}

    async def send(self, outgoing: Outgoing) -> UpstreamResponse:
        """Keep a request and play the next reply."""
        self.requests.append(outgoing)
        reply = await self._before(outgoing) if self._before is not None else None
        if reply is None and self.replies:
            reply = self.replies.pop(0)
        if isinstance(reply, UpstreamError):
            raise reply
        if reply is None:
            return _played(self._players.get(outgoing.target, self._player), outgoing)
        if reply.said is not None:
            return _played(_player(_saying(reply.said)), outgoing)
        return UpstreamResponse(reply.status, reply.headers, _play(reply.pieces(), cut=reply.cut))

    def transport(self) -> httpx.AsyncBaseTransport:
        """Return this provider as a transport for httpx, which raises httpx's errors."""
        from switchyard_core.testing.transport import transport_of  # noqa: PLC0415  # httpx

        return transport_of(self.send, _outgoing)

    def app(self) -> Callable[..., Awaitable[None]]:
        """Return this provider as an ASGI application; its errors break the connection."""
        return self._serve

    async def aclose(self) -> None:
        """Note that the connections were closed."""
        self.closed = True

    async def _serve(
        self,
        scope: _Message,
        receive: Callable[[], Awaitable[_Message]],
        send: Callable[[_Message], Awaitable[None]],
    ) -> None:
        if scope["type"] == "lifespan":
            while (kind := (await receive())["type"]) != "lifespan.shutdown":
                await send({"type": f"{kind}.complete"})
            await send({"type": f"{kind}.complete"})
            return
        body, more = b"", True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        headers = [(n.decode("latin-1"), v.decode("latin-1")) for n, v in scope["headers"]]
        query = scope["query_string"].decode("latin-1")
        answer = await self.send(_outgoing(scope["method"], scope["path"], query, headers, body))
        pairs = [(name.encode("latin-1"), text.encode("latin-1")) for name, text in answer.headers]
        await send({"type": "http.response.start", "status": answer.status, "headers": pairs})
        async for piece in answer.chunks:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def _saying(text: str) -> Mapping[str, Any]:
    return {"version": 1, "scripts": [{"turns": [{"text": text}]}]}


def _player(script: Mapping[str, Any], strict: str | None = None) -> Player:
    checked, findings = check_script(json.dumps(dict(script)))
    if checked is None:
        raise ValueError("\n".join(finding.render() for finding in findings))
    return Player(checked, lambda: 0.0, strict)


def _played(player: Player, outgoing: Outgoing) -> UpstreamResponse:
    reply = player.play(
        outgoing.method, outgoing.path, outgoing.headers, outgoing.body, outgoing.wire_format
    )
    if reply.ending == "drop":
        raise UpstreamError("the provider closed the connection before it answered", kind="closed")
    cut = reply.ending == "cut"
    return UpstreamResponse(reply.status, reply.headers, _play(reply.chunks, cut=cut))


async def _play(chunks: tuple[bytes, ...], *, cut: bool) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk
    if cut:
        raise UpstreamError("connection lost: it broke off inside the answer", kind="cut")


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
