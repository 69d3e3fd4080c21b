"""Which headers and whose credential reach a provider."""

from __future__ import annotations

import pytest

from switchyard_core import Headers, RequestError
from switchyard_core.engine.calling import credential, forwarded_headers
from switchyard_core.policy import Client
from tests.support.cases import each_of

CANARY = "canary-secret"


def client(**changes) -> Client:
    settings = {
        "name": "p",
        "format": "openai_responses",
        "scripted": False,
        "base_url": "https://example.com",
        "api_key_env": "KEY",
        "forward_auth": False,
        "extra_headers": (),
        "forward_headers": (),
        "max_retries": 1,
        "timeout_s": 1.0,
        "script": None,
        "origin": ("https://example.com", "KEY"),
    }
    return Client(**{**settings, **changes})


def sent(headers: dict[str, str], **changes) -> dict[str, str]:
    return dict(forwarded_headers(Headers(headers), client(**changes)))


@each_of(
    "name",
    [
        "authorization",
        "x-api-key",
        "cookie",
        "x-session-id",
        "session-id",
        "x-codex-turn-metadata",
        "x-switchyard-session-final",
        "connection",
        "transfer-encoding",
        "host",
        "content-length",
        "accept-encoding",
        "proxy-authorization",
        "chatgpt-account-id",
        "x-anything",
    ],
)
def test_header_that_is_nobodys_business_stays_behind(name):
    assert CANARY not in sent({name: CANARY}).values()


def test_wanted_headers_go_on_and_ours_joins_the_user_agent():
    found = sent(
        {
            "Accept": "text/event-stream",
            "OpenAI-Beta": "x",
            "User-Agent": "codex/1",
            "content-type": "application/json",
        }
    )

    assert found == {
        "content-type": "application/json",
        "accept": "text/event-stream",
        "openai-beta": "x",
        "user-agent": "codex/1 switchyard/0.1.0",
    }


def test_messages_headers_go_to_messages_only():
    headers = {"anthropic-version": "2026-10-21", "anthropic-beta": "a,b"}

    to_messages = sent(headers, format="anthropic_messages")

    assert to_messages["anthropic-version"] == "2026-10-21"
    assert to_messages["anthropic-beta"] == "a,b"
    assert not any(name.startswith("anthropic") for name in sent(headers))
    assert sent({}, format="anthropic_messages")["anthropic-version"] == "2023-06-01"


def test_lite_header_goes_from_responses_to_responses():
    headers = {"x-openai-internal-codex-responses-lite": "true"}

    assert sent(headers)["x-openai-internal-codex-responses-lite"] == "true"
    assert "x-openai-internal-codex-responses-lite" not in sent(headers, format="openai_chat")


def test_policy_may_name_headers_to_forward_and_to_add():
    found = sent(
        {"x-trace": "t", "authorization": CANARY},
        forward_headers=("x-trace", "authorization"),
        extra_headers=(("X-Team", "blue"), ("user-agent", "ours")),
    )

    assert found["x-trace"] == "t"
    assert found["x-team"] == "blue"
    assert found["user-agent"] == "ours"
    assert CANARY not in found.values()


def test_login_headers_go_with_the_callers_credential():
    headers = {"chatgpt-account-id": "a", "originator": "codex", "openai-organization": "o"}

    assert sent(headers, forward_auth=True, api_key_env=None).items() >= headers.items()


@pytest.mark.parametrize(
    ("wire_format", "expected"),
    [
        ("openai_chat", ("authorization", "Bearer k")),
        ("openai_responses", ("authorization", "Bearer k")),
        ("anthropic_messages", ("x-api-key", "k")),
    ],
)
def test_key_of_the_environment_is_sent_as_the_format_wants(wire_format, expected):
    found = credential(client(format=wire_format), Headers({}), {"KEY": " k\n"})

    assert found == (expected,)


@pytest.mark.parametrize(
    "environ", [{}, {"KEY": ""}, {"KEY": " "}], ids=["unset", "empty", "blank"]
)
def test_missing_key_names_the_variable(environ):
    with pytest.raises(RequestError) as caught:
        credential(client(), Headers({}), environ)

    assert (caught.value.status, caught.value.code) == (500, "missing_api_key")
    assert "`KEY`" in caught.value.message


@pytest.mark.parametrize("name", ["authorization", "x-api-key"])
def test_callers_credential_is_sent_on_when_the_policy_says_so(name):
    forwarding = client(forward_auth=True, api_key_env=None)

    assert credential(forwarding, Headers({name: "theirs"}), {"KEY": "k"}) == ((name, "theirs"),)


def test_missing_credential_of_the_caller_is_unauthorized():
    with pytest.raises(RequestError) as caught:
        credential(client(forward_auth=True, api_key_env=None), Headers({}), {})

    assert (caught.value.status, caught.value.code) == (401, "missing_credential")


def test_client_without_a_key_sends_none():
    assert credential(client(api_key_env=None), Headers({"authorization": CANARY}), {}) == ()


def test_repeated_list_header_goes_on_whole():
    pairs = [
        ("anthropic-beta", "a"),
        ("anthropic-beta", "b"),
        ("content-type", "x"),
        ("content-type", "y"),
    ]

    found = dict(forwarded_headers(Headers(pairs), client(format="anthropic_messages")))

    assert (found["anthropic-beta"], found["content-type"]) == ("a, b", "x")


@pytest.mark.parametrize("value", ["", " ", "Bearer", "Bearer ", "basic"])
def test_empty_credential_is_none(value):
    with pytest.raises(RequestError, match="caller's own credential"):
        credential(
            client(forward_auth=True, api_key_env=None), Headers({"authorization": value}), {}
        )
