from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchyard_core.wire import WIRE_FORMATS, format_of
from switchyard_core.wire.passing import EDGE_BYTES, WHOLE_BYTES, AnswerTrace
from tests.support.usage import EXPECTED, USAGE, event, stream

WHOLE = {"content-type": "application/json; charset=utf-8"}
STREAM = {"content-type": "text/event-stream"}


def traced(wire_format, headers, data, size=100):
    trace = AnswerTrace(format_of(wire_format), headers.get("content-type", ""))
    for start in range(0, len(data), size):
        trace.note(data[start : start + size])
    return trace


@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
def test_whole_answer_tells_its_tokens(wire_format):
    data = json.dumps({"text": '"usage": {"input_tokens": 1}', "usage": USAGE[wire_format]})
    assert traced(wire_format, WHOLE, data.encode()).tokens() == EXPECTED


@pytest.mark.parametrize("size", [1, 7, 1000, 1_000_000], ids="n{}".format)
@pytest.mark.parametrize("long", [False, True], ids=["short", "long"])
@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
def test_stream_tells_its_tokens_and_its_good_end_however_it_is_cut(wire_format, long, size):
    filler = event("x", {"d": 'said "usage": {"input_tokens": 999999}'}) * (900 if long else 1)
    trace = traced(wire_format, STREAM, stream(wire_format, filler), size)
    assert trace.tokens() == EXPECTED
    assert not trace.broken_stream


@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
def test_usage_that_is_told_again_and_again_is_counted_once(wire_format):
    usage = json.dumps({"usage": USAGE[wire_format]})
    data = f"data: {usage}\n\n".encode() * 3
    assert traced(wire_format, STREAM, data).tokens() == EXPECTED


@pytest.mark.parametrize(
    ("headers", "data"),
    [
        (WHOLE, b"not json"),
        (WHOLE, b"[1]"),
        (WHOLE, b'{"usage": null}'),
        (WHOLE, b'{"usage": [1]}'),
        (WHOLE, b'{"usage": {"prompt_tokens": "7", "completion_tokens": true}}'),
        (WHOLE, b'{"usage": {"prompt_tokens": -7, "prompt_tokens_details": 3}}'),
        (WHOLE, b'{"usage": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
        (WHOLE, b'{"a":"' + b"x" * WHOLE_BYTES + b'","usage":{"prompt_tokens":7}}'),
        ({"content-type": "text/plain"}, b'{"usage": {"prompt_tokens": 7}}'),
        ({}, b'{"usage": {"prompt_tokens": 7}}'),
        (STREAM, b'data: {"usage": {"prompt_tokens"'),
        (STREAM, b'data: {"usage": ' + b'{"a":' * 700),
        (STREAM, b""),
    ],
    ids=[
        "no_json", "array", "null", "list", "types", "negative", "deep", "large",
        "text", "no_type", "cut", "nested", "empty",
    ],
)  # fmt: skip
def test_answer_that_does_not_say_counts_nothing(headers, data):
    assert traced("openai_chat", headers, data).tokens() is None


@given(st.sampled_from(WIRE_FORMATS), st.sampled_from([WHOLE, STREAM]), st.lists(st.binary()))
def test_any_bytes_are_read_without_an_error(wire_format, headers, chunks):
    trace = AnswerTrace(format_of(wire_format), headers.get("content-type", ""))
    for chunk in chunks:
        trace.note(chunk)
    assert trace.tokens() is None or trace.tokens().input_tokens >= 0
    assert trace.broken_stream in (True, False)


def test_no_more_than_the_edges_of_a_stream_is_kept():
    trace = AnswerTrace(format_of("openai_chat"), STREAM["content-type"])
    for _ in range(1000):
        trace.note(b"x" * 1000)
    assert sum(map(len, trace._end)) < EDGE_BYTES + 1000
    assert sum(map(len, trace._start)) < EDGE_BYTES + 1000


LONG = "x" * 3 * EDGE_BYTES


@pytest.mark.parametrize(
    ("data", "broken"),
    [
        (event("response.completed", {"output": LONG}), False),
        (event("response.failed", {"output": LONG}), True),
        (event("response.output_text.done", {"text": LONG}), True),
        (f'data: {{"type":"response.completed","output":"{LONG}"}}\n\n'.encode(), False),
        (b"data: 1\n\n", True),
        (b"", True),
    ],
    ids=["completed", "failed", "other", "without_names", "no_end", "empty"],
)
def test_end_of_responses_is_told_from_a_last_event_longer_than_what_is_kept(data, broken):
    assert traced("openai_responses", STREAM, b": hi\n\n" + data).broken_stream is broken


def test_whole_answer_is_no_broken_stream():
    assert not traced("openai_chat", WHOLE, b"{}").broken_stream
