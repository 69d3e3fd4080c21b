"""What a request holds that its target cannot say: told, and never a lie."""

from __future__ import annotations

import json
from typing import Any

from switchyard_core.jsonio.tree import ObjectText
from switchyard_core.testing import validity_problems
from switchyard_core.wire import FORMATS
from switchyard_core.wire.history import fixed_text
from switchyard_core.wire.neutral import Facts, NeutralRequest

CHAT, RESPONSES, MESSAGES = "openai_chat", "openai_responses", "anthropic_messages"
USER = {"role": "user", "content": "go"}
SHELL = {"type": "web_search"}


def translated(source: str, target: str, **body: Any) -> tuple[dict[str, Any], NeutralRequest]:
    request = FORMATS[source].neutral(ObjectText(json.dumps({"model": "m", **body}).encode()))
    raw = FORMATS[target].write(request, Facts())
    assert validity_problems(target, raw) == []
    return json.loads(raw), request


def returned(output: Any) -> list[str]:
    """Return what a result says, read from each format and written in another."""
    call = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    chat = [
        USER,
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": output},
    ]
    items = [
        {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "call_1", "output": output},
    ]
    use = {"type": "tool_use", "id": "call_1", "name": "f", "input": {}}
    block = {"type": "tool_result", "tool_use_id": "call_1", "content": output}
    blocks = [
        USER,
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [block]},
    ]
    return [
        translated(CHAT, RESPONSES, messages=chat)[0]["input"][-1]["output"],
        translated(RESPONSES, CHAT, input=items)[0]["messages"][-1]["content"],
        translated(MESSAGES, CHAT, messages=blocks)[0]["messages"][-1]["content"],
    ]


def test_result_of_an_odd_type_is_its_json() -> None:
    assert returned({"x": 1}) == ['{"x": 1}'] * 3
    assert returned(5) == ["5"] * 3


def test_result_that_is_lost_is_not_said_to_be_empty() -> None:
    assert returned([{"type": "hologram"}]) == [fixed_text("lost_output")] * 3
    assert returned("") == [fixed_text("empty_result")] * 3


def test_tools_that_a_search_has_found_are_text() -> None:
    use = {"type": "tool_use", "id": "t1", "name": "ToolSearch", "input": {}}
    found = {"type": "tool_reference", "tool_name": "read"}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": [found]}
    history = [
        USER,
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [result]},
    ]
    body, request = translated(MESSAGES, CHAT, messages=history)
    assert body["messages"][-1]["content"] == "[found the tool read]"
    assert request.told.lost == []


def test_history_without_a_message_gets_one() -> None:
    for messages in ([], None, [{"role": "user", "content": " "}]):
        body, request = translated(CHAT, RESPONSES, messages=messages)
        assert body["input"][0]["content"][0]["text"] == fixed_text("go_on")
        assert request.told.changed == ["added a message of the user, for there was none"]


def test_content_of_an_odd_type_is_lost() -> None:
    for content in (["text"], {"type": "text", "text": "x"}):
        messages = [USER, {"role": "user", "content": content}]
        _, request = translated(CHAT, RESPONSES, messages=messages)
        assert request.told.left_out == []
        assert len(request.told.lost) == 1


def test_last_tool_of_a_name_counts_and_the_other_one_is_told() -> None:
    tools = [
        {"type": "function", "function": {"name": "f", "description": "one"}},
        {"type": "custom", "custom": {"name": "f", "description": "two"}},
    ]
    for target in (RESPONSES, MESSAGES):
        body, request = translated(CHAT, target, messages=[USER], tools=tools)
        assert [tool["description"] for tool in body["tools"]] == ["two"]
        assert request.told.lines == ["left out an earlier tool `f` of the same name"]


def test_choice_of_a_tool_without_tools_is_told() -> None:
    for target in (CHAT, MESSAGES):
        body, request = translated(
            RESPONSES, target, input="go", tools=[SHELL], tool_choice="required"
        )
        assert "tool_choice" not in body
        assert request.told.left_out == ["the choice of a tool, for there are none"]


def test_function_without_a_name_is_no_tool() -> None:
    body, request = translated(CHAT, RESPONSES, messages=[USER], functions=[{"parameters": {}}])
    assert "tools" not in body
    assert request.told.left_out == ["functions[0], which has no name"]


def test_image_without_data_is_lost_and_an_address_in_capitals_is_not() -> None:
    def image(url: str) -> dict[str, Any]:
        parts = [
            {"type": "text", "text": "go"},
            {"type": "image_url", "image_url": {"url": url}},
        ]
        return {"role": "user", "content": parts}

    _, request = translated(CHAT, MESSAGES, messages=[image("data:image/png;base64,")])
    assert len(request.told.lost) == 1
    body, request = translated(CHAT, MESSAGES, messages=[image("HTTPS://example.org/a.png")])
    assert body["messages"][0]["content"][1]["source"]["type"] == "url"
    assert request.told.lines == []


def test_half_an_emoji_does_not_write_the_schemas_anew() -> None:
    schema = b'{"type":"object","properties":{"n":{"maximum":1.10,"default":1e400}}}'
    tool = b'{"type":"function","name":"f","description":"\\ud83d","parameters":' + schema + b"}"
    raw = b'{"model":"m","input":"go","tools":[' + tool + b"]}"
    request = FORMATS[RESPONSES].neutral(ObjectText(raw))
    assert schema in FORMATS[CHAT].write(request, Facts())


def test_arguments_that_are_no_object_are_wrapped_where_a_function_is_called() -> None:
    call = {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{bad"}
    output = {"type": "function_call_output", "call_id": "call_1", "output": "x"}
    body, request = translated(RESPONSES, CHAT, input=[call, output])
    function = body["messages"][0]["tool_calls"][0]["function"]
    assert function["arguments"] == '{"_raw":"{bad"}'
    assert request.told.changed == ["kept arguments of `f` that are not a JSON object as `_raw`"]


def test_a_thousand_losses_of_a_kind_are_a_few_lines() -> None:
    messages = [USER, *({"role": "user", "content": [n]} for n in range(1000))]
    _, request = translated(CHAT, RESPONSES, messages=messages)
    assert len(request.told.lines) == 9
    assert request.told.lines[-1].endswith("and 992 more like it")
