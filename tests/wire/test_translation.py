"""Answers told in another wire format: whole, and as streams."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchyard_core import UpstreamError
from switchyard_core.answering import ModelUsage
from switchyard_core.jsonio.tree import ObjectText, encode
from switchyard_core.wire import FORMATS
from switchyard_core.wire.answers import AnswerPart, Frame, stream_bytes
from switchyard_core.wire.naming import ToolNames
from switchyard_core.wire.neutral import ToolName
from switchyard_core.wire.translation import AnswerTranslation
from tests.support.streams import accumulated, check_stream, parsed, told

CHAT, RESPONSES, MESSAGES = FORMATS
PAIRS = list(itertools.product(FORMATS, FORMATS))
ACROSS = list(itertools.permutations(FORMATS, 2))

_TOOLS = ("read", "noop", "x" * 90, "a.b")
REQUESTS: dict[str, dict[str, Any]] = {
    CHAT: {
        "model": "wise",
        "stream": True,
        "stream_options": {"include_usage": True},
        "messages": [{"role": "user", "content": "go"}],
        "tools": [{"type": "function", "function": {"name": name}} for name in _TOOLS],
    },
    RESPONSES: {
        "model": "wise",
        "stream": True,
        "input": "go",
        "instructions": "be kind",
        "metadata": {"a": "b"},
        "tools": [
            *({"type": "function", "name": name, "parameters": {}} for name in _TOOLS),
            {"type": "custom", "name": "apply_patch"},
            {"type": "namespace", "name": "ns", "description": "d", "tools": [
                {"type": "function", "name": "read", "parameters": {}}
            ]},
        ],
    },
    MESSAGES: {
        "model": "wise",
        "stream": True,
        "max_tokens": 9,
        "messages": [{"role": "user", "content": "go"}],
        "tools": [{"name": name, "input_schema": {"type": "object"}} for name in _TOOLS],
    },
}  # fmt: skip
PATCH = '*** Begin Patch\n+ "x" \\ \t é 😀\u2028\n*** End Patch\n'
USAGE = ModelUsage(
    input_tokens=100,
    output_tokens=20,
    cached_tokens=60,
    cache_write_tokens=10,
    reasoning_tokens=7,
)


@dataclass(frozen=True)
class Said:
    """What a provider says."""

    parts: tuple[tuple[AnswerPart, str], ...] = ()
    stop: str = "stop"
    usage: ModelUsage = field(default_factory=ModelUsage)


def text(said: str) -> tuple[AnswerPart, str]:
    return AnswerPart(kind="text"), said


def call(name: str, arguments: str = "{}", *, made: str = "call_1", **more: Any) -> Any:
    return AnswerPart(kind="call", id=made, name=name, **more), arguments


ANSWERS = {
    "text": Said((text("Hello — wörld 😀.\u2028\x85\n\n"),), usage=USAGE),
    "nothing": Said(),
    "thoughts, text, calls": Said(
        (
            (AnswerPart(kind="reasoning", opaque="c2VhbGVk"), "First look.\n\nThen think."),
            text("I will look."),
            call("read", '{"path":"a.py","line":1}'),
            call("noop", made="call_2"),
        ),
        "calls",
        USAGE,
    ),
    "calls alone": Said((call("read", '{"q":"\\u00e9\\n"}', made="toolu_01A"),), "calls"),
    "cut": Said((text("Hell"),), "length", USAGE),
    "filtered": Said((text("Hell"),), "filter"),
    "odd names": Said(
        (call("x" * 90, made="functions.x:0"), call("a.b", made="functions.x:1")), "calls"
    ),
    "one id": Said((call("read"), call("noop")), "calls"),
    "unknown tool": Said((call("nobody"),), "calls"),
}


def source_of(name: str, said: Said, *, caller: str) -> tuple[list[bytes], bytes]:
    """Return what a provider sends: the events of a stream, and the whole answer."""
    wire_format = FORMATS[name]
    offered = FORMATS[caller].neutral(ObjectText(encode(REQUESTS[caller]))).tools
    names = ToolNames(offered, wire_format)
    frame = Frame(
        model="deep",
        id=wire_format.writer.id_of("ab" * 32),
        created_s=7,
        include_usage=True,
        request={},
        invents=True,
        stop=said.stop,
    )
    streamed, kept = wire_format.writer(frame), wire_format.writer(frame)
    events = [*streamed.begin(said.usage)]
    for part, words in said.parts:
        if part.kind == "call":
            own = names.at_target(ToolName(name=part.name, namespace=part.namespace))
            custom = part.custom and kept.has_custom_calls
            part = AnswerPart(
                kind="call",
                id=part.id,
                name=own.name,
                namespace=own.namespace,
                custom=custom,
            )
            words = words if custom else kept.arguments(words)
        events += streamed.open(part)
        for at in range(0, len(words), 3):
            events += streamed.more(words[at : at + 3])
        events += streamed.close()
        list(kept.open(part))
        list(kept.more(words))
        list(kept.close())
    events += streamed.end(said.usage, {})
    return [stream_bytes([event]) for event in events], encode(kept.whole(said.usage, {}))


def translation(source: str, caller: str, request: Any = None, **more: Any) -> AnswerTranslation:
    numbers = itertools.count()
    given: dict[str, Any] = {
        "model": "wise",
        "answer_model": "requested",
        "new_id": lambda prefix: f"{prefix}_new{next(numbers)}",
        "created_s": 1,
        **more,
    }
    return AnswerTranslation(
        source=FORMATS[source],
        caller=FORMATS[caller],
        request=ObjectText(encode(REQUESTS[caller] if request is None else request)),
        **given,
    )


def streamed(source: str, caller: str, *chunks: bytes, request: Any = None, **more: Any) -> bytes:
    made = translation(source, caller, request, **more)
    return b"".join([*map(made.feed, chunks), made.end()])


def essence(name: str, answer: dict[str, Any]) -> dict[str, Any]:
    """Return what an answer says, without what no stream of its format can tell."""
    if name == CHAT:
        answer = {**answer, "choices": [dict(choice) for choice in answer["choices"]]}
        message = dict(answer["choices"][0]["message"])
        calls = message.get("tool_calls") or []
        message["tool_calls"] = [
            (each["id"], each["function"]["name"], each["function"]["arguments"]) for each in calls
        ]
        message["content"] = message.get("content") or None
        drop = ("parsed", "annotations", "audio", "function_call")
        message = {key: value for key, value in message.items() if key not in drop}
        del answer["choices"][0]["message"]
        for key in ("service_tier", "system_fingerprint"):
            assert not answer.pop(key, None)
        kind = answer.pop("object")
        assert kind in ("chat.completion", "chat.completion.chunk")
        return {**answer, "message": message}
    return answer


def readable(source: str, name: str, said: Said) -> Said:
    """Leave out what a format has no place for."""
    del source, name
    return said


@pytest.mark.parametrize(("source", "caller"), PAIRS)
def test_every_stream_says_what_the_whole_answer_says(source, caller):
    missed = []
    for name, said in ANSWERS.items():
        events, whole = source_of(source, said, caller=caller)
        sent = streamed(source, caller, *events)

        check_stream(caller, sent)
        read = parsed(caller, translation(source, caller).whole(whole))
        if essence(caller, accumulated(caller, sent)) != essence(caller, read):
            missed.append((name, accumulated(caller, sent), read))

    assert missed == []
