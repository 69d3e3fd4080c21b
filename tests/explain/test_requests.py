"""Requests from files, and the requests that one grew from."""

from __future__ import annotations

import json

import pytest

from switchyard_core import Request, Switchyard
from switchyard_core.errors import BodyError
from switchyard_core.explain import guess_format, read_requests, turns_of
from switchyard_core.jsonio.tree import ObjectText
from switchyard_core.wire import WIRE_FORMATS
from tests.server.servers import body, policy

CHAT = b'{ "model":"m", "messages":[], "x":1.10 }'


def recorded(**request):
    return json.dumps({"client": "x", "request": request}).encode()


def test_bare_body_keeps_its_bytes_and_takes_the_given_headers():
    (request,) = read_requests(CHAT, headers=[("X-A", "1")])
    assert (request.wire_format, request.body) == ("openai_chat", CHAT)
    assert request.headers["x-a"] == "1"


def test_recorded_request_gives_format_call_headers_and_query():
    data = (
        b'{"request": {"path": "/v1/messages/count_tokens", "query": "beta=true", '
        b'"headers": {"A": "own"}, "body": ' + CHAT + b"}}"
    )
    (request,) = read_requests(data, headers=[("a", "given")])
    assert (request.wire_format, request.endpoint) == ("anthropic_messages", "count_tokens")
    assert (request.query, request.body) == ("beta=true", CHAT)
    assert request.headers["a"] == "given"


def test_given_format_stands_over_the_recorded_path():
    data = recorded(path="/v1/responses", body={"input": []})
    (request,) = read_requests(data, wire_format="openai_chat")
    assert (request.wire_format, request.endpoint) == ("openai_chat", "create")


def test_recorded_body_may_be_a_string():
    (request,) = read_requests(recorded(path="/v1/responses?x=1", body='{"input": 1.0}'))
    assert (request.wire_format, request.body) == ("openai_responses", b'{"input": 1.0}')


def test_lines_are_requests_of_their_own():
    data = CHAT + b"\n\n" + recorded(path="/v1/responses", body={"input": []}) + b"\n"
    assert [request.wire_format for request in read_requests(data)] == [
        "openai_chat", "openai_responses",
    ]  # fmt: skip


def test_line_that_is_not_json_is_named():
    with pytest.raises(BodyError, match=r"^line 3: "):
        read_requests(CHAT + b"\n" + CHAT + b"\n{")


def test_file_that_is_no_json_is_left_to_the_decision():
    (request,) = read_requests(b"hello\nworld")
    with pytest.raises(BodyError, match="not JSON"):
        _ = request.fields


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b'{"model": "m"}', "unknown_wire_format"),
        (recorded(body={"model": "m"}), "unknown_wire_format"),
        (recorded(path="/v1/responses", headers={"a": 1}, body={}), "invalid_type"),
        (recorded(path="/v1/responses", headers=[], body={}), "invalid_type"),
    ],
)
def test_what_cannot_be_read_is_said(data, code):
    with pytest.raises(BodyError) as caught:
        read_requests(data)
    assert caught.value.code == code


def test_recorded_body_that_is_no_json_is_left_to_the_decision():
    (request,) = read_requests(recorded(body="hello"))
    with pytest.raises(BodyError, match="not JSON"):
        _ = request.fields


def test_headers_that_are_nested_too_deeply_are_refused():
    data = b'{"request": {"path": "/v1/responses", "body": {}, "headers": {"a": '
    with pytest.raises(BodyError, match="headers"):
        read_requests(data + b"[" * 900 + b"]" * 900 + b"}}}")


@pytest.mark.parametrize(
    ("body", "headers", "expected"),
    [
        ({"input": "x"}, {}, "openai_responses"),
        ({"previous_response_id": "x"}, {}, "openai_responses"),
        ({"messages": []}, {}, "openai_chat"),
        ({"messages": []}, {"anthropic-version": "1"}, "anthropic_messages"),
        ({"messages": [], "system": "x"}, {}, "anthropic_messages"),
        ({"messages": [], "tools": [{"input_schema": {}}]}, {}, "anthropic_messages"),
        ({"model": "m"}, {}, None),
    ],
)
def test_guess_format_knows_the_keys_of_each(body, headers, expected):
    assert guess_format(ObjectText(json.dumps(body).encode()), headers) == expected


# --- turns ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
def test_turns_cut_the_history_before_each_turn_of_the_assistant(wire_format):
    request = Request(
        wire_format=wire_format,
        body=body(wire_format, edited=True),
        headers={"x-switchyard-session-final": "true"},
    )
    first, last = turns_of(request)
    assert last is request
    # Whatever is no history keeps its very bytes.
    assert first.body == body(wire_format)
    assert (first.session_final, last.session_final) == (False, True)


def test_turns_count_a_run_of_the_assistant_once_and_results_as_questions():
    call = {"type": "function_call", "call_id": "c", "name": "ls", "arguments": "{}"}
    items = [
        {"role": "user", "content": "go"},
        {"type": "reasoning", "summary": []},
        call,
        {"type": "function_call_output", "call_id": "c", "output": "x"},
        {"role": "assistant", "content": "done"},
        {"role": "user", "content": "thanks"},
    ]
    request = Request(wire_format="openai_responses", body={"model": "m", "input": items})
    assert [len(json.loads(turn.body)["input"]) for turn in turns_of(request)] == [1, 4, 6]


@pytest.mark.parametrize(
    ("content", "endpoint"),
    [
        (b'{"model":"m","input":"go"}', "create"),
        (b'{"model":"m","input":[{"role":"assistant","content":"hi"}]}', "create"),
        (b'{"model":"m"}', "create"),
        (b"[", "create"),
        (body("openai_responses", edited=True), "input_tokens"),
    ],
)
def test_turns_of_a_request_that_has_none_is_the_request(content, endpoint):
    request = Request(wire_format="openai_responses", body=content, endpoint=endpoint)
    assert turns_of(request) == [request]


PLAIN = {"model": "coder", "messages": [{"role": "user", "content": "x"}]}


def route_of(wire_format):
    return Switchyard.from_policy_text(policy(wire_format, "http://127.0.0.1:9")).policy


@pytest.mark.parametrize("served", ["openai_chat", "anthropic_messages"])
@pytest.mark.parametrize("more", [{}, {"max_tokens": 5}, {"stream": True, "temperature": 1}])
def test_body_that_may_be_in_two_formats_is_in_that_of_its_route(served, more):
    data = json.dumps(PLAIN | more).encode()

    assert read_requests(data, policy=route_of(served))[0].wire_format == served
    assert read_requests(data)[0].wire_format == "openai_chat"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (PLAIN | {"stream_options": {}}, "openai_chat"),
        (PLAIN | {"messages": [{"role": "tool", "tool_call_id": "a"}]}, "openai_chat"),
        (PLAIN | {"frequency_penalty": 1}, "openai_chat"),
        (PLAIN | {"system": "x"}, "anthropic_messages"),
        ({"model": "coder", "input": "x"}, "openai_responses"),
    ],
)
@pytest.mark.parametrize("served", ["openai_chat", "openai_responses", "anthropic_messages"])
def test_body_that_tells_its_format_keeps_it_whatever_the_route_speaks(body, expected, served):
    data = json.dumps(body).encode()

    assert read_requests(data, policy=route_of(served))[0].wire_format == expected


def test_body_without_a_history_is_in_the_format_of_its_route():
    data = b'{"model": "coder"}'

    (request,) = read_requests(data, policy=route_of("openai_responses"))

    assert request.wire_format == "openai_responses"
    with pytest.raises(BodyError, match="--format"):
        read_requests(data)


def test_recorded_path_and_option_stand_over_the_route():
    data = json.dumps({"request": {"body": PLAIN, "path": "/v1/messages"}}).encode()
    chat = route_of("openai_chat")

    assert read_requests(data, policy=chat)[0].wire_format == "anthropic_messages"
    (request,) = read_requests(
        json.dumps(PLAIN).encode(), wire_format="openai_responses", policy=chat
    )
    assert request.wire_format == "openai_responses"
