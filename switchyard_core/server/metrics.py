"""Counters and histograms of a server, as Prometheus text and as JSON."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

__all__ = ["Gauge", "Histogram", "Metrics"]

#: Upper bounds of the buckets in seconds: own time is below a millisecond, models take minutes.
BUCKETS_S = (
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5,
    1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0,
)  # fmt: skip

_Labels = Sequence[tuple[str, str]]
_Counter = tuple[str, str, tuple[str, ...], list[tuple[tuple[str, ...], int]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauge:
    """A value that is read when somebody asks.

    Args:
        name: Name of the metric.
        help: One line.
        labels: Label names and values.
        value: The value now.
        kind: ``counter`` for a value that only grows.
    """

    name: str
    help: str
    labels: tuple[tuple[str, str], ...] = ()
    value: float
    kind: Literal["gauge", "counter"] = "gauge"


class Histogram:
    """Durations in seconds, counted in buckets."""

    __slots__ = ("counts", "total")

    def __init__(self) -> None:
        self.counts = [0] * (len(BUCKETS_S) + 1)
        self.total = 0.0

    def observe(self, seconds: float) -> None:
        """Count one duration."""
        self.counts[bisect_left(BUCKETS_S, seconds)] += 1
        self.total += seconds

    @property
    def count(self) -> int:
        """How many durations were counted."""
        return sum(self.counts)


@dataclass(slots=True)
class Metrics:
    """What one server has done so far.

    Args:
        requests: Calls to models, by route, target, phase and status.
        others: All other requests, by call, client and status.
        errors: By route and code.
        tokens: By target and kind (``input``, ``cached``, ``output``).
        handoffs: By route, rule set and rule.
        seconds: By route: from the end of the request's body to the end of the answer.
        added: By route: the server's own part of the time before an answer begins.
        active: Calls to models that are running.
        worker: Which of several processes this is, a label of every line; ``""`` for the only
            one.
    """

    requests: Counter[tuple[str, str, str, str]] = field(default_factory=Counter)
    others: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    errors: Counter[tuple[str, str]] = field(default_factory=Counter)
    tokens: Counter[tuple[str, str]] = field(default_factory=Counter)
    handoffs: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    seconds: dict[str, Histogram] = field(default_factory=dict)
    added: dict[str, Histogram] = field(default_factory=dict)
    active: int = 0
    worker: str = ""

    def observe(self, route: str, seconds: float, added: float | None) -> None:
        """Count how long a request took, and how much of it was ours if it got an answer."""
        self.seconds.setdefault(route, Histogram()).observe(seconds)
        if added is not None:
            self.added.setdefault(route, Histogram()).observe(added)

    def as_text(self, gauges: Iterable[Gauge]) -> str:
        """Return the text format of Prometheus."""
        worker = (("worker", self.worker),) if self.worker else ()
        lines: list[str] = []
        for name, text, names, rows in self._counters():
            lines += [f"# HELP {name} {text}", f"# TYPE {name} counter"]
            for values, count in rows:
                labels = (*zip(names, values, strict=True), *worker)
                lines.append(f"{name}{_labels(labels)} {count}")
        lines += _histogram(
            "switchyard_request_seconds",
            "From the end of the request's body to the end of the answer.",
            self.seconds,
            worker,
        )
        lines += _histogram(
            "switchyard_added_seconds",
            "The server's own part of the time before an answer begins.",
            self.added,
            worker,
        )
        known: set[str] = set()
        for gauge in gauges:
            if gauge.name not in known:
                known.add(gauge.name)
                lines += [f"# HELP {gauge.name} {gauge.help}", f"# TYPE {gauge.name} {gauge.kind}"]
            lines.append(f"{gauge.name}{_labels((*gauge.labels, *worker))} {gauge.value:g}")
        return "\n".join(lines) + "\n"

    def _counters(self) -> tuple[_Counter, ...]:
        """Return name, help, label names and values of each counter."""
        return (
            (
                "switchyard_requests_total",
                "Calls to models that ended, by HTTP status (499: the client went away).",
                ("route", "target", "phase", "status"),
                [*sorted(self.requests.items())],
            ),
            (
                "switchyard_other_requests_total",
                "Other requests that ended, and the client that they were passed on with.",
                ("call", "client", "status"),
                [*sorted(self.others.items())],
            ),
            (
                "switchyard_errors_total",
                "Requests that failed, by code.",
                ("route", "code"),
                [*sorted(self.errors.items())],
            ),
            (
                "switchyard_tokens_total",
                "Tokens that answers say they took; input holds the cached ones.",
                ("target", "kind"),
                [*sorted(self.tokens.items())],
            ),
            (
                "switchyard_handoffs_total",
                "Sessions handed off, by the rule that saw the edit.",
                ("route", "rule_set", "rule"),
                [*sorted(self.handoffs.items())],
            ),
        )

    def as_json(self, gauges: Iterable[Gauge]) -> Mapping[str, object]:
        """Return the same as plain data."""
        found = {
            "requests": [
                {"route": r, "target": t, "phase": p, "status": int(s), "count": count}
                for (r, t, p, s), count in sorted(self.requests.items())
            ],
            "other_requests": [
                {"call": name, "client": client, "status": int(s), "count": count}
                for (name, client, s), count in sorted(self.others.items())
            ],
            "errors": [
                {"route": route, "code": code, "count": count}
                for (route, code), count in sorted(self.errors.items())
            ],
            "tokens": [
                {"target": target, "kind": kind, "count": count}
                for (target, kind), count in sorted(self.tokens.items())
            ],
            "handoffs": [
                {"route": r, "rule_set": s, "rule": n, "count": count}
                for (r, s, n), count in sorted(self.handoffs.items())
            ],
            "request_seconds": _summary(self.seconds),
            "added_seconds": _summary(self.added),
            "gauges": [
                {"name": gauge.name, **dict(gauge.labels), "value": gauge.value} for gauge in gauges
            ],
        }
        return {"worker": self.worker, **found} if self.worker else found


def _histogram(name: str, text: str, rows: Mapping[str, Histogram], worker: _Labels) -> list[str]:
    lines = [f"# HELP {name} {text}", f"# TYPE {name} histogram"]
    for route, histogram in sorted(rows.items()):
        below = 0
        bounds = (*(f"{bound:g}" for bound in BUCKETS_S), "+Inf")
        for bound, count in zip(bounds, histogram.counts, strict=True):
            below += count
            labels = _labels((("route", route), ("le", bound), *worker))
            lines.append(f"{name}_bucket{labels} {below}")
        labels = _labels((("route", route), *worker))
        lines += [f"{name}_sum{labels} {histogram.total:.6f}", f"{name}_count{labels} {below}"]
    return lines


def _summary(rows: Mapping[str, Histogram]) -> Mapping[str, object]:
    return {
        route: {"count": histogram.count, "sum": round(histogram.total, 6)}
        for route, histogram in sorted(rows.items())
    }


def _labels(labels: _Labels) -> str:
    if not labels:
        return ""
    pairs = [f'{name}="{_escaped(value)}"' for name, value in labels]
    return "{" + ",".join(pairs) + "}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
