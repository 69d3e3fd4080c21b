"""The four groups of tests, and that each numbered behaviour has a test of its name."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from switchyard_core import Request, Switchyard
from switchyard_core.replay import Replay
from switchyard_core.testing import registry_of
from switchyard_demo_catalog import ProductQuery, search_products
from switchyard_planner_executor import Plan, PlanStep
from tests.planner_executor.rows_world import ASKED, PLUGINS, Shop

TESTS = Path(__file__).parents[1]
ROOT = TESTS.parent
ROWS = range(1, 37)
#: Written, and run only by whoever has a key.
LIVE = {35}

#: A module whose tests all need a real model.
_MARKED = re.compile(r"^pytestmark\b.*\bpytest\.mark\.integration\b", re.MULTILINE)
_ROW = re.compile(r"test_r(\d\d)_\w+")


def named_rows(live: bool) -> dict[int, list[str]]:
    """Return the tests that are named after a row, by its number.

    Args:
        live: Those that need a real model, or all others.
    """
    found: dict[int, list[str]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        source = path.read_text("utf-8")
        if live != bool(_MARKED.search(source)):
            continue
        tree = ast.parse(source)
        for node in ast.walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                row = _ROW.fullmatch(node.name)
                if row is not None:
                    found.setdefault(int(row[1]), []).append(f"{path.name}::{node.name}")
    return found


def test_every_row_has_a_test_of_its_name():
    run, live = named_rows(live=False), named_rows(live=True)

    assert sorted(run) == [row for row in ROWS if row not in LIVE]
    assert set(live) == LIVE


@pytest.mark.parametrize("row", sorted(LIVE))
def test_rows_with_a_real_model_have_as_many_tests_as_the_list_says(row):
    assert len(named_rows(live=True)[row]) == 2


def test_r34_tool_and_plan_work_without_a_model():
    plan = Plan(goal="a gift", steps=(PlanStep(step=1, action="Look", query="tripod"),))

    assert "Pocket Tripod" in search_products(ProductQuery(query=plan.steps[0].query or ""))


async def test_r34_wiring_gives_tools_to_the_executor_alone():
    shop = Shop()

    await shop.ask()

    assert "tools" not in shop.planner_bodies[0]
    assert all("search_products" in str(body["tools"]) for body in shop.executor_bodies)


async def test_r34_shipped_policy_runs_on_its_recordings():
    replay = Replay(ROOT / "policies/recordings/planner_executor", "replay")
    yard = Switchyard.from_policy(
        ROOT / "policies/planner_executor.toml",
        registry=registry_of(PLUGINS),
        environ={},
        replay=replay,
    )
    body = {"model": "switchyard/shop", "messages": [{"role": "user", "content": ASKED}]}

    async with await yard.handle(Request(wire_format="openai_chat", body=body)) as response:
        answer = await response.read()

    assert b"$166.90" in answer
    assert response.decision.phase == "completed"
    assert replay.unused() == ()


def test_r34_tests_with_a_real_model_are_left_out_unless_asked_for(pytestconfig):
    assert "not integration" in pytestconfig.getini("addopts")[-1]
    assert any(line.startswith("integration:") for line in pytestconfig.getini("markers"))
