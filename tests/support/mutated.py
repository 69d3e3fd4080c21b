"""Rich valid bodies of the three wire formats, and the same with nodes that became anything."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from random import Random
from typing import Any

from hypothesis import strategies as st

from switchyard_core.declarations import WireFormat
from tests.support.strategies import VALUES

__all__ = ["BODIES", "broken_bodies", "broken_body", "nodes", "put"]

Place = tuple[str | int, ...]

_MARK = {"type": "ephemeral"}
_SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
_PATCH = "*** Begin Patch\n*** Add File: b.py\n+x\n*** End Patch"
_PNG = "data:image/png;base64,iVBORw0KGgo="

_CHAT: dict[str, Any] = {
    "model": "switchyard/auto",
    "max_completion_tokens": 64000,
    "temperature": 0.5,
    "reasoning_effort": "high",
    "stream": False,
    "stream_options": {"include_usage": True},
    "metadata": {"session_id": "s", "user_id": {"session_id": "s"}},
    "prompt_cache_key": "key",
    "user": "u",
    "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": _SCHEMA}},
    "tools": [
        {"type": "function", "function": {"name": "read", "parameters": _SCHEMA, "strict": True}},
        {"type": "custom", "custom": {"name": "apply_patch"}},
    ],
    "tool_choice": {"type": "function", "function": {"name": "read"}},
    "messages": [
        {"role": "system", "content": "You are an agent."},
        {"role": "developer", "content": [{"type": "text", "text": "Be brief."}]},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "Look at this."},
                {"type": "image_url", "image_url": {"url": _PNG, "detail": "low"}},
                {"type": "file", "file": {"file_id": "file_1"}},
            ],
        },
        {
            "role": "assistant",
            "content": "I look.",
            "reasoning_content": "first I read",
            "reasoning_details": [{"type": "reasoning.text", "text": "first I read"}],
            "tool_calls": [
                {
                    "id": "call_" + "x" * 40,
                    "type": "function",
                    "function": {"name": "read", "arguments": '{"path": "a.py"}'},
                    "extra_content": {"google": {"thought_signature": "sig"}},
                },
                {"id": "c2", "type": "custom", "custom": {"name": "apply_patch", "input": _PATCH}},
            ],
        },
        {"role": "tool", "tool_call_id": "call_" + "x" * 40, "content": "print(1)"},
        {"role": "tool", "tool_call_id": "c2", "content": [{"type": "text", "text": " "}]},
        {"role": "assistant", "content": None, "function_call": {"name": "w", "arguments": "{}"}},
        {"role": "function", "name": "w", "content": ""},
        {"role": "assistant", "content": ""},
        {"role": "user", "content": " "},
        {"role": "assistant", "content": "Done.", "thinking_blocks": [{"signature": "s"}]},
        {"role": "user", "content": "Go on."},
    ],
}

_RESPONSES: dict[str, Any] = {
    "model": "switchyard/auto",
    "instructions": "You are an agent.",
    "max_output_tokens": 64000,
    "reasoning": {"effort": "high", "summary": "auto"},
    "include": ["reasoning.encrypted_content"],
    "metadata": {"session_id": "s"},
    "client_metadata": {"session_id": "s", "turn": {"kind": "compact"}},
    "prompt_cache_key": "key",
    "text": {"format": {"type": "json_schema", "name": "x", "schema": _SCHEMA}},
    "previous_response_id": "resp_1",
    "tools": [
        {"type": "function", "name": "read", "parameters": _SCHEMA, "strict": True},
        {"type": "namespace", "name": "n", "tools": [{"type": "function", "name": "deep"}]},
        {"type": "web_search"},
    ],
    "input": [
        {"type": "message", "role": "developer", "content": "Be brief."},
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "Look at this."},
                {"type": "input_image", "image_url": _PNG},
                {"type": "input_file", "file_id": "file_1"},
            ],
        },
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": "first I read"}],
            "encrypted_content": "EEE",
        },
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": [
                {
                    "type": "output_text",
                    "text": "I look.",
                    "annotations": [{"type": "file_citation", "file_id": "f"}],
                }
            ],
        },
        {
            "type": "function_call",
            "id": "fc_1",
            "call_id": "call_" + "x" * 64,
            "name": "read",
            "arguments": '{"path": "a.py"}',
        },
        {"type": "function_call_output", "call_id": "call_" + "x" * 64, "output": "print(1)"},
        {
            "type": "custom_tool_call",
            "id": "ct",
            "call_id": "c2",
            "name": "apply_patch",
            "input": _PATCH,
        },
        {"type": "custom_tool_call_output", "call_id": "c2", "output": ""},
        {"type": "mcp_call", "id": "mcp_1", "name": "m", "arguments": "{}", "output": "o"},
        {"type": "local_shell_call", "id": "ls", "call_id": "c3", "action": {"command": ["ls"]}},
        {"type": "local_shell_call_output", "id": "ls", "output": "a.py"},
        {"type": "shell_call", "call_id": "c4", "action": {"commands": ["ls"]}},
        {"type": "compaction", "encrypted_content": "EEE"},
        {"id": "item_1"},
        {"role": "user", "content": [{"type": "input_text", "text": ""}]},
        {"role": "assistant", "content": []},
        {"role": "assistant", "content": "Done."},
        {"role": "user", "content": "Go on."},
    ],
}

_MESSAGES: dict[str, Any] = {
    "model": "switchyard/auto",
    "max_tokens": 64000,
    "temperature": 1,
    "thinking": {"type": "enabled", "budget_tokens": 8000},
    "output_config": {"effort": "high"},
    "context_management": {"edits": [{"type": "clear_thinking_20251015"}]},
    "container": "ctr_1",
    "metadata": {"user_id": '{"session_id": "s", "device_id": "d"}'},
    "system": [
        {"type": "text", "text": "You are an agent.", "cache_control": _MARK},
        {"type": "text", "text": "Be brief.", "cache_control": _MARK},
    ],
    "tools": [
        {"name": "read", "input_schema": _SCHEMA, "cache_control": _MARK},
        {"type": "web_search_20250305", "name": "web_search", "max_uses": 3},
    ],
    "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
    "messages": [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "Look at this.", "cache_control": _MARK},
                {"type": "image", "source": {"type": "file", "file_id": "file_1"}},
                {"type": "image", "source": {"type": "url", "url": "https://x/y.png"}},
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "first I read", "signature": "s"},
                {"type": "redacted_thinking", "data": "d"},
                {"type": "text", "text": "I look.", "citations": [{"file_id": "f"}]},
                {"type": "server_tool_use", "id": "srvtoolu_1", "name": "s", "input": {}},
                {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
                {"type": "tool_use", "id": "call.1", "name": "read", "input": {"path": "a.py"}},
                {"type": "tool_use", "id": "t2", "name": "Write", "input": {"file_path": "b.py"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "call.1",
                    "content": [{"type": "text", "text": "print(1)", "cache_control": _MARK}],
                },
                {"type": "tool_result", "tool_use_id": "t2", "content": "", "is_error": False},
                {"type": "text", "text": " ", "cache_control": _MARK},
            ],
        },
        {"role": "system", "content": [], "output_config": {"effort": "low"}},
        {"role": "assistant", "content": ""},
        {"role": "assistant", "content": [{"type": "compaction", "content": "so far"}]},
        {"role": "user", "content": "And now?"},
        {"role": "system", "content": "Use tests."},
        {"role": "assistant", "content": "Done."},
        {"role": "user", "content": [{"type": "text", "text": "Go on.", "cache_control": _MARK}]},
    ],
}

_PLAIN: dict[WireFormat, dict[str, Any]] = {
    "openai_chat": {
        "model": "switchyard/auto",
        "messages": [
            {"role": "user", "content": "a"},
            {"role": "assistant", "content": "b"},
            {"role": "user", "content": "c"},
        ],
    },
    "openai_responses": {"model": "switchyard/auto", "input": "a", "instructions": "b"},
    "anthropic_messages": {
        "model": "switchyard/auto",
        "max_tokens": 100,
        "system": "be",
        "messages": [
            {"role": "user", "content": "a"},
            {"role": "assistant", "content": "b"},
            {"role": "user", "content": "c"},
        ],
    },
}

#: A body with nearly all that the format has, and a plain one, of each wire format.
BODIES: dict[WireFormat, tuple[dict[str, Any], ...]] = {
    "openai_chat": (_CHAT, _PLAIN["openai_chat"]),
    "openai_responses": (_RESPONSES, _PLAIN["openai_responses"]),
    "anthropic_messages": (_MESSAGES, _PLAIN["anthropic_messages"]),
}

_TYPES: tuple[Any, ...] = (
    *("", " ", "x", [], {}, [[]], [None], ["x"], [5], [{}], None, True, False),
    *(0, -1, 5, 123, 1.5, {"type": "text"}, {"type": "text", "text": 5}, {"x": {"y": [1]}}),
    [{"type": "text", "text": ""}],
    [{"type": "tool_result", "tool_use_id": 7, "content": {"a": 1}}],
)


def nodes(value: Any, place: Place = ()) -> Iterator[Place]:
    """Yield the place of every node inside a value."""
    children: Any = ()
    if isinstance(value, dict):
        children = value.items()
    elif isinstance(value, list):
        children = enumerate(value)
    for key, inner in children:
        yield (*place, key)
        yield from nodes(inner, (*place, key))


def put(body: Any, place: Place, value: Any) -> None:
    """Replace the node at a place."""
    *way, last = place
    for key in way:
        body = body[key]
    body[last] = value


_PLAIN_VALUES = tuple(json.dumps(value) for value in _TYPES)
#: Each body as JSON, with the places of its nodes.
_TEXTS = {
    wire_format: [(json.dumps(body), list(nodes(body))) for body in bodies]
    for wire_format, bodies in BODIES.items()
}


@st.composite
def broken_bodies(draw: st.DrawFn, most: int = 1) -> tuple[WireFormat, bytes, bytes]:
    """Wire format, a valid body, and the same with up to ``most`` nodes that became anything."""
    # One draw instead of ten: there is little to shrink, and tens of thousands are made.
    chance = Random(draw(st.integers(0, 2**48)))  # no secrets
    wire_format = chance.choice(sorted(BODIES))
    text, places = chance.choice(_TEXTS[wire_format])
    body, values = json.loads(text), {}
    for number in range(most):
        mark = f"@node-{number}@"
        # Values that hypothesis makes are dear, and rarely find what the plain ones do not.
        values[mark] = draw(VALUES) if chance.random() < 0.1 else chance.choice(_PLAIN_VALUES)
        # An earlier one may have taken the place of what held it.
        with suppress(KeyError, IndexError, TypeError):
            put(body, chance.choice(places), mark)
    data = json.dumps(body)
    for mark, value in values.items():
        data = data.replace(f'"{mark}"', value)
    return wire_format, text.encode(), data.encode("utf-8", "surrogatepass")


def broken_body(bodies: Sequence[bytes], number: int) -> bytes:
    """Return one of some bodies with one node that became anything plain."""
    chance = Random(number)  # no secrets
    body = json.loads(chance.choice(bodies))
    place = chance.choice(list(nodes(body)))
    put(body, place, json.loads(chance.choice(_PLAIN_VALUES)))
    return json.dumps(body).encode("utf-8", "surrogatepass")
