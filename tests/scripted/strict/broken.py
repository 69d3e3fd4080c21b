"""One body per documented rule that breaks it, and the same body repaired."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from switchyard_core.scripted import Player, Script, Scripted, Turn
from switchyard_core.scripted.script import Call

__all__ = ["CASES", "LEFT_OUT", "Case", "ask", "bare", "player", "tool"]

_PATHS = {
    "anthropic_messages": "/v1/messages",
    "openai_chat": "/v1/chat/completions",
    "openai_responses": "/v1/responses",
}
_THINKING = Turn(reasoning="Look first.", text="hi", calls=(Call(name="read", arguments={}),))
#: All that a scripted answer can hold: reasoning, text and a call.
SCRIPT = Script(version=1, scripts=(Scripted(turns=(_THINKING,)),))

Body = Mapping[str, Any]


@dataclass(frozen=True)
class Case:
    """A rule, the body that breaks it, and the changes that keep it."""

    rule: tuple[str, str]  # id of the entry, and the rule's path or the begin of what it requires
    provider: str
    format: str
    model: str
    broken: Body
    kept: Body = field(default_factory=dict)
    headers: Body = field(default_factory=dict)
    kept_headers: Body | None = None
    status: int = 400
    says: str = ""  # where the sources have no words, some of the provider's own
    path: str = ""
    kept_path: str = ""

    @property
    def id(self) -> str:
        """The case's name in the test report."""
        return f"{self.model}-{self.rule[1]}"[:90].replace(" ", "_")


def player(provider: str) -> Player:
    """Return a strict provider that thinks, speaks and calls a tool."""
    return Player(SCRIPT, lambda: 0.0, provider)


def bare(wire_format: str, named: str, /, **more: Any) -> dict[str, Any]:
    """Return the smallest body of a format, with further members; those that are ``None`` go."""
    said = [{"role": "user", "content": "hi"}]
    base: dict[str, Any] = {"model": named, "messages": said}
    if wire_format == "anthropic_messages":
        base["max_tokens"] = 2000
    if wire_format == "openai_responses":
        base = {"model": named, "input": said}
    return {key: value for key, value in {**base, **more}.items() if value is not None}


def ask(
    provider: Player, wire_format: str, body: Any, headers: Body | None = None, path: str = ""
) -> tuple[int, Any]:
    """Return status and body of the provider's answer."""
    reply = provider.play(
        "POST",
        path or _PATHS[wire_format],
        [(name, str(value)) for name, value in (headers or {}).items()],
        json.dumps(body).encode(),
    )
    return reply.status, json.loads(b"".join(reply.chunks))


def tool(wire_format: str, name: str = "read", **more: Any) -> dict[str, Any]:
    """Return a tool of a format."""
    schema = {"type": "object", "properties": {}}
    if wire_format == "anthropic_messages":
        return {"name": name, "input_schema": schema, **more}
    if wire_format == "openai_responses":
        return {"type": "function", "name": name, "parameters": schema, **more}
    return {"type": "function", "function": {"name": name, "parameters": schema, **more}}


USER = {"role": "user", "content": "hi"}
A, C, R = "anthropic_messages", "openai_chat", "openai_responses"
BETA = "anthropic-beta"


def _use(*ids: str) -> dict[str, Any]:
    blocks = [{"type": "tool_use", "id": each, "name": "read", "input": {}} for each in ids]
    return {"role": "assistant", "content": blocks}


def _result(*ids: str, content: Any = "ok") -> dict[str, Any]:
    blocks = [{"type": "tool_result", "tool_use_id": each, "content": content} for each in ids]
    return {"role": "user", "content": blocks}


def _call(*ids: str, **more: Any) -> dict[str, Any]:
    function = {"name": "read", "arguments": "{}"}
    calls = [{"id": each, "type": "function", "function": function, **more} for each in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def _output(each: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": each, "content": "ok"}


def _messages(*items: Body) -> dict[str, Any]:
    return {"messages": [USER, *items]}


def _input(*items: Body) -> dict[str, Any]:
    return {"input": [USER, *items]}


def _marked(count: int) -> dict[str, Any]:
    mark = {"cache_control": {"type": "ephemeral"}}
    return {"system": [{"type": "text", "text": f"part {n}", **mark} for n in range(count)]}


def _image(kind: str = "image_url") -> dict[str, Any]:
    url = {"image_url": {"url": "data:image/png;base64,AA=="}}
    part = {"type": kind, **(url if kind == "image_url" else {"file": {"file_id": "f"}})}
    return {"messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}, part]}]}


def _answered(wire_format: str, provider: str, model: str) -> Sequence[Body]:
    """Return the history after one answer of the provider, as it would go back to it."""
    more = {"include": ["reasoning.encrypted_content"]} if wire_format == R else {}
    _, answer = ask(player(provider), wire_format, bare(wire_format, model, **more))
    if wire_format == R:
        call = next(item for item in answer["output"] if item["type"] == "function_call")
        done = {"type": "function_call_output", "call_id": call["call_id"], "output": "ok"}
        return [USER, *answer["output"], done]
    use = answer["content"][-1]["id"]
    return [USER, {"role": "assistant", "content": answer["content"]}, _result(use)]


def _long(size: int) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": "x" * size}]}


_OPUS = _answered(A, "anthropic", "claude-opus-4-5")
_BOUND = _answered(A, "anthropic", "claude-opus-5-5")
_GPT = _answered(R, "openai", "gpt-5.5")
_OTHER_GPT = _answered(R, "openai", "gpt-5.4")
_FORCED = {"type": "tool", "name": "read"}
_NAMED = {"type": "function", "function": {"name": "read"}}
_REASONING = {"type": "reasoning", "id": "rs_1", "summary": []}
_SAID = {"type": "message", "role": "assistant", "content": "ok"}
_FC = {"type": "function_call", "call_id": "c1", "name": "read", "arguments": "{}"}
_FCO = {"type": "function_call_output", "call_id": "c1", "output": "ok"}
_OPEN = {"type": "object", "properties": {}}
_CLOSED = {**_OPEN, "additionalProperties": False}
_LEVEL = {"thinking_level": "minimal"}
_THINK_ONLY = {"effort": "none"}


def _modified(history: Sequence[Body]) -> list[Any]:
    copy: list[Any] = json.loads(json.dumps(history))
    copy[1]["content"][0]["thinking"] = "Something else."
    return copy


def _google(**config: Any) -> dict[str, Any]:
    return {"extra_body": {"google": {"thinking_config": config}}}


def _strict(schema: Body) -> dict[str, Any]:
    return {"tools": [tool(A, strict=True, input_schema=schema)]}


CASES: tuple[Case, ...] = (
    # --- Anthropic
    Case(
        ("claude (all)", "max_tokens, model"),
        "anthropic",
        A,
        "claude-opus-5-5",
        {"max_tokens": None},
        says="max_tokens: Field required",
    ),
    Case(
        ("claude (all)", "no empty text blocks"),
        "anthropic",
        A,
        "claude-opus-4-5",
        _messages(_use("a"), _result("a", content=[{"type": "text", "text": ""}])),
        _messages(_use("a"), _result("a")),
        says="text content blocks must be non-empty",
    ),
    Case(
        ("claude (all)", "tool_use.id / tool_use_id"),
        "anthropic",
        A,
        "claude-opus-4-5",
        _messages(_use("a.b"), _result("a.b")),
        _messages(_use("a_b"), _result("a_b")),
        says="String should match pattern",
    ),
    Case(
        ("claude (all)", "at most 4 blocks"),
        "anthropic",
        A,
        "claude-opus-4-5",
        _marked(5),
        _marked(4),
        says="maximum of 4 blocks with cache_control",
    ),
    Case(
        ("claude (all)", "every tool_use answered"),
        "anthropic",
        A,
        "claude-opus-4-5",
        _messages(_use("a"), USER),
        _messages(_use("a"), _result("a")),
        says="without `tool_result` blocks immediately after: a",
    ),
    Case(
        ("claude (all)", "every tool_use answered"),
        "anthropic",
        A,
        "claude-haiku-4-5",
        _messages(_use("a"), _result("a", "a")),
        _messages(_use("a"), _result("a")),
        says="must have a single result",
    ),
    Case(
        ("claude (all)", "every tool_use answered"),
        "anthropic",
        A,
        "claude-sonnet-5",
        _messages(_use("a"), _result("a", "b")),
        _messages(_use("a"), _result("a")),
        says="unexpected `tool_use_id`",
    ),
    Case(
        ("claude (all)", "thinking blocks of the LATEST"),
        "anthropic",
        A,
        "claude-opus-4-5",
        {"messages": _modified(_OPUS)},
        {"messages": _OPUS},
        says="blocks in the latest assistant message cannot be modified",
    ),
    Case(
        ("claude (all)", "request body <= 32 MB"),
        "anthropic",
        A,
        "claude-opus-4-6",
        _long(33_600_000),
        _long(1000),
        status=413,
        says="request_too_large",
    ),
    Case(
        ("claude (all)", "at most 20 tools"),
        "anthropic",
        A,
        "claude-opus-5",
        {"tools": [tool(A, f"t{n}", strict=True, input_schema=_CLOSED) for n in range(21)]},
        {"tools": [tool(A, f"t{n}", strict=True, input_schema=_CLOSED) for n in range(20)]},
        says="Too many strict tools",
    ),
    Case(
        ("claude (all)", "at most 20 tools"),
        "anthropic",
        A,
        "claude-opus-5",
        _strict(_OPEN),
        _strict(_CLOSED),
        says="'additionalProperties' must be explicitly set to false",
    ),
    Case(
        ("claude (all)", "<any unknown field>"),
        "anthropic",
        A,
        "claude-opus-5",
        {"reasoning_effort": "high"},
    ),
    Case(
        ("claude (all)", "context_management"),
        "anthropic",
        A,
        "claude-opus-5",
        {"context_management": {}},
        {"context_management": {}},
        kept_headers={BETA: "context-management-2025-06-27"},
    ),
    Case(
        ("claude (all)", "tools[].defer_loading"),
        "anthropic",
        A,
        "claude-opus-5",
        {"tools": [tool(A, defer_loading=True)]},
        {"tools": [tool(A, defer_loading=True)]},
        kept_headers={BETA: "advanced-tool-use-2025-11-20"},
    ),
    Case(
        ("claude (all)", "thinking.block_binding"),
        "anthropic",
        A,
        "claude-opus-5",
        {"thinking": {"type": "adaptive", "block_binding": {}}},
        {"thinking": {"type": "adaptive", "block_binding": {}}},
        kept_headers={BETA: "thinking-binding-controls-2026-08-01"},
    ),
    Case(
        ("claude (all)", "tools[].type"),
        "anthropic",
        A,
        "claude-opus-5",
        {"tools": [{"type": "flying_20260101", "name": "fly"}]},
        {"tools": [{"type": "bash_20250124", "name": "bash"}]},
    ),
    Case(
        ("claude (all)", "temperature+top_p together"),
        "anthropic",
        A,
        "claude-opus-4-5",
        {"temperature": 0.5, "top_p": 0.9},
        {"temperature": 0.5},
    ),
    Case(
        ("claude (all)", "tool_choice any|tool"),
        "anthropic",
        A,
        "claude-opus-4-5",
        {
            "thinking": {"type": "enabled", "budget_tokens": 1024},
            "tools": [tool(A)],
            "tool_choice": {"type": "any"},
        },
        {
            "thinking": {"type": "enabled", "budget_tokens": 1024},
            "tools": [tool(A)],
            "tool_choice": {"type": "auto"},
        },
        says="Thinking may not be enabled",
    ),
    Case(
        ("claude (all)", "thinking.budget_tokens"),
        "anthropic",
        A,
        "claude-haiku-4-5",
        {"thinking": {"type": "enabled", "budget_tokens": 1000}},
        {"thinking": {"type": "enabled", "budget_tokens": 1024}},
        says="greater than or equal to 1024",
    ),
    Case(
        ("claude (all)", "thinking.budget_tokens"),
        "anthropic",
        A,
        "claude-haiku-4-5",
        {"thinking": {"type": "enabled", "budget_tokens": 2000}},
        {"thinking": {"type": "enabled", "budget_tokens": 1999}},
        says="`max_tokens` must be greater than",
    ),
    Case(
        ("claude 4.6+: no prefill", "messages[-1].role=assistant"),
        "anthropic",
        A,
        "claude-opus-4-6",
        _messages({"role": "assistant", "content": "I"}),
        _messages(),
    ),
    Case(
        ("claude 4.7+: no manual thinking, no sampling", "thinking.type=enabled (+budget_tokens)"),
        "anthropic",
        A,
        "claude-opus-4-8",
        {"thinking": {"type": "enabled", "budget_tokens": 1024}},
        {"thinking": {"type": "adaptive"}},
    ),
    Case(
        ("claude 4.7+: no manual thinking, no sampling", "temperature|top_p|top_k"),
        "anthropic",
        A,
        "claude-sonnet-5",
        {"temperature": 0.2},
        {"temperature": 1},
    ),
    Case(
        ("claude with prefix check (preserved thinking)", "system, tools and all messages"),
        "anthropic",
        A,
        "claude-opus-5-5",
        {"messages": _BOUND, "system": "more"},
        {"messages": _BOUND},
        says="the block is bound to a different conversation",
    ),
    Case(
        ("claude with prefix check (preserved thinking)", "messages[].content[thinking]"),
        "anthropic",
        A,
        "claude-opus-5-5",
        {"messages": _BOUND, "tools": [tool(A)]},
        {
            "messages": _BOUND,
            "tools": [tool(A)],
            "thinking": {
                "type": "adaptive",
                "block_binding": {"prefix_mismatch_behavior": "drop_block"},
            },
        },
        kept_headers={BETA: "thinking-binding-controls-2026-08-01"},
    ),
    Case(
        ("claude-haiku-4-5", "thinking.type=adaptive"),
        "anthropic",
        A,
        "claude-haiku-4-5",
        {"thinking": {"type": "adaptive"}},
        {"thinking": {"type": "disabled"}},
    ),
    Case(
        ("claude-haiku-4-5", "output_config.effort"),
        "anthropic",
        A,
        "claude-haiku-4-5-20251001",
        {"output_config": {"effort": "high"}},
    ),
    Case(
        ("claude-haiku-4-5", "messages[].role=system"),
        "anthropic",
        A,
        "claude-haiku-4-5",
        _messages({"role": "system", "content": "x"}),
        _messages(),
        says="Unexpected role",
    ),
    Case(
        ("claude-haiku-5-5", "temperature != 1"),
        "anthropic",
        A,
        "claude-haiku-5-5",
        {"top_p": 0.9},
        {"top_p": 0.99},
        says="`top_p` is deprecated",
    ),
    Case(
        ("claude-haiku-5-5", "temperature != 1"),
        "anthropic",
        A,
        "claude-haiku-5-5",
        {"top_k": 5},
        says="`top_k` is deprecated",
    ),
    Case(
        ("claude-haiku-5-5", "tools computer_20250124"),
        "anthropic",
        A,
        "claude-haiku-5-5",
        {"tools": [{"type": "computer_20250124", "name": "computer"}]},
        says="does not support tool types",
    ),
    Case(
        ("claude-sonnet-4-5, opus-4-5", "thinking.type=adaptive"),
        "anthropic",
        A,
        "claude-opus-4-5",
        {"thinking": {"type": "adaptive"}},
        {"thinking": {"type": "enabled", "budget_tokens": 1024}},
        says="adaptive thinking is not supported on this model",
    ),
    Case(
        ("claude-sonnet-4-5, opus-4-5", "output_config.effort"),
        "anthropic",
        A,
        "claude-sonnet-4-5",
        {"output_config": {"effort": "low"}},
    ),
    Case(
        ("claude 4.6", "output_config.effort=xhigh"),
        "anthropic",
        A,
        "claude-opus-4-6",
        {"output_config": {"effort": "xhigh"}},
        {"output_config": {"effort": "high"}},
        says="output_config.effort",
    ),
    Case(
        ("claude-opus-4-7, 4-8", "speed=fast"),
        "anthropic",
        A,
        "claude-opus-4-7",
        {"speed": "fast"},
        says="speed",
    ),
    Case(
        ("claude-sonnet-5-5", "thinking.type=disabled"),
        "anthropic",
        A,
        "claude-sonnet-5-5",
        {"thinking": {"type": "disabled"}},
        {"thinking": {"type": "between_tools"}},
    ),
    Case(
        ("claude-sonnet-5-5", "thinking.type=between_tools"),
        "anthropic",
        A,
        "claude-sonnet-5-5",
        {"thinking": {"type": "between_tools"}, "output_config": {"effort": "max"}},
        {"thinking": {"type": "between_tools"}, "output_config": {"effort": "high"}},
        says="between_tools",
    ),
    Case(
        ("claude-sonnet-5-5", "thinking.type=between_tools"),
        "anthropic",
        A,
        "claude-sonnet-5-5",
        {"thinking": {"type": "between_tools", "display": "omitted"}},
        {"thinking": {"type": "adaptive", "display": "omitted"}},
        says="between_tools",
    ),
    Case(
        ("claude-sonnet-5-5", "thinking.type=between_tools"),
        "anthropic",
        A,
        "claude-sonnet-5-5",
        {
            "thinking": {"type": "between_tools"},
            "output_config": {"effort": "high"},
            **_messages({**USER, "output_config": {"effort": "low"}}),
        },
        {
            "thinking": {"type": "between_tools"},
            "output_config": {"effort": "high"},
            **_messages({**USER, "output_config": {"effort": "high"}}),
        },
        says="between_tools",
    ),
    Case(
        ("claude-sonnet-5-5", "tool_choice any|tool"),
        "anthropic",
        A,
        "claude-sonnet-5-5",
        {"tools": [tool(A)], "tool_choice": _FORCED},
        {"tools": [tool(A)], "tool_choice": {"type": "auto"}},
    ),
    Case(
        ("claude-sonnet-5-5", "tools computer_20251124|computer_20250124"),
        "anthropic",
        A,
        "claude-sonnet-5-5",
        {"tools": [{"type": "computer_20251124", "name": "computer"}]},
        says="does not support tool types",
    ),
    Case(
        ("claude-opus-5", "thinking.type=disabled"),
        "anthropic",
        A,
        "claude-opus-5",
        {"thinking": {"type": "disabled"}, "output_config": {"effort": "max"}},
        {"thinking": {"type": "disabled"}, "output_config": {"effort": "high"}},
        says="thinking.type.disabled",
    ),
    Case(
        ("claude-opus-5", "tools web_fetch_*, priority tier"),
        "anthropic",
        A,
        "claude-opus-5",
        {"tools": [{"type": "web_fetch_20250910", "name": "web_fetch"}]},
        says="does not support tool types",
    ),
    Case(
        ("claude-opus-5-5", "thinking.type=disabled"),
        "anthropic",
        A,
        "claude-opus-5-5",
        {"thinking": {"type": "disabled"}},
        {"thinking": {"type": "adaptive"}},
    ),
    Case(
        ("claude-opus-5-5", "tool_choice any|tool"),
        "anthropic",
        A,
        "claude-opus-5-5",
        {"tools": [tool(A)], "tool_choice": {"type": "any"}},
        {"tools": [tool(A)], "tool_choice": {"type": "auto"}},
    ),
    Case(
        ("claude-opus-5-5", "tools computer_20251124"),
        "anthropic",
        A,
        "claude-opus-5-5",
        {"tools": [{"type": "computer_20251124", "name": "computer"}]},
        says="does not support tool types",
    ),
    Case(
        ("claude fable/mythos 5, 5.1", "thinking.type=disabled"),
        "anthropic",
        A,
        "claude-fable-5",
        {"thinking": {"type": "disabled"}},
        says="is not supported for this model",
    ),
    Case(
        ("claude fable/mythos 5, 5.1", "tool_choice any|tool"),
        "anthropic",
        A,
        "claude-fable-5-1",
        {"tools": [tool(A)], "tool_choice": _FORCED},
        says='type "tool" and "any" are not supported',
    ),
    Case(
        ("claude on Bedrock / Vertex / gateways", "output_config.effort"),
        "bedrock",
        A,
        "us.anthropic.claude-opus-4-5-20251101-v1:0",
        {"output_config": {"effort": "high"}},
    ),
    Case(
        ("claude on Bedrock / Vertex / gateways", "context_management"),
        "vertex",
        A,
        "claude-opus-4-6@20260101",
        {"context_management": {}},
        headers={BETA: "context-management-2025-06-27"},
        says="Extra inputs are not permitted",
    ),
    Case(
        ("claude on Bedrock / Vertex / gateways", "header anthropic-beta"),
        "vertex",
        A,
        "claude-opus-4-6",
        {},
        headers={BETA: "a-2025-01-01,prompt-caching-scope-2026-01-05"},
        kept_headers={BETA: "a-2025-01-01"},
        says="prompt-caching-scope-2026-01-05",
    ),
    Case(
        ("claude on Bedrock / Vertex / gateways", "output_config.format, tools[].strict"),
        "bedrock",
        A,
        "anthropic.claude-haiku-5-5",
        _strict(_CLOSED),
        {"tools": [tool(A)]},
        says="Extra inputs are not permitted",
    ),
    # --- OpenAI
    Case(
        ("openai reasoning models", "max_tokens"),
        "openai",
        C,
        "gpt-5.5",
        {"max_tokens": 10},
        {"max_completion_tokens": 10},
    ),
    Case(
        ("openai reasoning models", "temperature|top_p"),
        "openai",
        C,
        "gpt-5.5",
        {"temperature": 0},
        {"temperature": 0, "reasoning_effort": "none"},
    ),
    Case(
        ("openai reasoning models", "temperature|top_p"),
        "openai",
        C,
        "gpt-5.4",
        {"temperature": 0, "reasoning_effort": "low"},
        {"temperature": 0},
    ),
    Case(
        ("openai reasoning models", "temperature|top_p"),
        "openai",
        C,
        "o3",
        {"presence_penalty": 0.5},
        {"presence_penalty": 0},
        says="'presence_penalty' is not supported",
    ),
    Case(
        ("openai reasoning models", "reasoning_effort (tools present and"),
        "openai",
        C,
        "gpt-5.6-sol",
        {"tools": [tool(C)], "reasoning_effort": "high"},
        {"tools": [tool(C)], "reasoning_effort": "none"},
    ),
    Case(
        ("openai reasoning models", "tools (gpt-6-astra"),
        "openai",
        C,
        "gpt-6-astra",
        {"tools": [tool(C)]},
        says="Please use /v1/responses",
    ),
    Case(
        ("openai reasoning models", "reasoning_effort (tools present, gpt-6"),
        "openai",
        C,
        "gpt-6-sol",
        {"tools": [tool(C)], "reasoning_effort": "low"},
        {"tools": [tool(C)], "reasoning_effort": "none"},
        says="Function tools with reasoning_effort are not supported",
    ),
    Case(
        ("openai reasoning models", "reasoning {..} object"),
        "openai",
        C,
        "gpt-5",
        {"reasoning": {"effort": "low"}},
        {"reasoning_effort": "low"},
        says="Unrecognized request argument supplied: reasoning",
    ),
    Case(
        ("openai reasoning models", "tools (> 128"),
        "openai",
        C,
        "gpt-5.2",
        {"tools": [tool(C, f"t{n}") for n in range(129)]},
        {"tools": [tool(C, f"t{n}") for n in range(128)]},
    ),
    Case(
        ("openai responses", "reasoning item id begins 'rs'"),
        "openai",
        R,
        "gpt-5.5",
        _input({**_REASONING, "id": "x1"}, _SAID),
        _input(_REASONING, _SAID),
        says="Expected an ID that begins with 'rs'",
    ),
    Case(
        ("openai responses", "reasoning item id begins 'rs'"),
        "openai",
        R,
        "gpt-5.5",
        _input({**_SAID, "id": "m" * 65}),
        _input({**_SAID, "id": "m" * 64}),
        says="string_above_max_length",
    ),
    Case(
        ("openai responses", "reasoning item directly followed"),
        "openai",
        R,
        "gpt-5.5",
        _input(_SAID, _REASONING, USER),
        _input(_REASONING, _SAID, USER),
        says="was provided without its required following item",
    ),
    Case(
        ("openai responses", "reasoning.content empty"),
        "openai",
        R,
        "gpt-5.5",
        _input({**_REASONING, "content": [{"type": "reasoning_text", "text": "x"}]}, _SAID),
        _input({**_REASONING, "content": []}, _SAID),
        says="Expected an array with maximum length 0",
    ),
    Case(
        ("openai responses", "every function_call"),
        "openai",
        R,
        "gpt-5.5",
        _input(_FC),
        _input(_FC, _FCO),
        says="No tool output found for function call c1",
    ),
    Case(
        ("openai responses", "every function_call"),
        "openai",
        R,
        "gpt-5.4",
        _input(_FCO),
        _input(_FC, _FCO),
        says="No tool call found for function call output",
    ),
    Case(
        ("openai responses", "input[type=reasoning].encrypted_content"),
        "openai",
        R,
        "gpt-5.5",
        {"input": _OTHER_GPT},
        {"input": _GPT},
    ),
    Case(
        ("openai responses", "temperature|top_p"),
        "openai",
        R,
        "gpt-5.5",
        {"temperature": 0.5},
        {"temperature": 0.5, "reasoning": _THINK_ONLY},
        says="'temperature' is not supported with this model",
    ),
    Case(
        ("openai responses", "temperature|top_p"),
        "openai",
        R,
        "gpt-5.5",
        {"include": ["message.output_text.logprobs"]},
        {"include": []},
        says="'include'",
    ),
    Case(
        ("openai responses", "reasoning.mode"),
        "openai",
        R,
        "gpt-5.5",
        {"reasoning": {"mode": "pro"}},
        {"model": "gpt-6-sol", "reasoning": {"mode": "pro"}},
        says="'reasoning.mode' is not supported",
    ),
    Case(
        ("openai responses", "reasoning.context=all_turns"),
        "openai",
        R,
        "gpt-5.2",
        {"reasoning": {"context": "all_turns"}},
        {"model": "gpt-5.5", "reasoning": {"context": "all_turns"}},
        says="'reasoning.context'",
    ),
    Case(
        ("openai responses", "input[type=configuration_update]"),
        "openai",
        R,
        "gpt-5.5",
        _input({"type": "configuration_update"}),
        {"model": "gpt-6-sol", **_input({"type": "configuration_update"})},
    ),
    Case(
        ("openai effort values", "reasoning_effort | reasoning.effort"),
        "openai",
        C,
        "o4-mini",
        {"reasoning_effort": "xhigh"},
        {"reasoning_effort": "high"},
    ),
    Case(
        ("openai effort values", "reasoning_effort | reasoning.effort"),
        "openai",
        R,
        "gpt-5.4",
        {"reasoning": {"effort": "max"}},
        {"reasoning": {"effort": "xhigh"}},
    ),
    Case(
        ("openai effort values", "reasoning_effort | reasoning.effort"),
        "openai",
        R,
        "gpt-6-astra",
        {"reasoning": {"effort": "none"}},
        {"reasoning": {"effort": "low"}},
    ),
    Case(
        ("openai effort values", "reasoning"),
        "openai",
        R,
        "gpt-4.1",
        {"reasoning": {"effort": "low"}},
    ),
    Case(
        ("codex tools elsewhere", "tools[type=custom]"),
        "gateway",
        R,
        "any",
        {"tools": [{"type": "custom", "name": "apply_patch"}]},
        {"tools": [tool(R)]},
    ),
    Case(
        ("codex tools elsewhere", "tools[type=web_search].search_content_types"),
        "gateway",
        R,
        "any",
        {"tools": [{"type": "web_search", "search_content_types": []}]},
    ),
    Case(
        ("codex tools elsewhere", "tools[type=namespace|web_search|tool_search]"),
        "gateway",
        R,
        "any",
        {"tools": [{"type": "namespace", "name": "n", "tools": []}]},
        says="not supported on this endpoint",
    ),
    # --- DeepSeek, GLM, Kimi
    Case(
        ("deepseek", "with tools: reasoning_content"),
        "deepseek",
        C,
        "deepseek-v4-pro",
        {"tools": [tool(C)], **_messages({"role": "assistant", "content": "a"}, USER)},
        {
            "tools": [tool(C)],
            **_messages({"role": "assistant", "content": "a", "reasoning_content": ""}, USER),
        },
        says="must be passed back to the API",
    ),
    Case(
        ("deepseek", "messages[assistant].reasoning_content missing"),
        "deepseek",
        C,
        "deepseek-flash",
        {"tools": [tool(C)], **_messages(_call("a"), _output("a"))},
        {
            "tools": [tool(C)],
            "thinking": {"type": "disabled"},
            **_messages(_call("a"), _output("a")),
        },
    ),
    Case(
        ("deepseek", "tool_choice=required"),
        "deepseek",
        C,
        "deepseek-flash",
        {"tools": [tool(C)], "tool_choice": "required"},
        {"tools": [tool(C)], "tool_choice": "auto"},
    ),
    Case(
        ("deepseek", "tools[].function.strict"),
        "deepseek",
        C,
        "deepseek-flash",
        {"tools": [tool(C, strict=True)]},
        {"tools": [tool(C, strict=True)]},
        kept_path="/beta/chat/completions",
        says="strict",
    ),
    Case(
        ("deepseek", "tools[].function.strict"),
        "deepseek",
        C,
        "deepseek-flash",
        {"tools": [tool(C, strict=True), tool(C, "b")]},
        {"tools": [tool(C, strict=True), tool(C, "b", strict=True)]},
        path="/beta/chat/completions",
        says="strict",
    ),
    Case(
        ("deepseek", "content image"),
        "deepseek",
        C,
        "deepseek-v4-pro",
        _image(),
        {"model": "deepseek-flash", **_image()},
        says="unknown variant `image_url`",
    ),
    Case(
        ("glm-5.3", "thinking.type=disabled"),
        "glm",
        C,
        "glm-5.3",
        {"thinking": {"type": "disabled"}},
        {"thinking": {"type": "enabled"}},
    ),
    Case(
        ("glm-5.3", "reasoning_effort"),
        "glm",
        C,
        "glm-5.3",
        {"reasoning_effort": "medium"},
        {"reasoning_effort": "high"},
        says="reasoning_effort",
    ),
    Case(
        ("glm-5.3", "max_tokens"),
        "glm",
        C,
        "glm-5.3",
        {"max_tokens": 131073},
        {"max_tokens": 131072},
    ),
    Case(("glm-5.3", "content image"), "glm", C, "glm-5.3", _image(), says="must be text"),
    Case(
        ("glm-4.5 .. 5.2", "thinking + reasoning_effort together"),
        "opencode_go",
        C,
        "glm-5.2",
        {"thinking": {"type": "enabled"}, "reasoning_effort": "high"},
        {"thinking": {"type": "enabled"}},
    ),
    Case(
        ("glm-4.5 .. 5.2", "tool_stream"),
        "glm",
        C,
        "glm-4.5-air",
        {"tool_stream": True},
        says="tool_stream",
    ),
    Case(
        ("glm-4.5 .. 5.2", "developer role, store"),
        "glm",
        C,
        "glm-5.1",
        {"messages": [{"role": "developer", "content": "x"}, USER]},
        {"messages": [{"role": "system", "content": "x"}, USER]},
        says="role",
    ),
    Case(
        ("glm-4.5 .. 5.2", "developer role, store"),
        "glm",
        C,
        "glm-5.1",
        {"store": False},
        says="store",
    ),
    Case(
        ("glm-4.5 .. 5.2", "developer role, store"),
        "glm",
        C,
        "glm-5.1",
        {"reasoning_effort": "high"},
        {"model": "glm-5.2", "reasoning_effort": "high"},
        says="reasoning_effort",
    ),
    Case(
        ("kimi-k3", "whole assistant message"),
        "kimi",
        C,
        "kimi-k3",
        _messages(_call("a"), _output("a")),
        _messages({**_call("a"), "reasoning_content": "x"}, _output("a")),
        says="reasoning_content is missing",
    ),
    Case(("kimi-k3", "temperature"), "kimi", C, "kimi-k3", {"temperature": 0}, {"temperature": 1}),
    Case(("kimi-k3", "top_p, n"), "kimi", C, "kimi-k3", {"n": 2}, {"n": 1}, says="invalid n"),
    Case(
        ("kimi-k3", "top_p, n"),
        "kimi",
        C,
        "kimi-k3",
        {"top_p": 0.5},
        {"top_p": 0.95},
        says="invalid top_p",
    ),
    Case(
        ("kimi-k3", "top_p, n"),
        "kimi",
        C,
        "kimi-k3",
        {"presence_penalty": 1},
        {"presence_penalty": 0},
        says="invalid presence_penalty",
    ),
    Case(
        ("kimi-k3", "tool_choice named|required"),
        "kimi",
        C,
        "kimi-k3",
        {"tools": [tool(C)], "tool_choice": _NAMED},
        {"tools": [tool(C)], "tool_choice": "auto"},
    ),
    Case(
        ("kimi-k3", "reasoning_effort"),
        "kimi",
        C,
        "kimi-k3",
        {"reasoning_effort": "xhigh"},
        {"reasoning_effort": "max"},
        says="invalid reasoning_effort",
    ),
    Case(
        ("kimi-k3", "stop"),
        "kimi",
        C,
        "kimi-k3",
        {"stop": list("abcdef")},
        {"stop": list("abcde")},
        says="invalid stop",
    ),
    Case(
        ("kimi-k3", "stop"),
        "kimi",
        C,
        "kimi-k3",
        {"stop": ["x" * 33]},
        {"stop": ["x" * 32]},
        says="invalid stop",
    ),
    Case(
        ("kimi-k2.x", "messages[assistant with tool_calls]"),
        "kimi",
        C,
        "kimi-k2.6",
        _messages(_call("a"), _output("a")),
        {"thinking": {"type": "disabled"}, **_messages(_call("a"), _output("a"))},
    ),
    Case(
        ("kimi-k2.x", "thinking.type=disabled"),
        "kimi",
        C,
        "kimi-k2.7-code",
        {"thinking": {"type": "disabled"}},
        {"thinking": {"type": "enabled"}},
    ),
    Case(
        ("kimi-k2.x", "thinking + reasoning_effort together"),
        "kimi",
        C,
        "kimi-k2.5",
        {"thinking": {"type": "enabled"}, "reasoning_effort": "high"},
        {"reasoning_effort": "high"},
    ),
    Case(
        ("kimi-k2.x", "tool_choice"),
        "kimi",
        C,
        "kimi-k2.7-code",
        {"tools": [tool(C)], "tool_choice": "required"},
        {"tools": [tool(C)], "tool_choice": "none"},
        says="incompatible with thinking enabled",
    ),
    Case(
        ("kimi-k2.x", "temperature (1 thinking"),
        "kimi",
        C,
        "kimi-k2.6",
        {"temperature": 0.6},
        {"temperature": 0.6, "thinking": {"type": "disabled"}},
    ),
    Case(
        ("kimi-k2.x", "temperature (1 thinking"),
        "kimi",
        C,
        "kimi-k2.6",
        {"temperature": 1, "thinking": {"type": "disabled"}},
        {"temperature": 1},
        says="invalid temperature: only 0.6",
    ),
    Case(
        ("kimi-k2.x", "tools[].function.strict"),
        "kimi",
        C,
        "kimi-k2.6",
        {"tools": [tool(C, strict=True)]},
        {"tools": [tool(C)]},
        says="strict",
    ),
    # --- Qwen, Gemini, Mistral, Grok, MiniMax
    Case(
        ("qwen on DashScope", "tool_choice required|object"),
        "qwen",
        C,
        "qwen3.8-flash",
        {"tools": [tool(C)], "tool_choice": _NAMED},
        {"tools": [tool(C)], "tool_choice": _NAMED, "enable_thinking": False},
    ),
    Case(
        ("qwen on DashScope", "content type=file"),
        "qwen",
        C,
        "qwen3-max",
        _image("file"),
        says="file",
    ),
    Case(
        ("qwen on DashScope", "max_tokens"),
        "qwen",
        C,
        "qwen3-max",
        {"max_tokens": 70000},
        {"max_tokens": 8000},
    ),
    Case(
        ("gemini 3.x via OpenAI-compatible endpoint", "tool_calls[].extra_content"),
        "gemini",
        C,
        "gemini-3.1-pro",
        _messages(_call("a"), _output("a")),
        _messages(
            _call(
                "a",
                extra_content={"google": {"thought_signature": "skip_thought_signature_validator"}},
            ),
            _output("a"),
        ),
        says="missing a thought_signature",
    ),
    Case(
        ("gemini 3.x via OpenAI-compatible endpoint", "tool_calls without"),
        "gemini",
        C,
        "google/gemini-3.5-flash",
        _messages(
            _call("a", extra_content={"google": {"thought_signature": "bm8="}}), _output("a")
        ),
        _messages(
            _call(
                "a",
                extra_content={"google": {"thought_signature": "skip_thought_signature_validator"}},
            ),
            _output("a"),
        ),
    ),
    Case(
        ("gemini 3.x via OpenAI-compatible endpoint", "thinking_level=minimal"),
        "gemini",
        C,
        "gemini-3.8-flash",
        _google(**_LEVEL),
        _google(thinking_level="low"),
        says="Thinking level MINIMAL is not supported for this model",
    ),
    Case(
        ("gemini 3.x via OpenAI-compatible endpoint", "thinking_level + thinking_budget"),
        "gemini",
        C,
        "gemini-3.5-flash",
        _google(thinking_level="low", thinking_budget=10),
        _google(thinking_level="low"),
        says="thinking budget",
    ),
    Case(
        ("mistral", "tool call id exactly 9"),
        "mistral",
        C,
        "devstral-2",
        _messages(_call("call_1"), _output("call_1")),
        _messages(_call("abcdefghi"), _output("abcdefghi")),
        says="with a length of 9",
    ),
    Case(
        ("mistral", "after role=tool"),
        "mistral",
        C,
        "devstral-2",
        _messages(
            _call("abcdefghi"), _output("abcdefghi"), {"role": "system", "content": "x"}, USER
        ),
        _messages(
            _call("abcdefghi"), _output("abcdefghi"), {"role": "assistant", "content": "ok"}, USER
        ),
        says="Unexpected role 'system' after role 'tool'",
    ),
    Case(
        ("mistral", "last message user or tool"),
        "mistral",
        C,
        "devstral-2",
        _messages({"role": "assistant", "content": "I"}),
        _messages({"role": "assistant", "content": "I", "prefix": True}),
        says="Expected last role User or Tool",
    ),
    Case(
        ("mistral", "messages order tool->user"),
        "mistral",
        C,
        "codestral-2508",
        _messages(_call("abcdefghi"), _output("abcdefghi"), USER),
        _messages(_call("abcdefghi"), _output("abcdefghi")),
        says="3230",
    ),
    Case(
        ("mistral", "reasoning_effort"),
        "mistral",
        C,
        "mistral-medium-2604",
        {"reasoning_effort": "low"},
        {"reasoning_effort": "high"},
        says="reasoning_effort",
    ),
    Case(
        ("mistral", "reasoning_effort"),
        "mistral",
        C,
        "codestral-2508",
        {"reasoning_effort": "high"},
        says="reasoning_effort",
    ),
    Case(("grok", "stop, presence_penalty"), "grok", C, "grok-4.7", {"presence_penalty": 0.1}),
    Case(
        ("grok", "stop, presence_penalty"),
        "grok",
        C,
        "grok-4.7",
        {"stop": ["x"]},
        says="Argument not supported on this model: stop",
    ),
    Case(
        ("grok", "reasoning_effort=none"),
        "grok",
        C,
        "grok-4.7",
        {"reasoning_effort": "none"},
        {"reasoning_effort": "low"},
        says="reasoning is mandatory",
    ),
    Case(
        ("grok", "reasoning_effort"),
        "grok",
        R,
        "grok-4-1-fast-non-reasoning",
        {"reasoning": {"effort": "low"}},
    ),
    Case(
        ("minimax", "tool results directly"),
        "minimax",
        C,
        "MiniMax-M3",
        _messages(_call("a"), USER, _output("a")),
        _messages(_call("a"), _output("a"), USER),
        says="tool call result does not follow tool call",
    ),
    Case(
        ("minimax", "messages order"),
        "minimax",
        C,
        "MiniMax-M2.7",
        _messages(_output("a")),
        _messages(_call("a"), _output("a")),
    ),
    Case(
        ("minimax", "max_tokens"),
        "minimax",
        C,
        "MiniMax-M3",
        {"max_tokens": 10},
        {"max_completion_tokens": 10},
        says="max_completion_tokens",
    ),
    # --- hosts
    Case(("vllm / sglang", "<unknown fields>"), "vllm", C, "any", {"prompt_cache_key": "x"}),
    Case(
        ("vllm / sglang", "reasoning_effort"),
        "sglang",
        C,
        "any",
        {"reasoning_effort": "max"},
        {"reasoning_effort": "high"},
    ),
    Case(
        ("vllm / sglang", "function_call.status"),
        "vllm",
        R,
        "any",
        _input({**_FC, "status": "completed"}, _FCO),
        _input({**_FC, "status": None}, _FCO),
        says="status",
    ),
    Case(
        ("vllm / sglang", "more than one leading"),
        "vllm",
        C,
        "any",
        {
            "messages": [
                {"role": "system", "content": "a"},
                {"role": "system", "content": "b"},
                USER,
            ]
        },
        {"messages": [{"role": "system", "content": "a"}, USER]},
        says="System message",
    ),
    Case(
        ("lm studio", "response_format.type=json_object"),
        "lmstudio",
        C,
        "any",
        {"response_format": {"type": "json_object"}},
        {"response_format": {"type": "text"}},
    ),
    Case(
        ("openrouter", "reasoning none|disabled"),
        "openrouter",
        C,
        "x-ai/grok-4.7",
        {"reasoning": {"effort": "none"}},
        {"reasoning": {"effort": "low"}},
    ),
    Case(
        ("openrouter", "reasoning none|disabled"),
        "openrouter",
        C,
        "openai/gpt-6-astra",
        {"reasoning": {"enabled": False}},
        {"reasoning": {"enabled": True}},
    ),
    Case(
        ("openrouter", "reasoning.effort + reasoning.max_tokens"),
        "openrouter",
        C,
        "a/b",
        {"reasoning": {"effort": "low", "max_tokens": 9}},
        {"reasoning": {"effort": "low"}},
        says="Only one of",
    ),
)

#: Rules that no strict provider has, and why.
LEFT_OUT = {
    ("claude fable/mythos 5, 5.1", "<any request>"): "about the account and not the request",
    ("deepseek", "no tool calls it did not make"): (
        "no source tells the answer, and nothing in a request says who made a call"
    ),
    ("kimi-k3", "thinking"): "the source does not know whether it is refused or ignored",
    ("gemini 3.x via OpenAI-compatible endpoint", "reasoning_effort=none"): (
        "the source does not know whether it is refused or coerced"
    ),
    ("gemini 3.x via OpenAI-compatible endpoint", "parallel calls grouped"): (
        "Chat Completions cannot say anything else"
    ),
    ("minimax", "assistant message kept whole"): "advice for quality; nothing is refused",
    ("openrouter", "max_tokens"): "about the balance of the account",
}
