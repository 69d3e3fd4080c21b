"""The estimate of the recorded run that is shipped, beside what the run took."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from switchyard_core.cli import cli

ROOT = Path(__file__).parents[2]
TASK = "help me put together a birthday gift for someone who likes photography under $200"


@pytest.fixture(scope="module")
def answer():
    policy = ROOT / "policies" / "planner_executor.toml"
    recordings = ROOT / "policies" / "recordings" / "planner_executor"
    run = CliRunner().invoke(
        cli, ["plan", str(policy), TASK, "--replay", str(recordings), "--output", "json"]
    )
    assert run.exit_code == 0, run.output
    return json.loads(run.stdout)


def test_calls_are_exact(answer):
    estimate = answer["estimate"]

    assert estimate["calls"]["expected"] == estimate["actual"]["calls"] == 5


@pytest.mark.parametrize("kind", ["input_tokens", "output_tokens"])
def test_tokens_are_within_a_factor_of_one_and_a_half(answer, kind):
    expected, actual = answer["estimate"][kind]["expected"], answer["estimate"]["actual"][kind]

    assert actual / 1.5 <= expected <= actual * 1.5
    assert answer["usage"]["executor"][kind] == actual


def test_price_is_dated(answer):
    price, cost = answer["estimate"]["price"], answer["estimate"]["cost_usd"]

    assert price["as_of"] == "2026-11-01"
    assert 0 < cost["low"] <= cost["expected"] <= cost["high"]
