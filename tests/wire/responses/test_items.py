"""Reading the history of a Responses request."""

from __future__ import annotations

import json
from typing import Any

import pytest

from switchyard_core.errors import BodyError
from switchyard_core.jsonio.tree import ObjectText
from switchyard_core.wire.neutral import Call, Facts, Media, Result, Thought, ToolName, Turn, Words
from tests.wire.responses.bodies import CALL, OUTPUT, RESPONSES, parts, read


def message(role: str, *content: Any) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": list(content)}


def said(text: str, kind: str = "input_text") -> dict[str, Any]:
    return {"type": kind, "text": text}


def test_text_as_input_is_the_users() -> None:
    request = read("fix it")

    assert request.turns == (Turn(role="user", parts=(Words(text="fix it"),)),)


def test_leading_developer_and_system_messages_are_instructions() -> None:
    request = read(
        [
            {"role": "developer", "content": "Be brief."},
            {"type": "additional_tools", "role": "developer", "tools": []},
            message("system", said("Be kind."), said("Be good.")),
            {"role": "user", "content": "hi"},
            {"role": "developer", "content": "Stop soon."},
        ],
        instructions="You code.",
    )

    texts = [words.text for words in request.instructions]
    assert texts == ["You code.", "Be brief.", "Be kind.", "Be good."]
    assert [turn.role for turn in request.turns] == ["user", "system"]
    assert request.turns[1].parts == (Words(text="Stop soon."),)


def test_instructions_may_be_a_list_of_messages() -> None:
    request = read(instructions=[{"role": "developer", "content": "Be brief."}])

    assert request.instructions == (Words(text="Be brief."),)


def test_items_of_one_answer_are_one_turn_in_their_order() -> None:
    thought = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}]}
    free = {"type": "custom_tool_call", "call_id": "c2", "name": "patch", "input": "***"}
    request = read(
        [
            {"role": "user", "content": "a"},
            {"role": "user", "content": "b"},
            thought,
            message("assistant", said("Looking.", "output_text")),
            CALL,
            message("assistant", {"type": "refusal", "refusal": "No."}),
            free,
            OUTPUT,
            {"type": "custom_tool_call_output", "call_id": "c2", "output": "ok"},
        ]
    )

    assert [turn.role for turn in request.turns] == ["user", "assistant", "tool"]
    assert request.turns[0].parts == (Words(text="a"), Words(text="b"))
    assert request.turns[1].parts == (
        Thought(text="Hm."),
        Words(text="Looking."),
        Call(id="call_1", tool=ToolName(name="read"), arguments='{"p":1}'),
        Words(text="No.", refusal=True),
        Call(id="c2", tool=ToolName(name="patch"), arguments="***", custom=True),
    )
    assert request.turns[2].parts == (
        Result(call_id="call_1", parts=(Words(text="done"),)),
        Result(call_id="c2", parts=(Words(text="ok"),), custom=True),
    )
    assert request.told.lines == []


def test_images_and_files_are_read_wherever_they_are() -> None:
    pixel = "data:image/png;base64,AA=="
    cases = {
        "image": (
            {"type": "input_image", "image_url": pixel, "detail": "high"},
            Media(kind="image", url=pixel, detail="high"),
        ),
        "usual detail": (
            {"type": "input_image", "image_url": "https://x.test/a.png", "detail": "auto"},
            Media(kind="image", url="https://x.test/a.png"),
        ),
        "file": (
            {
                "type": "input_file",
                "filename": "a.pdf",
                "file_data": "data:application/pdf;base64,AA",
            },
            Media(kind="file", url="data:application/pdf;base64,AA", name="a.pdf"),
        ),
        "bare data": (
            {"type": "input_file", "filename": "a.pdf", "file_data": "AA=="},
            Media(kind="file", url="data:application/pdf;base64,AA==", name="a.pdf"),
        ),
        "address": (
            {"type": "input_file", "file_url": "https://x.test/a.pdf"},
            Media(kind="file", url="https://x.test/a.pdf"),
        ),
    }
    wrong = {}
    for name, (part, wanted) in cases.items():
        output = {**OUTPUT, "output": [said("see"), part]}
        request = read([message("user", said("look"), part), CALL, output])
        found = parts(request)
        result = Result(call_id="call_1", parts=(Words(text="see"), wanted))
        if found[1] != wanted or found[3] != result or request.told.lines:
            wrong[name] = found, request.told.lines
    assert wrong == {}


def test_thoughts_are_the_summary_or_the_reasoning_text() -> None:
    summary = [{"type": "summary_text", "text": text} for text in ("One.", " ", "Two.")]
    content = [{"type": "reasoning_text", "text": "Raw."}]
    cases = {
        "both": ({"summary": summary, "content": content}, ["One.\n\nTwo."]),
        "text alone": ({"summary": [], "content": content}, ["Raw."]),
        "blank": ({"summary": [{"type": "summary_text", "text": " "}], "content": None}, []),
        "odd": ({"summary": 7, "content": {"a": 1}}, []),
    }
    wrong = {}
    for name, (item, wanted) in cases.items():
        found = parts(read([{"type": "reasoning", **item}]))
        if found != [Thought(text=text) for text in wanted]:
            wrong[name] = found
    assert wrong == {}


def test_encrypted_reasoning_is_named_once() -> None:
    sealed = {"type": "reasoning", "summary": [], "encrypted_content": "gAAA"}

    assert read([sealed, CALL, OUTPUT, sealed]).told.lines == [
        "left out encrypted_content of reasoning"
    ]


def test_built_in_calls_become_calls_of_their_type() -> None:
    action, operation = {"type": "exec", "command": ["ls"]}, {"type": "delete_file", "path": "a"}
    shot = {"type": "computer_screenshot", "image_url": "data:image/png;base64,AA"}
    ran = [{"stdout": "a", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]
    cases = {
        "local_shell_call": ({"action": action}, {"id": "ls_1", "output": "a"}),
        "shell_call": ({"action": action}, {"output": ran}),
        "apply_patch_call": ({"operation": operation}, {"status": "failed", "output": "no"}),
        "computer_call": ({"actions": [{"type": "wait"}]}, {"output": shot}),
    }
    wanted = {
        "local_shell_call": Result(call_id="c1", parts=(Words(text="a"),)),
        "shell_call": Result(call_id="c1", parts=(Words(text=json.dumps(ran).replace(" ", "")),)),
        "apply_patch_call": Result(call_id="c1", parts=(Words(text="no"),), failed=True),
        "computer_call": Result(
            call_id="c1", parts=(Media(kind="image", url="data:image/png;base64,AA"),)
        ),
    }
    wrong = {}
    for kind, (given, output) in cases.items():
        named = {} if "id" in output else {"call_id": "c1"}
        request = read(
            [
                {"type": kind, "id": "ls_1", "call_id": "c1", **given},
                {"type": f"{kind}_output", **named, **output},
            ]
        )
        call, result = parts(request)
        assert isinstance(call, Call)
        asked = (call.id, call.tool, json.loads(call.arguments))
        if asked != ("c1", ToolName(name=kind), given) or result != wanted[kind]:
            wrong[kind] = call, result
        assert request.told.lines == []
    assert wrong == {}


#: What only the provider of a history can read or serve.
BOUND = (
    "web_search_call",
    "file_search_call",
    "code_interpreter_call",
    "image_generation_call",
    "mcp_call",
    "mcp_list_tools",
    "mcp_approval_request",
    "mcp_approval_response",
    "tool_search_call",
    "compaction",
    "compaction_summary",
    "context_compaction",
    "agent_message",
    "item_reference",
    "of_tomorrow",
)


def test_what_only_its_provider_has_is_named_with_its_place() -> None:
    items = [{"type": kind, "id": "x", "encrypted_content": "s"} for kind in BOUND]
    request = read([*items, {"id": "msg_1"}, {"role": "user", "content": "hi"}])

    places = [f"input[{at}] ({kind})" for at, kind in enumerate(BOUND)]
    assert request.told.lost == [*places, f"input[{len(BOUND)}] (item_reference)"]
    assert parts(request) == [Words(text="hi")]


def test_what_has_a_wrong_type_is_named_and_left_out() -> None:
    cases: dict[str, Any] = {
        "item": 7,
        "role": {"role": 7, "content": "x"},
        "content": {"role": "user", "content": {"a": 1}},
        "part": message("user", "text"),
        "type of a part": message("user", {"type": 7}),
        "text": message("user", said({"a": 1})),  # type: ignore[arg-type]
        "sound": message("user", {"type": "input_audio", "input_audio": {"data": "AA"}}),
        "image by id": message("user", {"type": "input_image", "file_id": "file_1"}),
        "image": message("user", {"type": "input_image", "image_url": {"url": "data:"}}),
        "file by id": message("user", {"type": "input_file", "file_id": "file_1"}),
        "call": {"type": "function_call", "call_id": "c1", "arguments": "{}"},
        "image of instructions": message("developer", {"type": "input_image", "image_url": "h"}),
        "no type": {"content": "x"},
    }
    wrong = {}
    for name, item in cases.items():
        request = read([item, {"role": "user", "content": "hi"}])
        if len(request.told.lost) != 1 or parts(request) != [Words(text="hi")]:
            wrong[name] = request.told.lost, parts(request)
    assert wrong == {}


def test_odd_calls_and_results_stay_readable() -> None:
    cases = {
        "arguments as an object": ({**CALL, "arguments": {"a": 1.10}}, OUTPUT),
        "no arguments": ({**CALL, "arguments": ""}, OUTPUT),
        "no call id": ({**CALL, "call_id": None, "id": "fc_1"}, {**OUTPUT, "call_id": 7}),
        "result of nothing": (CALL, {**OUTPUT, "output": " "}),
        "no output": (CALL, {"type": "function_call_output", "call_id": "call_1"}),
    }
    found = {name: parts(read([*items])) for name, items in cases.items()}
    shown = {
        name: (call.id, call.arguments, result.call_id, len(result.parts))
        for name, (call, result) in found.items()
        if isinstance(call, Call) and isinstance(result, Result)
    }

    assert shown == {
        "arguments as an object": ("call_1", '{"a":1.1}', "call_1", 1),
        "no arguments": ("call_1", "", "call_1", 1),
        "no call id": ("fc_1", '{"p":1}', "", 1),
        "result of nothing": ("call_1", '{"p":1}', "call_1", 0),
        "no output": ("call_1", '{"p":1}', "call_1", 0),
    }


def test_a_history_of_a_wrong_type_is_an_error_of_the_body() -> None:
    for history in (None, 7, {"a": 1}):
        with pytest.raises(BodyError, match="`input`"):
            read(history)


def test_a_history_at_the_provider_is_lost() -> None:
    for key, value in (
        ("previous_response_id", "resp_1"),
        ("conversation", {"id": "conv_1"}),
        ("prompt", {"id": "pmpt_1"}),
    ):
        assert read([OUTPUT], **{key: value}).told.lost == [key]
    assert RESPONSES.neutral(ObjectText(b'{"prompt":{"id":"p"}}')).turns == ()


def test_marks_of_its_own_are_named() -> None:
    cited = {**said("x", "output_text"), "annotations": [{"type": "file_citation"}]}
    marked = {**said("y"), "prompt_cache_breakpoint": {"mode": "explicit"}}
    request = read(
        [{**message("assistant", cited), "phase": "commentary"}, message("user", marked, marked)]
    )

    assert request.told.lines == [
        "left out the phase of messages",
        "left out annotations of input[0].content[0]",
        "left out cache marks",
    ]
    assert parts(request) == [Words(text="x"), Words(text="y"), Words(text="y")]


def test_half_a_character_is_read() -> None:
    fields = ObjectText(rb'{"input":[{"role":"user","content":"a \ud83d"}]}')
    request = RESPONSES.neutral(fields)

    assert parts(request) == [Words(text="a \ud83d")]
    assert rb"a \ud83d" in RESPONSES.write(request, Facts())
