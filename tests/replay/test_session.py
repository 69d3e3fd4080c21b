"""Modes of a replay, through three wire formats, whole and as streams."""

from __future__ import annotations

import json
import logging

import pytest

from switchyard_core import Replay, UpstreamError
from switchyard_core.errors import RecordingError, ReplayError, ReplayMiss
from switchyard_core.replay.recording import key_of
from switchyard_core.testing import FakeReply, FakeUpstream
from switchyard_core.wire import WIRE_FORMATS
from tests.replay.calls import (
    Counting,
    call,
    chunks,
    files,
    never,
    outgoing,
    script,
    scripted,
    tree,
)

formats = pytest.mark.parametrize("wire_format", WIRE_FORMATS)
streams = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
EVENTS = (("content-type", "text/event-stream"),)


def wrapped(folder, mode, inner=None, **how):
    replay = Replay(folder, mode, **how)
    return replay, replay.upstream(
        None, (lambda _client: inner) if inner else lambda _client: never()
    )


async def record(folder, inner, *calls, mode="record"):
    replay, upstream = wrapped(folder, mode, inner)
    for each in calls:
        await chunks(await upstream.send(each))
    return replay


# --- the modes --------------------------------------------------------------------------------


@formats
@streams
async def test_what_was_recorded_is_replayed_chunk_by_chunk_without_a_provider(
    tmp_path, wire_format, stream
):
    sent = call(wire_format, stream=stream)
    live = await (await scripted(wire_format).send(sent)).read()
    live_chunks = await chunks(await scripted(wire_format).send(sent))
    await record(tmp_path, scripted(wire_format), sent)

    _, upstream = wrapped(tmp_path, "replay")
    answer = await upstream.send(sent)
    played = await chunks(answer)

    assert b"".join(played) == live
    assert played == (live_chunks if stream else [live])
    assert answer.status == 200
    assert answer.header("content-type").startswith(
        "text/event-stream" if stream else "application/json"
    )


@formats
@streams
async def test_recording_passes_the_answer_on_as_it_is(tmp_path, wire_format, stream):
    sent = call(wire_format, stream=stream)
    raw = await scripted(wire_format).send(sent)
    inner = scripted(wire_format)

    _, upstream = wrapped(tmp_path, "record", inner)
    answer = await upstream.send(sent)

    assert answer.headers == raw.headers
    assert await chunks(answer) == await chunks(raw)
    assert inner.sent == [sent]


@formats
async def test_a_file_holds_the_body_as_sent_and_no_header_of_the_request(tmp_path, wire_format):
    sent = call(wire_format, temperature=0.5)
    await record(tmp_path, scripted(wire_format), sent)

    found = tree(tmp_path)

    (name,) = files(tmp_path)
    assert name.endswith("-main-planning.json")
    assert found["request"] == {
        "method": "POST",
        "path": sent.path,
        "body": json.loads(sent.body),
    }
    assert list(found["request"]["body"]) == list(json.loads(sent.body))
    assert set(found["responses"][0]["headers"]) <= {"content-type", "request-id", "x-request-id"}
    assert "top-secret" not in (tmp_path / name).read_text("utf-8")


@formats
@streams
async def test_record_serves_what_is_there_and_calls_for_the_rest(tmp_path, wire_format, stream):
    one, two = (call(wire_format, text, stream=stream) for text in ("one", "two"))
    await record(tmp_path, scripted(wire_format), one)
    inner = scripted(wire_format)

    await record(tmp_path, inner, one, two)

    assert inner.sent == [two]
    assert len(files(tmp_path)) == 2


@formats
async def test_off_calls_and_records_nothing(tmp_path, wire_format):
    inner = scripted(wire_format)

    await record(tmp_path / "none", inner, call(wire_format), mode="off")

    assert len(inner.sent) == 1
    assert not (tmp_path / "none").exists()


async def test_replay_needs_a_folder_with_a_recording(tmp_path):
    with pytest.raises(ReplayError, match="does not exist"):
        Replay(tmp_path / "none")
    with pytest.raises(ReplayError, match="contains no recordings"):
        Replay(tmp_path)


def test_an_unknown_mode_is_named_with_the_nearest(tmp_path):
    with pytest.raises(ValueError, match=r"`recrod` .*did you mean `record`"):
        Replay(tmp_path, "recrod")


# --- the same call again --------------------------------------------------------------------------


def answering(*texts):
    return Counting(FakeUpstream(*(FakeReply(body={"text": text}) for text in texts)))


async def texts(upstream, sent, times):
    return [json.loads(await (await upstream.send(sent)).read())["text"] for _ in range(times)]


async def test_answers_to_one_call_are_served_in_order_and_the_last_repeats(tmp_path):
    sent = call("openai_chat")
    await record(tmp_path, answering("a", "b"), sent, sent)

    _, upstream = wrapped(tmp_path, "replay")

    assert await texts(upstream, sent, 4) == ["a", "b", "b", "b"]
    assert len(files(tmp_path)) == 1


async def test_record_appends_what_is_beyond_the_list(tmp_path):
    sent = call("openai_chat")
    await record(tmp_path, answering("a"), sent)
    inner = answering("b")

    _, upstream = wrapped(tmp_path, "record", inner)

    assert await texts(upstream, sent, 2) == ["a", "b"]
    assert len(inner.sent) == 1
    assert [each["body"]["text"] for each in tree(tmp_path)["responses"]] == ["a", "b"]


async def test_refresh_replaces_the_list_and_appends_what_comes_again(tmp_path):
    sent, other = call("openai_chat"), call("openai_chat", "other")
    await record(tmp_path, answering("a", "b", "c"), sent, sent, other)

    replay = await record(tmp_path, answering("new", "newer"), sent, sent, mode="refresh")

    _, upstream = wrapped(tmp_path, "replay")
    assert await texts(upstream, sent, 3) == ["new", "newer", "newer"]
    assert await texts(upstream, other, 1) == ["c"]
    assert len(replay.unused()) == 1


async def test_unused_recordings_are_listed(tmp_path):
    one, two = call("openai_chat", "one"), call("openai_chat", "two")
    await record(tmp_path, answering("a", "b"), one, two)

    replay, upstream = wrapped(tmp_path, "replay")
    assert len(replay.unused()) == 2
    await upstream.send(one)

    assert len(replay.unused()) == 1
    assert set(replay.unused()) | set(replay.used()) == set(tmp_path.iterdir())


# --- what is not recorded -------------------------------------------------------------------------


@pytest.mark.parametrize("status", [401, 403, 408, 409, 429, 500, 503, 529])
async def test_a_failure_of_the_moment_is_not_recorded_and_the_next_try_is(
    tmp_path, status, caplog
):
    sent = call("openai_chat")
    inner = FakeUpstream(FakeReply(status=status), FakeReply(body={"text": "a"}))

    with caplog.at_level(logging.WARNING, "switchyard"):
        _, upstream = wrapped(tmp_path, "record", inner)
        assert (await upstream.send(sent)).status == status
        assert files(tmp_path) == []
        assert await texts(upstream, sent, 1) == ["a"]

    assert f"status {status}" in caplog.text
    _, upstream = wrapped(tmp_path, "replay")
    assert await texts(upstream, sent, 1) == ["a"]


@pytest.mark.parametrize("status", [400, 404, 422])
async def test_what_a_provider_always_refuses_is_recorded(tmp_path, status):
    sent = call("openai_chat")
    await record(tmp_path, FakeUpstream(FakeReply(status=status, body={"error": {}})), sent)

    _, upstream = wrapped(tmp_path, "replay")

    assert (await upstream.send(sent)).status == status


async def test_an_error_of_the_transport_is_passed_on_and_not_recorded(tmp_path, caplog):
    inner = FakeUpstream(UpstreamError("no", kind="connect"), FakeReply(cut=True))

    _, upstream = wrapped(tmp_path, "record", inner)
    for kind in ("connect", "cut"):
        with pytest.raises(UpstreamError) as caught:
            await upstream.send(call("openai_chat"))
        assert caught.value.kind == kind

    assert files(tmp_path) == []
    assert caplog.text.count("not recorded") == 2


async def test_a_stream_that_breaks_off_is_not_recorded(tmp_path, caplog):
    inner = FakeUpstream(
        FakeReply(chunks=(b"data: 1\n\n", b"data: 2\n\n"), headers=EVENTS, cut=True)
    )

    _, upstream = wrapped(tmp_path, "record", inner)
    answer = await upstream.send(call("openai_chat", stream=True))
    with pytest.raises(UpstreamError):
        await chunks(answer)

    assert files(tmp_path) == []
    assert "broke off" in caplog.text


@pytest.mark.parametrize("read", [0, 1])
async def test_a_stream_that_is_left_is_not_recorded(tmp_path, read, caplog):
    inner = FakeUpstream(FakeReply(chunks=(b"data: 1\n\n", b"data: 2\n\n"), headers=EVENTS))

    _, upstream = wrapped(tmp_path, "record", inner)
    async with await upstream.send(call("openai_chat", stream=True)) as answer:
        for _ in range(read):
            await anext(answer.chunks)

    assert files(tmp_path) == []
    assert "not read to its end" in caplog.text


@formats
async def test_a_stream_that_is_left_after_its_end_mark_is_recorded(tmp_path, wire_format):
    sent = call(wire_format, stream=True)

    _, upstream = wrapped(tmp_path, "record", scripted(wire_format))
    whole = await chunks(await scripted(wire_format).send(sent))
    async with await upstream.send(sent) as answer:
        for _ in whole:
            await anext(answer.chunks)

    _, upstream = wrapped(tmp_path, "replay")
    assert await chunks(await upstream.send(sent)) == whole


@formats
async def test_a_stream_with_an_error_event_is_not_recorded(tmp_path, wire_format, caplog):
    broken = script(faults=[{"turn": 0, "times": 1, "kind": "error_event"}])

    await record(tmp_path, scripted(wire_format, broken), call(wire_format, stream=True))

    assert files(tmp_path) == []
    assert "error event" in caplog.text


async def test_a_chunk_that_ends_inside_a_character_comes_back_as_it_was(tmp_path):
    stream = "data: wörld\n\n".encode()
    parts = (stream[:8], stream[8:], b"data: \xff\n\n")
    sent = call("openai_chat", stream=True)
    await record(tmp_path, FakeUpstream(FakeReply(chunks=parts, headers=EVENTS)), sent)

    _, upstream = wrapped(tmp_path, "replay")

    assert await chunks(await upstream.send(sent)) == list(parts)


# --- secrets --------------------------------------------------------------------------------------

KEY = "sk-proj-" + "Ab3dEf6hIj9kLm2n" * 3


@formats
async def test_a_request_with_a_credential_is_neither_sent_nor_recorded(tmp_path, wire_format):
    inner = scripted(wire_format)

    _, upstream = wrapped(tmp_path, "record", inner)
    with pytest.raises(RecordingError) as caught:
        await upstream.send(call(wire_format, f"use {KEY}"))

    assert KEY not in caught.value.message
    assert "content" in caught.value.message
    assert inner.sent == []
    assert files(tmp_path) == []


@formats
@streams
async def test_an_answer_with_a_credential_is_an_error_and_not_recorded(
    tmp_path, wire_format, stream
):
    _, upstream = wrapped(tmp_path, "record", scripted(wire_format, script(f"use {KEY} now")))
    with pytest.raises(RecordingError) as caught:
        await chunks(await upstream.send(call(wire_format, stream=stream)))

    assert KEY not in caught.value.message
    assert files(tmp_path) == []


async def test_a_left_stream_with_a_credential_is_said_in_the_log_alone(tmp_path, caplog):
    sent = call("openai_chat", stream=True)
    played = script(f"use {KEY} now")
    size = len(await chunks(await scripted("openai_chat", played).send(sent)))

    _, upstream = wrapped(tmp_path, "record", scripted("openai_chat", played))
    async with await upstream.send(sent) as answer:
        for _ in range(size):
            await anext(answer.chunks)

    assert files(tmp_path) == []
    assert "credential" in caplog.text
    assert KEY not in caplog.text


async def test_headers_that_are_not_listed_are_not_stored(tmp_path):
    headers = (
        ("content-type", "application/json"),
        ("set-cookie", "session=1"),
        ("openai-organization", "org-1"),
        ("x-request-id", "req_1"),
    )
    sent = call("openai_chat")
    await record(tmp_path, FakeUpstream(FakeReply(headers=headers)), sent)

    assert tree(tmp_path)["responses"][0]["headers"] == {
        "content-type": "application/json",
        "x-request-id": "req_1",
    }


# --- a miss ---------------------------------------------------------------------------------------


async def missed(folder, sent, **how):
    _, upstream = wrapped(folder, "replay", **how)
    with pytest.raises(ReplayMiss) as caught:
        await upstream.send(sent)
    return caught.value


@formats
async def test_a_miss_names_key_file_difference_and_how_to_record(tmp_path, wire_format):
    await record(tmp_path, scripted(wire_format), call(wire_format, "hello there"))

    error = await missed(tmp_path, call(wire_format, "hello you"), advice="record it by hand")

    assert error.key in error.message
    assert error.path == str(tmp_path / f"{error.key}-main-planning.json")
    assert error.path in error.message
    assert any(line.startswith("-") and "hello there" in line for line in error.message.split("\n"))
    assert any(line.startswith("+") and "hello you" in line for line in error.message.split("\n"))
    assert error.message.endswith("record it by hand")


async def test_a_miss_on_another_path_says_which_are_recorded(tmp_path):
    await record(tmp_path, scripted("openai_chat"), call("openai_chat"))

    error = await missed(tmp_path, call("anthropic_messages"))

    assert "no call to `/v1/messages` is recorded" in error.message
    assert "`/v1/chat/completions`" in error.message


async def test_other_key_fields_than_those_recorded_with_are_named(tmp_path):
    sent = call("openai_chat")
    await record(tmp_path, scripted("openai_chat"), sent)

    error = await missed(tmp_path, sent, key_fields=("model",))

    assert "was recorded with other key fields (model, instructions" in error.message


async def test_another_list_of_key_fields_serves_calls_that_differ_elsewhere(tmp_path):
    replay, upstream = wrapped(
        tmp_path, "record", scripted("openai_chat"), key_fields=("model", "temperature")
    )
    await chunks(await upstream.send(call("openai_chat", "one", temperature=1)))

    assert tree(tmp_path)["key_fields"] == ["model", "temperature"]
    assert replay.serves(call("openai_chat", "two", temperature=1)) is False
    _, upstream = wrapped(tmp_path, "replay", key_fields=("model", "temperature"))
    await upstream.send(call("openai_chat", "two", temperature=1))
    with pytest.raises(ReplayMiss):
        await upstream.send(call("openai_chat", "one", temperature=0))


async def test_serves_tells_whether_a_key_is_needed(tmp_path):
    sent, other = call("openai_chat"), call("openai_chat", "other")
    await record(tmp_path, scripted("openai_chat"), sent)

    assert Replay(tmp_path, "replay").serves(other)
    assert Replay(tmp_path, "record").serves(sent)
    assert not Replay(tmp_path, "record").serves(other)
    assert not Replay(tmp_path, "refresh").serves(sent)
    assert not Replay(tmp_path, "off").serves(sent)


async def test_a_call_without_a_json_body_is_recorded_too(tmp_path):
    sent = outgoing("openai_chat", b"", path="/v1/files", method="GET", route="", role="")
    await record(tmp_path, answering("a"), sent)

    assert files(tmp_path)[0].endswith("-call-planner.json")
    _, upstream = wrapped(tmp_path, "replay")
    assert await texts(upstream, sent, 1) == ["a"]


async def test_the_inner_connection_is_made_once_and_closed(tmp_path):
    made = []

    def connect(_client):
        made.append(FakeUpstream())
        return made[-1]

    upstream = Replay(tmp_path, "record").upstream(None, connect)
    await upstream.aclose()
    assert made == []
    await (await upstream.send(call("openai_chat", "a"))).read()
    await (await upstream.send(call("openai_chat", "b"))).read()
    await upstream.aclose()

    assert [each.closed for each in made] == [True]


@pytest.mark.parametrize(
    ("encoding", "words"),
    [("unknown", "`content-encoding: unknown`"), ("gzip", "not `gzip` as it says")],
)
async def test_an_answer_that_cannot_be_decoded_is_not_recorded(tmp_path, encoding, words):
    reply = FakeReply(body=b"x", headers=(("content-encoding", encoding),))

    with pytest.raises(RecordingError, match=words):
        await record(tmp_path, FakeUpstream(reply), call("openai_chat"))

    assert files(tmp_path) == []


async def test_what_could_not_be_played_is_not_recorded(tmp_path, caplog):
    reply = FakeReply(status=204, body=b"x", headers=(("content-type", "text/plain"),))

    await record(tmp_path, FakeUpstream(reply), call("openai_chat"))

    assert files(tmp_path) == []
    assert "status 204 has no body" in caplog.text


@pytest.mark.parametrize("levels", [10, 90, 95, 96, 97, 98, 99, 100, 300, 700, 900, 950, 2000])
async def test_a_call_of_any_depth_is_recorded_and_replayed(tmp_path, levels):
    deep = b"[" * levels + b"]" * levels
    sent = outgoing("openai_chat", b'{"model":"m","messages":' + deep + b"}")
    answer = b'{"a":' + deep + b"}"
    await record(tmp_path, FakeUpstream(FakeReply(body=answer)), sent)

    _, upstream = wrapped(tmp_path, "replay")

    assert await (await upstream.send(sent)).read() == answer


async def test_the_key_of_a_call_does_not_depend_on_who_asks(tmp_path):
    replay = Replay(tmp_path, "record")

    def key(depth, sent):
        return (
            key(depth - 1, sent)
            if depth
            else key_of(sent.method, sent.path, sent.body, replay._fields(None))
        )

    for levels in range(80, 1000, 7):
        body = b'{"messages":' + b"[" * levels + b"]" * levels + b"}"
        sent = outgoing("openai_chat", body)
        assert key(0, sent) == key(400, sent)
