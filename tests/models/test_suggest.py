"""The rule that a provider's refusal asks for."""

from __future__ import annotations

import json

import pytest
import tomli

from switchyard_core.models import suggest_rule

SAID = [
    ("adaptive thinking is not supported on this model", "adaptive_to_budget"),
    ("This model does not support the effort parameter.", "output_config.effort"),
    ('"thinking.type.enabled" is not supported for this model. Use x', "budget_to_adaptive"),
    ('"thinking.type.disabled" is not supported for this model', "thinking"),
    ("context_management: Extra inputs are not permitted", "context_management"),
    ("max_tokens: 128000 > 64000, which is the maximum", "64000"),
    ("`temperature` is deprecated for this model.", "temperature"),
    ("`temperature` and `top_p` cannot both be specified for this model", "top_p"),
    (
        "Unsupported parameter: 'max_tokens' is not supported with this model. "  # noqa: ISC004
        "Use 'max_completion_tokens' instead.",
        "max_completion_tokens",
    ),
    ("Unsupported value: 'temperature' does not support 0.2 with this model", "temperature"),
    ("Unknown parameter: 'reasoning.mode'.", "reasoning.mode"),
    ("Argument not supported on this model: presencePenalty", "presence_penalty"),
    ("Model grok does not support parameter reasoningEffort.", "reasoning_effort"),
    (
        "The `reasoning_content` in the thinking mode must be passed back to the API",
        "reasoning_placeholder",
    ),
    (
        "The tool_choice parameter does not support being set to required or object in thinking mode",
        "tool_choice",
    ),
    ("Unexpected role 'user' after role 'tool'", "bridge_assistant"),
    ("invalid params, tool call result does not follow tool call (2013)", "pull_tool_results_up"),
    ('messages: Unexpected role "system". The Messages API accepts', "system_row_to_user"),
    ("cannot specify both 'thinking' and 'reasoning_effort'", "reasoning_effort"),
]


@pytest.mark.parametrize(("message", "part"), SAID, ids=[said[0][:40] for said in SAID])
def test_refusal_of_a_parameter_suggests_a_rule(message: str, part: str) -> None:
    body = json.dumps({"type": "error", "error": {"type": "x", "message": message}}).encode()

    rule = suggest_rule(body, "openai_chat")

    assert rule is not None
    assert part in json.dumps(tomli.loads(f"rule = {rule}"))


def test_field_of_an_error_suggests_to_drop_it() -> None:
    error = {"message": "no", "param": "logprobs", "code": "unsupported_parameter"}

    assert suggest_rule(json.dumps({"error": error}).encode(), "openai_responses") == (
        '{ path = "logprobs", do = "drop" }'
    )


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"not JSON",
        b"[1]",
        b'{"error": "overloaded"}',
        b'{"error": {"message": 3}}',
        json.dumps({"error": {"message": "prompt is too long", "code": None}}).encode(),
        json.dumps({"error": {"message": "x", "param": "a b", "code": "bad"}}).encode(),
        json.dumps({"error": {"param": "model", "code": "model_not_found"}}).encode(),
        json.dumps({"error": {"param": "messages", "code": "missing_required"}}).encode(),
    ],
)
def test_other_errors_suggest_nothing(body: bytes) -> None:
    assert suggest_rule(body, "openai_chat") is None


def test_repair_of_messages_is_not_suggested_for_responses() -> None:
    body = json.dumps({"error": {"message": "missing a thought_signature"}}).encode()

    assert suggest_rule(body, "openai_responses") is None
