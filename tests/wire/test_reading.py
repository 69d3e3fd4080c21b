"""The same story in three wire formats gives the same conversation."""

from __future__ import annotations

import json

import pytest
from hypothesis import given

from switchyard_core.errors import BodyError
from switchyard_core.jsonio.tree import ObjectText
from switchyard_core.request import Request
from switchyard_core.wire import FORMATS
from tests.support.strategies import VALUES

CALL = {"path": "a.py"}
STORY = {
    "openai_chat": {
        "model": "m",
        "messages": [
            {"role": "system", "content": "rules"},
            {"role": "user", "content": "fix it"},
            {
                "role": "assistant",
                "content": "looking",
                "reasoning_content": "hm",
                "tool_calls": [
                    {
                        "id": "c1",
                        "type": "function",
                        "function": {"name": "read", "arguments": json.dumps(CALL)},
                    },
                    {"id": "c2", "type": "custom", "custom": {"name": "patch", "input": "raw"}},
                ],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "x"},
            {"role": "tool", "tool_call_id": "c2", "content": "y"},
        ],
        "tools": [
            {"type": "function", "function": {"name": "read"}},
            {"type": "custom", "custom": {"name": "patch"}},
        ],
    },
    "openai_responses": {
        "model": "m",
        "input": [
            {"role": "developer", "content": "rules"},
            {"role": "user", "content": [{"type": "input_text", "text": "fix it"}]},
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
            {"role": "assistant", "content": [{"type": "output_text", "text": "looking"}]},
            {
                "type": "function_call",
                "call_id": "c1",
                "name": "read",
                "arguments": json.dumps(CALL),
            },
            {"type": "custom_tool_call", "call_id": "c2", "name": "patch", "input": "raw"},
            {"type": "function_call_output", "call_id": "c1", "output": "x"},
            {"type": "custom_tool_call_output", "call_id": "c2", "output": "y"},
        ],
        "tools": [{"type": "function", "name": "read"}, {"type": "custom", "name": "patch"}],
    },
    "anthropic_messages": {
        "model": "m",
        "messages": [
            {"role": "system", "content": "rules"},
            {"role": "user", "content": [{"type": "text", "text": "fix it"}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "s"},
                    {"type": "text", "text": "looking"},
                    {"type": "tool_use", "id": "c1", "name": "read", "input": CALL},
                    {"type": "tool_use", "id": "c2", "name": "patch", "input": {"input": "raw"}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "c1", "content": "x"},
                    {"type": "tool_result", "tool_use_id": "c2", "content": "y"},
                ],
            },
        ],
        "tools": [{"name": "read", "input_schema": {}}, {"name": "patch", "input_schema": {}}],
    },
}


def read(wire_format, body) -> Request:
    return Request(wire_format=wire_format, body=body)


def test_conversation_document_is_the_same_in_three_formats():
    documents = []
    for wire_format, body in STORY.items():
        document = read(wire_format, body).conversation.document()
        for message in document["messages"]:
            for part in message["content"]:
                part.pop("kind", None)
        documents.append(document)

    assert documents[0] == documents[1] == documents[2]
    assert [message["role"] for message in documents[0]["messages"]] == [
        "system",
        "user",
        "assistant",
        "tool",
    ]


@pytest.mark.parametrize("wire_format", STORY)
def test_offered_tools_are_named(wire_format):
    request = read(wire_format, STORY[wire_format])

    assert request.conversation.tools == ("read", "patch")
    assert request.offers_tools


@pytest.mark.parametrize("wire_format", STORY)
@pytest.mark.parametrize(
    "tools", [{}, {"tools": []}, {"tools": None}], ids=["absent", "empty", "null"]
)
def test_no_tools_are_no_tools(wire_format, tools):
    body = {k: v for k, v in STORY[wire_format].items() if k != "tools"} | tools

    assert not read(wire_format, body).offers_tools


def test_additional_tools_item_offers_tools():
    body = {
        "model": "m",
        "input": [
            {
                "type": "additional_tools",
                "role": "developer",
                "tools": [
                    {
                        "type": "namespace",
                        "name": "functions",
                        "tools": [{"type": "custom", "name": "exec"}],
                    }
                ],
            }
        ],
    }

    request = read("openai_responses", body)

    assert request.offers_tools
    assert request.conversation.tools == ("exec",)


@pytest.mark.parametrize(
    ("item", "name", "kind", "arguments"),
    [
        (
            {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{broken"},
            "f",
            "function",
            {"_raw": "{broken"},
        ),
        (
            {"type": "custom_tool_call", "call_id": "c", "name": "f", "input": "x"},
            "f",
            "custom",
            {"input": "x"},
        ),
        (
            {"type": "local_shell_call", "call_id": "c", "action": {"command": ["ls"]}},
            "local_shell_call",
            "builtin",
            {"action": {"command": ["ls"]}},
        ),
        (
            {"type": "shell_call", "call_id": "c", "action": {"commands": ["ls"]}},
            "shell_call",
            "builtin",
            {"action": {"commands": ["ls"]}},
        ),
        (
            {"type": "apply_patch_call", "call_id": "c", "operation": {"type": "delete_file"}},
            "apply_patch_call",
            "builtin",
            {"operation": {"type": "delete_file"}},
        ),
        (
            {"type": "mcp_call", "id": "c", "name": "f", "server_label": "s", "arguments": "{}"},
            "f",
            "mcp",
            {},
        ),
        (
            {
                "type": "function_call",
                "call_id": "c",
                "name": "f",
                "namespace": "n",
                "arguments": "{}",
            },
            "f",
            "function",
            {},
        ),
    ],
    ids=["function", "custom", "local_shell", "shell", "apply_patch", "mcp", "namespace"],
)
def test_responses_call_shapes_are_calls(item, name, kind, arguments):
    (call,) = read("openai_responses", {"model": "m", "input": [item]}).conversation.calls

    assert (call.name, call.kind, call.arguments) == (name, kind, arguments)
    assert call.path == "$.input[0]"
    assert call.server == item.get("server_label")
    assert call.namespace == item.get("namespace")


@pytest.mark.parametrize(
    "item",
    [
        {"type": "web_search_call", "id": "w"},
        {"type": "code_interpreter_call", "id": "i", "code": "open('x','w')"},
    ],
    ids=["search", "interpreter"],
)
def test_responses_hosted_calls_are_not_the_clients(item):
    conversation = read("openai_responses", {"model": "m", "input": [item]}).conversation

    assert conversation.calls == ()
    assert not conversation.ends_with_open_call


def test_mcp_call_is_answered_in_itself():
    item = {"type": "mcp_call", "id": "c", "name": "f", "arguments": "{}", "output": "done"}

    assert not read(
        "openai_responses", {"model": "m", "input": [item]}
    ).conversation.ends_with_open_call


def test_local_shell_output_may_name_the_item():
    items = [
        {"type": "local_shell_call", "id": "lsh_1", "call_id": "c", "action": {"command": ["ls"]}},
        {"type": "local_shell_call_output", "id": "lsh_1", "output": "x"},
    ]

    assert not read(
        "openai_responses", {"model": "m", "input": items}
    ).conversation.ends_with_open_call


@pytest.mark.parametrize(
    ("block", "kind"),
    [("tool_use", "function"), ("mcp_tool_use", "mcp"), ("server_tool_use", None)],
)
def test_messages_call_shapes(block, kind):
    content = [{"type": block, "id": "c", "name": "write", "input": {}}]
    body = {"model": "m", "messages": [{"role": "assistant", "content": content}]}

    calls = read("anthropic_messages", body).conversation.calls

    assert [call.kind for call in calls] == ([kind] if kind else [])


def test_chat_legacy_function_call_is_a_call():
    messages = [
        {"role": "assistant", "content": None, "function_call": {"name": "w", "arguments": "{}"}},
        {"role": "function", "name": "w", "content": "ok"},
    ]
    conversation = read("openai_chat", {"model": "m", "messages": messages}).conversation

    assert [call.path for call in conversation.calls] == ["$.messages[0].function_call"]
    assert not conversation.ends_with_open_call


@pytest.mark.parametrize(
    "message",
    [
        {"role": "function", "name": "write_file", "content": "ok"},
        {"role": "tool", "name": "write_file", "tool_call_id": "gone", "content": "ok"},
    ],
    ids=["function", "tool"],
)
def test_chat_result_that_names_its_tool_stands_for_the_missing_call(message):
    calls = read("openai_chat", {"model": "m", "messages": [message]}).conversation.calls

    assert [(call.name, call.path) for call in calls] == [("write_file", "$.messages[0]")]


@pytest.mark.parametrize("wire_format", ["openai_chat", "anthropic_messages"])
def test_call_in_a_user_message_is_none(wire_format):
    chat = {"tool_calls": [{"id": "c", "type": "function", "function": {"name": "w"}}]}
    messages = {"content": [{"type": "tool_use", "id": "c", "name": "w", "input": {}}]}
    message = {"role": "user", "content": "x"} | (chat if "chat" in wire_format else messages)

    body = {"model": "m", "messages": [message]}

    assert read(wire_format, body).conversation.calls == ()


@pytest.mark.parametrize(
    ("wire_format", "body", "param"),
    [
        ("openai_chat", {"model": "m"}, "messages"),
        ("openai_chat", {"model": "m", "messages": "hi"}, "messages"),
        ("openai_responses", {"model": "m"}, "input"),
        ("openai_responses", {"model": "m", "input": 5}, "input"),
        ("anthropic_messages", {"model": "m", "messages": {}}, "messages"),
        ("anthropic_messages", {"model": 5, "messages": []}, "model"),
    ],
)
def test_wrong_type_of_what_routing_reads_says_where(wire_format, body, param):
    with pytest.raises(BodyError) as caught:
        read(wire_format, body).check()

    assert caught.value.param == param
    assert caught.value.code == "invalid_type"
    assert f"`{param}`" in caught.value.message


@pytest.mark.parametrize(
    "body",
    [
        {"model": "m", "previous_response_id": "r"},
        {"model": "m", "prompt": {"id": "p"}},
        {"model": "m", "input": "hi"},
    ],
    ids=["continuation", "stored_prompt", "string"],
)
def test_responses_input_may_be_text_or_absent(body):
    request = read("openai_responses", body)
    request.check()

    assert request.conversation.calls == ()


@pytest.mark.parametrize(
    ("items", "missing"),
    [
        ("hi", True),
        ([{"role": "user", "content": "x"}], True),
        ([{"type": "function_call_output", "call_id": "c", "output": "x"}], True),
        ([{"role": "assistant", "content": "x"}, {"role": "user", "content": "y"}], False),
        (
            [
                {"role": "assistant", "content": "x"},
                {"type": "function_call_output", "call_id": "c", "output": "x"},
            ],
            True,
        ),
    ],
    ids=["text", "user_only", "output_only", "history", "output_without_call"],
)
@pytest.mark.parametrize("key", ["previous_response_id", "conversation"])
def test_missing_history_is_told_from_a_whole_one(items, missing, key):
    body = {"model": "m", "input": items}

    assert read("openai_responses", body | {key: "r_1"}).misses_history is missing
    alone = read("openai_responses", body | {key: None})
    # Results without any call are a sign of their own that history is missing.
    assert alone.missing_history == (("input",) if "call_output" in repr(items) else ())


def test_missing_history_concerns_responses_only():
    assert read("openai_chat", {"model": "m", "messages": []}).misses_history is False


@pytest.mark.parametrize("wire_format", STORY)
@given(value=VALUES)
def test_any_history_is_read_without_an_exception(wire_format, value):
    key = FORMATS[wire_format].history_key
    data = (
        f'{{"model":"m","{key}":[{value},{{"role":"assistant","type":{value},"content":{value}}},'
        f'{{"type":"function_call","name":{value},"arguments":{value}}},'
        f'{{"role":"assistant","tool_calls":[{{"function":{value},"id":{value}}}]}}]}}'
    )
    request = read(wire_format, data)

    request.check()
    conversation = request.conversation

    assert json.dumps(conversation.document(), default=str)
    assert ObjectText(request.body).dump() == request.body
