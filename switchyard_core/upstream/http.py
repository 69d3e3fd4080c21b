"""The client to real providers, on httpcore, the layer below httpx.

So there are no redirects, cookies, proxies or netrc from the environment, no default headers,
and no log line with the URL. What goes out is what the caller gives, plus ``host``, the length
of the body and, if nothing is said about it, ``accept-encoding: identity``.
"""

from __future__ import annotations

import asyncio
import base64
import random as random_module
import re
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    Awaitable,
    Callable,
    Collection,
    Mapping,
    Sequence,
)
from typing import cast
from urllib.parse import unquote

import httpcore
import httpx

from switchyard_core.decision import Outgoing
from switchyard_core.errors import UpstreamError
from switchyard_core.upstream.address import path_below
from switchyard_core.upstream.base import UpstreamResponse
from switchyard_core.upstream.connections import Connections, Lease, is_closed
from switchyard_core.upstream.retries import Retries

__all__ = ["HttpUpstream"]

# The client frames the message itself; a second length or a foreign host would contradict it.
_OWN_HEADERS = frozenset(
    {"connection", "content-length", "host", "keep-alive", "proxy-connection", "te", "trailer",
     "transfer-encoding", "upgrade"}
)  # fmt: skip
# Of what no answer of a provider may hold: control characters in a header.
_CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
_FAILURES = (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError)
# Methods whose requests need not say that they have no body.
_WITHOUT_BODY = frozenset({"DELETE", "GET", "HEAD"})


class HttpUpstream:
    """A provider reached over HTTP/1.1 with connections kept alive.

    A call is tried again as long as no byte of an answer is there: when the connection cannot be
    made, and when it is closed before the first byte of the body. Timeouts are not tried again,
    because that would multiply the longest wait. A failing answer is returned as it came, with
    its ``retry-after``: agents try again on their own, and both together would multiply a storm.

    Args:
        base_url: Absolute URL; ``https://host`` and ``https://host/v1`` mean the same, any other
            path is kept as it is. A query in it is sent with every request, a user and password
            become basic authentication unless the request has a credential.
        exact_paths: Paths of requests that follow the base URL as they are, version or not.
        timeout_s: Longest silence in seconds: while connecting, waiting for a free
            connection, sending, and between two reads.
        max_retries: Further tries after the first, 0 or more.
        backend: Opens sockets; ``None`` takes those of the operating system.
        sleep: Waits between tries, in seconds.
        random: Source of jitter, from 0 to below 1.
        max_connections: Connections at the same time; a further request waits for one.

    Raises:
        ValueError: ``base_url`` is not an absolute http or https URL.
    """

    def __init__(  # settings, by name
        self,
        base_url: str,
        *,
        timeout_s: float = 600.0,
        max_retries: int = 1,
        backend: httpcore.AsyncNetworkBackend | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        random: Callable[[], float] = random_module.random,
        max_connections: int = 1000,
        exact_paths: Collection[str] = (),
    ) -> None:
        self._exact_paths = frozenset(exact_paths)
        self._url, self._authorization = _split_credentials(base_url)
        self._place = f"{self._url.scheme}://{self._url.netloc.decode('ascii')}"
        self._timeout_s = timeout_s
        self._timeout = {"connect": timeout_s, "read": timeout_s, "write": timeout_s}
        self._retries = Retries(max_retries=max_retries, sleep=sleep, random=random)
        self._connections = Connections(
            self._url, most=max_connections, timeout_s=timeout_s, backend=backend
        )

    @property
    def connections(self) -> Mapping[str, int]:
        """How many connections are ``active``, that is used by a call, and how many ``idle``."""
        return {"active": self._connections.active, "idle": self._connections.idle}

    async def send(self, outgoing: Outgoing) -> UpstreamResponse:
        """Send one request, trying again as said above; see :meth:`Upstream.send`.

        Raises:
            UpstreamError: No answer came; the message names scheme, host and port only.
        """
        return await self._retries.run(lambda: self._try(outgoing))

    async def aclose(self) -> None:
        """Close all connections."""
        await self._connections.aclose()

    async def _try(self, outgoing: Outgoing) -> UpstreamResponse:
        try:
            lease, answer = await self._connections.ask(self._request(outgoing))
        except (*_FAILURES, httpx.InvalidURL) as error:
            raise self._explain(error) from _cause(error)
        if not _is_usable(answer, lease):
            await lease.end()
            raise self._no_http()
        response = UpstreamResponse(
            answer.status, _decoded(answer.headers), self._body(lease, answer), lease.end
        )
        try:
            # An answer that dies before its first byte can still be tried again, so it is waited
            # for here; headers alone tell the caller nothing that it could use.
            await response.peek(1)
        except UpstreamError as error:
            await response.aclose()
            if error.status == 504:
                raise UpstreamError(error.message, kind="timeout", status=504) from error
            raise (self._no_http() if _is_no_http(error.__cause__) else self._gone()) from error
        except BaseException:
            await response.aclose()
            raise
        return response

    def _request(self, outgoing: Outgoing) -> httpcore.Request:
        given = {name.lower() for name, _ in outgoing.headers}
        url = self._locate(outgoing)
        headers = [(b"host", url.netloc)]
        headers += [
            (_encode(name), _encode(value))
            for name, value in outgoing.headers
            if name.lower() not in _OWN_HEADERS
        ]
        if "accept-encoding" not in given:
            headers.append((b"accept-encoding", b"identity"))
        if self._authorization and not given & {"authorization", "x-api-key"}:
            headers.append((b"authorization", self._authorization))
        if outgoing.body or outgoing.method not in _WITHOUT_BODY:
            headers.append((b"content-length", str(len(outgoing.body)).encode()))
        return httpcore.Request(
            outgoing.method,
            httpcore.URL(
                scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
            ),
            headers=headers,
            content=outgoing.body,
            extensions={"timeout": self._timeout},
        )

    def _locate(self, outgoing: Outgoing) -> httpx.URL:
        base = self._url.raw_path.partition(b"?")[0].decode("ascii")
        path = path_below(base, outgoing.path, outgoing.wire_format, self._exact_paths)
        queries = "&".join(filter(None, (self._url.query.decode("ascii"), outgoing.query)))
        target = path + ("?" + queries if queries else "")
        return self._url.copy_with(raw_path=_encode(target or "/"))

    async def _body(self, lease: Lease, answer: httpcore.Response) -> AsyncGenerator[bytes, None]:
        try:
            async for chunk in cast("AsyncIterable[bytes]", answer.stream):
                if chunk:
                    yield chunk
            await lease.end(whole=True)
        except httpcore.TimeoutException as error:
            what = f"sent nothing for {self._timeout_s:g} s in the middle of an answer"
            message = f"connection lost: {self._place} {what}"
            raise UpstreamError(message, kind="cut", status=504) from error
        except _FAILURES as error:
            message = f"connection lost: {self._place} broke off in the middle of an answer"
            raise UpstreamError(message, kind="cut") from error
        finally:
            await lease.end()

    def _explain(self, error: Exception) -> UpstreamError:
        if isinstance(error, httpcore.TimeoutException):
            message = f"{self._place} did not answer within {self._timeout_s:g} s"
            return UpstreamError(message, kind="timeout", status=504)
        if isinstance(error, httpcore.ConnectError):
            return UpstreamError(f"cannot connect to {self._place}", kind="connect")
        if isinstance(error, (httpcore.LocalProtocolError, httpx.InvalidURL)):
            message = f"the request to {self._place} has a path or header that HTTP does not allow"
            return UpstreamError(message, kind="protocol")
        return self._no_http() if _is_no_http(error) else self._gone()

    def _no_http(self) -> UpstreamError:
        return UpstreamError(
            f"{self._place} answered with something that is not HTTP", kind="protocol"
        )

    def _gone(self) -> UpstreamError:
        message = f"connection lost: {self._place} closed the connection before it answered"
        return UpstreamError(message, kind="closed")


def _is_no_http(error: BaseException | None) -> bool:
    """Return whether a provider sent what HTTP does not allow, and did not just close."""
    return isinstance(error, httpcore.RemoteProtocolError) and not is_closed(error)


def _is_usable(answer: httpcore.Response, lease: Lease) -> bool:
    """Return whether the head of an answer is one that a server of HTTP may pass on.

    h11 reads more than that: statuses that have no class, control characters, a length that the
    chunked encoding contradicts, and a body where there can be none.
    """
    lengths = {value for name, value in answer.headers if name.lower() == b"content-length"}
    chunked = any(name.lower() == b"transfer-encoding" for name, _ in answer.headers)
    if not 200 <= answer.status < 600 or (lengths and chunked):
        return False
    if answer.status in (204, 304):
        body = chunked or (answer.status == 204 and lengths - {b"0"})
        if body or lease.unread:
            return False
    return not any(_CONTROL.search(name + value) for name, value in answer.headers)


def _decoded(headers: Sequence[tuple[bytes, bytes]]) -> tuple[tuple[str, str], ...]:
    return tuple(
        (name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in headers
    )


def _split_credentials(base_url: str) -> tuple[httpx.URL, bytes | None]:
    """Return the URL without user, password and fragment, and their basic authentication."""
    try:
        url = httpx.URL(base_url)
    except httpx.InvalidURL:
        url = httpx.URL("")
    if url.scheme not in ("http", "https") or not url.host:
        raise ValueError("the base URL of a client must be an absolute http or https URL")
    if not url.userinfo:
        return url.copy_with(fragment=None), None
    user, _, password = url.userinfo.decode("ascii").partition(":")
    pair = f"{unquote(user)}:{unquote(password)}".encode()
    plain = url.copy_with(username="", password="", fragment=None)
    return plain, b"Basic " + base64.b64encode(pair)


def _encode(text: str) -> bytes:
    """Return header text as bytes: latin-1, as servers give it to us, or else UTF-8."""
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogateescape")


def _cause(error: Exception) -> Exception | None:
    """Return what may be chained: h11 quotes the forbidden header value in its own message."""
    return None if isinstance(error, (httpcore.LocalProtocolError, httpx.InvalidURL)) else error
