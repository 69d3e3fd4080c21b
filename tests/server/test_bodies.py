"""Compressed bodies: decoded within the limit, refused where they cannot be."""

from __future__ import annotations

import asyncio
import gzip
import json
import tracemalloc
import zlib

import brotli
import httpx
import pytest
import zstandard

from switchyard_core.wire import WIRE_FORMATS
from tests.server.servers import PATHS, BytesProvider, body, running

MEGABYTE = 1024 * 1024
JSON = {"content-type": "application/json"}
ENCODERS = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": zstandard.compress,
    "identity": bytes,
    "zstd, gzip": lambda data: gzip.compress(zstandard.compress(data)),
    "identity,br": brotli.compress,
}


@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
async def test_compressed_body_goes_on_as_the_plain_one_does(wire_format):
    provider = BytesProvider()
    async with running(wire_format, provider) as (url, _), httpx.AsyncClient() as client:
        call = url + PATHS[wire_format]
        await client.post(call, content=body(wire_format), headers=JSON)
        for encoding, encode in ENCODERS.items():
            headers = {**JSON, "content-encoding": encoding}
            answer = await client.post(call, content=encode(body(wire_format)), headers=headers)
            assert answer.status_code == 200, (encoding, answer.text)
    plain, *others = provider.seen
    assert len(others) == len(ENCODERS)
    assert {seen.body for seen in others} == {plain.body}
    assert all("content-encoding" not in seen.headers for seen in others)


async def test_encodings_in_several_headers_are_one_list():
    provider = BytesProvider()
    async with running("openai_chat", provider) as (url, _), httpx.AsyncClient() as client:
        headers = [
            ("content-type", "application/json"),
            ("content-encoding", "zstd"),
            ("content-encoding", "gzip"),
        ]
        content = gzip.compress(zstandard.compress(body("openai_chat")))
        answer = await client.post(url + PATHS["openai_chat"], content=content, headers=headers)
    assert answer.status_code == 200


@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
@pytest.mark.parametrize(
    ("encoding", "content", "status", "words"),
    [
        ("lz4", b"x", 415, "`gzip`, `deflate`, `br`, `zstd`"),
        ("gzip", b"not gzip", 400, "send it again, or without `content-encoding`"),
        ("gzip", gzip.compress(b'{"a": 1}')[:-9], 400, "breaks off"),
        ("zstd", gzip.compress(b"{}"), 400, "not `zstd`"),
        ("br", b"\xff\xff\xff", 400, "not `br`"),
        (", ".join(["gzip"] * 5), b"x", 415, "at most 4 in a row"),
    ],
    ids=["unknown", "wrong", "cut", "other", "noise", "many"],
)
async def test_body_that_cannot_be_decoded_is_refused(
    wire_format, encoding, content, status, words
):
    provider = BytesProvider()
    async with running(wire_format, provider) as (url, _), httpx.AsyncClient() as client:
        headers = {**JSON, "content-encoding": encoding}
        answer = await client.post(url + PATHS[wire_format], content=content, headers=headers)
    assert answer.status_code == status
    assert words in answer.json()["error"]["message"]
    assert answer.headers["x-should-retry"] == "false"
    assert (answer.headers.get("accept-encoding") == "gzip, deflate, br, zstd") is (status == 415)
    assert provider.seen == []


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd"])
async def test_bomb_is_413_in_the_memory_of_the_limit_while_others_are_served(encoding):
    bomb = ENCODERS[encoding](bytes(64 * MEGABYTE))
    provider = BytesProvider()
    options = {"max_body": MEGABYTE}
    async with (
        running("openai_chat", provider, options=options) as (url, _),
        httpx.AsyncClient() as client,
    ):
        call = url + PATHS["openai_chat"]
        tracemalloc.start()
        try:
            headers = {**JSON, "content-encoding": encoding}
            answers = await asyncio.gather(
                client.post(call, content=bomb, headers=headers),
                client.post(call, content=body("openai_chat"), headers=JSON),
            )
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert [answer.status_code for answer in answers] == [413, 200]
    assert answers[0].json()["error"]["code"] == "body_too_large"
    assert "the decoded body is larger" in answers[0].text
    assert peak < 16 * MEGABYTE
    assert len(provider.seen) == 1


async def test_decoded_body_of_exactly_the_limit_is_served():
    padding = b" " * (MEGABYTE - len(body("openai_chat")))
    provider = BytesProvider()
    options = {"max_body": MEGABYTE}
    async with (
        running("openai_chat", provider, options=options) as (url, _),
        httpx.AsyncClient() as client,
    ):
        call = url + PATHS["openai_chat"]
        headers = {**JSON, "content-encoding": "zstd"}
        for extra, status in ((b"", 200), (b" ", 413)):
            content = zstandard.compress(body("openai_chat") + padding + extra)
            answer = await client.post(call, content=content, headers=headers)
            assert answer.status_code == status


async def test_decision_page_takes_compressed_bodies_too():
    asked = {"input_format": "openai_chat", "request": json.loads(body("openai_chat"))}
    async with running("openai_chat", BytesProvider()) as (url, _), httpx.AsyncClient() as client:
        answer = await client.post(
            url + "/v1/decision",
            content=gzip.compress(json.dumps(asked).encode()),
            headers={**JSON, "content-encoding": "gzip"},
        )
    assert answer.status_code == 200
