"""Connections of callers: uvicorn's two HTTP parsers, with the limits that they lack.

uvicorn reads HTTP with httptools where that is installed and with h11 otherwise. Neither limits
the headers of a request (h11 does only when they arrive in pieces), the time they take, or the
number of connections that wait for theirs. With httptools, trailers of a body become headers, and
a client that disconnects after it has pipelined a second request is not noticed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Literal

from uvicorn.protocols.http.h11_impl import H11Protocol

from switchyard_core.server.access import Limits

if TYPE_CHECKING:
    from uvicorn.protocols.http.flow_control import FlowControl

__all__ = ["Connections", "Parser"]

#: Which HTTP parser reads the requests; ``auto`` takes the faster one that is installed.
Parser = Literal["auto", "h11", "httptools"]

_LOG = logging.getLogger("switchyard")

# Maximum number of pipelined requests that wait; httptools parses all that one packet holds.
_MOST_PIPELINED = 16
# Pipelined bytes to keep; at more, reading is paused until the answer is complete.
_HELD_BYTES = 64 * 1024
# How long a refused connection is read from: closing it with unread data would lose the answer.
_REFUSED_S = 1.0
# Number of refused connections that get an answer at the same time; more are closed at once.
_MOST_REFUSED = 100
# Seconds between two lines of the log about the same limit.
_QUIET_S = 60.0


class Connections:
    """The connections of one server."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        #: Those with an incomplete request head, the oldest first.
        self.half_open: dict[_Connection, None] = {}
        self._told: dict[str, float] = {}

    def protocol(self, parser: Parser = "auto") -> Callable[..., asyncio.Protocol]:
        """Return the factory of connections, for the option ``http`` of uvicorn."""
        made = _PARSERS[next(iter(_PARSERS)) if parser == "auto" else parser]

        def connection(**options: Any) -> asyncio.Protocol:
            found = made(**options)
            found.shared = self
            return found

        return connection

    def has_room(self, open_now: int) -> bool:
        """Return whether a new connection may stay, after closing an older one if need be."""
        limits = self.limits
        full = open_now > limits.connections
        if self.half_open and (full or len(self.half_open) >= limits.half_open):
            name = "connections" if full else "half_open"
            self._tell(name, "the connection that has waited longest for its headers is closed")
            next(iter(self.half_open)).give_way()
        elif full:
            self._tell("connections", "new connections are refused")
            return False
        return True

    def _tell(self, name: str, what: str) -> None:
        """Write to the log that a limit is reached, once in a while."""
        now = asyncio.get_running_loop().time()
        if now - self._told.get(name, -_QUIET_S) >= _QUIET_S:
            self._told[name] = now
            _LOG.warning("the limit `%s` is reached: %s", name, what)


class _Connection(asyncio.Protocol):
    """One connection: a mixin that comes before a protocol class of uvicorn."""

    shared: Connections

    # Attributes of uvicorn's classes.
    loop: asyncio.AbstractEventLoop
    transport: asyncio.Transport
    flow: FlowControl
    connections: set[Any]
    cycle: Any

    # Runs while a request head is incomplete.
    _timer: asyncio.TimerHandle | None = None
    # Bytes since the last complete head or part of a body.
    _unread = 0
    # Pipelined bytes: they follow the request that is being answered.
    _held = b""
    _refused = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Wait for a request, or refuse the connection."""
        super().connection_made(transport)
        if self.shared.has_room(len(self.connections)):
            self._await_head()
        elif len(self.connections) > self.shared.limits.connections + _MOST_REFUSED:
            self.transport.abort()
        else:
            self._refuse(503, "too many connections: try again later")

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse what arrived; while a request is answered, keep it for later."""
        if self._refused:
            return
        if self._answers:
            # Reading continues, because only reading tells that the client has disconnected.
            self._held += data
            if len(self._held) > _HELD_BYTES:
                self.flow.pause_reading()
            return
        self._unread += len(data)
        super().data_received(data)
        if self._refused or self.transport.is_closing():
            return
        if self._busy:
            self._stop_waiting()
            if self._answers:
                self.flow.resume_reading()
                self._unread = 0
            elif self.cycle.body:
                self._unread = 0
        elif self._timer is None:
            self._await_head()
        most = self.shared.limits.header_bytes
        if self._unread > most:
            self._refuse(431, f"the headers are larger than the {most} bytes that are accepted")

    def on_response_complete(self) -> None:
        """Continue with what followed the request that was answered."""
        super().on_response_complete()  # type: ignore[misc]  # uvicorn's classes have it
        if self._held and not self.transport.is_closing():
            data, self._held = self._held, b""
            self.data_received(data)

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP, without writing into an answer."""
        if self._busy and self.cycle.response_started:
            self.transport.close()
        else:
            super().send_400_response(msg)  # type: ignore[misc]  # uvicorn's classes have it

    def _unsupported_upgrade_warning(self) -> None:
        """Leave a refused upgrade to the application, whose log line says all there is to say."""

    def give_way(self) -> None:
        """Make room for another connection."""
        self._stop_waiting()
        if self._unread:
            self._answer(503, "too many connections: try again later")
        self.transport.close()

    @property
    def _busy(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    @property
    def _answers(self) -> bool:
        return self._busy and not self.cycle.more_body

    def _await_head(self) -> None:
        self.shared.half_open[self] = None
        self._timer = self.loop.call_later(self.shared.limits.header_timeout_s, self._late)

    def _stop_waiting(self) -> None:
        self.shared.half_open.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _late(self) -> None:
        seconds = self.shared.limits.header_timeout_s
        if self._unread:
            self._refuse(408, f"the headers were not complete after {seconds:g} s")
        else:
            self.transport.close()

    def _refuse(self, status: int, message: str) -> None:
        """Answer, read for a moment longer, and close; do not answer the same request twice."""
        self._stop_waiting()
        if self._busy or (self.cycle is not None and self.cycle.more_body):
            self.transport.close()
            return
        self._refused = True
        self._answer(status, message)
        self._timer = self.loop.call_later(_REFUSED_S, self.transport.close)

    def _answer(self, status: int, message: str) -> None:
        lines = (
            f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
            "content-type: text/plain; charset=utf-8",
            f"content-length: {len(message)}",
            "connection: close",
        )
        self.transport.write("\r\n".join((*lines, "", message)).encode("ascii"))


class _H11Connection(_Connection, H11Protocol):
    """A connection that h11 parses: one request at a time, trailers apart from headers."""


# By name; the first one is the default.
_PARSERS: dict[str, Callable[..., _Connection]] = {"h11": _H11Connection}

try:
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
except ImportError:
    pass  # the extra `fast` is not installed
else:

    class _HttptoolsConnection(_Connection, HttpToolsProtocol):
        """A connection that httptools parses: pipelined requests too, trailers like headers."""

        # Unanswered requests before the last one.
        _earlier: tuple[Any, ...] = ()

        def connection_lost(self, exc: Exception | None) -> None:
            """Tell every request that the client is gone; uvicorn only tells the last one."""
            super().connection_lost(exc)
            for cycle in self._earlier:
                cycle.disconnected = not cycle.response_complete
                cycle.message_event.set()

        def on_headers_complete(self) -> None:
            """Serve a request, or queue it after the one that is being served.

            Raises:
                ValueError: The queue is full; for httptools that is an error in the request.
            """
            if len(self.pipeline) >= _MOST_PIPELINED:
                raise ValueError("too many pipelined requests")
            before = self.cycle
            super().on_headers_complete()
            # The request keeps its list of headers; trailers go into another one.
            self.headers = []
            earlier = (*self._earlier, before) if before is not None else self._earlier
            self._earlier = tuple(cycle for cycle in earlier if not cycle.response_complete)

    _PARSERS = {"httptools": _HttptoolsConnection, **_PARSERS}
