"""What real clients send is taken at the models that it was built for, and refused where it was."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from switchyard_core.declarations import WireFormat
from switchyard_core.scripted.select import Asked
from switchyard_core.scripted.strict import responses, thinking
from switchyard_core.scripted.strict.places import Sent
from switchyard_core.scripted.strict.provider import strict_provider
from switchyard_core.wire import format_of
from tests.scripted.strict.broken import ask, player

DATA = Path(__file__).parents[2] / "data"
RECORDED = json.loads((DATA / "recorded-refusals.json").read_text(encoding="utf-8"))["requests"]
FORMATS: Mapping[str, WireFormat] = {
    "/v1/chat/completions": "openai_chat",
    "/v1/responses": "openai_responses",
    "/v1/messages": "anthropic_messages",
}
#: The model that each captured body was built for, or one that takes the same settings.
BUILT_FOR = {
    "aider-1": "openai gpt-4.1",
    "aider-2": "openai gpt-4.1",
    **{f"claude-{n}": "anthropic claude-opus-4-8" for n in range(1, 8)},
    "cline-1": "glm glm-5.3",
    **{f"codex-{n}": "openai gpt-5.5" for n in (1, 2, 4, 5, 6, 7, 8)},
    "codex-3": "openai gpt-6-sol",
    "mini-1": "openai gpt-4.1",
    "openai-agents-1": "openai gpt-5",
    "openai-agents-2": "openai gpt-5",
    "openai-agents-3": "openai gpt-4.1",
    **{f"opencode-{n}": "glm glm-5.3" for n in (1, 2, 3)},
    "opencode-4": "anthropic claude-sonnet-4-5",
    "opencode-5": "openai gpt-5",
    "pi-1": "openai gpt-5",
    "pi-2": "openai gpt-5.5",
    "pi-3": "anthropic claude-opus-4-5",
    "pydantic-ai-1": "openai gpt-4.1",
    "pydantic-ai-2": "openai gpt-4.1",
    "pydantic-ai-3": "anthropic claude-sonnet-4-5",
    "qwen-1": "qwen qwen3-coder-plus",
}


def test_every_captured_body_has_a_model() -> None:
    assert set(BUILT_FOR) == {path.stem for path in (DATA / "captures").glob("*.json")}


@pytest.mark.parametrize("name", sorted(BUILT_FOR))
def test_captured_body_is_taken_at_the_model_it_was_built_for(name: str) -> None:
    request = json.loads((DATA / "captures" / f"{name}.json").read_text())["request"]
    provider, _, model = BUILT_FOR[name].partition(" ")
    wire_format = FORMATS[request["path"]]
    headers = request["headers"]
    body = {**request["body"], "model": model, "stream": False}
    body = _resealed(body, headers, wire_format, provider)

    status, told = ask(player(provider), wire_format, body, headers)

    assert status == 200, told


@pytest.mark.parametrize("number", range(len(RECORDED)))
def test_recorded_request_gets_the_recorded_answer(number: int) -> None:
    recorded = RECORDED[number]
    headers = {"anthropic-beta": recorded["anthropic-beta"]}
    body = {**recorded["body"], "stream": False}
    body = _resealed(body, headers, "anthropic_messages", "anthropic")

    status, told = ask(player("anthropic"), "anthropic_messages", body, headers)

    assert (status, told.get("error")) == (recorded["status"], recorded["error"])


def _resealed(
    body: dict[str, Any], headers: Mapping[str, str], wire_format: WireFormat, provider: str
) -> dict[str, Any]:
    """Return a body with the opaque reasoning that the provider itself would have made."""

    def sent(body: Any) -> Sent:
        raw = json.dumps(body).encode()
        asked = Asked(format=format_of(wire_format), body=body, raw=raw, headers=headers)
        return strict_provider(provider).sent(asked, "", "create")

    copy: dict[str, Any] = json.loads(json.dumps(body))
    for index, message in enumerate(copy.get("messages", ())):
        for block in _blocks(message):
            if block.get("type") == "thinking":
                before = {**copy, "messages": copy["messages"][:index]}
                block["signature"] = thinking.signature(sent(before), block["thinking"])
    for item in copy["input"] if isinstance(copy.get("input"), list) else ():
        if item.get("encrypted_content"):
            item["encrypted_content"] = responses.encrypted(sent(copy))
    return copy


def _blocks(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    content = message.get("content")
    return content if isinstance(content, list) else []
