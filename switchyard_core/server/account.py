"""What one request did: its one line in the log, its part of the metrics."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from switchyard_core.asking import ModelUsage
from switchyard_core.decision import Decision, Latch
from switchyard_core.declarations import WireFormat
from switchyard_core.engine import Rewritten
from switchyard_core.engine.contract import ends_task
from switchyard_core.engine.known import Known
from switchyard_core.engine.response import succeeded
from switchyard_core.errors import RequestError, UpstreamError
from switchyard_core.identity import Identity
from switchyard_core.server.bodies import BodyLog
from switchyard_core.server.exchange import ClientGoneError, Exchange
from switchyard_core.server.metrics import Metrics
from switchyard_core.server.problems import problem_of
from switchyard_core.wire.passing import AnswerTrace

__all__ = ["GONE_STATUS", "LOG", "Account"]

LOG = logging.getLogger("switchyard")

#: What the log and the metrics say when the client went away; no caller ever sees it.
GONE_STATUS = 499

_ERROR = 400
# A host answers so for an application that was broken off before it could.
_BROKEN_OFF = 500
_MODEL_CHARS = 80
_METHOD_CHARS = 16


@dataclass(slots=True, kw_only=True)
class Account:
    """Collects what is known of one request while it runs.

    Args:
        exchange: The request.
        wire_format: Its wire format, or the one whose errors its sender will understand.
        call: Which call it is: an endpoint, the name of a page, ``fallback`` or ``unknown``.
        routed: Whether it is a call to a model.
        quiet: Whether it is a probe, whose line nobody wants unless it fails.
        clock: A monotonic clock in seconds.
        bodies: Where bodies are kept, if they are.
        number: Its number there, 0 without one.
        began: When it came; for a call to a model, when its body was there.
        read: Whether its body was read.
        client: The client that it was passed on with, ``""`` for none.
        decision: The decision carried out last.
        known: What is known of a request that was refused before there was a decision.
        sent_at: When the first outgoing request was ready.
        own: Seconds of our own before the answer began.
        tries: Outgoing requests so far.
        answer: Traces the provider's answer.
        tokens: What each target took for an answer that a router wrote, ``None`` otherwise.
        error: Code of the failure, ``""`` without one.
        gone: Whether the client went away.
    """

    exchange: Exchange
    wire_format: WireFormat
    call: str
    routed: bool = False
    quiet: bool = False
    clock: Callable[[], float] = time.monotonic
    bodies: BodyLog | None = None
    number: int = 0
    began: float = field(init=False)
    read: bool = False
    client: str = ""
    decision: Decision | None = None
    known: Known = field(default_factory=Known)
    sent_at: float = 0.0
    own: float | None = None
    tries: int = 0
    answer: AnswerTrace | None = None
    tokens: Mapping[str, ModelUsage] | None = None
    error: str = ""
    gone: bool = False

    def __post_init__(self) -> None:
        self.began = self.clock()

    def begin(self, body: bytes) -> None:
        """Note that the body is there."""
        self.began = self.clock()
        self.read = True
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
        # A router that writes the answer itself has no request to send on.
        self.own = self.sent_at - self.began if self.tries else None

    def failed(self, error: BaseException) -> None:
        """Note why there is no whole answer."""
        if isinstance(error, ClientGoneError):
            self.gone = True
        elif ends_task(error):
            self.error = "broken_off"
        else:
            self.error = problem_of(error, self.exchange.request_id).code
        unsent = isinstance(error, RequestError) or (
            isinstance(error, UpstreamError) and error.kind == "connect"
        )
        if unsent and self.tries and self.bodies is not None:
            self.bodies.unsent(self.number, self.tries)

    def close(self, metrics: Metrics) -> None:
        """Count the request and write its line."""
        seconds = self.clock() - self.began
        status = GONE_STATUS if self.gone else self.exchange.status or _BROKEN_OFF
        error = "client_gone" if self.gone else self.error
        if not error and (status >= _ERROR or (self.routed and not succeeded(status))):
            error = f"provider_{status}"
        decision = self.decision
        if error:
            metrics.errors[self._route, error] += 1
        if not self.routed:
            metrics.others[self.call, self.client, str(status)] += 1
        else:
            target = decision.target if decision is not None else ""
            phase = decision.phase if decision is not None else ""
            metrics.requests[self._route, target, phase, str(status)] += 1
        if self.read:
            metrics.observe(self._route, seconds, self.own)
        if decision is not None and any(isinstance(e, Latch) for e in decision.effects):
            facts = decision.reason.facts
            metrics.handoffs[self._route, facts.get("rule_set", ""), facts.get("rule", "")] += 1
        usage = self._count_tokens(metrics)
        level = logging.DEBUG if self.quiet and not error else logging.INFO
        if LOG.isEnabledFor(level):
            fields = [*self._asked(), *self._decided(), *self._ended(status, seconds, error)]
            LOG.log(level, " ".join(f"{name}={_value(value)}" for name, value in [*fields, *usage]))

    @property
    def _route(self) -> str:
        return self.decision.route if self.decision is not None else self.known.route

    def _count_tokens(self, metrics: Metrics) -> list[tuple[str, object]]:
        if self.tokens is not None:
            return self._count_asked(metrics, self.tokens)
        tokens = self.answer.tokens() if self.answer is not None else None
        if tokens is None or self.decision is None:
            return []
        counts = {
            "input": tokens.input_tokens,
            "cached": tokens.cached_tokens,
            "output": tokens.output_tokens,
        }
        for kind, count in counts.items():
            metrics.tokens[self.decision.target, kind] += count
        return [(f"{kind}_tokens", count) for kind, count in counts.items()]

    def _count_asked(
        self, metrics: Metrics, asked: Mapping[str, ModelUsage]
    ) -> list[tuple[str, object]]:
        """Count what each target took that a router asked for its answer."""
        total = sum(asked.values(), ModelUsage())
        for target, used in asked.items():
            metrics.tokens[target, "input"] += used.input_tokens
            metrics.tokens[target, "cached"] += used.cached_tokens
            metrics.tokens[target, "output"] += used.output_tokens
        return [
            ("input_tokens", total.input_tokens),
            ("cached_tokens", total.cached_tokens),
            ("output_tokens", total.output_tokens),
        ]

    # --- the line: never a body, a prompt, a key, a path or a session id -------------------

    def _asked(self) -> list[tuple[str, object]]:
        fields: list[tuple[str, object]] = [("request", self.exchange.request_id)]
        if self.routed:
            fields.append(("format", self.wire_format))
        else:
            fields.append(("method", self.exchange.method[:_METHOD_CHARS]))
        fields.append(("call", self.call))
        if self.client:
            fields.append(("client", self.client))
        return fields

    def _decided(self) -> list[tuple[str, object]]:
        decision = self.decision
        if decision is not None:
            fields: list[tuple[str, object]] = [
                ("route", decision.route),
                ("target", decision.target),
                ("phase", decision.phase or "-"),
                ("reason", decision.reason.code),
                ("identity", _digest(decision.identity)),
            ]
            if decision.warnings:
                fields.append(("warning", ",".join(w.code for w in decision.warnings)))
            return fields
        known = self.known
        fields = [("model", known.model[:_MODEL_CHARS])] if known.model else []
        if known.route:
            fields += [("route", known.route), ("identity", _digest(known.identity))]
        return fields

    def _ended(self, status: int, seconds: float, error: str) -> list[tuple[str, object]]:
        exchange = self.exchange
        fields: list[tuple[str, object]] = [
            ("status", status),
            ("in", exchange.bytes_in),
            ("out", exchange.bytes_out),
            ("ms", f"{seconds * 1000:.1f}"),
        ]
        if self.own is not None:
            fields.append(("own_ms", f"{self.own * 1000:.2f}"))
        if self.number:
            fields.append(("bodies", self.number))
        if error:
            fields.append(("error", error))
        return fields


def _digest(identity: Identity | None) -> str:
    return identity.digest if identity is not None else "-"


def _value(value: object) -> str:
    """Return a value as one word of a log line."""
    text = str(value)
    if text and text.isascii() and text.isprintable() and not set(text) & set(' "='):
        return text
    return json.dumps(text)
