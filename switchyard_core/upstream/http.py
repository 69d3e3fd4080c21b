"""The client to real providers, on httpcore, the layer below httpx; what is tried again, and when.

So there are no redirects, cookies, proxies or netrc from the environment, no default headers,
and no log line with the URL. What goes out is what the caller gives, plus ``host``, the length
of the body and, if nothing is said about it, ``accept-encoding: identity``.
"""

from __future__ import annotations

import asyncio
import base64
import random as random_module
import re
import time
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    Awaitable,
    Callable,
    Collection,
    Mapping,
    Sequence,
)
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import cast
from urllib.parse import unquote

import httpcore
import httpx

from switchyard_core.decision import Outgoing
from switchyard_core.errors import UpstreamError
from switchyard_core.upstream.address import path_below
from switchyard_core.upstream.base import UpstreamResponse
from switchyard_core.upstream.connections import Connections, Lease, is_closed

__all__ = [
    "LONGEST_WAIT_S",
    "HttpUpstream",
    "Retries",
    "backoff_s",
    "is_retryable",
    "retry_after_s",
]

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

    Failed calls are tried again as long as no byte of an answer was handed on: when the
    connection cannot be made, when it is closed before the first byte of the body, and for
    408, 409, 429 and 5xx. Timeouts are not tried again, because that would multiply the
    longest wait. The last failing answer is returned as it came.

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
        now: Seconds since the epoch, to read ``retry-after`` dates.
        max_connections: Connections at the same time; a further request waits for one.

    Raises:
        ValueError: ``base_url`` is not an absolute http or https URL.
    """

    def __init__(  # noqa: PLR0913  # settings, by name
        self,
        base_url: str,
        *,
        timeout_s: float = 600.0,
        max_retries: int = 1,
        backend: httpcore.AsyncNetworkBackend | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        random: Callable[[], float] = random_module.random,
        now: Callable[[], float] = time.time,
        max_connections: int = 1000,
        exact_paths: Collection[str] = (),
    ) -> None:
        self._exact_paths = frozenset(exact_paths)
        self._url, self._authorization = _split_credentials(base_url)
        self._place = f"{self._url.scheme}://{self._url.netloc.decode('ascii')}"
        self._timeout_s = timeout_s
        self._timeout = {"connect": timeout_s, "read": timeout_s, "write": timeout_s}
        self._retries = Retries(max_retries=max_retries, sleep=sleep, random=random, now=now)
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
            raise UpstreamError(f"{self._place} {what}", kind="cut", status=504) from error
        except _FAILURES as error:
            what = "broke off in the middle of an answer"
            raise UpstreamError(f"{self._place} {what}", kind="cut") from error
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
        return UpstreamError(
            f"{self._place} closed the connection before it answered", kind="closed"
        )


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


#: The longest ``retry-after`` that is waited for here; a longer one is the caller's to keep.
LONGEST_WAIT_S = 30.0

_FIRST_WAIT_S = 0.5
_LAST_WAIT_S = 8.0
_JITTER = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """The way one client tries again."""

    max_retries: int
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    random: Callable[[], float] = random_module.random
    now: Callable[[], float] = time.time

    async def run(self, attempt: Callable[[], Awaitable[UpstreamResponse]]) -> UpstreamResponse:
        """Call ``attempt`` until it gives an answer that is good, or for the last time.

        A connection that failed or was closed and an answer of :func:`is_retryable` are tried
        again; a timeout is not. An answer that asks for a longer wait than
        :data:`LONGEST_WAIT_S` is returned at once, so that the caller can keep it.
        """
        tries = 0
        while True:
            wait: float | None = None
            try:
                response = await attempt()
            except UpstreamError as error:
                if tries >= self.max_retries or error.kind not in ("connect", "closed"):
                    raise
            else:
                if tries >= self.max_retries or not is_retryable(response):
                    return response
                wait = retry_after_s(response, self.now())
                if wait is not None and wait > LONGEST_WAIT_S:
                    return response
                await response.aclose()
            await self.sleep(backoff_s(tries, self.random) if wait is None else wait)
            tries += 1


def is_retryable(response: UpstreamResponse) -> bool:
    """Return whether to try again: 408, 409, 429 and 5xx, unless ``x-should-retry`` is false."""
    if response.header("x-should-retry") == "false":
        return False
    return response.status in (408, 409, 429) or response.status >= 500


def retry_after_s(response: UpstreamResponse, now: float) -> float | None:
    """Return the seconds to wait by ``retry-after-ms`` or ``retry-after``, ``None`` for neither."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = response.header(name)
        if value is None:
            continue
        try:
            seconds = float(value) * unit
        except ValueError:
            continue
        # A negative, infinite or NaN wait means nothing.
        return seconds if 0.0 <= seconds < float("inf") else None
    date = response.header("retry-after")
    if date is None:
        return None
    try:
        return max(0.0, parsedate_to_datetime(date).timestamp() - now)
    except (ValueError, OverflowError):
        return None


def backoff_s(attempt: int, random: Callable[[], float]) -> float:
    """Return the wait after failed try ``attempt``, 0.5 s doubled up to 8 s, less random jitter."""
    wait = min(_FIRST_WAIT_S * 2.0 ** min(attempt, 16), _LAST_WAIT_S)
    return wait * (1.0 - _JITTER * random())
