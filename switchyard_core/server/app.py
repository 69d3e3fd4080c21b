"""The server as an ASGI application: to be run by ``switchyard serve``, mounted, or called.

It is written on the raw protocol. A framework's request and response objects would cost half
of the throughput and bring buffering that a proxy must not have.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from switchyard_core.declarations import Endpoint, WireFormat
from switchyard_core.engine.response import ends_task
from switchyard_core.errors import RequestError, nearest
from switchyard_core.hookspecs import VERSION
from switchyard_core.identity import Headers
from switchyard_core.jsonio.tree import encode
from switchyard_core.policy.secrets import shown
from switchyard_core.server.access import Access, Limits
from switchyard_core.server.access_log import BodyLog, LogEntry
from switchyard_core.server.bodies import read_json
from switchyard_core.server.exchange import ClientGoneError, Exchange, Receive, Scope, Send
from switchyard_core.server.metrics import Metrics, gauges_of
from switchyard_core.server.pages import answer_decision, model_list, models_of
from switchyard_core.server.problems import fail
from switchyard_core.server.relay import (
    METHODS,
    check_passable,
    decision_headers,
    pass_on,
    serve_call,
)
from switchyard_core.wire import FORMATS, caller_format, endpoint_of

if TYPE_CHECKING:
    from switchyard_core.switchyard import Switchyard

__all__ = ["DEFAULT_MAX_BODY", "SwitchyardApp"]

#: Maximum size of a request body in bytes.
DEFAULT_MAX_BODY = 64 * 1024 * 1024

_MODELS = "/models/"


class _Page(NamedTuple):
    """A page of ours: its name, its method, what answers, and whether monitors ask for it."""

    name: str
    method: str
    answer: Callable[[Exchange], Awaitable[None]]
    probed: bool = False


@dataclass(slots=True, eq=False)
class _Version:
    """A policy that is served, and how many requests are running on it."""

    engine: Switchyard
    models: dict[str, dict[str, Any]]
    running: int = 0


class SwitchyardApp:
    """Serves a policy in all three wire formats; an ASGI 3 application (``http``, ``lifespan``).

    Args:
        engine: What decides and calls; the end of the host's lifespan closes its connections.
        max_body: Maximum size of a request body in bytes.
        server_key: Key that callers must send, ``None`` for none.
        log_bodies: Folder that request bodies are written to, ``None`` for nowhere.
        dry_run: Answer with the explanation, or what would be passed on, and call no provider.
        allowed_hosts: Host names to accept besides ``localhost`` and IP addresses; ``None``
            accepts all, since only the host of a mounted application knows its names.
        allowed_origins: Origins whose web pages may call, such as ``http://localhost:3000``.
        limits: Limits on requests and, for ``switchyard serve``, on connections.

    Raises:
        ValueError: No caller can ever send such a key, host or origin.
    """

    def __init__(
        self,
        engine: Switchyard,
        *,
        max_body: int = DEFAULT_MAX_BODY,
        server_key: str | None = None,
        log_bodies: Path | None = None,
        dry_run: bool = False,
        allowed_hosts: Iterable[str] | None = None,
        allowed_origins: Iterable[str] = (),
        limits: Limits | None = None,
    ) -> None:
        self.metrics = Metrics()
        self.limits = limits if limits is not None else Limits()
        self._max_body = max_body
        self._access = Access(key=server_key, hosts=allowed_hosts, origins=allowed_origins)
        self._bodies = BodyLog(log_bodies) if log_bodies is not None else None
        self._dry_run = dry_run
        self._version = _Version(engine, models_of(engine.policy))
        self._ending: list[_Version] = []
        self._pages: Mapping[str, _Page] = {
            "": _Page("root", "GET", _answer(name="switchyard", version=VERSION), probed=True),
            "/health": _Page("health", "GET", _answer(status="ok"), probed=True),
            "/metrics": _Page("metrics", "GET", self._metrics, probed=True),
            "/stats": _Page("stats", "GET", self._stats, probed=True),
            "/models": _Page("models", "GET", self._model_list),
            "/decision": _Page("decision", "POST", self._decision),
        }
        self._model_page = _Page("models", "GET", self._model)

    @property
    def engine(self) -> Switchyard:
        """What decides and calls for requests that come now."""
        return self._version.engine

    async def replace(self, engine: Switchyard) -> None:
        """Serve new requests with a successor; running ones finish with the engine they have."""
        before, self._version = self._version, _Version(engine, models_of(engine.policy))
        self._ending.append(before)
        await self._retire(before)

    async def _retire(self, version: _Version) -> None:
        """Close what a replaced version alone needs, once none of its requests is running."""
        if version.running or version not in self._ending:
            return
        self._ending.remove(version)
        serving = (self._version, *self._ending)
        kept = {client for each in serving for client in each.engine.policy.clients.values()}
        await version.engine.upstreams.retire(kept)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection's scope."""
        if scope["type"] == "http":
            await self._http(Exchange(scope, receive, send))
        elif scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "websocket":
            await _close_websocket(scope, send)

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.shutdown":
                for version in (*self._ending, self._version):
                    await version.engine.aclose()
                await send({"type": "lifespan.shutdown.complete"})
                return
            await send({"type": "lifespan.startup.complete"})

    async def _http(self, exchange: Exchange) -> None:
        entry = self._entry(exchange, endpoint_of(exchange.path))
        # One version for all of the request, whatever is loaded meanwhile.
        version = self._version
        version.running += 1
        try:
            await self._serve(entry, version)
        except ClientGoneError as error:
            entry.failed(error)
        except BaseException as error:
            entry.failed(error)
            if exchange.started or ends_task(error):
                # The host breaks the connection off: a cut answer must not look complete.
                raise
            await fail(
                exchange,
                error,
                entry.wire_format,
                decision_headers(version.engine, entry.decision),
                drain=exchange.body_waits,
            )
        finally:
            entry.close(self.metrics)
            version.running -= 1
            await self._retire(version)

    def _entry(self, exchange: Exchange, found: tuple[WireFormat, Endpoint] | None) -> LogEntry:
        if found is not None:
            return LogEntry(
                exchange=exchange,
                wire_format=found[0],
                call=found[1],
                routed=exchange.method == "POST",
                quiet=exchange.method == "HEAD",
                bodies=self._bodies,
            )
        page = self._page(exchange.plain)
        return LogEntry(
            exchange=exchange,
            wire_format=caller_format(exchange.plain, exchange.headers),
            call=page.name if page is not None else "unknown",
            quiet=exchange.method == "HEAD" or (page is not None and page.probed),
        )

    async def _serve(self, entry: LogEntry, version: _Version) -> None:
        exchange = entry.exchange
        self._admit(exchange)
        if exchange.allowed_origin and exchange.method == "OPTIONS":
            entry.call = "preflight"
            await _allow(exchange)
        elif entry.routed:
            body = await self._read_json(exchange)
            await serve_call(entry, version.engine, self.metrics, body, dry_run=self._dry_run)
        else:
            await self._other(entry, version.engine)

    def _admit(self, exchange: Exchange) -> None:
        """Check who calls, and forget the headers that carry the server's key."""
        headers = exchange.headers
        _check_size(exchange, self.limits)
        _refuse_upgrade(headers)
        exchange.allowed_origin = self._access.check_origin(headers)
        if exchange.plain != "/health":
            self._access.check_host(headers)
        # A preflight carries no key.
        open_to_all = exchange.method in ("HEAD", "OPTIONS") or (
            exchange.method == "GET" and exchange.plain in ("", "/health")
        )
        if not open_to_all:
            exchange.without_headers(self._access.check_key(headers))

    async def _read_json(self, exchange: Exchange) -> bytes:
        return await read_json(exchange, self._max_body, self.limits.body_timeout_s)

    async def _read(self, exchange: Exchange) -> bytes:
        return await exchange.read(self._max_body, self.limits.body_timeout_s)

    async def _other(self, entry: LogEntry, engine: Switchyard) -> None:
        exchange = entry.exchange
        if exchange.method == "HEAD":
            # Claude Code probes its base URL, with whatever prefix, before it starts.
            await exchange.respond(200, b"")
            return
        page = self._page(exchange.plain)
        if page is not None or endpoint_of(exchange.path) is not None:
            allowed = page.method if page is not None else "POST"
            if page is None or exchange.method != allowed:
                raise RequestError(
                    f"`{exchange.method}` is not allowed here; use `{allowed}`",
                    "method_not_allowed",
                    405,
                    headers={"allow": allowed},
                )
            await page.answer(exchange)
            return
        name = engine.policy.fallback_client
        if name is None:
            raise self._not_found(exchange.path)
        entry.call, entry.client = "fallback", name
        check_passable(exchange)
        body = await self._read(exchange)
        async with exchange.watched():
            cut = await pass_on(
                exchange, engine, name, body, entry.wire_format, dry_run=self._dry_run
            )
        if cut is not None:
            entry.failed(cut)

    def _not_found(self, path: str) -> RequestError:
        calls = (known for each in FORMATS.values() for known in each.paths.values())
        pages = (f"{'' if page.probed else '/v1'}{plain}" for plain, page in self._pages.items())
        paths = [*(f"/v1{known}" for known in dict.fromkeys(calls)), *(p for p in pages if p)]
        near = nearest(path, paths)
        hint = f"; did you mean `{near}`?" if near else ""
        message = f"nothing is served at `{shown(path)}`{hint} (paths: {', '.join(paths)})"
        return RequestError(message, "not_found", 404)

    def _page(self, plain: str) -> _Page | None:
        page = self._pages.get(plain)
        return self._model_page if page is None and plain.startswith(_MODELS) else page

    # --- pages ---------------------------------------------------------------------------

    async def _metrics(self, exchange: Exchange) -> None:
        text = self.metrics.as_text(await gauges_of(self.engine, self.metrics.active))
        await exchange.respond(200, text, content_type="text/plain; version=0.0.4; charset=utf-8")

    async def _stats(self, exchange: Exchange) -> None:
        gauges = await gauges_of(self.engine, self.metrics.active)
        await _json(exchange, self.metrics.as_json(gauges))

    async def _model_list(self, exchange: Exchange) -> None:
        await _json(exchange, model_list(self._version.models, exchange.query))

    async def _model(self, exchange: Exchange) -> None:
        name, models = exchange.plain[len(_MODELS) :], self._version.models
        if name not in models:
            what = f"there is no model `{name[:200]}` (models: {', '.join(models)})"
            raise RequestError(what, "model_not_found", 404, param="model")
        await _json(exchange, models[name])

    async def _decision(self, exchange: Exchange) -> None:
        body = await self._read_json(exchange)
        await exchange.respond(200, await answer_decision(self.engine, body))


def _check_size(exchange: Exchange, limits: Limits) -> None:
    """Refuse a request (431) whose headers are too many or too large."""
    items = exchange.headers.items_
    size = sum(len(name) + len(value) for name, value in items)
    if len(items) > limits.headers:
        problem = f"the request has {len(items)} headers, more than {limits.headers}"
        name = "headers"
    elif size + len(exchange.path) + len(exchange.query) > limits.header_bytes:
        problem = f"the headers are larger than {limits.header_bytes} bytes"
        name = "header_bytes"
    else:
        return
    raise RequestError(f"{problem} (`--limit {name}=N`)", "headers_too_large", 431)


def _refuse_upgrade(headers: Headers) -> None:
    """Refuse a WebSocket: clients that try one first go on with HTTP at once."""
    if headers.get("upgrade", "").strip().lower() == "websocket":
        raise RequestError(
            "WebSocket is not served here; send the request over HTTP",
            "upgrade_not_supported",
            426,
            # RFC 9110 wants the protocol to use instead.
            headers={"upgrade": "HTTP/1.1", "connection": "close", "x-should-retry": "false"},
        )


async def _close_websocket(scope: Scope, send: Send) -> None:
    """Refuse a WebSocket that a host has taken for us."""
    if "websocket.http.response" not in (scope.get("extensions") or {}):
        await send({"type": "websocket.close"})
        return
    await send({"type": "websocket.http.response.start", "status": 426, "headers": []})
    await send({"type": "websocket.http.response.body", "body": b""})


async def _allow(exchange: Exchange) -> None:
    wanted = exchange.headers.get("access-control-request-headers", "")
    headers = [("access-control-allow-methods", ", ".join(METHODS))]
    if wanted:
        headers.append(("access-control-allow-headers", wanted))
    await exchange.respond(200, b"", headers=headers)


async def _json(exchange: Exchange, value: Mapping[str, Any]) -> None:
    await exchange.respond(200, encode(value))


def _answer(**value: str) -> Callable[[Exchange], Awaitable[None]]:
    return lambda exchange: _json(exchange, value)
