"""Base URLs as the documentation of providers gives them."""

from __future__ import annotations

import pytest

from switchyard_core import WireFormat
from switchyard_core.upstream.address import path_below
from switchyard_core.wire import FORMATS, WIRE_FORMATS


@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
@pytest.mark.parametrize("base", ["", "/", "/v1", "/v1/"])
def test_base_without_a_path_and_with_a_version_mean_the_same(base, wire_format):
    call = "/v1" + FORMATS[wire_format].paths["create"]

    assert path_below(base, call, wire_format) == call


@pytest.mark.parametrize(
    ("base", "wire_format", "expected"),
    [
        ("/v1beta/openai", "openai_chat", "/v1beta/openai/chat/completions"),
        ("/api/paas/v4", "openai_chat", "/api/paas/v4/chat/completions"),
        ("/openai/v1", "openai_chat", "/openai/v1/chat/completions"),
        ("/openai/v1/", "openai_responses", "/openai/v1/responses"),
        ("/compatible-mode/v1", "openai_chat", "/compatible-mode/v1/chat/completions"),
        ("/api/openai", "openai_responses", "/api/openai/responses"),
        ("/backend-api/codex", "openai_responses", "/backend-api/codex/responses"),
        ("/anthropic", "anthropic_messages", "/anthropic/v1/messages"),
        ("/api/anthropic/v1", "anthropic_messages", "/api/anthropic/v1/messages"),
    ],
)
def test_base_with_a_path_of_its_own_is_used_as_its_sdk_does(
    base: str, wire_format: WireFormat, expected: str
):
    assert path_below(base, "/v1" + FORMATS[wire_format].paths["create"], wire_format) == expected


def test_exact_path_follows_the_base_as_it_is():
    exact = ["/v1/chat", "/chat"]

    assert path_below("/v2", "/v1/chat", "openai_chat", exact) == "/v2/v1/chat"
    assert path_below("/v2", "/chat", "openai_chat", exact) == "/v2/chat"
    assert path_below("", "/chat", "openai_chat", exact) == "/chat"
