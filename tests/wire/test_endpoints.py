from __future__ import annotations

import pytest

from switchyard_core.wire import endpoint_of, plain_path


@pytest.mark.parametrize(
    ("path", "plain"),
    [
        ("/", ""),
        ("/v1", ""),
        ("/v1/", ""),
        ("/v1/models/", "/models"),
        ("/v1beta/models", "/v1beta/models"),
        ("/models//", "/models"),
        ("/v1/v1/messages", "/messages"),
        ("/backend-api/codex/responses", "/responses"),
        ("/backend-api/codex/v1/models", "/models"),
        ("/backend-api/codex", ""),
        ("/backend-api/codexes/responses", "/backend-api/codexes/responses"),
        ("/v11/messages", "/v11/messages"),
    ],
)
def test_plain_path_has_no_version_and_no_final_slash(path, plain):
    assert plain_path(path) == plain


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/v1/chat/completions", ("openai_chat", "create")),
        ("/responses/", ("openai_responses", "create")),
        ("/v1/responses/compact", ("openai_responses", "compact")),
        ("/v1/responses/input_tokens", ("openai_responses", "input_tokens")),
        ("/v1/messages", ("anthropic_messages", "create")),
        ("/messages/count_tokens", ("anthropic_messages", "count_tokens")),
        ("/v1/responses/resp_1", None),
        ("/v1/v1/messages", ("anthropic_messages", "create")),
        ("/v1/v1/v1/messages", None),
        ("/backend-api/codex/responses/compact", ("openai_responses", "compact")),
        ("", None),
    ],
)
def test_endpoint_of_knows_the_calls_of_the_three_formats(path, expected):
    assert endpoint_of(path) == expected
