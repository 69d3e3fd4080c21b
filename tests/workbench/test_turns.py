from __future__ import annotations

import json

import pytest

from switchyard_core import WIRE_FORMATS, Request
from switchyard_core.workbench import turns_of
from tests.server.servers import body


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
