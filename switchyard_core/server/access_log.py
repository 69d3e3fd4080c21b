"""What one request did: its line in the log, its bodies in a folder, its part of the metrics."""

from __future__ import annotations

import json
import logging
import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from switchyard_core.answering import ModelUsage
from switchyard_core.decision import Decision, Latch, Outgoing
from switchyard_core.declarations import WireFormat
from switchyard_core.engine.response import Response, ends_task, succeeded
from switchyard_core.engine.routes import RequestFacts
from switchyard_core.errors import RequestError, UpstreamError
from switchyard_core.identity import Identity
from switchyard_core.models import suggest_rule
from switchyard_core.server.exchange import ClientGoneError, Exchange
from switchyard_core.server.metrics import Metrics
from switchyard_core.server.problems import problem_of

__all__ = ["GONE_STATUS", "LOG", "REFUSED", "BodyLog", "LogEntry"]

_NAME = re.compile(r"(\d+)-(?:in|out).*\.json")


class BodyLog:
    """Writes each request's body as it came and as it was sent, readable by the owner only.

    The files are ``<n>-in.json`` and ``<n>-out.json``, of a retry ``<n>-out-2.json``; numbers
    continue after those of an earlier run.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = [match for path in folder.iterdir() if (match := _NAME.fullmatch(path.name))]
        self._folder = folder
        self._number = max((int(match[1]) for match in found), default=0)

    def incoming(self, body: bytes) -> int:
        """Write a caller's body and return the number of its request."""
        self._number += 1
        self._write(f"{self._number}-in.json", body)
        return self._number

    def outgoing(self, number: int, tries: int, body: bytes) -> None:
        """Write an outgoing body; ``tries`` counts from 1."""
        self._write(_out(number, tries), body)

    def unsent(self, number: int, tries: int) -> None:
        """Take an outgoing body back: the call failed before any of it was sent."""
        (self._folder / _out(number, tries)).unlink(missing_ok=True)

    def _write(self, name: str, body: bytes) -> None:
        # Created with its mode, so that nobody else can open it in between.
        descriptor = os.open(self._folder / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(body)


def _out(number: int, tries: int) -> str:
    return f"{number}-out.json" if tries == 1 else f"{number}-out-{tries}.json"


LOG = logging.getLogger("switchyard")

#: What the log and the metrics say when the client disconnected; no caller ever sees it.
GONE_STATUS = 499

#: Kinds of tokens that are counted, and those of a line of the log.
_KINDS = ("input", "cached", "cache_write", "output", "reasoning")
_LOGGED = ("input", "cached", "output")
# A host answers so for an application that was broken off before it could.
_BROKEN_OFF = 500
#: What a provider answers to a parameter that it does not take.
REFUSED = 400
_MODEL_CHARS = 80
_METHOD_CHARS = 16


@dataclass(slots=True, kw_only=True)
class LogEntry:
    """Collects what is known of one request while it runs."""

    exchange: Exchange
    wire_format: WireFormat  # Its wire format, or the one whose errors its sender will understand
    call: str  # Which call it is: an endpoint, the name of a page, `fallback` or `unknown`
    routed: bool = False  # Whether it is a call to a model
    quiet: bool = False  # Whether it is a probe, logged at level DEBUG unless it fails
    clock: Callable[[], float] = time.monotonic  # A monotonic clock in seconds
    bodies: BodyLog | None = None  # Where bodies are kept, if they are
    #: Number of its files, 0 without bodies.
    number: int = 0
    #: When it came; for a call to a model, when its body was there.
    began: float = field(init=False)
    read: bool = False
    #: Client that it was passed on with.
    client: str = ""
    #: The decision that was carried out last.
    decision: Decision | None = None
    #: What could be read of a request that was refused before there was a decision.
    facts: RequestFacts = field(default_factory=RequestFacts)
    sent_at: float = 0.0
    #: Seconds of our own before the answer began.
    own: float | None = None
    #: Outgoing requests so far.
    tries: int = 0
    #: The answer, as far as it came.
    response: Response | None = None
    #: Code of the failure.
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

    def sending(self, decision: Decision, outgoing: Outgoing) -> None:
        """Note an outgoing request."""
        self.decision = decision
        self.tries += 1
        if self.tries == 1:
            self.sent_at = self.clock()
        if self.bodies is not None:
            self.bodies.outgoing(self.number, self.tries, outgoing.body)

    def answered(self, response: Response) -> None:
        """Note that an answer begins."""
        self.response, self.decision = response, response.decision
        # A router that writes the answer itself has no request to send on.
        self.own = self.sent_at - self.began if self.tries else None

    def failed(self, error: BaseException) -> None:
        """Note why the answer is missing or incomplete."""
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
        if not error and (status >= 400 or (self.routed and not succeeded(status))):
            error = f"provider_{status}"
        decision = self.decision
        if error:
            metrics.errors[self._route, error] += 1
        if not self.routed:
            metrics.other_requests[self.call, self.client, str(status)] += 1
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
        self._suggest(status)

    def _suggest(self, status: int) -> None:
        """Tell the rule that a provider's refusal of a parameter asks for; nothing is learned."""
        trace = self.response.trace if self.response is not None else None
        if status != REFUSED or self.call != "create" or trace is None:
            return
        rule = suggest_rule(trace.whole, trace.wire_format)
        if rule is not None and self.decision is not None:
            target = self.decision.target
            LOG.info(
                "request=%s the provider refuses a parameter; for `[targets.%s]`: fit = [%s]",
                self.exchange.request_id,
                target,
                rule,
            )

    @property
    def _route(self) -> str:
        return self.decision.route if self.decision is not None else self.facts.route

    def _count_tokens(self, metrics: Metrics) -> list[tuple[str, object]]:
        by_target = self.response.usage_by_target if self.response is not None else {}
        if not by_target:
            return []
        for target, used in by_target.items():
            for kind in _KINDS:
                metrics.tokens[target, kind] += getattr(used, f"{kind}_tokens")
        total = sum(by_target.values(), ModelUsage())
        return [(f"{kind}_tokens", getattr(total, f"{kind}_tokens")) for kind in _LOGGED]

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
        facts = self.facts
        fields = [("model", facts.model[:_MODEL_CHARS])] if facts.model else []
        if facts.route:
            fields += [("route", facts.route), ("identity", _digest(facts.identity))]
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
