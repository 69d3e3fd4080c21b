"""Sessions of agents through plan_execute, at providers that refuse what the real ones do."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from switchyard_core import Headers, Request
from switchyard_core.policy.models import Target
from switchyard_core.testing import FakeUpstream, Harness, Served
from tests.support.policies import PLUGINS

ROOT = Path(__file__).parents[1]
#: Once targets have a profile by themselves, this takes it away: the raw behaviour is shown.
RAW = "profile = false" if "profile" in Target.model_fields else ""
ROUTE = "switchyard/plan-execute"
SCRIPT: dict[str, Any] = {
    "version": 1,
    "scripts": [
        {
            "turns": [
                {"reasoning": "Look first.", "calls": [{"name": "Read", "arguments": {}}]},
                {
                    "reasoning": "Now fix it.",
                    "calls": [
                        {"name": "Edit", "arguments": {"file_path": "/home/dev/calc.py"}},
                    ],
                },
                {"reasoning": "Run it.", "calls": [{"name": "Bash", "arguments": {}}]},
                {"text": "Done."},
            ]
        }
    ],
}
#: As Claude Code asks claude-opus-4-8.
ASKED: dict[str, Any] = {
    "model": ROUTE,
    "max_tokens": 32000,
    "thinking": {"type": "adaptive"},
    "output_config": {"effort": "high"},
    "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
    "system": [
        {"type": "text", "text": "You fix code.", "cache_control": {"type": "ephemeral"}},
    ],
    "tools": [
        {"name": name, "description": name, "input_schema": {"type": "object"}}
        for name in ("Read", "Edit", "Bash")
    ],
}
HEADERS = {
    "anthropic-beta": "context-management-2025-06-27,effort-2025-11-24",
    "x-api-key": "test-key",
    "x-claude-code-session-id": "00000000-0000-7000-8000-000000000001",
}


def policy(planner: str, executor: str) -> str:
    return f"""
schema_version = 1

[llm_clients.anthropic]
format = "anthropic_messages"
base_url = "https://api.anthropic.com"
forward_auth = true

[targets.planner]
id = "{planner}"
llm_client = "anthropic"
{RAW}

[targets.executor]
id = "{executor}"
llm_client = "anthropic"
{RAW}

[routes.claude_code]
id = "{ROUTE}"
type = "plan_execute"
capable_target = "planner"
efficient_target = "executor"
planning_prompt_position = "append"
"""


class Session:
    """A client that sends back what it got, with the result of each call."""

    def __init__(self, source: str | Path, strict: Mapping[str, str] | None = None) -> None:
        upstream = FakeUpstream(script=SCRIPT, strict=strict or "anthropic")
        self.harness = Harness(source, plugins=PLUGINS, upstream=upstream)
        self.messages: list[Any] = [{"role": "user", "content": "fix the bug"}]

    async def ask(self) -> Served:
        body = {**ASKED, "messages": self.messages}
        served = await self.harness.ask(
            Request(
                wire_format="anthropic_messages",
                body=json.dumps(body).encode(),
                headers=Headers(tuple(HEADERS.items())),
            )
        )
        if served.status == 200:
            self._take(json.loads(served.answer))
        return served

    def _take(self, answer: Any) -> None:
        content = answer["content"]
        self.messages.append({"role": "assistant", "content": content})
        results = [
            {"type": "tool_result", "tool_use_id": block["id"], "content": "ok"}
            for block in content
            if block["type"] == "tool_use"
        ]
        if results:
            self.messages.append({"role": "user", "content": results})


@pytest.mark.parametrize(
    ("name", "executor"),
    [
        ("claude-code", "anthropic"),
        ("claude-code-haiku", "anthropic"),
        ("claude-code-chat", "deepseek"),
    ],
)
async def test_session_on_a_shipped_policy_runs_to_the_end(name: str, executor: str) -> None:
    strict = {"planner": "anthropic", "executor": executor}
    session = Session(ROOT / "policies" / f"{name}.toml", strict)

    served = [await session.ask() for _ in range(4)]

    assert [(each.target, each.status) for each in served] == [
        ("planner", 200),
        ("planner", 200),
        ("executor", 200),
        ("executor", 200),
    ]
    assert [each.warnings for each in served] == [()] * 4


@pytest.mark.parametrize(
    ("executor", "url", "model"),
    [
        ("openrouter", "https://openrouter.ai/api/v1", 'id = "qwen/qwen3-coder-next"'),
        ("vllm", "http://127.0.0.1:8000/v1", 'id = "Qwen/Qwen3-Coder-Next"\nprofile = "vllm"'),
    ],
    ids=["openrouter", "vllm"],
)
async def test_session_runs_to_the_end_on_each_executor_that_the_comments_name(
    executor: str, url: str, model: str
) -> None:
    text = (ROOT / "policies" / "claude-code-chat.toml").read_text()
    assert all(line in text for line in (url, *model.splitlines()))
    text = text.replace('"https://api.deepseek.com"', f'"{url}"')
    text = text.replace('\nid = "deepseek-flash"', f"\n{model}")
    session = Session(text, {"planner": "anthropic", "executor": executor})

    served = [await session.ask() for _ in range(4)]

    assert [each.status for each in served] == [200] * 4
    assert [each.target for each in served] == ["planner", "planner", "executor", "executor"]


async def test_raw_handoff_from_opus_to_haiku_ends_at_the_first_edit_and_at_every_resume() -> None:
    session = Session(policy("claude-opus-4-8", "claude-haiku-4-5"))

    served = [await session.ask() for _ in range(2)]
    dead = [await session.ask() for _ in range(3)]

    assert [(each.target, each.status) for each in served] == [("planner", 200)] * 2
    assert [(each.target, each.status) for each in dead] == [("executor", 400)] * 3
    for each in dead:
        told = json.loads(each.answer)["error"]
        assert told["message"] == "This model does not support the effort parameter."


@pytest.mark.parametrize(
    ("planner", "executor"),
    [("claude-opus-4-8", "claude-sonnet-5"), ("claude-opus-5", "claude-opus-4-8")],
)
async def test_handoff_between_models_that_accept_the_same_runs_to_the_end(
    planner: str, executor: str
) -> None:
    session = Session(policy(planner, executor))

    served = [await session.ask() for _ in range(4)]

    assert [each.status for each in served] == [200] * 4
    assert [each.target for each in served] == ["planner", "planner", "executor", "executor"]
    assert json.loads(served[-1].answer)["content"][-1]["text"] == "Done."


PATCH = "*** Begin Patch\n*** Update File: calc.py\n@@\n-a\n+b\n*** End Patch\n"
READ = {"name": "exec_command", "arguments": {"cmd": "cat calc.py"}}
CODEX_SCRIPT: dict[str, Any] = {
    "version": 1,
    "scripts": [
        {
            "turns": [
                {"reasoning": "Look first.", "calls": [READ]},
                {"reasoning": "Fix it.", "calls": [{"name": "apply_patch", "input": PATCH}]},
                {"reasoning": "Look again.", "calls": [READ]},
                {"text": "Done."},
            ]
        }
    ],
}


@pytest.mark.parametrize(("name", "planner"), [("codex", "openai"), ("codex-claude", "anthropic")])
async def test_codex_session_goes_on_without_the_reasoning_that_only_the_planner_reads(
    name: str, planner: str
) -> None:
    capture = json.loads((ROOT / "tests" / "data" / "captures" / "codex-1.json").read_text())
    asked = capture["request"]
    headers = {k: v for k, v in asked["headers"].items() if k not in ("host", "content-length")}
    strict = {"planner": planner, "executor": "openai"}
    upstream = FakeUpstream(script=CODEX_SCRIPT, strict=strict)
    harness = Harness(ROOT / "policies" / f"{name}.toml", plugins=PLUGINS, upstream=upstream)
    items = [item for item in asked["body"]["input"][:3] if item["type"] == "message"]
    served = []
    for _ in range(5):
        body = {**asked["body"], "input": items, "stream": False}
        request = Request(
            wire_format="openai_responses",
            body=json.dumps(body).encode(),
            headers=Headers(tuple(headers.items())),
        )
        served.append(await harness.ask(request))
        output = json.loads(served[-1].answer)["output"]
        calls = [item for item in output if "call_id" in item]
        results = [
            {"type": f"{call['type']}_output", "call_id": call["call_id"], "output": "ok"}
            for call in calls
        ]
        items = [*items, *output, *results]

    assert [each.status for each in served] == [200] * 5
    assert [each.target for each in served] == ["planner"] * 2 + ["executor"] * 3
    # Its profile says that the executor refuses the planner's reasoning, so it is never sent.
    assert [len(each.sent) for each in served] == [1] * 5
    assert [each.warnings for each in served] == [()] * 5
