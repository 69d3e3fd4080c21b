"""Routers that ask a model: what is sent, what comes back, and what may go wrong."""

from __future__ import annotations

import gzip
import json
import zlib

import pytest

from switchyard_core import (
    Decision,
    Options,
    PluginError,
    Reason,
    RouteType,
    TargetName,
    UpstreamError,
    hookimpl,
)
from switchyard_core.answering import AskError, ModelCall, ModelUsage, WouldAsk
from switchyard_core.testing import FakeReply, FakeUpstream, Harness, conversation
from switchyard_core.wire import WIRE_FORMATS
from tests.support.cases import each_of

POLICY = """
schema_version = 1
[llm_clients.p]
format = "{wire_format}"
base_url = "https://example.test"
{auth}
[targets.judge]
id = "small"
llm_client = "p"
extra_body = {{ seed = 7 }}
structured_output = "{structured}"
reasoning_effort = "low"
[targets.strong]
id = "large"
llm_client = "p"
[targets.other]
id = "x"
llm_client = "p"
[routes.r]
id = "r"
type = "judged"
judge = "judge"
strong = "strong"
"""
SCHEMA = {"type": "object", "properties": {"strong": {"type": "boolean"}}, "required": ["strong"]}
CALL = ModelCall(
    text="hard?",
    instructions="Judge.",
    schema=SCHEMA,
    schema_name="verdict",
    max_output_tokens=50,
    temperature=0.0,
)


class JudgedOptions(Options):
    judge: TargetName
    strong: TargetName


class Plugin:
    """A router that asks one call and keeps the reply."""

    def __init__(self, call=CALL, target="judge") -> None:
        self.call, self.target, self.replies = call, target, []

    @hookimpl
    def switchyard_route_types(self):
        plugin = self

        class Router:
            def __init__(self, options) -> None:
                self.options = options

            async def route(self, request, context):
                plugin.replies.append(await context.ask(plugin.target, plugin.call))
                return Decision(target=self.options.strong, reason=Reason(code="judged"))

        kind = RouteType(name="judged", options=JudgedOptions, router=Router, summary="t")
        return [kind]


def answer(wire_format: str, text: str) -> bytes:
    """Return a whole answer of a wire format."""
    bodies = {
        "openai_chat": {
            "choices": [
                {"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
            ],
            "usage": {"prompt_tokens": 3, "completion_tokens": 2},
        },
        "openai_responses": {
            "status": "completed",
            "output": [
                {"type": "reasoning", "id": "r"},
                {"type": "message", "content": [{"type": "output_text", "text": text}]},
            ],
            "usage": {"input_tokens": 3, "output_tokens": 2},
        },
        "anthropic_messages": {
            "content": [{"type": "thinking", "thinking": "x"}, {"type": "text", "text": text}],
            "stop_reason": "end_turn",
            "usage": {"input_tokens": 3, "output_tokens": 2},
        },
    }
    return json.dumps(bodies[wire_format]).encode()


def harness(wire_format, plugin, *replies, auth="", structured="json_schema") -> Harness:
    policy = POLICY.format(wire_format=wire_format, auth=auth, structured=structured)
    return Harness(policy, plugins=[plugin], upstream=FakeUpstream(*replies))


def request(wire_format, **settings):
    return conversation(wire_format).user("hi").request(model="r", **settings)


@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
async def test_router_asks_and_reads_the_reply(wire_format):
    plugin = Plugin()
    reply = FakeReply(body=answer(wire_format, '{"strong":true}'))

    routed = await harness(wire_format, plugin, reply).run(request(wire_format))

    asked, served = routed.sent
    assert (asked.model, served.model) == ("small", "large")
    assert (asked.path, asked.stream) == (served.path, False)
    (said,) = plugin.replies
    assert said.text == '{"strong":true}'
    assert said.usage == ModelUsage(input_tokens=3, output_tokens=2)
    assert said.stop in ("stop", "completed", "end_turn")


@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
async def test_call_is_written_in_the_targets_format_with_its_settings(wire_format):
    reply = FakeReply(body=answer(wire_format, "{}"))

    routed = await harness(wire_format, Plugin(), reply).run(request(wire_format))

    body = json.loads(routed.sent[0].body)
    assert (body["model"], body["seed"], body["temperature"]) == ("small", 7, 0.0)
    if wire_format == "openai_chat":
        assert [message["content"] for message in body["messages"]] == ["Judge.", "hard?"]
        assert body["response_format"]["json_schema"]["schema"] == SCHEMA
        assert (body["max_completion_tokens"], body["reasoning_effort"]) == (50, "low")
    elif wire_format == "openai_responses":
        assert (body["instructions"], body["store"]) == ("Judge.", False)
        assert body["text"]["format"]["name"] == "verdict"
        assert (body["max_output_tokens"], body["reasoning"]) == (50, {"effort": "low"})
    else:
        assert (body["system"], body["max_tokens"]) == ("Judge.", 50)
        assert body["output_config"]["format"] == {"type": "json_schema", "schema": SCHEMA}
        assert body["output_config"]["effort"] == "low"


async def test_callers_headers_do_not_go_along_but_its_credential_does_when_it_is_forwarded():
    plugin = Plugin()
    reply = FakeReply(body=answer("openai_chat", "{}"))
    headers = {"authorization": "Bearer theirs", "x-session-id": "s", "openai-beta": "b"}

    router = harness("openai_chat", plugin, reply, auth="forward_auth = true")
    routed = await router.run(request("openai_chat", headers=headers))

    sent = dict(routed.sent[0].headers)
    assert sent["authorization"] == "Bearer theirs"
    assert "openai-beta" not in sent
    assert "x-session-id" not in sent


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (FakeReply(status=500, body={"error": {"code": "down"}}), "`judge` gave status 500"),
        (FakeReply(body=b"not json"), "not an answer of openai_chat"),
        (FakeReply(body={"choices": []}), "not an answer of openai_chat"),
        (FakeReply(body=b"[]"), "not an answer of openai_chat"),
        (UpstreamError("connection refused"), "asking `judge` failed: connection refused"),
        (FakeReply(chunks=(b"{",), cut=True), "asking `judge` failed"),
    ],
    ids=["status", "no_json", "empty", "array", "transport", "cut"],
)
async def test_no_usable_answer_is_the_providers_failure(reply, message):
    router = harness("openai_chat", Plugin(), reply)

    with pytest.raises(UpstreamError, match=message) as caught:
        await router.run(request("openai_chat"))

    assert isinstance(caught.value.__cause__, AskError)
    assert len(router.upstream.requests) == 1


def encoded(body: bytes, encoding: str, **more) -> FakeReply:
    """Return an answer that says how it is encoded."""
    headers = (("content-type", "application/json"), ("content-encoding", encoding))
    return FakeReply(body=body, headers=headers, **more)


@pytest.mark.parametrize(
    ("encoding", "encode"), [("gzip", gzip.compress), ("deflate", zlib.compress)]
)
@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
async def test_answer_that_is_compressed_though_nobody_asked_is_read(wire_format, encoding, encode):
    plugin = Plugin()
    reply = encoded(encode(answer(wire_format, "{}")), encoding)

    await harness(wire_format, plugin, reply).run(request(wire_format))

    assert [said.text for said in plugin.replies] == ["{}"]


@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
@each_of(
    ("reply", "message"),
    [
        (encoded(b"x", "lz4"), "`judge`: its answer cannot be read: .* `content-encoding: lz4`"),
        (encoded(b"plain", "gzip"), "`judge`: its answer cannot be read: it is not `gzip`"),
        (encoded(gzip.compress(bytes(17 << 20)), "gzip"), "longer than 16777216 bytes"),
        (encoded(b"x", "br", status=503), "gave status 503"),
    ],
)
async def test_answer_that_cannot_be_decoded_is_the_providers_failure(wire_format, reply, message):
    router = harness(wire_format, Plugin(), reply)

    with pytest.raises(UpstreamError, match=message) as caught:
        await router.run(request(wire_format))

    assert isinstance(caught.value.__cause__, AskError)


async def test_report_of_an_error_is_decoded_too():
    body = json.dumps({"error": {"code": "down"}}).encode()
    router = harness("openai_chat", Plugin(), encoded(gzip.compress(body), "gzip", status=500))

    with pytest.raises(UpstreamError) as caught:
        await router.run(request("openai_chat"))

    assert caught.value.__cause__.failure.code == "down"
    assert caught.value.__cause__.failure.body == body


async def test_undeclared_target_is_not_asked():
    router = harness("openai_chat", Plugin(target="other"))

    with pytest.raises(PluginError, match="asked the target `other`, which the route"):
        await router.decide(request("openai_chat"))

    assert router.upstream.requests == []


async def test_explanation_ends_where_the_router_asks_unless_a_reply_is_given():
    plugin = Plugin()
    router = harness("openai_chat", plugin)

    with pytest.raises(WouldAsk) as caught:
        await router.decide(request("openai_chat"), dry_run=True)

    async def canned(target, call):
        return (target, call)

    decision = await router.engine.decide(request("openai_chat"), dry_run=True, ask=canned)

    assert (caught.value.target, caught.value.call) == ("judge", CALL)
    assert (decision.target, plugin.replies) == ("strong", [("judge", CALL)])
    assert router.upstream.requests == []


@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
async def test_tool_calls_refusals_and_items_are_read(wire_format):
    bodies = {
        "openai_chat": {
            "choices": [
                {
                    "finish_reason": "tool_calls",
                    "message": {
                        "content": None,
                        "refusal": "no",
                        "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": "{}"}}],
                    },
                }
            ]
        },
        "openai_responses": {
            "status": "incomplete",
            "incomplete_details": {"reason": "max_output_tokens"},
            "output": [
                {"type": "message", "content": [{"type": "refusal", "refusal": "no"}]},
                {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
            ],
        },
        "anthropic_messages": {
            "stop_reason": "refusal",
            "content": [
                {"type": "text", "text": "no"},
                {"type": "tool_use", "id": "c", "name": "f", "input": {}},
            ],
        },
    }
    plugin = Plugin(ModelCall(text="x", tools=({"name": "f"},)))

    await harness(wire_format, plugin, FakeReply(body=bodies[wire_format])).run(
        request(wire_format)
    )

    (said,) = plugin.replies
    assert [(call.id, call.name, call.arguments) for call in said.calls] == [("c", "f", "{}")]
    assert said.refusal == "no"
    assert said.items


@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
async def test_target_with_a_forced_tool_is_made_to_call_it_and_its_arguments_are_the_text(
    wire_format,
):
    calls = {
        "openai_chat": {
            "choices": [
                {
                    "finish_reason": "stop",
                    "message": {
                        "tool_calls": [
                            {
                                "id": "c",
                                "type": "function",
                                "function": {"name": "verdict", "arguments": '{"strong":true}'},
                            }
                        ]
                    },
                }
            ]
        },
        "openai_responses": {
            "output": [
                {
                    "type": "function_call",
                    "call_id": "c",
                    "name": "verdict",
                    "arguments": '{"strong":true}',
                }
            ]
        },
        "anthropic_messages": {
            "content": [
                {"type": "tool_use", "id": "c", "name": "verdict", "input": {"strong": True}}
            ]
        },
    }
    plugin = Plugin()
    router = harness(
        wire_format, plugin, FakeReply(body=calls[wire_format]), structured="forced_tool"
    )

    routed = await router.run(request(wire_format))

    assert "verdict" in json.dumps(json.loads(routed.sent[0].body)["tool_choice"])
    (said,) = plugin.replies
    assert (json.loads(said.text), said.calls) == ({"strong": True}, ())
    view = router.engine.runtimes["r"].targets["judge"]
    assert view.structured_output == "forced_tool"


@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
async def test_target_that_is_told_the_schema_in_words_answers_in_text(wire_format):
    plugin = Plugin()
    reply = FakeReply(body=answer(wire_format, "{}"))

    routed = await harness(wire_format, plugin, reply, structured="prompt").run(
        request(wire_format)
    )

    body = json.loads(routed.sent[0].body)
    assert "Judge." in json.dumps(body)
    assert "JSON schema" in json.dumps(body)
    assert not {"tools", "text", "response_format"} & body.keys()
    assert plugin.replies[0].text == "{}"


async def test_tool_named_like_a_schema_is_a_call_when_no_schema_was_asked_for():
    message = {
        "tool_calls": [{"id": "c", "function": {"name": "answer", "arguments": "{}"}}],
    }
    plugin = Plugin(ModelCall(text="x", tools=({"name": "answer"},)))
    reply = FakeReply(body={"choices": [{"finish_reason": "tool_calls", "message": message}]})

    await harness("openai_chat", plugin, reply, structured="forced_tool").run(
        request("openai_chat")
    )

    assert [call.name for call in plugin.replies[0].calls] == ["answer"]
