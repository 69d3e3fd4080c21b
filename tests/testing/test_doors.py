"""The fake provider behind httpx, in both of its forms."""

from __future__ import annotations

import httpx
import pytest
from openai import AsyncOpenAI

from switchyard_core import UpstreamError
from switchyard_core.testing import FakeReply, FakeUpstream


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
