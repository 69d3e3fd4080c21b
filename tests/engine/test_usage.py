"""What an answer took reaches the observers of its end, whatever kind of answer it was."""

from __future__ import annotations

import contextlib
import gzip
import json

import pytest

import switchyard_demo_routers
from switchyard_core import (
    Decision,
    Options,
    PluginError,
    Reason,
    Request,
    RequestError,
    RouteType,
    TargetName,
    UpstreamError,
    hookimpl,
)
from switchyard_core.answering import (
    Finished,
    ModelCall,
    ModelUsage,
    SectionFinished,
    SectionStarted,
    TextDelta,
)
from switchyard_core.testing import FakeReply, Harness, conversation
from switchyard_core.wire import WIRE_FORMATS
from tests.support.usage import EXPECTED, USAGE, event, stream

POLICY = """
schema_version = 1
[llm_clients.p]
format = "{wire_format}"
base_url = "https://provider.test/v1"
[targets.a]
id = "model-a"
llm_client = "p"
[targets.b]
id = "model-b"
llm_client = "p"
[routes.plain]
id = "plain"
type = "noop"
target = "a"
[routes.free]
id = "free"
type = "passthrough"
aliases = ["model-a"]
targets = ["a", "b"]
[routes.judged]
id = "judged"
type = "asks_first"
judge = "b"
served = "a"
[routes.spare]
id = "spare"
type = "fallback"
targets = ["b", "a"]
[routes.asks]
id = "asks"
type = "asks"
judge = "b"
served = "a"
"""
JSON = ("content-type", "application/json")
SSE = ("content-type", "text/event-stream")
GZIP = ("content-encoding", "gzip")
#: Beginning of the usage that Messages tells, in the first event of a stream.
BEGUN = ModelUsage(
    input_tokens=100, cached_tokens=70, cache_write_tokens=10, output_tokens=1, reasoning_tokens=5
)
#: What is between the beginning of a stream and its usage.
FILLER = event("x", {"d": "y" * 2000})


class AskingOptions(Options):
    judge: TargetName
    served: TargetName


class AsksFirst:
    """Asks a judge, then sends the request to a target."""

    def __init__(self, options):
        self.options = options

    async def route(self, request, context):
        await context.ask(self.options.judge, ModelCall(text="?"))
        return Decision(target=self.options.served, reason=Reason(code="judged"))


class Asks:
    """Asks one target twice and another one once; the request's text says what goes wrong."""

    def __init__(self, options):
        self.options = options

    async def route(self, request, context):
        return Decision(target=self.options.judge, reason=Reason(code="asks"))

    async def answer(self, request, context):
        for target in (self.options.judge, self.options.served, self.options.judge):
            await context.ask(target, ModelCall(text="?"))
        said = request.user_message.text
        if said == "break early":
            raise RequestError("no", "refused")
        yield SectionStarted(kind="answer")
        yield TextDelta("done")
        if said == "break":
            raise RuntimeError("boom")
        yield SectionFinished()
        yield Finished("completed")


class Plugin:
    def __init__(self):
        self.ended = []

    @hookimpl
    def switchyard_route_types(self):
        told = {"options": AskingOptions, "summary": "asks"}
        return [
            RouteType(name="asks_first", router=AsksFirst, **told),
            RouteType(name="asks", router=Asks, kind="answers", **told),
        ]

    @hookimpl
    def switchyard_request_finished(self, decision, outcome):
        self.ended.append((decision.target, outcome))


def whole(wire_format, *, usage=True):
    """Return a whole answer as the provider writes it."""
    said = {
        "openai_chat": {"choices": [{"message": {"role": "assistant", "content": "ok"}}]},
        "openai_responses": {
            "status": "completed",
            "output": [
                {
                    "type": "message",
                    "role": "assistant",
                    "content": [{"type": "output_text", "text": "ok"}],
                }
            ],
        },
        "anthropic_messages": {"content": [{"type": "text", "text": "ok"}]},
    }[wire_format]
    return json.dumps(said | ({"usage": USAGE[wire_format]} if usage else {})).encode()


def replies(wire_format):
    """Return kinds of answers with the status and usage that are told of them."""
    said, streamed = whole(wire_format), stream(wire_format, FILLER)
    pieces = tuple(streamed[at : at + 500] for at in range(0, len(streamed), 500))
    begun = {"a": BEGUN} if wire_format == "anthropic_messages" else {}
    known = {"a": EXPECTED}
    packed, packed_stream = gzip.compress(said), gzip.compress(streamed)
    return {
        "whole": (FakeReply(body=said, headers=(JSON,)), True, known),
        "whole_without_usage": (
            FakeReply(body=whole(wire_format, usage=False), headers=(JSON,)),
            True,
            {},
        ),
        "stream": (FakeReply(chunks=pieces, headers=(SSE,)), True, known),
        "compressed": (FakeReply(body=packed, headers=(JSON, GZIP)), True, known),
        "compressed_stream": (
            FakeReply(chunks=(packed_stream[:50], packed_stream[50:]), headers=(SSE, GZIP)),
            True,
            known,
        ),
        "unknown_encoding": (
            FakeReply(body=b"xx", headers=(JSON, ("content-encoding", "snappy"))),
            True,
            {},
        ),
        "cut_stream": (FakeReply(chunks=pieces[:3], headers=(SSE,), cut=True), False, begun),
        "stream_without_its_end": (FakeReply(chunks=pieces[:3], headers=(SSE,)), False, begun),
        "refused": (FakeReply(status=400, body={"error": {"message": "no"}}), False, {}),
        "unreachable": (UpstreamError("no route", kind="connect"), False, {}),
    }


def unpacked(body):
    return gzip.decompress(body) if body.startswith(b"\x1f\x8b") else body


def harness(wire_format, plugin, **more):
    policy = POLICY.replace("{wire_format}", wire_format)
    return Harness(policy, plugins=[plugin, switchyard_demo_routers], **more)


def asked(wire_format, model="plain", *, text="hi", streams=False):
    return conversation(wire_format).user(text).request(model, stream=streams)


@pytest.mark.parametrize("door", ["library", "http"])
@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
async def test_usage_of_an_answer_reaches_the_observers_of_its_end(wire_format, door):
    wrong = {}
    for name, (reply, ok, expected) in replies(wire_format).items():
        for model in ("plain", "free"):
            plugin = Plugin()
            bench = harness(wire_format, plugin, replies=[reply], door=door)
            request = asked(wire_format, "model-a" if model == "free" else model)
            try:
                served = await bench.ask(request)
            except UpstreamError:
                served = None
            ((target, outcome),) = plugin.ended
            found = (target, outcome.ok, dict(outcome.usage_by_target))
            total = sum(expected.values(), ModelUsage()) if expected else None
            if found != ("a", ok, expected) or outcome.usage != total:
                wrong[name, model] = found
            if served is not None and isinstance(reply, FakeReply) and not reply.cut:
                # The client's bytes are the provider's.
                same = unpacked(served.answer) == unpacked(b"".join(reply.pieces()))
                wrong |= {} if same else {(name, model): served.answer}
            if door == "http":
                counted = {
                    kind: count
                    for (target, kind), count in bench.app.metrics.tokens.items()
                    if target == "a"
                }
                names = ("input", "cached", "cache_write", "output", "reasoning")
                told = total and {kind: getattr(total, f"{kind}_tokens") for kind in names}
                if counted != (told or {}):
                    wrong[name, model, "metrics"] = counted
    assert wrong == {}


@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
async def test_reader_that_leaves_a_stream_leaves_what_was_told_so_far(wire_format):
    plugin = Plugin()
    streamed = stream(wire_format, FILLER)
    reply = FakeReply(chunks=(streamed[:1500], streamed[1500:]), headers=(SSE,))
    bench = harness(wire_format, plugin, replies=[reply])

    async with await bench.engine.handle(asked(wire_format, streams=True)) as response:
        await anext(response.chunks)

    ((_, outcome),) = plugin.ended
    begun = BEGUN if wire_format == "anthropic_messages" else None
    assert (outcome.ok, outcome.error, outcome.usage) == (False, "closed before its end", begun)


async def test_compaction_counts_and_a_token_count_does_not():
    found = {}
    for endpoint in ("compact", "input_tokens"):
        plugin = Plugin()
        told = (
            {"usage": USAGE["openai_responses"]} if endpoint == "compact" else {"input_tokens": 9}
        )
        bench = harness("openai_responses", plugin, replies=[FakeReply(body=told)], door="http")
        turn = asked("openai_responses")

        await bench.ask(
            Request(wire_format="openai_responses", body=turn.body, headers={}, endpoint=endpoint)
        )

        ((_, outcome),) = plugin.ended
        found[endpoint] = (outcome.usage, bench.app.metrics.tokens["a", "input"])

    assert found == {"compact": (EXPECTED, 100), "input_tokens": (None, 0)}


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "stream"])
async def test_calls_of_a_router_are_part_of_what_an_answer_took(streams):
    found = {}
    for model, text in [
        ("judged", "hi"),
        ("asks", "hi"),
        ("asks", "break"),
        ("asks", "break early"),
    ]:
        plugin = Plugin()
        reply = FakeReply(body=whole("openai_chat"), headers=(JSON,))
        last = FakeReply(chunks=(stream("openai_chat"),), headers=(SSE,)) if streams else reply
        bench = harness(
            "openai_chat", plugin, replies=[reply, last] if model == "judged" else [reply] * 3
        )
        request = asked("openai_chat", model, text=text, streams=streams)
        with contextlib.suppress(PluginError, UpstreamError):
            await bench.ask(request)
        ((_, outcome),) = plugin.ended
        found[model, text] = (outcome.ok, dict(outcome.usage_by_target))

    twice = {"b": EXPECTED + EXPECTED, "a": EXPECTED}
    assert found == {
        ("judged", "hi"): (True, {"b": EXPECTED, "a": EXPECTED}),
        ("asks", "hi"): (True, twice),
        ("asks", "break"): (False, twice),
        ("asks", "break early"): (False, twice),
    }


def failing(wire_format):
    """Return answers of status 200 whose content is a failure, with the usage that they tell."""
    told = {"error": {"message": "no", "type": "server_error"}, "usage": USAGE[wire_format]}
    body = json.dumps(told).encode()
    return {
        "whole": FakeReply(body=body, headers=(JSON,)),
        "compressed": FakeReply(body=gzip.compress(body), headers=(JSON, GZIP)),
    }


@pytest.mark.parametrize("door", ["library", "http"])
@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
async def test_answers_that_nobody_got_are_part_of_what_a_request_took(wire_format, door):
    good, wrong = FakeReply(body=whole(wire_format), headers=(JSON,)), {}
    for name, bad in failing(wire_format).items():
        for model, took in (
            ("spare", {"b": EXPECTED, "a": EXPECTED}),
            ("asks", {"b": EXPECTED}),
        ):
            plugin = Plugin()
            bench = harness(wire_format, plugin, replies=[bad, good], door=door)
            with contextlib.suppress(PluginError, UpstreamError):
                await bench.ask(asked(wire_format, model))
            found = [dict(outcome.usage_by_target) for _, outcome in plugin.ended]
            if found != [took]:
                wrong[name, model] = found
    assert wrong == {}


async def test_begun_stream_that_nobody_got_counts_as_far_as_it_told():
    plugin = Plugin()
    start = stream("anthropic_messages").split(b"\n\n")[0] + b"\n\n"
    failed = start + event("error", {"type": "error", "error": {"message": "no"}})
    good = FakeReply(chunks=(stream("anthropic_messages"),), headers=(SSE,))
    bench = harness(
        "anthropic_messages", plugin, replies=[FakeReply(chunks=(failed,), headers=(SSE,)), good]
    )

    await bench.ask(asked("anthropic_messages", "spare", streams=True))

    ((_, outcome),) = plugin.ended
    assert dict(outcome.usage_by_target) == {"b": BEGUN, "a": EXPECTED}


async def test_calls_of_a_router_count_though_the_target_cannot_be_reached():
    plugin = Plugin()
    judged = FakeReply(body=whole("openai_chat"), headers=(JSON,))
    down = UpstreamError("no route", kind="connect")
    bench = harness("openai_chat", plugin, replies=[judged, down])

    with pytest.raises(UpstreamError):
        await bench.run(asked("openai_chat", "judged"))

    ((_, outcome),) = plugin.ended
    assert (outcome.error, dict(outcome.usage_by_target)) == ("connect", {"b": EXPECTED})


async def test_events_of_an_answering_router_end_with_what_its_calls_took():
    plugin = Plugin()
    bench = harness(
        "openai_chat", plugin, replies=[FakeReply(body=whole("openai_chat"), headers=(JSON,))] * 3
    )

    [_ async for _ in bench.engine.answer(asked("openai_chat", "asks"))]

    ((_, outcome),) = plugin.ended
    assert outcome.usage == EXPECTED + EXPECTED + EXPECTED
