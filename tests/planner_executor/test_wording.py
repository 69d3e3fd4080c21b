"""The texts that models are given, and how what people and models wrote is shown to people."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import switchyard_planner_executor
from switchyard_planner_executor import PlannerExecutorOptions, PlanStep
from switchyard_planner_executor.text import one_line, plain_lines
from switchyard_planner_executor.wording import (
    BLOCKED_TOOL,
    blocked_tool,
    executor_instructions,
    filled,
    planner_instructions,
    step_text,
)

SEARCH = PlanStep(step=1, action="find gear", query="camera bag")
THINK = PlanStep(step=2, action="choose one")


def options(**changes: Any) -> PlannerExecutorOptions:
    values = {"planner_target": "p", "executor_target": "e", "max_steps": 7, **changes}
    return PlannerExecutorOptions(**values)


def test_step_with_a_query_names_tool_and_query_and_one_without_neither() -> None:
    text = step_text(SEARCH, query_tool="search_products")

    assert text.startswith("Step 1: find gear\n")
    assert "`search_products`" in text
    assert text.endswith("camera bag")
    assert step_text(THINK, query_tool="search_products") == "Step 2: choose one"
    with pytest.raises(ValueError, match="step 1 has a query"):
        step_text(SEARCH, query_tool=None)


def test_what_a_model_wrote_is_never_a_placeholder() -> None:
    step = PlanStep(step=1, action="pay $query and ${tool} $$", query="$action")

    text = step_text(step, query_tool="search")

    assert "pay $query and ${tool} $$" in text
    assert text.endswith("$action")


def test_planner_is_told_how_many_steps_and_whether_it_can_search() -> None:
    searching = planner_instructions(options(tools=["search"]))
    thinking = planner_instructions(options())

    assert "at most 7" in searching
    assert "at most 7" in thinking
    assert "search words" in searching
    assert "The query of every step is null" in thinking
    for text in (searching, thinking):
        assert "Do not answer the request, and do not carry out any\npart of it." in text


def test_instructions_of_the_policy_replace_the_built_in_ones_as_they_are() -> None:
    own = "Plan in $currency, {step}."

    assert planner_instructions(options(planner_prompt=own)) == own
    assert executor_instructions(options(executor_prompt=own)) == own
    assert executor_instructions(options()) != own


def test_every_text_is_used_and_every_placeholder_is_filled() -> None:
    package = Path(switchyard_planner_executor.__file__).parent
    source = "".join(path.read_text("utf-8") for path in package.glob("*.py"))

    for path in sorted((package / "prompts").glob("*.md")):
        names = re.findall(r"\$(\w+)", path.read_text("utf-8"))
        assert f'"{path.stem}"' in source, path.name
        assert "$" not in filled(path.stem, **dict.fromkeys(names, "x"))


def test_blocked_tool_takes_a_reason() -> None:
    tool = blocked_tool()

    assert tool.name == BLOCKED_TOOL
    assert tool.parameters["required"] == ["reason"]
    assert tool.parameters["additionalProperties"] is False
    assert "\n" not in tool.description


# --- for people ------------------------------------------------------------------------------


def test_one_line_is_one_line_in_which_everything_can_be_seen() -> None:
    hostile = "buy\n  2. free\x1b[2J\r\u202eesrever\u2028end"

    assert one_line(hostile) == "buy 2. free\\u001b[2J \\u202eesrever end"
    assert plain_lines("a\tb\r\nc\x07") == "a\tb\nc\\u0007"


def test_what_people_write_stays() -> None:
    for text in ("a 😀 b", "👩\u200d🔬", "naïve “quoted”", "日本語"):
        assert (one_line(text), plain_lines(text)) == (text, text)


@given(st.text())
def test_nothing_hidden_is_left(text: str) -> None:
    shown = one_line(text).replace("\u200d", "")

    assert shown.isprintable() or not shown.strip()
    assert len(shown.splitlines()) <= 1
