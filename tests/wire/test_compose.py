"""Calls of our own, written in three wire formats."""

from __future__ import annotations

import json

import pytest

from switchyard_core.answering import ModelCall, ToolSpec
from switchyard_core.conversation import Image
from switchyard_core.declarations import WIRE_FORMATS
from switchyard_core.testing import assert_valid_for
from switchyard_core.wire import format_of, left_out_sampling

each_format = pytest.mark.parametrize("wire_format", WIRE_FORMATS)

SCHEMA = {
    "type": "object",
    "properties": {"goal": {"type": "string"}},
    "required": ["goal"],
    "additionalProperties": False,
}
PNG = "data:image/png;base64,aGk="
URL = "https://example.test/a.jpg"
SEARCH = ToolSpec(name="search", description="Finds.", parameters=SCHEMA)
SAMPLING = {
    "temperature": 0.5,
    "top_p": 0.9,
    "top_k": 40,
    "stop": ("END",),
    "seed": 7,
    "frequency_penalty": 0.1,
    "presence_penalty": 0.2,
}


def body(wire_format, call, mode="json_schema"):
    """Return the body of a call, which the format's provider accepts."""
    raw = format_of(wire_format).compose(call, "large", mode)
    assert_valid_for(wire_format, raw)
    return json.loads(raw)


@each_format
def test_tools_are_told_in_the_formats_own_way(wire_format):
    made = body(wire_format, ModelCall(text="x", tools=(SEARCH,)))

    named = {"name": "search", "description": "Finds."}
    assert made["tools"] == [
        {
            "openai_chat": {"type": "function", "function": {**named, "parameters": SCHEMA}},
            "openai_responses": {
                "type": "function",
                **named,
                "parameters": SCHEMA,
                "strict": False,
            },
            "anthropic_messages": {**named, "input_schema": SCHEMA},
        }[wire_format]
    ]
    assert "tool_choice" not in made


@each_format
def test_call_without_tools_has_no_word_of_tools(wire_format):
    made = body(wire_format, ModelCall(text="x", schema=SCHEMA))

    assert not {"tools", "tool_choice"} & made.keys()


def test_tool_in_the_targets_own_format_goes_as_it_is():
    tool = {"type": "web_search"}
    made = json.loads(
        format_of("openai_responses").compose(ModelCall(text="x", tools=(tool,)), "large")
    )

    assert made["tools"] == [tool]


@each_format
def test_images_stand_beside_the_text(wire_format):
    images = (Image(url=PNG), Image(url=URL, detail="high"))
    made = body(wire_format, ModelCall(text="what?", images=images))

    (item,) = made.get("messages") or made["input"]
    assert (
        item["content"]
        == {
            "openai_chat": [
                {"type": "text", "text": "what?"},
                {"type": "image_url", "image_url": {"url": PNG}},
                {"type": "image_url", "image_url": {"url": URL, "detail": "high"}},
            ],
            "openai_responses": [
                {"type": "input_text", "text": "what?"},
                {"type": "input_image", "image_url": PNG, "detail": "auto"},
                {"type": "input_image", "image_url": URL, "detail": "high"},
            ],
            "anthropic_messages": [
                {"type": "text", "text": "what?"},
                {
                    "type": "image",
                    "source": {"type": "base64", "media_type": "image/png", "data": "aGk="},
                },
                {"type": "image", "source": {"type": "url", "url": URL}},
            ],
        }[wire_format]
    )


@each_format
def test_image_without_a_text_stands_alone(wire_format):
    made = body(wire_format, ModelCall(images=(Image(url=URL),)))

    (item,) = made.get("messages") or made["input"]
    assert len(item["content"]) == 1


@pytest.mark.parametrize(
    ("wire_format", "sent"),
    [("openai_chat", 1.5), ("openai_responses", 1.5), ("anthropic_messages", 1.0)],
)
def test_temperature_is_what_the_format_takes_at_most(wire_format, sent):
    made = body(wire_format, ModelCall(text="x", sampling={"temperature": 1.5}))

    assert made["temperature"] == sent


@each_format
def test_sampling_goes_where_the_format_has_a_place_for_it(wire_format):
    made = body(wire_format, ModelCall(text="x", sampling=SAMPLING))

    places = {
        "openai_chat": (
            {**SAMPLING, "stop": ["END"], "top_k": None},
            ("top_k",),
        ),
        "openai_responses": (
            {"temperature": 0.5, "top_p": 0.9},
            ("top_k", "stop", "seed", "frequency_penalty", "presence_penalty"),
        ),
        "anthropic_messages": (
            {"temperature": 0.5, "top_p": 0.9, "top_k": 40, "stop_sequences": ["END"]},
            ("seed", "frequency_penalty", "presence_penalty"),
        ),
    }
    settings, left_out = places[wire_format]
    names = {*SAMPLING, "stop_sequences"}
    assert {name: made.get(name) for name in names} == {n: settings.get(n) for n in names}
    assert left_out_sampling(wire_format, SAMPLING) == left_out


@each_format
def test_setting_that_is_none_is_absent_and_an_unknown_one_left_out(wire_format):
    sampling = {"top_p": None, "seed": None, "min_p": 0.1}
    made = body(wire_format, ModelCall(text="x", sampling=sampling))

    assert not {"top_p", "seed", "min_p"} & made.keys()
    assert left_out_sampling(wire_format, sampling) == ("min_p",)


@each_format
def test_temperature_of_the_call_wins_and_one_stop_word_is_a_list(wire_format):
    call = ModelCall(text="x", temperature=0.0, sampling={"temperature": 1.0, "stop": "END"})
    made = body(wire_format, call)

    assert made["temperature"] == 0.0
    assert made.get("stop", made.get("stop_sequences", ["END"])) == ["END"]


@each_format
@pytest.mark.parametrize("keep", [True, False])
def test_reasoning_is_asked_for_where_the_format_wants_to_be_asked(wire_format, keep):
    made = body(wire_format, ModelCall(text="x", keep_reasoning=keep))

    responses = wire_format == "openai_responses"
    asked = ["reasoning.encrypted_content"] if responses and keep else None
    assert made.get("include") == asked
    assert made.get("store") is (False if responses else None)


@each_format
def test_schema_as_a_forced_tool(wire_format):
    call = ModelCall(text="x", tools=(SEARCH,), schema=SCHEMA, schema_name="plan")
    made = body(wire_format, call, "forced_tool")

    tool = made["tools"][-1]
    function = tool.get("function", tool)
    assert function["name"] == "plan"
    assert function.get("parameters", function.get("input_schema")) == SCHEMA
    assert len(made["tools"]) == 2
    assert (
        made["tool_choice"]
        == {
            "openai_chat": {"type": "function", "function": {"name": "plan"}},
            "openai_responses": {"type": "function", "name": "plan"},
            "anthropic_messages": {"type": "tool", "name": "plan"},
        }[wire_format]
    )
    assert not {"response_format", "text", "output_config"} & made.keys()


@each_format
@pytest.mark.parametrize("instructions", ["Plan.", ""])
def test_schema_in_words(wire_format, instructions):
    call = ModelCall(text="x", instructions=instructions, schema=SCHEMA)
    made = body(wire_format, call, "prompt")

    told = made.get("instructions") or made.get("system") or made["messages"][0]["content"]
    assert told.startswith(f"{instructions}\n\nAnswer with" if instructions else "Answer with")
    assert json.loads(told.rsplit("\n\n", 1)[1]) == SCHEMA
    named = {"response_format", "text", "output_config", "tools", "tool_choice"}
    assert not named & made.keys()


@each_format
@pytest.mark.parametrize("mode", ["json_schema", "forced_tool", "prompt"])
def test_call_without_a_schema_is_the_same_in_every_mode(wire_format, mode):
    call = ModelCall(text="x", instructions="Do.", tools=(SEARCH,))

    assert format_of(wire_format).compose(call, "large", mode) == format_of(wire_format).compose(
        call, "large"
    )


@each_format
def test_text_that_half_an_emoji_ends_can_be_sent(wire_format):
    made = json.loads(
        format_of(wire_format).compose(ModelCall(text="x\ud83d", instructions="y"), "large")
    )

    assert (made.get("messages") or made["input"])[-1]["content"] == "x\ud83d"
