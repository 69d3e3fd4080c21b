"""Requests to unknown paths, sent on to the policy's ``fallback_client``."""

from __future__ import annotations

from switchyard_core.declarations import WireFormat
from switchyard_core.engine import Engine
from switchyard_core.engine.outgoing import forwarded_headers
from switchyard_core.errors import RequestError
from switchyard_core.jsontext import encode
from switchyard_core.server.exchange import Exchange
from switchyard_core.server.relay import relay
from switchyard_core.upstream.base import Outgoing

__all__ = ["pass_on"]


async def pass_on(
    exchange: Exchange,
    engine: Engine,
    name: str,
    body: bytes,
    wire_format: WireFormat,
    *,
    dry_run: bool = False,
) -> Exception | None:
    """Send a request on as it is and pass the answer back.

    Args:
        exchange: The request.
        engine: Whose connections are used.
        name: Name of the client.
        body: The request's body.
        wire_format: The caller's, for an error.
        dry_run: Say what would be passed on, and call nobody.

    Returns:
        Why the answer was cut, if it was and the caller has been told so.

    Raises:
        RequestError: 404, the path leaves the provider's base URL; or what the client's
            credential needs is missing.
        UpstreamError: The provider could not be reached.
    """
    client = engine.policy.clients[name]
    path = exchange.raw_path
    if any(part.lower().replace("%2e", ".") in (".", "..") for part in path.split("/")):
        raise RequestError(
            message="the path has a dot segment", code="not_found", status=404, param=None
        )
    headers = forwarded_headers(exchange.headers, client)
    if not body and "content-type" not in exchange.headers:
        headers = tuple(pair for pair in headers if pair[0] != "content-type")
    outgoing = Outgoing(
        wire_format=client.format,
        path=path,
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
    answer = await engine.call(client, outgoing, exchange.headers)
    return await relay(exchange, answer, (), wire_format)
