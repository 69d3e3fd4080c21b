from __future__ import annotations

import httpx
import pytest

from switchyard_core import Switchyard
from switchyard_core.server.relay import _stays_below
from switchyard_core.world import World
from tests.server.servers import (
    KEY,
    BytesProvider,
    Reply,
    answer_to,
    body,
    policy,
    running,
    served,
)
from tests.upstream.loopback import answers, raw_provider

TOP = 'fallback_client = "provider"'


async def test_unknown_path_goes_on_with_method_path_query_body_and_allowed_headers():
    reply = Reply(
        status=201, headers=(("content-type", "text/x"), ("set-cookie", "a=b")), chunks=(b"1", b"2")
    )
    provider = BytesProvider(reply)
    async with running("openai_chat", provider, top=TOP) as (url, _), httpx.AsyncClient() as client:
        answer = await client.put(
            url + "/v1/files/a%2Fb?x=%20y",
            content=b"raw bytes",
            headers={"content-type": "text/plain", "cookie": "c", "authorization": "Bearer c"},
        )
        got = await client.get(url + "/v1/responses/resp_1")
    assert (answer.status_code, answer.content) == (201, b"12")
    assert answer.headers["content-type"] == "text/x"
    assert "set-cookie" not in answer.headers
    first, second = provider.seen
    assert (first.method, first.path, first.query) == ("PUT", "/v1/files/a/b", "x=%20y")
    assert first.body == b"raw bytes"
    assert first.headers["content-type"] == "text/plain"
    assert first.headers["authorization"] == f"Bearer {KEY}"
    assert "cookie" not in first.headers
    assert (got.status_code, second.method, second.body) == (201, "GET", b"")
    assert "content-type" not in second.headers


async def test_known_paths_stay_ours():
    provider = BytesProvider()
    async with running("openai_chat", provider, top=TOP) as (url, _), httpx.AsyncClient() as client:
        assert (await client.get(url + "/v1/models")).status_code == 200
        assert (await client.get(url + "/v1/messages")).status_code == 405
        await client.post(
            url + "/v1/messages",
            content=body("anthropic_messages"),
            headers={"content-type": "application/json"},
        )
    # Translated for the target of the route, and not passed on as it is.
    assert [seen.path for seen in provider.seen] == ["/v1/chat/completions"]


STRAYING = {
    "dots": "/v1/../admin",
    "dots_encoded": "/v1/%2e%2e/admin",
    "dots_half_encoded": "/v1/.%2E/admin",
    "dots_encoded_twice": "/v1/%252e%252e/admin",
    "dots_encoded_thrice": "/v1/%25252e%25252e/admin",
    "one_dot": "/v1/./admin",
    "last_dots": "/v1/..",
    "separator_encoded": "/v1/..%2fadmin",
    "separator_encoded_twice": "/v1/..%252fadmin",
    "backslash": "/v1/..\\admin",
    "backslash_encoded": "/v1/..%5cadmin",
    "backslash_encoded_large": "/v1/%2e%2e%5Cadmin",
    "overlong": "/v1/%c0%ae%c0%ae/admin",
    "parameter": "/v1/..;x=1/admin",
    "space": "/v1/..%20/admin",
    "control": "/v1/..%00/admin",
    "line_break": "/v1/x%0d%0ahost:%20evil.example",
    "host": "//evil.example/v1/files",
    "host_backslash": "/%5cevil.example/v1/files",
    "host_encoded": "/%2fevil.example/v1/files",
    "no_slash": "v1/files",
    "dots_first": "..%2fadmin",
    "asterisk": "*",
    "absolute_dots": "http://localhost/v1/..%2fadmin",
    "encoded_forever": "/v1/%" + "25" * 20 + "2e",
}


@pytest.mark.parametrize("case", STRAYING)
def test_stays_below_refuses_what_some_reader_takes_out_of_the_base_url(case):
    assert not _stays_below(STRAYING[case])


@pytest.mark.parametrize("path", ["", "ftp://localhost/v1", "xhttp://localhost/v1"])
def test_stays_below_refuses_what_does_not_begin_with_a_slash(path):
    # h11 hands them on as they are, httptools reads what it takes for the path in them.
    assert not _stays_below(path)


@pytest.mark.parametrize(
    "path",
    ["/", "/v1/files/a%2Fb", "/v1/files/a..b/...", "/v1/caf%C3%A9/a%20b", "/v1/x;y=1/z:batch"],
)
def test_stays_below_accepts_honest_paths(path):
    assert _stays_below(path)


@pytest.mark.parametrize("parser", ["h11", "httptools"])
@pytest.mark.parametrize("base", ["", "/v1", "/proxy/v1"], ids=["root", "version", "prefix"])
async def test_targets_that_leave_the_base_url_reach_no_provider(parser, base):
    provider = BytesProvider()
    async with served(provider) as upstream:
        yard = Switchyard.from_policy_text(
            policy("openai_chat", upstream + base, top=TOP),
            world=World(environ={"UPSTREAM_KEY": KEY}),
        )
        async with served(yard.asgi(), parser=parser) as url:
            for case, target in STRAYING.items():
                answer = await answer_to(url, _get(target))
                assert answer[9:12] in (b"400", b"404"), (case, answer)
            assert provider.seen == []
            answer = await answer_to(url, _get("http://localhost/v1/files/a%2Fb?x=1"))
            assert answer[9:12] == b"200"
    assert [seen.query for seen in provider.seen] == ["x=1"]
    assert provider.seen[0].path in ("/v1/files/a/b", f"{base}/files/a/b")


@pytest.mark.parametrize("parser", ["h11", "httptools"])
@pytest.mark.parametrize(
    "line",
    [
        "OPTIONS * HTTP/1.1",
        "OPTIONS /v1/files HTTP/1.1",
        "CONNECT evil.example:443 HTTP/1.1",
        "CONNECT /v1/files HTTP/1.1",
        "TRACE /v1/files HTTP/1.1",
        "TRACK /v1/files HTTP/1.1",
        "PROPFIND /v1/files HTTP/1.1",
        "get /v1/files HTTP/1.1",
    ],
)
async def test_methods_that_are_not_passed_on_reach_no_provider(parser, line, caplog):
    provider = BytesProvider()
    async with served(provider) as upstream:
        yard = Switchyard.from_policy_text(
            policy("openai_chat", upstream, top=TOP), world=World(environ={"UPSTREAM_KEY": KEY})
        )
        async with served(yard.asgi(), parser=parser) as url:
            request = f"{line}\r\nhost: localhost\r\nconnection: close\r\n\r\n"
            answer = await answer_to(url, request.encode())
    assert answer[9:12] in (b"405", b"400"), answer
    if answer[9:12] == b"405":
        assert b"allow: GET, HEAD, POST, PUT, PATCH, DELETE" in answer
    assert provider.seen == []
    assert [record for record in caplog.records if record.exc_info] == []


def _get(target):
    return f"GET {target} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n".encode()


@pytest.mark.parametrize("parser", ["h11", "httptools"])
async def test_an_answer_that_was_not_modified_passes_though_it_tells_a_length(parser):
    raw = answers(b"HTTP/1.1 304 Not Modified\r\netag: x\r\ncontent-length: 4\r\n\r\n")
    async with raw_provider(raw) as provider:
        yard = Switchyard.from_policy_text(
            policy("openai_chat", provider.url, top=TOP), world=World(environ={"UPSTREAM_KEY": KEY})
        )
        async with served(yard.asgi(), parser=parser) as url, httpx.AsyncClient() as client:
            got = [await client.get(url + "/v1/files/a") for _ in range(2)]

    assert [(answer.status_code, answer.headers["etag"]) for answer in got] == [(304, "x")] * 2


async def test_provider_that_cannot_be_reached_gives_502():
    provider = BytesProvider(Reply(chunks=(), cut=True))
    async with running("openai_chat", provider, top=TOP) as (url, _), httpx.AsyncClient() as client:
        answer = await client.post(url + "/v1/embeddings", content=b"{}")
    assert answer.status_code == 502
    assert answer.json()["error"]["code"] == "upstream_closed"
