"""Answers of Chat Completions, told piece by piece."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletionChunk

from switchyard_core.answering import ModelUsage
from switchyard_core.jsonio.tree import JsonTextError, encode, loads
from switchyard_core.wire import FORMATS
from switchyard_core.wire.answers import AnswerPart, Frame
from switchyard_core.wire.chat import arguments
from switchyard_core.wire.chat.told import ChatReader
from switchyard_core.wire.replies import ShapeError
from switchyard_core.wire.retelling import AnswerTeller
from tests.support.strategies import VALUES

CHAT = FORMATS["openai_chat"]
each_way = pytest.mark.parametrize("whole", [True, False], ids=["whole", "stream"])


class Listener(AnswerTeller):
    """Writes down what it is told."""

    def __init__(self) -> None:
        self.log: list[tuple[Any, ...]] = []
        self.parts: dict[Any, dict[str, Any]] = {}
        self.open_now: set[Any] = set()
        self.ended: tuple[str, Any] | None = None

    def head(self, *, answer_id, model, created_s, usage) -> None:
        self.log.append(("head", answer_id, model, created_s))

    def open(self, key, part) -> None:
        assert key not in self.parts
        assert self.ended is None
        self.open_now.add(key)
        self.parts[key] = {"kind": part.kind, "text": ""}
        if part.kind == "call":
            self.parts[key] |= {"id": part.id, "name": part.name}
        self.log.append(("open", key, part.kind))

    def more(self, key, raw) -> None:
        assert key in self.open_now
        self.parts[key]["text"] += loads(raw)
        self.log.append(("more", key, raw))

    def close(self, key) -> None:
        self.open_now.remove(key)
        self.log.append(("close", key))

    def end(self, stop, usage) -> None:
        assert not self.open_now
        assert self.ended is None
        self.ended = (stop, usage)

    def ping(self) -> None:
        self.log.append(("ping",))


def chunk(delta: dict[str, Any] | None = None, finish: str | None = None, **more: Any) -> str:
    choice = {"index": 0, "delta": delta or {}, "finish_reason": finish}
    return json.dumps({"id": "c1", "model": "m", "created": 7, "choices": [choice], **more})


def listened(*events: str, end: bool = True) -> Listener:
    listener = Listener()
    reader = ChatReader(listener)
    for event in events:
        reader.event("", event.encode())
    if end:
        reader.finish()
    return listener


def calls(*pieces: dict[str, Any]) -> str:
    return chunk({"tool_calls": list(pieces)})


def piece(arguments: Any = None, **more: Any) -> dict[str, Any]:
    named = {key: more.pop(key) for key in ("name",) if key in more}
    return {
        **more,
        "function": {**named, **({} if arguments is None else {"arguments": arguments})},
    }


#: Pieces of ``tool_calls``, a list for each chunk, and the calls: id, name, arguments.
CALLS: dict[str, tuple[list[list[dict[str, Any]]], list[tuple[str, str, str]]]] = {
    "in pieces": (
        [[piece("", index=0, id="a", name="f")], [piece('{"x"', index=0)], [piece(":1}", index=0)]],
        [("a", "f", '{"x":1}')],
    ),
    "parallel, one after another": (
        [
            [piece('{"x":1}', index=0, id="a", name="f")],
            [piece('{"y":', index=1, id="b", name="g")],
            [piece("2}", index=1)],
        ],
        [("a", "f", '{"x":1}'), ("b", "g", '{"y":2}')],
    ),
    "interleaved": (
        [
            [piece("", index=0, id="a", name="f"), piece("", index=1, id="b", name="g")],
            [piece('{"x"', index=0)],
            [piece('{"y"', index=1)],
            [piece(":1}", index=0), piece(":2}", index=1)],
        ],
        [("a", "f", '{"x":1}'), ("b", "g", '{"y":2}')],
    ),
    "index 0 for each": (
        [
            [piece('{"x":1}', index=0, id="a", name="f")],
            [piece('{"x":2}', index=0, id="b", name="f")],
            [piece("{}", index=0, id="c", name="f")],
            [piece("{}", index=0, id="d", name="f")],
        ],
        [("a", "f", '{"x":1}'), ("b", "f", '{"x":2}'), ("c", "f", ""), ("d", "f", "")],
    ),
    "no index": (
        [[piece('{"x"', id="a", name="f")], [piece(":1}")], [piece("{", id="b", name="f")]],
        [("a", "f", '{"x":1}'), ("b", "f", "{")],
    ),
    "neither index nor id": (
        [[piece('{"x":1}', name="f")], [piece('{"x":2}', name="f")], [piece('{"y":1}', name="g")]],
        [("", "f", '{"x":1}'), ("", "f", '{"x":2}'), ("", "g", '{"y":1}')],
    ),
    "name in every piece without index": (
        [[piece('{"x"', name="f")], [piece(":1}", name="f")]],
        [("", "f", '{"x":1}')],
    ),
    "id and name in every piece": (
        [[piece('{"x"', index=0, id="a", name="f")], [piece(":1}", index=0, id="a", name="f")]],
        [("a", "f", '{"x":1}')],
    ),
    "another id in every piece": (
        [[piece('{"x"', index=0, id="a", name="f")], [piece(":1}", index=0, id="b", name="f")]],
        [("a", "f", '{"x":1}')],
    ),
    "another id, no name": (
        [[piece('{"x":1', index=0, id="a", name="f")], [piece("}", index=0, id="b")]],
        [("a", "f", '{"x":1}')],
    ),
    "empty id and name in later pieces": (
        [[piece('{"x"', index=0, id="a", name="f")], [piece(":1}", index=0, id="", name="")]],
        [("a", "f", '{"x":1}')],
    ),
    "null in later pieces": (
        [[piece('{"x"', index=0, id="a", name="f")], [piece(":1}", index=0, id=None, name=None)]],
        [("a", "f", '{"x":1}')],
    ),
    "id later": (
        [[piece("", index=0, name="f")], [piece("", index=0, id="a")], [piece("{}", index=0)]],
        [("a", "f", "")],
    ),
    "name later": (
        [[piece('{"x"', index=0, id="a")], [piece(":1", index=0, name="f")], [piece("}", index=0)]],
        [("a", "f", '{"x":1}')],
    ),
    "no id": ([[piece('{"x":1}', index=0, id="", name="f")]], [("", "f", '{"x":1}')]),
    "whole arguments again": (
        [
            [piece('{"x"', index=0, id="a", name="f")],
            [piece(":1}", index=0)],
            [piece('{"x": 1}', index=0, id="a", name="f")],
        ],
        [("a", "f", '{"x":1}')],
    ),
    "whole arguments again, behind the next call": (
        [
            [piece('{"x"', index=0, id="a", name="f")],
            [piece(":1}", index=0)],
            [piece("{}", index=1, id="b", name="g")],
            [piece('{"x":1}', index=0, id="a", name="f")],
        ],
        [("a", "f", '{"x":1}'), ("b", "g", "")],
    ),
    "braces inside are no repetition": (
        [
            [piece('{"x":', index=0, id="a", name="f")],
            [piece("{}", index=0)],
            [piece("}", index=0)],
        ],
        [("a", "f", '{"x":{}}')],
    ),
    "empty object in front": (
        [[piece("{}", index=0, id="a", name="f")], [piece('{"x":1}', index=0)]],
        [("a", "f", '{"x":1}')],
    ),
    "no arguments": ([[piece(None, index=0, id="a", name="f")]], [("a", "f", "")]),
    "an object": ([[piece({"x": 1}, index=0, id="a", name="f")]], [("a", "f", '{"x": 1}')]),
    "no JSON": ([[piece("edit it", index=0, id="a", name="f")]], [("a", "f", "edit it")]),
    "odd types": (
        [[{"index": "0", "id": 7, "function": {"name": "f", "arguments": '{"x":1}'}}, 3]],
        [("", "f", '{"x":1}')],
    ),
    "half an emoji": (
        [[piece('{"x":"\ud83d', index=0, id="a", name="f")], [piece('\ude00"}', index=0)]],
        [("a", "f", '{"x":"\ud83d\ude00"}')],
    ),
    "free text": (
        [[{"index": 0, "id": "a", "type": "custom", "custom": {"name": "f", "input": "{}"}}]],
        [("a", "f", "{}")],
    ),
    "nothing": ([[]], []),
    "index 0 for each, no id": (
        [
            [piece('{"x":1}', index=0, id="", name="f")],
            [piece('{"y":1}', index=0, id="", name="g")],
            [piece('{"y":2}', index=0, name="g")],
            [piece("{}", index=0, name="h")],
            [piece('{"x"', index=0, name="f")],
            [piece(":3}", index=0, name="f")],
        ],
        [
            ("", "f", '{"x":1}'),
            ("", "g", '{"y":1}'),
            ("", "g", '{"y":2}'),
            ("", "h", ""),
            ("", "f", '{"x":3}'),
        ],
    ),
    "one id for each": (
        [
            [piece('{"x":1}', index=0, id="a", name="f")],
            [piece('{"x":2}', index=0, id="a", name="f")],
            [piece('{"x":3}', index=0, id="a", name="g")],
        ],
        [("a", "f", '{"x":1}'), ("a", "f", '{"x":2}'), ("a", "g", '{"x":3}')],
    ),
    "another name before the arguments are complete": (
        [[piece('{"x"', index=0, name="f")], [piece('{"y":1}', index=0, name="g")]],
        [("", "f", '{"x"'), ("", "g", '{"y":1}')],
    ),
    "name in pieces": (
        [
            [piece("", index=0, id="a", name="re")],
            [piece("", index=0, name="ad")],
            [piece('{"x":1}', index=0)],
            [piece("", index=1, id="b", name="ed")],
            [piece('{"y":1}', index=1, id="b", name="it")],
        ],
        [("a", "read", '{"x":1}'), ("b", "edit", '{"y":1}')],
    ),
    "arguments twice, in pieces": (
        [
            [piece('{"x"', index=0, id="a", name="f")],
            *[[piece(words, index=0)] for words in (":1}", '{"x"', ":", " 1}")],
        ],
        [("a", "f", '{"x":1}')],
    ),
    "arguments twice, in one piece": (
        [[piece('{"x":"\\n"}{"x":"\\n"}', index=0, id="a", name="f")]],
        [("a", "f", '{"x":"\\n"}')],
    ),
    "other arguments behind the first": (
        [[piece('{"x":1}', index=0, id="a", name="f")], [piece('{"x":2}', index=0)]],
        [("a", "f", '{"x":1}{"x":2}')],
    ),
    "all so far in each piece": (
        [
            [piece(words, index=0, id="a", name="f")]
            for words in ('{"x"', '{"x":', '{"x":{"y"', '{"x":{"y":"é"}}', '{"x":{"y":"é"}}')
        ],
        [("a", "f", '{"x":{"y":"é"}}')],
    ),
    "an object in itself is no repetition": (
        [[piece(words, index=0, id="a", name="f")] for words in ('{"x":', '{"x":1}', "}")],
        [("a", "f", '{"x":{"x":1}}')],
    ),
    "a text with its own beginning is no repetition": (
        [[piece(words, index=0, id="a", name="f")] for words in ('{"x":"', '{"x":"', '"}')],
        [("a", "f", '{"x":"{"x":""}')],
    ),
    "a brace in a text ends nothing": (
        [[piece(words, index=0, name="f")] for words in ('{"x":"\\', '"}', "{}", '\\\\"', "}")],
        [("", "f", '{"x":"\\"}{}\\\\"}')],
    ),
    "an empty piece more": (
        [[piece("{}", index=0, id="a", name="f")], [piece("", index=1)]],
        [("a", "f", "")],
    ),
}


def test_calls_are_told_once_whatever_their_pieces_look_like() -> None:
    misses = {}
    for case, (chunks, wanted) in CALLS.items():
        found = listened(*[calls(*pieces) for pieces in chunks], chunk(finish="tool_calls"))
        told = [(p["id"], p["name"], p["text"]) for p in found.parts.values()]
        if told != [(*each[:2], each[2]) for each in wanted]:
            misses[case] = told
    assert misses == {}


#: Ways in which servers cut the arguments of a call, each in so many pieces.
MANY: dict[str, Callable[[int], list[str]]] = {
    "name in every piece": lambda n: [
        calls(piece(words, name="f")) for words in ('{"a":"', *["x}"] * n, '"}')
    ],
    "an id for each piece": lambda n: [
        calls(piece(words, index=0, id=f"c{at}", name="f"))
        for at, words in enumerate(('{"a":"', *["x}"] * n, '"}'))
    ],
    "braces": lambda n: [
        calls(piece(words, index=0, id="a", name="f")) for words in ('{"a":"', *["{}"] * n, '"}')
    ],
    "opening braces": lambda n: [
        calls(piece(words, index=0, id="a", name="f")) for words in ("{", *["{"] * n)
    ],
    "text between": lambda n: [
        chunk({"content": "t", "tool_calls": [piece(words, index=0, id="a", name="f")]})
        for words in ('{"a":"', *["x}"] * n, '"}')
    ],
    "whole again and again": lambda n: [
        calls(piece('{"a":1}', index=0, id="a", name="f")) for _ in range(n)
    ],
    "behind the end": lambda n: [
        calls(piece(words, index=0, id="a", name="f")) for words in ("{}{}", *['{"a"'] * n)
    ],
    "many calls": lambda n: [
        calls(piece('{"a"', index=at, id=f"c{at}", name="f")) for at in range(n)
    ],
    "many ids": lambda n: [calls(piece('{"a":1}', id=f"c{at}", name="f")) for at in range(n)],
}


def test_work_grows_as_the_stream_does(monkeypatch: pytest.MonkeyPatch) -> None:
    done = [0]

    def counted(text: Any) -> Any:
        done[0] += len(text)
        return loads(text)

    class Extent(arguments._Extent):
        def add(self, text: str) -> None:
            done[0] += len(text)
            super().add(text)

    monkeypatch.setattr(arguments, "loads", counted)
    monkeypatch.setattr(arguments, "_Extent", Extent)

    def work(events: list[str]) -> float:
        """Return what an event costs: lines of code, and letters that are looked at."""
        done[0] = 0

        def step(frame: Any, event: str, arg: Any) -> Any:
            done[0] += event == "line"
            return step

        previous = sys.gettrace()
        sys.settrace(step)
        try:
            listened(*events, end=False)
        finally:
            sys.settrace(previous)
        return done[0] / len(events)

    costs = {case: (work(made(60)), work(made(240))) for case, made in MANY.items()}
    misses = {case: each for case, each in costs.items() if each[1] > 1.3 * each[0]}
    assert misses == {}


def test_whole_answer_tells_the_calls_of_a_stream() -> None:
    listed = [
        {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x":1}'}},
        {"id": "a", "type": "function", "function": {"name": "f", "arguments": ""}},
        {"type": "function", "function": {"name": "f", "arguments": None}},
        {"id": "b", "function": {"name": "g", "arguments": {"y": 1}}},
    ]
    found = heard({"role": "assistant", "content": None, "tool_calls": listed}, "tool_calls")

    told = [(p["id"], p["name"], p["text"]) for p in found.parts.values()]
    assert told == [("a", "f", '{"x":1}'), ("a", "f", ""), ("", "f", ""), ("b", "g", '{"y": 1}')]


def heard(message: Any, finish: Any = "stop", **more: Any) -> Listener:
    listener = Listener()
    choice = {"index": 0, "message": message, "finish_reason": finish}
    body = {"id": "c1", "model": "m", "created": 7, "choices": [choice], **more}
    ChatReader(listener).whole(json.dumps(body).encode())
    return listener


#: Messages, which are one chunk of a stream as well, and what is told: kind and text.
SAID: dict[str, tuple[dict[str, Any], list[tuple[str, str]]]] = {
    "text": ({"content": "Hi."}, [("text", "Hi.")]),
    "nothing": ({"content": ""}, []),
    "null": ({"content": None, "refusal": None, "reasoning": None, "tool_calls": None}, []),
    "reasoning_content": (
        {"content": "Hi.", "reasoning_content": "Hm."},
        [("reasoning", "Hm."), ("text", "Hi.")],
    ),
    "reasoning": ({"content": "", "reasoning": "Hm."}, [("reasoning", "Hm.")]),
    "both keys": (
        {"reasoning": "Hm.", "reasoning_content": "Hm.", "reasoning_details": [{"text": "Hm."}]},
        [("reasoning", "Hm.")],
    ),
    "an empty key beside": (
        {"reasoning_content": "", "reasoning": "Hm.", "content": "Hi."},
        [("reasoning", "Hm."), ("text", "Hi.")],
    ),
    "empty keys beside details": (
        {"reasoning_content": None, "reasoning": "", "reasoning_details": [{"text": "Hm."}]},
        [("reasoning", "Hm.")],
    ),
    "details alone": (
        {"reasoning_details": [{"type": "reasoning.text", "text": "Hm."}, {"data": "x"}, 3]},
        [("reasoning", "Hm.")],
    ),
    "a summary": ({"reasoning_details": [{"summary": "Hm."}]}, [("reasoning", "Hm.")]),
    "refusal": ({"content": None, "refusal": "No."}, [("refusal", "No.")]),
    "parts": (
        {"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}, 3]},
        [("text", "ab")],
    ),
    "thinking parts": (
        {
            "content": [
                {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]},
                {"type": "text", "text": "Hi."},
                {"type": "refusal", "refusal": "No."},
            ]
        },
        [("reasoning", "Hm."), ("text", "Hi."), ("refusal", "No.")],
    ),
    "a function call of old": (
        {"function_call": {"name": "f", "arguments": '{"x":1}'}},
        [("call", '{"x":1}')],
    ),
    "text beside calls": (
        {"content": "I look.", "tool_calls": [piece('{"x":1}', index=0, id="a", name="f")]},
        [("text", "I look."), ("call", '{"x":1}')],
    ),
    "of a wrong type": ({"content": 3, "tool_calls": 3, "refusal": [], "reasoning": {}}, []),
    "annotations": (
        {"content": "Hi.", "annotations": [{"type": "url_citation"}]},
        [("text", "Hi.")],
    ),
}


def test_messages_are_told_alike_as_a_stream_and_whole() -> None:
    misses = {}
    for case, (message, wanted) in SAID.items():
        for found in (listened(chunk(message), chunk(finish="stop")), heard(message)):
            told = [(part["kind"], part["text"]) for part in found.parts.values()]
            if told != wanted:
                misses[case] = told
    assert misses == {}


def test_text_is_passed_on_as_it_came() -> None:
    raw = '{"id":"c1","choices":[{"index":0,"delta":{"content":"\\u00e9 \\ud83d"}}]}'
    found = listened(chunk({"role": "assistant", "content": ""}), raw, chunk(finish="stop"))

    assert [each for each in found.log if each[0] == "more"] == [
        ("more", "text 1", b'"\\u00e9 \\ud83d"')
    ]
    assert found.log[0] == ("head", "c1", "m", 7)


def test_part_ends_when_another_begins() -> None:
    found = listened(
        chunk({"reasoning": "Hm."}),
        chunk({"content": "I "}),
        chunk({"content": "look."}),
        calls(piece('{"x":1}', index=0, id="a", name="f")),
        chunk({"content": "Done."}),
        chunk(finish="stop"),
    )

    assert [(p["kind"], p["text"]) for p in found.parts.values()] == [
        ("reasoning", "Hm."),
        ("text", "I look."),
        ("call", '{"x":1}'),
        ("text", "Done."),
    ]
    steps = [each[0] for each in found.log if each[0] in ("open", "close")]
    assert steps == ["open", "close"] * 4


def test_call_whose_arguments_are_incomplete_stays_open() -> None:
    found = listened(
        calls(piece('{"x"', index=0, id="a", name="f")),
        calls(piece('{"y":1}', index=1, id="b", name="f")),
        end=False,
    )

    assert len(found.open_now) == 2


def test_only_the_first_choice_is_told() -> None:
    other = {"index": 1, "delta": {"content": "no"}, "finish_reason": "length"}
    first = {"index": 0, "delta": {"content": "yes"}, "finish_reason": "stop"}
    found = listened(json.dumps({"id": "c", "choices": [other, first]}))

    assert [part["text"] for part in found.parts.values()] == ["yes"]
    assert found.ended is not None
    assert found.ended[0] == ""


#: Reasons to stop and the neutral words; parts tell whether there were calls.
STOPS = {
    "stop": "",
    "STOP": "",
    "tool_calls": "",
    "function_call": "",
    "eos": "",
    "length": "length",
    "model_length": "length",
    "content_filter": "filter",
    "SAFETY": "filter",
    "refusal": "refusal",
}


def test_reasons_to_stop() -> None:
    found = {
        word: [
            each.ended[0] for each in (listened(chunk(finish=word)), heard({}, word)) if each.ended
        ]
        for word in STOPS
    }
    assert found == {word: [told, told] for word, told in STOPS.items()}


def test_refusal_ends_as_the_provider_says() -> None:
    found = listened(chunk({"refusal": "No."}), chunk(finish="stop"))

    assert list(found.parts.values()) == [{"kind": "refusal", "text": "No."}]
    assert found.ended is not None
    assert found.ended[0] == ""


USAGE = {"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}}


def test_usage_is_found_wherever_it_is() -> None:
    last = chunk({"content": "x"}, "stop")
    alone = json.dumps({"id": "c1", "choices": [], "usage": USAGE})
    inside = json.dumps({"id": "c1", "choices": [{"delta": {}, "usage": USAGE}]})
    streams = {
        "alone": (last, alone),
        "behind the end": (last, alone, "[DONE]"),
        "beside the end": (chunk({"content": "x"}, "stop", usage=USAGE),),
        "in the choice": (last, inside),
        "null behind it": (chunk({}, "stop", usage=USAGE), chunk({}, usage=None)),
        "in every chunk": (chunk({}, usage={"prompt_tokens": 9}), chunk({}, "stop", usage=USAGE)),
    }
    ends = {case: listened(*events).ended for case, events in streams.items()}
    counts = {
        case: (end[1].input_tokens, end[1].output_tokens, end[1].cached_tokens)
        for case, end in ends.items()
        if end
    }
    assert counts == dict.fromkeys(streams, (9, 2, 4))


def test_done_ends_an_answer_without_a_reason() -> None:
    found = listened(chunk({"content": "x"}), "[DONE]", chunk({"content": "more"}), end=False)

    assert found.ended is not None
    assert [part["text"] for part in found.parts.values()] == ["x"]


def test_whole_answer_as_the_only_event_of_a_stream() -> None:
    choice = {"index": 0, "message": {"content": "x"}, "finish_reason": "stop"}
    whole = json.dumps({"id": "c1", "choices": [choice]})

    assert [p["text"] for p in listened(whole).parts.values()] == ["x"]
    assert [p["text"] for p in listened(chunk({"content": "x"}), whole).parts.values()] == ["x"]


def test_first_chunk_of_azure_is_not_the_head() -> None:
    first = json.dumps({"id": "", "model": "", "choices": [], "prompt_filter_results": []})
    found = listened(first, chunk({"content": "x"}), chunk(finish="stop"))

    assert found.log[0] == ("head", "c1", "m", 7)


#: Events behind which nobody can go on, and what is said of them.
FAILURES = {
    '{"error":{"message":"key sk-secret","code":"overloaded"}}': "overloaded",
    '{"error":"sk-secret"}': "no code",
    '{"object":"error","message":"sk-secret","type":"BadRequestError","code":400}': "400",
    '{"id":"c1","choices":[{"delta":{"content":"x"},"finish_reason":"error"}]}': "failed",
    '{"id":"c1","choices":[{"delta":{},"error":{"code":502}}]}': "reports an error (502)",
    '{"id":"c1","choices":[{"delta":{},"finish_reason":"insufficient_system_resource"}]}': "failed",
    "not JSON": "not JSON",
    "[1]": "not a JSON object",
}


def test_failures_inside_of_a_stream() -> None:
    misses = {}
    for event, told in FAILURES.items():
        with pytest.raises(ShapeError) as caught:
            listened(chunk({"content": "half"}), event, chunk(finish="stop"))
        said = str(caught.value)
        if told not in said or "secret" in said:
            misses[event] = said
    assert misses == {}


def test_stream_without_an_end_is_refused() -> None:
    with pytest.raises(ShapeError, match="ends before its answer does"):
        listened(chunk({"content": "half"}))
    with pytest.raises(ShapeError, match="ends before its answer does"):
        listened(chunk({"content": "half"}, "null"), chunk({}, ""))


def test_call_without_a_name_is_refused() -> None:
    with pytest.raises(ShapeError, match="a tool call has no name"):
        listened(calls(piece('{"x":1}', index=0, id="a")), chunk(finish="stop"))


#: Bodies that are not answers.
NO_ANSWERS = ("{}", "[]", "", "x", '{"choices":null}', '{"choices":[]}', '{"choices":[{}]}')


def test_bodies_that_are_no_answers_are_refused() -> None:
    for body in (*NO_ANSWERS, '{"error":{"code":"x"},"choices":[{"message":{}}]}'):
        with pytest.raises(ShapeError):
            ChatReader(Listener()).whole(body.encode())


@each_way
@given(value=VALUES)
def test_any_json_is_told_or_refused(whole: bool, value: str) -> None:
    inner = (
        f'{{"content":{value},"tool_calls":[{value}],"reasoning":{value},"function_call":{value}}}'
    )
    choice = f'{{"index":{value},"delta":{inner},"message":{inner},"finish_reason":"stop"}}'
    bodies = (value, f'{{"choices":{value}}}', f'{{"choices":[{choice}],"usage":{value}}}')
    for body in bodies:
        reader = ChatReader(Listener())
        data = body.encode("utf-8", "surrogatepass")
        try:
            if whole:
                reader.whole(data)
            else:
                reader.event("", data)
                reader.finish()
        except (ShapeError, JsonTextError):
            continue


#: Cases of ``CALLS`` that OpenAI's own servers could send.
USUAL = ("in pieces", "parallel, one after another", "interleaved", "no arguments", "no JSON")


def test_calls_are_told_as_the_official_sdk_reads_them() -> None:
    misses = {}
    for case in USUAL:
        state = ChatCompletionStreamState()
        events = [*[calls(*pieces) for pieces in CALLS[case][0]], chunk(finish="tool_calls")]
        for event in events:
            usual = {"object": "chat.completion.chunk", **json.loads(event)}
            state.handle_chunk(ChatCompletionChunk.model_validate(usual))
        message = state.get_final_completion().choices[0].message
        read = [
            (call.function.name, call.function.arguments or "") for call in message.tool_calls or ()
        ]
        told = [(part["name"], part["text"]) for part in listened(*events).parts.values()]
        if told != read:
            misses[case] = (told, read)
    assert misses == {}


@given(
    parts=st.lists(
        st.tuples(st.sampled_from(["text", "reasoning", "refusal", "call"]), st.text(max_size=9)),
        max_size=5,
    ),
    invents=st.booleans(),
)
def test_what_is_written_is_told_again(parts: list[tuple[Any, str]], invents: bool) -> None:
    frame = Frame(
        model="m", id="chatcmpl-1", created_s=7, include_usage=True, request={}, invents=invents
    )
    writer, usage = CHAT.writer(frame), ModelUsage(input_tokens=9, output_tokens=2)
    events = [*writer.begin(usage)]
    for number, (kind, said) in enumerate(parts):
        arguments = json.dumps({"said": said}) if kind == "call" else said
        name = "f" if kind == "call" else ""
        events += writer.open(AnswerPart(kind=kind, id=f"c{number}" if name else "", name=name))
        events += writer.more(arguments)
        events += writer.close()
    events += writer.end(usage, {})
    whole = Listener()
    ChatReader(whole).whole(encode(writer.whole(usage, {})))
    sent = [e.data if isinstance(e.data, str) else encode(dict(e.data)).decode() for e in events]

    for found in (listened(*sent, end=False), whole):
        assert found.ended is not None
        assert (found.ended[1].input_tokens, found.ended[1].output_tokens) == (9, 2)
        for kind in ("text", "reasoning", "refusal"):
            said = "".join(each for each_kind, each in parts if each_kind == kind)
            assert "".join(p["text"] for p in found.parts.values() if p["kind"] == kind) == said
        called = [
            json.loads(p["text"])["said"] for p in found.parts.values() if p["kind"] == "call"
        ]
        assert called == [each for each_kind, each in parts if each_kind == "call"]
