"""The scripted provider over HTTP: records, breaks off, notices who leaves."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from switchyard_core.errors import UpstreamError
from switchyard_core.scripted import Script, ScriptedProviderApp, ScriptedUpstream
from switchyard_core.upstream import HttpUpstream, UpstreamResponse
from tests.upstream.loopback import Provider, outgoing, script_of

pytestmark = pytest.mark.anyio

Provide = Callable[[Script], Provider]


async def test_app_records_what_arrived(provide: Provide) -> None:
    provider = provide(script_of({"text": "hi"}))
    body = b'{ "model": "m", "n": 1.10, "messages": [] }'
    async with httpx.AsyncClient() as client:
        answer = await client.post(
            f"{provider.url}/prefix/v1/chat/completions?beta=true",
            content=body,
            headers={"Authorization": "Bearer k"},
        )

    assert answer.status_code == 200
    (record,) = provider.app.requests
    assert (record.method, record.path, record.query) == (
        "POST", "/prefix/v1/chat/completions", "beta=true",
    )  # fmt: skip
    assert record.body == body
    assert record.json()["n"] == 1.10
    assert record.header("Authorization") == "Bearer k"
    assert record.header("x-none") is None
    assert (record.wire_format, record.model, record.stream) == ("openai_chat", "m", False)
    assert (record.script, record.turn, record.status, record.outcome) == (0, 0, 200, "answered")


async def test_app_sends_the_same_bytes_as_the_upstream(provide: Provide) -> None:
    script = script_of({"text": "some longer text than one piece", "reasoning": "hm"})
    provider = provide(script)
    for path, wire_format in (
        ("/v1/chat/completions", "openai_chat"),
        ("/v1/responses", "openai_responses"),
        ("/v1/messages", "anthropic_messages"),
    ):
        for stream in (False, True):
            body = json.dumps({"model": "m", "stream": stream}).encode()
            asked = outgoing(path, wire_format=wire_format, body=body, stream=stream)
            direct = ScriptedUpstream(script, wire_format, now=time.time)  # type: ignore[arg-type]
            over_http = HttpUpstream(provider.url)
            expected = await _parsed(await direct.send(asked))
            assert await _parsed(await over_http.send(asked)) == expected
            await over_http.aclose()


async def _parsed(response: UpstreamResponse) -> tuple[int, str | None, int]:
    # Times may differ by a second, so lengths are compared: all times have as many digits.
    data = await response.read()
    return response.status, response.header("content-type"), len(data)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_drop_closes_before_any_byte(provide: Provide, *, stream: bool) -> None:
    provider = provide(script_of({"text": "hi"}, faults=[{"kind": "drop"}]))
    upstream = HttpUpstream(provider.url, max_retries=0)
    asked = outgoing(body=json.dumps({"model": "m", "stream": stream}).encode())

    with pytest.raises(UpstreamError) as caught:
        await upstream.send(asked)
    assert (await upstream.send(asked)).status == 200
    await upstream.aclose()

    assert caught.value.kind == "closed"
    first = provider.app.requests[0]
    assert (first.status, first.outcome) == (0, "broken")


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_cut_closes_inside_the_answer(provide: Provide, *, stream: bool) -> None:
    provider = provide(script_of({"text": "hi " * 50}, faults=[{"kind": "cut"}]))
    upstream = HttpUpstream(provider.url, max_retries=3)
    response = await upstream.send(
        outgoing(body=json.dumps({"model": "m", "stream": stream}).encode())
    )
    assert response.status == 200

    with pytest.raises(UpstreamError) as caught:
        await response.read()
    await upstream.aclose()

    assert caught.value.kind == "cut"
    assert [record.outcome for record in provider.app.requests] == ["broken"]


async def test_client_that_leaves_is_recorded(provide: Provide) -> None:
    provider = provide(script_of({"text": "a longer text " * 9, "event_delay_s": 5}))
    upstream = HttpUpstream(provider.url)
    response = await upstream.send(outgoing(body=b'{"model":"m","stream":true}'))
    await anext(response.chunks)
    outcomes = {provider.app.requests[0].outcome}

    await response.aclose()

    for _ in range(200):
        outcomes.add(provider.app.requests[0].outcome)
        if len(outcomes) == 2:
            break
        await asyncio.sleep(0.01)
    await upstream.aclose()
    assert outcomes == {"open", "disconnected"}


async def test_fault_in_process_raises() -> None:
    app = ScriptedProviderApp(script_of({"text": "x"}, faults=[{"kind": "drop"}]))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app)) as client:
        with pytest.raises(ConnectionResetError):
            await client.post("http://p/v1/messages", json={"model": "m"})
        answer = await client.post("http://p/v1/messages", json={"model": "m"})

    assert answer.json()["content"] == [{"type": "text", "text": "x"}]


async def test_client_that_leaves_inside_its_body_is_not_recorded() -> None:
    app = ScriptedProviderApp(script_of({"text": "x"}))
    messages = [{"type": "http.request", "body": b"{", "more_body": True}]

    async def receive() -> dict[str, Any]:
        return messages.pop() if messages else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        raise AssertionError(message)

    scope = {"type": "http", "method": "POST", "path": "/v1/messages", "headers": []}
    await app(scope, receive, send)

    assert app.requests == []


async def test_delays_are_waited_for() -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    script = script_of({"text": "x" * 30, "delay_s": 2, "event_delay_s": 0.5})
    app = ScriptedProviderApp(script, sleep=sleep)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app)) as client:
        answer = await client.post(
            "http://p/v1/chat/completions", json={"model": "m", "stream": True}
        )

    events = answer.text.count("data: ")
    assert waits == [2.0] + [0.5] * (events - 1)


async def test_refusal_of_a_strict_provider_is_in_the_record(provide: Provide) -> None:
    script = script_of({"text": "hi"}).model_copy(update={"strict": "anthropic"})
    provider = provide(script)
    said = {"model": "claude-opus-5", "messages": [{"role": "user", "content": "hi"}]}
    async with httpx.AsyncClient() as client:
        answers = [
            await client.post(f"{provider.url}/v1/messages", json={**said, **more})
            for more in ({}, {"max_tokens": 9})
        ]

    assert [each.status_code for each in answers] == [400, 200]
    assert answers[0].json()["error"]["message"] == "max_tokens: Field required"
    refused, answered = provider.app.requests
    assert (refused.status, refused.model, refused.turn) == (400, "claude-opus-5", None)
    assert (answered.status, answered.turn) == (200, 0)
