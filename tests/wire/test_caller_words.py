"""What the user said last and what the caller instructs: the same in three wire formats."""

from __future__ import annotations

import pytest
from hypothesis import given

from switchyard_core.conversation import Image, UserMessage
from switchyard_core.declarations import WIRE_FORMATS
from switchyard_core.errors import BodyError
from switchyard_core.request import Request
from tests.support.cases import each_of
from tests.support.strategies import VALUES

each_format = pytest.mark.parametrize("wire_format", WIRE_FORMATS)

PNG = "data:image/png;base64,aGk="
URL = "https://example.test/a.jpg"
KEY = {
    "openai_chat": "messages",
    "openai_responses": "input",
    "anthropic_messages": "messages",
}
LAST = {
    "openai_chat": [
        {"type": "text", "text": "a gift"},
        {"type": "image_url", "image_url": {"url": PNG}},
        {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}},
        {"type": "text", "text": ""},
        {"type": "image_url", "image_url": {"url": URL, "detail": "auto"}},
        {"type": "text", "text": "under $200"},
    ],
    "openai_responses": [
        {"type": "input_text", "text": "a gift"},
        {"type": "input_image", "image_url": PNG, "detail": "auto"},
        {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}},
        {"type": "input_text", "text": ""},
        {"type": "input_image", "image_url": URL},
        {"type": "input_text", "text": "under $200"},
    ],
    "anthropic_messages": [
        {"type": "text", "text": "a gift"},
        {
            "type": "image",
            "source": {"type": "base64", "media_type": "image/png", "data": "aGk="},
        },
        {"type": "input_audio"},
        {"type": "text", "text": ""},
        {"type": "image", "source": {"type": "url", "url": URL}},
        {"type": "text", "text": "under $200"},
    ],
}
LATER = {
    "openai_chat": [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
            ],
        },
        {"role": "tool", "tool_call_id": "c", "content": "result"},
    ],
    "openai_responses": [
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "result"},
    ],
    "anthropic_messages": [
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {}}],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "c", "content": "result"}],
        },
    ],
}


def read(wire_format, history, **body) -> Request:
    made = {"model": "m", KEY[wire_format]: history, **body}
    return Request(wire_format=wire_format, body=made)


@each_format
@pytest.mark.parametrize("later", [False, True], ids=["last", "before_a_tool_result"])
def test_user_message_is_the_same_in_three_formats(wire_format, later):
    history = [
        {"role": "user", "content": "earlier"},
        {"role": "assistant", "content": "yes?"},
        {"role": "user", "content": LAST[wire_format]},
        *(LATER[wire_format] if later else ()),
    ]

    assert read(wire_format, history).user_message == UserMessage(
        text="a gift\n\nunder $200",
        images=(Image(url=PNG), Image(url=URL)),
        left_out=("input_audio",),
    )


@each_format
def test_content_that_is_a_string_counts(wire_format):
    history = [{"role": "user", "content": "a gift ✓"}]

    assert read(wire_format, history).user_message == UserMessage(text="a gift ✓")


def test_input_that_is_a_string_counts():
    assert read("openai_responses", "a gift").user_message == UserMessage(text="a gift")


def test_request_that_only_continues_has_no_user_text():
    request = Request(
        wire_format="openai_responses", body={"model": "m", "previous_response_id": "resp_1"}
    )

    assert request.user_message == UserMessage(text="")
    assert request.instructions == ""


@each_format
@each_of(
    "history",
    [[], [{"role": "assistant", "content": "hello"}], [{"role": "user", "content": []}], [3]],
)
def test_no_user_text_is_an_empty_text(wire_format, history):
    assert read(wire_format, history).user_message == UserMessage(text="")


@each_of(
    ("wire_format", "part", "kind"),
    [
        ("openai_chat", {"type": "file", "file": {"file_id": "f"}}, "file"),
        ("openai_chat", {"type": "image_url", "image_url": {}}, "image_url"),
        ("openai_responses", {"type": "input_file", "file_id": "f"}, "input_file"),
        ("openai_responses", {"type": "input_image", "file_id": "f"}, "input_image"),
        ("anthropic_messages", {"type": "document", "source": {}}, "document"),
        ("anthropic_messages", {"type": "image", "source": {"type": "file"}}, "image"),
        ("anthropic_messages", {"type": "image", "source": "x"}, "image"),
        ("anthropic_messages", {"type": "image", "source": {"type": "base64"}}, "image"),
        ("openai_chat", "no object", ""),
    ],
)
def test_what_cannot_be_passed_on_is_named(wire_format, part, kind):
    message = read(wire_format, [{"role": "user", "content": [part]}]).user_message

    assert message == UserMessage(text="", left_out=(kind,))


@pytest.mark.parametrize(
    ("wire_format", "part"),
    [
        ("openai_chat", {"type": "image_url", "image_url": {"url": URL, "detail": "high"}}),
        ("openai_chat", {"type": "image_url", "image_url": URL, "detail": "high"}),
        ("openai_responses", {"type": "input_image", "image_url": URL, "detail": "high"}),
    ],
)
def test_detail_of_an_image_is_kept(wire_format, part):
    message = read(wire_format, [{"role": "user", "content": [part]}]).user_message

    assert message.images == (Image(url=URL, detail="high"),)


def test_words_beside_a_tool_result_are_the_users():
    content = [
        {"type": "tool_result", "tool_use_id": "c", "content": "result"},
        {"type": "text", "text": "go on"},
    ]
    history = [{"role": "user", "content": "first"}, {"role": "user", "content": content}]

    assert read("anthropic_messages", history).user_message == UserMessage(text="go on")


INSTRUCTED = {
    "openai_chat": (
        {},
        [
            {"role": "system", "content": "Be brief."},
            {"role": "developer", "content": [{"type": "text", "text": "In English."}]},
        ],
    ),
    "openai_responses": (
        {"instructions": "Be brief."},
        [{"role": "developer", "content": [{"type": "input_text", "text": "In English."}]}],
    ),
    "anthropic_messages": (
        {"system": [{"type": "text", "text": "Be brief."}, {"type": "text", "text": ""}]},
        [{"role": "system", "content": "In English."}],
    ),
}


@each_format
def test_instructions_are_the_same_in_three_formats(wire_format):
    body, messages = INSTRUCTED[wire_format]
    user = {"role": "user", "content": "not this"}

    assert read(wire_format, [*messages, user], **body).instructions == "Be brief.\n\nIn English."
    assert read(wire_format, [user]).instructions == ""


@each_format
def test_history_of_a_wrong_type_is_refused(wire_format):
    request = read(wire_format, 3)

    with pytest.raises(BodyError):
        _ = request.user_message
    with pytest.raises(BodyError):
        _ = request.instructions


@each_format
@given(content=VALUES)
def test_any_content_is_read(wire_format, content):
    body = '{"model": "m", "system": %s, "%s": [{"role": "user", "content": %s}]}'
    request = Request(wire_format=wire_format, body=body % (content, KEY[wire_format], content))

    assert isinstance(request.user_message, UserMessage)
    assert isinstance(request.instructions, str)
