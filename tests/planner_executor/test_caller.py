"""What a caller asks for beside the task: what is refused, and what reaches the executor."""

from __future__ import annotations

from typing import Any

import pytest

from switchyard_core import Request, RequestError, WireFormat
from switchyard_core.testing import conversation
from switchyard_core.wire import WIRE_FORMATS
from switchyard_planner_executor import PlannerExecutorOptions
from switchyard_planner_executor.caller import (
    Caller,
    read_caller,
    refuse_unserved,
    require_user_text,
)
from tests.planner_executor.shop import ROUTE, readable

SCHEMA = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}}
SERVER = {"type": "url", "url": "https://x.test", "name": "x"}


def options(**changes: Any) -> PlannerExecutorOptions:
    return PlannerExecutorOptions(planner_target="p", executor_target="e", **changes)


def asked(wire_format: WireFormat, text: str = "a gift", /, **body: Any) -> Request:
    return readable(conversation(wire_format).user(text).request(ROUTE, **body))


def caller_of(request: Request, target: WireFormat = "openai_chat", **changes: Any) -> Caller:
    return read_caller(request, options(**changes), target)


#: Wire format, keys of the body, code and param of the refusal.
REFUSED: tuple[tuple[WireFormat, dict[str, Any], str, str], ...] = (
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
    ("openai_responses", {"conversation": {"id": "c"}}, "continuation_unsupported", "conversation"),
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
    ("openai_chat", {"web_search_options": {}}, "hosted_tools_unsupported", "web_search_options"),
    ("openai_chat", {"audio": {"voice": "alloy"}}, "audio_unsupported", "audio"),
    ("openai_responses", {"prompt": {"id": "p_1"}}, "stored_prompt_unsupported", "prompt"),
    ("anthropic_messages", {"mcp_servers": [SERVER]}, "hosted_tools_unsupported", "mcp_servers"),
)
#: What only looks like it.
SERVED: tuple[tuple[WireFormat, dict[str, Any]], ...] = (
    ("openai_chat", {"n": 1}),
    ("openai_chat", {"response_format": {"type": "text"}}),
    ("openai_chat", {"background": True}),
    ("openai_chat", {"tools": []}),
    ("openai_responses", {"text": {"format": {"type": "text"}, "verbosity": "low"}}),
    ("openai_responses", {"text": "x"}),
    ("openai_responses", {"background": False}),
    ("openai_responses", {"n": 2}),
    ("anthropic_messages", {"output_config": {"effort": "low"}}),
    ("anthropic_messages", {"metadata": {"user_id": "x"}}),
    ("anthropic_messages", {"mcp_servers": []}),
)
NULLS = ("n", "response_format", "text", "background", "conversation", "output_config", "thread")


def test_what_cannot_be_served_is_refused_with_its_own_code() -> None:
    for wire_format, keys, code, param in REFUSED:
        with pytest.raises(RequestError) as caught:
            refuse_unserved(asked(wire_format, **keys), options())

        error = caught.value
        assert (error.status, error.code, error.param) == (400, code, param)
        assert error.headers["x-should-retry"] == "false"
        assert f"`{param}`: leave it out" in error.message


def test_what_only_looks_like_it_is_served() -> None:
    for wire_format, keys in (*SERVED, *((f, {key: None}) for f in WIRE_FORMATS for key in NULLS)):
        refuse_unserved(asked(wire_format, **keys), options())


@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
def test_callers_tools_are_refused_or_a_warning(wire_format: WireFormat) -> None:
    request = readable(conversation(wire_format).user("a gift").offers("edit").request())

    with pytest.raises(RequestError) as caught:
        refuse_unserved(request, options())
    error = caught.value
    assert (error.status, error.code, error.param) == (400, "caller_tools_unsupported", "tools")
    assert error.headers["x-should-retry"] == "false"

    refuse_unserved(request, options(caller_tools="ignore"))
    assert [w.code for w in caller_of(request).warnings] == ["caller_tools_ignored"]


@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
def test_request_without_a_text_of_the_user_is_refused(wire_format: WireFormat) -> None:
    for text in ("", " \n"):
        with pytest.raises(RequestError) as caught:
            require_user_text(asked(wire_format, text))

        error = caught.value
        assert (error.status, error.code) == (400, "no_user_text")
        assert error.param == ("input" if wire_format == "openai_responses" else "messages")
        assert error.headers["x-should-retry"] == "false"
    require_user_text(asked(wire_format))


@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
def test_dropped_instructions_are_a_warning_and_kept_ones_are_not(wire_format: WireFormat) -> None:
    request = readable(conversation(wire_format).system("be brief").user("a gift").request())

    dropped, kept = caller_of(request), caller_of(request, caller_instructions="executor")

    assert [w.code for w in dropped.warnings] == ["caller_instructions_dropped"]
    assert (dropped.instructions, kept.instructions) == ("", "be brief")
    assert kept.warnings == ()


def test_files_that_cannot_be_passed_on_are_a_warning() -> None:
    file = {"type": "input_file", "file_id": "file_1"}
    content = [{"type": "input_text", "text": "read these"}, file, file]
    request = asked("openai_responses", input=[{"role": "user", "content": content}])

    (warning,) = caller_of(request).warnings

    assert warning.code == "request_parts_left_out"
    assert warning.detail.endswith(": input_file")


# --- settings --------------------------------------------------------------------------------

#: Wire format, keys of the body, sampling by neutral names, token limit.
SETTINGS: tuple[tuple[WireFormat, dict[str, Any], dict[str, Any], int | None], ...] = (
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
        {
            "temperature": 0.2,
            "top_p": 1,
            "stop": ("END",),
            "seed": 7,
            "frequency_penalty": 0.1,
            "presence_penalty": -0.1,
        },
        40,
    ),
    ("openai_chat", {"max_tokens": 50}, {}, 50),
    (
        "openai_responses",
        {"temperature": 1, "top_p": 0.5, "stop": ["x"], "max_output_tokens": 64},
        {"temperature": 1, "top_p": 0.5},
        64,
    ),
    ("openai_responses", {}, {}, None),
    (
        "anthropic_messages",
        {"temperature": 0, "top_k": 5, "stop_sequences": ["a", "b"], "max_tokens": 99},
        {"temperature": 0, "top_k": 5, "stop": ("a", "b")},
        99,
    ),
)


def test_settings_are_read_under_neutral_names() -> None:
    for wire_format, keys, sampling, limit in SETTINGS:
        caller = caller_of(asked(wire_format, **keys))

        assert (dict(caller.sampling), caller.max_output_tokens) == (sampling, limit)


def test_settings_that_the_executors_format_has_no_place_for_are_a_warning() -> None:
    (warning,) = caller_of(asked("openai_chat", seed=7), "anthropic_messages").warnings

    assert warning.code == "sampling_left_out"
    assert warning.detail.endswith(": seed")


def test_setting_of_a_wrong_type_is_refused() -> None:
    wrong: tuple[tuple[WireFormat, str, Any], ...] = (
        ("openai_chat", "temperature", "warm"),
        ("openai_chat", "temperature", True),
        ("openai_chat", "seed", 1.5),
        ("openai_chat", "stop", [1]),
        ("openai_chat", "stop", {"a": 1}),
        ("openai_chat", "max_completion_tokens", 0),
        ("openai_responses", "max_output_tokens", "many"),
        ("anthropic_messages", "top_k", 1.5),
        ("anthropic_messages", "max_tokens", -1),
    )
    for wire_format, key, value in wrong:
        with pytest.raises(RequestError) as caught:
            caller_of(asked(wire_format, **{key: value}))

        assert (caught.value.code, caught.value.param) == ("invalid_type", key), value


def test_numbers_out_of_range_or_that_nobody_can_read_are_refused() -> None:
    for wire_format in WIRE_FORMATS:
        for number in (b"1e999", b"1" * 5000):
            body = b'{"model": "m", "temperature": ' + number + b"}"
            with pytest.raises(RequestError, match="`temperature`"):
                caller_of(readable(Request(wire_format=wire_format, body=body)))
