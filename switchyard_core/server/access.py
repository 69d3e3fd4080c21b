"""Who may call the server, and how much of it a caller may take.

Any page that the operator opens can send requests to a server on the operator's machine, but it
cannot choose two of their headers. Browsers send ``Origin`` with all that a page does beyond
loading resources, and ``Host`` is the page's own name when that name has been made to resolve to
this machine (DNS rebinding).
"""

from __future__ import annotations

import hmac
import ipaddress
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any, Self

from switchyard_core.errors import RequestError, nearest
from switchyard_core.identity import Headers

__all__ = ["Access", "Limits", "host_name", "key_headers", "origin_name", "sendable"]

_BEARER = "bearer "
# Values of ``sec-fetch-site`` when another site's page loads a resource, without ``Origin``.
_FOREIGN = frozenset({"cross-site", "same-site"})
_HOST = re.compile(r"(\[[^\]]*\]|[^:]*)(?::\d*)?")
_NAME = re.compile(r"[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?")
_ORIGIN = re.compile(r"([a-z][a-z0-9+.-]*)://([^\s/?#@]+)/?")
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}


class Access:
    """Decides which requests are served; a key, host or origin must be one that can be sent."""

    __slots__ = ("_hosts", "_key", "_origins")

    def __init__(
        self,
        *,
        key: str | None = None,
        hosts: Iterable[str] | None = None,
        origins: Iterable[str] = (),
    ) -> None:
        if key is not None and not sendable(key):
            raise ValueError("a server key must be printable ASCII, as it is sent in a header")
        self._key = key
        self._hosts = frozenset(map(host_name, hosts)) if hosts is not None else None
        self._origins = frozenset(map(origin_name, origins))

    def check_origin(self, headers: Headers) -> str:
        """Return the allowed origin of the page that sends a request, ``""`` without a page."""
        sent = _values(headers, "origin")
        for origin in sent:
            if _plain_origin(origin) not in self._origins:
                raise _forbidden(
                    f"web pages of the origin `{origin[:200]}` may not call this server; to allow "
                    "them, start it with `--allowed-origin ORIGIN`",
                    "origin_not_allowed",
                )
        if not sent and headers.get("sec-fetch-site", "").strip().lower() in _FOREIGN:
            raise _forbidden(
                "web pages of other sites may not load anything from this server",
                "origin_not_allowed",
            )
        return sent[0] if sent else ""

    def check_host(self, headers: Headers) -> None:
        """Refuse a request (403) whose host name is missing or not allowed."""
        if self._hosts is None:
            return
        for host in _values(headers, "host") or [""]:
            found = _HOST.fullmatch(host)
            name = found[1].lower().removesuffix(".") if found is not None else ""
            if not (_is_local(name) or name in self._hosts):
                raise _forbidden(
                    f"the host name `{host[:200]}` is not allowed here; call this server as "
                    "`localhost` or by its IP address, or start it with `--allowed-host NAME`",
                    "host_not_allowed",
                )

    def check_key(self, headers: Headers) -> tuple[str, ...]:
        """Return the headers that carry the server's key; see :func:`key_headers`."""
        return key_headers(headers, self._key) if self._key is not None else ()


def host_name(text: str) -> str:
    """Return a host name as it is compared; ValueError unless it is a plain name or IP address."""
    name = text.strip().lower().removesuffix(".")
    if not _NAME.fullmatch(name) and not _is_address(name):
        msg = f"`{text}` is not a host name: leave out the scheme, the port and the path"
        raise ValueError(msg)
    return name


def origin_name(text: str) -> str:
    """Return an origin as it is compared; ValueError if it is not an origin."""
    origin = _plain_origin(text.strip())
    if not _ORIGIN.fullmatch(origin):
        raise ValueError(
            f"`{text}` is not an origin: write scheme, host and port, such as "
            "`https://tool.example` or `http://localhost:3000`"
        )
    return origin


def sendable(key: str) -> bool:
    """Return whether callers can send a key: headers hold printable ASCII alone."""
    return key.isascii() and key.isprintable() and bool(key.strip())


def key_headers(headers: Headers, key: str) -> tuple[str, ...]:
    """Return the names of the headers that carry the server's key; refuse (401) if none does.

    These headers are for this server alone and must be dropped before a request is passed on; a
    caller's own credential for the provider travels in the other one.
    """
    wanted = key.encode()
    found, sent_one, other_scheme = [], False, False
    for name, value in headers.items_:
        if name == "authorization" and value[: len(_BEARER)].lower() == _BEARER:
            sent = value[len(_BEARER) :].strip()
        elif name == "authorization":
            other_scheme = other_scheme or bool(value.strip())
            continue
        elif name == "x-api-key":
            sent = value.strip()
        else:
            continue
        sent_one = sent_one or bool(sent)
        # Compared in constant time: the answer's delay must not tell how much was right.
        if hmac.compare_digest(sent.encode("latin-1", "replace"), wanted):
            found.append(name)
    if not found:
        how = "as `authorization: Bearer ...` or as `x-api-key`"
        message = f"an API key is required: send it {how}"
        if sent_one:
            message = "the API key is wrong: send the key of this server, not that of a provider, "
            message += how
        elif other_scheme:
            message = f"`authorization` does not begin with `Bearer`: send the server's key {how}"
        raise RequestError(
            message,
            "invalid_api_key" if sent_one or other_scheme else "missing_server_key",
            401,
            headers={"www-authenticate": "Bearer"},
        )
    return tuple(found)


def _values(headers: Headers, name: str) -> list[str]:
    return [value.strip() for key, value in headers.items_ if key == name]


def _is_local(name: str) -> bool:
    """Return whether a host name is one that DNS cannot redirect."""
    return name == "localhost" or name.endswith(".localhost") or _is_address(name)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True


def _plain_origin(origin: str) -> str:
    """Return an origin in lower case, without the default port of its scheme."""
    plain = origin.lower().removesuffix("/")
    return plain.removesuffix(_DEFAULT_PORTS.get(plain.partition(":")[0], "\n"))


def _forbidden(message: str, code: str) -> RequestError:
    return RequestError(message, code, 403)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits on requests; the last three, on connections, apply only to ``switchyard serve``."""

    headers: int = 100  # Maximum number of headers in a request; more get 431
    header_bytes: int = 64 * 1024  # Maximum size of the request line and headers; more get 431
    #: Seconds in which the next 1 KiB of a body must arrive; a slower one gets 408
    body_timeout_s: float = 60.0
    #: Seconds until the headers must be complete; then the connection is closed, with 408 if a part
    #: of them had arrived
    header_timeout_s: float = 20.0
    connections: int = 1000  # Maximum number of open connections; a new one gets 503
    #: Maximum number of connections with incomplete headers; for a new one, the oldest is closed
    half_open: int = 500

    def __post_init__(self) -> None:
        for name in _NAMES:
            value = getattr(self, name)
            if not 0 < value < math.inf:
                raise ValueError(f"the limit `{name}` must be a positive number, not {value:g}")

    @classmethod
    def from_words(cls, words: Iterable[str]) -> Self:
        """Return the limits of words such as ``headers=200``; the names are those of the fields."""
        found: dict[str, Any] = {}
        for word in words:
            name, _, number = word.partition("=")
            if name not in _NAMES:
                near = nearest(name, _NAMES)
                hint = f"; did you mean `{near}`?" if near else ""
                raise ValueError(f"unknown limit `{name}` (limits: {', '.join(_NAMES)}){hint}")
            default = getattr(cls(), name)
            try:
                found[name] = type(default)(number)
            except ValueError:
                kind = "whole number" if isinstance(default, int) else "number"
                msg = f"the limit `{name}` must be a {kind}, as in `{name}={default:g}`"
                raise ValueError(msg) from None
        return cls(**found)


_NAMES = tuple(field.name for field in fields(Limits))
