"""The Claude policies that ship: each model of a session accepts what Claude Code writes for it.

Claude Code writes a request for the model that it believes it talks to, and a session moves from
the planner to the executor in the middle. So both must accept the same requests.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from switchyard_core.cli.scaffold import write_starter
from switchyard_core.testing import Harness, conversation
from tests.support.policies import PLUGINS

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """What a model accepts, by Anthropic's pages on thinking, effort and errors (2026-11)."""

    thinking: frozenset[str]
    efforts: frozenset[str]
    window: int
    max_output: int
    system_in_messages: bool = True

    def refusals(self, body: dict[str, Any]) -> list[str]:
        """Return what this model would refuse in a request."""
        thinking = body.get("thinking", {}).get("type", "disabled")
        effort = body.get("output_config", {}).get("effort")
        refused = []
        if thinking not in self.thinking:
            refused.append(f"thinking.type {thinking}")
        if effort is not None and effort not in self.efforts:
            refused.append(f"output_config.effort {effort}")
        if body["max_tokens"] > self.max_output:
            refused.append(f"max_tokens {body['max_tokens']}")
        roles = {message["role"] for message in body["messages"]}
        if "system" in roles and not self.system_in_messages:
            refused.append("messages[].role system")
        return refused


_EFFORTS = frozenset({"low", "medium", "high", "xhigh", "max"})
_NEW = Model(
    thinking=frozenset({"adaptive", "disabled"}),
    efforts=_EFFORTS,
    window=1_000_000,
    max_output=128_000,
)
_OLD = Model(
    thinking=frozenset({"enabled", "disabled"}),
    efforts=frozenset(),
    window=200_000,
    max_output=64_000,
    system_in_messages=False,
)
MODELS = {
    "claude-opus-4-8": _NEW,
    "claude-sonnet-5": _NEW,
    "claude-haiku-4-5": _OLD,
    "claude-opus-4-5": _OLD,  # it accepts some efforts
}
#: What Claude Code sent in recorded runs, beside messages and tools.
SENT: dict[str, dict[str, Any]] = {
    "main-2.1.197": {
        "max_tokens": 64_000,
        "thinking": {"type": "adaptive"},
        "output_config": {"effort": "high"},
    },
    "main-2.1.332": {
        "max_tokens": 128_000,
        "thinking": {"type": "adaptive", "display": "omitted"},
        "output_config": {"effort": "medium"},
    },
    "effort_at_its_highest": {
        "max_tokens": 64_000,
        "thinking": {"type": "adaptive"},
        "output_config": {"effort": "xhigh"},
    },
    "title": {
        "max_tokens": 64_000,
        "thinking": {"type": "disabled"},
        "output_config": {"effort": "high", "format": {"type": "json_schema", "schema": {}}},
    },
    "subagent-haiku": {"max_tokens": 32_000, "thinking": {"type": "disabled"}, "temperature": 1},
}


@pytest.fixture(params=["policies/claude-code.toml", "init", "docs/cookbook/subagents.toml"])
def harness(request, tmp_path):
    path = ROOT / request.param
    if request.param == "init":
        path, _ = write_starter("claude-code", tmp_path / "mine.toml")
    return Harness(path, plugins=PLUGINS)


@pytest.mark.parametrize("sent", SENT.values(), ids=SENT)
async def test_planner_and_executor_accept_what_claude_code_sends(harness, sent):
    start = conversation("anthropic_messages").system("Own instructions.").user("fix it")
    edited = start.edits("Edit", file_path="a.py")
    headers = {"authorization": "Bearer of-the-caller"}
    models, refused = [], []
    for story in (start, edited):
        # The newest version puts instructions between the messages.
        messages = [
            *json.loads(story.body("m"))["messages"],
            {"role": "system", "content": "# Environment"},
        ]
        request = story.request("claude-opus-4-8", headers=headers, messages=messages, **sent)
        outgoing = json.loads((await harness.run(request)).outgoing.body)
        models.append(outgoing["model"])
        refused += [f"{models[-1]}: {r}" for r in MODELS[models[-1]].refusals(outgoing)]

    assert refused == []
    assert len(set(models)) == 2
    assert len({MODELS[model].window for model in models}) == 1
