"""The provider for tests."""

import json

import pytest

from switchyard_core import WIRE_FORMATS, Outgoing, UpstreamError
from switchyard_core.testing import FakeReply, FakeUpstream

PATHS = {
    "openai_chat": "/v1/chat/completions",
    "openai_responses": "/v1/responses",
    "anthropic_messages": "/v1/messages",
}


def outgoing(wire_format="openai_chat", body=b'{"model":"m","messages":[],"input":[]}'):
    return Outgoing(
        wire_format=wire_format,
        path=PATHS[wire_format],
        headers=(),
        body=body,
        stream=False,
        target="t",
        model="m",
    )


async def test_fake_upstream_keeps_requests_and_plays_replies_in_order():
    fake = FakeUpstream(
        FakeReply(status=529, body={"error": {}}), FakeReply(chunks=(b"a", b"b")), FakeReply()
    )
    sent = [outgoing(), outgoing(), outgoing()]

    answers = [await fake.send(each) for each in sent]

    assert [answer.status for answer in answers] == [529, 200, 200]
    assert [await answer.read() for answer in answers] == [b'{"error":{}}', b"ab", b"{}"]
    assert fake.requests == sent


@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
async def test_fake_upstream_without_replies_gives_a_valid_answer(wire_format):
    answer = await FakeUpstream().send(outgoing(wire_format))

    assert answer.status == 200
    assert "ok" in json.dumps(json.loads(await answer.read()))


async def test_fake_upstream_streams_when_asked_to():
    answer = await FakeUpstream().send(outgoing(body=b'{"model":"m","messages":[],"stream":true}'))

    assert (await answer.read()).endswith(b"data: [DONE]\n\n")


async def test_fake_upstream_raises_an_error_that_it_was_given():
    fake = FakeUpstream(UpstreamError("no route to host"))

    with pytest.raises(UpstreamError, match="no route"):
        await fake.send(outgoing())
    assert len(fake.requests) == 1


async def test_fake_upstream_cuts_after_the_last_piece():
    answer = await FakeUpstream(FakeReply(chunks=(b"a",), cut=True)).send(outgoing())
    chunks = answer.chunks

    assert await anext(chunks) == b"a"
    with pytest.raises(UpstreamError, match="broke off"):
        await anext(chunks)


async def test_fake_upstream_waits_for_before_and_notes_its_end():
    seen = []

    async def before(each):
        seen.append(each.target)

    fake = FakeUpstream(before=before)
    await fake.send(outgoing())
    await fake.aclose()

    assert seen == ["t"]
    assert fake.closed
