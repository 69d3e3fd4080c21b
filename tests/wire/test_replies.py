"""Answers of providers to calls of our own, and what only looks like one."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given

from switchyard_core.answering import ModelReply, ModelUsage, RequestedCall
from switchyard_core.declarations import WIRE_FORMATS
from switchyard_core.wire import format_of
from tests.support.cases import each_of
from tests.support.strategies import VALUES

each_format = pytest.mark.parametrize("wire_format", WIRE_FORMATS)


def chat(message, finish_reason="stop", **more) -> bytes:
    choice = {"message": {"role": "assistant", **message}, "finish_reason": finish_reason}
    return json.dumps({"choices": [choice], **more}).encode()


def responses(*output, status="completed", **more) -> bytes:
    return json.dumps({"status": status, "output": output, **more}).encode()


def messages(*content, stop_reason="end_turn", **more) -> bytes:
    return json.dumps({"content": content, "stop_reason": stop_reason, **more}).encode()


def message_item(*content):
    return {"type": "message", "role": "assistant", "content": list(content)}


def said(wire_format, text="", *, stop="", arguments=None, name="plan") -> bytes:
    """Return an answer with a text or a tool call; ``stop`` is the format's own word."""
    if wire_format == "openai_chat":
        function = {"name": name, "arguments": arguments}
        called = {"tool_calls": [{"id": "c", "type": "function", "function": function}]}
        message = {"content": text or None, **(called if arguments is not None else {})}
        return chat(message, stop or "stop")
    if wire_format == "openai_responses":
        items = [message_item({"type": "output_text", "text": text})] if text else []
        call = {"type": "function_call", "call_id": "c", "name": name, "arguments": arguments}
        items += [call] if arguments is not None else []
        if not stop:
            return responses(*items)
        return responses(*items, status="incomplete", incomplete_details={"reason": stop})
    blocks = [{"type": "text", "text": text}] if text else []
    if arguments is not None:
        call = {"type": "tool_use", "id": "c", "name": name, "input": json.loads(arguments)}
        blocks.append(call)
    return messages(*blocks, stop_reason=stop or "end_turn")


@each_of(
    ("wire_format", "body"),
    [
        ("openai_chat", b'data: {"choices": []}\n\n'),
        ("openai_chat", b"[]"),
        ("openai_chat", b""),
        ("openai_chat", b'{"choices": []}'),
        ("openai_chat", b'{"choices": null}'),
        ("openai_chat", b'{"choices": [3]}'),
        ("openai_chat", chat({"content": "half"}, error={"message": "overloaded"})),
        ("openai_chat", chat({"content": "half"}, "error")),
        ("openai_chat", chat({"content": 3})),
        ("openai_chat", chat({"content": [{"type": "text", "text": 3}]})),
        ("openai_chat", chat({"tool_calls": [{"function": {"name": "f"}}]})),
        ("openai_chat", chat({"tool_calls": [{"id": 3, "function": {"name": "f"}}]})),
        (
            "openai_chat",
            chat({"tool_calls": [{"id": "c", "function": {"name": "f", "arguments": 3}}]}),
        ),
        ("openai_chat", b'{"choices": [{"message": null}]}'),
        (
            "openai_chat",
            b'{"choices": [{"message": {"content": "half"}, "error": {"code": 502}}]}',
        ),
        ("openai_responses", b'{"type": "error", "error": {"type": "server_error"}}'),
        ("openai_responses", b'{"output": {}}'),
        ("openai_responses", responses(status="failed", error={"code": "server_error"})),
        ("openai_responses", responses(message_item(), status="failed")),
        ("openai_responses", responses(message_item(), status="in_progress")),
        ("openai_responses", responses(message_item(), status="cancelled")),
        ("anthropic_messages", b'{"type": "error", "error": {"type": "overloaded_error"}}'),
        ("anthropic_messages", messages({"type": "text", "text": "half"}, type="error")),
        ("anthropic_messages", b'{"content": "text"}'),
        ("anthropic_messages", b'{"content": null}'),
        ("anthropic_messages", messages({"type": "tool_use", "input": {}})),
    ],
)
def test_what_is_no_answer_is_refused(wire_format, body):
    with pytest.raises(ValueError, match=f"not an answer of {wire_format}: ."):
        format_of(wire_format).read_reply(body)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        ({"code": "overloaded", "message": "key sk-secret"}, "(overloaded)"),
        ({"code": 502, "type": "server_error"}, "(server_error)"),
        ({"code": "no word", "message": "sk-secret"}, "(no code)"),
        ("sk-secret", "(no code)"),
    ],
)
def test_report_of_an_error_is_told_by_its_code_alone(error, told):
    with pytest.raises(ValueError, match="the provider reports an error") as caught:
        format_of("openai_chat").read_reply(chat({"content": "half"}, error=error))

    assert told in str(caught.value)
    assert "secret" not in str(caught.value)


TEXT_PART = {"type": "text", "text": "x"}


@each_of(
    ("wire_format", "body", "told"),
    [
        ("openai_chat", b"{}", "`choices` is missing"),
        ("openai_chat", b'{"choices": null}', "`choices` is not an array"),
        ("openai_chat", b'{"choices": []}', "`choices` is empty"),
        ("openai_chat", b'{"choices": ["x"]}', "`choices[0]` is not an object"),
        ("openai_chat", b'{"choices": [{}]}', "`choices[0].message` is missing"),
        (
            "openai_chat",
            b'{"choices": [{"message": null}]}',
            "`choices[0].message` is not an object",
        ),
        ("openai_chat", chat({"content": 3}), "`choices[0].message.content` is not a string"),
        (
            "openai_chat",
            chat({"content": [TEXT_PART, "x"]}),
            "`choices[0].message.content[1]` is not an object",
        ),
        (
            "openai_chat",
            chat({"content": [{"type": "text"}]}),
            "`choices[0].message.content[0].text` is missing",
        ),
        ("openai_chat", chat({"tool_calls": 3}), "`choices[0].message.tool_calls` is not an array"),
        (
            "openai_chat",
            chat({"tool_calls": [{"id": "c", "type": "function"}]}),
            "`choices[0].message.tool_calls[0].function` is missing",
        ),
        (
            "openai_chat",
            chat({"tool_calls": [{"id": "c", "function": {}}]}),
            "`choices[0].message.tool_calls[0].function.name` is missing",
        ),
        (
            "openai_chat",
            chat({"tool_calls": [{"id": None, "function": {"name": "f"}}]}),
            "`choices[0].message.tool_calls[0].id` is not a string",
        ),
        ("openai_responses", b"{}", "`output` is missing"),
        ("openai_responses", b'{"output": "x"}', "`output` is not an array"),
        ("openai_responses", b'{"output": [[]]}', "`output[0]` is not an object"),
        (
            "openai_responses",
            responses(message_item("x")),
            "`output[0].content[0]` is not an object",
        ),
        (
            "openai_responses",
            responses({"type": "message", "content": "x"}),
            "`output[0].content` is not an array",
        ),
        (
            "openai_responses",
            responses(message_item({"type": "refusal"})),
            "`output[0].content[0].refusal` is missing",
        ),
        (
            "openai_responses",
            responses({"type": "function_call", "name": "f"}),
            "`output[0].call_id` is missing",
        ),
        ("anthropic_messages", b"{}", "`content` is missing"),
        ("anthropic_messages", b'{"content": null}', "`content` is not an array"),
        ("anthropic_messages", messages(TEXT_PART, 3), "`content[1]` is not an object"),
        ("anthropic_messages", messages({"type": "text"}), "`content[0].text` is missing"),
        (
            "anthropic_messages",
            messages({"type": "tool_use", "id": "c"}),
            "`content[0].name` is missing",
        ),
    ],
)
def test_what_is_missing_is_told_by_its_place(wire_format, body, told):
    assert outcome(wire_format, body) == f"not an answer of {wire_format}: {told}"


#: What only Python says; nobody who runs a server can do anything with it.
PYTHON = re.compile(r"NoneType|subscriptable|iterable|attribute|out of range|sys\.|recursion|codec")


def outcome(wire_format, body: bytes) -> ModelReply | str:
    try:
        return format_of(wire_format).read_reply(body)
    except ValueError as error:
        return str(error)


@each_format
@given(value=VALUES)
def test_any_json_is_an_answer_or_refused(wire_format, value):
    key = {"openai_chat": "choices", "openai_responses": "output"}.get(wire_format, "content")
    for body in (value, f'{{"{key}": {value}}}', f'{{"{key}": [{value}], "usage": {value}}}'):
        found = outcome(wire_format, body.encode("utf-8", "surrogatepass"))
        assert isinstance(found, ModelReply) or found.startswith("not an answer of ")
        assert isinstance(found, ModelReply) or not PYTHON.search(found)


@each_of(
    ("wire_format", "stop", "cut"),
    [
        ("openai_chat", "length", True),
        ("openai_chat", "stop", False),
        ("openai_chat", "tool_calls", False),
        ("openai_chat", "content_filter", False),
        ("openai_responses", "max_output_tokens", True),
        ("openai_responses", "max_messages", True),
        ("openai_responses", "content_filter", False),
        ("openai_responses", "", False),
        ("anthropic_messages", "max_tokens", True),
        ("anthropic_messages", "model_context_window_exceeded", True),
        ("anthropic_messages", "end_turn", False),
        ("anthropic_messages", "refusal", False),
    ],
)
def test_reply_is_truncated_when_it_was_cut_at_a_limit(wire_format, stop, cut):
    assert format_of(wire_format).read_reply(said(wire_format, "half", stop=stop)).truncated is cut


def test_incomplete_response_without_a_reason_is_truncated():
    assert format_of("openai_responses").read_reply(responses(status="incomplete")).truncated


@pytest.mark.parametrize(
    ("wire_format", "body", "refusal"),
    [
        ("openai_chat", chat({"content": None, "refusal": "no"}), "no"),
        ("openai_chat", chat({"content": "so far"}, "content_filter"), "so far"),
        ("openai_chat", chat({"content": None}, "content_filter"), "content filter"),
        (
            "openai_responses",
            responses(message_item({"type": "refusal", "refusal": "no"})),
            "no",
        ),
        ("openai_responses", said("openai_responses", stop="content_filter"), "content filter"),
        ("anthropic_messages", said("anthropic_messages", "no", stop="refusal"), "no"),
        ("anthropic_messages", messages(stop_reason="refusal"), "refused"),
        (
            "anthropic_messages",
            messages(stop_reason="refusal", stop_details={"explanation": "because"}),
            "because",
        ),
    ],
)
def test_refusal_has_a_text_in_every_case(wire_format, body, refusal):
    assert refusal in format_of(wire_format).read_reply(body).refusal


@each_format
def test_reply_that_does_not_refuse_has_no_refusal(wire_format):
    reply = format_of(wire_format).read_reply(said(wire_format, "yes"))

    assert (reply.text, reply.refusal, reply.calls) == ("yes", "", ())


@pytest.mark.parametrize(
    ("arguments", "read"), [("", "{}"), (None, "{}"), ({"a": 1}, '{"a":1}'), ("{bad", "{bad")]
)
def test_arguments_of_a_call_are_json_text_however_the_provider_writes_them(arguments, read):
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": arguments}}

    reply = format_of("openai_chat").read_reply(chat({"tool_calls": [call]}))

    assert reply.calls == (RequestedCall(id="c", name="f", arguments=read),)


def test_arguments_of_messages_keep_their_numbers():
    body = b'{"content": [{"type": "tool_use", "id": "c", "name": "f", "input": {"max": 1.10}}]}'

    assert format_of("anthropic_messages").read_reply(body).calls[0].arguments == '{"max": 1.10}'


def test_text_in_parts_is_read():
    parts = [{"type": "thinking", "thinking": []}, {"type": "text", "text": "yes"}]

    assert format_of("openai_chat").read_reply(chat({"content": parts})).text == "yes"


@pytest.mark.parametrize(
    ("wire_format", "usage"),
    [
        (
            "openai_chat",
            {
                "prompt_tokens": 9,
                "completion_tokens": 2,
                "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 2},
                "completion_tokens_details": {"reasoning_tokens": 1},
            },
        ),
        (
            "openai_responses",
            {
                "input_tokens": 9,
                "output_tokens": 2,
                "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 2},
                "output_tokens_details": {"reasoning_tokens": 1},
            },
        ),
        (
            "anthropic_messages",
            {
                "input_tokens": 3,
                "cache_creation_input_tokens": 2,
                "cache_read_input_tokens": 4,
                "output_tokens": 2,
                "output_tokens_details": {"thinking_tokens": 1},
            },
        ),
    ],
)
def test_input_tokens_count_those_of_a_cache_in_every_format(wire_format, usage):
    body = json.loads(said(wire_format, "x")) | {"usage": usage}

    reply = format_of(wire_format).read_reply(json.dumps(body).encode())

    assert reply.usage == ModelUsage(
        input_tokens=9, output_tokens=2, cached_tokens=4, cache_write_tokens=2, reasoning_tokens=1
    )


@each_format
@pytest.mark.parametrize("usage", [None, 3, {"input_tokens": "9", "prompt_tokens": True}])
def test_usage_that_is_no_number_counts_as_nothing(wire_format, usage):
    body = json.loads(said(wire_format, "x")) | {"usage": usage}

    assert format_of(wire_format).read_reply(json.dumps(body).encode()).usage == ModelUsage()


@each_format
def test_arguments_of_the_forced_tool_are_the_text(wire_format):
    body = said(wire_format, "Here:", arguments='{"goal": "g"}')

    reply = format_of(wire_format).read_reply(body, "plan")

    assert (json.loads(reply.text), reply.calls) == ({"goal": "g"}, ())
    assert reply.items == ({"role": "assistant", "content": reply.text},)


@each_format
def test_reply_without_the_forced_tool_is_read_as_it_is(wire_format):
    text = format_of(wire_format).read_reply(said(wire_format, "I will not."), "plan")
    other = format_of(wire_format).read_reply(
        said(wire_format, arguments="{}", name="search"), "plan"
    )

    assert (text.text, text.calls) == ("I will not.", ())
    assert (other.text, [call.name for call in other.calls]) == ("", ["search"])


def test_chat_message_loses_what_a_request_may_not_hold_and_nothing_else():
    body = (
        b'{"choices": [{"message": {"role": "assistant", "content": "x", "refusal": null,'
        b' "annotations": [], "audio": null, "tool_calls": [], "function_call": null,'
        b' "reasoning_content": "h\\u006d", "ours": 1.10}, "finish_reason": "stop"}]}'
    )

    (item,) = format_of("openai_chat").read_reply(body).items

    assert item.raw == (
        b'{"role": "assistant", "content": "x", "reasoning_content": "h\\u006d", "ours": 1.10}'
    )


def test_chat_message_without_a_role_gets_it():
    body = b'{"choices": [{"message": {"content": "x", "refusal": "no"}}]}'

    (item,) = format_of("openai_chat").read_reply(body).items

    assert item == {"content": "x", "refusal": "no", "role": "assistant"}


@pytest.mark.parametrize(
    "kind",
    [
        "custom_tool_call",
        "computer_call",
        "local_shell_call",
        "shell_call",
        "apply_patch_call",
        "mcp_approval_request",
        "call_of_tomorrow_call",
    ],
)
def test_reply_of_responses_wants_what_only_a_client_can_give(kind):
    reply = format_of("openai_responses").read_reply(
        responses({"type": kind, "call_id": "c", "id": "i"})
    )

    assert (reply.wants, reply.calls) == ((kind,), ())


@each_of(
    "item",
    [
        *(
            {"type": kind, "id": "i", "status": "completed"}
            for kind in (
                "web_search_call",
                "file_search_call",
                "code_interpreter_call",
                "image_generation_call",
                "mcp_call",
                "hosted_of_tomorrow_call",
            )
        ),
        {"type": "function_call", "call_id": "c", "name": "f"},
        {"type": "reasoning", "id": "i"},
        {"type": "mcp_list_tools", "id": "i"},
        {"type": 3},
        {},
        message_item({"type": "output_text", "text": "x"}),
    ],
)
def test_reply_of_responses_wants_nothing_that_is_done(item):
    assert format_of("openai_responses").read_reply(responses(item)).wants == ()


def test_call_that_the_provider_answered_itself_wants_nothing():
    call = {"type": "shell_call", "call_id": "c"}
    output = {"type": "shell_call_output", "call_id": "c", "output": []}

    assert format_of("openai_responses").read_reply(responses(call, output)).wants == ()
    assert (
        format_of("openai_responses")
        .read_reply(responses(call, output, {**call, "call_id": "d"}))
        .wants
    )


@pytest.mark.parametrize(
    ("message", "wants"),
    [
        ({"function_call": {"name": "f", "arguments": "{}"}}, ("function_call",)),
        ({"tool_calls": [{"id": "c", "type": "custom", "custom": {}}]}, ("custom",)),
        ({"tool_calls": [{"id": "c", "type": 3}]}, ("an unknown call",)),
        ({"tool_calls": [{"id": "c", "type": "a\nb"}]}, ("an unknown call",)),
        ({"function_call": None, "tool_calls": None}, ()),
        ({"tool_calls": [{"id": "c", "function": {"name": "f"}}]}, ()),
    ],
)
def test_reply_of_chat_wants_what_is_no_call_of_a_function(message, wants):
    reply = format_of("openai_chat").read_reply(chat({"content": None, **message}))

    assert reply.wants == wants


@pytest.mark.parametrize(("stop", "wants"), [("pause_turn", ("pause_turn",)), ("end_turn", ())])
def test_reply_of_messages_wants_to_go_on_after_a_pause(stop, wants):
    body = messages({"type": "server_tool_use", "id": "s", "name": "web_search"}, stop_reason=stop)

    assert format_of("anthropic_messages").read_reply(body).wants == wants
