"""What is sent on besides the body: which headers, and whose credential."""

from __future__ import annotations

import json
from collections.abc import Mapping

from switchyard_core.errors import RequestError
from switchyard_core.identity import Headers
from switchyard_core.policy.model import Client
from switchyard_core.version import VERSION
from switchyard_core.wire import format_of

__all__ = ["CREDENTIAL_HEADERS", "credential", "error_code", "forwarded_headers"]

#: Headers that carry a caller's credential.
CREDENTIAL_HEADERS = ("authorization", "x-api-key")

_ALWAYS = ("content-type", "accept", "openai-beta")
# A login's own headers make sense only together with its credential.
_WITH_CREDENTIAL = (
    "chatgpt-account-id",
    "originator",
    "openai-organization",
    "openai-project",
)
_SINGLE = frozenset({"content-type", "anthropic-version", *_WITH_CREDENTIAL})
_PRODUCT = f"switchyard/{VERSION}"


def forwarded_headers(headers: Headers, client: Client) -> tuple[tuple[str, str], ...]:
    """Return the headers of a request to a provider, without any credential.

    Everything not listed here stays behind: session headers, cookies, hop-by-hop headers, the
    caller's credential.
    """
    wire_format = format_of(client.format)
    names = [*_ALWAYS, *wire_format.headers, *client.forward_headers]
    if client.forward_auth:
        names += _WITH_CREDENTIAL
    values: dict[str, str] = {}
    for name in names:
        # A list may come in several headers; of anything else the first one counts.
        value = headers.get(name) if name in _SINGLE else headers.joined(name)
        if value is not None and name not in CREDENTIAL_HEADERS:
            values[name] = value
    values.setdefault("content-type", "application/json")
    for name, value in wire_format.needed_headers.items():
        values.setdefault(name, value)
    agent = headers.get("user-agent", "")
    values["user-agent"] = f"{agent} {_PRODUCT}".strip()
    for name, value in client.extra_headers:
        values[name.lower()] = value
    return tuple(values.items())


def credential(
    client: Client, headers: Headers, environ: Mapping[str, str]
) -> tuple[tuple[str, str], ...]:
    """Return the headers that authenticate a call to a provider.

    Args:
        client: The client that makes the call.
        headers: The caller's headers, without the server's own key.
        environ: Where the key of ``api_key_env`` stands; read when the call is made.

    Raises:
        RequestError: 500 when the variable is not set, 401 when the caller's own credential
            is to be sent on and there is none.
    """
    if client.forward_auth:
        found = tuple(
            (name, headers[name]) for name in CREDENTIAL_HEADERS if _is_credential(headers, name)
        )
        if not found:
            raise RequestError(
                message="this route sends the caller's own credential on: send it as "
                "`authorization` or `x-api-key`",
                code="missing_credential",
                status=401,
            )
        return found
    if client.api_key_env is None:
        return ()
    key = environ.get(client.api_key_env, "").strip()
    if not key:
        raise RequestError(
            message=f"the environment variable `{client.api_key_env}` of the client "
            f"`{client.name}` is not set (SY204): set it where switchyard runs",
            code="missing_api_key",
            status=500,
        )
    return (format_of(client.format).credential(key),)


def error_code(body: bytes) -> str:
    """Return the code or type that a provider's error names, ``""`` when it cannot be read."""
    try:
        error = json.loads(body)["error"]
        return str(error.get("code") or error.get("type") or "")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return ""


def _is_credential(headers: Headers, name: str) -> bool:
    """Whether a header holds more than nothing, or than the name of a scheme."""
    value = headers.get(name, "").strip()
    return bool(value) and value.lower() not in ("bearer", "basic")
