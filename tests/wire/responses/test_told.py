"""Answers of Responses, told: streams of all sorts, whole ones, and what went wrong in them."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable
from contextlib import suppress
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchyard_core.answering import ModelUsage
from switchyard_core.wire import FORMATS
from switchyard_core.wire.answers import AnswerPart, Frame, sse
from switchyard_core.wire.events import EventCutter
from switchyard_core.wire.replies import ShapeError
from switchyard_core.wire.responses import told as told_module
from switchyard_core.wire.responses.sent import Item
from switchyard_core.wire.retelling import AnswerTeller
from tests.support.mutated import nodes, put

RESPONSES = FORMATS["openai_responses"]
Event = dict[str, Any]


class Heard(AnswerTeller):
    """Collects what it is told, and minds that the order is right."""

    def __init__(self) -> None:
        self.begun: dict[str, Any] | None = None
        self.parts: dict[Hashable, AnswerPart] = {}
        self.pieces: dict[Hashable, list[str]] = {}
        self.live: set[Hashable] = set()
        self.ended: tuple[str, ModelUsage] | None = None
        self.pings = 0

    def head(self, *, answer_id: str, model: str, created_s: int, usage: ModelUsage) -> None:
        assert self.begun is None
        self.begun = {"id": answer_id, "model": model, "created_s": created_s, "usage": usage}

    def open(self, key: Hashable, part: AnswerPart) -> None:
        assert self.begun is not None
        assert key not in self.parts
        assert self.ended is None
        self.parts[key], self.pieces[key] = part, []
        self.live.add(key)

    def more(self, key: Hashable, raw: bytes) -> None:
        assert key in self.live
        self.pieces[key].append(json.loads(raw))

    def close(self, key: Hashable) -> None:
        self.live.remove(key)

    def end(self, stop: str, usage: ModelUsage) -> None:
        assert self.begun is not None
        assert self.ended is None
        assert not self.live
        self.ended = stop, usage

    def ping(self) -> None:
        self.pings += 1

    @property
    def said(self) -> list[tuple[str, str, str]]:
        """Kind, name and text of each part, in the order of their beginnings."""
        return [
            (part.kind, part.name, "".join(self.pieces[key])) for key, part in self.parts.items()
        ]

    @property
    def stop(self) -> str:
        assert self.ended is not None
        return self.ended[0]


def heard(events: Iterable[Event], *, named: bool = True, finish: bool = True) -> Heard:
    """Return what the events of a stream tell."""
    teller = Heard()
    reader = RESPONSES.reader(teller)
    for event in events:
        reader.event(event["type"] if named else "", json.dumps(event).encode())
    if finish:
        reader.finish()
    return teller


def created(**others: Any) -> Event:
    response = {"id": "resp_1", "model": "deep", "created_at": 7.0, "status": "in_progress"}
    return {"type": "response.created", "response": {**response, "output": [], **others}}


def completed(*output: Any, **others: Any) -> Event:
    response = {"id": "resp_1", "model": "deep", "status": "completed", "output": [*output]}
    return {"type": "response.completed", "response": {**response, **others}}


def piece(kind: str, text: Any, at: int = 0, **others: Any) -> Event:
    return {"type": f"response.{kind}.delta", "output_index": at, "delta": text, **others}


def done(kind: str, at: int = 0, **others: Any) -> Event:
    return {"type": f"response.{kind}.done", "output_index": at, **others}


def added(item: Event, at: int = 0) -> Event:
    return {"type": "response.output_item.added", "output_index": at, "item": item}


def ready(item: Event, at: int = 0) -> Event:
    return {"type": "response.output_item.done", "output_index": at, "item": item}


def call(arguments: Any = "", **others: Any) -> Event:
    named = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "read"}
    return {**named, "arguments": arguments, **others}


def patch(text: str = "") -> Event:
    named = {"id": "ctc_1", "call_id": "call_9", "name": "patch", "namespace": "functions"}
    return {"type": "custom_tool_call", **named, "input": text}


def message(*texts: str, item_id: str = "msg_1", refusal: str = "") -> Event:
    content = [{"type": "output_text", "text": text, "annotations": []} for text in texts]
    if refusal:
        content.append({"type": "refusal", "refusal": refusal})
    return {"type": "message", "id": item_id, "role": "assistant", "content": content}


def reasoning(*summary: str, content: str = "") -> Event:
    texts = [{"type": "summary_text", "text": text} for text in summary]
    raw = [{"type": "reasoning_text", "text": content}] if content else None
    return {"type": "reasoning", "id": "rs_1", "summary": texts, "content": raw}


TEXT, ARGUMENTS, SUMMARY = "output_text", "function_call_arguments", "reasoning_summary_text"
FREE = "custom_tool_call_input"
READ = ("call", "read", '{"p":1}')


#: Streams that say the same in many ways: events behind ``created``, parts, reason to stop.
STREAMS: dict[str, tuple[list[Event], list[tuple[str, str, str]], str]] = {
    "text": (
        [
            added(message()),
            {"type": "response.content_part.added", "output_index": 0, "part": {}},
            piece(TEXT, "Hal"),
            piece(TEXT, ""),
            piece(TEXT, "lo"),
            done(TEXT, text="Hallo"),
            ready(message("Hallo")),
            completed(message("Hallo")),
        ],
        [("text", "", "Hallo")],
        "stop",
    ),
    "text without ends": (
        [piece(TEXT, "Hal"), piece(TEXT, "lo"), completed()],
        [("text", "", "Hallo")],
        "stop",
    ),
    "text in one": ([done(TEXT, text="Hi"), completed()], [("text", "", "Hi")], "stop"),
    "item alone": (
        [ready(message("a", "b")), completed()],
        [("text", "", "a"), ("text", "", "b")],
        "stop",
    ),
    "whole alone": (
        [completed(reasoning("Hm."), message("Hi"), call('{"p":1}'))],
        [("reasoning", "", "Hm."), ("text", "", "Hi"), READ],
        "calls",
    ),
    "rest in the whole": (
        [piece(TEXT, "Hi"), completed(message("Hi"), call('{"p":1}'))],
        [("text", "", "Hi"), READ],
        "calls",
    ),
    "ids that change on the way": (
        [
            added(message(item_id="msg_a")),
            piece(TEXT, "Hi", item_id="msg_b"),
            ready(message("Hi", item_id="msg_c")),
            completed(message("Hi", item_id="msg_d")),
        ],
        [("text", "", "Hi")],
        "stop",
    ),
    "places that differ in the whole": (
        [
            added(call(), 4),
            piece(ARGUMENTS, '{"p":1}', 4),
            completed(message("Hi"), call('{"p":1}')),
        ],
        [READ, ("text", "", "Hi")],
        "calls",
    ),
    "content as one text": (
        [ready({"type": "message", "role": "assistant", "content": "Hi"}), completed()],
        [("text", "", "Hi")],
        "stop",
    ),
    "call in pieces": (
        [
            added(call()),
            piece(ARGUMENTS, '{"p"'),
            piece(ARGUMENTS, ":1}"),
            done(ARGUMENTS, arguments='{"p":1}'),
            ready(call('{"p":1}')),
            completed(call('{"p":1}')),
        ],
        [READ],
        "calls",
    ),
    "call with arguments at once": (
        [added(call()), done(ARGUMENTS, arguments='{"p":1}'), ready(call('{"p":1}')), completed()],
        [READ],
        "calls",
    ),
    "call with arguments at its end": (
        [added(call()), ready(call('{"p":1}')), completed()],
        [READ],
        "calls",
    ),
    "call with arguments from the first": (
        [added(call('{"p":1}')), piece(ARGUMENTS, '{"p":1}'), ready(call('{"p":1}')), completed()],
        [READ],
        "calls",
    ),
    "call with early arguments alone": ([added(call('{"p":1}')), completed()], [READ], "calls"),
    "call with arguments in the whole": (
        [added(call()), completed(call('{"p":1}'))],
        [READ],
        "calls",
    ),
    "call that was not announced": (
        [
            piece(ARGUMENTS, '{"p":1}'),
            done(ARGUMENTS, arguments='{"p":1}'),
            ready(call('{"p":1}')),
            completed(),
        ],
        [READ],
        "calls",
    ),
    "call named at its end": (
        [added(call(name="")), piece(ARGUMENTS, '{"p":1}'), ready(call('{"p":1}')), completed()],
        [READ],
        "calls",
    ),
    "arguments as an object": (
        [ready(call({"p": 1})), completed()],
        [("call", "read", '{"p": 1}')],
        "calls",
    ),
    "no arguments": (
        [added(call()), done(ARGUMENTS, arguments=""), ready(call()), completed(call())],
        [("call", "read", "")],
        "calls",
    ),
    "free text": (
        [
            added(patch()),
            piece(FREE, "*** Begin"),
            piece(FREE, " Patch"),
            done(FREE, input="*** Begin Patch"),
            ready(patch("*** Begin Patch")),
            completed(patch("*** Begin Patch")),
        ],
        [("call", "patch", "*** Begin Patch")],
        "calls",
    ),
    "two calls at the same time": (
        [
            added(call(), 1),
            added(patch(), 2),
            piece(FREE, "a", 2),
            piece(ARGUMENTS, '{"p"', 1),
            piece(FREE, "b", 2),
            done(FREE, 2, input="ab"),
            piece(ARGUMENTS, ":1}", 1),
            ready(call('{"p":1}'), 1),
            ready(patch("ab"), 2),
            completed(),
        ],
        [READ, ("call", "patch", "ab")],
        "calls",
    ),
    "thoughts in two parts": (
        [
            added(reasoning()),
            piece(SUMMARY, "One", summary_index=0),
            piece(SUMMARY, ".", summary_index=0),
            done(SUMMARY, summary_index=0, text="One."),
            piece(SUMMARY, "Two.", summary_index=1),
            ready(reasoning("One.", "Two.")),
            completed(reasoning("One.", "Two.")),
        ],
        [("reasoning", "", "One.\n\nTwo.")],
        "stop",
    ),
    "thoughts at once": (
        [ready(reasoning("One.", "", "Two.")), completed()],
        [("reasoning", "", "One.\n\nTwo.")],
        "stop",
    ),
    "raw thoughts": (
        [
            piece("reasoning_text", "Hm", content_index=0),
            piece("reasoning_text", ".", content_index=0),
            piece(SUMMARY, "In short: hm.", summary_index=0),
            ready(reasoning("In short: hm.", content="Hm.")),
            completed(),
        ],
        [("reasoning", "", "Hm.")],
        "stop",
    ),
    "raw thoughts at once": (
        [ready(reasoning(content="Hm.")), completed()],
        [("reasoning", "", "Hm.")],
        "stop",
    ),
    "encrypted thoughts": (
        [ready({**reasoning(), "encrypted_content": "gAAA"}), completed()],
        [],
        "stop",
    ),
    "refusal": (
        [
            piece("refusal", "I can"),
            piece("refusal", "not."),
            done("refusal", refusal="I cannot."),
            ready(message(refusal="I cannot.")),
            completed(message(refusal="I cannot.")),
        ],
        [("refusal", "", "I cannot.")],
        "stop",
    ),
    "all items at one place": (
        [
            added(call(), 0),
            piece(ARGUMENTS, '{"a":1}'),
            ready(call('{"a":1}')),
            added(call(call_id="call_2", id="fc_2")),
            piece(ARGUMENTS, '{"b":'),
            piece(ARGUMENTS, "1}"),
            ready(call('{"b":1}', call_id="call_2", id="fc_2")),
            ready(message("One.")),
            ready(message("Two.", item_id="msg_2")),
            completed(
                call('{"a":1}'),
                call('{"b":1}', call_id="call_2", id="fc_2"),
                message("One."),
                message("Two.", item_id="msg_2"),
            ),
        ],
        [
            ("call", "read", '{"a":1}'),
            ("call", "read", '{"b":1}'),
            ("text", "", "One."),
            ("text", "", "Two."),
        ],
        "calls",
    ),
    "text and a refusal": (
        [
            piece(TEXT, "Hm.", content_index=0),
            piece("refusal", "No.", content_index=1),
            completed(),
        ],
        [("text", "", "Hm."), ("refusal", "", "No.")],
        "stop",
    ),
    "hosted items": (
        [
            added({"type": "web_search_call", "id": "ws_1"}),
            {"type": "response.web_search_call.searching", "output_index": 0, "item_id": "ws_1"},
            ready({"type": "web_search_call", "id": "ws_1", "status": "completed"}),
            piece(TEXT, "Found.", 1),
            {"type": "response.output_text.annotation.added", "output_index": 1},
            completed({"type": "web_search_call", "id": "ws_1"}, message("Found.")),
        ],
        [("text", "", "Found.")],
        "stop",
    ),
    "full": (
        [
            piece(TEXT, "Hal"),
            {
                **completed(incomplete_details={"reason": "max_output_tokens"}),
                "type": "response.incomplete",
            },
        ],
        [("text", "", "Hal")],
        "length",
    ),
    "full, said in the whole": (
        [
            piece(TEXT, "Hal"),
            completed(status="incomplete", incomplete_details={"reason": "content_filter"}),
        ],
        [("text", "", "Hal")],
        "filter",
    ),
    "odd pieces": (
        [
            piece(TEXT, "a"),
            piece(TEXT, None),
            piece(TEXT, {"text": "b"}),
            piece(ARGUMENTS, 7),
            {"type": "response.output_item.added", "output_index": 0, "item": None},
            {"type": "response.output_item.done", "output_index": 3, "item": {"type": 7}},
            completed(
                7, {"type": "of_tomorrow"}, {"type": "message", "content": {"a": 1}, "id": 7}
            ),
        ],
        [("text", "", "a")],
        "stop",
    ),
    "items without a number": (
        [
            {"type": "response.output_text.delta", "item_id": "msg_1", "delta": "a"},
            {"type": "response.output_item.done", "item": message("a")},
            {"type": "response.output_text.delta", "item_id": "msg_2", "delta": "b"},
            {"type": "response.output_item.added", "item": call()},
            {
                "type": "response.function_call_arguments.delta",
                "item_id": "fc_1",
                "delta": '{"p":1}',
            },
            {"type": "response.output_item.done", "item": call('{"p":1}')},
            completed(message("a"), message("b", item_id="msg_2"), call('{"p":1}')),
        ],
        [("text", "", "a"), ("text", "", "b"), READ],
        "calls",
    ),
    "nothing": ([completed()], [], "stop"),
}


@pytest.mark.parametrize("named", [True, False], ids=["named", "nameless"])
def test_streams_are_told_once_and_in_order(named: bool) -> None:
    wrong = {}
    for name, (events, parts, stop) in STREAMS.items():
        teller = heard([created(), *events], named=named)
        if (teller.said, teller.stop) != (parts, stop):
            wrong[name] = teller.said, teller.stop
    assert wrong == {}


def test_the_head_is_told_before_anything_else() -> None:
    known = {"id": "resp_1", "model": "deep", "created_s": 7, "usage": ModelUsage()}

    assert heard([created(), created(), completed()]).begun == known
    assert heard([piece(TEXT, "a"), created(), completed()]).begun == {
        **known,
        "id": "",
        "model": "",
        "created_s": 0,
    }
    assert heard([created(created_at=None), completed()]).begun == {**known, "created_s": 0}


def test_calls_have_the_ids_and_names_of_the_provider() -> None:
    teller = heard([added(call()), added(patch(), 1), completed()])

    assert list(teller.parts.values()) == [
        AnswerPart(kind="call", id="call_1", name="read"),
        AnswerPart(kind="call", id="call_9", name="patch", namespace="functions", custom=True),
    ]


def test_usage_is_told_with_its_details() -> None:
    usage = {
        "input_tokens": 9,
        "input_tokens_details": {"cached_tokens": 4},
        "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 3},
    }
    teller = heard([completed(usage=usage)])

    wanted = ModelUsage(input_tokens=9, output_tokens=5, cached_tokens=4, reasoning_tokens=3)
    assert teller.ended == ("stop", wanted)


def test_pieces_pass_with_their_own_escapes() -> None:
    raws = []

    class Raw(Heard):
        def more(self, key: Hashable, raw: bytes) -> None:
            raws.append(raw)

    reader = RESPONSES.reader(Raw())
    texts = [rb'"\ud83d"', rb'"\ude00"', rb'"\u0041\/"', '"é\u2028"'.encode()]
    for text in texts:
        reader.event("response.output_text.delta", b'{"delta":%s,"output_index":0}' % text)

    assert raws == texts


def test_pings_are_told_and_words_are_left_alone() -> None:
    teller = Heard()
    reader = RESPONSES.reader(teller)
    for name, data in (
        ("ping", b"{}"),
        ("keepalive", b'{"type":"keepalive"}'),
        ("", b'{"type":"ping"}'),
        ("", b"[DONE]"),
        ("", b""),
        ("of_tomorrow", b"{}"),
    ):
        reader.event(name, data)

    assert (teller.pings, teller.begun) == (3, None)


def test_nothing_is_told_behind_the_end() -> None:
    teller = heard([completed(), piece(TEXT, "late"), completed(message("late"))])

    assert (teller.said, teller.stop) == ([], "stop")


#: Events that are no part of an answer, with what is said of them.
FAULTS: dict[str, tuple[Event, str]] = {
    "error": ({"type": "error", "code": "server_error"}, "server_error"),
    "error of its own": ({"type": "error", "error": {"code": "overloaded"}}, "overloaded"),
    "nameless error": ({"type": "", "error": {"code": "bad"}}, "bad"),
    "failed": (
        {"type": "response.failed", "response": {"error": {"code": "rate_limit_exceeded"}}},
        "rate_limit_exceeded",
    ),
    "failed without a word": ({"type": "response.failed"}, "failed"),
    "cancelled": ({"type": "response.cancelled", "response": {}}, "cancelled"),
    "cut for no known reason": ({"type": "response.incomplete", "response": {}}, "incomplete"),
    "status": (completed(status="failed"), "failed"),
    "failed from the first": (created(error={"code": "server_error"}), "server_error"),
    "no response": ({"type": "response.completed"}, "not a JSON object"),
    "list as a place": ({**piece(TEXT, "a"), "output_index": [1]}, "no place"),
}


def test_what_went_wrong_is_an_error() -> None:
    wrong = {}
    for name, (event, words) in FAULTS.items():
        try:
            heard([created(), piece(TEXT, "Hal"), event], finish=False)
        except ShapeError as error:
            if words in str(error):
                continue
            wrong[name] = str(error)
        else:
            wrong[name] = "nothing"
    assert wrong == {}


def test_garbage_is_an_error() -> None:
    for name in ("", "response.output_text.delta", "response.completed", "response.created"):
        for data in (b'{"delta":', b'{"delta":"\xff', b"{]"):
            with pytest.raises(ShapeError):
                RESPONSES.reader(Heard()).event(name, data)


def test_a_stream_without_an_end_is_an_error() -> None:
    for events in ([], [created()], [created(), piece(TEXT, "a"), done(TEXT, text="a")]):
        with pytest.raises(ShapeError, match="ended before"):
            heard(events)


# --- whole answers -----------------------------------------------------------------------


def whole(**others: Any) -> Heard:
    teller = Heard()
    body = {**completed()["response"], "created_at": 7, **others}
    RESPONSES.reader(teller).whole(json.dumps(body).encode())
    return teller


def test_whole_answers_are_told_item_by_item() -> None:
    teller = whole(
        output=[
            reasoning("One.", "Two."),
            {"type": "web_search_call", "id": "ws_1"},
            message("a", "b"),
            call('{"p":1}'),
            patch("***"),
        ],
        usage={"input_tokens": 3, "output_tokens": 2},
    )

    usage = ModelUsage(input_tokens=3, output_tokens=2)
    assert teller.begun == {"id": "resp_1", "model": "deep", "created_s": 7, "usage": usage}
    assert teller.said == [
        ("reasoning", "", "One.\n\nTwo."),
        ("text", "", "a"),
        ("text", "", "b"),
        READ,
        ("call", "patch", "***"),
    ]
    assert teller.ended == ("calls", usage)


def test_two_calls_of_one_whole_answer_may_have_one_id() -> None:
    teller = whole(output=[call('{"p":1}'), call('{"p":2}')])

    assert teller.said == [READ, ("call", "read", '{"p":2}')]


def test_whole_answers_that_are_none_are_errors() -> None:
    cases = {
        "failed": ({"status": "failed"}, "failed"),
        "error": ({"error": {"code": "server_error"}}, "server_error"),
        "cut": ({"status": "incomplete"}, "incomplete"),
        "no output": ({"output": None}, "`output`"),
    }
    for others, words in cases.values():
        with pytest.raises(ShapeError, match=words):
            whole(**others)
    for body in (b"", b"[]", b"<html>", b'{"error":{"code":"x"}}'):
        with pytest.raises(ShapeError):
            RESPONSES.reader(Heard()).whole(body)


# --- whatever comes ----------------------------------------------------------------------

_EVENTS = [event for events, _, _ in STREAMS.values() for event in events]
_ODD: tuple[Any, ...] = (None, "", "x", 7, -1, 0, [], {}, [{}], {"type": "message"}, call(), True)


@given(st.integers(0, 2**48))
def test_streams_in_any_order_with_anything_in_them_are_told_or_refused(seed: int) -> None:
    chance = Random(seed)  # no secrets
    events = chance.choices(_EVENTS, k=chance.randrange(1, 12))
    for number in range(chance.randrange(3)):
        event = json.loads(json.dumps(events[number % len(events)]))
        put(event, chance.choice(list(nodes(event))), chance.choice(_ODD))
        events[number % len(events)] = event
    teller = Heard()
    reader = RESPONSES.reader(teller)
    with suppress(ShapeError):
        for event in events:
            kind = event["type"]
            reader.event(kind if isinstance(kind, str) else "", json.dumps(event).encode())
        reader.finish()
        assert teller.ended is not None


# --- as providers write them -------------------------------------------------------------

PARTS = st.lists(
    st.builds(
        lambda part, texts: (part, texts),
        st.sampled_from(
            [
                AnswerPart(kind="text"),
                AnswerPart(kind="reasoning"),
                AnswerPart(kind="call", name="read"),
                AnswerPart(kind="call", name="patch", custom=True),
            ]
        ),
        st.lists(st.text(min_size=1, max_size=6), min_size=1, max_size=3),
    ),
    max_size=5,
)


@given(PARTS)
def test_streams_and_whole_answers_of_a_provider_say_the_same(
    parts: list[tuple[AnswerPart, list[str]]],
) -> None:
    writer = RESPONSES.writer(Frame(model="m", id="resp_1", created_s=1, request={}))
    usage = ModelUsage(input_tokens=3, output_tokens=4)
    events = [*writer.begin(usage)]
    for number, (part, texts) in enumerate(parts):
        named = AnswerPart(kind=part.kind, id=f"call_{number}", name=part.name, custom=part.custom)
        events += writer.open(named)
        for text in texts:
            events += writer.more(text)
        events += writer.close()
    events += writer.end(usage, {})
    streamed, at_once = Heard(), Heard()
    reader = RESPONSES.reader(streamed)
    for event in EventCutter().feed(b"".join([sse(e.data, e.name) for e in events])):
        reader.event(event.name, event.data)
    reader.finish()
    RESPONSES.reader(at_once).whole(json.dumps(writer.whole(usage, {})).encode())

    wanted = [(part.kind, part.name, "".join(texts)) for part, texts in parts]
    assert streamed.said == at_once.said == wanted
    assert streamed.ended == at_once.ended


def test_the_whole_at_the_end_is_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    read, listed = [], told_module.listed
    monkeypatch.setattr(
        told_module, "listed", lambda raw, struct: read.append(struct) or listed(raw, struct)
    )
    item, made = message("Hi"), call('{"p":1}')
    hosted = {"type": "web_search_call", "id": "ws_1"}
    heard(
        [
            *(added(hosted), ready(hosted)),
            *(piece(TEXT, "Hi", 1), ready(item, 1)),
            *(added(call(), 2), ready(made, 2)),
            ready(reasoning(), 3),
            completed(hosted, item, made, reasoning()),
        ]
    )

    assert read
    assert Item not in read
