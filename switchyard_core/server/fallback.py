"""Requests to unknown paths, sent on to the policy's ``fallback_client``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import unquote

from switchyard_core.declarations import WireFormat
from switchyard_core.engine.calling import forwarded_headers
from switchyard_core.errors import RequestError
from switchyard_core.jsonio.tree import encode
from switchyard_core.server.exchange import Exchange
from switchyard_core.server.relay import relay
from switchyard_core.upstream.base import Outgoing

if TYPE_CHECKING:
    from switchyard_core.switchyard import Switchyard

__all__ = ["METHODS", "check_passable", "pass_on"]

#: Methods that are passed on to a provider.
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")

# How often a path is decoded to see where it leads; a path that is still encoded is refused.
_DECODINGS = 4
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def check_passable(exchange: Exchange) -> None:
    """Refuse what must not reach a provider.

    Args:
        exchange: The request; its body is not needed.

    Raises:
        RequestError: 405, the method is not passed on; 404, the path could leave the base URL.
    """
    if exchange.method not in METHODS:
        raise RequestError(
            message=f"`{exchange.method[:20]}` is not passed on to a provider",
            code="method_not_allowed",
            status=405,
            headers={"allow": ", ".join(METHODS)},
        )
    if not _stays_below(exchange.raw_path):
        raise RequestError(
            message="the path could leave the provider's base URL: it has dot segments, two "
            "slashes at its start, control characters, or no slash at its start",
            code="not_found",
            status=404,
        )


def _stays_below(path: str) -> bool:
    """Return whether a path stays below a base URL, however often a server decodes it."""
    for _ in range(_DECODINGS):
        plain = path.replace("\\", "/")
        # Some servers drop the part of a segment after a semicolon, and spaces around it.
        parts = [part.partition(";")[0].strip() for part in plain.split("/")]
        if not plain.startswith("/") or plain.startswith("//") or not {".", ".."}.isdisjoint(parts):
            return False
        if _CONTROL.search(plain):
            return False
        try:
            decoded = unquote(path, errors="strict")
        except UnicodeDecodeError:
            return False
        if decoded == path:
            return True
        path = decoded
    return False


async def pass_on(
    exchange: Exchange,
    engine: Switchyard,
    name: str,
    body: bytes,
    wire_format: WireFormat,
    *,
    dry_run: bool = False,
) -> Exception | None:
    """Send a request on as it is and pass the answer back.

    Args:
        exchange: The request, checked with :func:`check_passable`.
        engine: Whose connections are used.
        name: Name of the client.
        body: The request's body.
        wire_format: The caller's, for an error.
        dry_run: Say what would be passed on, and call nobody.

    Returns:
        Why the answer was cut, if it was and the caller has been told so.

    Raises:
        RequestError: What the client's credential needs is missing.
        UpstreamError: The provider could not be reached.
    """
    client = engine.policy.clients[name]
    headers = forwarded_headers(exchange.headers, client)
    if not body and "content-type" not in exchange.headers:
        headers = tuple(pair for pair in headers if pair[0] != "content-type")
    outgoing = Outgoing(
        wire_format=client.format,
        path=exchange.raw_path,
        query=exchange.query,
        headers=headers,
        body=body,
        stream=False,
        target="",
        model="",
        method=exchange.method,
        route="fallback",
        role=name,
    )
    if dry_run:
        told = {
            "fallback_client": name,
            "method": outgoing.method,
            "path": outgoing.path,
            "query": outgoing.query,
            "body_bytes": len(body),
        }
        await exchange.respond(200, encode(told))
        return None
    answer = await engine.upstreams.call(client, outgoing, exchange.headers)
    return await relay(exchange, answer, (), wire_format)
