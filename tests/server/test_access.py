from __future__ import annotations

import httpx
import pytest

from switchyard_core import Headers, RequestError
from switchyard_core.server import SwitchyardApp
from switchyard_core.server.access import key_headers, sendable
from tests.server.servers import PATHS, BytesProvider, body, running

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
            {"x-api-key": "server-key", "authorization": "Bearer mine"},
            {"authorization": "Bearer server-key", "x-api-key": "mine"},
            {"authorization": "Bearer server-key"},
        ):
            answer = await client.post(
                url + PATHS["openai_chat"], content=body("openai_chat"), headers=headers
            )
            statuses.append(answer.status_code)
    assert statuses == [200, 200, 401]
    assert provider.seen[0].headers["authorization"] == "Bearer mine"
    assert provider.seen[1].headers["x-api-key"] == "mine"
    assert "server-key" not in str([seen.headers for seen in provider.seen])
