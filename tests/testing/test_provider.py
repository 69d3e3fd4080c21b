"""The provider for tests: what it plays, and how code that makes its own calls reaches it."""

from __future__ import annotations

import json
from dataclasses import replace

import httpx
import pytest
from openai import AsyncOpenAI

from switchyard_core import Outgoing, UpstreamError
from switchyard_core.testing import FakeReply, FakeUpstream
from switchyard_core.wire import WIRE_FORMATS, format_of

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
        FakeReply(status=529, body={"error": {}}),
        FakeReply(chunks=(b"a", b"b")),
        FakeReply(body={}),
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


@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
async def test_text_of_a_reply_is_said_in_the_format_of_the_request(wire_format):
    fake = FakeUpstream(FakeReply(text='{"strong": true}'))

    answer = await fake.send(outgoing(wire_format))

    assert format_of(wire_format).read_reply(await answer.read()).text == '{"strong": true}'


async def test_script_plays_turns_and_faults():
    turns = [{"text": "one"}, {"text": "two"}]
    script = {"turns": turns, "faults": [{"kind": "drop"}, {"kind": "cut"}]}
    fake = FakeUpstream(script={"version": 1, "scripts": [script]})

    with pytest.raises(UpstreamError, match="before it answered"):
        await fake.send(outgoing())
    cut = await fake.send(outgoing())
    with pytest.raises(UpstreamError, match="broke off"):
        await cut.read()
    answer = await fake.send(outgoing())

    assert format_of("openai_chat").read_reply(await answer.read()).text == "one"


def test_script_with_errors_names_them():
    with pytest.raises(ValueError, match="turns"):
        FakeUpstream(script={"version": 1, "scripts": [{"turnz": []}]})


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


async def test_reply_that_before_returns_is_played_in_place_of_the_next():
    async def before(each):
        return FakeReply(status=429) if each.target == "t" and len(fake.requests) == 1 else None

    fake = FakeUpstream(FakeReply(status=201), before=before)

    assert [(await fake.send(outgoing())).status for _ in range(3)] == [429, 201, 200]


@pytest.fixture(params=["transport", "app"])
def open_client(request):
    """Open a client of a provider through one of its doors."""

    def make(fake):
        door = fake.transport()
        if request.param == "app":
            door = httpx.ASGITransport(app=fake.app())
        return httpx.AsyncClient(transport=door, base_url="http://provider.test/v1")

    return make


async def test_request_is_kept_as_it_was_sent(open_client):
    fake = FakeUpstream(FakeReply(status=201, body={"a": 1}))
    async with open_client(fake) as client:
        answer = await client.post(
            "/messages?beta=true", content=b'{"model":"m","stream":true}', headers={"x-a": "1"}
        )

    assert (answer.status_code, answer.content) == (201, b'{"a":1}')
    (sent,) = fake.requests
    assert (sent.wire_format, sent.model, sent.stream) == ("anthropic_messages", "m", True)
    assert (sent.method, sent.path, sent.query) == ("POST", "/v1/messages", "beta=true")
    assert sent.body == b'{"model":"m","stream":true}'
    assert dict(sent.headers)["x-a"] == "1"
    assert not {"host", "content-length"} & {name for name, _ in sent.headers}


@pytest.mark.parametrize("body", [b"", b"[1]", b"no JSON", b'{"model":7}'])
async def test_body_of_any_kind_is_taken(open_client, body):
    fake = FakeUpstream(FakeReply())
    async with open_client(fake) as client:
        await client.post("/elsewhere", content=body)

    assert (fake.requests[0].body, fake.requests[0].model) == (body, "")


async def test_official_client_gets_a_valid_answer_and_a_stream(open_client):
    async with (
        open_client(FakeUpstream()) as http,
        AsyncOpenAI(api_key="k", base_url="http://provider.test/v1", http_client=http) as client,
    ):
        said = [{"role": "user", "content": "hi"}]
        whole = await client.chat.completions.create(model="m", messages=said)
        stream = await client.chat.completions.create(model="m", messages=said, stream=True)
        pieces = [each.choices[0].delta.content or "" async for each in stream if each.choices]

    assert whole.choices[0].message.content == "ok"
    assert "".join(pieces) == "ok"


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (UpstreamError("no route"), httpx.ConnectError),
        (UpstreamError("too slow", kind="timeout"), httpx.ReadTimeout),
    ],
)
async def test_transport_raises_what_httpx_would(error, raised):
    async with httpx.AsyncClient(transport=FakeUpstream(error).transport()) as client:
        with pytest.raises(raised, match=error.message):
            await client.post("http://provider.test/v1/responses", content=b"{}")


async def test_transport_breaks_off_inside_the_answer():
    fake = FakeUpstream(FakeReply(chunks=(b"a", b"b"), cut=True))
    async with httpx.AsyncClient(transport=fake.transport()) as client:
        with pytest.raises(httpx.ReadError, match="broke off"):
            await client.post("http://provider.test/v1/responses", content=b"{}")


async def test_app_raises_to_its_server_what_the_provider_raised():
    app = FakeUpstream(UpstreamError("gone")).app()
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app)) as client:
        with pytest.raises(UpstreamError, match="gone"):
            await client.post("http://provider.test/v1/responses", content=b"{}")


async def test_app_answers_the_start_and_stop_of_a_server():
    sent = []
    messages = iter([{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}])

    async def receive():
        return next(messages)

    async def send(message):
        sent.append(message["type"])

    await FakeUpstream().app()({"type": "lifespan"}, receive, send)

    assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]


async def test_fake_upstream_refuses_as_a_strict_provider_before_the_script():
    fake = FakeUpstream(FakeReply(text="first"), strict="openai")
    wrong = outgoing(body=b'{"model":"m","messages":[]}')

    answers = [await fake.send(each) for each in (wrong, wrong)]

    assert [each.status for each in answers] == [200, 404]
    told = json.loads(await answers[1].read())
    assert told["error"]["code"] == "model_not_found"


async def test_fake_upstream_is_another_strict_provider_for_each_target():
    fake = FakeUpstream(strict={"t": "openai", "u": "mistral"})
    mistral = outgoing(body=b'{"model":"mistral-large","messages":[{"role":"user"}]}')

    statuses = [
        (await fake.send(replace(mistral, target=target))).status for target in ("t", "u", "v")
    ]

    assert statuses == [404, 200, 200]


def test_fake_upstream_names_the_nearest_strict_provider():
    with pytest.raises(ValueError, match="did you mean `anthropic`"):
        FakeUpstream(strict="antropic")
