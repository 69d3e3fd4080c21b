"""Answers told in another wire format: whole, and as streams."""

from __future__ import annotations

import itertools
import json
import tracemalloc
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchyard_core import UpstreamError
from switchyard_core.answering import ModelUsage
from switchyard_core.jsonio.tree import ObjectText, encode
from switchyard_core.scripted.player import Player
from switchyard_core.wire import FORMATS
from switchyard_core.wire.answers import AnswerPart, Frame, stream_bytes
from switchyard_core.wire.naming import ToolNames
from switchyard_core.wire.neutral import ToolName
from switchyard_core.wire.translation import AnswerTranslation
from tests.support.streams import accumulated, check_stream, parsed, told
from tests.upstream.loopback import script_of

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
    usage: ModelUsage = USAGE


def text(said: str) -> tuple[AnswerPart, str]:
    return AnswerPart(kind="text"), said


def call(name: str, arguments: str = "{}", *, made: str = "call_1", **more: Any) -> Any:
    return AnswerPart(kind="call", id=made, name=name, **more), arguments


ANSWERS = {
    "text": Said((text("Hello — wörld 😀.\u2028\x85\n\n"),)),
    "nothing": Said(),
    "thoughts, text, calls": Said(
        (
            (AnswerPart(kind="reasoning", opaque="c2VhbGVk"), "First look.\n\nThen think."),
            text("I will look."),
            call("read", '{"path":"a.py","line":1}'),
            call("noop", made="call_2"),
        ),
        "calls",
    ),
    "calls alone": Said((call("read", '{"q":"\\u00e9\\n"}', made="toolu_01A"),), "calls"),
    "cut": Said((text("Hell"),), "length"),
    "filtered": Said((text("Hell"),), "filter"),
    "odd names": Said(
        (call("x" * 90, made="functions.x:0"), call("a.b", made="functions.x:1")), "calls"
    ),
    "one id": Said((call("read"), call("noop")), "calls"),
    "unknown tool": Said((call("nobody"),), "calls"),
    "refused": Said(((AnswerPart(kind="refusal"), "I must not."),)),
    "refused by word": Said((text("I must"),), "refusal"),
    "waits": Said((text("Let me search."),), "pause"),
    "free text": Said((call("apply_patch", PATCH, custom=True),), "calls"),
    "of a namespace": Said(
        (call("read", '{"a":1}', namespace="ns"), call("read", made="c2")), "calls"
    ),
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
    for told_part, told_words in said.parts:
        part, words = told_part, told_words
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
    for item in answer.get("output", ()):
        # The stream helper adds what it makes of them.
        item.pop("parsed_arguments", None)
        for part in item.get("content") or ():
            part.pop("parsed", None)
    return answer


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


@given(st.sampled_from(PAIRS), st.sampled_from(list(ANSWERS.values())), st.data())
def test_borders_of_chunks_make_no_difference(pair, said, data):
    stream = b"".join(source_of(pair[0], said, caller=pair[1])[0])
    if data.draw(st.booleans()):
        stream = stream.replace(b"\n", b"\r\n")
    cuts = sorted(data.draw(st.sets(st.integers(1, len(stream) - 1), max_size=20)))
    chunks = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]

    assert streamed(*pair, *chunks) == streamed(*pair, stream)


# --- streams as servers really send them ---------------------------------------------------------


def sent(*objects: Any) -> bytes:
    """Return events without names, as compatible servers send them."""
    lines = (data if isinstance(data, str) else json.dumps(data) for data in objects)
    return "".join(f"data: {line}\n\n" for line in lines).encode()


def chunk(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"id": "1", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def piece(arguments: str, **more: Any) -> dict[str, Any]:
    return {"function": {"arguments": arguments}, **more}


#: By what they are: format, bytes, text, names and arguments of the calls.
SEEN: dict[str, tuple[str, bytes, str, list[tuple[str, Any]]]] = {
    "a call in one chunk": (
        CHAT,
        sent(
            chunk(role="assistant", content=""),
            chunk(
                tool_calls=[
                    {"id": "functions.read:0", "index": 0, "type": "function",
                     "function": {"name": "read", "arguments": '{"path":"a"}'}}
                ]
            ),
            chunk("tool_calls"),
            "[DONE]",
        ),
        "",
        [("read", {"path": "a"})],
    ),
    "no mark at the end, usage beside the last choice": (
        CHAT,
        sent(
            chunk(content="Hi"),
            {**chunk("stop"), "usage": {"prompt_tokens": 1, "completion_tokens": 1}},
        ),
        "Hi",
        [],
    ),
    "stop where calls are": (
        CHAT,
        sent(
            chunk(tool_calls=[{"index": 0, "id": "", "function": {"name": "noop"}}]),
            chunk("stop"),
            "[DONE]",
        ),
        "",
        [("noop", {})],
    ),
    "calls in turns": (
        CHAT,
        sent(
            chunk(content="Hm"),
            chunk(
                tool_calls=[
                    {"index": 0, "id": "a", "function": {"name": "read", "arguments": ""}},
                    {"index": 1, "id": "b", "function": {"name": "noop", "arguments": ""}},
                ]
            ),
            chunk(tool_calls=[piece('{"b"', index=1), piece('{"a":', index=0)]),
            chunk(tool_calls=[piece(":2}", index=1), piece("1}", index=0)]),
            chunk("tool_calls"),
            "[DONE]",
        ),
        "Hm",
        [("read", {"a": 1}), ("noop", {"b": 2})],
    ),
    "comments, and lines that end as on another system": (
        CHAT,
        (b": OPENROUTER PROCESSING\n\n" + sent(chunk(content="Hi"), chunk("stop"), "[DONE]"))
        .replace(b"\n", b"\r\n"),
        "Hi",
        [],
    ),
    "half a character": (
        CHAT,
        sent(chunk(role="assistant"), chunk(content="H!"), chunk(content="i!"), chunk("stop"))
        .replace(b"!", b"\xc3"),
        "H\ufffdi\ufffd",
        [],
    ),
    "half a character of Messages": (
        MESSAGES,
        sent(
            {"type": "message_start", "message": {"id": "m", "model": "x"}},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text"}},
            {"type": "content_block_delta", "index": 0, "delta": {"text": "H!"}},
            {"type": "content_block_delta", "index": 0, "delta": {"text": "i!"}},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
            {"type": "message_stop"},
        ).replace(b"!", b"\xc3"),
        "H\ufffdi\ufffd",
        [],
    ),
    "no blank behind the colon": (
        CHAT,
        sent(chunk(content="Hi"), chunk("stop"), "[DONE]").replace(b"data: ", b"data:"),
        "Hi",
        [],
    ),
    "no names, no beginning": (
        RESPONSES,
        sent(
            {"type": "response.output_text.delta", "output_index": 0, "content_index": 0,
             "delta": "Hi"},
            {"type": "response.output_item.done", "output_index": 1, "item": {
                "type": "function_call", "call_id": "c", "name": "read", "arguments": '{"a":1}'}},
            {"type": "response.completed", "response": {"id": "r", "status": "completed"}},
        ),
        "Hi",
        [("read", {"a": 1})],
    ),
    "all at the end": (
        RESPONSES,
        sent(
            {"type": "response.completed", "response": {"id": "r", "status": "completed",
             "output": [
                {"type": "message", "content": [{"type": "output_text", "text": "Hi"}]},
                {"type": "function_call", "call_id": "c", "name": "noop", "arguments": ""}]}},
            "[DONE]",
        ),
        "Hi",
        [("noop", {})],
    ),
    "a whole input at the beginning": (
        MESSAGES,
        sent(
            {"type": "message_start", "message": {"id": "m", "model": "x"}},
            {"type": "content_block_start", "index": 0, "content_block": {
                "type": "tool_use", "id": "t", "name": "read", "input": {"a": 1}}},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
            {"type": "message_stop"},
        ),
        "",
        [("read", {"a": 1})],
    ),
    "blocks that nobody else has": (
        MESSAGES,
        sent(
            {"type": "message_start", "message": {"id": "m", "model": "x"}},
            {"type": "content_block_start", "index": 0, "content_block": {
                "type": "redacted_thinking", "data": "x"}},
            {"type": "content_block_stop", "index": 0},
            {"type": "content_block_start", "index": 1, "content_block": {
                "type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}},
            {"type": "content_block_delta", "index": 1, "delta": {
                "type": "input_json_delta", "partial_json": "{}"}},
            {"type": "content_block_stop", "index": 1},
            {"type": "content_block_start", "index": 2, "content_block": {
                "type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 2, "delta": {
                "type": "text_delta", "text": "Hi"}},
            {"type": "content_block_stop", "index": 2},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
            {"type": "message_stop"},
        ),
        "Hi",
        [],
    ),
}  # fmt: skip


def said_by(name: str, answer: dict[str, Any]) -> tuple[str, list[tuple[str, Any]]]:
    """Return text and calls of an answer."""
    if name == CHAT:
        message = answer["choices"][0]["message"]
        calls = [each["function"] for each in message.get("tool_calls") or ()]
        found = [(each["name"], json.loads(each["arguments"])) for each in calls]
        return message["content"] or "", found
    if name == RESPONSES:
        items = answer["output"]
        words = [part["text"] for item in items for part in item.get("content") or ()]
        calls = [item for item in items if item["type"] == "function_call"]
        return "".join(words), [(each["name"], json.loads(each["arguments"])) for each in calls]
    blocks = answer["content"]
    return (
        "".join(block["text"] for block in blocks if block["type"] == "text"),
        [(each["name"], each["input"]) for each in blocks if each["type"] == "tool_use"],
    )


@pytest.mark.parametrize("caller", FORMATS)
def test_what_servers_really_send(caller):
    missed = []
    for kind, (source, stream, words, calls) in SEEN.items():
        out = streamed(source, caller, stream)
        check_stream(caller, out)
        found = accumulated(caller, out)
        stop = found["choices"][0]["finish_reason"] if caller == CHAT else found.get("stop_reason")
        expected = {CHAT: "tool_calls", MESSAGES: "tool_use"}.get(caller)
        if said_by(caller, found) != (words, calls) or (calls and stop != expected):
            missed.append((kind, said_by(caller, found), stop))

    assert missed == []


@pytest.mark.parametrize(("source", "caller"), PAIRS)
def test_the_faults_of_the_scripted_provider(source, caller):
    for fault, kind in (("cut", "cut"), ("error_event", "failed"), ("garbage", "protocol")):
        script = script_of({"text": "Hello there, you."}, faults=[{"kind": fault}])
        body = {key: value for key, value in REQUESTS[source].items() if key != "tools"}
        path = f"/v1{FORMATS[source].paths['create']}"
        reply = Player(script).play("POST", path, (), encode(body))
        made = translation(source, caller)

        with pytest.raises(UpstreamError) as caught:  # noqa: PT012
            if fault == "garbage":
                made.whole(b"".join(reply.chunks))
            out = b"".join(map(made.feed, reply.chunks))
            check_stream(caller, out, complete=False)
            made.end()
        assert caught.value.kind == kind


# --- what each format says -----------------------------------------------------------------------


@pytest.mark.parametrize("source", FORMATS)
def test_chat_says_it_all(source):
    events, whole = source_of(source, ANSWERS["thoughts, text, calls"], caller=CHAT)
    answer = json.loads(translation(source, CHAT).whole(whole))
    chunks = [data for _, data in told(streamed(source, CHAT, *events))]

    assert answer["object"] == "chat.completion"
    assert answer["id"].startswith("chatcmpl-")
    assert answer["choices"][0]["finish_reason"] == "tool_calls"
    message = answer["choices"][0]["message"]
    assert message["content"] == "I will look."
    assert message["reasoning_content"] == "First look.\n\nThen think."
    assert [each["function"]["name"] for each in message["tool_calls"]] == ["read", "noop"]
    assert [each["id"] for each in message["tool_calls"]] == ["call_1", "call_2"]
    assert [json.loads(each["function"]["arguments"]) for each in message["tool_calls"]] == [
        {"path": "a.py", "line": 1}, {},
    ]  # fmt: skip
    usage = answer["usage"]
    assert (usage["prompt_tokens"], usage["completion_tokens"]) == (100, 20)
    assert usage["prompt_tokens_details"]["cached_tokens"] == 60
    assert chunks[-2]["choices"] == []
    assert chunks[-2]["usage"] == usage
    assert all(chunk["usage"] is None for chunk in chunks[:-2])


@pytest.mark.parametrize("source", FORMATS)
def test_responses_says_it_all(source):
    events, whole = source_of(source, ANSWERS["thoughts, text, calls"], caller=RESPONSES)
    answer = json.loads(translation(source, RESPONSES).whole(whole))
    first = told(streamed(source, RESPONSES, *events))[0][1]["response"]

    assert answer["id"].startswith("resp_")
    assert answer["status"] == "completed"
    assert answer["model"] == first["model"] == "wise"
    assert answer["instructions"] == first["instructions"] == "be kind"
    assert answer["metadata"] == {"a": "b"}
    assert answer["store"] is False
    assert answer["tools"] == REQUESTS[RESPONSES]["tools"]
    assert [item["type"] for item in answer["output"]] == [
        "reasoning", "message", "function_call", "function_call",
    ]  # fmt: skip
    assert len({item["id"] for item in answer["output"]}) == 4
    thought = answer["output"][0]
    assert thought["summary"] == [{"type": "summary_text", "text": "First look.\n\nThen think."}]
    assert "encrypted_content" not in thought
    assert answer["usage"]["input_tokens"] == 100
    assert answer["usage"]["input_tokens_details"]["cached_tokens"] == 60
    assert answer["usage"]["total_tokens"] == 120


@pytest.mark.parametrize("source", FORMATS)
def test_messages_says_it_all(source):
    events, whole = source_of(source, ANSWERS["thoughts, text, calls"], caller=MESSAGES)
    answer = json.loads(translation(source, MESSAGES).whole(whole))
    objects = [data for _, data in told(streamed(source, MESSAGES, *events))]

    assert answer["id"].startswith("msg_")
    assert answer["stop_reason"] == "tool_use"
    assert [block["type"] for block in answer["content"]] == [
        "thinking", "text", "tool_use", "tool_use",
    ]  # fmt: skip
    # A signature is the provider's: nobody makes one up.
    assert answer["content"][0]["signature"] == ""
    assert [block["id"] for block in answer["content"][2:]] == ["toolu_1", "toolu_2"]
    assert [block["input"] for block in answer["content"][2:]] == [{"path": "a.py", "line": 1}, {}]
    usage = answer["usage"]
    told_usage = (usage["input_tokens"], usage["cache_read_input_tokens"], usage["output_tokens"])
    written = usage["cache_creation_input_tokens"]
    assert told_usage == (40 - written, 60, 20)
    assert objects[-2]["usage"] == usage


def test_every_count_of_tokens_is_kept_where_the_formats_have_it():
    missed = []
    for source, caller in PAIRS:
        events, whole = source_of(source, Said((text("x"),)), caller=caller)
        once, again = translation(source, caller), translation(source, caller)
        sent = b"".join([*map(again.feed, events), again.end()])
        answer = json.loads(once.whole(whole))
        read = FORMATS[caller].usage(answer["usage"])
        if not (once.usage == again.usage == read):
            missed.append((source, caller, once.usage, read))
        assert sent
        assert once.usage is not None
        assert (once.usage.input_tokens, once.usage.cached_tokens) == (100, 60)

    assert missed == []


def test_words_for_the_end():
    words = {
        "stop": ("stop", "completed", "end_turn"),
        "length": ("length", "max_output_tokens", "max_tokens"),
        "filter": ("content_filter", "content_filter", "refusal"),
        "refusal": ("content_filter", "content_filter", "refusal"),
        "pause": ("stop", "completed", "pause_turn"),
    }
    missed = []
    for source, caller in PAIRS:
        for stop, expected in words.items():
            if stop in ("refusal", "pause") and source != MESSAGES:
                continue
            _, whole = source_of(source, Said((text("x"),), stop), caller=caller)
            answer = json.loads(translation(source, caller).whole(whole))
            found = {
                CHAT: lambda a: a["choices"][0]["finish_reason"],
                RESPONSES: lambda a: (a["incomplete_details"] or {}).get("reason", a["status"]),
                MESSAGES: lambda a: a["stop_reason"],
            }[caller](answer)
            if found != expected[list(FORMATS).index(caller)]:
                missed.append((source, caller, stop, found))

    assert missed == []


def test_a_refusal_is_told_as_the_format_does_it():
    said = Said(((AnswerPart(kind="refusal"), "I must not."),))
    for source in (CHAT, RESPONSES):
        answers = {
            caller: json.loads(
                translation(source, caller).whole(source_of(source, said, caller=caller)[1])
            )
            for caller in FORMATS
        }

        assert answers[CHAT]["choices"][0]["message"]["refusal"] == "I must not."
        assert answers[CHAT]["choices"][0]["message"]["content"] is None
        part = answers[RESPONSES]["output"][0]["content"][0]
        assert part == {"type": "refusal", "refusal": "I must not."}
        assert answers[MESSAGES]["content"] == [{"type": "text", "text": "I must not."}]
        assert answers[MESSAGES]["stop_reason"] == "refusal"


def test_free_text_is_told_as_the_caller_declared_the_tool():
    for source in FORMATS:
        _, whole = source_of(source, ANSWERS["free text"], caller=RESPONSES)
        item = json.loads(translation(source, RESPONSES).whole(whole))["output"][0]

        assert (item["type"], item["name"], item["input"]) == (
            "custom_tool_call", "apply_patch", PATCH,
        )  # fmt: skip
    tools = [{"type": "custom", "custom": {"name": "apply_patch"}}]
    request = {**REQUESTS[CHAT], "tools": tools}
    for source in (RESPONSES, MESSAGES):
        events, whole = source_of(source, ANSWERS["free text"], caller=CHAT)
        answer = json.loads(translation(source, CHAT, request).whole(whole))
        sent = streamed(source, CHAT, *events, request=request)
        deltas = [data["choices"][0]["delta"] for _, data in told(sent)[:-1] if data["choices"]]
        pieces = [each for delta in deltas for each in delta.get("tool_calls", ())]

        assert answer["choices"][0]["message"]["tool_calls"] == [
            {"id": "call_1", "type": "custom", "custom": {"name": "apply_patch", "input": PATCH}}
        ]
        assert "".join(each["custom"]["input"] for each in pieces) == PATCH
    for caller in (CHAT, MESSAGES):
        _, whole = source_of(RESPONSES, ANSWERS["free text"], caller=caller)
        found = json.loads(translation(RESPONSES, caller).whole(whole))
        made = (
            json.loads(found["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"])
            if caller == CHAT
            else found["content"][0]["input"]
        )

        assert made == {"input": PATCH}


def test_names_come_back_with_their_namespace():
    for source in FORMATS:
        said = Said(
            (call("read", namespace="ns"), call("x" * 90, made="b"), call("a.b", made="c")), "calls"
        )
        _, whole = source_of(source, said, caller=RESPONSES)
        items = json.loads(translation(source, RESPONSES).whole(whole))["output"]

        assert [(item.get("namespace"), item["name"]) for item in items] == [
            ("ns", "read"), (None, "x" * 90), (None, "a.b"),
        ]  # fmt: skip


def test_ids_and_models():
    _, whole = source_of(CHAT, ANSWERS["one id"], caller=MESSAGES)
    asked = json.loads(translation(CHAT, MESSAGES).whole(whole))
    own = json.loads(translation(CHAT, MESSAGES, answer_model="provider").whole(whole))
    nameless = json.loads(
        translation(CHAT, MESSAGES).whole(
            b'{"choices":[{"index":0,"message":{"role":"assistant","tool_calls":[{"type":"function"'
            b',"id":"","function":{"name":"read","arguments":""}}]}}]}'
        )
    )

    assert (asked["model"], own["model"], nameless["model"]) == ("wise", "deep", "wise")
    ids = [block["id"] for block in asked["content"]]
    assert len(set(ids)) == 2
    assert ids == [block["id"] for block in own["content"]]
    assert asked["id"] == own["id"]
    assert nameless["id"].startswith("msg_")
    assert nameless["content"][0]["id"] == "toolu_new1"
    assert nameless["content"][0]["input"] == {}


# --- parts ---------------------------------------------------------------------------------------

_OPEN = b"event: content_block_start\ndata: "
_DELTA = b"event: content_block_delta\ndata: "


def block_events(*told: tuple[str, int, str]) -> list[bytes]:
    """Return events of blocks as no server sends them: several open at the same time."""
    made = []
    for kind, index, words in told:
        block = {"type": "tool_use", "id": f"t{index}", "name": "read", "input": {}}
        if words.startswith("text:"):
            block = {"type": "text", "text": ""}
        if kind == "open":
            data: dict[str, Any] = {"type": "content_block_start", "content_block": block}
        elif kind == "close":
            data = {"type": "content_block_stop"}
        else:
            key = "text" if kind == "say" else "partial_json"
            data = {"type": "content_block_delta", "delta": {key: words}}
        data["index"] = index
        made.append(f"event: {data['type']}\ndata: {json.dumps(data)}\n\n".encode())
    return made


_START = (
    b'event: message_start\ndata: {"type":"message_start","message":{"id":"msg_1","model":"m"}}\n\n'
)
_STOP = (
    b'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"tool_use"}}\n\n'
    b'event: message_stop\ndata: {"type":"message_stop"}\n\n'
)


@pytest.mark.parametrize("caller", FORMATS)
def test_parts_that_are_open_together_are_told_in_turn(caller):
    events = block_events(
        ("open", 0, "text:"), ("open", 1, "call"), ("open", 2, "call"), ("open", 3, "call"),
        ("add", 2, '{"b":'), ("say", 0, "Hi"), ("add", 1, '{"a":'), ("close", 2, ""),
        ("add", 1, "1}"), ("say", 0, "!"), ("close", 0, ""), ("add", 3, '{"c":3}'),
        ("close", 1, ""), ("close", 3, ""),
    )  # fmt: skip
    events[7:8] = [*block_events(("add", 2, "2}")), events[7]]

    made = translation(MESSAGES, caller)
    made.feed(_START)
    sent = [made.feed(event) for event in events]
    rest = made.feed(_STOP) + made.end()

    stream = streamed(MESSAGES, caller, _START, *events, _STOP)
    check_stream(caller, stream)
    # The first call passes at once, since the text says nothing by then; the others wait.
    assert b"read" in sent[1]
    assert not any(sent[2:5])
    assert b'{\\"a\\":' in sent[6]
    assert rest
    found = accumulated(caller, stream)
    arguments = {
        CHAT: lambda a: [
            json.loads(each["function"]["arguments"])
            for each in a["choices"][0]["message"]["tool_calls"]
        ],
        RESPONSES: lambda a: [
            json.loads(item["arguments"]) for item in a["output"] if "arguments" in item
        ],
        MESSAGES: lambda a: [block["input"] for block in a["content"] if "input" in block],
    }[caller](found)
    assert arguments == [{"a": 1}, {"b": 2}, {"c": 3}]
    assert "Hi!" in json.dumps(found)


@pytest.mark.parametrize("caller", FORMATS)
def test_what_says_nothing_is_not_told(caller):
    events = block_events(
        ("open", 0, "text:"), ("say", 0, "\n"), ("say", 0, " "), ("close", 0, ""),
        ("open", 1, "call"), ("close", 1, ""),
        ("open", 2, "text:"), ("say", 2, "\n\n"), ("say", 2, "x"), ("close", 2, ""),
    )  # fmt: skip
    found = accumulated(caller, streamed(MESSAGES, caller, _START, *events, _STOP))

    if caller == MESSAGES:
        assert [block["type"] for block in found["content"]] == ["tool_use", "text"]
        assert found["content"][0]["input"] == {}
        assert found["content"][1]["text"] == "\n\nx"
    elif caller == RESPONSES:
        assert [item["type"] for item in found["output"]] == ["function_call", "message"]
        assert found["output"][0]["arguments"] == "{}"
    else:
        message = found["choices"][0]["message"]
        assert message["content"] == "\n\nx"
        assert message["tool_calls"][0]["function"]["arguments"] == "{}"


def test_pieces_pass_with_their_event():
    """No event waits for a later one: a client sees each word when the provider writes it."""
    late = []
    for source, caller in PAIRS:
        events, _ = source_of(source, Said((text("abcdefghi"), call("read", "{}"))), caller=caller)
        made = translation(source, caller)
        sent = [made.feed(event) for event in events]
        for piece in (b"abc", b"def", b"ghi"):
            at = next(i for i, event in enumerate(events) if b'"' + piece + b'"' in event)
            if b'"' + piece + b'"' not in sent[at]:
                late.append((source, caller, piece))

    assert late == []


def test_pings_and_comments_pass_as_the_format_has_them():
    ping = b'event: ping\ndata: {"type": "ping"}\n\n'
    for caller in FORMATS:
        made = translation(MESSAGES, caller)
        before, head = made.feed(b": hold on\n\n"), made.feed(_START)
        within, comment = made.feed(ping), made.feed(b": hold on\n\n")
        end = made.feed(_STOP) + made.end()

        assert before == b": ping\n\n"
        expected = b'event: ping\ndata: {"type":"ping"}\n\n'
        assert within == comment == (expected if caller == MESSAGES else b": ping\n\n")
        assert made.feed(ping) + made.feed(b": x\n\n") == b""
        check_stream(caller, head + within + end)


def test_the_arguments_of_a_forced_tool_are_the_text_of_the_answer():
    said = Said((text("Here:"), call("answer", '{"n":1}')), "calls")
    for source, caller in PAIRS:
        events, whole = source_of(source, said, caller=caller)
        sent = streamed(source, caller, *events, forced_schema="answer")
        answer = json.loads(translation(source, caller, forced_schema="answer").whole(whole))

        check_stream(caller, sent)
        words = {
            CHAT: lambda a: a["choices"][0]["message"]["content"],
            RESPONSES: lambda a: a["output"][0]["content"][0]["text"],
            MESSAGES: lambda a: a["content"][0]["text"],
        }[caller]
        assert words(answer) == words(accumulated(caller, sent)) == '{"n":1}'
        assert "tool" not in json.dumps(answer.get("stop_reason") or answer.get("choices"))
        _, plain = source_of(source, Said((text("No."),)), caller=caller)
        plain_answer = translation(source, caller, forced_schema="answer").whole(plain)
        assert words(json.loads(plain_answer)) == "No."


def test_a_tool_of_messages_gets_an_object_whatever_the_model_wrote():
    for words, expected in (
        ("", {}),
        ("null", {}),
        ("ls", {"_raw": "ls"}),
        ("[1]", {"_raw": "[1]"}),
    ):
        events, whole = source_of(CHAT, Said((call("read", words),), "calls"), caller=MESSAGES)
        found = accumulated(MESSAGES, streamed(CHAT, MESSAGES, *events))
        answer = json.loads(translation(CHAT, MESSAGES).whole(whole))

        assert found["content"][0]["input"] == answer["content"][0]["input"] == expected


def test_usage_of_a_chat_stream_is_told_on_demand():
    request = {key: value for key, value in REQUESTS[CHAT].items() if key != "stream_options"}
    for source in FORMATS:
        events, _ = source_of(source, Said((text("x"),)), caller=CHAT)
        sent = streamed(source, CHAT, *events, request=request)

        check_stream(CHAT, sent)
        assert b"usage" not in sent


# --- the writers' two ways -----------------------------------------------------------------------


@given(
    st.sampled_from(list(FORMATS)),
    st.sampled_from(["text", "reasoning", "refusal", "call"]),
    st.lists(st.text(st.characters(), min_size=1, max_size=20), min_size=1, max_size=4),
    st.text(max_size=9),
)
def test_pieces_are_written_as_texts_are(name, kind, texts, odd):
    frame = Frame(model=f'm%b%d"{odd}', id="resp_<a piece of text>", created_s=1, request={})
    slow, fast = (FORMATS[name].writer(frame) for _ in range(2))
    for part in (AnswerPart(kind="text"), AnswerPart(kind=kind, id="i%d", name=odd)):
        begun = [stream_bytes(writer.open(part)) for writer in (slow, fast)]
        assert begun[0] == begun[1]
        for words in texts:
            expected = [data for _, data in told(stream_bytes(slow.more(words)))]
            found = fast.piece(
                json.dumps(words, ensure_ascii=False).encode("utf-8", "backslashreplace")
            )
            assert [data for _, data in told(found)] == expected
            assert len(found.decode().splitlines()) == found.count(b"\n")
            assert not fast.is_empty
        ended = [told(stream_bytes(writer.close())) for writer in (slow, fast)]
        assert ended[0] == ended[1]
    usage = ModelUsage(output_tokens=1)
    assert told(stream_bytes(slow.end(usage, {}))) == told(stream_bytes(fast.end(usage, {})))


# --- what goes wrong -----------------------------------------------------------------------------

ENDS = (b"[DONE]", b"message_stop", b"response.completed", b"response.incomplete")


def failing(source: str, caller: str, *chunks: bytes) -> tuple[bytes, UpstreamError]:
    """Return what is sent before a stream fails, and why."""
    made, sent = translation(source, caller), b""
    try:
        for chunk in chunks:
            sent += made.feed(chunk)
        sent += made.end()
        made.check()
    except UpstreamError as error:
        return sent, error
    pytest.fail("it did not fail")


@pytest.mark.parametrize(("source", "caller"), PAIRS)
def test_a_cut_stream_has_no_end(source, caller):
    events, _ = source_of(source, ANSWERS["thoughts, text, calls"], caller=caller)
    # What Chat and Messages say last is their mark alone.
    complete = {CHAT: 2, RESPONSES: 1, MESSAGES: 1}[source]
    for count in range(len(events) - complete):
        sent, error = failing(source, caller, *events[:count])

        assert error.kind == "cut"
        assert error.status == 502
        assert not any(end in sent for end in ENDS)
        check_stream(caller, sent, complete=False)


@pytest.mark.parametrize(("source", "caller"), PAIRS)
def test_a_provider_that_fails_within_its_stream(source, caller):
    events, _ = source_of(source, ANSWERS["text"], caller=caller)
    wire_format = FORMATS[source]
    told_error = wire_format.provider_error_event(529, "Overloaded", 3)
    made = translation(source, caller)
    sent = b"".join(map(made.feed, events[:4]))

    with pytest.raises(UpstreamError, match="Overloaded") as caught:
        made.feed(stream_bytes([told_error]))

    assert caught.value.kind == "failed"
    assert "the provider reports an error" in caught.value.message
    check_stream(caller, sent, complete=False)


def with_choice(**error: Any) -> bytes:
    """Return the last chunk of OpenRouter: a word more, and why there is no other."""
    made = chunk("error", content="!")
    made["choices"][0] |= error
    return sent(made)


#: How streams end in an error: the bytes, the kind, and what is said.
FAULTS: dict[str, tuple[bytes, str, str]] = {
    "an error": (sent({"error": {"message": "boom", "code": "x_1"}}), "failed", "(x_1): boom"),
    "no JSON": (sent("{"), "protocol", "not an answer"),
    "half an event": (b"data: {", "cut", "not an answer"),
    "nothing": (b"", "cut", "before its answer"),
}
#: The same in a chunk that says something, too.
CHAT_FAULTS: dict[str, tuple[bytes, str, str]] = {
    "beside the choices": (
        sent({**chunk("error", content="!"), "error": {"message": "boom", "code": 502}}),
        "failed", "(502): boom",
    ),
    "in the choice": (
        with_choice(error={"message": "boom", "code": "x_1"}), "failed", "(x_1): boom",
    ),
    "a word for the end": (with_choice(), "failed", "the answer failed"),
    "no blank line behind the last words": (sent(chunk(content="!"))[:-2], "cut", "before its"),
}  # fmt: skip


@given(st.sampled_from(PAIRS), st.sampled_from(list(FAULTS)), st.data())
def test_what_was_said_before_an_error_is_sent_whatever_the_borders_are(pair, fault, data):
    events, _ = source_of(pair[0], ANSWERS["thoughts, text, calls"], caller=pair[1])
    # Without what tells that the answer is complete, and the usage behind it.
    said = events[: data.draw(st.integers(1, len(events) - 4))]
    stream = b"".join(said) + FAULTS[fault][0]
    cuts = sorted(data.draw(st.sets(st.integers(1, len(stream) - 1), max_size=20)))
    chunks = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    apart = [bytes([byte]) for byte in stream]

    told = [failing(*pair, *each) for each in (chunks, apart, [stream])]

    assert told[0][0] == told[1][0] == told[2][0]
    assert {(error.kind, error.message) for _, error in told} == {(
        FAULTS[fault][1], told[0][1].message,
    )}  # fmt: skip
    assert FAULTS[fault][2] in told[0][1].message


@pytest.mark.parametrize("caller", FORMATS)
def test_words_in_the_chunk_of_an_error_are_sent_before_it(caller):
    missed = []
    for case, (last, kind, words) in CHAT_FAULTS.items():
        out, error = failing(CHAT, caller, sent(chunk(content="Half")) + last)
        check_stream(caller, out, complete=False)
        if b"Half" not in out or b'"!"' not in out or error.kind != kind:
            missed.append((case, out, error))
        elif words not in error.message:
            missed.append((case, error.message))

    assert missed == []


def test_nothing_follows_an_error():
    made = translation(CHAT, MESSAGES)
    assert made.feed(sent(chunk(content="Hi"), {"error": "boom"}, chunk(content="no")))

    for call_again in (made.check, made.end, lambda: made.feed(sent(chunk(content="no")))):
        with pytest.raises(UpstreamError, match="boom"):
            call_again()


@pytest.mark.parametrize(("source", "caller"), PAIRS)
def test_garbage_is_no_answer(source, caller):
    events, whole = source_of(source, ANSWERS["text"], caller=caller)
    for garbage in (b"data: <html>\n\n", b"data: {\n\n", b"data: [1]\n\n", b"data: {]}\n\n"):
        sent, error = failing(source, caller, *events[:3], garbage)

        assert error.kind == "protocol", garbage
        assert len(error.message) < 500
        assert not any(end in sent for end in ENDS)
    for body in (b"<html>", b"", b"[]", b"{}", whole[:-9]):
        with pytest.raises(UpstreamError):
            translation(source, caller).whole(body)


@pytest.mark.parametrize(("source", "caller"), ACROSS)
def test_an_error_answer_in_the_format_of_the_caller(source, caller):
    body = encode(FORMATS[source].provider_error(429, "Slow down.", "req_1"))

    told_error = json.loads(translation(source, caller).error(429, body, "req_2"))

    assert told_error["error"]["message"].startswith("Slow down.")
    assert told_error["error"]["type"] == "rate_limit_error"
    if caller == MESSAGES:
        assert told_error["type"] == "error"
        assert told_error["request_id"] == "req_2"
    else:
        assert set(told_error["error"]) == {"message", "type", "param", "code"}


def test_errors_of_odd_shapes():
    cases = {
        b'{"error":{"message":"m","type":"t_x","param":"p","code":"c"}}': ("m", "t_x", "p", "c"),
        b'{"error":"m"}': ("m", "", None, None),
        b'{"detail":"m"}': ("m", "", None, None),
        b'{"object":"error","message":"m","code":400}': ("m", "", None, None),
        b'[{"error":{"code":400,"message":"m","status":"INVALID"}}]': ("m", "", None, None),
        b"plain words": ("plain words", "", None, None),
        b"<html>x</html>": ("the provider reports an error without a message", "", None, None),
        b"": ("the provider reports an error without a message", "", None, None),
        b"null": ("the provider reports an error without a message", "", None, None),
    }
    missed = []
    for body, (message, kind, param, code) in cases.items():
        error = json.loads(translation(MESSAGES, CHAT).error(400, body, "r"))["error"]
        expected = {"message": message, "type": kind or "invalid_request_error"}
        if error != {**expected, "param": param, "code": code}:
            missed.append((body, error))
    to_messages = json.loads(
        translation(CHAT, MESSAGES).error(
            400,
            b'{"error":{"message":"Too long","type":"t","code":"odd_code"}}',
            "r",
        )
    )

    assert missed == []
    assert to_messages["error"] == {
        "type": "invalid_request_error",
        "message": "Too long (odd_code)",
    }


def test_counts_of_tokens():
    for source, caller in ((RESPONSES, MESSAGES), (MESSAGES, RESPONSES)):
        body = encode(FORMATS[source].token_count(7))

        assert json.loads(translation(source, caller).tokens(body)) == FORMATS[caller].token_count(
            7
        )
        with pytest.raises(UpstreamError):
            translation(source, caller).tokens(b"<html>")
        with pytest.raises(UpstreamError):
            translation(source, caller).tokens(b"{}")


# --- what it takes -------------------------------------------------------------------------------


def test_the_tools_of_a_request_are_read_without_its_history():
    later = {
        "type": "additional_tools",
        "role": "developer",
        "tools": [{"type": "function", "name": "late", "parameters": {}}],
    }
    requests = [
        *REQUESTS.items(),
        (RESPONSES, {**REQUESTS[RESPONSES], "input": [{"role": "user", "content": "x"}, later]}),
        (CHAT, {"model": "m", "messages": []}),
        (MESSAGES, {"model": "m", "messages": [], "tools": None}),
    ]
    for name, request in requests:
        body = ObjectText(encode(request))

        assert FORMATS[name].asked_tools(body) == FORMATS[name].neutral(body).tools


@pytest.mark.parametrize(("source", "caller"), ACROSS)
def test_a_stream_is_not_kept(source, caller):
    events, _ = source_of(source, Said((text("x" * 3000),)), caller=caller)
    at = next(index for index, event in enumerate(events) if b"xxx" in event)
    more = events[at].replace(b"xxx", b"x" * 10_000)
    made = translation(source, caller)
    for event in events[: at + 1]:
        made.feed(event)

    tracemalloc.start()
    for _ in range(300):
        made.feed(more)
    kept = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()

    # Responses repeats the text at the end: it is kept, once.
    text_size = 3_000_000
    assert kept < (1.1 * text_size if caller == RESPONSES else 100_000)
