"""Canned replies for routers that ask, and what a harness tells of an answer."""

from __future__ import annotations

import asyncio
import contextlib
import json

import pytest

from switchyard_core import (
    DecisionWarning,
    Failure,
    RefusedError,
    Request,
    RequestError,
    Transcript,
    UpstreamError,
)
from switchyard_core.answering import (
    Announced,
    AskError,
    Extension,
    Finished,
    ModelCall,
    ModelReply,
    ModelUsage,
    RequestedCall,
    SectionFinished,
    SectionStarted,
    TextDelta,
    ToolOutput,
    Usage,
)
from switchyard_core.testing import FakeReply, Harness, conversation
from switchyard_core.testing.answers import streamed_text, whole_text
from switchyard_core.wire import WIRE_FORMATS
from tests.testing.conformance.wrong_answers import plugin, right

POLICY = """
schema_version = 1

[llm_clients.provider]
format = "{wire_format}"
base_url = "https://provider.example/v1"
api_key_env = "PROVIDER_KEY"

[targets.strong]
id = "provider/strong"
llm_client = "provider"

[targets.weak]
id = "provider/weak"
llm_client = "provider"

[routes.main]
id = "team/main"
type = "wrong"
strong = "strong"
weak = "weak"
"""
SEARCH = RequestedCall(id="call_1", name="search", arguments='{"query": "a"}')
DOWN = AskError("down", Failure(kind="status", status=503, code="overloaded", body=b""))

each_target = pytest.mark.parametrize("target", WIRE_FORMATS)
each_caller = pytest.mark.parametrize("caller", WIRE_FORMATS)


async def echoes(_router, request, context):
    """Asks both targets in turn, the second with what the first one said."""
    first = await context.ask("strong", ModelCall(text=request.user_message.text, role="first"))
    yield Announced(
        phase="running",
        facts={"answer-id": context.new_id("answer")},
        warnings=(DecisionWarning(code="careful", detail="a warning"),),
    )
    for text in (first.text, (await context.ask("weak", ModelCall(text=first.text))).text):
        yield SectionStarted(kind="echo")
        yield TextDelta(text)
        yield SectionFinished()
    yield Usage(first.usage)
    yield Extension({"first": first.text})
    yield Finished("completed")


def harness(answer=echoes, target="openai_chat", **more):
    return Harness(POLICY.replace("{wire_format}", target), plugins=[plugin(answer)], **more)


def asked(caller="openai_chat", text="hello", **more):
    return conversation(caller).user(text).request("team/main", **more)


@each_caller
@each_target
async def test_answer_has_what_was_said_and_what_was_asked(caller, target):
    reply = ModelReply(text="One", usage=ModelUsage(input_tokens=3, output_tokens=2))
    ready = harness(target=target, answers={"strong": [reply], "weak": "Two"})

    answer = await ready.answer(asked(caller))

    assert answer.text == "One\n\nTwo\n\n"
    assert answer.texts == ("One\n\n", "Two\n\n")
    assert (answer.status, answer.extension) == ("completed", {"first": "One"})
    assert answer.usage == reply.usage
    assert answer.facts == {"answer-id": "answer_000000000000000000000001"}
    assert answer.warnings == ("careful",)
    assert answer.events[-1] == Finished("completed")
    assert [(each.target, each.call.text) for each in answer.calls] == [
        ("strong", "hello"),
        ("weak", "One"),
    ]
    assert [each.reply.text for each in answer.calls] == ["One", "Two"]
    assert answer.asked("weak") == answer.calls[1:]
    assert [each.outgoing.wire_format for each in answer.calls] == [target, target]
    assert answer.bodies == tuple(each.body for each in ready.upstream.requests)
    assert b"provider/weak" in answer.bodies[1]


@each_caller
async def test_answer_reads_the_same_for_every_caller_whole_and_streamed(caller):
    ready = harness(answers={"strong": "Grüße,\n\n  \U0001f642", "weak": "Two"})

    answer = await ready.answer(asked(caller))

    for wire_format in WIRE_FORMATS:
        body = answer.body(wire_format)
        assert body == json.loads(answer.whole(wire_format))
        assert (body["model"], body["switchyard"]) == ("team/main", answer.extension)
        assert whole_text(wire_format, answer.whole(wire_format)) == answer.text
        assert streamed_text(wire_format, answer.stream(wire_format)) == answer.text


async def test_answer_is_the_same_to_the_byte_in_every_run():
    answers = [
        await harness(right, answers=lambda target, _call: f"I am {target}").answer(asked())
        for _ in range(2)
    ]

    assert answers[0].events == answers[1].events
    assert answers[0].bodies == answers[1].bodies
    for wire_format in WIRE_FORMATS:
        assert answers[0].stream(wire_format) == answers[1].stream(wire_format)


@each_caller
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_run_gives_the_answer_as_the_engine_writes_it(caller, stream):
    ready = harness(answers={"strong": "One", "weak": "Two"})

    routed = await ready.run(asked(caller, stream=stream))

    read = streamed_text if stream else whole_text
    assert read(caller, routed.answer) == "One\n\nTwo\n\n"
    assert [sent.target for sent in routed.sent] == ["strong", "weak"]


async def test_replies_are_played_in_order_and_the_last_one_again():
    ready = harness(answers={"strong": ["a", "b"], "weak": "c"})

    texts = [(await ready.answer(asked())).extension["first"] for _ in range(3)]

    assert texts == ["a", "b", "b"]


async def test_target_without_a_reply_fails_the_test_even_if_the_router_hides_it():
    async def hides(_router, _request, context):
        with contextlib.suppress(Exception):
            await context.ask("strong", ModelCall(text="hello"))
        yield Finished("completed")

    message = "asks `strong`, and the test has no reply for it: .* replies for `weak`"
    for answer in (hides, echoes):
        with pytest.raises(AssertionError, match=message):
            await harness(answer, answers={"weak": "c"}).answer(asked())
    with pytest.raises(AssertionError, match="replies for no target"):
        await harness(answers={}).answer(asked())


async def test_reply_that_is_an_error_is_raised_to_the_router():
    with pytest.raises(RequestError, match="down") as caught:
        await harness(answers={"strong": DOWN}).answer(asked())
    assert caught.value.status == 503

    ready = harness(right, answers={"strong": DOWN, "weak": "Two"})
    answer = await ready.answer(asked())

    assert [each.reply is None for each in answer.asked("strong")] == [True]
    assert answer.status == "completed"


async def test_asynchronous_replies_can_be_held_back_and_end_with_the_answer():
    held, ended = asyncio.Event(), asyncio.Event()

    async def reply(_target, _call):
        held.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return "never"

    ready = harness(answers=reply)
    running = asyncio.ensure_future(ready.answer(asked()))
    await held.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    assert ended.is_set()
    assert ready.asked.calls[0].reply is None


@each_target
async def test_canned_reply_can_be_sent_back_in_a_conversation(target):
    seen = []

    async def talks(_router, _request, context):
        talk = Transcript(context.targets["strong"].wire_format)
        talk.user("hello")
        reply = await context.ask("strong", ModelCall(items=talk.items))
        seen.append(reply)
        talk.reply(reply)
        talk.results([ToolOutput(call=SEARCH, text="found")])
        await context.ask("strong", ModelCall(items=talk.items))
        yield Finished("completed")

    reply = ModelReply(text="I look.", calls=(SEARCH,))
    answer = await harness(talks, target, answers={"strong": [reply, "done"]}).answer(asked())

    assert (seen[0].text, seen[0].calls) == ("I look.", (SEARCH,))
    assert seen[0].stop in ("tool_calls", "tool_use", "completed")
    for word in (b"I look.", b"call_1", b"search", b"found"):
        assert word in answer.bodies[1]


@each_target
async def test_without_answers_the_provider_is_called_and_calls_are_kept(target):
    ready = harness(target=target)

    answer = await ready.answer(asked())

    assert answer.text == "ok\n\nok\n\n"
    assert [each.reply.text for each in answer.calls] == ["ok", "ok"]
    assert answer.bodies == tuple(each.body for each in ready.upstream.requests)


async def test_failing_provider_ends_the_answer():
    with pytest.raises(UpstreamError):
        await harness(replies=[UpstreamError("no route to host")]).answer(asked())
    with pytest.raises(RequestError):
        await harness(replies=[FakeReply(status=500)]).answer(asked())


async def test_refusal_is_returned_when_nobody_was_asked():
    async def refuses(_router, _request, context):
        if context.session.identity is not None:
            await context.ask("strong", ModelCall(text="hello"))
        raise RefusedError("no", code="no")
        yield

    ready = harness(refuses, answers={"strong": "x"})

    assert (await ready.refused(asked())).code == "no"
    with pytest.raises(AssertionError, match="something was sent"):
        await ready.refused(asked(session="s"))


async def test_request_to_a_route_that_sends_on_is_told_so():
    import switchyard_demo_routers  # noqa: PLC0415

    text = POLICY.replace("{wire_format}", "openai_chat").partition("[routes")[0]
    route = '[routes.main]\nid = "team/main"\ntype = "noop"\ntarget = "strong"\n'
    ready = Harness(text + route, plugins=[switchyard_demo_routers], answers={})
    body = {"model": "team/main", "messages": [{"role": "user", "content": "hello"}]}

    with pytest.raises(RequestError, match="answers none"):
        await ready.answer(Request(wire_format="openai_chat", body=body, headers={}))
