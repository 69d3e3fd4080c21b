"""What one server has counted and measured, as Prometheus text and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from prometheus_client import Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from switchyard_core.switchyard import Switchyard

__all__ = ["Metrics", "gauges_of"]

#: Upper bounds of the buckets in seconds: own time is below a millisecond, models take minutes.
BUCKETS_S = (
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5,
    1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0,
)  # fmt: skip

#: Labels and help of each counter, by its name.
_COUNTERS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "requests": (
        ("route", "target", "phase", "status"),
        "Calls to models that ended, by HTTP status (499: the client disconnected).",
    ),
    "other_requests": (
        ("call", "client", "status"),
        "Other requests that ended, and the client that they were passed on with.",
    ),
    "errors": (("route", "code"), "Requests that failed, by code."),
    "tokens": (
        ("target", "kind"),
        "Tokens reported by providers; `input` includes those of a cache, `output` reasoning.",
    ),
    "handoffs": (
        ("route", "rule_set", "rule"),
        "Sessions handed off, by the rule that matched the edit.",
    ),
}


_by_route = partial(Histogram, labelnames=("route",), buckets=BUCKETS_S, registry=None)


@dataclass(slots=True)
class Metrics:
    """What one server has done so far."""

    #: Calls to models, by route, target, phase and status
    requests: Counter[tuple[str, str, str, str]] = field(default_factory=Counter)
    #: All other requests, by call, client and status
    other_requests: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    errors: Counter[tuple[str, str]] = field(default_factory=Counter)  # By route and code
    #: By target and kind (`input`, `cached`, `cache_write`, `output`, `reasoning`)
    tokens: Counter[tuple[str, str]] = field(default_factory=Counter)
    #: By route, rule set and rule
    handoffs: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    #: By route: from the end of the request's body to the end of the answer
    request_seconds: Histogram = field(
        default_factory=lambda: _by_route(
            "switchyard_request_seconds",
            "From the end of the request's body to the end of the answer.",
        )
    )
    #: By route: the server's own part of the time before an answer begins
    added_seconds: Histogram = field(
        default_factory=lambda: _by_route(
            "switchyard_added_seconds", "The server's own part of the time before an answer begins."
        )
    )
    active: int = 0  # Calls to models that are running
    #: Which of several processes this is, a label of every line; `""` for the only one
    worker: str = ""

    def observe(self, route: str, seconds: float, added: float | None) -> None:
        """Count how long a request took, and how much of it was ours if it got an answer."""
        self.request_seconds.labels(route).observe(seconds)
        if added is not None:
            self.added_seconds.labels(route).observe(added)

    def as_text(self, gauges: Iterable[Metric]) -> bytes:
        """Return the text format of Prometheus."""
        return generate_latest(_Families(self._families(gauges)))

    def as_json(self, gauges: Iterable[Metric]) -> Mapping[str, object]:
        """Return the same as plain data."""
        found: dict[str, object] = {"worker": self.worker} if self.worker else {}
        for name, (labels, _) in _COUNTERS.items():
            found[name] = [
                {**_plain(dict(zip(labels, values, strict=True))), "count": count}
                for values, count in sorted(getattr(self, name).items())
            ]
        found["request_seconds"] = _summary(self.request_seconds)
        found["added_seconds"] = _summary(self.added_seconds)
        found["gauges"] = [
            {"name": sample.name, **sample.labels, "value": sample.value}
            for metric in gauges
            for sample in metric.samples
        ]
        return found

    def _families(self, gauges: Iterable[Metric]) -> Iterator[Metric]:
        worker = {"worker": self.worker} if self.worker else {}
        for metric in (*self._counters(), *self._histograms(), *gauges):
            metric.samples = [
                sample._replace(labels=sample.labels | worker)
                for sample in metric.samples
                # The library's own gauges of when each began.
                if not sample.name.endswith("_created")
            ]
            yield metric

    def _counters(self) -> Iterator[Metric]:
        for name, (labels, text) in _COUNTERS.items():
            family = CounterMetricFamily(f"switchyard_{name}", text, labels=labels)
            for values, count in sorted(getattr(self, name).items()):
                family.add_metric(values, count)
            yield family

    def _histograms(self) -> Iterator[Metric]:
        for histogram in (self.request_seconds, self.added_seconds):
            yield from histogram.collect()


class _Families(Collector):
    """Metrics as the library wants them: from a collector."""

    def __init__(self, metrics: Iterable[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[Metric]:
        return self._metrics


def _plain(labels: dict[str, Any]) -> dict[str, Any]:
    return labels | {"status": int(labels["status"])} if "status" in labels else labels


def _summary(histogram: Histogram) -> Mapping[str, Mapping[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for sample in next(iter(histogram.collect())).samples:
        row = found.setdefault(sample.labels["route"], {})
        if sample.name.endswith("_count"):
            row["count"] = int(sample.value)
        elif sample.name.endswith("_sum"):
            row["sum"] = round(sample.value, 6)
    return dict(sorted(found.items()))


async def gauges_of(engine: Switchyard, active: int) -> list[Metric]:
    """Return what is measured only on request, sorted by name."""
    running = GaugeMetricFamily(
        "switchyard_active_requests", "Calls to models that are running.", active
    )
    connections = GaugeMetricFamily(
        "switchyard_upstream_connections",
        "Connections to providers: used by a call, or kept for the next one.",
        labels=("client", "state"),
    )
    for client, state, count in engine.upstreams.connections():
        connections.add_metric((client, state), count)
    by_route = tuple(
        GaugeMetricFamily(f"switchyard_{name}", text, labels=("route",))
        for name, text in (
            ("latches", "Sessions that are latched."),
            ("latch_capacity", "Sessions that can be latched."),
            ("requests_without_identity", "Requests so far that had no session id."),
            ("plans", "Stored plans, including those that ended or expired."),
            ("plan_capacity", "Plans that can be stored."),
        )
    )
    latches, latch_capacity, unidentified, plans, plan_capacity = by_route
    tools = CounterMetricFamily(
        "switchyard_tool_calls",
        "Calls of tools that models asked for, by result.",
        labels=("route", "tool", "result"),
    )
    for name, runtime in engine.runtimes.items():
        if runtime.store is not None:
            latches.add_metric((name,), await runtime.store.count())
            latch_capacity.add_metric((name,), runtime.store.capacity)
            unidentified.add_metric((name,), runtime.without_identity)
        if runtime.plans is not None:
            plans.add_metric((name,), await runtime.plans.count())
            plan_capacity.add_metric((name,), runtime.plans.capacity)
        for (tool, word), count in sorted(runtime.tool_calls.items()):
            tools.add_metric((name, tool, word), count)
    found = (running, connections, *by_route, tools)
    return sorted((each for each in found if each.samples), key=lambda metric: metric.name)
