"""What may stand in a recording, and what may not."""

from __future__ import annotations

import base64
import json
import random

import pytest

from switchyard_core.replay.credentials import credential_in_body, credential_in_stream

OPENAI = "sk-proj-" + "Ab3dEf6hIj9kLm2n" * 3
ANTHROPIC = "sk-ant-api03-" + "Zx9_yW8-vU7tSr6" * 5


def body(**fields):
    return json.dumps(fields).encode()


def event(tree):
    return f"data: {json.dumps(tree)}\n\n".encode()


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        pytest.param(
            {"messages": [{"content": f"my key is {OPENAI}"}]}, "messages[0].content", id="text"
        ),
        pytest.param({"user": ANTHROPIC}, "user", id="anthropic"),
        pytest.param(
            {"tools": [{"headers": {"Authorization": "anything"}}]},
            "tools[0].headers.Authorization",
            id="header_of_a_tool",
        ),
        pytest.param({"api_key": "x"}, "api_key", id="field"),
        pytest.param({"extra": {"X-Api-Key": "x"}}, "extra.X-Api-Key", id="field_with_hyphens"),
        pytest.param({"clientSecret": "x"}, "clientSecret", id="field_in_camel_case"),
        pytest.param({"a": "Authorization: Bearer abcdef0123456789abcd"}, "a", id="bearer"),
        pytest.param({"a": ["postgres://me:Pa55-of-mine@db/x"]}, "a[0]", id="password_in_a_url"),
        pytest.param({"a": "-----BEGIN RSA PRIVATE KEY-----"}, "a", id="private_key"),
        pytest.param({"a": "AKIAABCDEFGHIJKLMNOP"}, "a", id="aws"),
        pytest.param({"a": "ghp_" + "a1" * 18}, "a", id="github"),
        pytest.param(
            {"calls": [{"arguments": '{"password":"hunter2"}'}]},
            "calls[0].arguments",
            id="arguments_of_a_call",
        ),
    ],
)
def test_a_credential_is_found_and_its_field_named(fields, where):
    assert credential_in_body(body(**fields)) == where


RANDOM = random.Random(7)
BLOB = base64.urlsafe_b64encode(RANDOM.randbytes(20_000)).decode()
PICTURE = base64.b64encode(RANDOM.randbytes(20_000)).decode()


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param(
            {"input": [{"type": "reasoning", "encrypted_content": f"-{OPENAI}{BLOB}"}]},
            id="encrypted",
        ),
        pytest.param({"content": [{"type": "thinking", "signature": BLOB}]}, id="signature"),
        pytest.param({"source": {"type": "base64", "data": PICTURE}}, id="picture"),
        pytest.param({"image_url": {"url": "data:image/png;base64," + PICTURE}}, id="data_url"),
        pytest.param(
            {"id": "resp_68a1f00dDEADbeef0123456789abcdefABCDEF0123", "call_id": "call_X9" * 6},
            id="ids",
        ),
        pytest.param(
            {
                "tools": [
                    {
                        "parameters": {
                            "properties": {
                                "api_key": {"type": "string", "description": "The password."},
                                "authorization": {"type": "string"},
                            },
                            "required": ["api_key"],
                        }
                    }
                ]
            },
            id="tool_schema",
        ),
        pytest.param({"api_key": "", "password": None, "authorization": {}}, id="blank"),
        pytest.param({"logprobs": [{"token": "Hello"}], "max_tokens": 5}, id="tokens"),
        pytest.param({"a": "a basic understanding of bearer authentication-by-token"}, id="prose"),
        pytest.param({"a": "struct sk_buff *sk_buff_head_init(sk-container-id-1)"}, id="code"),
        pytest.param(
            {"a": "postgres://user:password@db postgres://me:${DB_PASSWORD}@db amqp://a:***@b"},
            id="placeholder_in_a_url",
        ),
        pytest.param({"a": "http://localhost:8080/x?y=a@b"}, id="port"),
        pytest.param({"a": "0123456789abcdefABCDEF0123456789abcdefABCDEF"}, id="digest"),
    ],
)
def test_what_is_no_credential_may_be_recorded(fields):
    assert credential_in_body(body(**fields)) is None


def test_a_body_that_is_no_object_is_looked_at_too():
    assert credential_in_body(OPENAI.encode()) == "the body"
    assert credential_in_body(b"\xff plain") is None


@pytest.mark.parametrize(
    "events",
    [
        pytest.param([{"delta": {"content": OPENAI}}], id="in_one_event"),
        pytest.param(
            [
                {"choices": [{"index": 0, "delta": {"content": part}}]}
                for part in (OPENAI[:9], OPENAI[9:])
            ],
            id="chat_in_pieces",
        ),
        pytest.param(
            [
                {"type": "content_block_delta", "index": 1, "delta": {"text": part}}
                for part in (OPENAI[:9], OPENAI[9:])
            ],
            id="messages_in_pieces",
        ),
        pytest.param(
            [
                {"type": "response.output_text.delta", "output_index": 0, "delta": part}
                for part in (OPENAI[:9], OPENAI[9:])
            ],
            id="responses_in_pieces",
        ),
        pytest.param(
            [{"index": 0, "delta": {"partial_json": part}} for part in ('{"pass', 'word":"x"}')],
            id="arguments_in_pieces",
        ),
    ],
)
def test_a_credential_in_a_stream_is_found_in_one_event_and_in_pieces(events):
    found = credential_in_stream(b"".join(map(event, events)) + b"data: [DONE]\n\n")

    assert found is not None
    assert OPENAI not in found


def test_a_credential_behind_an_odd_line_end_within_an_event_is_found():
    for char in "\u2028\u2029\x85":
        data = f'data: {{"delta": {{"content": "a{char}{OPENAI}"}}}}\n\n'.encode()

        assert credential_in_stream(data) is not None, hex(ord(char))


def test_a_stream_without_one_passes():
    stream = b"".join(
        event({"index": n % 2, "delta": {"content": "a basic sk-", "signature": BLOB}})
        for n in range(9)
    )

    assert credential_in_stream(b": comment\nevent: x\n" + stream + b"data: [DONE]\n\n") is None
