"""The scripted provider behind the upstream interface."""

from __future__ import annotations

import asyncio
import json

import pytest

from switchyard_core.errors import UpstreamError
from switchyard_core.scripted import ScriptedUpstream
from switchyard_core.upstream import Upstream
from tests.upstream.loopback import outgoing, script_of

pytestmark = pytest.mark.anyio

STREAM = json.dumps({"model": "m", "stream": True}).encode()


async def test_whole_answer_and_close() -> None:
    upstream: Upstream = ScriptedUpstream(script_of({"text": "hi"}), "openai_chat", now=lambda: 5.0)

    response = await upstream.send(outgoing())
    body = json.loads(await response.read())
    await upstream.aclose()

    assert body["choices"][0]["message"]["content"] == "hi"
    assert body["created"] == 5
    assert response.header("content-type") == "application/json"


async def test_drop_is_closed_unless_a_retry_helps() -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    script = script_of({"text": "hi"}, faults=[{"kind": "drop"}, {"kind": "drop"}])
    with pytest.raises(UpstreamError) as caught:
        await ScriptedUpstream(script, "openai_chat").send(outgoing())
    retrying = ScriptedUpstream(script, "openai_chat", max_retries=2, sleep=sleep)
    response = await retrying.send(outgoing())

    assert caught.value.kind == "closed"
    assert response.status == 200
    assert len(waits) == 2


async def test_cut_raises_after_the_last_chunk() -> None:
    upstream = ScriptedUpstream(
        script_of({"text": "x" * 90}, faults=[{"kind": "cut"}]), "openai_chat"
    )
    response = await upstream.send(outgoing(body=STREAM))
    assert len(await response.peek(300)) == 300

    with pytest.raises(UpstreamError) as caught:
        await response.read()

    assert caught.value.kind == "cut"


async def test_delays_are_waited_for() -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    script = script_of({"text": "x", "delay_s": 3, "event_delay_s": 0.25})
    upstream = ScriptedUpstream(script, "openai_chat", sleep=sleep)
    chunks = (await (await upstream.send(outgoing(body=STREAM))).read()).count(b"data: ")

    assert waits == [3.0] + [0.25] * (chunks - 1)


async def test_closing_while_another_task_reads_is_fine() -> None:
    script = script_of({"text": "x" * 90, "event_delay_s": 0.05})
    response = await ScriptedUpstream(script, "openai_chat").send(outgoing(body=STREAM))
    reading = asyncio.ensure_future(response.read())
    await asyncio.sleep(0.02)

    await response.aclose()

    assert (await reading).count(b"data: ") <= 2


async def test_other_wire_format_is_not_spoken() -> None:
    upstream = ScriptedUpstream(script_of({"text": "x"}), "anthropic_messages")

    response = await upstream.send(outgoing())

    assert response.status == 404
    assert json.loads(await response.read())["type"] == "error"


async def test_strict_upstream_refuses_what_the_provider_refuses() -> None:
    upstream = ScriptedUpstream(script_of({"text": "hi"}), "openai_chat", strict="openai")

    body = b'{"model": "gpt-5", "messages": [], "max_tokens": 1}'
    response = await upstream.send(outgoing(body=body))

    assert response.status == 400
    assert b"Unsupported parameter: 'max_tokens'" in await response.read()
