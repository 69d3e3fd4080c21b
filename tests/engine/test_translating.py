"""Targets of another wire format than the caller's: what is sent, and what the caller gets."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from switchyard_core import Replay, UpstreamError, WireFormat
from switchyard_core.testing import (
    FakeReply,
    FakeUpstream,
    Harness,
    conversation,
)
from switchyard_core.testing.answers import streamed_text, whole_text
from switchyard_core.wire import FORMATS, WIRE_FORMATS, endpoint_of
from switchyard_core.wire.answers import stream_bytes
from switchyard_core.wire.neutral import SCHEMA_TOOL
from tests.support.policies import PLUGINS

CHAT, RESPONSES, MESSAGES = WIRE_FORMATS
PAIRS = [(caller, target) for caller in WIRE_FORMATS for target in WIRE_FORMATS if caller != target]
each_pair = pytest.mark.parametrize(("caller", "target"), PAIRS)
STREAM = (("content-type", "text/event-stream"),)


def policy(target: WireFormat, *, client: str = 'api_key_env = "KEY"', keys: str = "") -> str:
    return f"""
schema_version = 1
[llm_clients.there]
format = "{target}"
base_url = "https://there.test/v1"
max_retries = 0
{client}
[targets.there]
id = "real-model"
llm_client = "there"
{keys}
[routes.main]
id = "main"
type = "passthrough"
targets = ["there"]
"""


def harness(target: WireFormat, *replies: FakeReply | UpstreamError, **settings: Any) -> Harness:
    script = settings.pop("script", None)
    upstream = FakeUpstream(*replies, script=script)
    return Harness(policy(target, **settings), plugins=PLUGINS, upstream=upstream)


def ask(caller: WireFormat, *, stream: bool = False, **more: Any) -> Any:
    story = conversation(caller).system("Be brief.").user("hi").offers("edit_file")
    return story.request("main", stream=stream, **more)


def sent_to(target: WireFormat) -> str:
    return "/v1" + FORMATS[target].paths["create"]


@each_pair
async def test_whole_answer_is_told_in_the_callers_format(caller, target):
    told = await harness(target, FakeReply(text="Hello.")).run(ask(caller))

    assert told.outgoing.path == sent_to(target)
    assert told.outgoing.wire_format == target
    assert told.tree["model"] == "real-model"
    assert whole_text(caller, told.answer) == "Hello."


@each_pair
async def test_stream_is_told_in_the_callers_format(caller, target):
    told = await harness(target, FakeReply(text="Hello.")).run(ask(caller, stream=True))

    assert told.tree["stream"] is True
    assert streamed_text(caller, told.answer) == "Hello."


@each_pair
async def test_caller_gets_what_it_asked_for_whatever_the_provider_sends(caller, target):
    other = harness(target, FakeReply(text="Hello."))
    whole = (await other.run(conversation(target).user("hi").request("main"))).answer
    other = harness(target, FakeReply(text="Hello."))
    stream = (await other.run(conversation(target).user("hi").request("main", stream=True))).answer

    wrong = FakeReply(body=whole)
    assert streamed_text(
        caller, (await harness(target, wrong).run(ask(caller, stream=True))).answer
    )
    wrong = FakeReply(body=stream, headers=STREAM)
    assert whole_text(caller, (await harness(target, wrong).run(ask(caller))).answer) == "Hello."


@each_pair
async def test_usage_and_outcome_are_those_of_the_provider(caller, target):
    for stream in (False, True):
        response = await harness(target).engine.handle(ask(caller, stream=stream))
        await response.read()

        assert response.outcome.ok, stream
        assert response.outcome.usage.output_tokens > 0, stream


@each_pair
async def test_headers_of_the_callers_format_and_its_query_stay_here(caller, target):
    yard = harness(target)
    headers = {
        "x-api-key": "sk-caller",
        "anthropic-beta": "context-1m",
        "anthropic-version": "1999-01-01",
        "openai-beta": "responses=experimental",
        "openai-organization": "org",
        "accept": "application/json",
        "user-agent": "agent/1",
    }
    request = conversation(caller).user("hi").request("main", headers=headers)
    request.query = "beta=true"
    sent = (await yard.run(request)).outgoing
    found = dict(sent.headers)

    assert sent.query == ""
    assert found["accept"] == "application/json"
    assert found["user-agent"].startswith("agent/1 ")
    assert {"anthropic-beta", "openai-beta", "openai-organization"}.isdisjoint(found)
    assert "sk-caller" not in found.values()
    assert found.get("anthropic-version") == FORMATS[target].needed_headers.get("anthropic-version")


@each_pair
async def test_policy_may_send_a_header_on_to_another_format(caller, target):
    yard = harness(target, client='forward_headers = ["openai-organization", "anthropic-beta"]')
    headers = {"openai-organization": "org", "anthropic-beta": "b"}
    sent = (
        await yard.run(conversation(caller).user("hi").request("main", headers=headers))
    ).outgoing

    assert headers.items() <= dict(sent.headers).items()


@each_pair
async def test_forwarded_credential_is_in_the_header_that_the_target_uses(caller, target):
    for given in ({"x-api-key": "sk-1"}, {"authorization": "Bearer sk-1"}):
        yard = harness(target, client="forward_auth = true")
        told = await yard.run(conversation(caller).user("hi").request("main", headers=given))
        credentials = {
            pair for pair in told.outgoing.headers if pair[0] in ("authorization", "x-api-key")
        }

        assert credentials == {FORMATS[target].credential("sk-1")}, given


@each_pair
async def test_request_without_a_credential_to_forward_is_refused(caller, target):
    error = await harness(target, client="forward_auth = true").refused(ask(caller))

    assert (error.status, error.code) == (401, "missing_credential")


@each_pair
async def test_error_keeps_its_status_and_is_in_the_callers_shape(caller, target):
    body = FORMATS[target].provider_error(429, "slow down", "req_1")
    names = ("retry-after", FORMATS[target].request_id_header, "x-ratelimit-remaining-requests")
    headers = tuple(zip(names, ("7", "req_1", "0"), strict=True))
    for stream in (False, True):
        reply = FakeReply(
            status=429, body=body, headers=(*headers, ("content-type", "application/json"))
        )
        response = await harness(target, reply).engine.handle(ask(caller, stream=stream))
        answer, found = json.loads(await response.read()), dict(response.headers)

        assert response.status == 429
        assert answer["error"]["message"].startswith("slow down")
        assert ("type" in answer) is (caller == MESSAGES)
        assert found["retry-after"] == "7"
        assert found["x-ratelimit-remaining-requests"] == "0"
        assert found[FORMATS[caller].request_id_header] == "req_1"
        assert found["content-type"] == "application/json"
        assert not response.outcome.ok


@each_pair
async def test_overload_has_the_status_that_the_caller_knows(caller, target):
    reply = FakeReply(status=FORMATS[target].overloaded, body={"error": {"message": "busy"}})
    response = await harness(target, reply).engine.handle(ask(caller))

    assert response.status == FORMATS[caller].overloaded


#: What clients of each format compact their history on.
TOO_LONG = {
    CHAT: ("code", "context_length_exceeded"),
    RESPONSES: ("code", "context_length_exceeded"),
    MESSAGES: ("message", "prompt is too long"),
}


@each_pair
async def test_request_that_is_too_long_is_told_as_the_callers_clients_know_it(caller, target):
    said = {
        CHAT: {"message": "maximum context length is 8 tokens", "code": "context_length_exceeded"},
        RESPONSES: {"message": "Your input exceeds the context window of this model."},
        MESSAGES: {"type": "invalid_request_error", "message": "prompt is too long: 9 > 8"},
    }[target]
    reply = FakeReply(status=400, body={"type": "error", "error": said})
    response = await harness(target, reply).engine.handle(ask(caller))
    error = json.loads(await response.read())["error"]
    key, words = TOO_LONG[caller]

    assert response.status == 400
    assert words in error[key]
    assert said["message"] in error["message"]


@each_pair
async def test_stream_that_reports_an_error_ends_with_the_callers_own(caller, target):
    event = FORMATS[target].provider_error_event(400, "prompt is too long: 9 > 8", 0)
    yard = harness(target, FakeReply(chunks=(stream_bytes([event]),), headers=STREAM))
    async with yard.client() as client:
        answer = await client.post(
            sent_to(caller),
            content=ask(caller, stream=True).body,
            headers={"content-type": "application/json"},
        )

    assert FORMATS[caller].error_mark.search(b"\n" + answer.content)
    assert b"prompt is too long" in answer.content
    assert b"context_length_exceeded" in answer.content
    assert not FORMATS[caller].end_mark.search(answer.content)


@each_pair
async def test_stream_that_breaks_off_raises_and_nothing_follows(caller, target):
    whole = await harness(target).run(conversation(target).user("hi").request("main", stream=True))
    begun = whole.answer[: len(whole.answer) // 2]
    cases = {
        "broken connection": FakeReply(chunks=(begun,), headers=STREAM, cut=True),
        "no end": FakeReply(chunks=(begun,), headers=STREAM),
    }
    for name, reply in cases.items():
        response = await harness(target, reply).engine.handle(ask(caller, stream=True))
        passed = b""
        with pytest.raises(UpstreamError) as caught:  # noqa: PT012  # the failure is at the end
            async for chunk in response.chunks:
                passed += chunk

        assert caught.value.kind == "cut", name
        assert not FORMATS[caller].end_mark.search(passed), name
        assert not response.outcome.ok, name


@each_pair
async def test_client_of_a_cut_stream_gets_its_own_error_event(caller, target):
    whole = await harness(target).run(conversation(target).user("hi").request("main", stream=True))
    begun = whole.answer[: len(whole.answer) // 2]
    yard = harness(target, FakeReply(chunks=(begun,), headers=STREAM, cut=True))
    async with yard.client() as client:
        answer = await client.post(
            sent_to(caller),
            content=ask(caller, stream=True).body,
            headers={"content-type": "application/json"},
        )

    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert FORMATS[caller].error_mark.search(b"\n" + answer.content)
    assert b"upstream_cut" in answer.content
    assert not FORMATS[caller].end_mark.search(answer.content)


@each_pair
async def test_compressed_answer_is_decoded_and_told_plain(caller, target):
    for stream in (False, True):
        asked = conversation(target).user("hi").request("main", stream=stream)
        sent = gzip.compress((await harness(target).run(asked)).answer)
        kind = STREAM[0] if stream else ("content-type", "application/json")
        reply = FakeReply(
            chunks=(sent[:9], sent[9:]),
            headers=(kind, ("content-encoding", "gzip"), ("content-length", str(len(sent)))),
        )
        response = await harness(target, reply).engine.handle(ask(caller, stream=stream))
        answer, found = await response.read(), dict(response.headers)
        read = streamed_text if stream else whole_text

        assert read(caller, answer) == "ok"
        assert "content-encoding" not in found
        assert found.get("content-length", str(len(answer))) == str(len(answer))
        # The recorded stream of Chat was not asked for its tokens.
        assert stream or response.outcome.usage.output_tokens > 0


@each_pair
async def test_answer_that_nobody_can_read_is_an_error_of_ours(caller, target):
    replies = {
        "garbage": FakeReply(body=b"<html>busy</html>", headers=(("content-type", "text/html"),)),
        "an error with 200": FakeReply(body={"error": {"message": "down", "type": "server_error"}}),
        "unknown encoding": FakeReply(body=b"x", headers=(("content-encoding", "snappy"),)),
    }
    for name, reply in replies.items():
        with pytest.raises(UpstreamError) as caught:
            await harness(target, reply).engine.handle(ask(caller))

        assert caught.value.kind in ("protocol", "failed"), name


# --- endpoints of one format ----------------------------------------------------------------------


async def test_count_is_asked_of_a_target_that_has_a_call_for_it():
    cases = {
        (MESSAGES, RESPONSES): ("count_tokens", "/v1/responses/input_tokens"),
        (RESPONSES, MESSAGES): ("input_tokens", "/v1/messages/count_tokens"),
    }
    for (caller, target), (endpoint, path) in cases.items():
        yard = harness(target, FakeReply(body={"input_tokens": 41}))
        request = conversation(caller).system("s").user("hi").offers("edit").request("main")
        request.endpoint = endpoint
        response = await yard.engine.handle(request)
        (sent,) = yard.upstream.requests

        assert json.loads(await response.read())["input_tokens"] == 41
        assert "x-switchyard-token-count" not in dict(response.headers)
        assert sent.path == path
        assert set(json.loads(sent.body)) <= FORMATS[target].counted_keys


async def test_count_is_estimated_where_the_target_has_no_call_for_it():
    for caller, endpoint in ((MESSAGES, "count_tokens"), (RESPONSES, "input_tokens")):
        yard = harness(CHAT, client='api_key_env = "UNSET"')
        request = conversation(caller).user("hi").request("main")
        request.endpoint = endpoint
        response = await yard.engine.handle(request)

        assert json.loads(await response.read())["input_tokens"] == -(-len(request.body) // 4)
        assert dict(response.headers)["x-switchyard-token-count"] == "estimated"
        assert yard.upstream.requests == []
        assert response.outcome.ok


async def test_compaction_for_a_target_of_another_format_is_refused_before_any_call():
    for target in (CHAT, MESSAGES):
        request = conversation(RESPONSES).user("hi").request("main")
        request.endpoint = "compact"
        error = await harness(target).refused(request)

        assert (error.status, error.code) == (400, "endpoint_not_served")
        assert f"`{target}`" in error.message


def test_every_call_has_a_path_of_its_format():
    assert [endpoint_of("/v1" + path) for each in FORMATS.values() for path in each.paths.values()]


# --- what cannot be translated --------------------------------------------------------------------


async def test_history_that_is_only_named_cannot_be_translated():
    lone = {"type": "function_call_output", "call_id": "c", "output": "x"}
    bodies = {
        "previous_response_id": {"input": "go on", "previous_response_id": "resp_1"},
        "conversation": {"input": "go on", "conversation": "conv_1"},
        "prompt.id": {"input": "go", "prompt": {"id": "pmpt_1"}},
        "input": {"input": [lone]},
        "input[0]": {"input": [{"type": "compaction", "encrypted_content": "x"}]},
    }
    for place, body in bodies.items():
        for target in (CHAT, MESSAGES):
            request = conversation(RESPONSES).user("x").request("main")
            request = type(request)(wire_format=RESPONSES, body={"model": "main", **body})
            error = await harness(target).refused(request)

            assert (error.status, error.code, error.param) == (400, "history_required", place)


async def test_id_goes_where_the_whole_history_is_in_the_body():
    request = (
        conversation(RESPONSES).user("a").says("b").user("c")
        .request("main", previous_response_id="resp_1")
    )  # fmt: skip
    for target in (CHAT, MESSAGES):
        told = await harness(target).run(request)
        (report,) = (each for each in told.reports if each.name == "translate")

        assert b"resp_1" not in told.outgoing.body
        assert any("previous_response_id" in line for line in report.changes)


async def test_rule_for_a_refused_parameter_is_that_of_the_targets_format(caplog):
    caplog.set_level("INFO", "switchyard")
    said = {
        "message": "Unsupported parameter: 'top_p'",
        "param": "top_p",
        "code": "unsupported_parameter",
    }
    yard = harness(RESPONSES, FakeReply(status=400, body={"error": said}))
    async with yard.client() as client:
        request = ask(MESSAGES, top_p=0.5)
        headers = {"content-type": "application/json"}
        await client.post(sent_to(MESSAGES), content=request.body, headers=headers)

    assert any('path = "top_p"' in record.getMessage() for record in caplog.records)


async def test_schema_is_asked_for_by_a_tool_and_answered_as_text():
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "required": ["a"],
        "additionalProperties": False,
    }
    form = {"type": "json_schema", "json_schema": {"name": "verdict", "schema": schema}}
    call = {"name": SCHEMA_TOOL, "arguments": {"a": "b"}}
    script = {"version": 1, "scripts": [{"turns": [{"calls": [call]}]}]}
    for stream in (False, True):
        yard = harness(MESSAGES, keys='structured_output = "forced_tool"', script=script)
        asked = conversation(CHAT).user("hi").request("main", response_format=form, stream=stream)
        told = await yard.run(asked)
        text = streamed_text(CHAT, told.answer) if stream else whole_text(CHAT, told.answer)

        assert told.tree["tools"][0]["name"] == SCHEMA_TOOL
        assert json.loads(text) == {"a": "b"}
        assert b"tool_calls" not in told.answer


async def test_target_may_refuse_what_only_the_callers_provider_can_serve():
    hosted = {"type": "web_search_20250305", "name": "web_search"}
    body = {
        "model": "main",
        "max_tokens": 9,
        "tools": [hosted],
        "messages": [{"role": "user", "content": "x"}],
    }
    request = ask(MESSAGES)
    request = type(request)(wire_format=MESSAGES, body=body)
    dropped = await harness(RESPONSES).run(request)
    error = await harness(RESPONSES, keys='on_untranslatable = "refuse"').refused(request)

    assert b"web_search" not in dropped.outgoing.body
    assert (error.status, error.code) == (400, "untranslatable")
    assert "web_search" in error.message


@each_pair
async def test_ids_have_the_style_that_the_target_demands(caller, target):
    story = (
        conversation(caller).user("go").edits("edit_file", path="a").edits("edit_file", path="b")
    )
    told = await harness(target, keys='tool_id_style = "alphanumeric_9"').run(story.request("main"))
    view = FORMATS[target].read(
        type(ask(caller))(wire_format=target, body=told.outgoing.body).fields
    )

    ids = [call.id for call in view.calls]
    assert len(set(ids)) == 2
    assert all(len(each) == 9 and each.isalnum() for each in ids)
    results = [part.call_id for _, part in view.parts() if hasattr(part, "call_id")]
    assert results == ids


async def test_cache_marks_are_added_where_the_target_says_so():
    request = conversation(RESPONSES).system("s").user("hi").offers("edit").request("main")
    kept = await harness(MESSAGES).run(request)
    added = await harness(MESSAGES, keys='cache_marks = "auto"').run(request)

    assert b"cache_control" not in kept.outgoing.body
    assert 1 <= added.outgoing.body.count(b"cache_control") <= 4


# --- nothing changes where the formats are equal --------------------------------------------------


@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
async def test_request_in_the_targets_format_is_not_translated(wire_format):
    request = ask(wire_format, stream=True)
    told = await harness(wire_format).run(request)

    assert [report.name for report in told.reports] == ["set_model"]
    assert told.outgoing.body == request.body.replace(b'"main"', b'"real-model"')


# --- recordings -----------------------------------------------------------------------------------


@each_pair
async def test_recording_has_the_providers_side_and_serves_the_callers(caller, target, tmp_path):
    for stream in (False, True):
        folder = tmp_path / str(stream)
        asked = ask(caller, stream=stream)
        recorder = Harness(policy(target), plugins=PLUGINS, replay=Replay(folder, "record"))
        live = await recorder.run(asked)
        replay = Replay(folder)
        player = Harness(policy(target, client=""), plugins=PLUGINS, replay=replay)
        played = await player.run(asked)
        (file,) = folder.glob("*.json")
        recorded = json.loads(file.read_text("utf-8"))

        assert played.answer == live.answer
        assert player.upstream.requests == []
        assert replay.unused() == ()
        assert recorded["request"]["path"] == sent_to(target)
        assert recorded["request"]["body"]["model"] == "real-model"
