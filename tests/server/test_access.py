from __future__ import annotations

import httpx
import pytest

from switchyard_core import Headers, RequestError
from switchyard_core.server import SwitchyardApp
from switchyard_core.server.access import Access, host_name, key_headers, origin_name, sendable
from tests.server.servers import PATHS, BytesProvider, Reply, body, running

JSON = {"content-type": "application/json"}
OPTIONS = {"server_key": "server-key"}


@pytest.mark.parametrize(
    ("headers", "carriers"),
    [
        ({"authorization": "Bearer k1"}, ("authorization",)),
        ({"authorization": "bearer  k1 "}, ("authorization",)),
        ({"x-api-key": "k1"}, ("x-api-key",)),
        ({"x-api-key": "k1", "authorization": "Bearer other"}, ("x-api-key",)),
        ({"x-api-key": "k1", "authorization": "Bearer k1"}, ("x-api-key", "authorization")),
    ],
)
def test_key_headers_names_the_headers_that_carry_the_key(headers, carriers):
    assert key_headers(Headers(headers), "k1") == carriers


@pytest.mark.parametrize(
    "headers",
    [{}, {"authorization": "k1"}, {"authorization": "Basic k1"}, {"x-api-key": "k"}, {"k": "k1"}],
)
def test_key_headers_refuses_everybody_else(headers):
    with pytest.raises(RequestError) as caught:
        key_headers(Headers(headers), "k1")
    assert caught.value.status == 401
    assert "k1" not in caught.value.message


@pytest.mark.parametrize(
    ("headers", "code", "told"),
    [
        ({}, "missing_server_key", "an API key is required: send it as"),
        ({"authorization": "Bearer "}, "missing_server_key", "an API key is required"),
        ({"authorization": "k1"}, "invalid_api_key", "does not begin with `Bearer`"),
        ({"authorization": "Basic k1"}, "invalid_api_key", "does not begin with `Bearer`"),
        ({"authorization": " "}, "missing_server_key", "an API key is required"),
        (
            {"x-api-key": "sk-guess"},
            "invalid_api_key",
            "the API key is wrong: send the key of this",
        ),
        ({"authorization": "Bearer no"}, "invalid_api_key", "not that of a provider"),
    ],
    ids=["none", "empty", "no_scheme", "another_scheme", "blank", "wrong", "wrong_bearer"],
)
def test_key_headers_tells_a_wrong_key_from_a_missing_one(headers, code, told):
    with pytest.raises(RequestError) as caught:
        key_headers(Headers(headers), "k1")
    assert caught.value.code == code
    assert told in caught.value.message
    assert "guess" not in caught.value.message


@pytest.mark.parametrize(
    ("key", "fits"),
    [("k-1", True), ("two words", True), ("kl\u00fc", False), ("a\nb", False), ("", False)],
    ids=["plain", "words", "not_ascii", "line_break", "empty"],
)
def test_sendable_tells_what_a_header_can_hold(key, fits):
    assert sendable(key) is fits


def test_application_refuses_a_key_that_nobody_can_send():
    with pytest.raises(ValueError, match="printable ASCII"):
        SwitchyardApp(None, server_key="kl\u00fc")


async def test_server_without_its_key_answers_401_in_the_callers_shape_and_calls_nobody():
    provider = BytesProvider()
    async with (
        running("anthropic_messages", provider, options=OPTIONS) as (url, _),
        httpx.AsyncClient() as client,
    ):
        for headers in (JSON, {**JSON, "x-api-key": "wrong"}):
            answer = await client.post(
                url + PATHS["anthropic_messages"],
                content=body("anthropic_messages"),
                headers=headers,
            )
            assert answer.status_code == 401
            assert answer.json()["error"]["type"] == "authentication_error"
        assert (await client.get(url + "/v1/models")).status_code == 401
        assert (await client.get(url + "/metrics")).status_code == 401
        assert (await client.get(url + "/health")).status_code == 200
        assert (await client.head(url + "/")).status_code == 200
    assert provider.seen == []


async def test_key_is_removed_and_the_callers_credential_travels_in_the_other_header():
    provider = BytesProvider()
    async with (
        running("openai_chat", provider, options=OPTIONS, client="forward_auth = true") as (url, _),
        httpx.AsyncClient() as client,
    ):
        statuses = []
        for headers in (
            {**JSON, "x-api-key": "server-key", "authorization": "Bearer mine"},
            {**JSON, "authorization": "Bearer server-key", "x-api-key": "mine"},
            {**JSON, "authorization": "Bearer server-key"},
        ):
            answer = await client.post(
                url + PATHS["openai_chat"], content=body("openai_chat"), headers=headers
            )
            statuses.append(answer.status_code)
    assert statuses == [200, 200, 401]
    assert provider.seen[0].headers["authorization"] == "Bearer mine"
    assert provider.seen[1].headers["x-api-key"] == "mine"
    assert "server-key" not in str([seen.headers for seen in provider.seen])


# --- host names ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "localhost:4000",
        "LOCALHOST:4000",
        "localhost.",
        "agent.localhost:4000",
        "127.0.0.1",
        "127.0.0.1:4000",
        "192.168.1.7:4000",
        "[::1]",
        "[::1]:4000",
        "box.lan",
        "Box.Lan.:4000",
        " box.lan ",
    ],
)
def test_check_host_accepts_what_no_name_server_can_redirect_and_what_is_allowed(host):
    Access(hosts=["BOX.lan"]).check_host(Headers({"host": host}))


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example"},
        {"host": "evil.example:4000"},
        {"host": "localhost.evil.example"},
        {"host": "127.0.0.1.evil.example"},
        {"host": "evillocalhost"},
        {"host": "box.lan.evil.example"},
        {"host": "localhost:4000@evil.example"},
        {"host": "localhost, evil.example"},
        {"host": "[::1].evil.example"},
        {"host": "2130706433"},
        {"host": ""},
        {},
        [("host", "localhost"), ("host", "evil.example")],
    ],
    ids=str,
)
def test_check_host_refuses_every_other_name_and_none(headers):
    with pytest.raises(RequestError, match="--allowed-host") as caught:
        Access(hosts=["box.lan"]).check_host(Headers(headers))
    assert (caught.value.status, caught.value.code) == (403, "host_not_allowed")


def test_check_host_of_a_mounted_application_is_left_to_its_host():
    Access().check_host(Headers({"host": "evil.example"}))


@pytest.mark.parametrize(
    "name", ["http://box", "box:4000", "box/", "*", "*.lan", "", "-box", "b\u00fcro"]
)
def test_host_name_refuses_what_can_never_be_one(name):
    with pytest.raises(ValueError, match="not a host name"):
        host_name(name)


# --- origins ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("allowed", "sent"),
    [
        ("http://localhost:3000", "http://localhost:3000"),
        ("HTTP://Localhost:3000/", "http://localhost:3000"),
        ("https://tool.example:443", "https://tool.example"),
        ("http://tool.example", "http://tool.example:80"),
        ("chrome-extension://abcdef", "chrome-extension://abcdef"),
    ],
)
def test_check_origin_accepts_an_allowed_one(allowed, sent):
    headers = Headers({"origin": sent, "sec-fetch-site": "cross-site"})
    assert Access(origins=[allowed]).check_origin(headers) == sent


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": ""},
        {"origin": "http://localhost:3001"},
        {"origin": "https://localhost:3000"},
        {"origin": "http://localhost:3000.evil.example"},
        {"origin": "http://localhost:3000, http://evil.example"},
        [("origin", "http://localhost:3000"), ("origin", "http://evil.example")],
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
    ids=str,
)
def test_check_origin_refuses_every_other_page(headers):
    with pytest.raises(RequestError) as caught:
        Access(origins=["http://localhost:3000"]).check_origin(Headers(headers))
    assert (caught.value.status, caught.value.code) == (403, "origin_not_allowed")


@pytest.mark.parametrize("site", [None, "none", "same-origin"])
def test_check_origin_lets_callers_that_are_no_page_through(site):
    headers = {} if site is None else {"sec-fetch-site": site}
    assert Access().check_origin(Headers(headers)) == ""


@pytest.mark.parametrize("origin", ["*", "null", "localhost:3000", "http://", "http://a/b", "a b"])
def test_origin_name_refuses_what_can_never_be_one(origin):
    with pytest.raises(ValueError, match="not an origin"):
        origin_name(origin)


TOP = 'fallback_client = "provider"'


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"])
async def test_request_of_a_page_is_refused_whatever_its_path_and_method(method):
    provider = BytesProvider()
    async with running("openai_chat", provider, top=TOP) as (url, _), httpx.AsyncClient() as client:
        for path in ("/", "/health", "/metrics", "/v1/models", *PATHS.values(), "/v1/files"):
            answer = await client.request(
                method,
                url + path,
                content=body("openai_chat") if method == "POST" else None,
                headers={**JSON, "origin": "http://evil.example", "host": "localhost"},
            )
            assert answer.status_code == 403, path
            assert "access-control-allow-origin" not in answer.headers
    assert provider.seen == []


PREFLIGHT = {
    "origin": "http://localhost:3000",
    "access-control-request-method": "POST",
    "access-control-request-headers": "authorization,content-type",
}


@pytest.mark.parametrize("key", [None, "server-key"], ids=["open", "with_key"])
async def test_preflight_of_an_allowed_origin_is_answered_here_and_its_answers_can_be_read(key):
    provider = BytesProvider()
    options = {"allowed_origins": ["http://localhost:3000"], "server_key": key}
    async with (
        running("openai_chat", provider, options=options, top=TOP) as (url, _),
        httpx.AsyncClient() as client,
    ):
        for path in (PATHS["openai_chat"], "/v1/files"):
            asked = await client.options(url + path, headers=PREFLIGHT)
            assert asked.status_code == 200
            assert asked.headers["access-control-allow-origin"] == "http://localhost:3000"
            assert "POST" in asked.headers["access-control-allow-methods"]
            assert asked.headers["access-control-allow-headers"] == "authorization,content-type"
        assert provider.seen == []
        headers = {**JSON, "origin": "http://localhost:3000", "authorization": "Bearer server-key"}
        for method, path, status in (
            ("POST", PATHS["openai_chat"], 200),
            ("GET", "/v1/models", 200),
            ("GET", "/v1/models/nope", 404),
        ):
            content = body("openai_chat") if method == "POST" else None
            answer = await client.request(method, url + path, content=content, headers=headers)
            assert answer.status_code == status
            assert answer.headers["access-control-allow-origin"] == "http://localhost:3000"
            assert "origin" in answer.headers["vary"]
    assert len(provider.seen) == 1


@pytest.mark.parametrize("headers", [{}, PREFLIGHT], ids=["plain", "preflight"])
async def test_options_never_reach_a_provider(headers):
    provider = BytesProvider()
    async with running("openai_chat", provider, top=TOP) as (url, _), httpx.AsyncClient() as client:
        answer = await client.options(url + "/v1/files", headers=headers)
    assert answer.status_code == (403 if headers else 405)
    assert provider.seen == []


async def test_headers_by_which_a_provider_speaks_to_pages_stay_behind():
    spoken = (
        ("access-control-allow-origin", "*"),
        ("access-control-allow-credentials", "true"),
        ("access-control-expose-headers", "*"),
        ("cross-origin-resource-policy", "cross-origin"),
        ("timing-allow-origin", "*"),
        ("clear-site-data", '"*"'),
        ("service-worker-allowed", "/"),
    )
    reply = Reply(headers=(("content-type", "application/json"), *spoken, ("x-kept", "1")))
    async with (
        running("openai_chat", BytesProvider(reply), top=TOP) as (url, _),
        httpx.AsyncClient() as client,
    ):
        routed = await client.post(
            url + PATHS["openai_chat"], content=body("openai_chat"), headers=JSON
        )
        passed_on = await client.get(url + "/v1/files")
    for answer in (routed, passed_on):
        assert (answer.status_code, answer.headers["x-kept"]) == (200, "1")
        assert not {name for name, _ in spoken} & set(answer.headers)


async def test_health_alone_is_served_under_any_host_name():
    async with (
        running("openai_chat", BytesProvider(), options={"allowed_hosts": ()}) as (url, _),
        httpx.AsyncClient() as client,
    ):
        statuses = {}
        for path in ("/health", "/v1/models", "/metrics", "/"):
            answer = await client.get(url + path, headers={"host": "evil.example"})
            statuses[path] = answer.status_code
            assert (await client.get(url + path)).status_code == 200
    assert statuses == {"/health": 200, "/v1/models": 403, "/metrics": 403, "/": 403}


async def test_host_check_comes_before_the_key_and_tells_in_the_callers_shape():
    options = {"allowed_hosts": ["box.lan"], "server_key": "server-key"}
    provider = BytesProvider()
    async with (
        running("anthropic_messages", provider, options=options) as (url, _),
        httpx.AsyncClient() as client,
    ):
        for host, status in (("evil.example", 403), ("box.lan", 200)):
            answer = await client.post(
                url + PATHS["anthropic_messages"],
                content=body("anthropic_messages"),
                headers={**JSON, "host": host, "x-api-key": "server-key"},
            )
            assert answer.status_code == status
            if status == 403:
                assert answer.json()["error"]["type"] == "permission_error"
    assert len(provider.seen) == 1


async def test_application_that_is_mounted_is_served_under_its_hosts_names_but_to_no_page():
    provider = BytesProvider()
    async with running("openai_chat", provider) as (_, app):

        async def host_application(scope, receive, send):
            if scope["type"] == "http":
                scope = {**scope, "root_path": "/llm"}
            await app(scope, receive, send)

        transport = httpx.ASGITransport(app=host_application)
        async with httpx.AsyncClient(transport=transport, base_url="http://api.example") as client:
            results = []
            for more in ({}, {"origin": "http://api.example"}):
                answer = await client.post(
                    "/llm" + PATHS["openai_chat"],
                    content=body("openai_chat"),
                    headers={**JSON, **more},
                )
                results.append(answer.status_code)
    assert results == [200, 403]
