"""Answers of our own in three wire formats, read by the official SDKs' own helpers."""

from __future__ import annotations

import json
from typing import Any

import anthropic
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchyard_core.answering import (
    Announced,
    Extension,
    Finished,
    ModelUsage,
    Progress,
    SectionFinished,
    SectionStarted,
    TextDelta,
    Usage,
)
from switchyard_core.testing import assert_valid_for
from switchyard_core.wire import WIRE_FORMATS, format_of
from switchyard_core.wire.answers import answer_id, answer_writer, comment

each_format = pytest.mark.parametrize("wire_format", WIRE_FORMATS)

EXTENSION = {"plan_id": "plan_1", "steps": [{"step": 1, "status": "completed"}]}
EVENTS = (
    Announced(phase="running", facts={"plan-id": "plan_1"}),
    SectionStarted(kind="plan", title="Plan"),
    TextDelta("1. search "),
    TextDelta("✓\n2. answer\n\n\n"),
    SectionFinished(),
    Usage(ModelUsage(input_tokens=300, output_tokens=100, cached_tokens=40)),
    Progress({"event": "step_started"}),
    SectionStarted(kind="step"),
    TextDelta("Found it."),
    SectionFinished(),
    Usage(ModelUsage(input_tokens=20, output_tokens=5)),
    Extension(EXTENSION),
    Finished("completed"),
)
EMPTY = (Finished("completed"),)
TEXTS = ["1. search ✓\n2. answer\n\n", "Found it.\n\n"]


def writer(wire_format, **settings):
    made = answer_id(format_of(wire_format), lambda prefix: f"{prefix}_0123")
    known = {"model": "team/shop", "answer_id": made, "created_s": 1_700_000_000}
    return answer_writer(format_of(wire_format), **(known | settings))


def streamed(wire_format, events, **settings) -> bytes:
    """Return a stream with a comment between any two events."""
    made = writer(wire_format, **settings)
    parts = [made.begin(), *(made.event(event) for event in events), made.end()]
    return comment({"event": "between"}).join(parts)


def whole(wire_format, events, **settings) -> bytes:
    made = writer(wire_format, **settings)
    for event in events:
        made.note(event)
    return made.whole()


def data_of(stream: bytes) -> list[Any]:
    lines = [line for line in stream.decode().split("\n") if line.startswith("data: ")]
    return [json.loads(line[6:]) for line in lines if line != "data: [DONE]"]


# --- by the official SDKs -------------------------------------------------------------------------


def client(wire_format, body: bytes, *, stream: bool):
    """Return a client of the format's SDK that is answered with these bytes."""
    sdk = anthropic if wire_format == "anthropic_messages" else openai
    # The package that the SDK makes its requests with; it is not the same in all versions.
    http = getattr(sdk._base_client, "httpx2", None) or sdk._base_client.httpx
    kind = {"content-type": "text/event-stream" if stream else "application/json"}
    transport = http.MockTransport(lambda _: http.Response(200, content=body, headers=kind))
    make = anthropic.AsyncAnthropic if sdk is anthropic else openai.AsyncOpenAI
    return make(
        api_key="key",
        max_retries=0,
        http_client=http.AsyncClient(transport=transport),
        _strict_response_validation=True,
    )


async def created(wire_format, body: bytes) -> Any:
    async with client(wire_format, body, stream=False) as made:
        if wire_format == "openai_chat":
            return await made.chat.completions.create(model="m", messages=[])
        if wire_format == "openai_responses":
            return await made.responses.create(model="m", input="x")
        return await made.messages.create(model="m", messages=[], max_tokens=9)


async def helped(wire_format, body: bytes) -> tuple[list[Any], Any]:
    """Return the events of the SDK's stream helper, and what it made of them."""
    async with client(wire_format, body, stream=True) as made:
        if wire_format == "openai_chat":
            manager = made.chat.completions.stream(model="m", messages=[])
        elif wire_format == "openai_responses":
            manager = made.responses.stream(model="m", input="x")
        else:
            manager = made.messages.stream(model="m", messages=[], max_tokens=9)
        async with manager as stream:
            events = [event async for event in stream]
            if wire_format == "openai_chat":
                return events, await stream.get_final_completion()
            if wire_format == "openai_responses":
                return events, await stream.get_final_response()
            return events, await stream.get_final_message()


def texts_of(wire_format, answer: Any) -> list[str]:
    if wire_format == "openai_chat":
        return [answer.choices[0].message.content]
    if wire_format == "openai_responses":
        assert answer.output_text == "".join(item.content[0].text for item in answer.output)
        return [item.content[0].text for item in answer.output]
    return [block.text for block in answer.content]


def expected(wire_format, texts: list[str]) -> list[str]:
    return ["".join(texts)] if wire_format == "openai_chat" else texts


def stopped(wire_format, answer: Any) -> str:
    if wire_format == "openai_chat":
        return answer.choices[0].finish_reason
    return answer.status if wire_format == "openai_responses" else answer.stop_reason


STOPS = {
    "openai_chat": "stop",
    "openai_responses": "completed",
    "anthropic_messages": "end_turn",
}


@each_format
@pytest.mark.parametrize(("events", "texts"), [(EVENTS, TEXTS), (EMPTY, [])], ids=["two", "none"])
async def test_whole_answer_is_what_the_sdk_expects(wire_format, events, texts):
    answer = await created(wire_format, whole(wire_format, events))

    assert texts_of(wire_format, answer) == expected(wire_format, texts)
    assert stopped(wire_format, answer) == STOPS[wire_format]
    assert answer.model == "team/shop"
    assert answer.model_extra.get("switchyard") == (EXTENSION if texts else None)


@each_format
@pytest.mark.parametrize(("events", "texts"), [(EVENTS, TEXTS), (EMPTY, [])], ids=["two", "none"])
async def test_stream_accumulates_to_the_whole_answer(wire_format, events, texts):
    settings = {"include_usage": True}
    stream = streamed(wire_format, events, **settings)

    seen, answer = await helped(wire_format, stream)
    other = await created(wire_format, whole(wire_format, events, **settings))

    assert texts_of(wire_format, answer) == expected(wire_format, texts)
    assert (answer.id, answer.model) == (other.id, other.model)
    assert stopped(wire_format, answer) == STOPS[wire_format]
    assert answer.usage.to_dict() == other.usage.to_dict()
    found = [_extra(event) for event in seen]
    assert [extra for extra in found if extra] == ([EXTENSION] if texts else [])


def _extra(event: Any) -> Any:
    """Return the extension as a user of the helper finds it."""
    if event.type == "chunk":
        return event.chunk.model_extra.get("switchyard")
    if event.type == "response.completed":
        return event.response.model_extra.get("switchyard")
    return event.model_extra.get("switchyard") if event.type == "message_delta" else None


@each_format
async def test_usage_is_the_sum_in_the_formats_own_words(wire_format):
    usage = (await created(wire_format, whole(wire_format, EVENTS))).usage

    if wire_format == "openai_chat":
        assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (320, 105, 425)
        assert usage.prompt_tokens_details.cached_tokens == 40
    elif wire_format == "openai_responses":
        assert (usage.input_tokens, usage.output_tokens, usage.total_tokens) == (320, 105, 425)
        assert usage.input_tokens_details.cached_tokens == 40
    else:
        assert (usage.input_tokens, usage.output_tokens) == (280, 105)
        assert usage.cache_read_input_tokens == 40


@each_format
async def test_answer_can_be_sent_back_as_history(wire_format):
    answer = await created(wire_format, whole(wire_format, EVENTS))

    user = {"role": "user", "content": "and then?"}
    if wire_format == "openai_chat":
        history = [user, answer.choices[0].message.to_dict(), user]
        assert_valid_for(wire_format, {"model": "m", "messages": history})
    elif wire_format == "openai_responses":
        history = [user, *(item.to_dict() for item in answer.output), user]
        assert_valid_for(wire_format, {"model": "m", "input": history})
    else:
        said = {"role": "assistant", "content": [block.to_dict() for block in answer.content]}
        body = {"model": "m", "max_tokens": 9, "messages": [user, said, user]}
        assert_valid_for(wire_format, body)


# --- as bytes -------------------------------------------------------------------------------------


@pytest.mark.parametrize("include_usage", [True, False])
def test_every_chunk_of_chat_has_one_choice_and_the_last_one_all_the_rest(include_usage):
    stream = streamed("openai_chat", EVENTS, include_usage=include_usage)
    chunks = data_of(stream)

    assert [len(chunk["choices"]) for chunk in chunks] == [1] * len(chunks)
    assert chunks[0]["choices"][0]["delta"]["role"] == "assistant"
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks[:-1]] == [None] * (
        len(chunks) - 1
    )
    assert [chunk for chunk in chunks if "switchyard" in chunk] == [chunks[-1]]
    assert [c.get("usage", "none") for c in chunks[:-1]] == [None if include_usage else "none"] * (
        len(chunks) - 1
    )
    assert ("usage" in chunks[-1]) is include_usage
    assert stream.endswith(b"\n\ndata: [DONE]\n\n")


def test_responses_numbers_its_events_and_gives_each_item_its_whole_sequence():
    events = data_of(streamed("openai_responses", EVENTS))

    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    item = [
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
    ]
    kinds = [event["type"] for event in events]
    assert list(dict.fromkeys(kinds)) == [
        "response.created",
        "response.in_progress",
        *item,
        "response.completed",
    ]
    for index in (0, 1):
        own = [event["type"] for event in events if event.get("output_index") == index]
        assert list(dict.fromkeys(own)) == item
    ids = {event["item_id"] for event in events if "item_id" in event}
    assert ids == {item["id"] for item in events[-1]["response"]["output"]}
    assert len(ids) == 2


def test_names_of_events_are_their_types():
    for wire_format in ("openai_responses", "anthropic_messages"):
        lines = streamed(wire_format, EVENTS).decode().split("\n")
        names = [line.removeprefix("event: ") for line in lines if line.startswith("event: ")]

        assert names == [event["type"] for event in data_of(streamed(wire_format, EVENTS))]


@each_format
def test_first_section_is_in_the_stream_before_the_second_begins(wire_format):
    made = writer(wire_format)
    before = made.begin() + b"".join(made.event(event) for event in EVENTS[:5])

    after = b"".join(made.event(event) for event in EVENTS[5:])
    assert b"2. answer" in before
    assert b"Found" in after
    assert b"Found" not in before


@each_format
def test_other_key_for_the_extension(wire_format):
    body = json.loads(whole(wire_format, EVENTS, extension_key="x_ours"))

    assert (body["x_ours"], "switchyard" in body) == (EXTENSION, False)


@each_format
def test_unfinished_answer_has_no_end(wire_format):
    made = writer(wire_format)

    with pytest.raises(ValueError, match="the last event of an answer is `Finished`"):
        made.end()
    with pytest.raises(ValueError, match="the last event of an answer is `Finished`"):
        made.whole()


@each_format
def test_events_out_of_order_are_refused_whole_and_streamed(wire_format):
    with pytest.raises(ValueError, match="outside of a section"):
        writer(wire_format).event(TextDelta("x"))
    with pytest.raises(ValueError, match="outside of a section"):
        writer(wire_format).note(TextDelta("x"))


@pytest.mark.parametrize(
    ("wire_format", "made"),
    [
        ("openai_chat", "chatcmpl-ab_c"),
        ("openai_responses", "resp_ab_c"),
        ("anthropic_messages", "msg_ab_c"),
    ],
)
def test_id_is_formed_as_clients_know_it(wire_format, made):
    assert answer_id(format_of(wire_format), lambda prefix: f"{prefix}_ab_c") == made


SECTIONS = st.lists(st.lists(st.text(max_size=6), max_size=4), max_size=3)


@each_format
@given(sections=SECTIONS)
def test_any_answer_has_the_same_content_whole_and_streamed(wire_format, sections):
    events = []
    for deltas in sections:
        events += [SectionStarted(kind="s"), *map(TextDelta, deltas), SectionFinished()]
    events.append(Finished("completed"))

    body = json.loads(whole(wire_format, events))
    seen = data_of(streamed(wire_format, events))

    texts = _texts(wire_format, body)
    assert _accumulated(wire_format, seen) == texts
    said = ["".join(deltas).rstrip() for deltas in sections]
    assert texts == expected(wire_format, [f"{text}\n\n" for text in said if text])


def _texts(wire_format, body) -> list[str]:
    if wire_format == "openai_chat":
        return [body["choices"][0]["message"]["content"]]
    if wire_format == "openai_responses":
        return [item["content"][0]["text"] for item in body["output"]]
    return [block["text"] for block in body["content"]]


def _accumulated(wire_format, seen) -> list[str]:
    if wire_format == "openai_chat":
        return ["".join(c["choices"][0]["delta"].get("content", "") for c in seen)]
    if wire_format == "openai_responses":
        assert _texts(wire_format, seen[-1]["response"]) == [
            event["text"] for event in seen if event["type"] == "response.output_text.done"
        ]
    index, text = (
        ("output_index", lambda event: event["delta"])
        if wire_format == "openai_responses"
        else ("index", lambda event: event["delta"]["text"])
    )
    found: dict[int, str] = {}
    for event in seen:
        if event["type"] in ("response.output_text.delta", "content_block_delta"):
            found[event[index]] = found.get(event[index], "") + text(event)
    return [found[number] for number in sorted(found)]
