"""Routed requests: decided and called by the engine, their answers passed on."""

from __future__ import annotations

from switchyard_core.decision import Decision
from switchyard_core.declarations import Endpoint
from switchyard_core.engine import Engine, Response
from switchyard_core.engine.questions import Question, explain_or_ask
from switchyard_core.engine.response import succeeded
from switchyard_core.jsonio.tree import encode
from switchyard_core.request import Request
from switchyard_core.server.account import Account
from switchyard_core.server.metrics import Metrics
from switchyard_core.server.relay import relay
from switchyard_core.wire import format_of
from switchyard_core.wire.passing import AnswerTrace

__all__ = ["RoutedCalls"]


class RoutedCalls:
    """Serves the calls to models.

    Args:
        engine: What decides and calls.
        metrics: Where running requests are counted.
        dry_run: Answer with the explanation instead of calling.
    """

    def __init__(self, engine: Engine, metrics: Metrics, *, dry_run: bool = False) -> None:
        self._engine = engine
        self._metrics = metrics
        self._dry_run = dry_run

    async def serve(self, account: Account, endpoint: Endpoint, body: bytes) -> None:
        """Serve one request whose body is there.

        Args:
            account: Where it is noted what happens.
            endpoint: Which call it is.
            body: Its body.

        Raises:
            ClientGoneError: The client went away.
            RequestError: The request is refused.
            PluginError: A plugin broke its contract before the answer began.
            UpstreamError: There is no answer, or it was cut and the connection must be broken
                off.
        """
        account.begin(body)
        exchange = account.exchange
        request = Request(
            wire_format=account.wire_format,
            body=body,
            headers=exchange.headers,
            endpoint=endpoint,
            query=exchange.query,
        )
        self._metrics.active += 1
        try:
            async with exchange.watched():
                if self._dry_run:
                    await self._explain(account, request)
                else:
                    await self._call(account, request)
        except BaseException:
            if account.decision is None:
                account.known = self._engine.known(request)
            raise
        finally:
            self._metrics.active -= 1

    async def _call(self, account: Account, request: Request) -> None:
        exchange, wire_format = account.exchange, account.wire_format
        response = await self._engine.handle(request, sent=account.sending)
        account.answered(response.decision)
        account.tokens = response.tokens
        trace = None
        if request.endpoint == "create" and succeeded(response.status):
            trace = account.answer = AnswerTrace(format_of(wire_format), dict(response.headers))
        cut = await relay(
            exchange,
            response,
            self.about(response.decision),
            wire_format,
            note=trace.note if trace is not None else None,
        )
        if cut is not None:
            account.failed(cut)
        elif trace is not None and (trace.broken_stream or not _is_ok(response)):
            account.error = "stream_failed"

    async def _explain(self, account: Account, request: Request) -> None:
        found = await explain_or_ask(self._engine, request)
        # A question has no decision yet: the router would ask a model first.
        decision = None if isinstance(found, Question) else found.decision.with_(effects=())
        account.decision = decision
        body = encode(found.as_json())
        await account.exchange.respond(200, body, headers=self.about(decision))

    def about(self, decision: Decision | None) -> list[tuple[str, str]]:
        """Return the headers that tell a caller what was decided."""
        if decision is None:
            return []
        headers = [("x-switchyard-route", decision.route)]
        if not self._engine.runtimes[decision.route].answers:
            # Of an answer that a router wrote, no one target is the source.
            target = self._engine.policy.targets[decision.target]
            headers += [
                ("x-switchyard-target", decision.target),
                ("x-switchyard-reason", decision.reason.code),
                ("x-model-router-selected-model", target.id),
            ]
        if decision.phase:
            headers.append(("x-switchyard-phase", decision.phase))
        if decision.warnings:
            codes = dict.fromkeys(warning.code for warning in decision.warnings)
            headers.append(("x-switchyard-warning", ",".join(codes)))
        return headers


def _is_ok(response: Response) -> bool:
    return response.outcome is None or response.outcome.ok
