"""The first promise: nothing of the caller's body changes but the model and what is inserted."""

from __future__ import annotations

import asyncio
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from switchyard_core import Request
from switchyard_core.jsonio.tree import encode
from switchyard_core.wire import WIRE_FORMATS
from tests.support.policies import EXECUTOR, PLANNER, PLANNING_PROMPT, ROUTE, plan_execute_harness
from tests.support.strategies import SPACES, VALUES, objects

EDITS = {
    "openai_chat": '{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function",'
    '"function":{"name":"edit_file","arguments":"{\\"path\\":\\"a.py\\"}"}}]},'
    '{"role":"tool","tool_call_id":"c","content":"ok"}',
    "openai_responses": '{"type":"function_call","call_id":"c","name":"edit_file",'
    '"arguments":"{\\"path\\":\\"a.py\\"}"},'
    '{"type":"function_call_output","call_id":"c","output":"ok"}',
    "anthropic_messages": '{"role":"assistant","content":[{"type":"tool_use","id":"c",'
    '"name":"edit_file","input":{"path":"a.py"}}]},'
    '{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"ok"}]}',
}
HISTORY = {"openai_chat": "messages", "openai_responses": "input", "anthropic_messages": "messages"}
# Keys that switchyard reads or writes; all others are the caller's own affair.
READ = (
    "model",
    "messages",
    "input",
    "instructions",
    "system",
    "tools",
    "functions",
    "metadata",
    "previous_response_id",
    "conversation",
    "output_config",
    "stream",
    "prompt",
)


@st.composite
def bodies(draw, wire_format, *, edited):
    """A body of a wire format around odd fields and odd messages, and the parts to compare."""
    space = draw(SPACES)
    user = draw(objects(reserved=("role", "type")))
    member = ",".join(['"role":"user"', *(f"{key}:{space}{value}" for key, value in user)])
    items = [f"{{{member}}}", draw(VALUES)]
    if edited:
        items.append(EDITS[wire_format])
    fields = [(key, value) for key, value in draw(objects(reserved=READ))]
    tools = draw(st.lists(VALUES, max_size=2))
    fields.append(('"tools"', "[" + ",".join(['{"type":"web_search_2026"}', *tools]) + "]"))
    fields.append((f'"{HISTORY[wire_format]}"', f"[{space}" + f"{space},".join(items) + "]"))
    place = draw(st.integers(0, len(fields)))
    fields.insert(place, ('"model"', json.dumps(ROUTE)))
    text = ",".join(f"{space}{key}{space}:{space}{value}{space}" for key, value in fields)
    return f"{space}{{{text}}}{space}"


@pytest.fixture(scope="module", params=["library", "http"])
def worlds(request):
    return {
        wire_format: plan_execute_harness(wire_format, request.param)
        for wire_format in WIRE_FORMATS
    }


@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
@settings(max_examples=60)
@given(data=st.data())
def test_executing_body_is_the_callers_but_for_the_model(worlds, wire_format, data):
    body = data.draw(bodies(wire_format, edited=True))
    request = Request(wire_format=wire_format, body=body)

    served = asyncio.run(worlds[wire_format].ask(request))

    assert served.phase == "executing"
    assert served.outgoing.body == body.replace(json.dumps(ROUTE), json.dumps(EXECUTOR)).encode()


@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
@settings(max_examples=60)
@given(data=st.data())
def test_planning_body_differs_by_the_model_and_one_insertion(worlds, wire_format, data):
    body = data.draw(bodies(wire_format, edited=False))
    request = Request(wire_format=wire_format, body=body)

    served = asyncio.run(worlds[wire_format].ask(request))

    assert served.phase == "planning"
    expected = body.replace(json.dumps(ROUTE), json.dumps(PLANNER)).encode()
    start = next(
        (n for n, (a, b) in enumerate(zip(served.outgoing.body, expected, strict=False)) if a != b),
        len(expected),
    )
    added = len(served.outgoing.body) - len(expected)
    # The insertion may begin with bytes that the caller's text goes on with: slide it.
    removed = [
        served.outgoing.body[:at] + served.outgoing.body[at + added :]
        for at in range(max(0, start - added), start + 1)
    ]
    assert expected in removed
    assert added <= len(encode(PLANNING_PROMPT)) + 64


@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
@settings(max_examples=40)
@given(data=st.data())
def test_library_body_given_as_bytes_is_never_changed(worlds, wire_format, data):
    body = data.draw(bodies(wire_format, edited=True)).encode()
    kept = bytes(bytearray(body))
    request = Request(wire_format=wire_format, body=body)

    asyncio.run(worlds[wire_format].ask(request))

    assert request.body == kept
    assert request.fields.dump() == kept
