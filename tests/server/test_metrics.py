from __future__ import annotations

from prometheus_client.core import GaugeMetricFamily

from switchyard_core.server.metrics import BUCKETS_S, Metrics


def gauge(**values):
    """Return a gauge by route, or without labels for the value `all`."""
    if "all" in values:
        return GaugeMetricFamily("g", "x", values["all"])
    found = GaugeMetricFamily("g", "x", labels=["route"])
    for name, value in values.items():
        found.add_metric([name], value)
    return found


def lines_of(metrics, *gauges):
    return metrics.as_text(gauges).decode().splitlines()


def test_histogram_counts_a_bound_into_its_own_bucket_and_the_rest_above():
    metrics = Metrics()
    for seconds in (0.0005, 0.0006, 1e9):
        metrics.observe("r", seconds, None)
    name = "switchyard_request_seconds_bucket"
    counts = [line.split()[-1] for line in lines_of(metrics) if line.startswith(name)]
    assert counts == ["1.0", *["2.0"] * (len(BUCKETS_S) - 1), "3.0"]


def test_text_has_help_and_type_once_per_metric_and_cumulative_buckets():
    metrics = Metrics()
    metrics.observe("r", 0.3, 0.0004)
    metrics.observe("r", 700.0, None)
    metrics.requests["r", "t", "p", "200"] += 2
    lines = lines_of(metrics, gauge(a=1, b=1))
    assert lines.count("# TYPE g gauge") == 1
    assert lines[-2:] == ['g{route="a"} 1.0', 'g{route="b"} 1.0']
    assert 'switchyard_request_seconds_bucket{le="0.25",route="r"} 0.0' in lines
    assert 'switchyard_request_seconds_bucket{le="0.5",route="r"} 1.0' in lines
    assert 'switchyard_request_seconds_bucket{le="300.0",route="r"} 1.0' in lines
    assert 'switchyard_request_seconds_bucket{le="+Inf",route="r"} 2.0' in lines
    assert 'switchyard_request_seconds_sum{route="r"} 700.3' in lines
    assert 'switchyard_added_seconds_count{route="r"} 1.0' in lines
    assert not any("_created" in line for line in lines)
    assert len(set(BUCKETS_S)) == len(BUCKETS_S)


def test_text_escapes_label_values():
    metrics = Metrics()
    metrics.errors["r", 'a"b\\c\nd'] += 1
    assert 'switchyard_errors_total{code="a\\"b\\\\c\\nd",route="r"} 1.0' in lines_of(metrics)


def test_json_says_the_same_as_the_text():
    metrics = Metrics()
    metrics.requests["r", "t", "p", "200"] += 2
    metrics.other_requests["fallback", "provider", "404"] += 1
    metrics.errors["r", "latch_capacity"] += 4
    metrics.tokens["t", "input"] += 5
    metrics.handoffs["r", "set", "rule"] += 1
    metrics.observe("r", 0.25, 0.001)
    found = metrics.as_json([gauge(all=3)])
    assert found == {
        "requests": [{"route": "r", "target": "t", "phase": "p", "status": 200, "count": 2}],
        "other_requests": [{"call": "fallback", "client": "provider", "status": 404, "count": 1}],
        "errors": [{"route": "r", "code": "latch_capacity", "count": 4}],
        "tokens": [{"target": "t", "kind": "input", "count": 5}],
        "handoffs": [{"route": "r", "rule_set": "set", "rule": "rule", "count": 1}],
        "request_seconds": {"r": {"count": 1, "sum": 0.25}},
        "added_seconds": {"r": {"count": 1, "sum": 0.001}},
        "gauges": [{"name": "g", "value": 3}],
    }


def test_every_line_of_one_of_several_workers_names_it():
    metrics = Metrics(worker="77")
    metrics.requests["r", "t", "p", "200"] += 1
    metrics.observe("r", 0.3, 0.0004)
    lines = lines_of(metrics, gauge(all=1))
    values = [line for line in lines if not line.startswith("#")]
    assert values
    assert all('worker="77"' in line for line in values)
    assert metrics.as_json([])["worker"] == "77"
