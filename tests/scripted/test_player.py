"""Playing without a connection: endpoints, faults, bytes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from switchyard_core.declarations import WIRE_FORMATS, WireFormat
from switchyard_core.scripted import Player, Reply
from tests.upstream.loopback import script_of

PATHS: dict[WireFormat, str] = {
    "openai_chat": "/v1/chat/completions",
    "openai_responses": "/v1/responses",
    "anthropic_messages": "/v1/messages",
}


def play(player: Player, path: str, body: Any = None, method: str = "POST", **more: Any) -> Reply:
    raw = body if isinstance(body, bytes) else json.dumps(body or {"model": "m"}).encode()
    return player.play(method, path, (), raw, **more)


def tree(reply: Reply) -> Any:
    return json.loads(b"".join(reply.chunks))


def message_of(reply: Reply) -> str:
    message: str = tree(reply)["error"]["message"]
    return message


@pytest.fixture
def player() -> Player:
    return Player(script_of({"text": "hello"}), now=lambda: 1234.9)


@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_same_request_gives_the_same_bytes(
    player: Player, wire_format: WireFormat, *, stream: bool
) -> None:
    body = {"model": "m", "stream": stream}

    first, second = (play(player, PATHS[wire_format], body) for _ in range(2))

    assert first == second
    assert first.wire_format == wire_format
    assert (first.status, first.ending, first.stream) == (200, "whole", stream)
    assert b"1234" in b"".join(first.chunks) or wire_format == "anthropic_messages"
    types = dict(first.headers)
    assert types["content-type"].startswith("text/event-stream" if stream else "application/json")
    assert ("request-id" in types) is (wire_format == "anthropic_messages")
    if not stream:
        assert types["content-length"] == str(len(first.chunks[0]))


@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
def test_any_prefix_and_a_final_slash_are_fine(player: Player, wire_format: WireFormat) -> None:
    for path in (f"/proxy{PATHS[wire_format]}", PATHS[wire_format][3:], f"{PATHS[wire_format]}/"):
        assert play(player, path).wire_format == wire_format


def test_other_format_is_unknown_to_a_provider_that_speaks_one(player: Player) -> None:
    reply = play(player, "/v1/messages", speaks="openai_chat")

    assert reply.status == 404
    assert message_of(reply) == "no such endpoint: POST /v1/messages"
    assert tree(play(player, "/v1/x", speaks="anthropic_messages"))["type"] == "error"


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"[" * 100_000, b"\xff"])
def test_body_that_is_no_object_is_refused(player: Player, body: bytes) -> None:
    reply = play(player, "/v1/messages", body)

    assert reply.status == 400
    assert tree(reply)["error"]["type"] == "invalid_request_error"


def test_request_that_no_script_answers_is_refused_by_name() -> None:
    player = Player(script_of({"text": "x"}, when={"model": "^known$"}))

    reply = play(player, "/v1/responses", {"model": "other"})

    assert reply.status == 400
    assert message_of(reply) == "no script answers this request for model `other`"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("HEAD", "/", 200),
        ("HEAD", "/any/prefix", 200),
        ("GET", "/", 200),
        ("GET", "/v1/models", 200),
        ("GET", "/v1/models/scripted-model", 200),
        ("GET", "/v1/models/scripted%2Dmodel", 200),
        ("GET", "/v1/models/other", 404),
        ("GET", "/v1/responses", 404),
        ("DELETE", "/v1/responses", 404),
        ("POST", "/v1/embeddings", 404),
    ],
)
def test_small_endpoints(player: Player, method: str, path: str, status: int) -> None:
    reply = play(player, path, method=method)

    assert reply.status == status
    assert reply.choice is None
    assert (reply.chunks == ()) is (method == "HEAD")


def test_list_of_no_models_is_empty() -> None:
    script = script_of({}).model_copy(update={"models": ()})

    assert tree(play(Player(script), "/v1/models", method="GET")) == {
        "object": "list", "data": [], "has_more": False, "first_id": None, "last_id": None,
    }  # fmt: skip


@pytest.mark.parametrize(
    "path",
    ["/v1/messages/count_tokens", "/v1/responses/input_tokens"],
    ids=["messages", "responses"],
)
def test_counting_plays_no_turn_and_no_fault(path: str) -> None:
    player = Player(script_of({}, faults=[{"status": 500}]))

    reply = play(player, path, {"model": "m", "pad": "x" * 400})

    assert (reply.status, tree(reply)["input_tokens"]) == (200, 106)
    assert play(player, "/v1/messages").status == 500


def test_compaction_keeps_the_users_messages(player: Player) -> None:
    user = {"role": "user", "content": "1"}
    history = [user, {"role": "assistant", "content": "2"}, 7]

    whole = tree(play(player, "/v1/responses/compact", {"model": "m", "input": history}))
    of_text = tree(play(player, "/v1/responses/compact", {"model": "m", "input": "go"}))

    assert whole["output"][0] == user
    assert [item.get("type") for item in whole["output"]] == [None, "compaction"]
    assert [item["type"] for item in of_text["output"]] == ["compaction"]


@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
def test_status_fault_sends_the_providers_error_once(wire_format: WireFormat) -> None:
    fault = {"status": 429, "headers": {"Retry-After": "3"}, "message": "slow down"}
    player = Player(script_of({"text": "x"}, faults=[fault]))

    reply = play(player, PATHS[wire_format], {"model": "m", "stream": True})

    assert reply.status == 429
    assert ("retry-after", "3") in reply.headers
    assert message_of(reply) == "slow down"
    assert tree(reply)["error"]["type"] == "rate_limit_error"
    assert play(player, PATHS[wire_format]).status == 200


@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_drop_has_no_chunk_and_garbage_no_json(wire_format: WireFormat, *, stream: bool) -> None:
    player = Player(script_of({"text": "x"}, faults=[{"kind": "drop"}, {"kind": "garbage"}]))
    body = {"model": "m", "stream": stream}

    dropped, garbage = (play(player, PATHS[wire_format], body) for _ in range(2))

    assert (dropped.ending, dropped.chunks) == ("drop", ())
    assert (garbage.status, garbage.ending) == (200, "whole")
    assert garbage.chunks[0].startswith(b"<html>")


@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_cut_is_a_true_beginning_of_the_answer(wire_format: WireFormat, *, stream: bool) -> None:
    player = Player(script_of({"text": "long text " * 9}, faults=[{"kind": "cut"}]))
    body = {"model": "m", "stream": stream}

    cut, whole = (play(player, PATHS[wire_format], body) for _ in range(2))

    assert cut.ending == "cut"
    assert cut.headers == whole.headers or not stream
    part, full = b"".join(cut.chunks), b"".join(whole.chunks)
    assert 0 < len(part) < len(full)
    if wire_format == "anthropic_messages":
        assert full.startswith(part)


def test_error_event_ends_a_stream_and_takes_its_status() -> None:
    fault = {"kind": "error_event", "status": 500}
    player = Player(script_of({"text": "long text " * 9}, faults=[fault]))

    reply = play(player, "/v1/messages", {"model": "m", "stream": True})

    assert (reply.status, reply.ending) == (200, "whole")
    assert reply.chunks[-1] == (
        b'event: error\ndata: {"type":"error","error":{"type":"api_error",'
        b'"message":"scripted failure 500"},"request_id":"req_scripted"}\n\n'
    )


def test_delays_of_the_turn_are_passed_on() -> None:
    player = Player(script_of({"delay_s": 1.5, "event_delay_s": 2}))

    reply = play(player, "/v1/messages")

    assert (reply.delay_s, reply.event_delay_s) == (1.5, 2.0)


def test_arguments_that_are_no_object_still_make_a_tool_use() -> None:
    calls = [{"name": "a", "arguments": "{broken"}, {"name": "a", "arguments": "[1]"}]
    player = Player(script_of({"calls": calls}))

    blocks = tree(play(player, "/v1/messages"))["content"]

    assert [block["input"] for block in blocks] == [{"input": "{broken"}, {"input": "[1]"}]


@pytest.mark.parametrize(
    ("before", "opening", "closing"),
    [
        pytest.param('{"messages":', "[", "]", id="lists"),
        pytest.param('{"messages":', '{"a":[', "]}", id="objects"),
        pytest.param('{"tools":', '[{"type":"namespace","name":"x","tools":', "}]", id="tools"),
    ],
)
def test_body_of_any_depth_has_an_answer(before: str, opening: str, closing: str) -> None:
    player = Player(script_of({"text": "hello"}, when={"body": "x"}))
    # How deep a reader of JSON goes depends on the version of Python; no reader goes to the last.
    depths = (*range(460, 500), *range(940, 1000), 50_000)
    bodies = (f'{before}{opening * depth}"x"{closing * depth}}}' for depth in depths)

    statuses = {play(player, "/v1/responses", body.encode()).status for body in bodies}

    assert statuses == {200, 400}
