"""The recipes of docs/mutation_rules.md do what their tables say, in every wire format."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from switchyard_core import Request, Switchyard
from switchyard_core.declarations import WIRE_FORMATS, WireFormat

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


def _body(wire_format: WireFormat, line: Line) -> dict[str, Any]:
    text = json.dumps(line.arguments)
    user: dict[str, Any] = {"role": "user", "content": "go on"}
    tool: dict[str, Any] = {"type": "function", "name": line.tool, "parameters": {}}
    if wire_format == "openai_responses":
        call = {"type": "function_call", "call_id": "c", "name": line.tool, "arguments": text}
        result = {"type": "function_call_output", "call_id": "c", "output": "ok"}
        return {"input": [user, call, result], "tools": [tool]}
    if wire_format == "openai_chat":
        function = {"name": line.tool, "arguments": text}
        called = {"id": "c", "type": "function", "function": function}
        result = {"role": "tool", "tool_call_id": "c", "content": "ok"}
        calls = {"role": "assistant", "content": None, "tool_calls": [called]}
        return {"messages": [user, calls, result], "tools": [{**tool, "function": tool}]}
    use = {"type": "tool_use", "id": "c", "name": line.tool, "input": line.arguments}
    answer = {"type": "tool_result", "tool_use_id": "c", "content": "ok"}
    turns = [{"role": "assistant", "content": [use]}, {"role": "user", "content": [answer]}]
    named = {"name": line.tool, "input_schema": {}}
    return {"max_tokens": 9, "messages": [user, *turns], "tools": [named]}


@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
@pytest.mark.parametrize(
    "line", LINES, ids=[f"{line.recipe} {n}".replace(" ", "_") for n, line in enumerate(LINES)]
)
def test_recipe_labels_and_routes_as_its_table_says(wire_format: WireFormat, line: Line) -> None:
    text = line.policy.replace('format = "openai_chat"\nbase', f'format = "{wire_format}"\nbase')
    yard = Switchyard.from_policy_text(text, name="recipe.toml")
    body = {"model": "plan-execute", **_body(wire_format, line)}
    request = Request(
        body=json.dumps(body).encode(),
        wire_format=wire_format,
        headers=[("x-switchyard-session", "s")],
    )
    decision = asyncio.run(yard.decide(request))

    assert [call["label"] for call in decision.trace["calls"]] == [line.label]
    assert decision.phase == line.phase


def test_every_recipe_is_a_whole_policy_with_the_first_ones_head() -> None:
    titles = [line.recipe for line in LINES]

    assert list(dict.fromkeys(titles)) == [
        "Extend a pack",
        "Overrule one rule of a pack",
        "Switch shell reading off",
        "Whatever is not known is an edit",
        "Path classes",
        "Hand off on more than edits",
        "Hand off on what cannot be seen, too",
        "JSONPath on the raw body",
    ]
