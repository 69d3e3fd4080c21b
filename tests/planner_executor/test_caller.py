from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from switchyard_core import Request, RequestError
from switchyard_planner_executor.caller import (
    CallerSettings,
    caller_settings,
    caller_warnings,
    refuse_unserved,
    require_user_text,
)

Make = Callable[..., Request]
SCHEMA = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}}
TOOLS: dict[str, list[dict[str, Any]]] = {
    "openai_chat": [{"type": "function", "function": {"name": "f", "parameters": {}}}],
    "openai_responses": [{"type": "function", "name": "f", "parameters": {}}],
    "anthropic_messages": [{"name": "f", "input_schema": {"type": "object"}}],
}

#: Wire format, keys of the body, code and param of the refusal.
REFUSED = [
    ("openai_chat", {"n": 2}, "several_answers_unsupported", "n"),
    ("openai_chat", {"n": "2"}, "several_answers_unsupported", "n"),
    ("openai_chat", {"n": True}, "several_answers_unsupported", "n"),
    ("openai_chat", {"response_format": SCHEMA}, "output_schema_unsupported", "response_format"),
    (
        "openai_chat",
        {"response_format": {"type": "json_object"}},
        "output_schema_unsupported",
        "response_format",
    ),
    (
        "openai_responses",
        {"text": {"format": {"type": "json_schema", "name": "x", "schema": {}}}},
        "output_schema_unsupported",
        "text.format",
    ),
    (
        "openai_responses",
        {"previous_response_id": "resp_1"},
        "continuation_unsupported",
        "previous_response_id",
    ),
    (
        "openai_responses",
        {"conversation": {"id": "conv_1"}},
        "continuation_unsupported",
        "conversation",
    ),
    ("openai_responses", {"background": True}, "background_unsupported", "background"),
    (
        "anthropic_messages",
        {"output_config": {"format": {"type": "json_schema", "schema": {}}}},
        "output_schema_unsupported",
        "output_config.format",
    ),
    (
        "anthropic_messages",
        {"output_format": {"type": "json_schema", "schema": {}}},
        "output_schema_unsupported",
        "output_format",
    ),
    ("anthropic_messages", {"thread": {"id": "t_1"}}, "continuation_unsupported", "thread"),
    (
        "openai_chat",
        {"web_search_options": {}},
        "hosted_tools_unsupported",
        "web_search_options",
    ),
    ("openai_chat", {"audio": {"voice": "alloy"}}, "audio_unsupported", "audio"),
    ("openai_responses", {"prompt": {"id": "p_1"}}, "stored_prompt_unsupported", "prompt"),
    (
        "anthropic_messages",
        {"mcp_servers": [{"type": "url", "url": "https://x.test", "name": "x"}]},
        "hosted_tools_unsupported",
        "mcp_servers",
    ),
]

SERVED = [
    ("openai_chat", {"n": 1}),
    ("openai_chat", {"response_format": {"type": "text"}}),
    ("openai_chat", {"background": True}),
    ("openai_responses", {"text": {"format": {"type": "text"}, "verbosity": "low"}}),
    ("openai_responses", {"text": "x"}),
    ("openai_responses", {"background": False}),
    ("openai_responses", {"n": 2}),
    ("anthropic_messages", {"output_config": {"effort": "low"}}),
    ("anthropic_messages", {"metadata": {"user_id": "x"}}),
    ("anthropic_messages", {"mcp_servers": []}),
]


@pytest.mark.parametrize(
    ("wire_format", "keys", "code", "param"), REFUSED, indirect=["wire_format"]
)
def test_what_cannot_be_served_is_refused_with_its_own_code(
    asked: Make, keys: dict[str, Any], code: str, param: str
) -> None:
    with pytest.raises(RequestError) as caught:
        refuse_unserved(asked(**keys), caller_tools="reject")

    error = caught.value
    assert (error.status, error.code, error.param) == (400, code, param)
    assert error.headers["x-should-retry"] == "false"
    assert f"`{param}`: leave it out" in error.message


@pytest.mark.parametrize(("wire_format", "keys"), SERVED, indirect=["wire_format"])
def test_what_only_looks_like_it_is_served(asked: Make, keys: dict[str, Any]) -> None:
    refuse_unserved(asked(**keys), caller_tools="reject")


@pytest.mark.parametrize(
    "key", ["n", "response_format", "text", "background", "conversation", "output_config", "thread"]
)
def test_null_is_the_same_as_absent(wire_format: Any, asked: Make, key: str) -> None:
    request = asked()
    body = request.body[:-1] + f', "{key}": null}}'.encode()

    refuse_unserved(type(request)(wire_format=wire_format, body=body), caller_tools="ignore")


def test_tools_of_the_caller_are_refused_or_a_warning(wire_format: str, asked: Make) -> None:
    request = asked(tools=TOOLS[wire_format])

    with pytest.raises(RequestError) as caught:
        refuse_unserved(request, caller_tools="reject")
    assert (caught.value.status, caught.value.code) == (400, "caller_tools_unsupported")
    assert caught.value.param == "tools"
    assert caught.value.headers["x-should-retry"] == "false"

    refuse_unserved(request, caller_tools="ignore")
    (warning,) = caller_warnings(request, keeps_instructions=False)
    assert warning.code == "caller_tools_ignored"


def test_no_tools_are_no_tools(asked: Make) -> None:
    refuse_unserved(asked(tools=[]), caller_tools="reject")


@pytest.mark.parametrize("text", ["", " \n"])
def test_request_without_a_text_of_the_user_is_refused(
    wire_format: str, asked: Make, text: str
) -> None:
    with pytest.raises(RequestError) as caught:
        require_user_text(asked(text))

    error = caught.value
    assert (error.status, error.code) == (400, "no_user_text")
    assert error.param == ("input" if wire_format == "openai_responses" else "messages")
    assert error.headers["x-should-retry"] == "false"


def test_request_with_a_text_of_the_user_is_accepted(asked: Make) -> None:
    require_user_text(asked("a gift"))

    assert caller_warnings(asked("a gift"), keeps_instructions=False) == ()


def test_dropped_instructions_are_a_warning_and_kept_ones_are_not(
    wire_format: str, asked: Make
) -> None:
    request = asked(turns=[("system", "be brief"), ("user", "a gift")])
    if wire_format == "anthropic_messages":
        request = asked(system="be brief")

    (warning,) = caller_warnings(request, keeps_instructions=False)
    assert warning.code == "caller_instructions_dropped"
    assert caller_warnings(request, keeps_instructions=True) == ()


@pytest.mark.parametrize("wire_format", ["openai_responses"], indirect=True)
def test_files_that_cannot_be_passed_on_are_a_warning(asked: Make) -> None:
    file = {"type": "input_file", "file_id": "file_1"}
    request = asked([{"type": "input_text", "text": "read these"}, file, file])

    (warning,) = caller_warnings(request, keeps_instructions=False)
    assert warning.code == "request_parts_left_out"
    assert warning.detail.endswith(": input_file")


# --- settings -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wire_format", "keys", "settings"),
    [
        (
            "openai_chat",
            {
                "temperature": 0.2,
                "top_p": 1,
                "top_k": 5,
                "stop": "END",
                "seed": 7,
                "frequency_penalty": 0.1,
                "presence_penalty": -0.1,
                "max_tokens": 50,
                "max_completion_tokens": 40,
            },
            CallerSettings(
                sampling={
                    "temperature": 0.2,
                    "top_p": 1,
                    "stop": ("END",),
                    "seed": 7,
                    "frequency_penalty": 0.1,
                    "presence_penalty": -0.1,
                },
                max_output_tokens=40,
            ),
        ),
        ("openai_chat", {"max_tokens": 50}, CallerSettings(max_output_tokens=50)),
        (
            "openai_responses",
            {"temperature": 1, "top_p": 0.5, "stop": ["x"], "max_output_tokens": 64},
            CallerSettings(sampling={"temperature": 1, "top_p": 0.5}, max_output_tokens=64),
        ),
        ("openai_responses", {}, CallerSettings()),
        (
            "anthropic_messages",
            {"temperature": 0, "top_k": 5, "stop_sequences": ["a", "b"], "max_tokens": 99},
            CallerSettings(
                sampling={"temperature": 0, "top_k": 5, "stop": ("a", "b")}, max_output_tokens=99
            ),
        ),
    ],
    indirect=["wire_format"],
)
def test_settings_are_read_under_neutral_names(
    asked: Make, keys: dict[str, Any], settings: CallerSettings
) -> None:
    assert caller_settings(asked(**keys)) == settings


@pytest.mark.parametrize(
    ("wire_format", "keys"),
    [
        ("openai_chat", {"temperature": "warm"}),
        ("openai_chat", {"temperature": True}),
        ("openai_chat", {"seed": 1.5}),
        ("openai_chat", {"stop": [1]}),
        ("openai_chat", {"stop": {"a": 1}}),
        ("openai_chat", {"max_completion_tokens": 0}),
        ("openai_responses", {"max_output_tokens": "many"}),
        ("anthropic_messages", {"top_k": 1.5}),
        ("anthropic_messages", {"max_tokens": -1}),
    ],
    indirect=["wire_format"],
)
def test_setting_of_a_wrong_type_is_refused(asked: Make, keys: dict[str, Any]) -> None:
    with pytest.raises(RequestError) as caught:
        caller_settings(asked(**keys))

    assert (caught.value.code, caught.value.param) == ("invalid_type", next(iter(keys)))


def test_number_beyond_all_bounds_is_refused(wire_format: Any) -> None:
    body = b'{"model": "m", "temperature": 1e999}'

    with pytest.raises(RequestError, match="`temperature`"):
        caller_settings(Request(wire_format=wire_format, body=body))


def test_number_that_nobody_can_read_is_refused(wire_format: Any) -> None:
    body = b'{"model": "m", "temperature": ' + b"1" * 5000 + b"}"

    with pytest.raises(RequestError) as caught:
        caller_settings(Request(wire_format=wire_format, body=body))
    assert (caught.value.code, caught.value.param) == ("invalid_type", "temperature")
