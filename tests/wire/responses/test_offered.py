"""Tools of a Responses request and the choice among them: read, and written."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from switchyard_core.wire.neutral import (
    AskedTool,
    Choice,
    Facts,
    NeutralRequest,
    Schema,
    ToolName,
    Turn,
    Words,
)
from tests.wire.responses.bodies import FUNCTION, RESPONSES, read, written

GRAMMAR = {"type": "grammar", "syntax": "lark", "definition": "start: /x/"}
HI = (Turn(role="user", parts=(Words(text="hi"),)),)


def test_tools_are_read_wherever_they_are_offered() -> None:
    function = {
        "type": "function",
        "name": "wait",
        "description": "Waits.",
        "strict": True,
        "parameters": {"type": "object", "properties": {}},
    }
    custom = {"type": "custom", "name": "exec", "format": GRAMMAR}
    free = {"type": "custom", "name": "say", "format": {"type": "text"}}
    space = {"type": "namespace", "name": "functions", "description": "Runs.", "tools": [custom]}
    found = {"type": "tool_search_output", "call_id": "c", "tools": [free]}
    request = read(
        [
            {"type": "additional_tools", "role": "developer", "tools": [space]},
            {"role": "user", "content": "hi"},
            found,
        ],
        tools=[function],
    )

    assert request.tools == (
        AskedTool(
            tool=ToolName(name="wait"),
            description="Waits.",
            parameters=b'{"type":"object","properties":{}}',
            strict=True,
        ),
        AskedTool(
            tool=ToolName(name="exec", namespace="functions"),
            custom=True,
            grammar=b'{"type":"grammar","syntax":"lark","definition":"start: /x/"}',
            about_namespace="Runs.",
        ),
        AskedTool(tool=ToolName(name="say"), custom=True),
    )
    assert request.told.lost == ["input[2] (tool_search_output)"]


def test_tools_that_only_a_provider_runs_are_named() -> None:
    hosted = (
        *("web_search", "web_search_preview", "file_search", "code_interpreter", "tool_search"),
        *("image_generation", "local_shell", "shell", "apply_patch", "computer_use_preview"),
    )
    mcp = {"type": "mcp", "server_label": "docs", "server_url": "https://x.test"}
    odd = [7, {"type": "function"}, {"name": "x"}]
    nested = {"type": "namespace", "name": "n", "tools": [{"type": "web_search"}]}
    request = read(tools=[*({"type": kind} for kind in hosted), mcp, *odd, nested])

    at = len(hosted)
    assert request.tools == ()
    assert request.told.lost == [
        *(f"tools[{number}] ({kind})" for number, kind in enumerate(hosted)),
        f"tools[{at}] (mcp docs)",
        f"tools[{at + 1}] (of no known type)",
        f"tools[{at + 2}] (function)",
        f"tools[{at + 3}] (of no known type x)",
        f"tools[{at + 4}].tools[0] (web_search)",
    ]
    assert read(tools={"a": 1}).told.lost == ["tools, which is not an array"]


def test_the_last_tool_of_a_name_counts() -> None:
    request = read(tools=[FUNCTION, {**FUNCTION, "description": "Newer."}])

    assert [tool.description for tool in request.tools] == ["Newer."]


#: Each form of the choice, what it says, and what is lost.
CHOICES: dict[str, tuple[Any, Choice | None, list[str]]] = {
    "none": ("none", Choice(mode="none"), []),
    "auto": ("auto", Choice(mode="auto"), []),
    "required": ("required", Choice(mode="required"), []),
    "unsaid": (None, None, []),
    "function": (
        {"type": "function", "name": "read"},
        Choice(mode="required", allowed=(ToolName(name="read"),)),
        [],
    ),
    "custom": (
        {"type": "custom", "name": "patch"},
        Choice(mode="required", allowed=(ToolName(name="patch"),)),
        [],
    ),
    "allowed": (
        {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "read"}]},
        Choice(mode="auto", allowed=(ToolName(name="read"),)),
        [],
    ),
    "some of the allowed": (
        {
            "type": "allowed_tools",
            "mode": "required",
            "tools": [{"type": "custom", "name": "patch"}, {"type": "web_search"}],
        },
        Choice(mode="required", allowed=(ToolName(name="patch"),)),
        ["tool_choice.tools[1]"],
    ),
    "hosted ones allowed": (
        {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "image_generation"}]},
        Choice(mode="none"),
        ["tool_choice.tools[0]"],
    ),
    "hosted": (
        {"type": "web_search_preview"},
        Choice(mode="none"),
        ["tool_choice (web_search_preview)"],
    ),
    "server": ({"type": "mcp", "server_label": "x"}, Choice(mode="none"), ["tool_choice (mcp)"]),
    "built in": ({"type": "apply_patch"}, Choice(mode="none"), ["tool_choice (apply_patch)"]),
}


def test_a_choice_is_never_widened() -> None:
    wrong = {}
    for name, (asked, choice, lost) in CHOICES.items():
        request = read(tools=[FUNCTION], tool_choice=asked)
        if (request.choice, request.told.lost) != (choice, lost):
            wrong[name] = request.choice, request.told.lost
    assert wrong == {}


def test_a_choice_of_another_type_is_named() -> None:
    for asked in (7, "any", [1]):
        request = read(tools=[FUNCTION], tool_choice=asked)
        assert (request.choice, request.told.lines) == (
            None,
            ["left out tool_choice, which is not of a known form"],
        )


# --- writing -----------------------------------------------------------------------------


def offering(*tools: AskedTool, choice: Choice | None = None) -> NeutralRequest:
    return NeutralRequest(model="m", turns=HI, tools=tools, choice=choice)


def test_tools_of_a_namespace_are_written_together() -> None:
    about = {"about_namespace": "Runs."}
    exec_, wait = (ToolName(name=name, namespace="functions") for name in ("exec", "wait"))
    body = written(
        offering(
            AskedTool(tool=exec_, custom=True, grammar=b'{"type":"text"}', **about),
            AskedTool(tool=ToolName(name="read"), description="Reads.", strict=True),
            AskedTool(
                tool=wait, parameters=b'{"type":"object","additionalProperties":false}', **about
            ),
        )
    )

    schema = {"type": "object", "properties": {}}
    wait_schema = {"type": "object", "additionalProperties": False, "properties": {}}
    assert body["tools"] == [
        {
            "type": "namespace",
            "name": "functions",
            "description": "Runs.",
            "tools": [
                {"type": "custom", "name": "exec", "format": {"type": "text"}},
                {"type": "function", "name": "wait", "parameters": wait_schema, "strict": False},
            ],
        },
        {
            "type": "function",
            "name": "read",
            "description": "Reads.",
            "parameters": schema,
            "strict": True,
        },
    ]


def test_names_are_those_of_the_target() -> None:
    long = ToolName(name="x" * 70 + ".y")
    body = written(offering(AskedTool(tool=long), choice=Choice(mode="required", allowed=(long,))))

    name = body["tools"][0]["name"]
    assert len(name) == 64
    assert body["tool_choice"] == {"type": "function", "name": name}


def test_choices_are_written_as_narrow_as_they_are() -> None:
    read_, patch, gone = ToolName(name="read"), ToolName(name="patch"), ToolName(name="gone")
    tools = AskedTool(tool=read_), AskedTool(tool=patch, custom=True)
    function, custom = {"type": "function", "name": "read"}, {"type": "custom", "name": "patch"}
    both = {"type": "allowed_tools", "tools": [function, custom]}
    cases = {
        "auto": (Choice(mode="auto"), "auto"),
        "none": (Choice(mode="none", allowed=(read_,)), "none"),
        "required": (Choice(mode="required"), "required"),
        "by name": (Choice(mode="required", allowed=(read_,)), function),
        "free text": (Choice(mode="required", allowed=(patch,)), custom),
        "one may": (
            Choice(mode="auto", allowed=(patch,)),
            {"type": "allowed_tools", "mode": "auto", "tools": [custom]},
        ),
        "some must": (
            Choice(mode="required", allowed=(read_, patch)),
            {**both, "mode": "required"},
        ),
        "not offered": (Choice(mode="required", allowed=(gone,)), "none"),
        "one not offered": (Choice(mode="required", allowed=(gone, read_)), function),
    }
    found = {name: written(offering(*tools, choice=asked)) for name, (asked, _) in cases.items()}

    assert {name: body["tool_choice"] for name, body in found.items()} == {
        name: wanted for name, (_, wanted) in cases.items()
    }


def test_a_choice_without_tools_is_left_out() -> None:
    request = offering(choice=Choice(mode="required"))

    assert "tool_choice" not in written(request)
    assert request.told.lines == ["left out the choice of a tool, for there are none"]


def test_a_schema_may_be_asked_for_by_a_tool() -> None:
    read_, own = ToolName(name="read"), (AskedTool(tool=ToolName(name="read")),)
    pointer = {"type": "function", "name": "read"}
    asked = {"type": "function", "name": "structured_answer"}
    cases = {
        "alone": ((), None, asked),
        "beside tools": (own, None, "required"),
        "beside tools that may be called": (own, Choice(mode="auto"), "required"),
        "beside tools that may not": (own, Choice(mode="none"), asked),
        "beside allowed ones": (
            own,
            Choice(mode="auto", allowed=(read_,)),
            {"type": "allowed_tools", "mode": "required", "tools": [pointer, asked]},
        ),
    }
    wrong = {}
    for name, (tools, choice, wanted) in cases.items():
        request = replace(
            offering(*tools, choice=choice), schema=Schema(schema=b'{"type":"object"}')
        )
        body = json.loads(RESPONSES.write(request, Facts(forced_schema=True)))
        if body["tool_choice"] != wanted or body["tools"][-1]["name"] != asked["name"]:
            wrong[name] = body
        assert "text" not in body
    assert wrong == {}


def test_a_tool_that_must_be_called_stands_over_the_schema() -> None:
    tools = (AskedTool(tool=ToolName(name="read")),)
    request = replace(
        offering(*tools, choice=Choice(mode="required")), schema=Schema(schema=b'{"type":"object"}')
    )
    body = json.loads(RESPONSES.write(request, Facts(forced_schema=True)))

    assert (body["tool_choice"], len(body["tools"])) == ("required", 1)
    assert request.told.lines == [
        "left out the schema of the answer, beside tools that must be called"
    ]


def test_bare_name_of_a_choice_is_the_tool_of_the_one_namespace_that_has_it() -> None:
    tool = {"type": "namespace", "name": "ns", "tools": [FUNCTION]}
    meant = ToolName(name=FUNCTION["name"], namespace="ns")
    for name in (FUNCTION["name"], f"ns__{FUNCTION['name']}"):
        by_name = {"type": "function", "name": name}
        allowed = {"type": "allowed_tools", "mode": "auto", "tools": [by_name]}

        assert read(tools=[tool], tool_choice=by_name).choice == Choice(
            mode="required", allowed=(meant,)
        )
        assert read(tools=[tool], tool_choice=allowed).choice == Choice(
            mode="auto", allowed=(meant,)
        )

    two = [tool, {**tool, "name": "other"}]
    unknown = ToolName(name=FUNCTION["name"])
    by_name = {"type": "function", "name": FUNCTION["name"]}
    assert read(tools=two, tool_choice=by_name).choice == Choice(
        mode="required", allowed=(unknown,)
    )
