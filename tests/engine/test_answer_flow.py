"""How an answer flows: a section at a time, and what fails late is not to be tried again."""

from __future__ import annotations

import asyncio

import pytest

from switchyard_core import PluginError, RequestError
from switchyard_core.answering import Announced, AskError, Extension, Finished, ModelCall, Progress
from switchyard_core.testing import FakeReply, Harness
from switchyard_core.wire import WIRE_FORMATS
from tests.support.telling import POLICY, Teller, request, section


@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
async def test_router_goes_on_when_its_section_was_taken(wire_format):
    done = []

    async def tell(context):
        for number in range(3):
            for event in section(f"part {number}"):
                yield event
            done.append(number)
        yield Finished("completed")

    harness = Harness(POLICY, plugins=[Teller(tell)])
    async with await harness.engine.handle(request(wire_format, stream=True)) as response:
        chunks = aiter(response.chunks)
        told = b""
        for number in range(3):
            while f"part {number}".encode() not in told:
                told += await anext(chunks)
            # The text is being taken at this moment; what comes after it has not begun.
            assert done == list(range(number))
        told += b"".join([chunk async for chunk in chunks])
    assert done == [0, 1, 2]
    assert all(f"part {number}".encode() in told for number in range(3))


async def test_stream_starts_with_progress_though_no_text_is_there():
    held = asyncio.Event()

    async def tell(context):
        yield Announced(phase="running", facts={"fact": "told"})
        yield Progress({"event": "begun"})
        await held.wait()
        for event in section("at last"):
            yield event
        yield Finished("completed")

    harness = Harness(POLICY, plugins=[Teller(tell)])
    async with await harness.engine.handle(request(stream=True)) as response:
        assert response.decision.phase == "running"
        assert dict(response.headers)["x-switchyard-fact"] == "told"
        chunks = aiter(response.chunks)
        assert b'"event":"begun"' in await anext(chunks)
        held.set()
        assert b"at last" in b"".join([chunk async for chunk in chunks])


async def test_silent_router_is_covered_by_signs_of_life():
    held = asyncio.Event()

    async def tell(context):
        yield Progress({"event": "begun"})
        await held.wait()
        yield Finished("completed")

    policy = POLICY + "keepalive_s = 0.01\n"
    harness = Harness(policy, plugins=[Teller(tell)])
    async with await harness.engine.handle(request(stream=True)) as response:
        chunks = aiter(response.chunks)
        await anext(chunks)
        assert await anext(chunks) == b": ping\n\n"
        held.set()
        assert (await _rest(chunks)).endswith(b"data: [DONE]\n\n")


async def _rest(chunks):
    return b"".join([chunk async for chunk in chunks])


async def _breaks(context):
    for event in section("done and paid for"):
        yield event
    raise RuntimeError


async def _asks(context):
    for event in section("done and paid for"):
        yield event
    await context.ask("one", ModelCall(text="again"))


async def _writes_nonsense(context):
    for event in section("done and paid for"):
        yield event
    yield Extension({"no": object()})


@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
@pytest.mark.parametrize("tell", [_breaks, _asks, _writes_nonsense])
async def test_failure_after_the_first_event_is_final(wire_format, tell):
    harness = Harness(POLICY, plugins=[Teller(tell)], replies=[FakeReply(status=503)], door="http")

    answer = await harness.ask(request(wire_format))

    assert answer.status in (500, 502)
    assert answer.headers["x-should-retry"] == "false"


@pytest.mark.parametrize("stream", [False, True])
async def test_failure_before_the_first_event_may_be_tried_again(stream):
    async def tell(context):
        await context.ask("one", ModelCall(text="first"))
        yield Finished("completed")

    body = {"error": {"message": "later", "code": "overloaded"}}
    replies = [FakeReply(status=503, body=body)]
    harness = Harness(POLICY, plugins=[Teller(tell)], replies=replies, door="http")

    answer = await harness.ask(request(stream=stream))

    assert answer.status == 503
    assert "later" in answer.message
    assert "x-should-retry" not in answer.headers


@pytest.mark.parametrize("stream", [False, True])
async def test_router_that_writes_nonsense_is_named(stream):
    harness = Harness(POLICY, plugins=[Teller(_writes_nonsense)])

    with pytest.raises(PluginError, match=r"told.*makes no answer"):
        async with await harness.engine.handle(request(stream=stream)) as response:
            await response.read()


async def test_failure_is_final_in_a_stream_that_had_announced_something():
    async def tell(context):
        yield Announced(phase="running")
        raise AskError("never", None)

    harness = Harness(POLICY, plugins=[Teller(tell)], door="http")

    answer = await harness.ask(request(stream=True))

    assert answer.headers["x-should-retry"] == "false"


@pytest.mark.parametrize("stream", [False, True])
async def test_refusal_that_says_that_all_is_well_is_the_routers_fault(stream):
    async def tell(context):
        raise RequestError(message="nothing wrong", status=200)
        yield

    harness = Harness(POLICY, plugins=[Teller(tell)])
    with pytest.raises(PluginError, match="status 200") as caught:
        await harness.engine.handle(request("openai_chat", stream=stream))
    assert caught.value.plugin == "Teller"


async def test_router_that_asks_a_target_of_nobody_is_named():
    async def tell(context):
        await context.ask("undeclared", ModelCall(text="hi"))
        yield Finished("completed")

    harness = Harness(POLICY, plugins=[Teller(tell)])
    with pytest.raises(PluginError, match="`undeclared`") as caught:
        await harness.engine.handle(request("openai_chat", stream=False))
    assert caught.value.plugin == "Teller"
