"""The fixtures that pytest gives when the kit is installed."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points

import pytest

import switchyard_plan_execute
from switchyard_core.testing import FakeUpstream, conversation
from tests.support.policies import plan_execute as policy

pytest_plugins = ["pytester"]


def test_plugin_is_an_entry_point_of_pytest():
    found = {point.name: point.value for point in entry_points(group="pytest11")}

    assert found["switchyard"] == "switchyard_pytest"


def test_plugin_loads_nothing_of_switchyard_until_a_fixture_is_asked_for():
    code = (
        "import sys, switchyard_pytest; print([m for m in sys.modules if 'switchyard_core' in m])"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"


def test_fake_upstream_is_a_new_provider(fake_upstream):
    assert isinstance(fake_upstream, FakeUpstream)
    assert fake_upstream.requests == []


async def test_harness_fixture_makes_harnesses(switchyard_harness, fake_upstream):
    harness = switchyard_harness(
        policy("openai_chat"), plugins=[switchyard_plan_execute], upstream=fake_upstream
    )

    await harness.run(conversation("openai_chat").user("hi").request())

    assert len(fake_upstream.requests) == 1


TEST = """
import pytest
import switchyard_plan_execute
from tests.support.policies import plan_execute as policy

made = []

def test_one(switchyard_harness):
    made.append(switchyard_harness(policy("openai_chat"), plugins=[switchyard_plan_execute]))
    made[0].engine.upstreams.of(made[0].policy.clients["provider"])

def test_two():
    assert made[0].upstream.closed
"""


def test_harness_fixture_closes_what_it_made(pytester):
    pytester.makepyfile(TEST)

    pytester.runpytest_inprocess("-p", "no:randomly").assert_outcomes(passed=2)


def test_body_snapshot_compares_token_by_token(pytester):
    pytester.makepyfile(
        "def test_body(body_snapshot):\n    assert b'{\"a\":1.0}' == body_snapshot\n"
    )
    options = ("-p", "no:randomly", "-p", "no:cacheprovider")
    pytester.runpytest_inprocess("--snapshot-update", *options).assert_outcomes(passed=1)
    pytester.makepyfile("def test_body(body_snapshot):\n    assert b'{\"a\":1}' == body_snapshot\n")

    pytester.runpytest_inprocess(*options).assert_outcomes(failed=1)


@pytest.mark.parametrize("fixture", ["fake_upstream", "switchyard_harness"])
def test_fixture_needs_no_syrupy(pytester, fixture):
    pytester.makepyfile(f"def test_it({fixture}):\n    assert {fixture}\n")

    pytester.runpytest_inprocess("-p", "no:syrupy", "-p", "no:randomly").assert_outcomes(passed=1)
