"""Reading Messages requests as neutral ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from switchyard_core.errors import BodyError
from switchyard_core.jsonio.tree import ObjectText
from switchyard_core.wire import FORMATS
from switchyard_core.wire.neutral import (
    AskedTool,
    Call,
    Choice,
    NeutralRequest,
    Result,
    Schema,
    Thought,
    ToolName,
    Turn,
    Words,
)

MESSAGES = FORMATS["anthropic_messages"]
CAPTURES = Path(__file__).parents[2] / "data" / "captures"
MARK = {"type": "ephemeral"}
RAW_MARK = b'{"type": "ephemeral"}'


def captured() -> dict[str, dict[str, Any]]:
    """Return the bodies of all captured Messages requests."""
    found = {}
    for path in sorted(CAPTURES.glob("*.json")):
        request = json.loads(path.read_text("utf-8"))["request"]
        if request["path"].endswith("/messages"):
            found[path.stem] = request["body"]
    return found


def read(body: Any, **more: Any) -> NeutralRequest:
    raw = body if isinstance(body, bytes) else json.dumps({"messages": [], **body, **more}).encode()
    fields = ObjectText(raw)
    request = MESSAGES.neutral(fields)
    assert (fields.dump(), fields.changed) == (raw, False)
    return request


def test_captured_requests_lose_nothing_and_name_what_has_no_counterpart() -> None:
    opaque = "left out the opaque form of 1 thinking blocks"
    told = {name: read(body).told for name, body in captured().items()}
    assert [name for name, each in told.items() if each.lost] == []
    claude = [
        "left out the instruction to the provider of the client",
        "left out metadata.user_id, longer than 64 characters",
    ]
    assert {name: each.lines for name, each in told.items()} == {
        "claude-1": [*claude, opaque],
        **{f"claude-{number}": claude for number in range(2, 8)},
        "opencode-4": ["left out eager_input_streaming of 10 tools", opaque],
        "pi-3": [
            "made the effort medium of a thinking budget of 6976 tokens",
            "left out eager_input_streaming of 4 tools",
            "left out thinking.display",
            opaque,
        ],
        "pydantic-ai-3": [opaque],
    }


def test_claude_codes_request_is_read_whole() -> None:
    request = read(captured()["claude-1"])
    identity, prompt = request.instructions
    assert (identity.cache, prompt.cache) == (RAW_MARK, RAW_MARK)
    roles = [turn.role for turn in request.turns]
    assert roles == ["user", "system", *["assistant", "tool"] * 3]
    thought, words, call = request.turns[2].parts
    assert thought == Thought(text="Look first.")
    assert words == Words(text="I will look.")
    assert call == Call(
        id="toolu_call_0002_0",
        tool=ToolName(name="Read"),
        arguments='{"file_path": "/repo/calc.py"}',
    )
    (failed,) = request.turns[5].parts
    assert isinstance(failed, Result)
    assert failed.failed
    assert [tool.tool.name for tool in request.tools][:2] == ["Agent", "Bash"]
    assert (request.effort, request.limit, request.stream) == ("high", 32000, True)


#: Members of a body, and what they are read as.
SAID: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"system": "Be kind."}, {"instructions": (Words(text="Be kind."),)}),
    ({"system": " \n"}, {"instructions": ()}),
    (
        {"system": [{"type": "text", "text": "a", "cache_control": MARK}, {"type": "text"}]},
        {"instructions": (Words(text="a", cache=RAW_MARK),)},
    ),
    ({"tool_choice": {"type": "auto"}}, {"choice": Choice(mode="auto"), "parallel": None}),
    ({"tool_choice": {"type": "none"}}, {"choice": Choice(mode="none")}),
    (
        {"tool_choice": {"type": "any", "disable_parallel_tool_use": True}},
        {"choice": Choice(mode="required"), "parallel": False},
    ),
    (
        {"tool_choice": {"type": "tool", "name": "read"}},
        {"choice": Choice(mode="required", allowed=(ToolName(name="read"),))},
    ),
    ({"tool_choice": {"type": "tool", "name": "web_search"}}, {"choice": Choice(mode="none")}),
    ({"output_config": {"effort": "xhigh"}}, {"effort": "xhigh"}),
    ({"thinking": {"type": "adaptive"}}, {"effort": ""}),
    ({"thinking": {"type": "disabled"}, "output_config": {"effort": "high"}}, {"effort": "none"}),
    ({"thinking": {"type": "between_tools"}}, {"effort": "none"}),
    ({"thinking": {"type": "enabled", "budget_tokens": 1024}}, {"effort": "minimal"}),
    ({"thinking": {"type": "enabled", "budget_tokens": 2048}}, {"effort": "low"}),
    ({"thinking": {"type": "enabled", "budget_tokens": 31999}}, {"effort": "high"}),
    (
        {"thinking": {"type": "enabled", "budget_tokens": 9}, "output_config": {"effort": "max"}},
        {"effort": "max"},
    ),
    (
        {"output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}}},
        {"schema": Schema(schema=b'{"type": "object"}')},
    ),
    (
        {"output_format": {"type": "json_schema", "schema": {"n": 1.10}}},
        {"schema": Schema(schema=b'{"n": 1.1}')},
    ),
    ({"max_tokens": 7}, {"limit": 7}),
    ({"stop_sequences": ["END", "\n"]}, {"stop": ("END", "\n")}),
    ({"stream": False}, {"stream": False}),
    (
        {"temperature": 0.5, "top_p": 1, "top_k": 3},
        {"settings": {"temperature": b"0.5", "top_p": b"1", "top_k": b"3"}},
    ),
    ({"metadata": {"user_id": "é"}}, {"settings": {"user": b'"\\u00e9"'}}),
    ({"service_tier": "standard_only"}, {"settings": {"service_tier": b'"default"'}}),
]


def test_settings_are_read_in_neutral_words() -> None:
    wrong = []
    for members, expected in SAID:
        request = read({"tools": [{"name": "read"}]}, **members)
        found = {key: getattr(request, key) for key in expected}
        if found != expected:
            wrong.append((members, found))
    assert wrong == []


#: Members that nobody else has, and how they are named.
LEFT_OUT: list[tuple[dict[str, Any], list[str]]] = [
    ({"context_management": {"edits": [{"type": "clear_thinking_20251015"}]}}, []),
    (
        {"context_management": {"edits": [{"type": "compact_20260112"}, 3], "more": 1}},
        ["the context edit compact_20260112", "the context edit edits[1]",
         "context_management.more"],
    ),
    ({"betas": ["a"], "inference_geo": "us", "cache_control": MARK},
     ["`betas`", "`inference_geo`", "`cache_control`"]),
    ({"betas": [], "speed": None}, []),
    ({"output_config": {"task_budget": {"type": "tokens"}}}, ["output_config.task_budget"]),
    ({"metadata": {"user_id": "u", "team": "x"}}, ["metadata.team"]),
    ({"metadata": {"user_id": 7}}, ["metadata.user_id"]),
    ({"service_tier": "flexible"}, ["the service tier `flexible`"]),
    ({"thinking": {"type": "adaptive", "display": "omitted"}}, ["thinking.display"]),
    ({"max_tokens": 1.5}, ["`max_tokens`, which is not a whole number above 0"]),
    ({"max_tokens": "7"}, ["`max_tokens`, which has the wrong type (string)"]),
    ({"temperature": "hot"}, ["`temperature`, which has the wrong type (string)"]),
    ({"stop_sequences": ["END", 3]}, ["`stop_sequences` that are not texts"]),
    ({"system": {"text": "x"}}, ["`system`, which has the wrong type (object)"]),
    ({"tools": {"name": "x"}}, ["`tools`, which has the wrong type (object)"]),
    (
        {"output_config": {"format": {"type": "grammar"}}},
        ["the format of the answer, which is not a JSON schema"],
    ),
    (
        {"tools": [{"name": "a", "defer_loading": True}, {"name": "b", "input_examples": [{}]},
                   {"name": "c", "defer_loading": True}]},
        ["defer_loading of 2 tools", "input_examples of a tool"],
    ),
]  # fmt: skip


def test_what_has_no_counterpart_is_named() -> None:
    wrong = []
    for members, expected in LEFT_OUT:
        told = read({}, **members).told
        if (told.left_out, told.lost) != (expected, []):
            wrong.append((members, told))
    assert wrong == []


#: Members that only the caller's provider can serve.
LOST: list[tuple[dict[str, Any], list[str]]] = [
    ({"container": "container_1"}, ["`container`"]),
    ({"mcp_servers": [{"name": "docs"}]}, ["`mcp_servers`"]),
    ({"thread": {"type": "continue", "previous_message_id": "msg_1"}}, ["`thread`"]),
    (
        {"tools": [{"type": "web_search_20250305", "name": "web_search"},
                   {"type": "bash_20250124", "name": "bash"}, {"type": "custom", "name": "own"},
                   {"type": "mcp_toolset", "mcp_server_name": "docs"}, {"input_schema": {}}, 7]},
        ["tool `web_search` (web_search_20250305)", "tool `bash` (bash_20250124)",
         "tools[3] (mcp_toolset)", "tools[4]", "tools[5]"],
    ),
    (
        {"tools": [{"name": "by_code", "allowed_callers": ["code_execution_20250825"]},
                   {"name": "both", "allowed_callers": ["direct", "code_execution_20250825"]}]},
        ["tool `by_code`"],
    ),
    ({"tool_choice": {"type": "tool", "name": "gone"}}, ["the choice of the tool `gone`"]),
    ({"messages": [{"role": "tool", "content": "x"}, 3]},
     ["messages[0], which has no role of Messages", "messages[1], which has no role of Messages"]),
]  # fmt: skip


def test_what_only_the_callers_provider_can_serve_is_lost_by_name() -> None:
    wrong = []
    for members, expected in LOST:
        told = read({}, **members).told
        if told.lost != expected:
            wrong.append((members, told.lost))
    assert wrong == []


def test_tools_are_read_with_raw_schema_strictness_and_mark() -> None:
    body = (
        b'{"messages":[],"tools":[{"name":"read","description":"Reads.","strict":true,'
        b'"input_schema":{"n":1.10},"cache_control":{"type":"ephemeral"}},{"name":"b"}]}'
    )
    assert read(body).tools == (
        AskedTool(
            tool=ToolName(name="read"),
            description="Reads.",
            parameters=b'{"n":1.10}',
            strict=True,
            cache=b'{"type":"ephemeral"}',
        ),
        AskedTool(tool=ToolName(name="b")),
    )


def test_results_of_neighbouring_messages_come_first() -> None:
    used = [{"type": "tool_use", "id": name, "name": "read", "input": {}} for name in "ab"]
    results = [{"type": "tool_result", "tool_use_id": name, "content": name} for name in "ab"]
    request = read(
        {
            "messages": [
                {"role": "user", "content": "go"},
                {"role": "assistant", "content": "I look."},
                {"role": "assistant", "content": used},
                {"role": "user", "content": [{"type": "text", "text": "so"}, results[0]]},
                {"role": "user", "content": [results[1]]},
                {"role": "system", "content": "one"},
                {"role": "system", "content": "two"},
            ]
        }
    )
    assert [turn.role for turn in request.turns] == [
        *("user", "assistant", "tool", "user", "system", "system")
    ]
    assert request.turns[2].parts == (
        Result(call_id="a", parts=(Words(text="a"),)),
        Result(call_id="b", parts=(Words(text="b"),)),
    )
    assert request.turns[3] == Turn(role="user", parts=(Words(text="so"),))


def test_directives_of_system_messages_are_named() -> None:
    told = read(
        {
            "messages": [
                {"role": "system", "content": [], "output_config": {"effort": "low"}},
                {"role": "system", "content": "x", "clear_at": "end"},
                {"role": "system", "content": [{"type": "tool_removal", "name": "edit"}]},
            ]
        }
    ).told
    assert told.left_out == [
        "output_config of messages[0]",
        "clear_at of messages[1]",
        "the tool_removal messages[2].content[0]",
    ]


@pytest.mark.parametrize("messages", [None, "hi", {"role": "user"}], ids=["none", "text", "object"])
def test_history_of_a_wrong_type_is_a_body_error(messages: Any) -> None:
    with pytest.raises(BodyError, match="messages"):
        read(json.dumps({"messages": messages}).encode())
