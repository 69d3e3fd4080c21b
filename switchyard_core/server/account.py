"""What one routed request did: its line in the log, its part of the metrics."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass

from switchyard_core.decision import Decision, Latch
from switchyard_core.declarations import WireFormat
from switchyard_core.engine import Rewritten
from switchyard_core.request import Endpoint
from switchyard_core.server.bodies import BodyLog
from switchyard_core.server.exchange import Exchange
from switchyard_core.server.metrics import Metrics

__all__ = ["GONE_STATUS", "LOG", "Account"]

LOG = logging.getLogger("switchyard")

#: What the log and the metrics say when the client went away; no caller ever sees it.
GONE_STATUS = 499


@dataclass(slots=True, kw_only=True)
class Account:
    """Collects what is known of one routed request while it runs.

    Args:
        exchange: The request.
        wire_format: Its wire format.
        endpoint: Which call it is.
        clock: A monotonic clock in seconds.
        bodies: Where bodies are kept, if they are.
        number: Its number there.
        began: When its body was there.
        decision: The decision carried out last.
        sent_at: When the first outgoing request was ready.
        answered_at: When the provider's answer began.
        own: Seconds of our own before the answer began.
        tries: Outgoing requests so far.
        error: Code of the failure, ``""`` without one.
        gone: Whether the client went away.
    """

    exchange: Exchange
    wire_format: WireFormat
    endpoint: Endpoint
    clock: Callable[[], float]
    bodies: BodyLog | None = None
    number: int = 0
    began: float = 0.0
    decision: Decision | None = None
    sent_at: float = 0.0
    own: float | None = None
    tries: int = 0
    error: str = ""
    gone: bool = False

    def begin(self, body: bytes) -> None:
        """Note that the body is there."""
        self.began = self.clock()
        if self.bodies is not None:
            self.number = self.bodies.incoming(body)

    def sending(self, decision: Decision, rewritten: Rewritten) -> None:
        """Note an outgoing request."""
        self.decision = decision
        self.tries += 1
        if self.tries == 1:
            self.sent_at = self.clock()
        if self.bodies is not None:
            self.bodies.outgoing(self.number, self.tries, rewritten.outgoing.body)

    def answered(self, decision: Decision) -> None:
        """Note that the provider's answer begins."""
        self.decision = decision
        self.own = self.sent_at - self.began

    def close(self, metrics: Metrics) -> None:
        """Count the request and write its line."""
        seconds = self.clock() - self.began
        status = GONE_STATUS if self.gone else self.exchange.status
        decision = self.decision
        route = decision.route if decision is not None else ""
        target = decision.target if decision is not None else ""
        phase = decision.phase if decision is not None else ""
        metrics.requests[route, target, phase, str(status)] += 1
        error = "client_gone" if self.gone else self.error
        if error:
            metrics.errors[error] += 1
        elif status >= 400:
            metrics.errors[f"provider_{status}"] += 1
        metrics.observe(route, seconds, self.own)
        if decision is not None and any(isinstance(e, Latch) for e in decision.effects):
            facts = decision.reason.facts
            metrics.handoffs[route, facts.get("rule_set", ""), facts.get("rule", "")] += 1
        LOG.info(self._line(decision, status, error, seconds))

    def _line(self, decision: Decision | None, status: int, error: str, seconds: float) -> str:
        """Return the line: never a body, a prompt, a key or a session id."""
        exchange = self.exchange
        fields: list[tuple[str, object]] = [
            ("request", exchange.request_id),
            ("format", self.wire_format),
            ("call", self.endpoint),
        ]
        if decision is not None:
            identity = decision.identity
            fields += [
                ("route", decision.route),
                ("target", decision.target),
                ("phase", decision.phase or "-"),
                ("reason", decision.reason.code),
                ("identity", identity.digest if identity is not None else "-"),
            ]
            if decision.warnings:
                fields.append(("warning", ",".join(w.code for w in decision.warnings)))
        fields += [("status", status), ("in", exchange.bytes_in), ("out", exchange.bytes_out)]
        fields.append(("ms", f"{seconds * 1000:.1f}"))
        if self.own is not None:
            fields.append(("own_ms", f"{self.own * 1000:.2f}"))
        if error:
            fields.append(("error", error))
        return " ".join(f"{name}={_value(value)}" for name, value in fields)


def _value(value: object) -> str:
    """Return a value as one word of a log line."""
    text = str(value)
    if text and text.isascii() and text.isprintable() and not set(text) & set(' "='):
        return text
    return json.dumps(text)
