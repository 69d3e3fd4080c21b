"""A conversation of our own: what providers said goes back to the byte."""

from __future__ import annotations

import json

import pytest

from switchyard_core.answering import ModelCall, RequestedCall, ToolOutput
from switchyard_core.conversation import Image
from switchyard_core.declarations import WIRE_FORMATS
from switchyard_core.testing import assert_valid_for
from switchyard_core.wire import format_of
from switchyard_core.wire.transcript import Transcript

each_format = pytest.mark.parametrize("wire_format", WIRE_FORMATS)

# What a tree would change: numbers, escapes, order of keys, keys that nobody knows.
ITEMS = {
    "openai_chat": [
        (
            b'{"content": "Let me \\u0073ee.", "role": "assistant", "reasoning_content": "h\\/m",'
            b' "ours": 1.10, "tool_calls": [{"id": "c1", "type": "function", "function": {"name":'
            b' "search", "arguments": "{\\"max\\": 1.10}"}}, {"id": "c2", "type": "function",'
            b' "function": {"name": "search", "arguments": "{}"}}]}'
        )
    ],
    "openai_responses": [
        b'{"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "b\\u0033Bh"}',
        (
            b'{"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",'
            b' "content": [{"type": "output_text", "text": "Let me see.", "annotations": [],'
            b' "ours": 1.10}]}'
        ),
        (
            b'{"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "search",'
            b' "arguments": "{\\"max\\": 1.10}", "status": "completed"}'
        ),
        (
            b'{"type": "function_call", "id": "fc_2", "call_id": "c2", "name": "search",'
            b' "arguments": "{}", "status": "completed"}'
        ),
    ],
    "anthropic_messages": [
        (
            b'{"role":"assistant","content":[{"type": "thinking", "thinking": "h\\u006d",'
            b' "signature": "c2ln"}, {"type": "text", "text": "Let me see."}, {"type": "tool_use",'
            b' "id": "c1", "name": "search", "input": {"max": 1.10}}, {"type": "tool_use",'
            b' "id": "c2", "name": "search", "input": {}}]}'
        )
    ],
}


def answer(wire_format) -> bytes:
    items = ITEMS[wire_format]
    if wire_format == "openai_chat":
        return b'{"choices": [{"message": ' + items[0] + b', "finish_reason": "tool_calls"}]}'
    if wire_format == "openai_responses":
        return b'{"status": "completed", "output": [' + b", ".join(items) + b"]}"
    content = items[0].removeprefix(b'{"role":"assistant","content":').removesuffix(b"}")
    return b'{"stop_reason": "tool_use", "content": ' + content + b"}"


def outputs(reply):
    first, second = reply.calls
    return (
        ToolOutput(call=first, text="a camera for $80"),
        ToolOutput(call=second, text="too slow", ok=False, error="timeout"),
    )


def sent(transcript) -> bytes:
    """Return the body of a call with a transcript, which its provider accepts."""
    call = ModelCall(items=transcript.items, instructions="Do the step.")
    raw = format_of(transcript.wire_format).compose(call, "large")
    assert_valid_for(transcript.wire_format, raw)
    return raw


@each_format
def test_reply_goes_back_to_the_byte_and_the_call_is_valid(wire_format):
    transcript = Transcript(wire_format)
    transcript.user("Step 1: search")
    reply = format_of(wire_format).read_reply(answer(wire_format))
    transcript.reply(reply)
    transcript.results(outputs(reply))
    transcript.user("Step 2: choose", [Image(url="https://example.test/a.png")])

    raw = sent(transcript)

    assert [call.id for call in reply.calls] == ["c1", "c2"]
    assert b",".join(ITEMS[wire_format]) in raw


@each_format
def test_results_name_their_calls_and_messages_says_which_failed(wire_format):
    transcript = Transcript(wire_format)
    reply = format_of(wire_format).read_reply(answer(wire_format))
    transcript.user("Step 1")
    transcript.reply(reply)
    before = len(transcript.items)
    transcript.results(outputs(reply))

    assert (
        list(transcript.items[before:])
        == {
            "openai_chat": [
                {"role": "tool", "tool_call_id": "c1", "content": "a camera for $80"},
                {"role": "tool", "tool_call_id": "c2", "content": "too slow"},
            ],
            "openai_responses": [
                {"type": "function_call_output", "call_id": "c1", "output": "a camera for $80"},
                {"type": "function_call_output", "call_id": "c2", "output": "too slow"},
            ],
            "anthropic_messages": [
                {
                    "role": "user",
                    "content": [
                        {"type": "tool_result", "tool_use_id": "c1", "content": "a camera for $80"},
                        {
                            "type": "tool_result",
                            "tool_use_id": "c2",
                            "content": "too slow",
                            "is_error": True,
                        },
                    ],
                }
            ],
        }[wire_format]
    )
    sent(transcript)


def test_failure_without_a_text_has_one_in_messages():
    transcript = Transcript("anthropic_messages")
    call = RequestedCall(id="c", name="f", arguments="{}")

    transcript.results([ToolOutput(call=call, text="", ok=False)])

    assert transcript.items[0]["content"][0]["content"] == "failed"


@each_format
def test_results_of_other_calls_are_refused_and_named(wire_format):
    transcript = Transcript(wire_format)
    reply = format_of(wire_format).read_reply(answer(wire_format))
    transcript.reply(reply)

    with pytest.raises(ValueError, match="asks for the calls c1, c2; there are results of c1"):
        transcript.results(outputs(reply)[:1])
    assert len(transcript.items) == len(ITEMS[wire_format])


@each_format
def test_no_results_add_nothing(wire_format):
    transcript = Transcript(wire_format)

    transcript.results(())

    assert transcript.items == ()


@each_format
def test_words_of_an_assistant_elsewhere_are_kept_unless_they_are_blank(wire_format):
    transcript = Transcript(wire_format, [{"role": "user", "content": "hello"}])
    transcript.assistant("yes?")
    transcript.assistant(" \n")
    transcript.user("a gift")

    assert [item["role"] for item in transcript.items] == ["user", "assistant", "user"]
    sent(transcript)


EMPTY = {
    "openai_chat": {"choices": [{"message": {"role": "assistant", "content": None}}]},
    "openai_responses": {"status": "completed", "output": []},
    "anthropic_messages": {"content": [], "stop_reason": "end_turn"},
}


@each_format
def test_reply_that_says_nothing_adds_nothing_that_is_refused(wire_format):
    transcript = Transcript(wire_format)
    transcript.user("Step 1")
    transcript.reply(format_of(wire_format).read_reply(json.dumps(EMPTY[wire_format]).encode()))
    transcript.user("Step 2")

    assert len(transcript.items) == 2
    sent(transcript)


@each_format
def test_transcript_can_be_kept_as_text_and_goes_back_to_the_byte(wire_format):
    transcript = Transcript(wire_format)
    transcript.user("Step 1 ✓\ud83d")
    reply = format_of(wire_format).read_reply(answer(wire_format))
    transcript.reply(reply)
    transcript.results(outputs(reply))

    kept = Transcript.loads(wire_format, transcript.dumps())

    assert kept.items == transcript.items
    assert sent(kept) == sent(transcript)


@each_format
def test_items_of_a_transcript_are_a_copy(wire_format):
    start = [{"role": "user", "content": "hello"}]
    transcript = Transcript(wire_format, start)
    items = transcript.items
    transcript.user("more")

    assert (len(start), len(items), len(transcript.items)) == (1, 1, 2)


@each_format
def test_structured_reply_of_a_forced_tool_can_be_answered(wire_format):
    plan = {
        "openai_chat": {
            "choices": [
                {
                    "message": {
                        "role": "assistant",
                        "content": None,
                        "tool_calls": [
                            {
                                "id": "c",
                                "type": "function",
                                "function": {"name": "plan", "arguments": "{}"},
                            }
                        ],
                    }
                }
            ]
        },
        "openai_responses": {
            "output": [
                {"type": "reasoning", "id": "rs_1", "summary": []},
                {"type": "function_call", "call_id": "c", "name": "plan", "arguments": "{}"},
            ]
        },
        "anthropic_messages": {
            "content": [{"type": "tool_use", "id": "c", "name": "plan", "input": {}}]
        },
    }[wire_format]
    transcript = Transcript(wire_format)
    transcript.user("a gift")
    transcript.reply(format_of(wire_format).read_reply(json.dumps(plan).encode(), "plan"))
    transcript.user("The plan has no goal.")

    assert transcript.items[1] == {"role": "assistant", "content": "{}"}
    sent(transcript)
