"""Routed requests: decided and called by the engine, their answers passed on."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from switchyard_core.decision import Decision
from switchyard_core.declarations import WireFormat
from switchyard_core.engine import Engine
from switchyard_core.engine.explanation import explanation
from switchyard_core.errors import RequestError, UpstreamError
from switchyard_core.formats import format_of
from switchyard_core.jsontext import encode
from switchyard_core.request import Endpoint, Request
from switchyard_core.server.account import Account
from switchyard_core.server.bodies import BodyLog
from switchyard_core.server.exchange import ClientGoneError, Exchange
from switchyard_core.server.metrics import Metrics
from switchyard_core.server.problems import problem_of
from switchyard_core.server.relay import relay

__all__ = ["RoutedCalls", "fail"]

_LOG = logging.getLogger("switchyard")


class RoutedCalls:
    """Serves the calls to models.

    Args:
        engine: What decides and calls.
        metrics: Where requests are counted.
        bodies: Where bodies are kept, ``None`` for nowhere.
        dry_run: Answer with the explanation instead of calling.
        clock: A monotonic clock in seconds.
    """

    def __init__(
        self,
        engine: Engine,
        metrics: Metrics,
        *,
        bodies: BodyLog | None = None,
        dry_run: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._engine = engine
        self._metrics = metrics
        self._bodies = bodies
        self._dry_run = dry_run
        self._clock = clock

    async def serve(
        self, exchange: Exchange, wire_format: WireFormat, endpoint: Endpoint, body: bytes
    ) -> None:
        """Serve one request whose body is there.

        Raises:
            UpstreamError: The answer was cut and the connection must be broken off.
        """
        account = Account(
            exchange=exchange,
            wire_format=wire_format,
            endpoint=endpoint,
            clock=self._clock,
            bodies=self._bodies,
        )
        account.begin(body)
        self._metrics.active += 1
        try:
            async with exchange.watched():
                await self._call(account, wire_format, endpoint, body)
        except ClientGoneError:
            account.gone = True
        except Exception as error:
            account.error = problem_of(error, exchange.request_id).code
            if exchange.started:
                raise
            await fail(exchange, error, wire_format, self._about(account.decision))
        finally:
            self._metrics.active -= 1
            account.close(self._metrics)

    async def _call(
        self, account: Account, wire_format: WireFormat, endpoint: Endpoint, body: bytes
    ) -> None:
        exchange = account.exchange
        request = Request(
            wire_format=wire_format,
            body=body,
            headers=exchange.headers,
            endpoint=endpoint,
            query=exchange.query,
        )
        if self._dry_run:
            await self._explain(account, request)
            return
        response = await self._engine.handle(request, sent=account.sending)
        account.answered(response.decision)
        cut = await relay(exchange, response, self._about(response.decision), wire_format)
        if cut is not None:
            account.error = problem_of(cut, exchange.request_id).code

    async def _explain(self, account: Account, request: Request) -> None:
        decision = await self._engine.decide(request, dry_run=True)
        account.decision = decision.with_(effects=())
        body = encode(explanation(self._engine, request, decision).as_json())
        await account.exchange.respond(200, body, headers=self._about(decision))

    def _about(self, decision: Decision | None) -> list[tuple[str, str]]:
        """Return the headers that tell a caller what was decided."""
        if decision is None:
            return []
        headers = [
            ("x-switchyard-route", decision.route),
            ("x-switchyard-target", decision.target),
            ("x-switchyard-reason", decision.reason.code),
            ("x-model-router-selected-model", self._engine.policy.targets[decision.target].id),
        ]
        if decision.phase:
            headers.append(("x-switchyard-phase", decision.phase))
        if decision.warnings:
            codes = dict.fromkeys(warning.code for warning in decision.warnings)
            headers.append(("x-switchyard-warning", ",".join(codes)))
        return headers


async def fail(
    exchange: Exchange,
    error: Exception,
    wire_format: WireFormat,
    about: list[tuple[str, str]] | None = None,
    *,
    drain: bool = False,
) -> None:
    """Answer with an error in the shape of a wire format; a fault of ours goes to the log.

    Args:
        exchange: What is answered; nothing was sent on it yet.
        error: What happened.
        wire_format: The caller's.
        about: Headers about the decision, if there was one.
        drain: The request's body was not read.
    """
    problem = problem_of(error, exchange.request_id)
    if not isinstance(error, (RequestError, UpstreamError)):
        _LOG.error("request=%s failed", exchange.request_id, exc_info=error)
    headers = [*(about or ()), *problem.headers.items(), ("x-request-id", exchange.request_id)]
    if wire_format == "anthropic_messages":
        headers.append(("request-id", exchange.request_id))
    body = format_of(wire_format).error_body(problem, exchange.request_id)
    await exchange.respond(problem.status, body, headers=headers, drain=drain)
