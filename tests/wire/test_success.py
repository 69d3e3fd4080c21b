"""Whether an answer is a success by what it says, however its bytes arrive."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchyard_core.testing import conversation
from switchyard_core.testing.provider import FakeReply, FakeUpstream
from switchyard_core.wire import FORMATS, WIRE_FORMATS
from switchyard_core.wire.events import EventCutter
from switchyard_core.wire.success import HEAD_BYTES, SuccessCheck
from tests.support.policies import one_route_harness

NOOP = 'type = "noop"\ntarget = "large"\n'


def judged(
    wire_format: str, *chunks: bytes, streams: bool, endpoint: str = "create"
) -> SuccessCheck:
    check = SuccessCheck(FORMATS[wire_format], endpoint, streams=streams)
    for chunk in chunks:
        check.see(chunk)
    check.end()
    return check


def chat(**choice: object) -> bytes:
    return b"data: " + json.dumps({"choices": [{"index": 0, **choice}]}).encode() + b"\n\n"


# --- streams -----------------------------------------------------------------------------

OVERLOADED = b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error"}}\n\n'


@pytest.mark.parametrize(
    ("stream", "failure"),
    [
        (b'data: {"error":{"code":429}}\n\n', "the provider reports an error (429)"),
        (b'data: {"error":"down"}\n\n', "the provider reports an error (no code)"),
        (b'event: error\ndata: {"message":"down"}\n\n', "the provider reports an error (no code)"),
        (b"data: [DONE]\n\n", "the answer is empty"),
        (b": ping\n\n: ping\n\n", "the answer is empty"),
        (b"data: 7\n\n", "an event of the stream is not JSON"),
        (chat(delta={"role": "assistant"}), "the stream ended before its first content"),
        (chat(delta={}, error={"x": 1}), "the provider reports an error in the choice"),
        (
            chat(delta={}, finish_reason="model_context_window_exceeded"),
            "the request does not fit into the model's window",
        ),
        (chat(delta={"content": "h"}), ""),
        (chat(delta={"tool_calls": [{"index": 0}]}), ""),
        (chat(delta={"reasoning_content": "h"}), ""),
        (chat(text="legacy"), ""),
        (chat(delta={}, finish_reason="stop"), ""),
        (chat(delta={"role": "assistant"}) + b"data: [DONE]\n\n", ""),
        (b'data: {"choices":[]}\n\n' + chat(delta={"content": "h"}), ""),
        (b'\xef\xbb\xbfdata: {"choices":7}\r\n\r\n' + chat(delta={"content": "h"}), ""),
        (chat(delta={"content": "h"}) + b'data: {"error":{}}\n\ndata: {"error":{"a":1}}\n\n', ""),
    ],
)
def test_chat_stream(stream, failure):
    assert judged("openai_chat", stream, streams=True).failure == failure


@pytest.mark.parametrize(
    ("event", "failure"),
    [
        ({"type": "response.completed", "response": {"status": "completed"}}, ""),
        (
            {"type": "response.incomplete", "response": {"status": "incomplete"}},
            "the status is incomplete",
        ),
        ({"type": "response.cancelled", "response": {}}, "the status is cancelled"),
        ({"type": "response.failed", "response": {}}, "the status is failed"),
        (
            {"type": "response.failed", "response": {"error": {"code": "server_error"}}},
            "the provider reports an error (server_error)",
        ),
        ({"type": "response.output_item.added"}, ""),
        ({"type": "response.queued"}, "the stream ended before its first content"),
    ],
)
@pytest.mark.parametrize("named", [True, False])
def test_responses_stream(event, failure, named):
    name = f"event: {event['type']}\n" if named else ""
    stream = f"{name}data: {json.dumps(event)}\n\n".encode()

    assert judged("openai_responses", stream, streams=True).failure == failure


def test_error_in_front_of_the_content_is_kept_as_its_json():
    head = b'event: message_start\ndata: {"type":"message_start"}\n\nevent: ping\ndata: {}\n\n'
    check = judged("anthropic_messages", head + OVERLOADED, streams=True)

    assert check.failure == "the provider reports an error (overloaded_error)"
    assert json.loads(check.error)["error"]["type"] == "overloaded_error"


def test_stream_without_the_header_of_one_is_told_by_its_first_line():
    assert judged("openai_chat", chat(delta={"content": "h"}), streams=False).failure == ""
    assert judged("anthropic_messages", OVERLOADED, streams=False).failure


def test_endless_head_is_let_through():
    check = SuccessCheck(FORMATS["openai_chat"], "create", streams=True)
    for _ in range(HEAD_BYTES // 4096 + 1):
        check.see(b": " + b"x" * 4092 + b"\n\n")

    assert (check.settled, check.failure) == (True, "")


@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
@pytest.mark.parametrize("stream", [False, True])
async def test_every_answer_of_the_kit_is_a_success(wire_format, stream):
    w = one_route_harness(wire_format, "library", route=NOOP)
    request = conversation(wire_format).user("go").request("main", stream=stream)

    answer = (await w.ask(request)).answer

    assert judged(wire_format, answer, streams=stream).failure == ""


@given(st.data())
def test_verdict_and_events_do_not_depend_on_where_the_chunks_are_cut(data):
    stream = data.draw(
        st.sampled_from(
            [
                b": x\r\n\r\n" + chat(delta={"role": "a"}).replace(b"\n", b"\r\n") + OVERLOADED,
                chat(delta={"role": "a"}) + chat(delta={"content": "h"}) + b"data: [DONE]\n\n",
                b"data: {\ndata: }\n\n\n\ndata:[DONE]\n\n",
                b"data: tail",
            ]
        )
    )
    cuts = sorted(data.draw(st.sets(st.integers(1, len(stream) - 1))))
    chunks = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    cutter, whole = EventCutter(), EventCutter()

    check = judged("openai_chat", *chunks, streams=True)
    events = [e for chunk in chunks for e in cutter.feed(chunk)] + cutter.end()

    assert check.failure == judged("openai_chat", stream, streams=True).failure
    assert b"".join(event.raw for event in events) == stream
    expected = whole.feed(stream) + whole.end()
    assert [(e.name, e.data) for e in events if e.data] == [
        (e.name, e.data) for e in expected if e.data
    ]


# --- whole bodies ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wire_format", "tree", "failure"),
    [
        ("openai_chat", {"choices": []}, "`choices` is empty"),
        ("openai_chat", {"choices": None}, "`choices` is not an array"),
        ("openai_chat", {}, "`choices` is missing"),
        ("openai_chat", {"choices": [{"message": {"content": "h"}}]}, ""),
        (
            "openai_chat",
            {"choices": [{"message": {}, "finish_reason": "model_context_window_exceeded"}]},
            "the request does not fit into the model's window",
        ),
        (
            "openai_chat",
            {
                "choices": [
                    {"message": {"content": "h"}, "finish_reason": "model_context_window_exceeded"}
                ]
            },
            "",
        ),
        ("openai_responses", {"status": "failed", "output": []}, "the status is failed"),
        ("openai_responses", {"status": "queued", "output": []}, ""),
        ("openai_responses", {"status": "completed", "output": [], "error": None}, ""),
        (
            "openai_responses",
            {
                "status": "incomplete",
                "output": [],
                "incomplete_details": {"reason": "max_output_tokens"},
            },
            "",
        ),
        ("anthropic_messages", {"content": [], "stop_reason": "end_turn"}, ""),
        ("anthropic_messages", {"content": [], "stop_reason": "refusal"}, ""),
        ("anthropic_messages", {"message": "busy"}, "`content` is missing"),
    ],
)
def test_whole_answer(wire_format, tree, failure):
    assert judged(wire_format, json.dumps(tree).encode(), streams=False).failure == failure


@pytest.mark.parametrize("endpoint", ["count_tokens", "compact"])
def test_side_call_fails_only_by_an_error_or_without_an_object(endpoint):
    def failure(body: bytes) -> str:
        return judged("openai_responses", body, streams=False, endpoint=endpoint).failure

    assert failure(b'{"input_tokens":7}') == ""
    assert failure(b'{"error":{"code":"x"}}') == "the provider reports an error (x)"
    assert failure(b"[]") == "the answer is not a JSON object"
    assert failure(b" \n") == "the answer is empty"


def test_number_that_only_some_readers_take_is_no_garbage():
    assert judged("anthropic_messages", b'{"content":[NaN]}', streams=False).failure == ""


async def test_a_reply_of_the_kit_is_a_valid_answer_unless_it_is_given():
    assert FakeReply().said == "ok"
    assert FakeReply(status=500).said is None
    assert FakeReply(body=b"").pieces() == (b"",)
    assert FakeUpstream(FakeReply()).replies == [FakeReply()]
