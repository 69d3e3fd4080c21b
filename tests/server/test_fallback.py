from __future__ import annotations

import httpx

from tests.server.servers import KEY, BytesProvider, Reply, body, running

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
        answer = await client.post(url + "/v1/messages", content=body("anthropic_messages"))
        assert answer.status_code == 400
    assert provider.seen == []


async def test_path_that_climbs_out_of_the_base_url_is_refused():
    provider = BytesProvider()
    async with running("openai_chat", provider, top=TOP) as (url, _), httpx.AsyncClient() as client:
        for path in ("/v1/%2e%2e/admin", "/v1/.%2E/admin"):
            request = client.build_request("GET", url)
            request.url = request.url.copy_with(raw_path=path.encode())
            assert (await client.send(request)).status_code == 404
    assert provider.seen == []


async def test_provider_that_cannot_be_reached_gives_502():
    provider = BytesProvider(Reply(chunks=(), cut=True))
    async with running("openai_chat", provider, top=TOP) as (url, _), httpx.AsyncClient() as client:
        answer = await client.post(url + "/v1/embeddings", content=b"{}")
    assert answer.status_code == 502
    assert answer.json()["error"]["code"] == "upstream_closed"
