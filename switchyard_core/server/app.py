"""The server as an ASGI application: to be run by ``switchyard serve``, mounted, or called.

It is written on the raw protocol. A framework's request and response objects would cost half
of the throughput and bring buffering that a proxy must not have.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from switchyard_core.declarations import WireFormat
from switchyard_core.engine import Engine
from switchyard_core.errors import RequestError
from switchyard_core.formats.endpoints import endpoint_of
from switchyard_core.jsontext import encode
from switchyard_core.request import Endpoint
from switchyard_core.server.access import key_headers
from switchyard_core.server.bodies import BodyLog
from switchyard_core.server.decision import answer_decision
from switchyard_core.server.exchange import ClientGoneError, Exchange, Receive, Scope, Send
from switchyard_core.server.fallback import pass_on
from switchyard_core.server.metrics import Gauge, Metrics
from switchyard_core.server.models import model_list, models_of
from switchyard_core.server.problems import caller_format
from switchyard_core.server.routed import RoutedCalls, fail
from switchyard_core.version import VERSION

__all__ = ["DEFAULT_MAX_BODY", "SwitchyardApp"]

#: Most bytes of a request's body.
DEFAULT_MAX_BODY = 64 * 1024 * 1024

_Page = Callable[[Exchange], Awaitable[None]]
_MODELS = "/models/"


class SwitchyardApp:
    """Serves a policy in all three wire formats; an ASGI 3 application (``http``, ``lifespan``).

    Args:
        engine: What decides and calls; the end of the host's lifespan closes its connections.
        max_body: Most bytes of a request's body.
        server_key: Key that callers must send, ``None`` for none.
        log_bodies: Folder that request bodies are written to, ``None`` for nowhere.
        dry_run: Answer routed requests with the explanation instead of calling a provider.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        max_body: int = DEFAULT_MAX_BODY,
        server_key: str | None = None,
        log_bodies: Path | None = None,
        dry_run: bool = False,
    ) -> None:
        self.engine = engine
        self.metrics = Metrics()
        self._max_body = max_body
        self._server_key = server_key
        self._models = models_of(engine.policy)
        bodies = BodyLog(log_bodies) if log_bodies is not None else None
        self._routed = RoutedCalls(engine, self.metrics, bodies=bodies, dry_run=dry_run)
        self._pages: Mapping[str, tuple[str, _Page]] = {
            "": ("GET", self._root),
            "/health": ("GET", self._health),
            "/metrics": ("GET", self._metrics),
            "/stats": ("GET", self._stats),
            "/models": ("GET", self._model_list),
            "/decision": ("POST", self._decision),
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection's scope."""
        if scope["type"] == "http":
            await self._http(Exchange(scope, receive, send))
        elif scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close"})

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.shutdown":
                await self.engine.aclose()
                await send({"type": "lifespan.shutdown.complete"})
                return
            await send({"type": "lifespan.startup.complete"})

    async def _http(self, exchange: Exchange) -> None:
        found = endpoint_of(exchange.path)
        if found is not None:
            wire_format = found[0]
        else:
            wire_format = caller_format(exchange.plain, exchange.headers)
        try:
            self._admit(exchange)
            if found is not None and exchange.method == "POST":
                _must_be_json(exchange)
                body = await exchange.read(self._max_body)
                await self._routed.serve(exchange, *found, body)
            else:
                await self._other(exchange, found, wire_format)
        except ClientGoneError:
            return
        except Exception as error:
            if exchange.started:
                # The host breaks the connection off: a cut answer must not look complete.
                raise
            await fail(exchange, error, wire_format, drain=exchange.body_waits)

    def _admit(self, exchange: Exchange) -> None:
        """Check the server's key and forget the headers that carry it."""
        if self._server_key is None:
            return
        open_to_all = exchange.method == "HEAD" or (
            exchange.method == "GET" and exchange.plain in ("", "/health")
        )
        if not open_to_all:
            exchange.without_headers(key_headers(exchange.headers, self._server_key))

    async def _other(
        self,
        exchange: Exchange,
        found: tuple[WireFormat, Endpoint] | None,
        wire_format: WireFormat,
    ) -> None:
        """Serve what is no call to a model."""
        if exchange.method == "HEAD":
            # Claude Code probes its base URL, with whatever prefix, before it starts.
            await exchange.respond(200, b"")
            return
        page = self._pages.get(exchange.plain)
        if page is None and exchange.plain.startswith(_MODELS):
            page = ("GET", self._model)
        if page is not None or found is not None:
            allowed = page[0] if page is not None else "POST"
            if page is None or exchange.method != allowed:
                raise RequestError(
                    message=f"`{exchange.method}` is not for this path; use `{allowed}`",
                    code="method_not_allowed",
                    status=405,
                    headers={"allow": allowed},
                )
            await page[1](exchange)
            return
        name = self.engine.policy.fallback_client
        if name is None:
            raise RequestError(
                message="nothing is served under this path; see `/v1/models` for what is",
                code="not_found",
                status=404,
            )
        body = await exchange.read(self._max_body)
        async with exchange.watched():
            await pass_on(exchange, self.engine, name, body, wire_format)

    # --- pages ---------------------------------------------------------------------------

    async def _root(self, exchange: Exchange) -> None:
        await _json(exchange, {"name": "switchyard", "version": VERSION})

    async def _health(self, exchange: Exchange) -> None:
        await _json(exchange, {"status": "ok"})

    async def _metrics(self, exchange: Exchange) -> None:
        text = self.metrics.as_text(await self._gauges())
        await exchange.respond(
            200, text.encode(), content_type="text/plain; version=0.0.4; charset=utf-8"
        )

    async def _stats(self, exchange: Exchange) -> None:
        await _json(exchange, self.metrics.as_json(await self._gauges()))

    async def _model_list(self, exchange: Exchange) -> None:
        await _json(exchange, model_list(self._models, exchange.query))

    async def _model(self, exchange: Exchange) -> None:
        name = exchange.plain[len(_MODELS) :]
        model = self._models.get(name)
        if model is None:
            known = ", ".join(self._models)
            raise RequestError(
                message=f"there is no model `{name[:200]}` (models: {known})",
                code="model_not_found",
                status=404,
                param="model",
            )
        await _json(exchange, model)

    async def _decision(self, exchange: Exchange) -> None:
        _must_be_json(exchange)
        body = await exchange.read(self._max_body)
        await exchange.respond(200, await answer_decision(self.engine, body))

    async def _gauges(self) -> list[Gauge]:
        gauges = [
            Gauge(
                name="switchyard_active_requests",
                help="Routed requests that are running.",
                value=self.metrics.active,
            )
        ]
        for name, runtime in self.engine.runtimes.items():
            if runtime.store is None:
                continue
            labels = (("route", name),)
            gauges += [
                Gauge(
                    name="switchyard_latches",
                    help="Sessions that are latched.",
                    labels=labels,
                    value=await runtime.store.count(),
                ),
                Gauge(
                    name="switchyard_latch_capacity",
                    help="Sessions that can be latched.",
                    labels=labels,
                    value=runtime.store.capacity,
                ),
                Gauge(
                    name="switchyard_requests_without_identity",
                    help="Requests so far that brought no session id.",
                    labels=labels,
                    value=runtime.without_identity,
                ),
            ]
        # The text format wants all lines of one metric together.
        return sorted(gauges, key=lambda gauge: gauge.name)


def _must_be_json(exchange: Exchange) -> None:
    kind = exchange.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind and not kind.endswith(("/json", "+json")):
        raise RequestError(
            message="the body must be JSON: send `content-type: application/json`",
            code="unsupported_media_type",
            status=415,
        )
    encoding = exchange.headers.get("content-encoding", "").strip().lower()
    if encoding not in ("", "identity"):
        raise RequestError(
            message="the body must not be compressed: send it without `content-encoding`",
            code="unsupported_encoding",
            status=415,
            headers={"accept-encoding": "identity"},
        )


async def _json(exchange: Exchange, value: Mapping[str, Any]) -> None:
    await exchange.respond(200, encode(value))
