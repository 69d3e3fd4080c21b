"""The requests that clients were seen to send, translated: strict providers take all of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from switchyard_core import Headers, Request, WireFormat
from switchyard_core.testing import FakeUpstream, Harness, validity_problems
from switchyard_core.wire import endpoint_of
from tests.support.policies import PLUGINS

CAPTURES = Path(__file__).parents[1] / "data" / "captures"
#: Format, base URL and models, by strict provider.
TARGETS: Mapping[str, tuple[WireFormat, str, tuple[str, ...]]] = {
    "anthropic": (
        "anthropic_messages",
        "https://api.anthropic.com",
        ("claude-opus-5-5", "claude-opus-4-8", "claude-sonnet-5-5", "claude-haiku-4-5"),
    ),
    "openai": ("openai_responses", "https://api.openai.com/v1", ("gpt-5.5", "gpt-5.4-nano")),
    "deepseek": ("openai_chat", "https://api.deepseek.com", ("deepseek-flash",)),
    "glm": ("openai_chat", "https://api.z.ai/api/paas/v4", ("glm-5.3",)),
    "kimi": ("openai_chat", "https://api.moonshot.ai/v1", ("kimi-k2.7",)),
    "mistral": ("openai_chat", "https://api.mistral.ai/v1", ("mistral-large-latest",)),
    "openrouter": ("openai_chat", "https://openrouter.ai/api/v1", ("qwen/qwen3-coder-next",)),
    "vllm": ("openai_chat", "http://vllm:8000/v1", ("Qwen/Qwen3-Coder-Next",)),
}


def _requests() -> dict[str, Request]:
    """Return the recorded requests that have their history, by name."""
    found = {}
    for path in sorted(CAPTURES.glob("*.json")):
        asked = json.loads(path.read_text())["request"]
        endpoint = endpoint_of(urlsplit(asked["path"]).path)
        assert endpoint is not None
        headers = {k: v for k, v in asked["headers"].items() if k not in ("host", "content-length")}
        request = Request(
            wire_format=endpoint[0],
            body=json.dumps(asked["body"]).encode(),
            headers=Headers(tuple(headers.items())),
        )
        if "previous_response_id" not in asked["body"]:
            found[path.stem] = request
    return found


@pytest.mark.parametrize("strict", TARGETS)
async def test_provider_of_another_format_takes_every_request(strict: str) -> None:
    wire_format, url, models = TARGETS[strict]
    refused = []
    for model in models:
        upstream = FakeUpstream(strict=strict)
        harness = Harness(_policy(wire_format, url, model), plugins=PLUGINS, upstream=upstream)
        for name, request in _requests().items():
            if request.wire_format == wire_format:
                continue
            served = await harness.ask(request)
            problems = validity_problems(wire_format, served.sent[0].body, sdk=True)
            if served.status != 200 or problems:
                refused.append((name, model, served.answer, problems))

    assert refused == []


def _policy(wire_format: str, url: str, model: str) -> str:
    return f"""
schema_version = 1
default_route = "main"

[llm_clients.provider]
format = "{wire_format}"
base_url = "{url}"
api_key_env = "PROVIDER_KEY"

[targets.model]
id = "{model}"
llm_client = "provider"

[routes.main]
id = "main"
type = "passthrough"
targets = ["model"]
"""
