"""Snapshots compare tokens, not values."""

import pytest

from switchyard_core import (
    Decision,
    Options,
    Reason,
    Rewrite,
    RewriteType,
    RouteType,
    TargetName,
    hookimpl,
)
from switchyard_core.jsonio.tree import encode
from switchyard_core.testing import Harness, RequestBodySnapshot, conversation

pytest_plugins = ["pytester"]

TEST = """
import pytest
from switchyard_core.testing import RequestBodySnapshot

@pytest.mark.parametrize("case", ["Anthropic/First Edit"])
def test_body(snapshot, case):
    assert {data!r} == snapshot.use_extension(RequestBodySnapshot)
"""


@pytest.fixture
def run(pytester, monkeypatch):
    # In a worker of xdist syrupy leaves the report to the process that started it.
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    pytester.makeini("[pytest]\naddopts = -p no:randomly -p no:cacheprovider")

    def once(data, *options):
        pytester.makepyfile(test_case=TEST.replace("{data!r}", repr(data)))
        return pytester.runpytest_inprocess("-q", *options)

    return once


def test_snapshot_is_one_readable_file_with_a_plain_name(run, pytester):
    run(b'{"b":1.10,"a":null}', "--snapshot-update").assert_outcomes(passed=1)

    (file,) = (pytester.path / "__snapshots__" / "test_case").iterdir()
    assert file.name == "test_body-anthropic-first-edit.json"
    assert file.read_text() == '{\n  "b": 1.10,\n  "a": null\n}\n'


@pytest.mark.parametrize(
    "changed",
    [
        b'{"a":null,"b":1.10}',
        b'{"b":1.1,"a":null}',
        b'{"b":1.10}',
        b'{"b":1.10,"a":null,"a":null}',
        {"b": 1.1, "a": None},
    ],
    ids=["key_order", "number", "missing_null", "duplicate_key", "tree"],
)
def test_snapshot_fails_when_a_token_differs(run, changed):
    run(b'{"b":1.10,"a":null}', "--snapshot-update")

    run(changed).assert_outcomes(failed=1)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b'{"a":1,"b":2}', b'{"b":2,"a":1}'),
        (b'{"a":{"x":1,"y":2}}', b'{"a":{"y":2,"x":1}}'),
        (b'{"a":1}', b'{"a":1.0}'),
        (b'{"a":[1.0]}', b'{"a":[1]}'),
        (b'{"a":null,"b":2}', b'{"b":2}'),
        (b'{"a":""}', b'{"a":null}'),
    ],
    ids=["order", "nested_order", "to_float", "to_integer", "lost_null", "empty_to_null"],
)
def test_snapshot_fails_on_what_other_extensions_overlook(run, before, after):
    run(before, "--snapshot-update")

    run(after).assert_outcomes(failed=1)


def test_snapshot_passes_when_the_body_is_equal(run):
    run(b'{"b":1.10,"a":null}', "--snapshot-update")

    run(b'{"b":1.10,"a":null}').assert_outcomes(passed=1)


def test_snapshot_that_no_test_uses_fails_the_run(run, pytester):
    run(b'{"a":1}', "--snapshot-update")
    left = pytester.path / "__snapshots__" / "test_case" / "test_body-left-over.json"
    left.write_text("{}\n")

    result = run(b'{"a":1}')

    assert result.ret != 0
    result.stdout.fnmatch_lines(["*1 snapshot unused*"])


def test_snapshot_that_does_not_exist_fails_and_is_not_written(run, pytester):
    run(b'{"a":1}').assert_outcomes(failed=1)

    assert not (pytester.path / "__snapshots__").exists()


def note(body, parameters, _scope):
    body.set("metadata", encode({"stamp": parameters.stamp}))
    return ["noted"]


class Stamp(Options):
    stamp: str


class Target(Options):
    target: TargetName


class Stamping:
    """Writes into each body what varies from call to call."""

    def __init__(self, options):
        self.target = options.target

    async def route(self, _request, context):
        stamp = f"{context.clock():.0f}-{context.random.random():.6f}"
        rewrite = Rewrite(name="note", parameters={"stamp": stamp})
        return Decision(target=self.target, reason=Reason(code="only"), rewrites=(rewrite,))


class StampingPlugin:
    @hookimpl
    def switchyard_route_types(self):
        return [RouteType(name="stamping", options=Target, router=Stamping, summary="x")]

    @hookimpl
    def switchyard_rewrites(self):
        return [RewriteType(name="note", order=1, function=note, summary="x", parameters=Stamp)]


POLICY = """
schema_version = 1
[llm_clients.p]
format = "openai_chat"
base_url = "https://provider.test"
[targets.a]
id = "a"
llm_client = "p"
[routes.r]
id = "r"
type = "stamping"
target = "a"
"""


async def stamped(seed, now):
    harness = Harness(POLICY, plugins=[StampingPlugin()], seed=seed, now=now)
    return (await harness.run(conversation("openai_chat").user("hi").request("r"))).outgoing.body


async def test_volatile_value_is_injected_and_not_masked(body_snapshot):
    body = await stamped(seed=1, now=5.0)

    assert body == body_snapshot
    assert b'"stamp":"5-0.134364"' in body
    assert await stamped(seed=1, now=5.0) == body
    assert body not in (await stamped(seed=2, now=5.0), await stamped(seed=1, now=6.0))


def test_snapshot_passes_when_only_spacing_differs(run):
    run(b'{"b":1.10,"a":null}', "--snapshot-update")

    run('{ "b" : 1.10,\n"a":null }').assert_outcomes(passed=1)


def test_snapshot_with_a_filter_is_an_error():
    with pytest.raises(ValueError, match="compared whole"):
        RequestBodySnapshot().serialize({}, exclude=lambda **_: False)
