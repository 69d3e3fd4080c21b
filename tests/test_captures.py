"""What real clients sent: every captured request is decided as a person would decide it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest

from switchyard_core import Request, WireFormat
from switchyard_core.server.app import SwitchyardApp
from switchyard_core.testing import Harness
from tests.support.cases import each_of
from tests.support.policies import (
    EXECUTOR,
    PLANNER,
    PLANNING_PROMPT,
    ROUTE,
    plan_execute_harness,
)

CAPTURES = Path(__file__).parent / "data" / "captures"
FORMATS: Mapping[str, WireFormat] = {
    "/v1/chat/completions": "openai_chat",
    "/v1/responses": "openai_responses",
    "/v1/messages": "anthropic_messages",
}
EXECUTING = """
claude-1 claude-2 claude-6 cline-1 codex-1 codex-2 codex-3 mini-1 openai-agents-1 openai-agents-3
opencode-1 opencode-3 opencode-4 opencode-5 pi-1 pi-2 pi-3 pydantic-ai-1 pydantic-ai-2
pydantic-ai-3 qwen-1
"""
PLANNING = "aider-1 aider-2 claude-3 claude-4 claude-7 codex-4 codex-5 codex-7 codex-8"
EXPECTED = {
    **dict.fromkeys(EXECUTING.split(), ("executor", "executing", "mutation_in_history")),
    **dict.fromkeys(PLANNING.split(), ("planner", "planning", "no_mutation")),
    "claude-5": ("planner", "planning", "housekeeping"),
    "opencode-2": ("planner", "planning", "housekeeping"),
    "codex-6": ("executor", "executing", "housekeeping"),
    "openai-agents-2": ("planner", "planning", "history_missing"),
}
ROOT, AGENT = "00000000-0000-7000-8000-000000000001", "a0000000000000002"
CLAUDE, CODEX = "header:x-claude-code-session-id", "header:x-codex-turn-metadata"
OPENCODE = "header:x-session-id"
IDENTITIES = {
    **{f"claude-{n}": (ROOT, None, CLAUDE) for n in (1, 3, 5, 6, 7)},
    **{f"claude-{n}": (ROOT, AGENT, CLAUDE) for n in (2, 4)},
    **{f"codex-{n}": (ROOT, None, CODEX) for n in (1, 2, 3, 5, 6, 7, 8)},
    "codex-4": ("00000000-0000-7000-8000-000000000003", ROOT, CODEX),
    **{f"opencode-{n}": ("ses_00000000000000000000000001", None, OPENCODE) for n in (1, 2, 4, 5)},
    "opencode-3": ("ses_00000000000000000000000002", None, OPENCODE),
    "pi-2": (ROOT, None, "header:session_id"),
}


def capture(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((CAPTURES / f"{name}.json").read_text())["request"]
    return loaded


def as_request(captured: dict[str, Any]) -> Request:
    return Request(
        wire_format=FORMATS[captured["path"]],
        body=captured["body"] | {"model": ROUTE},
        headers=captured["headers"],
        query=captured["query"],
    )


def harness(captured: dict[str, Any]) -> Harness:
    return plan_execute_harness(FORMATS[captured["path"]])


def test_every_capture_has_an_expectation():
    assert {path.stem for path in CAPTURES.glob("*.json")} == EXPECTED.keys()


@each_of("name", sorted(EXPECTED))
async def test_capture_on_a_fresh_server_is_decided_and_only_its_model_changes(name):
    captured = capture(name)
    router = harness(captured)
    request = as_request(captured)

    decision = await router.decide(request)
    sent = json.loads(router.engine.rewrite(request, decision).body)

    assert (decision.target, decision.phase, decision.reason.code) == EXPECTED[name]
    identity = decision.identity
    found = (identity.session, identity.agent, identity.source) if identity else None
    assert found == IDENTITIES.get(name)
    planned = decision.reason.code in ("no_mutation", "history_missing")
    assert (PLANNING_PROMPT in json.dumps(sent)) is planned
    if not planned:
        assert sent == captured["body"] | {
            "model": EXECUTOR if decision.target == "executor" else PLANNER
        }


@each_of("name", sorted(EXPECTED))
async def test_capture_over_http_is_decided_alike(name):
    captured = capture(name)
    transport = httpx.ASGITransport(app=SwitchyardApp(harness(captured).engine))
    headers = {k: v for k, v in captured["headers"].items() if k not in ("host", "content-length")}

    async with httpx.AsyncClient(transport=transport, base_url="http://switchyard.test") as client:
        response = await client.post(
            captured["path"],
            params=captured["query"],
            content=json.dumps(captured["body"] | {"model": ROUTE}),
            headers=headers,
        )

    assert response.status_code == 200
    found = tuple(response.headers[f"x-switchyard-{key}"] for key in ("target", "phase", "reason"))
    assert found == EXPECTED[name]


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("claude-1", "claude-7", ("executor", "executing", "latched")),
        ("codex-1", "codex-7", ("executor", "executing", "latched")),
        ("codex-1", "codex-6", ("executor", "executing", "housekeeping")),
    ],
)
async def test_captures_of_one_session_in_sequence(first, second, expected):
    router = harness(capture(first))

    await router.run(as_request(capture(first)))
    routed = await router.run(as_request(capture(second)))

    decision = routed.decision
    assert (decision.target, decision.phase, decision.reason.code) == expected
    assert PLANNING_PROMPT.encode() not in routed.outgoing.body
