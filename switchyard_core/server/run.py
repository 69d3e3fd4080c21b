"""Running the application behind uvicorn: one ready line, a bounded drain, a clean exit."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any, cast

import uvicorn

from switchyard_core.errors import UpstreamError
from switchyard_core.server.access import Limits
from switchyard_core.server.app import SwitchyardApp
from switchyard_core.server.connections import Connections, Parser
from switchyard_core.server.reload import Reloader

__all__ = ["DRAIN_S", "bind", "configured", "run", "url_of"]

#: How long running requests may take after SIGTERM before they are broken off.
DRAIN_S = 30

_BACKLOG = 2048
# An event loop reads up to 256 KiB at once.
_TWO_READS = 512 * 1024
# Open files besides connections: plugins, recordings, logs, those of the event loop.
_OTHER_FILES = 200
# How long a connection that was broken off may take to close.
_LAST_BYTES_S = 1.0
_LOG = logging.getLogger("switchyard")


def bind(host: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 takes a free one."""
    family, kind, protocol, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener


def url_of(listener: socket.socket) -> str:
    """Return the URL under which a listening socket is reached."""
    host, port = listener.getsockname()[:2]
    shown = f"[{host}]" if listener.family == socket.AF_INET6 else host
    return f"http://{shown}:{port}"


def run(
    app: SwitchyardApp,
    listener: socket.socket,
    *,
    ready: Callable[[], None],
    drain_s: int = DRAIN_S,
    reloader: Reloader | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT, then finish what runs, for at most ``drain_s``, and return."""
    _allow_descriptors(app.limits)
    config = configured(app, app.limits)
    logger = logging.getLogger("uvicorn.error")
    quiet = _BrokenAnswers()
    logger.addFilter(quiet)
    try:
        _Server(config, ready, drain_s, reloader).run(sockets=[listener])
    finally:
        logger.removeFilter(quiet)
        listener.close()


def configured(app: Any, limits: Limits, parser: Parser = "auto") -> uvicorn.Config:
    """Return how uvicorn serves an application."""
    return uvicorn.Config(
        app,
        # uvicorn only calls it; its annotation asks for a class.
        http=cast("type[asyncio.Protocol]", Connections(limits).protocol(parser)),
        # Out of reach, as h11 would answer 400: the connection checks the limit after each read.
        h11_max_incomplete_event_size=limits.header_bytes + _TWO_READS,
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        ws="none",
        lifespan="on",
        backlog=_BACKLOG,
    )


def _allow_descriptors(limits: Limits) -> None:
    """Allow the process as many open files as its connections need, or warn that it cannot."""
    try:
        import resource  # noqa: PLC0415  # not on Windows
    except ImportError:
        return
    # A caller's connection may need another one to a provider.
    wanted = 2 * limits.connections + _OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
        soft = allowed
    if soft < wanted:
        _LOG.warning(
            "only %d files may be open, too few for %d connections: raise `ulimit -n` to %d, or "
            "lower `--limit connections=N`",
            soft,
            limits.connections,
            wanted,
        )


class _Server(uvicorn.Server):
    """uvicorn's server, with a call when it is ready, a bounded drain and a normal end."""

    def __init__(
        self,
        config: uvicorn.Config,
        ready: Callable[[], None],
        drain_s: float,
        reloader: Reloader | None = None,
    ) -> None:
        super().__init__(config)
        self._reloader = reloader
        self._reloading: asyncio.Task[None] | None = None
        self._ready = ready
        self._drain_s = drain_s

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start and say so."""
        await super().startup(sockets)
        if not self.started:
            return
        if self._reloader is not None:
            # Before we are ready: from then on a SIGHUP must not end the process.
            self._reloading = asyncio.create_task(self._reloader.run())
            number = getattr(signal, "SIGHUP", None)
            if number is not None and threading.current_thread() is threading.main_thread():
                asyncio.get_running_loop().add_signal_handler(number, self._reloader.ask)
        self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Finish what is running, for at most the drain time."""
        if self._reloading is not None:
            self._reloading.cancel()
        timer = asyncio.get_running_loop().call_later(self._drain_s, self._break_off)
        try:
            await super().shutdown(sockets)
        finally:
            timer.cancel()

    def _break_off(self) -> None:
        """Cancel what is still running; clients that do not even take that are left behind."""
        tasks = tuple(self.server_state.tasks)
        _LOG.warning(
            "%d requests are still running after %g s of drain and are cancelled",
            len(tasks),
            self._drain_s,
        )
        for task in tasks:
            task.cancel()
        asyncio.get_running_loop().call_later(_LAST_BYTES_S, self._leave)

    def _leave(self) -> None:
        self.force_exit = True

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Take the signals that end the server; uvicorn would raise them again at its end."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        numbers = (signal.SIGINT, signal.SIGTERM)
        before = {number: signal.signal(number, self.handle_exit) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


class _BrokenAnswers(logging.Filter):
    """Keeps uvicorn from reporting answers that were broken off on purpose.

    The only way to do that in ASGI is to raise; our own log line already reports it.
    Requests that outlast the drain are cancelled, of which we have a line too.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record is worth a line."""
        error = record.exc_info[1] if record.exc_info else None
        # Anything but an `Exception` leaves the application only when its task is cancelled.
        return error is None or (
            isinstance(error, Exception) and not isinstance(error, UpstreamError)
        )
