"""The HTTP client: what goes out, what comes back, retries, faults, cancellation."""

from __future__ import annotations

import asyncio
import logging
import traceback

import httpcore
import httpx
import pytest

from switchyard_core.errors import UpstreamError
from switchyard_core.upstream import HttpUpstream, Upstream
from tests.upstream.loopback import (
    STREAM_HEAD,
    Sockets,
    answers,
    framed,
    http,
    outgoing,
    raw_provider,
)

pytestmark = pytest.mark.anyio

CANARY = "canary-5f0e"


@pytest.mark.parametrize(
    ("base", "path", "query", "expected"),
    [
        pytest.param("http://h", "/v1/responses", "", "/v1/responses", id="bare"),
        pytest.param("http://h/", "/v1/responses", "", "/v1/responses", id="slash"),
        pytest.param("http://h/v1", "/v1/responses", "", "/v1/responses", id="version"),
        pytest.param(
            "http://h/v1/", "/v1/messages", "beta=true", "/v1/messages?beta=true", id="query"
        ),
        pytest.param("http://h/api/v4", "/v1/models", "", "/api/v4/models", id="other_version"),
        pytest.param("http://h/api", "/v1/models", "", "/api/models", id="prefix"),
        pytest.param("http://h/v1?k=1", "/v1/x", "a=%2F", "/v1/x?k=1&a=%2F", id="base_query"),
        pytest.param("http://h/v1", "/v1", "", "/v1", id="only_version"),
        pytest.param("http://h/v1", "/v1x/y", "", "/v1/v1x/y", id="no_version_in_path"),
        pytest.param("http://h", "/v1/models/a%2Fb", "", "/v1/models/a%2Fb", id="escapes"),
    ],
)
async def test_send_joins_base_url_and_path(
    base: str, path: str, query: str, expected: str
) -> None:
    sockets = Sockets()
    upstream: Upstream = HttpUpstream(base, backend=sockets)

    await (await upstream.send(outgoing(path, query=query))).aclose()

    assert sockets.target == expected


@pytest.mark.parametrize(
    "base", ["", "h/v1", "ftp://h", "http://", "/v1", "http://h:port"], ids=lambda b: f"n{len(b)}"
)
def test_base_url_that_is_not_absolute_is_refused(base: str) -> None:
    with pytest.raises(ValueError, match="absolute http or https URL"):
        HttpUpstream(base)


async def test_send_gives_headers_and_body_as_they_are_and_adds_only_framing() -> None:
    body = '{"a": 1.10, "ü": "\\ud800"}'.encode()
    headers = (("X-Mixed-Case", "1"), ("x-mixed-case", "2"), ("x-latin", "é"), ("x-utf", "→"))
    async with raw_provider(answers(http(200, b"{}"))) as provider:
        upstream = HttpUpstream(provider.url)
        await (await upstream.send(outgoing(headers=headers, body=body))).read()
        await upstream.aclose()

    lines = provider.heads[0].split(b"\r\n")
    assert lines[0] == b"POST /v1/chat/completions HTTP/1.1"
    assert sorted(line.partition(b":")[0].lower() for line in lines[1:-2]) == [
        b"accept-encoding", b"content-length", b"host",
        b"x-latin", b"x-mixed-case", b"x-mixed-case", b"x-utf",
    ]  # fmt: skip
    assert b"accept-encoding: identity" in lines
    assert "x-latin: é".encode("latin-1") in lines
    assert "x-utf: →".encode() in lines
    assert provider.bodies == [body]


async def test_send_keeps_the_accept_encoding_it_is_given_and_ignores_framing_headers() -> None:
    sockets = Sockets()
    upstream = HttpUpstream("http://provider.example", backend=sockets)
    headers = (("Accept-Encoding", "zstd"), ("Host", "evil"), ("content-length", "7"), ("te", "x"))

    await upstream.send(outgoing(headers=headers))

    sent = sockets.headers
    assert sent["accept-encoding"] == "zstd"
    assert sent["host"] == "provider.example"
    assert sent["content-length"] == str(len(outgoing().body))
    assert "te" not in sent


async def test_environment_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    async with raw_provider(answers(http(200, b"ok"))) as provider:
        upstream = HttpUpstream(provider.url)
        assert await (await upstream.send(outgoing())).read() == b"ok"
        await upstream.aclose()


async def test_answer_passes_undecoded_with_all_its_headers() -> None:
    data = b"\x1f\x8b not really gzip"
    answer = http(200, data, "Content-Encoding: gzip", "X-A: 1", "x-a: 2", "set-cookie: c=1")
    async with raw_provider(answers(answer)) as provider:
        upstream = HttpUpstream(provider.url)
        response = await upstream.send(outgoing())
        assert response.header("X-A") == "1"
        assert [value for name, value in response.headers if name == "x-a"] == ["1", "2"]
        assert await response.read() == data
        await (await upstream.send(outgoing())).read()
        await upstream.aclose()

    assert b"cookie" not in provider.heads[1].lower()


async def test_redirect_is_an_answer() -> None:
    async with raw_provider(answers(http(307, b"", "location: http://127.0.0.1:9/"))) as provider:
        upstream = HttpUpstream(provider.url)
        response = await upstream.send(outgoing())
        await response.aclose()
        await upstream.aclose()

    assert response.status == 307
    assert len(provider.heads) == 1


async def test_chunks_arrive_while_the_provider_still_sends() -> None:
    go_on = asyncio.Event()

    async def handle(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, body: bytes
    ) -> None:
        writer.write(STREAM_HEAD + framed(b"data: 1\n\n"))
        await go_on.wait()
        writer.write(framed(b"data: 2\n\n") + b"0\r\n\r\n")
        await writer.drain()

    async with raw_provider(handle) as provider:
        upstream = HttpUpstream(provider.url)
        response = await upstream.send(outgoing(stream=True))
        assert await anext(response.chunks) == b"data: 1\n\n"
        go_on.set()
        assert [chunk async for chunk in response.chunks] == [b"data: 2\n\n"]
        await upstream.aclose()


async def test_200_parallel_streams_all_run_at_once() -> None:
    arrived = 0
    everyone = asyncio.Event()

    async def handle(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, body: bytes
    ) -> None:
        nonlocal arrived
        arrived += 1
        if arrived == 200:
            everyone.set()
        writer.write(STREAM_HEAD + framed(b"data: 1\n\n"))
        await everyone.wait()
        writer.write(framed(b"data: 2\n\n") + b"0\r\n\r\n")
        await writer.drain()

    async with raw_provider(handle) as provider:
        upstream = HttpUpstream(provider.url, max_retries=0, timeout_s=20)

        async def one() -> bytes:
            return await (await upstream.send(outgoing(stream=True))).read()

        bodies = await asyncio.gather(*(one() for _ in range(200)))
        await upstream.aclose()

    assert set(bodies) == {b"data: 1\n\ndata: 2\n\n"}


async def test_connection_is_kept_alive() -> None:
    answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
    ports: list[int] = []

    async def handle(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, body: bytes
    ) -> None:
        for _ in range(2):
            ports.append(writer.get_extra_info("peername")[1])
            writer.write(answer)
            await writer.drain()
            await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(len(body))

    async with raw_provider(handle) as provider:
        upstream = HttpUpstream(provider.url)
        for _ in range(2):
            assert await (await upstream.send(outgoing())).read() == b"ok"
        await upstream.aclose()

    assert len(ports) == 2
    assert len(provider.heads) == 1


@pytest.mark.parametrize(
    "error",
    [
        httpcore.ConnectError(CANARY),
        httpcore.ReadTimeout(CANARY),
        httpcore.PoolTimeout(CANARY),
        httpcore.RemoteProtocolError(CANARY),
        httpcore.LocalProtocolError(f"Illegal header value b'{CANARY}'"),
        httpx.InvalidURL(CANARY),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_errors_and_logs_never_hold_a_secret(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    url = f"http://{CANARY}:{CANARY}@127.0.0.1:9/{CANARY}/v1?key={CANARY}"
    headers = (("authorization", f"Bearer {CANARY}"),)
    upstream = HttpUpstream(url, backend=Sockets(error), max_retries=0)

    with pytest.raises(UpstreamError) as caught:
        await upstream.send(outgoing(headers=headers, query=f"k={CANARY}", body=CANARY.encode()))

    assert CANARY not in caught.value.message
    assert CANARY not in caplog.text
    if isinstance(error, (httpcore.LocalProtocolError, httpx.InvalidURL)):
        assert caught.value.kind == "protocol"
        assert CANARY not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        pytest.param(b"220 mail.example ESMTP\r\n\r\n", "protocol", id="other_protocol"),
        pytest.param(b"\x15\x03\x01\x00\x02\x02\x46" * 40, "protocol", id="binary"),
        pytest.param(b"HTTP/1.1 200 OK\r\nbad header\r\n\r\n", "protocol", id="header"),
        pytest.param(
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
            "protocol",
            id="framing",
        ),
        pytest.param(b"", "closed", id="nothing"),
        pytest.param(b"HTTP/1.1 200 OK\r\ncontent-", "closed", id="cut_head"),
        pytest.param(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n", "closed", id="cut_body"),
    ],
)
async def test_answer_that_is_not_http_is_told_from_a_connection_that_was_closed(
    data: bytes, kind: str
) -> None:
    async with raw_provider(answers(data)) as provider:
        upstream = HttpUpstream(provider.url, max_retries=1, sleep=_no_wait)
        with pytest.raises(UpstreamError) as caught:
            await upstream.send(outgoing())
        await upstream.aclose()

    assert (caught.value.kind, caught.value.status) == (kind, 502)
    assert len(provider.heads) == (1 if kind == "protocol" else 2)
    if kind == "protocol":
        assert caught.value.message == f"{provider.url} answered with something that is not HTTP"


async def _no_wait(_: float) -> None:
    return None


async def test_header_that_http_forbids_is_refused_without_being_shown() -> None:
    async with raw_provider(answers(http(200))) as provider:
        upstream = HttpUpstream(provider.url, max_retries=3)
        with pytest.raises(UpstreamError) as caught:
            await upstream.send(outgoing(headers=(("x-key", f"{CANARY}\n"),)))
        await upstream.aclose()

    assert caught.value.kind == "protocol"
    assert CANARY not in "".join(traceback.format_exception(caught.value))
    assert provider.heads == []


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        pytest.param((), "Basic bWU6cEBzcw==", id="no_key"),
        pytest.param((("x-api-key", "k"),), None, id="key"),
    ],
)
async def test_user_in_the_base_url_becomes_basic_authentication_unless_a_key_is_given(
    headers: tuple[tuple[str, str], ...], expected: str | None
) -> None:
    sockets = Sockets()
    upstream = HttpUpstream("http://me:p%40ss@h/v1", backend=sockets)

    await (await upstream.send(outgoing(headers=headers))).read()

    assert sockets.headers.get("authorization") == expected
    assert sockets.headers["host"] == "h"


async def test_get_without_body_has_no_length() -> None:
    async with raw_provider(answers(http(200, b"{}"))) as provider:
        upstream = HttpUpstream(provider.url)
        await (await upstream.send(outgoing("/v1/models", method="GET", body=b""))).read()
        await upstream.aclose()

    assert provider.heads[0].startswith(b"GET /v1/models HTTP/1.1\r\n")
    assert b"content-length" not in provider.heads[0].lower()
