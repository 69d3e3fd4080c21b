"""A success by status that fails by what it says: how it counts, and who may still serve it."""

from __future__ import annotations

import gzip
import json

import pytest

from switchyard_core import Request
from switchyard_core.testing import FakeReply, Harness, conversation
from switchyard_core.wire import WIRE_FORMATS
from switchyard_core.wire.passing import WHOLE_BYTES
from tests.support.policies import one_route_harness, plan_execute_harness

EVENT_STREAM = (("content-type", "text/event-stream"),)
JSON = (("content-type", "application/json"),)
FALLBACK = 'type = "fallback"\ntargets = ["large", "small"]\n'
NOOP = 'type = "noop"\ntarget = "large"\n'


def sse(*events: object) -> bytes:
    """Return a stream; an event with a type has it as its name."""
    parts = []
    for event in events:
        name = event.get("type") if isinstance(event, dict) else None
        data = event if isinstance(event, str) else json.dumps(event)
        parts.append(f"event: {name}\n" if name else "")
        parts.append(f"data: {data}\n\n")
    return "".join(parts).encode()


DOWN = {"type": "overloaded_error", "message": "Overloaded"}
#: What comes before the first content of a stream.
HEADS = {
    "openai_chat": sse({"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]}),
    "openai_responses": sse(
        {"type": "response.created", "response": {"status": "in_progress", "error": None}},
        {"type": "response.in_progress", "response": {"status": "in_progress"}},
    ),
    "anthropic_messages": sse(
        {"type": "message_start", "message": {"model": "provider/large", "content": []}},
        {"type": "ping"},
    ),
}
ERROR_EVENTS = {
    "openai_chat": sse({"error": DOWN}),
    "openai_responses": sse({"type": "error", "code": "overloaded_error", "message": "no"}),
    "anthropic_messages": sse({"type": "error", "error": DOWN}),
}
FAILED_EVENTS = {
    "openai_chat": sse({"choices": [{"index": 0, "delta": {}, "finish_reason": "error"}]}),
    "openai_responses": sse(
        {"type": "response.failed", "response": {"status": "failed", "error": DOWN}}
    ),
    "anthropic_messages": sse(
        {"type": "message_delta", "delta": {"stop_reason": "model_context_window_exceeded"}}
    ),
}
FAILED = {
    "openai_chat": {"choices": [{"message": {}, "finish_reason": "error"}]},
    "openai_responses": {"status": "failed", "error": DOWN, "output": []},
    "anthropic_messages": {"content": [], "stop_reason": "model_context_window_exceeded"},
}
ERROR = json.dumps({"type": "error", "error": DOWN}).encode()
#: By name: the same bytes in every wire format, or each its own.
WHOLE = {
    "error": ERROR,
    "failed": {f: json.dumps(FAILED[f]).encode() for f in WIRE_FORMATS},
    "empty": b"",
    "garbage": b"<html>busy</html>",
    "foreign": b'{"code":500,"msg":"404 NOT_FOUND","success":false}',
}
STREAMS = {
    "error": {f: b": hello\n\n" + HEADS[f] + ERROR_EVENTS[f] for f in WIRE_FORMATS},
    "error_at_once": ERROR_EVENTS,
    "failed": {f: HEADS[f] + FAILED_EVENTS[f] for f in WIRE_FORMATS},
    "empty": b"",
    "garbage": b"data: <busy>\n\n",
    "ends": HEADS,
    "whole": ERROR,
}
CASES = [
    *(pytest.param(False, name, id=f"whole-{name}") for name in WHOLE),
    *(pytest.param(True, name, id=f"stream-{name}") for name in STREAMS),
]


def failing(wire_format: str, name: str, *, stream: bool) -> FakeReply:
    body = (STREAMS if stream else WHOLE)[name]
    body = body if isinstance(body, bytes) else body[wire_format]
    return FakeReply(body=body, headers=EVENT_STREAM if stream else JSON)


def asked(wire_format: str, stream: bool, **more: object) -> Request:
    return conversation(wire_format).user("go").request("main", stream=stream, **more)


def models(served: object) -> list[str]:
    return [outgoing.model.removeprefix("provider/") for outgoing in served.sent]


@pytest.mark.parametrize(("stream", "name"), CASES)
@pytest.mark.parametrize("door", ["library", "http"])
@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
async def test_next_target_serves_after_an_answer_that_fails_by_its_content(
    wire_format, door, stream, name
):
    reply = failing(wire_format, name, stream=stream)
    w = one_route_harness(wire_format, door, route=FALLBACK, replies=[reply])

    served = await w.ask(asked(wire_format, stream))

    assert (models(served), served.status) == (["large", "small"], 200)
    assert (served.target, served.warnings) == ("small", ("failed:large",))


@pytest.mark.parametrize(("stream", "name"), CASES)
@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
async def test_it_is_an_error_in_outcome_log_and_metrics_and_passes_as_it_came(
    wire_format, stream, name, caplog
):
    reply = failing(wire_format, name, stream=stream)
    w = one_route_harness(wire_format, "http", route=NOOP, replies=[reply, reply])
    caplog.set_level("INFO", "switchyard")

    served = await w.ask(asked(wire_format, stream))
    async with await w.engine.handle(asked(wire_format, stream)) as response:
        await response.read()

    code = "stream_failed" if stream else "answer_failed"
    assert (served.status, w.app.metrics.errors) == (200, {("main", code): 1})
    assert f"error={code}" in caplog.text
    assert served.answer.replace(b'"main"', b'"provider/large"') == reply.body
    assert (response.outcome.ok, bool(response.outcome.error)) == (False, True)


@pytest.mark.parametrize(("stream", "name"), CASES)
@pytest.mark.parametrize("door", ["library", "http"])
@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
async def test_its_session_keeps_the_slot_until_a_retry_succeeds(wire_format, door, stream, name):
    reply = failing(wire_format, name, stream=stream)
    w = plan_execute_harness(wire_format, door, replies=[FakeReply(), reply])
    told = conversation(wire_format).user("fix it").edits("edit_file", path="a.py")

    counts = []
    for more in ({}, {"final": True}, {"final": True}):
        await w.ask(told.request("switchyard/plan-execute", session="s", stream=stream, **more))
        counts.append(await w.latched())

    assert counts == [1, 1, 0]


@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
async def test_nothing_but_the_first_content_ends_the_wait(wire_format):
    """A refusal, a cut answer and an answer without a word are answers."""
    last = {
        "openai_chat": {"choices": [{"index": 0, "delta": {}, "finish_reason": "length"}]},
        "openai_responses": {
            "type": "response.incomplete",
            "response": {
                "status": "incomplete",
                "incomplete_details": {"reason": "max_output_tokens"},
            },
        },
        "anthropic_messages": {"type": "message_delta", "delta": {"stop_reason": "refusal"}},
    }
    reply = FakeReply(body=HEADS[wire_format] + sse(last[wire_format]), headers=EVENT_STREAM)
    w = one_route_harness(wire_format, "library", route=FALLBACK, replies=[reply])

    assert models(await w.ask(asked(wire_format, stream=True))) == ["large"]


@pytest.mark.parametrize("door", ["library", "http"])
@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
async def test_compressed_failure_is_decoded_for_the_look(wire_format, door):
    body = gzip.compress(ERROR)
    reply = FakeReply(body=body, headers=(*JSON, ("content-encoding", "gzip")))
    w = one_route_harness(wire_format, door, route=FALLBACK, replies=[reply])

    assert models(await w.ask(asked(wire_format, stream=False))) == ["large", "small"]


async def test_failure_tells_the_router_code_body_and_meaning():
    w = one_route_harness("anthropic_messages", "library", route=FALLBACK)
    w.upstream.replies = [failing("anthropic_messages", "error", stream=True)]
    seen = []
    router = w.engine.runtimes["main"].router
    following = router.next

    async def next_(request, failed, failure, context):
        seen.append(failure)
        return await following(request, failed, failure, context)

    router.next = next_

    await w.ask(asked("anthropic_messages", stream=True))

    (failure,) = seen
    assert (failure.kind, failure.status) == ("content", 200)
    assert (failure.code, failure.meaning) == ("overloaded_error", "overloaded")
    assert json.loads(failure.body)["error"] == DOWN


# --- the model that an answer names -------------------------------------------------------


def written(wire_format: str, *, stream: bool) -> bytes:
    """Return an answer of the provider, spaced as nobody else would."""
    if not stream:
        rest = {
            "openai_chat": '"choices":[{"message":{"content":"hi"}}]',
            "openai_responses": '"output":[{"type":"x","model":"inner"}]',
            "anthropic_messages": '"content":[{"type":"text","text":"provider/large"}]',
        }
        return f'{{ "x":1.10,"model" : "provider/large", {rest[wire_format]} }}\n'.encode()
    first = {
        "openai_chat": '{"model" : "provider/large","choices":[{"delta":{"content":"hi"}}]}',
        "openai_responses": '{"type":"response.created","response":{ "model":"provider/large"}}',
        "anthropic_messages": '{"type":"message_start","message":{ "model":"provider/large"}}',
    }
    second = sse({"type": "content_block_delta", "choices": [], "model": "provider/large"})
    name = {
        "openai_chat": "",
        "openai_responses": "event: response.created\r\n",
        "anthropic_messages": "event: message_start\r\n",
    }
    return f"{name[wire_format]}data: {first[wire_format]}\r\n\r\n".encode() + second


@pytest.mark.parametrize("setting", ["", "requested", "provider"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("door", ["library", "http"])
@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
async def test_answer_names_the_model_that_the_route_says(wire_format, door, stream, setting):
    body = written(wire_format, stream=stream)
    headers = EVENT_STREAM if stream else (*JSON, ("content-length", str(len(body))))
    reply = FakeReply(body=body, headers=headers)
    route = NOOP + (f'answer_model = "{setting}"\n' if setting else "")
    w = one_route_harness(wire_format, door, route=route, replies=[reply])

    served = await w.ask(asked(wire_format, stream))

    default = "requested" if wire_format == "anthropic_messages" else "provider"
    named = (setting or default) == "requested"
    assert served.answer == (body.replace(b'"provider/large"', b'"main"', 1) if named else body)
    if door == "http":
        assert served.headers["x-model-router-selected-model"] == "provider/large"
        if not stream:
            assert served.headers["content-length"] == str(len(served.answer))


@pytest.mark.parametrize("size", [1, 3, 7, 50])
@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
async def test_model_is_patched_wherever_the_chunks_are_cut(wire_format, size):
    body = written(wire_format, stream=True)
    chunks = tuple(body[at : at + size] for at in range(0, len(body), size))
    reply = FakeReply(chunks=chunks, headers=EVENT_STREAM)
    route = NOOP + 'answer_model = "requested"\n'
    w = one_route_harness(wire_format, "library", route=route, replies=[reply])

    served = await w.ask(asked(wire_format, stream=True))

    assert served.answer == body.replace(b'"provider/large"', b'"main"', 1)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("door", ["library", "http"])
async def test_compressed_answer_is_decoded_to_name_the_model(door, stream):
    body = written("anthropic_messages", stream=stream)
    packed = gzip.compress(body)
    headers = (*(EVENT_STREAM if stream else JSON), ("content-encoding", "gzip"))
    reply = FakeReply(chunks=(packed[:9], packed[9:]), headers=headers)
    w = one_route_harness("anthropic_messages", door, route=NOOP, replies=[reply])

    served = await w.ask(asked("anthropic_messages", stream))

    assert served.answer == body.replace(b'"provider/large"', b'"main"', 1)
    assert "content-encoding" not in served.headers


async def test_answer_that_nobody_here_can_decode_passes_as_it_came():
    reply = FakeReply(body=b"\x00packed", headers=(*JSON, ("content-encoding", "x-unknown")))
    w = one_route_harness("anthropic_messages", "library", route=NOOP, replies=[reply])

    assert (await w.ask(asked("anthropic_messages", stream=False))).answer == b"\x00packed"


async def test_very_large_whole_answer_passes_without_a_look():
    body = b'{"model":"provider/large","content":["' + b"x" * WHOLE_BYTES + b'"]}'
    w = one_route_harness(
        "anthropic_messages",
        "library",
        route=NOOP,
        replies=[FakeReply(chunks=(body[:9], body[9:]))],
    )

    assert (await w.ask(asked("anthropic_messages", stream=False))).answer == body


# --- what no answer may tell --------------------------------------------------------------

SECRET = "test-key-of-the-provider"


def keyed(wire_format: str, door: str, *replies: FakeReply) -> Harness:
    """Return a harness whose client has a key that is long enough to be one."""
    w = one_route_harness(wire_format, door, route=NOOP, replies=replies)
    w.engine.world.environ["NEAR_KEY"] = SECRET
    return w


@pytest.mark.parametrize("door", ["library", "http"])
@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
async def test_providers_error_does_not_repeat_the_key(wire_format, door):
    body = json.dumps({"error": {"message": f"bad key {SECRET}!"}}).encode()
    cut = body.index(SECRET.encode()) + 5
    headers = (("content-type", "application/json"), ("x-echo", f"Bearer {SECRET}"))
    reply = FakeReply(status=401, headers=headers, chunks=(body[:cut], body[cut:]))
    w = keyed(wire_format, door, reply)

    served = await w.ask(asked(wire_format, stream=False))

    assert served.status == 401
    assert SECRET not in str(served.headers)
    assert served.answer == body.replace(SECRET.encode(), b"*" * len(SECRET))


@pytest.mark.parametrize("size", [1, 9, 4096])
@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
async def test_error_event_does_not_repeat_the_key_and_content_is_untouched(wire_format, size):
    event = {"type": "error", "error": {"message": f"bad key {SECRET}!"}}
    said = {"type": "content_block_start", "choices": [{"delta": {"content": SECRET}}]}
    content, tail = HEADS[wire_format] + sse(said), sse(event)
    chunks = (content, *(tail[at : at + size] for at in range(0, len(tail), size)))
    w = keyed(wire_format, "library", FakeReply(chunks=chunks, headers=EVENT_STREAM))

    served = await w.ask(asked(wire_format, stream=True))

    masked = tail.replace(SECRET.encode(), b"*" * len(SECRET))
    assert served.answer.endswith(masked)
    assert served.answer.count(SECRET.encode()) == 1


@pytest.mark.parametrize("status", [301, 302, 307, 308])
@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
async def test_redirect_is_an_error_that_names_the_base_url(wire_format, status):
    reply = FakeReply(status=status, headers=(("location", "https://evil.test/"),), body=b"moved")
    w = one_route_harness(wire_format, "http", route=NOOP, replies=[reply])

    served = await w.ask(asked(wire_format, stream=False))

    error = json.loads(served.answer)["error"]["message"]
    assert (served.status, served.headers["x-should-retry"]) == (502, "false")
    assert "`base_url`, now `https://near.test/v1`" in error
    assert b"evil" not in served.answer
    assert "location" not in served.headers
