"""What a caller may take of the server before its request is looked at."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Limits"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits on requests and connections; ``docs/server.md`` lists them with the others.

    The last three hold for ``switchyard serve`` alone: where the application is mounted, the
    connections are the host's.

    Args:
        max_headers: Number of headers of a request; more are refused with 431.
        max_header_bytes: Size of the request line and the headers; more is refused with 431.
        body_timeout_s: Seconds in which at least 1 KiB of an unfinished body must come; a slower
            one is refused with 408.
        header_timeout_s: Seconds in which the headers must be complete; the connection is closed
            after them, with 408 when a part had come.
        max_connections: Open connections; further ones are refused with 503.
        max_half_open: Connections whose headers are not complete; for each further one the
            oldest is closed.
    """

    max_headers: int = 100
    max_header_bytes: int = 64 * 1024
    body_timeout_s: float = 60.0
    header_timeout_s: float = 20.0
    max_connections: int = 1000
    max_half_open: int = 500
