"""The Claude policies that ship: each model of a session accepts what Claude Code writes for it.

Claude Code writes a request for the model that it believes it talks to, and a session moves from
the planner to the executor in the middle. So both must accept the same requests, at a provider
that refuses what the real one refuses.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from switchyard_core.cli.scaffold import write_starter
from switchyard_core.testing import FakeUpstream, Harness, conversation
from tests.support.policies import PLUGINS

ROOT = Path(__file__).parents[1]


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


@pytest.fixture(
    params=[
        "policies/claude-code.toml",
        "policies/claude-code-haiku.toml",
        "init",
        "docs/cookbook/subagents.toml",
    ]
)
def harness(request, tmp_path):
    path = ROOT / request.param
    if request.param == "init":
        path, _ = write_starter("claude-code", tmp_path / "mine.toml")
    return Harness(path, plugins=PLUGINS, upstream=FakeUpstream(strict="anthropic"))


@pytest.mark.parametrize("sent", SENT.values(), ids=SENT)
async def test_planner_and_executor_accept_what_claude_code_sends(harness, sent):
    start = conversation("anthropic_messages").system("Own instructions.").user("fix it")
    edited = start.edits("Edit", file_path="a.py")
    headers = {"authorization": "Bearer of-the-caller"}
    served = []
    for story in (start, edited):
        # The newest version puts instructions between the messages.
        messages = [
            *json.loads(story.body("m"))["messages"],
            {"role": "system", "content": "# Environment"},
        ]
        request = story.request("claude-opus-4-8", headers=headers, messages=messages, **sent)
        served.append(await harness.run(request))

    assert [each.status for each in served] == [200, 200], served[-1].answer
    assert len({each.tree["model"] for each in served}) == 2


async def test_planner_and_executor_take_a_history_beyond_the_window_of_older_models(harness):
    start = conversation("anthropic_messages").user("fix it " + "x" * 900_000)
    headers = {"authorization": "Bearer of-the-caller"}

    for story in (start, start.edits("Edit", file_path="a.py")):
        served = await harness.run(story.request("claude-opus-4-8", headers=headers))
        assert served.status == 200, served.answer
