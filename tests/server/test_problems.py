from __future__ import annotations

import json

import pytest

from switchyard_core import PluginError, RequestError, UpstreamError
from switchyard_core.server.problems import error_event, problem_of
from switchyard_core.wire import caller_format


@pytest.mark.parametrize(
    ("path", "headers", "expected"),
    [
        ("/chat/x", {}, "openai_chat"),
        ("", {}, "openai_chat"),
        ("/responses/r", {}, "openai_responses"),
        ("/messages/batches", {}, "anthropic_messages"),
        ("/models", {"anthropic-version": "x"}, "anthropic_messages"),
    ],
)
def test_caller_format_is_told_from_path_and_version(path, headers, expected):
    assert caller_format(path, headers) == expected


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (RequestError(message="m", code="c", status=418), 418, "c"),
        (UpstreamError("m", kind="timeout", status=504), 504, "upstream_timeout"),
        (PluginError("secret"), 500, "plugin_error"),
        (ValueError("secret"), 500, "internal_error"),
        (SystemExit("secret"), 500, "internal_error"),
    ],
)
def test_problem_of_gives_each_error_its_status_and_code(error, status, code):
    problem = problem_of(error, "req_1")
    assert (problem.status, problem.code) == (status, code)
    if status == 500:
        assert "req_1" in problem.message
        assert "secret" not in problem.message
    else:
        assert problem.message == "m"


@pytest.mark.parametrize(
    ("about", "words"),
    [
        ({}, "a plugin failed;"),
        ({"plugin": "p"}, "the plugin `p` failed;"),
        ({"plugin": "p", "distribution": "d"}, "the plugin `p` of d failed;"),
        ({"plugin": "p", "distribution": "d", "version": "1"}, "the plugin `p` of d 1 failed;"),
    ],
    ids=["unknown", "given", "no_version", "installed"],
)
def test_problem_of_a_plugin_names_it_and_keeps_its_words(about, words):
    problem = problem_of(PluginError("failed: ValueError: secret", **about), "req_1")
    assert problem.message.startswith(words)
    assert "secret" not in problem.message


ERROR = RequestError(message="broke off", code="upstream_cut", status=502)


@pytest.mark.parametrize(
    ("last", "opening"),
    [(b"", b""), (b"data: 1\n\n", b""), (b"data: 1\r\n\r\n", b""), (b"data: 1", b"\n\n")],
)
def test_error_event_ends_an_event_that_was_left_open(last, opening):
    event = error_event("openai_chat", ERROR, "req_1", last)
    assert event.startswith(opening + b"data: {")
    assert event.endswith(b"}\n\n")
    assert json.loads(event[len(opening) + 6 :])["error"]["message"] == "broke off"


def test_error_event_of_responses_counts_on_or_leaves_the_number_out():
    numbered = error_event("openai_responses", ERROR, "r", b'{"sequence_number": 41}\n\n')
    plain = error_event("openai_responses", ERROR, "r", b"")
    assert b'"sequence_number":42' in numbered
    assert b"sequence_number" not in plain
    assert plain.startswith(b"event: error\ndata: ")


def test_error_event_of_messages_has_the_request_id():
    event = error_event("anthropic_messages", ERROR, "req_1", b"")
    data = json.loads(event.removeprefix(b"event: error\ndata: "))
    assert (data["type"], data["request_id"]) == ("error", "req_1")


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 413, 415, 431])
def test_refusal_that_no_retry_cures_says_so(status):
    told = problem_of(RequestError("no", "code", status, headers={"allow": "POST"}), "req_1")

    assert dict(told.headers) == {"x-should-retry": "false", "allow": "POST"}
    assert (type(told), told.message, told.status) == (RequestError, "no", status)


@pytest.mark.parametrize("status", [408, 409, 429, 500, 503])
def test_error_that_a_retry_may_cure_leaves_that_to_the_client(status):
    assert dict(problem_of(RequestError("no", "code", status), "req_1").headers) == {}


def test_error_that_speaks_of_retries_itself_keeps_its_word():
    error = RequestError("no", "code", 404, headers={"x-should-retry": "true"})

    assert problem_of(error, "req_1").headers == {"x-should-retry": "true"}
