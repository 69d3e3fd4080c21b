"""Tools of a neutral request in a Messages one, and which of them must be called."""

from __future__ import annotations

import json
from typing import Any

from switchyard_core.testing import validity_problems
from switchyard_core.wire import FORMATS
from switchyard_core.wire.neutral import (
    SCHEMA_TOOL,
    AskedTool,
    Call,
    Choice,
    Facts,
    NeutralRequest,
    Result,
    Schema,
    ToolName,
    Turn,
    Words,
)

MESSAGES = FORMATS["anthropic_messages"]
USER = Turn(role="user", parts=(Words(text="go"),))
READ, EDIT = ToolName(name="read"), ToolName(name="edit")
TOOLS = (AskedTool(tool=READ), AskedTool(tool=EDIT))
CLOSED = b'{"type":"object","properties":{},"additionalProperties":false}'
CALLED = (
    USER,
    Turn(role="assistant", parts=(Call(id="a", tool=EDIT), Call(id="b", tool=EDIT))),
    Turn(role="tool", parts=(Result(call_id="a"), Result(call_id="b"))),
)


def written(facts: Facts | None = None, **members: Any) -> tuple[dict[str, Any], list[str]]:
    """Return the body, and what was told; a wrong body fails."""
    request = NeutralRequest(**{"model": "m", "turns": (USER,), **members})
    raw = MESSAGES.write(request, facts or Facts())
    assert validity_problems("anthropic_messages", raw, sdk=True) == []
    return json.loads(raw), request.told.lines


def allowed(mode: Any, *tools: ToolName) -> Choice:
    return Choice(mode=mode, allowed=tools)


#: A choice, the tools that are offered, and the choice that is written.
CHOICES: list[tuple[Choice | None, bool | None, list[str], Any]] = [
    (None, None, ["read", "edit"], None),
    (None, True, ["read", "edit"], None),
    (None, False, ["read", "edit"], {"type": "auto", "disable_parallel_tool_use": True}),
    (Choice(mode="auto"), None, ["read", "edit"], {"type": "auto"}),
    (Choice(mode="none"), False, ["read", "edit"], {"type": "none"}),
    (
        Choice(mode="required"),
        False,
        ["read", "edit"],
        {"type": "any", "disable_parallel_tool_use": True},
    ),
    (allowed("required", EDIT), None, ["read", "edit"], {"type": "tool", "name": "edit"}),
    (allowed("required", EDIT, READ), None, ["read", "edit"], {"type": "any"}),
    (allowed("auto", EDIT), None, ["edit"], {"type": "auto"}),
    (allowed("auto", EDIT, ToolName(name="gone")), None, ["edit"], {"type": "auto"}),
    (allowed("auto", ToolName(name="gone")), None, ["read", "edit"], {"type": "none"}),
    (allowed("required", ToolName(name="gone")), None, ["read", "edit"], {"type": "none"}),
    (allowed("none", EDIT), None, ["read", "edit"], {"type": "none"}),
]


def test_choices_cut_tools_and_never_widen() -> None:
    wrong = []
    for choice, parallel, names, expected in CHOICES:
        body, _ = written(tools=TOOLS, choice=choice, parallel=parallel)
        found = [tool["name"] for tool in body["tools"]], body.get("tool_choice")
        if found != (names, expected):
            wrong.append((choice, parallel, found))
    assert wrong == []


def test_choice_without_tools_is_not_written() -> None:
    body, _ = written(choice=Choice(mode="auto"), parallel=False)
    assert body.keys() == {"model", "max_tokens", "messages"}


def test_history_with_calls_offers_their_tools_without_letting_the_model_call_them() -> None:
    body, told = written(turns=CALLED)
    empty = {"type": "object", "properties": {}}
    assert body["tools"] == [{"name": "edit", "input_schema": empty}]
    assert body["tool_choice"] == {"type": "none"}
    assert told == ["offered the history's tools, which must not be called"]


def test_tools_have_description_schema_strictness_and_mark() -> None:
    body, told = written(
        tools=(
            AskedTool(tool=READ, description="Reads.", parameters=CLOSED, strict=True),
            AskedTool(tool=EDIT, strict=True, cache=b'{"type":"ephemeral"}'),
        )
    )
    read, edit = body["tools"]
    assert read == {
        "name": "read",
        "description": "Reads.",
        "input_schema": json.loads(CLOSED),
        "strict": True,
    }
    assert edit["cache_control"] == {"type": "ephemeral"}
    assert "strict" not in edit
    assert told == ["left out `strict` of the tool `edit`"]


def test_strict_tools_are_at_most_twenty() -> None:
    names = [ToolName(name=f"tool_{n}") for n in range(22)]
    tools = tuple(AskedTool(tool=name, parameters=CLOSED, strict=True) for name in names)
    body, told = written(tools=tools)
    assert sum(tool.get("strict", False) for tool in body["tools"]) == 20
    assert told == [f"left out `strict` of the tool `tool_{n}`" for n in (20, 21)]


def test_free_text_is_one_input_whose_grammar_is_described() -> None:
    forms = (
        b'{"type":"grammar","syntax":"lark","definition":"start: /a/"}',
        b'{"type":"grammar","grammar":{"syntax":"lark","definition":"start: /a/"}}',
    )
    for form in forms:
        tool = AskedTool(tool=EDIT, description="Patches.", custom=True, grammar=form)
        body, told = written(tools=(tool,))
        (found,) = body["tools"]
        assert found["description"] == (
            "Patches.\n\nThe input is free text that follows this lark grammar:\nstart: /a/"
        )
        assert found["input_schema"]["properties"] == {"input": {"type": "string"}}
        assert found["input_schema"]["required"] == ["input"]
        assert told == []


def test_names_with_namespaces_or_odd_characters_are_the_same_everywhere() -> None:
    spaced, odd = ToolName(name="read", namespace="fs"), ToolName(name="lire é" * 30)
    about = "About files."
    tools = (
        AskedTool(tool=spaced, description="Reads.", about_namespace=about),
        AskedTool(tool=ToolName(name="write", namespace="fs"), about_namespace=about),
        AskedTool(tool=odd),
    )
    calls = Turn(role="assistant", parts=tuple(Call(id="", tool=t) for t in (spaced, odd)))
    body, _ = written(tools=tools, turns=(USER, calls), choice=allowed("required", odd))
    names = [tool["name"] for tool in body["tools"]]
    assert names[:2] == ["fs__read", "fs__write"]
    assert len(names[2]) <= 128
    assert [block["name"] for block in body["messages"][1]["content"]] == [names[0], names[2]]
    assert body["tool_choice"]["name"] == names[2]
    assert [tool.get("description") for tool in body["tools"]] == [f"{about}\n\nReads.", None, None]


def test_tools_of_one_name_are_offered_once() -> None:
    body, told = written(tools=(*TOOLS, AskedTool(tool=READ, description="again")))
    assert len({tool["name"] for tool in body["tools"]}) == len(body["tools"]) == 2
    assert told == ["left out an earlier tool `read` of the same name"]


def test_schema_is_a_forced_tool_where_the_model_has_no_other_way() -> None:
    forced = Facts(forced_schema=True)
    schema = Schema(schema=CLOSED, description="The title.")
    named, every = {"type": "tool", "name": SCHEMA_TOOL}, {"type": "any"}
    both = ["read", "edit", SCHEMA_TOOL]
    table: list[tuple[dict[str, Any], list[str], Any]] = [
        ({}, [SCHEMA_TOOL], named),
        ({"tools": TOOLS}, both, every),
        ({"tools": TOOLS, "choice": Choice(mode="none")}, both, named),
        ({"tools": TOOLS, "choice": allowed("auto", EDIT)}, ["edit", SCHEMA_TOOL], every),
        ({"tools": TOOLS, "choice": Choice(mode="required")}, ["read", "edit"], every),
        ({"turns": CALLED}, ["edit", SCHEMA_TOOL], named),
    ]
    wrong = []
    for members, names, choice in table:
        body, _ = written(forced, schema=schema, **members)
        found = [tool["name"] for tool in body["tools"]], body["tool_choice"]
        if found != (names, choice) or "output_config" in body:
            wrong.append((members, found))
    assert wrong == []
