"""The client to real providers, on httpx's transport.

It uses the transport layer and not ``httpx.AsyncClient``: so there are no redirects, cookies,
proxies or netrc from the environment, no default headers, and no log line with the URL. What
goes out is what the caller gives, plus ``host``, the length of the body and, if nothing is
said about it, ``accept-encoding: identity``.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import random as random_module
import re
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import cast
from urllib.parse import unquote

import httpx

from switchyard_core.errors import UpstreamError
from switchyard_core.upstream.base import Outgoing, UpstreamResponse
from switchyard_core.upstream.retry import Retries

__all__ = ["HttpxUpstream"]

# The client frames the message itself; a second length or a foreign host would contradict it.
_OWN_HEADERS = frozenset(
    {"connection", "content-length", "host", "keep-alive", "proxy-connection", "te", "trailer",
     "transfer-encoding", "upgrade"}
)  # fmt: skip
_VERSION = re.compile(r"v\d+\w*")
# httpx has one class for both ends of an answer that is none: bytes that are not HTTP, and no
# bytes at all, or too few of them. Only its text, and that of h11 below it, tells which.
_CLOSED = re.compile(r"disconnected|closed connection")


class HttpxUpstream:
    """A provider reached over HTTP/1.1 with connections kept alive.

    Failed calls are tried again as long as no byte of an answer was handed on: when the
    connection cannot be made, when it is closed before the first byte of the body, and for
    408, 409, 429 and 5xx. Timeouts are not tried again, because that would multiply the
    longest wait. The last failing answer is returned as it came.

    Args:
        base_url: Absolute URL; ``https://host`` and ``https://host/v1`` mean the same. A query
            in it is sent with every request, a user and password become basic
            authentication unless the request has a credential.
        timeout_s: Longest silence in seconds: while connecting, waiting for a free
            connection, sending, and between two reads.
        max_retries: Further tries after the first, 0 or more.
        transport: Another httpx transport, for tests and for embedding.
        sleep: Waits between tries, in seconds.
        random: Source of jitter, from 0 to below 1.
        now: Seconds since the epoch, to read ``retry-after`` dates.
        max_connections: Connections at the same time; a further request waits for one.

    Raises:
        ValueError: ``base_url`` is not an absolute http or https URL.
    """

    def __init__(
        self,
        base_url: str,
        *,
        timeout_s: float = 600.0,
        max_retries: int = 1,
        transport: httpx.AsyncBaseTransport | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        random: Callable[[], float] = random_module.random,
        now: Callable[[], float] = time.time,
        max_connections: int = 1000,
    ) -> None:
        self._url, self._authorization = _split_credentials(base_url)
        self._place = f"{self._url.scheme}://{self._url.netloc.decode('ascii')}"
        self._timeout_s = timeout_s
        self._extensions = {"timeout": httpx.Timeout(timeout_s).as_dict()}
        self._retries = Retries(max_retries=max_retries, sleep=sleep, random=random, now=now)
        self._transport = transport or httpx.AsyncHTTPTransport(
            trust_env=False,
            limits=httpx.Limits(
                max_connections=max_connections,
                max_keepalive_connections=max_connections,
                keepalive_expiry=30.0,
            ),
        )

    async def send(self, outgoing: Outgoing) -> UpstreamResponse:
        """Send one request, trying again as said above; see :meth:`Upstream.send`.

        Raises:
            UpstreamError: No answer came; the message names scheme, host and port only.
        """
        return await self._retries.run(lambda: self._try(outgoing))

    async def aclose(self) -> None:
        """Close all connections."""
        await self._transport.aclose()

    async def _try(self, outgoing: Outgoing) -> UpstreamResponse:
        try:
            request = self._request(outgoing)
            answer = await self._transport.handle_async_request(request)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise self._explain(error) from _cause(error)
        stream = cast("httpx.AsyncByteStream", answer.stream)
        body = self._guard(stream)

        async def close() -> None:
            # Another task may be reading just now: then the generator cannot be closed, and
            # the closed connection below ends it.
            with contextlib.suppress(RuntimeError):
                await body.aclose()
            await stream.aclose()

        headers = tuple(
            (name.decode("latin-1").lower(), value.decode("latin-1"))
            for name, value in answer.headers.raw
        )
        response = UpstreamResponse(answer.status_code, headers, body, close)
        # An answer that dies before its first byte can still be tried again, so it is waited
        # for here; headers alone tell the caller nothing that it could use.
        try:
            await response.peek(1)
        except UpstreamError as error:
            await response.aclose()
            if error.status == 504:
                raise UpstreamError(error.message, kind="timeout", status=504) from error
            if _is_no_http(error.__cause__):
                raise self._no_http() from error
            message = f"{self._place} closed the connection before it answered"
            raise UpstreamError(message, kind="closed") from error
        except BaseException:
            await response.aclose()
            raise
        return response

    def _request(self, outgoing: Outgoing) -> httpx.Request:
        given = {name.lower() for name, _ in outgoing.headers}
        headers = [
            (_encode(name), _encode(value))
            for name, value in outgoing.headers
            if name.lower() not in _OWN_HEADERS
        ]
        if "accept-encoding" not in given:
            headers.append((b"accept-encoding", b"identity"))
        if self._authorization and not given & {"authorization", "x-api-key"}:
            headers.append((b"authorization", self._authorization))
        return httpx.Request(
            outgoing.method,
            self._locate(outgoing.path, outgoing.query),
            headers=headers,
            content=outgoing.body or None,
            extensions=dict(self._extensions),
        )

    def _locate(self, path: str, query: str) -> httpx.URL:
        base = self._url.raw_path.partition(b"?")[0].decode("ascii").rstrip("/")
        # ``.../v1`` as a base already has the version that every path of ours begins with.
        if _VERSION.fullmatch(base.rpartition("/")[2]) and (path + "/").startswith("/v1/"):
            path = path[len("/v1") :]
        queries = "&".join(filter(None, (self._url.query.decode("ascii"), query)))
        target = base + path + ("?" + queries if queries else "")
        return self._url.copy_with(raw_path=_encode(target or "/"))

    async def _guard(self, stream: httpx.AsyncByteStream) -> AsyncGenerator[bytes, None]:
        try:
            async for chunk in stream:
                if chunk:
                    yield chunk
        except httpx.TimeoutException as error:
            message = f"{self._place} fell silent for {self._timeout_s:g} s inside an answer"
            raise UpstreamError(message, kind="cut", status=504) from error
        except (httpx.HTTPError, httpx.StreamError) as error:
            message = f"{self._place} broke off inside an answer"
            raise UpstreamError(message, kind="cut") from error
        finally:
            await stream.aclose()

    def _explain(self, error: Exception) -> UpstreamError:
        if isinstance(error, httpx.TimeoutException):
            message = f"{self._place} did not answer within {self._timeout_s:g} s"
            return UpstreamError(message, kind="timeout", status=504)
        if isinstance(error, httpx.ConnectError):
            return UpstreamError(f"cannot connect to {self._place}", kind="connect")
        if isinstance(error, (httpx.LocalProtocolError, httpx.InvalidURL)):
            message = f"the request to {self._place} has a path or header that HTTP does not allow"
            return UpstreamError(message, kind="protocol")
        if _is_no_http(error):
            return self._no_http()
        message = f"{self._place} closed the connection before it answered"
        return UpstreamError(message, kind="closed")

    def _no_http(self) -> UpstreamError:
        message = f"{self._place} answered with something that is not HTTP"
        return UpstreamError(message, kind="protocol")


def _is_no_http(error: BaseException | None) -> bool:
    """Return whether a provider sent what HTTP does not allow, and did not just close."""
    return isinstance(error, httpx.RemoteProtocolError) and not _CLOSED.search(str(error))


def _split_credentials(base_url: str) -> tuple[httpx.URL, bytes | None]:
    """Return the URL without user, password and fragment, and their basic authentication."""
    try:
        url = httpx.URL(base_url)
    except httpx.InvalidURL:
        url = httpx.URL("")
    if url.scheme not in ("http", "https") or not url.host:
        msg = "the base URL of a client must be an absolute http or https URL"
        raise ValueError(msg)
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
    return None if isinstance(error, (httpx.LocalProtocolError, httpx.InvalidURL)) else error
