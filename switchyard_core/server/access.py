"""Who may call the server: the check of its own key."""

from __future__ import annotations

import hmac

from switchyard_core.errors import RequestError
from switchyard_core.identity import Headers

__all__ = ["key_headers", "sendable"]

_BEARER = "bearer "


def sendable(key: str) -> bool:
    """Return whether callers can send a key: headers hold printable ASCII alone."""
    return key.isascii() and key.isprintable() and bool(key.strip())


def key_headers(headers: Headers, key: str) -> tuple[str, ...]:
    """Return the names of the headers that carry the server's key.

    These headers are for this server alone and must be forgotten before a request goes on; a
    caller's own credential for the provider travels in the other one.

    Args:
        headers: The request's headers.
        key: The server's key.

    Raises:
        RequestError: 401, none does.
    """
    wanted = key.encode()
    found = []
    for name, value in headers.items_:
        if name == "authorization" and value[: len(_BEARER)].lower() == _BEARER:
            sent = value[len(_BEARER) :].strip()
        elif name == "x-api-key":
            sent = value.strip()
        else:
            continue
        # Compared in constant time: the answer's delay must not tell how much was right.
        if hmac.compare_digest(sent.encode("latin-1", "replace"), wanted):
            found.append(name)
    if not found:
        raise RequestError(
            message="this server needs its key: send it as `authorization: Bearer ...` or as "
            "`x-api-key`",
            code="invalid_api_key",
            status=401,
            headers={"www-authenticate": "Bearer"},
        )
    return tuple(found)
