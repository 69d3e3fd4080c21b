from __future__ import annotations

from pathlib import Path

import pytest

import switchyard_planner_executor
from switchyard_planner_executor.plan import Plan, PlanStep
from switchyard_planner_executor.wording import (
    BLOCKED_TOOL,
    blocked_tool,
    executor_instructions,
    planner_instructions,
    replan_text,
    retry_text,
    revise_text,
    step_text,
)

FOLDER = Path(switchyard_planner_executor.__file__).parent / "prompts"
SEARCH = PlanStep(step=1, action="find gear", query="camera bag")
THINK = PlanStep(step=2, action="choose one")
PLAN = Plan(goal="GOAL", steps=[SEARCH, THINK])


def test_r11_step_with_a_query_names_tool_and_query() -> None:
    text = step_text(SEARCH, query_tool="search_products")

    assert text.startswith("Step 1: find gear\n")
    assert "`search_products`" in text
    assert text.endswith("camera bag")


def test_r11_step_without_a_query_names_neither() -> None:
    assert step_text(THINK, query_tool="search_products") == "Step 2: choose one"


def test_step_with_a_query_and_no_tool_to_use_is_an_error() -> None:
    with pytest.raises(ValueError, match="step 1 has a query"):
        step_text(SEARCH, query_tool=None)


def test_what_a_model_wrote_is_never_a_placeholder() -> None:
    step = PlanStep(step=1, action="pay $query and ${tool} $$", query="$action")

    text = step_text(step, query_tool="search")

    assert "pay $query and ${tool} $$" in text
    assert text.endswith("$action")


def test_planner_is_told_how_many_steps_and_whether_it_can_search() -> None:
    searching = planner_instructions(None, max_steps=7, searchable=True)
    thinking = planner_instructions(None, max_steps=7, searchable=False)

    assert "at most 7" in searching
    assert "at most 7" in thinking
    assert "search words" in searching
    assert "The query of every step is null" in thinking


def test_r09_instructions_of_the_policy_replace_the_built_in_ones_as_they_are() -> None:
    own = "Plan in $currency, {step}."

    assert planner_instructions(own, max_steps=7, searchable=True) == own
    assert executor_instructions(own) == own
    assert executor_instructions(None) != own


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.md")), ids=lambda path: path.stem)
def test_every_text_is_used_and_has_no_placeholder_left(path: Path) -> None:
    texts = [
        planner_instructions(None, max_steps=7, searchable=True),
        planner_instructions(None, max_steps=7, searchable=False),
        executor_instructions(None),
        step_text(SEARCH, query_tool="search"),
        step_text(THINK, query_tool=None),
        replan_text(PLAN, done=[(SEARCH, "r")], failed=THINK, why="w", first=3, max_steps=7),
        revise_text(PLAN, request="r", feedback="f"),
        retry_text("r", detail="d"),
        blocked_tool().description,
        blocked_tool().parameters["properties"]["reason"]["description"],
    ]
    begins = path.read_text(encoding="utf-8").split("$")[0].split("\n")[0].strip()

    assert any(text.startswith(begins) for text in texts)
    assert [text for text in texts if "$" in text] == []


def test_planner_of_the_rest_gets_goal_results_failure_and_the_number_to_go_on_with() -> None:
    text = replan_text(
        PLAN, done=[(SEARCH, "three bags")], failed=THINK, why="no tool", first=2, max_steps=5
    )

    for part in ("GOAL", "1. find gear", "three bags", "2. choose one", "no tool", "number 2", "3"):
        assert part in text
    assert "none" in replan_text(PLAN, done=[], failed=SEARCH, why="w", first=1, max_steps=5)


def test_planner_that_revises_gets_request_plan_and_feedback() -> None:
    text = revise_text(PLAN, request="REQUEST", feedback="FEEDBACK")

    assert "REQUEST" in text
    assert '"action": "find gear"' in text
    assert "FEEDBACK" in text


def test_planner_is_told_what_was_wrong_with_its_plan() -> None:
    text = retry_text("REQUEST", detail="`steps[0].action` is missing", first=4)

    assert text.startswith("REQUEST")
    assert "`steps[0].action` is missing" in text
    assert "from 4" in text


def test_blocked_tool_takes_a_reason() -> None:
    tool = blocked_tool()

    assert tool.name == BLOCKED_TOOL
    assert tool.parameters["required"] == ["reason"]
    assert tool.parameters["additionalProperties"] is False
    assert "\n" not in tool.description
