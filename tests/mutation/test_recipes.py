"""The recipes of docs/mutation_rules.md do what their tables say, in every wire format."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from switchyard_core import Switchyard
from switchyard_core.declarations import WIRE_FORMATS, WireFormat
from switchyard_core.testing import conversation

PAGE = (Path(__file__).parents[2] / "docs" / "mutation_rules.md").read_text("utf-8")


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of a recipe's table."""

    recipe: str
    policy: str
    tool: str
    arguments: Any
    label: str
    phase: str


def _lines() -> list[Line]:
    section = PAGE.split("## Recipes\n", 1)[1].split("\n## ", 1)[0]
    lines: list[Line] = []
    head = ""
    for part in section.split("\n### ")[1:]:
        title = part.splitlines()[0]
        (policy,) = re.findall(r"```toml\n(.*?)```", part, re.DOTALL)
        if policy.startswith("schema_version"):
            head = policy[: policy.index("[mutation_rules")]
        else:
            policy = head + policy
        rows = re.findall(r"^\| `(.+?)` \| `(.+?)` \| `(.+?)` \| (\w+) \|$", part, re.MULTILINE)
        assert rows, title
        lines += [
            Line(
                recipe=title,
                policy=policy,
                tool=tool,
                arguments=json.loads(arguments),
                label=label,
                phase=phase,
            )
            for tool, arguments, label, phase in rows
        ]
    return lines


LINES = _lines()


@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
def test_recipe_labels_and_routes_as_its_table_says(wire_format: WireFormat) -> None:
    wrong = []
    for line in LINES:
        text = line.policy.replace(
            'format = "openai_chat"\nbase', f'format = "{wire_format}"\nbase'
        )
        yard = Switchyard.from_policy_text(text, name="recipe.toml")
        told = conversation(wire_format).user("go on").calls(line.tool, line.arguments)
        request = told.request("plan-execute", session="s")
        decision = asyncio.run(yard.decide(request))
        got = [call["label"] for call in decision.trace["calls"]], decision.phase
        if got != ([line.label], line.phase):
            wrong.append((line, got))

    assert wrong == []


def test_every_recipe_is_a_whole_policy_with_the_first_ones_head() -> None:
    titles = [line.recipe for line in LINES]

    assert list(dict.fromkeys(titles)) == [
        "Extend a pack",
        "Override one rule of a pack",
        "Switch shell reading off",
        "Treat everything unknown as an edit",
        "Path classes",
        "Hand off on more than edits",
        "Hand off on unknown calls too",
        "JSONPath on the raw body",
    ]
