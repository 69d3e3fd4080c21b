"""Answers of Messages as they are told: whole, and as streams of every kind."""

from __future__ import annotations

import json
from collections.abc import Hashable
from typing import Any

import pytest
from anthropic.lib.streaming._messages import accumulate_event
from anthropic.types import RawMessageStreamEvent
from pydantic import TypeAdapter

from switchyard_core.answering import ModelUsage
from switchyard_core.wire.answers import AnswerPart
from switchyard_core.wire.messages.told import MessagesReader
from switchyard_core.wire.replies import ShapeError
from switchyard_core.wire.retelling import AnswerTeller

USAGE = {"input_tokens": 10, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 2}
EVENT: TypeAdapter[Any] = TypeAdapter(RawMessageStreamEvent)


class Heard(AnswerTeller):
    """Notes what it is told: heads, then the parts in the order in which they began, then ends."""

    def __init__(self) -> None:
        self.heads: list[tuple[str, str, ModelUsage]] = []
        self.parts: dict[Hashable, tuple[AnswerPart, list[Any]]] = {}
        self.told: list[tuple[str, str]] = []
        self.open_keys: list[Hashable] = []
        self.ends: list[tuple[str, ModelUsage]] = []
        self.pings = 0

    def head(self, *, answer_id: str, model: str, created_s: int, usage: ModelUsage) -> None:
        assert created_s == 0
        assert not self.parts
        self.heads.append((answer_id, model, usage))

    def open(self, key: Hashable, part: AnswerPart) -> None:
        assert self.heads
        assert not self.ends
        assert key not in self.open_keys
        self.open_keys.append(key)
        self.parts[key] = (part, [])

    def more(self, key: Hashable, raw: bytes) -> None:
        assert key in self.open_keys
        self.parts[key][1].append(json.loads(raw))

    def close(self, key: Hashable) -> None:
        self.open_keys.remove(key)
        part, pieces = self.parts.pop(key)
        said = part.name + part.id if part.kind == "call" else ""
        self.told.append((part.kind + (f" {said}" if said else ""), "".join(pieces)))

    def end(self, stop: str, usage: ModelUsage) -> None:
        assert not self.open_keys
        self.ends.append((stop, usage))

    def ping(self) -> None:
        self.pings += 1


def start(**usage: Any) -> dict[str, Any]:
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "deep",
               "content": [], "stop_reason": None, "stop_sequence": None,
               "usage": {**USAGE, "output_tokens": 1, **usage}}  # fmt: skip
    return {"type": "message_start", "message": message}


def block(index: int, kind: str, **members: Any) -> dict[str, Any]:
    made = {"type": kind, **members}
    return {"type": "content_block_start", "index": index, "content_block": made}


def delta(index: int, kind: str, **members: Any) -> dict[str, Any]:
    made = {"type": kind, **members}
    return {"type": "content_block_delta", "index": index, "delta": made}


def stop(index: int) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


def text(index: int, *pieces: str) -> list[dict[str, Any]]:
    said = [delta(index, "text_delta", text=piece) for piece in pieces]
    return [block(index, "text", text=""), *said, stop(index)]


def call(index: int, *pieces: str, **given: Any) -> list[dict[str, Any]]:
    said = [delta(index, "input_json_delta", partial_json=piece) for piece in pieces]
    made = block(index, "tool_use", id="toolu_1", name="read", input=given)
    return [made, *said, stop(index)]


def end(reason: str | None = "end_turn", **more: Any) -> list[dict[str, Any]]:
    told = {"stop_reason": reason, "stop_sequence": None, **more}
    usage = {"output_tokens": 9}
    return [{"type": "message_delta", "delta": told, "usage": usage}, {"type": "message_stop"}]


def heard(*events: Any, named: bool = True, finish: bool = True) -> Heard:
    """Return what is told of a stream; events that are bytes are sent as they are."""
    teller = Heard()
    reader = MessagesReader(teller)
    for event in events:
        raw = event if isinstance(event, bytes) else json.dumps(event).encode()
        name = event.get("type", "") if named and isinstance(event, dict) else ""
        reader.event(name, raw)
    if finish:
        reader.finish()
    return teller


FULL = [
    start(),
    {"type": "ping"},
    block(0, "thinking", thinking="", signature=""),
    delta(0, "thinking_delta", thinking="I "),
    delta(0, "thinking_delta", thinking="look."),
    delta(0, "signature_delta", signature="c2ln"),
    stop(0),
    *text(1, "Hi", " 🎉", "\n"),
    block(2, "tool_use", id="toolu_1", name="read", input={}),
    delta(2, "input_json_delta", partial_json=""),
    delta(2, "input_json_delta", partial_json='{"path": '),
    delta(2, "input_json_delta", partial_json='"a"}'),
    stop(2),
    *end("tool_use"),
]


@pytest.mark.parametrize("named", [True, False], ids=["named", "type_in_data_only"])
def test_stream_is_told_part_by_part(named: bool) -> None:
    told = heard(*FULL, named=named)
    usage = ModelUsage(input_tokens=17, output_tokens=1, cached_tokens=5, cache_write_tokens=2)
    assert told.heads == [("msg_1", "deep", usage)]
    assert told.told == [
        ("reasoning", "I look."),
        ("text", "Hi 🎉\n"),
        ("call readtoolu_1", '{"path": "a"}'),
    ]
    last = ModelUsage(input_tokens=17, output_tokens=9, cached_tokens=5, cache_write_tokens=2)
    assert told.ends == [("calls", last)]
    assert told.pings == 1


def test_events_may_have_their_type_in_the_name_alone() -> None:
    teller = Heard()
    reader = MessagesReader(teller)
    for event in FULL:
        bare = {key: value for key, value in event.items() if key != "type"}
        reader.event(event["type"], json.dumps(bare).encode())
    assert (teller.told, teller.ends) == (heard(*FULL).told, heard(*FULL).ends)


def test_whole_answer_tells_what_the_sdks_accumulated_stream_says() -> None:
    snapshot: Any = None
    pieces: dict[int, bytes] = {}
    for event in FULL:
        if event["type"] != "ping":
            typed = EVENT.validate_python(event)
            snapshot = accumulate_event(event=typed, current_snapshot=snapshot, json_bufs=pieces)
    teller = Heard()
    MessagesReader(teller).whole(snapshot.to_json(indent=None).encode())
    streamed = heard(*FULL)
    assert [(kind, said.replace(" ", "")) for kind, said in teller.told] == [
        (kind, said.replace(" ", "")) for kind, said in streamed.told
    ]
    assert teller.ends == streamed.ends


#: A delta that ends within a character.
HALF = (
    rb'{"type":"content_block_delta","index":0,'
    rb'"delta":{"type":"text_delta","text":"\ud83d"}}'
)
#: Streams that providers send, and the parts that are told of them.
STREAMS: list[tuple[str, list[Any], list[tuple[str, str]]]] = [
    ("no text", text(0), []),
    ("text at the start", [block(0, "text", text="Hi"), stop(0)], [("text", "Hi")]),
    ("no arguments", call(0), [("call readtoolu_1", "{}")]),
    ("empty pieces", call(0, "", ""), [("call readtoolu_1", "{}")]),
    ("arguments at the start", call(0, a=1), [("call readtoolu_1", '{"a": 1}')]),
    ("arguments at the start and in pieces", call(0, '{"a"', ":1}", a=1),
     [("call readtoolu_1", '{"a":1}')]),
    ("arguments as text",
     [block(0, "tool_use", id="i", name="n", input='{"a":1}'), stop(0)],
     [("call ni", '{"a":1}')]),
    ("redacted thinking", [block(0, "redacted_thinking", data="x"), stop(0), *text(1, "Hi")],
     [("text", "Hi")]),
    ("a server tool between texts",
     [*text(0, "a"), block(1, "server_tool_use", id="srvtoolu_1", name="web_search", input={}),
      delta(1, "input_json_delta", partial_json='{"query": "x"}'), stop(1),
      block(2, "web_search_tool_result", tool_use_id="srvtoolu_1", content=[]), stop(2),
      *text(3, "b")],
     [("text", "a"), ("text", "b")]),
    ("citations", [block(0, "text", text=""), delta(0, "citations_delta", citation={}),
                   delta(0, "text_delta", text="a"), stop(0)], [("text", "a")]),
    ("a block of tomorrow", [block(0, "hologram"), delta(0, "hologram_delta", ray=[1]), stop(0)],
     []),
    ("a delta of tomorrow", [block(0, "text", text=""), delta(0, "glow", text=None),
                             delta(0, "text_delta", text="a"), stop(0)], [("text", "a")]),
    ("no stop of a block", [block(0, "text", text=""), delta(0, "text_delta", text="a")],
     [("text", "a")]),
    ("no start of a block", [delta(0, "text_delta", text="a"), stop(0)], [("text", "a")]),
    ("no start of thinking", [delta(4, "thinking_delta", thinking="a"), stop(4)],
     [("reasoning", "a")]),
    ("a repeated start", [start(), *text(0, "a"), start()], [("text", "a")]),
    ("one index for all", [*text(0, "a"), *text(0, "b")], [("text", "a"), ("text", "b")]),
    ("blocks side by side",
     [block(0, "text", text=""), *call(1, "{}"), delta(0, "text_delta", text="a"), stop(0)],
     [("call readtoolu_1", "{}"), ("text", "a")]),
    ("half an emoji", [block(0, "text", text=""),
                       HALF,
                       delta(0, "text_delta", text="a"), stop(0)], [("text", "\ud83da")]),
    ("an index of another type", [
        block(0, "text", text=""),
        b'{"type":"content_block_delta","index":"0","delta":{"type":"text_delta","text":"a"}}'],
     [("text", "a")]),
    ("an event of tomorrow", [{"type": "weather"}, *text(0, "a")], [("text", "a")]),
    ("an event without data", [b"", b" ", *text(0, "a")], [("text", "a")]),
]  # fmt: skip


def test_streams_as_providers_send_them() -> None:
    wrong = []
    for begun in (True, False):
        for name, events, expected in STREAMS:
            told = heard(*([start()] if begun else []), *events, *end(None))
            if (told.told, len(told.heads), len(told.ends)) != (expected, 1, 1):
                wrong.append((name, begun, told.told, told.heads))
    assert wrong == []


def test_reasons_to_stop() -> None:
    words = {
        "end_turn": "stop",
        "stop_sequence": "stop",
        "tool_use": "calls",
        "max_tokens": "length",
        "model_context_window_exceeded": "length",
        "pause_turn": "pause",
        "refusal": "refusal",
        "of_tomorrow": "",
        None: "",
    }
    assert {word: heard(start(), *end(word)).ends[0][0] for word in words} == words


def test_refusal_without_a_word_is_explained() -> None:
    details = {"type": "refusal", "category": "cyber", "explanation": "No."}
    silent = heard(start(), *end("refusal", stop_details=details))
    spoken = heard(start(), *text(0, "I will not."), *end("refusal", stop_details=details))
    assert silent.told == [("refusal", "No.")]
    assert spoken.told == [("text", "I will not.")]


def test_usage_grows_and_counts_that_come_late_count() -> None:
    later = {"type": "message_delta", "delta": {},
             "usage": {"input_tokens": 20, "output_tokens": 3, "cache_read_input_tokens": None,
                       "output_tokens_details": {"thinking_tokens": 2}}}  # fmt: skip
    told = heard(start(input_tokens=0), later, *end())
    assert told.ends[0][1] == ModelUsage(
        input_tokens=27,
        output_tokens=9,
        cached_tokens=5,
        cache_write_tokens=2,
        reasoning_tokens=2,
    )


def test_nothing_is_told_behind_the_end() -> None:
    told = heard(*FULL, *text(9, "more"), {"type": "ping"}, {"type": "error"}, b"[DONE]")
    assert len(told.told) == 3
    assert told.pings == 1


def test_stream_that_says_why_it_stops_is_complete() -> None:
    told = heard(start(), *text(0, "a"), end()[0])
    assert told.ends[0][0] == "stop"


OVERLOADED = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}


def test_errors_at_any_place_and_garbage_are_shape_errors() -> None:
    begun = [start(), block(0, "text", text=""), delta(0, "text_delta", text="a")]
    broken: list[tuple[str, list[Any]]] = [
        ("an error at once", [OVERLOADED]),
        ("an error later", [*begun, OVERLOADED]),
        ("an error without its type", [*begun, {"error": {"type": "overloaded_error"}}]),
        ("a word", [*begun, b"garbage"]),
        ("half an event", [*begun, b'{"type":"content_block_delta","index":0,']),
        ("an array", [*begun, b"[1]"]),
    ]
    quiet = []
    for name, events in broken:
        try:
            heard(*events, finish=False)
        except ShapeError:
            continue
        quiet.append(name)
    assert quiet == []
    with pytest.raises(ShapeError, match="overloaded_error"):
        heard(*begun, OVERLOADED)


def test_stream_without_an_end_is_a_shape_error() -> None:
    for events in ([], [start()], [start(), *text(0, "a")], FULL[:-2]):
        with pytest.raises(ShapeError, match="ends before"):
            heard(*events)


#: Whole answers, and the parts that are told of them.
WHOLE: list[tuple[list[Any], list[tuple[str, str]]]] = [
    ([], []),
    ([{"type": "text", "text": ""}, {"type": "text", "text": "a"}], [("text", "a")]),
    ([{"type": "thinking", "thinking": "t", "signature": "s"}], [("reasoning", "t")]),
    ([{"type": "tool_use", "id": "i", "name": "n", "input": {}}], [("call ni", "{}")]),
    ([{"type": "tool_use", "id": "i", "name": "n"}], [("call ni", "{}")]),
    ([{"type": "tool_use", "id": "i", "name": "n", "input": {"a": 1.5}}],
     [("call ni", '{"a": 1.5}')]),
    ([{"type": "server_tool_use", "id": "srvtoolu_1"}, {"type": "text", "text": "a"}],
     [("text", "a")]),
]  # fmt: skip


def test_whole_answers() -> None:
    wrong = []
    for content, expected in WHOLE:
        teller = Heard()
        answer = {**start()["message"], "content": content, "stop_reason": "end_turn"}
        MessagesReader(teller).whole(json.dumps(answer).encode())
        if (teller.told, teller.ends[0][0]) != (expected, "stop"):
            wrong.append((content, teller.told))
    assert wrong == []


def test_what_is_no_whole_answer_is_a_shape_error() -> None:
    for body in (b"", b"[]", b"{}", b'{"content":"x"}', b"<html>", json.dumps(OVERLOADED).encode()):
        with pytest.raises(ShapeError):
            MessagesReader(Heard()).whole(body)


def test_numbers_of_arguments_keep_their_digits() -> None:
    teller = Heard()
    MessagesReader(teller).whole(
        b'{"content":[{"type":"tool_use","id":"i","name":"n","input":{"n":1.10}}]}'
    )
    assert teller.told == [("call ni", '{"n":1.10}')]
