"""The connections to one provider: made, lent to one call at a time, used again or closed.

httpx's own pool keeps its books in steps that a cancelled task can leave half done, and uses a
connection again whose provider sent more than its answer. Here a call holds a :class:`Lease`.
However it ends, the connection is put back or closed in a task that nobody cancels, and it is put
back only if the answer ended as HTTP says and not a byte came after it.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import ssl
import time
from collections.abc import AsyncIterable, Coroutine
from typing import Any, cast

import httpcore
import httpx

__all__ = ["REST_S", "Connections", "Lease", "is_closed"]

#: Seconds that a connection may rest between two calls. Providers close theirs after a minute.
REST_S = 30.0

# Seconds in which an abandoned connection may still be made: one that is cancelled
# in the moment it is made would be lost, open.
_MADE_S = 5.0
_CLOSED = re.compile(r"disconnected|closed connection")


class _Connection(httpcore.AsyncHTTP11Connection):
    """One connection, with its socket and the time since which it rests."""

    def __init__(self, origin: httpcore.Origin, stream: httpcore.AsyncNetworkStream) -> None:
        super().__init__(origin, stream)
        self.socket = stream
        self.rests_since = 0.0

    @property
    def unread(self) -> bool:
        """Whether bytes have arrived that no answer was made of yet."""
        return bool(self._h11_state.trailing_data[0])

    @property
    def reusable(self) -> bool:
        """Whether the last answer ended as HTTP says, and the provider was silent since."""
        return self.is_idle() and not self.unread and not self.has_expired()


class Connections:
    """The connections to one origin."""

    def __init__(
        self,
        url: httpx.URL,
        *,
        most: int,
        timeout_s: float,
        backend: httpcore.AsyncNetworkBackend | None = None,
    ) -> None:
        self.origin = httpcore.URL(
            scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=b"/"
        ).origin
        self._timeout_s = timeout_s
        self._backend = backend or httpcore.AnyIOBackend()
        self._tls: ssl.SSLContext | None = None
        self._slots = asyncio.Semaphore(most)
        self._leases: set[Lease] = set()
        self._resting: list[_Connection] = []
        self._ending: set[asyncio.Task[None]] = set()
        self._sweep: asyncio.TimerHandle | None = None

    @property
    def active(self) -> int:
        """Connections that a call has, those that are being made or closed included."""
        return len(self._leases)

    @property
    def idle(self) -> int:
        """Connections that rest."""
        return len(self._resting)

    async def ask(self, request: httpcore.Request) -> tuple[Lease, httpcore.Response]:
        """Send a request and return the answer's head, and the lease that its reader must end.

        A provider may close an idle connection at any moment, so a call on one that was closed is
        sent again, once, on a new one. Raises httpcore's timeout, network and protocol errors.
        """
        lease = await self._lease(new=False)
        try:
            return lease, await lease.ask(request)
        except (httpcore.ReadError, httpcore.RemoteProtocolError):
            if not lease.met_closed:
                raise
        lease = await self._lease(new=True)
        return lease, await lease.ask(request)

    async def aclose(self) -> None:
        """Close all connections; calls that are running end with an error."""
        if self._sweep is not None:
            self._sweep.cancel()
        resting, self._resting = self._resting, []
        for connection in resting:
            self.spawn(_close(connection.socket))
        for lease in tuple(self._leases):
            self.spawn(lease.end())
        while self._ending:
            await asyncio.wait(self._ending)

    async def _lease(self, *, new: bool) -> Lease:
        if self._slots.locked():
            try:
                async with asyncio.timeout(self._timeout_s):
                    await self._slots.acquire()
            except TimeoutError:
                raise httpcore.PoolTimeout from None
        else:
            await self._slots.acquire()
        lease = Lease(self)
        self._leases.add(lease)
        lease.connection = None if new else self._rested()
        lease.reused = lease.connection is not None
        if lease.connection is None:
            making = asyncio.ensure_future(self._connect())
            try:
                lease.connection = await asyncio.shield(making)
            except BaseException:
                self.spawn(self._abandon(making, lease))
                raise
            if lease.over:
                self.spawn(_close(lease.connection.socket))
                raise httpcore.ConnectError("closed while connecting")
        return lease

    def _rested(self) -> _Connection | None:
        """Return a connection that can be used again, the one that rests for the shortest time."""
        while self._resting:
            connection = self._resting.pop()
            if connection.reusable:
                return connection
            self.spawn(_close(connection.socket))
        return None

    async def _connect(self) -> _Connection:
        stream = await self._backend.connect_tcp(
            self.origin.host.decode("ascii"), self.origin.port, timeout=self._timeout_s
        )
        if self.origin.scheme == b"https":
            if self._tls is None:
                self._tls = httpx.create_ssl_context(trust_env=False)
                self._tls.set_alpn_protocols(["http/1.1"])
            plain = stream
            try:
                stream = await plain.start_tls(
                    self._tls, self.origin.host.decode("ascii"), self._timeout_s
                )
            except BaseException:
                self.spawn(_close(plain))
                raise
        return _Connection(self.origin, stream)

    async def _abandon(self, making: asyncio.Future[_Connection], lease: Lease) -> None:
        """End a lease whose caller left, or failed, while its connection was being made."""
        await asyncio.wait({making}, timeout=_MADE_S)
        making.cancel()
        with contextlib.suppress(Exception, asyncio.CancelledError):
            lease.connection = await making
        await lease.end()

    def release(self, lease: Lease, connection: _Connection | None) -> None:
        """Take a connection back, ``None`` for one that is closed."""
        self._leases.discard(lease)
        self._slots.release()
        if connection is not None:
            connection.rests_since = time.monotonic()
            self._resting.append(connection)
            self._watch()

    def _watch(self) -> None:
        """Close what rests too long, now and later."""
        now = time.monotonic()
        while self._resting and now - self._resting[0].rests_since >= REST_S:
            self.spawn(_close(self._resting.pop(0).socket))
        if self._sweep is not None:
            self._sweep.cancel()
            self._sweep = None
        if self._resting:
            wait = self._resting[0].rests_since + REST_S - now
            self._sweep = asyncio.get_running_loop().call_later(wait, self._watch)

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Do some work in a task that is kept until it is done and that no caller cancels."""
        task = asyncio.get_running_loop().create_task(work)
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
        return task


class Lease:
    """One call's hold on a connection."""

    def __init__(self, connections: Connections) -> None:
        self.connection: _Connection | None = None
        #: Whether an earlier call used the connection.
        self.reused = False
        #: Whether the provider had closed the connection before it got the request.
        self.met_closed = False
        self._connections = connections
        self._body: AsyncIterable[bytes] | None = None
        self._end: asyncio.Task[None] | None = None

    @property
    def unread(self) -> bool:
        """Whether bytes have arrived that the caller has not got."""
        return self.connection is not None and self.connection.unread

    @property
    def over(self) -> bool:
        """Whether the connection was given back, or is about to be."""
        return self._end is not None

    async def ask(self, request: httpcore.Request) -> httpcore.Response:
        """Send a request and return the answer's head; ends the lease if there is none."""
        connection = cast("_Connection", self.connection)
        try:
            answer = await connection.handle_async_request(request)
        except BaseException as error:
            self.met_closed = (
                self.reused and not self.over and not connection.unread and is_closed(error)
            )
            await self.end()
            raise
        self._body = cast("AsyncIterable[bytes]", answer.stream)
        return answer

    async def end(self, *, whole: bool = False) -> None:
        """Give the connection back; closes it unless the answer was read to its end.

        It may be called at any time, any number of times, and from any task. A caller that is
        cancelled meanwhile leaves the work to a task that is not.
        """
        if self._end is None:
            # The first call says how it ended.
            self._end = self._connections.spawn(self._give_back(whole=whole))
        await asyncio.shield(self._end)

    async def _give_back(self, *, whole: bool) -> None:
        connection, kept = self.connection, False
        try:
            if connection is not None:
                if whole:
                    with contextlib.suppress(Exception):
                        await cast("Any", self._body).aclose()
                kept = whole and connection.reusable
                if not kept:
                    await _close(connection.socket)
        finally:
            self._connections.release(self, connection if kept else None)


def is_closed(error: BaseException) -> bool:
    """Return whether a call failed because the connection was closed; only h11's text tells."""
    return isinstance(error, httpcore.NetworkError) or (
        isinstance(error, httpcore.RemoteProtocolError) and _CLOSED.search(str(error)) is not None
    )


async def _close(stream: httpcore.AsyncNetworkStream) -> None:
    with contextlib.suppress(Exception):
        await stream.aclose()
