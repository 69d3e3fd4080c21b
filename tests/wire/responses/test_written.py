"""Writing a neutral history as Responses items."""

from __future__ import annotations

from typing import Any

from switchyard_core.testing import validity_problems
from switchyard_core.wire.neutral import (
    AskedTool,
    Call,
    Media,
    NeutralPart,
    NeutralRequest,
    Result,
    Thought,
    ToolName,
    Turn,
    Words,
)
from tests.wire.responses.bodies import written

PNG = "data:image/png;base64,AA=="
READ = ToolName(name="read")


def turn(role: Any, *parts: NeutralPart) -> Turn:
    return Turn(role=role, parts=parts)


def items(*turns: Turn, **others: Any) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the items of a history, and what was said of it."""
    request = NeutralRequest(model="gpt-5.5", turns=turns, **others)
    body = written(request)
    assert validity_problems("openai_responses", body, sdk=True) == []
    return body["input"], request.told.lines


def test_an_answer_is_written_in_the_order_of_its_parts() -> None:
    found, told = items(
        turn("user", Words(text="look"), Media(kind="image", url=PNG)),
        turn(
            "assistant",
            Words(text="Looking."),
            Words(text="There."),
            Call(id="call_1", tool=READ, arguments='{"p": 1}'),
            Words(text="No.", refusal=True),
            Call(
                id="c2",
                tool=ToolName(name="exec", namespace="functions"),
                arguments="***",
                custom=True,
            ),
        ),
        turn(
            "tool",
            Result(call_id="c2", parts=(Words(text="ok"),), custom=True),
            Result(call_id="call_1", parts=(Words(text="a"), Words(text="b"))),
        ),
        turn("system", Words(text="Be quick.")),
        turn("user", Words(text="go on")),
    )

    made = {"role": "assistant", "status": "completed"}
    assert found == [
        {
            "type": "message",
            "role": "user",
            "content": [
                {"type": "input_text", "text": "look"},
                {"type": "input_image", "image_url": PNG, "detail": "auto"},
            ],
        },
        {
            "type": "message",
            **made,
            "id": "msg_1",
            "content": [
                {"type": "output_text", "text": "Looking.", "annotations": []},
                {"type": "output_text", "text": "There.", "annotations": []},
            ],
        },
        {"type": "function_call", "call_id": "call_1", "name": "read", "arguments": '{"p": 1}'},
        {
            "type": "message",
            **made,
            "id": "msg_3",
            "content": [{"type": "refusal", "refusal": "No."}],
        },
        {
            "type": "custom_tool_call",
            "call_id": "c2",
            "name": "exec",
            "namespace": "functions",
            "input": "***",
        },
        {"type": "function_call_output", "call_id": "call_1", "output": "a\n\nb"},
        {"type": "custom_tool_call_output", "call_id": "c2", "output": "ok"},
        {
            "type": "message",
            "role": "developer",
            "content": [{"type": "input_text", "text": "Be quick."}],
        },
        {
            "type": "message",
            "role": "user",
            "content": [{"type": "input_text", "text": "go on"}],
        },
    ]
    assert told == []


def test_results_say_all_that_came_of_a_call() -> None:
    image = Media(kind="image", url=PNG, detail="low")
    shown = {"type": "input_image", "image_url": PNG, "detail": "low"}
    failed, empty = "[the tool call failed]", "[the tool returned nothing]"
    cases: dict[str, tuple[dict[str, Any], Any]] = {
        "text": ({"parts": (Words(text="a"),)}, "a"),
        "failed": ({"parts": (Words(text="a"),), "failed": True}, f"{failed}\na"),
        "empty": ({}, empty),
        "empty and failed": ({"failed": True}, f"{failed}\n{empty}"),
        "failed twice": (
            {"parts": (Words(text=f"{failed}\na"),), "failed": True},
            f"{failed}\na",
        ),
        "image": ({"parts": (image,)}, [shown]),
        "failed image": (
            {"parts": (image,), "failed": True},
            [{"type": "input_text", "text": failed}, shown],
        ),
        "text and image": (
            {"parts": (Words(text="a"), image)},
            [{"type": "input_text", "text": "a"}, shown],
        ),
    }
    wrong = {}
    for name, (given, wanted) in cases.items():
        call = turn("assistant", Call(id="call_1", tool=READ))
        found, _ = items(call, turn("tool", Result(call_id="call_1", **given)))
        if found[1]["output"] != wanted:
            wrong[name] = found[1]["output"]
    assert wrong == {}


def test_files_are_written_with_the_name_that_the_provider_demands() -> None:
    data = "data:application/pdf;base64,AA=="
    cases = {
        "named": (
            Media(kind="file", url=data, name="a.pdf"),
            {"type": "input_file", "filename": "a.pdf", "file_data": data},
        ),
        "nameless": (
            Media(kind="file", url=data),
            {"type": "input_file", "filename": "file.pdf", "file_data": data},
        ),
        "text": (
            Media(kind="file", url="data:text/plain;base64,aGk=", name="a.txt"),
            {"type": "input_text", "text": "a.txt:\nhi"},
        ),
        "nameless text": (
            Media(kind="file", url="data:text/csv,a%2Cb"),
            {"type": "input_text", "text": "a,b"},
        ),
        "address": (
            Media(kind="file", url="https://x.test/a.pdf", detail="high"),
            {"type": "input_file", "file_url": "https://x.test/a.pdf", "detail": "high"},
        ),
    }
    found = {name: items(turn("user", part))[0][0]["content"] for name, (part, _) in cases.items()}

    assert found == {name: [wanted] for name, (_, wanted) in cases.items()}


def test_calls_without_arguments_have_an_empty_object() -> None:
    found, _ = items(
        turn("assistant", Call(id="call_1", tool=READ)),
        turn("tool", Result(call_id="call_1", parts=(Words(text="x"),))),
    )

    assert found[0]["arguments"] == "{}"


def test_thoughts_and_marks_are_left_out_and_named_once() -> None:
    mark = b'{"type":"ephemeral"}'
    found, told = items(
        turn("user", Words(text="a", cache=mark), Words(text="b", cache=mark)),
        turn("assistant", Thought(text="Hm."), Words(text="c")),
        turn("user", Words(text="d")),
        turn("assistant", Thought(text="Hm.")),
        turn("user", Words(text="e")),
        tools=(AskedTool(tool=READ, cache=mark),),
    )

    assert sorted(told) == ["left out cache marks", "left out reasoning of earlier turns"]
    assert "Hm." not in str(found)


def test_images_of_anybody_but_the_user_are_lost_and_named() -> None:
    request = NeutralRequest(
        model="m",
        turns=(
            turn("assistant", Words(text="a"), Media(kind="image", url=PNG)),
            turn("system", Words(text="b"), Media(kind="file", url=PNG)),
        ),
    )
    written(request)

    assert request.told.lost == ["an image of the assistant", "a file of the developer"]
