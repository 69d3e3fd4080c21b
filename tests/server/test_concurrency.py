from __future__ import annotations

import asyncio
import gzip
import zlib

import httpx
import pytest

from switchyard_core.wire import WIRE_FORMATS
from tests.server.servers import (
    EVENT_STREAM,
    EVENTS,
    PATHS,
    BytesProvider,
    Reply,
    body,
    running,
)

JSON = {"content-type": "application/json"}
LIMITS = httpx.Limits(max_connections=None)


async def test_200_parallel_streams_complete():
    started, all_there = 0, asyncio.Event()

    async def wait_for_all():
        nonlocal started
        started += 1
        if started == 200:
            all_there.set()
        await all_there.wait()

    chunks = (b"data: 1\n\n", b"data: 2\n\n")
    provider = BytesProvider(Reply(headers=EVENT_STREAM, chunks=chunks, between=wait_for_all))
    async with (
        running("openai_chat", provider) as (url, app),
        httpx.AsyncClient(limits=LIMITS, timeout=25) as client,
    ):
        answers = await asyncio.gather(
            *[
                client.post(
                    url + PATHS["openai_chat"],
                    content=body("openai_chat", stream=True),
                    headers=JSON,
                )
                for _ in range(200)
            ]
        )
        assert app.metrics.active == 0
    assert {(a.status_code, a.content) for a in answers} == {(200, b"".join(chunks))}


@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
async def test_50_first_handoffs_with_one_free_slot_admit_one(wire_format):
    provider = BytesProvider(Reply(headers=EVENT_STREAM, chunks=EVENTS[wire_format]))
    async with (
        running(wire_format, provider, route="latch_capacity = 2") as (url, app),
        httpx.AsyncClient(limits=LIMITS, timeout=25) as client,
    ):

        async def hand_off(number):
            return await client.post(
                url + PATHS[wire_format],
                content=body(wire_format, stream=True, edited=True),
                headers={**JSON, "x-switchyard-session-id": f"s-{number}"},
            )

        assert (await hand_off("first")).status_code == 200
        answers = await asyncio.gather(*[hand_off(number) for number in range(50)])
        metrics = (await client.get(url + "/metrics")).text
        assert (await hand_off("first")).status_code == 200

    admitted = [answer for answer in answers if answer.status_code == 200]
    refused = [answer for answer in answers if answer.status_code == 400]
    assert (len(admitted), len(refused)) == (1, 49)
    assert len(provider.seen) == 3
    for answer in refused:
        assert answer.headers["x-should-retry"] == "false"
        assert "latch_capacity" in answer.text
        assert ("type" in answer.json()) == (wire_format == "anthropic_messages")
    assert 'switchyard_latches{route="coding"} 2.0' in metrics
    assert 'switchyard_latch_capacity{route="coding"} 2.0' in metrics
    assert 'switchyard_errors_total{code="latch_capacity",route="coding"} 49.0' in metrics
    assert app.metrics.handoffs.total() == 2
    assert next(iter(app.metrics.handoffs))[1] != ""


async def test_final_request_frees_its_slot_when_it_succeeded():
    provider = BytesProvider(Reply(), Reply(status=500), Reply())
    headers = {**JSON, "x-switchyard-session-id": "s"}
    final = {**headers, "x-switchyard-session-final": "true"}
    async with running("openai_chat", provider) as (url, app), httpx.AsyncClient() as client:
        store = app.engine.runtimes["coding"].store
        counts = []
        for sent in (headers, final, final):
            await client.post(
                url + PATHS["openai_chat"], content=body("openai_chat", edited=True), headers=sent
            )
            counts.append(await store.count())
    assert counts == [1, 1, 0]


REDIRECTS = (300, 301, 302, 303, 307, 308)


async def _slots_after_a_final_request(reply):
    """Return how many slots are taken after a session's final request got this answer."""
    provider = BytesProvider(Reply(), reply)
    headers = {**JSON, "x-switchyard-session-id": "s"}
    async with running("openai_chat", provider) as (url, app), httpx.AsyncClient() as client:
        for final in ("false", "true"):
            answer = await client.send(
                client.build_request(
                    "POST",
                    url + PATHS["openai_chat"],
                    content=body("openai_chat", edited=True),
                    headers={**headers, "x-switchyard-session-final": final},
                ),
                stream=True,
            )
            raw = b"".join([part async for part in answer.aiter_raw()])
        if reply.status in REDIRECTS:
            assert answer.status_code == 502
        else:
            assert (answer.status_code, raw) == (reply.status, b"".join(reply.chunks))
        return await app.engine.runtimes["coding"].store.count()


@pytest.mark.parametrize("status", [*REDIRECTS, 304])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_final_request_that_is_redirected_keeps_its_slot(status, stream):
    kind = EVENT_STREAM if stream else (("content-type", "text/html"),)
    chunks = () if status == 304 else (b"data: [DONE]\n\n",)
    reply = Reply(status=status, headers=(*kind, ("location", "/elsewhere")), chunks=chunks)

    assert await _slots_after_a_final_request(reply) == 1


def _packed(data, *, cut=0, size=7):
    packed = gzip.compress(data)
    packed = packed[: len(packed) - cut]
    return tuple(packed[at : at + size] for at in range(0, len(packed), size))


GOOD = b'data: {"id": "a", "choices": []}\n\n' * 20 + b"data: [DONE]\n\n"
BAD = b'data: {"id": "a", "choices": []}\n\n' * 20 + b'data: {"error": {"message": "no"}}\n\n'


@pytest.mark.parametrize(
    ("encoding", "chunks", "taken"),
    [
        pytest.param("gzip", _packed(GOOD), 0, id="gzip_good"),
        pytest.param("gzip", _packed(GOOD, size=100_000), 0, id="gzip_good_in_one"),
        pytest.param("gzip", _packed(BAD), 1, id="gzip_error_event"),
        pytest.param("gzip", _packed(GOOD, cut=30), 1, id="gzip_cut"),
        pytest.param("deflate", (zlib.compress(GOOD),), 0, id="deflate_good"),
        pytest.param("deflate", (zlib.compress(BAD),), 1, id="deflate_error_event"),
        pytest.param("identity", (GOOD,), 0, id="identity_good"),
        pytest.param("identity", (BAD,), 1, id="identity_error_event"),
        # Only its end tells how it was.
        pytest.param("unknown", (b"abc",), 0, id="not_readable"),
    ],
)
async def test_final_stream_frees_its_slot_by_its_end_whatever_its_encoding(
    encoding, chunks, taken
):
    reply = Reply(headers=(*EVENT_STREAM, ("content-encoding", encoding)), chunks=chunks)

    assert await _slots_after_a_final_request(reply) == taken
