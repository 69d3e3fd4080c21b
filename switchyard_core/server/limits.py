"""Limits on what a caller may take of the server before its request is looked at."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Limits"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits on requests and connections; ``docs/server.md`` lists all limits of the server.

    The last three only apply to ``switchyard serve``: where the application is mounted, the host
    handles connections.

    Args:
        max_headers: Maximum number of headers in a request; more get 431.
        max_header_bytes: Maximum size of the request line and headers; more get 431.
        body_timeout_s: Seconds in which the next 1 KiB of a body must arrive; a slower one gets
            408.
        header_timeout_s: Seconds until the headers must be complete; then the connection is
            closed, with 408 if a part of them had arrived.
        max_connections: Maximum number of open connections; a new one gets 503.
        max_half_open: Maximum number of connections with incomplete headers; for a new one, the
            oldest is closed.
    """

    max_headers: int = 100
    max_header_bytes: int = 64 * 1024
    body_timeout_s: float = 60.0
    header_timeout_s: float = 20.0
    max_connections: int = 1000
    max_half_open: int = 500
