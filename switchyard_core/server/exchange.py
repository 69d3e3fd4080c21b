"""One HTTP request and its answer, over the ASGI messages of the host."""

from __future__ import annotations

import asyncio
import contextlib
import re
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, MutableMapping
from typing import Any
from urllib.parse import quote

from switchyard_core.errors import BodyTooLargeError, RequestError, SwitchyardError
from switchyard_core.identity import Headers
from switchyard_core.wire import plain_path

__all__ = ["ClientGoneError", "Exchange", "Message", "Receive", "Scope", "Send", "too_large"]

#: Messages and scopes of ASGI are bare dicts by its specification.
Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

#: How long the rest of a refused body is read, so that the client sees the refusal.
DRAIN_S = 10.0

# Bytes of a body that must arrive within its time limit.
_PROGRESS = 1024
# A request target with scheme and host; h11 reports it as the path.
_ABSOLUTE = re.compile(r"\Ahttps?://[^/]*", re.IGNORECASE)


class ClientGoneError(SwitchyardError):
    """The client disconnected; there is nobody to answer."""


class Exchange:
    """One request and its answer."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._scope = scope
        self._receive = receive
        self._send = send
        self._done = False
        #: Announced bytes of the answer, ``None`` if it has no length.
        self._length: int | None = None
        self._all_read = False
        self._stalled = False
        self.method: str = scope["method"]
        self.path = _own_path(scope, scope["path"])
        self.plain = plain_path(self.path)
        self.query: str = scope.get("query_string", b"").decode("latin-1")
        self.headers = Headers(
            [
                (name.decode("latin-1"), value.decode("latin-1"))
                for name, value in scope.get("headers", ())
            ]
        )
        self.request_id = f"req_{secrets.token_hex(12)}"
        #: The origin whose web pages may read the answer, ``""`` for none.
        self.allowed_origin = ""
        self.started = False
        self.status = 0
        self.bytes_in = 0
        self.bytes_out = 0

    @property
    def raw_path(self) -> str:
        """The path as it was sent, with its percent escapes."""
        raw = self._scope.get("raw_path")
        return _own_path(self._scope, raw.decode("latin-1") if raw else quote(self._scope["path"]))

    def without_headers(self, names: Iterable[str]) -> None:
        """Forget some headers of the request, as if they had not been sent."""
        gone = frozenset(names)
        self.headers = Headers([pair for pair in self.headers.items_ if pair[0] not in gone])

    # --- the request ---------------------------------------------------------------------

    @property
    def body_waits(self) -> bool:
        """Whether the request has a body that was not read to its end."""
        empty = self.headers.get("content-length", "0") == "0"
        return not self._all_read and (not empty or "transfer-encoding" in self.headers)

    async def read(self, limit: int, timeout_s: float) -> bytes:
        """Return the whole body; raises if it is too long, too slow (408), or the client leaves."""
        announced = self.headers.get("content-length", "")
        if announced.isdecimal() and int(announced) > limit:
            raise too_large(limit)
        parts: list[bytes] = []
        loop = asyncio.get_running_loop()
        progress = 0
        try:
            async with asyncio.timeout(timeout_s) as timer:
                while True:
                    message = await self._receive()
                    if message["type"] != "http.request":
                        raise ClientGoneError
                    part: bytes = message.get("body", b"")
                    self.bytes_in += len(part)
                    if self.bytes_in > limit:
                        raise too_large(limit)
                    parts.append(part)
                    if not message.get("more_body", False):
                        self._all_read = True
                        return parts[0] if len(parts) == 1 else b"".join(parts)
                    if self.bytes_in - progress >= _PROGRESS:
                        progress = self.bytes_in
                        timer.reschedule(loop.time() + timeout_s)
        except TimeoutError:
            self._stalled = True
            raise RequestError(
                f"the rest of the body did not arrive: no progress for {timeout_s:g} s",
                "request_timeout",
                408,
            ) from None

    async def _drain(self) -> None:
        """Read on for a while: closing a connection with unread data would lose the answer."""
        if self._stalled or "expect" in self.headers:
            return  # the client sends nothing, or waits for permission that it does not get
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_S):
                while True:
                    message = await self._receive()
                    if message["type"] != "http.request" or not message.get("more_body", False):
                        return

    @contextlib.asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        """Cancel the block as soon as the client disconnects; enter it after the body was read."""
        task = asyncio.current_task()
        gone = False

        async def watch() -> None:
            nonlocal gone
            with contextlib.suppress(Exception):
                while (await self._receive())["type"] != "http.disconnect":
                    pass
            # After the last byte of the answer the host reports a disconnect as well.
            if task is not None and not self._done:
                gone = True
                task.cancel()

        watcher = asyncio.create_task(watch())
        try:
            yield
        except BaseException:
            if gone and task is not None:
                task.uncancel()
                raise ClientGoneError from None
            raise
        finally:
            self._done = True
            watcher.cancel()

    # --- the answer ----------------------------------------------------------------------

    async def start(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        """Send status and headers."""
        self.started = True
        self.status = status
        if self.allowed_origin:
            origin = header_value(self.allowed_origin)
            headers = [*headers, (b"access-control-allow-origin", origin), (b"vary", b"origin")]
        lengths = [value for name, value in headers if name.lower() == b"content-length"]
        self._length = int(lengths[0]) if lengths and lengths[0].isdigit() else None
        await self._send({"type": "http.response.start", "status": status, "headers": headers})

    async def write(self, chunk: bytes) -> None:
        """Send a part of the body; returns when the client has taken enough of it."""
        self.bytes_out += len(chunk)
        # With its last announced byte the client has the whole answer, and may leave.
        self._done = self._done or self.bytes_out == self._length
        await self._send({"type": "http.response.body", "body": chunk, "more_body": True})

    async def end(self, chunk: bytes = b"") -> None:
        """Send the last part of the body."""
        self._done = True
        self.bytes_out += len(chunk)
        await self._send({"type": "http.response.body", "body": chunk, "more_body": False})

    async def respond(
        self,
        status: int,
        body: bytes,
        *,
        content_type: str = "application/json",
        headers: Iterable[tuple[str, str]] = (),
        drain: bool = False,
    ) -> None:
        """Send a whole answer of our own; ``drain`` if the request's body was not read."""
        pairs = [
            ("content-type", content_type),
            ("content-length", str(len(body))),
            ("x-switchyard-request-id", self.request_id),
            *headers,
        ]
        if drain:
            pairs.append(("connection", "close"))
        await self.start(status, [(name.encode(), header_value(text)) for name, text in pairs])
        content = b"" if self.method == "HEAD" else body
        if drain:
            await self.write(content)
            await self._drain()
            content = b""
        await self.end(content)


def _own_path(scope: Scope, path: str) -> str:
    """Return the path of a request, relative to where the application is mounted."""
    root: str = scope.get("root_path", "")
    # A mounted application sees the whole path and where it is mounted.
    path = path[len(root) :] if root and path.startswith(root) else path
    return path if path.startswith("/") else _ABSOLUTE.sub("", path)


def header_value(text: str) -> bytes:
    """Return text as the value of a header: everything that a header may not hold is escaped."""
    if text.isascii() and text.isprintable():
        return text.encode("ascii")
    return quote(text, safe=" !\"#$&'()*+,-./:;<=>?@[]^_`{|}~").encode("ascii")


def too_large(limit: int, *, decoded: bool = False) -> BodyTooLargeError:
    """Return the error for a body over the limit."""
    what = "the decoded body is larger" if decoded else "the body is larger"
    return BodyTooLargeError(
        f"{what} than the {limit} bytes that this server accepts (`--max-body`)",
        "body_too_large",
        413,
    )
