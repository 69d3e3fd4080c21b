"""What may be repeated to the user."""

from __future__ import annotations

import pytest

from switchyard_core.policy.secrets import looks_like_credential, shown


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("sk-proj-abcdefghijkl12345678", id="openai"),
        pytest.param("sk-ant-api03-abcdefghijklmnop", id="anthropic"),
        pytest.param("ghp_abcdefghijklmnop1234", id="github"),
        pytest.param("AKIAIOSFODNN7EXAMPLE", id="aws"),
        pytest.param("Bearer abcdefghijklmnop", id="bearer"),
        pytest.param("https://user:hunter2@example.com/v1", id="url"),
        pytest.param("aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF", id="random_word"),
        pytest.param("-----BEGIN RSA PRIVATE KEY-----", id="private_key"),
    ],
)
def test_credential_is_recognised_and_hidden(text: str) -> None:
    assert looks_like_credential(text)
    assert shown(text) == "(hidden)"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("provider/capable-model-2025-01-01", id="model"),
        pytest.param("OPENAI_API_KEY", id="variable"),
        pytest.param("https://example.com:8443/v1", id="url_with_port"),
        pytest.param("$.messages[*].content[?(@.type == 'tool_call')].name", id="jsonpath"),
        pytest.param("You are a careful planner. Read first, then write a plan.", id="prompt"),
        pytest.param("a_long_but_ordinary_name_of_a_rule_set_2", id="long_name"),
        pytest.param("0123456789abcdef0123456789abcdef", id="digest"),
    ],
)
def test_ordinary_text_is_shown_as_it_is(text: str) -> None:
    assert not looks_like_credential(text)
    assert shown(text) == text


def test_shown_cuts_long_text_and_replaces_what_breaks_a_message() -> None:
    assert shown("a`b\nc") == "a?b?c"
    assert shown("word " * 40) == ("word " * 40)[:79] + "…"
