"""What providers refuse, by rule; and what they take."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest

from switchyard_core.testing import assert_valid_for, call, conversation, validity_problems
from switchyard_core.testing.conformance.samples import sample_requests
from switchyard_core.wire import WIRE_FORMATS
from tests.support.cases import each_of

TESTS = Path(__file__).parents[1]
SNAPSHOTS = sorted((TESTS / "plan_execute" / "__snapshots__" / "test_snapshots").glob("*.json"))
PATHS = {
    "/v1/chat/completions": "openai_chat",
    "/v1/responses": "openai_responses",
    "/v1/messages": "anthropic_messages",
}
CAPTURES = sorted((TESTS / "data" / "captures").glob("*.json"))
#: Recorded against a provider that never thought, with thinking switched on.
WITHOUT_THOUGHTS = "pi-3"

each_format = pytest.mark.parametrize("wire_format", WIRE_FORMATS)


def body(wire_format):
    return (
        conversation(wire_format)
        .system("Be brief.")
        .user("fix it")
        .reasoning("Look first.", encrypted="b3BhcXVl")
        .says("I will look.")
        .reads("read_file", path="a.py")
        .parallel(call("grep", pattern="x"), call("edit_file", fails=True, path="a.py"))
        .build("m")
    )


# --- valid ---------------------------------------------------------------------------------


@each_of("path", [pytest.param(p, id=p.stem) for p in SNAPSHOTS])
def test_snapshot_of_plan_execute_is_valid_for_its_provider(path):
    wire_format = path.stem.removeprefix("test_outgoing_body-").partition("-")[0]

    assert_valid_for(wire_format, path.read_bytes(), sdk=True)


def test_every_snapshot_of_plan_execute_is_looked_at():
    assert len(SNAPSHOTS) > 40


@each_of("path", [pytest.param(p, id=p.stem) for p in CAPTURES if p.stem != WITHOUT_THOUGHTS])
def test_request_of_a_real_client_is_valid(path):
    request = json.loads(path.read_text())["request"]

    assert_valid_for(PATHS[request["path"]], request["body"], sdk=True)


@each_format
def test_samples_of_the_kit_are_valid(wire_format):
    for name, request in sample_requests(wire_format, "m").items():
        assert validity_problems(wire_format, request.body, sdk=True) == [], name


@each_format
def test_body_may_be_bytes_text_or_tree_and_is_not_changed(wire_format):
    tree = body(wire_format)
    before = copy.deepcopy(tree)

    for given in (tree, json.dumps(tree), json.dumps(tree).encode()):
        assert_valid_for(wire_format, given)
    assert tree == before


def test_history_that_goes_on_by_id_may_have_its_calls_elsewhere():
    continued = {
        "model": "m",
        "previous_response_id": "resp_1",
        "input": [{"type": "function_call_output", "call_id": "c", "output": "ok"}],
    }

    assert_valid_for("openai_responses", continued)
    assert_valid_for("openai_responses", {"model": "m", "previous_response_id": "resp_1"})
    assert_valid_for("openai_responses", {"model": "m", "input": "hello"})


# --- not valid -----------------------------------------------------------------------------

TOOL = {"role": "tool", "tool_call_id": "c", "content": "ok"}
CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
USER = {"role": "user", "content": "hi"}


def asks(*calls):
    return {"role": "assistant", "content": None, "tool_calls": list(calls)}


CHAT = {
    "empty": ([], "messages: must not be empty"),
    "no_object": (["hi"], "messages[0]: must be an object"),
    "role": ([{"role": "robot", "content": "x"}], "messages[0].role: unknown role 'robot'"),
    "blank": ([{"role": "user", "content": " "}], "messages[0].content: must not be empty"),
    "no_parts": ([{"role": "user", "content": []}], "messages[0].content: must not be empty"),
    "blank_part": (
        [{"role": "user", "content": [{"type": "text", "text": ""}]}],
        "messages[0].content[0].text: must not be empty",
    ),
    "nothing_said": (
        [USER, {"role": "assistant", "content": None}],
        "messages[1].content: must not be empty",
    ),
    "no_result": ([USER, asks(CALL)], "the call `c` has no result right after its message"),
    "late_result": (
        [USER, asks(CALL), USER, TOOL],
        "messages[3].tool_call_id: answers no call of the assistant message before it: 'c'",
    ),
    "stray_result": ([USER, TOOL], "answers no call"),
    "same_id": ([USER, asks(CALL, CALL), TOOL], "the id `c` is used twice"),
    "long_id": (
        [USER, asks(CALL | {"id": "x" * 41}), TOOL | {"tool_call_id": "x" * 41}],
        "is not a legal id",
    ),
    "no_kind": ([USER, asks({"id": "c", "type": "other"}), TOOL], "neither function nor custom"),
    "tool_name": (
        [USER, asks(CALL | {"function": {"name": "a b", "arguments": "{}"}}), TOOL],
        "is not a tool name: 'a b'",
    ),
    "arguments": (
        [USER, asks(CALL | {"function": {"name": "f", "arguments": {}}}), TOOL],
        "function.arguments: must be a string",
    ),
}


@each_of("case", CHAT)
def test_chat_rule(case):
    messages, problem = CHAT[case]

    found = validity_problems("openai_chat", {"model": "m", "messages": messages})

    assert any(problem in line for line in found), found


FUNCTION = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "c", "output": "ok"}
THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": []}

RESPONSES = {
    "empty": ([], "input: must not be empty"),
    "blank": ("", "input: must not be empty"),
    "no_result": ([USER, FUNCTION], "input[1]: the call `c` has no result"),
    "stray_result": ([USER, OUTPUT], "input[1].call_id: answers no earlier call: 'c'"),
    "early_result": ([USER, OUTPUT, FUNCTION], "answers no earlier call"),
    "other_kind": (
        [USER, FUNCTION, OUTPUT | {"type": "custom_tool_call_output"}],
        "answers no earlier call",
    ),
    "no_output": (
        [USER, FUNCTION, {"type": "function_call_output", "call_id": "c"}],
        "output: is missing",
    ),
    "same_id": ([USER, FUNCTION, FUNCTION, OUTPUT], "the id `c` is used twice"),
    "long_id": ([USER, FUNCTION | {"call_id": "x" * 65}], "is not a legal id"),
    "item_id": ([USER, FUNCTION | {"id": "call_1"}, OUTPUT], "must begin with `fc`: 'call_1'"),
    "arguments": ([USER, FUNCTION | {"arguments": {}}, OUTPUT], "arguments: must be a string"),
    "lone_thought": ([USER, THOUGHT], "input[1]: a reasoning item needs what was made of it"),
    "thought_before_user": ([THOUGHT, USER], "a reasoning item needs what was made of it"),
    "no_summary": ([USER, {"type": "reasoning"}], "summary: must be an array"),
    "role": ([{"role": "tool", "content": "x"}], "unknown role 'tool'"),
    "wrong_part": (
        [{"role": "user", "content": [{"type": "output_text", "text": "x"}]}],
        "a user says `input_text`, not `output_text`",
    ),
    "blank_part": (
        [{"role": "user", "content": [{"type": "input_text", "text": ""}]}],
        "must not be empty",
    ),
}


@each_of("case", RESPONSES)
def test_responses_rule(case):
    items, problem = RESPONSES[case]

    found = validity_problems("openai_responses", {"model": "m", "input": items})

    assert any(problem in line for line in found), found


USE = {"type": "tool_use", "id": "c", "name": "f", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "c", "content": "ok"}
TEXT = {"type": "text", "text": "hi"}
MARK = {"cache_control": {"type": "ephemeral"}}


def said(*blocks):
    return {"role": "assistant", "content": list(blocks)}


def told(*blocks):
    return {"role": "user", "content": list(blocks)}


MESSAGES = {
    "empty": ({"messages": []}, "messages: must not be empty"),
    "missing": ({}, "messages: is missing"),
    "no_limit": ({"max_tokens": None, "messages": [USER]}, "max_tokens: must be a whole number"),
    "assistant_first": ({"messages": [said(TEXT)]}, "the first message is the user's"),
    "role": ({"messages": [USER, {"role": "tool", "content": "x"}]}, "unknown role 'tool'"),
    "blank": ({"messages": [{"role": "user", "content": " "}]}, "content: must not be empty"),
    "no_blocks": ({"messages": [told()]}, "messages[0].content: must not be empty"),
    "blank_block": ({"messages": [told({"type": "text", "text": ""})]}, "must not be empty"),
    "blank_system": (
        {"system": [{"type": "text", "text": ""}], "messages": [USER]},
        "system[0].text: must not be empty",
    ),
    "system_type": ({"system": 7, "messages": [USER]}, "system: must be text or blocks"),
    "prefill": (
        {"messages": [USER, {"role": "assistant", "content": "So: "}]},
        "a prefill must not end with a space",
    ),
    "no_result": ({"messages": [USER, said(USE)]}, "the call `c` has no result in the next"),
    "half_answered": (
        {"messages": [USER, said(USE, USE | {"id": "d"}), told(RESULT)]},
        "the call `d` has no result",
    ),
    "stray_result": ({"messages": [told(RESULT)]}, "answers no call of the message before it"),
    "late_result": (
        {"messages": [USER, said(USE), USER, said(TEXT), told(RESULT)]},
        "answers no call of the message before it: 'c'",
    ),
    "text_first": (
        {"messages": [USER, said(USE), told(TEXT, RESULT)]},
        "results come before anything else",
    ),
    "bad_id": (
        {"messages": [USER, said(USE | {"id": "a.b"}), told(RESULT | {"tool_use_id": "a.b"})]},
        "is not a legal id: 'a.b'",
    ),
    "same_id": (
        {"messages": [USER, said(USE), told(RESULT), said(USE), told(RESULT)]},
        "the id `c` is used twice",
    ),
    "user_calls": ({"messages": [told(USE)]}, "only the assistant calls a tool"),
    "assistant_answers": ({"messages": [USER, said(RESULT)]}, "only the user gives a result"),
    "input": (
        {"messages": [USER, said(USE | {"input": "{}"}), told(RESULT)]},
        "input: must be an object",
    ),
    "five_marks": (
        {"messages": [told(*[TEXT | MARK] * 5)]},
        "cache_control: 5 cache marks, of which 4 are allowed",
    ),
    "marked_empty": (
        {"messages": [told(TEXT, {"type": "text", "text": ""} | MARK)]},
        "no cache mark may be on an empty text",
    ),
    "marked_thought": (
        {"messages": [USER, said({"type": "thinking", "thinking": "x", "signature": "s"} | MARK)]},
        "no cache mark may be on thinking",
    ),
    "unsigned": (
        {"messages": [USER, said({"type": "thinking", "thinking": "x"})]},
        "thinking must be signed",
    ),
    "thoughtless_loop": (
        {"thinking": {"type": "enabled"}, "messages": [USER, said(USE), told(RESULT)]},
        "the message of the last tool loop begins with thinking",
    ),
    "blank_result": (
        {"messages": [USER, said(USE), told(RESULT | {"content": [{"type": "text", "text": ""}]})]},
        "content[0].content[0].text: must not be empty",
    ),
    "tool_name": ({"tools": [{"name": "a b"}], "messages": [USER]}, "is not a tool name: 'a b'"),
}


@each_of("case", MESSAGES)
def test_messages_rule(case):
    fields, problem = MESSAGES[case]

    found = validity_problems(
        "anthropic_messages", {"model": "m", "max_tokens": 1024, **fields}, sdk=False
    )

    assert any(problem in line for line in found), found


def test_recorded_loop_without_thoughts_is_refused():
    request = json.loads((TESTS / "data" / "captures" / "pi-3.json").read_text())["request"]

    (problem,) = validity_problems("anthropic_messages", request["body"])

    assert problem.endswith("begins with thinking")


# --- all formats ---------------------------------------------------------------------------


@each_format
def test_model_is_required(wire_format):
    wrong = body(wire_format)
    del wrong["model"]

    assert "model: must be a string" in validity_problems(wire_format, wrong)


@pytest.mark.parametrize(
    ("given", "problem"), [("{", "the body is not JSON: "), ("[]", "the body is not a JSON object")]
)
def test_body_that_is_no_object_is_one_problem(given, problem):
    (found,) = validity_problems("openai_chat", given)

    assert found.startswith(problem)


def test_assertion_tells_every_problem():
    with pytest.raises(AssertionError) as caught:
        assert_valid_for("openai_chat", {"messages": []})

    assert str(caught.value).splitlines() == [
        "not a valid body of openai_chat:",
        "  model: must be a string",
        "  messages: must not be empty",
    ]


def test_unknown_wire_format_is_an_error():
    with pytest.raises(ValueError, match="known: openai_chat"):
        assert_valid_for("smoke_signals", {})


# --- official SDKs -------------------------------------------------------------------------


@each_format
def test_type_that_the_rules_do_not_know_is_refused_by_the_sdk(wire_format):
    wrong = body(wire_format) | {"metadata": 7}

    found = validity_problems(wire_format, wrong, sdk=True)

    assert any(p.startswith("metadata: ") and p.endswith("(official SDK)") for p in found)
    assert validity_problems(wire_format, wrong, sdk=False) == []


@each_format
def test_deep_mistake_is_seen_by_the_sdk(wire_format):
    """pydantic checks what is in an iterable only when it is read."""
    key = "input" if wire_format == "openai_responses" else "messages"
    wrong = body(wire_format)
    wrong[key] = [{"role": "user", "content": [{"type": "image", "source": 7}]}, *wrong[key][1:]]

    assert validity_problems(wire_format, wrong, sdk=True)


def test_missing_sdk_is_no_problem_unless_it_is_required(monkeypatch):
    def missing(name):
        raise ModuleNotFoundError(name)

    sdk = "switchyard_core.testing.validity"
    monkeypatch.setattr(f"{sdk}._adapter", missing)
    wrong = body("openai_chat") | {"metadata": 7}

    assert validity_problems("openai_chat", wrong) == []
    with pytest.raises(ImportError):
        validity_problems("openai_chat", wrong, sdk=True)
