"""Tools of a neutral request, and which of them the model must call, for Messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from switchyard_core.jsonio.tree import JsonTextError, loads
from switchyard_core.wire.history import fixed_text
from switchyard_core.wire.messages.schemas import closed, fits_strict
from switchyard_core.wire.messages.written import Block
from switchyard_core.wire.naming import ToolNames
from switchyard_core.wire.neutral import (
    SCHEMA_TOOL,
    AskedTool,
    Call,
    Facts,
    NeutralRequest,
    Told,
    one_of_each,
    tell_lost_choice,
)
from switchyard_core.wire.replies import table
from switchyard_core.wire.schemas import FREE_TEXT, NO_ARGUMENTS, arguments_schema

__all__ = ["schema_format", "write_tools"]

#: Tools that may be strict in one request, says the API.
_MOST_STRICT = 20


def write_tools(
    request: NeutralRequest, names: ToolNames, facts: Facts
) -> tuple[list[Block], dict[str, Any]]:
    """Return the tools, and the ``tool_choice``, ``{}`` for none."""
    tools, choice = _chosen(request, names)
    called = list(_called(request, names))
    if not tools and called:
        # The API refuses calls in the history without tools (anthropic-sdk-python#494).
        request.told.changed.append("offered the history's tools, which must not be called")
        tools = [Block({"name": name, "input_schema": NO_ARGUMENTS}) for name in called]
        choice = {"type": "none"}
    schema = request.schema
    free = choice.get("type") in (None, "auto", "none")
    if facts.forced_schema and schema is not None and schema.schema and free:
        about = schema.description or fixed_text("schema_tool")
        made = {"name": SCHEMA_TOOL, "description": about, "input_schema": schema.schema}
        own = bool(tools) and choice.get("type") != "none"
        choice = {"type": "any"} if own else {"type": "tool", "name": SCHEMA_TOOL}
        tools = [*tools, Block(made)]
    if request.parallel is False and tools and choice.get("type") != "none":
        choice = {"type": "auto", **choice, "disable_parallel_tool_use": True}
    return tools, choice


def _called(request: NeutralRequest, names: ToolNames) -> Iterator[str]:
    """Yield the name of every tool that the history has a call of, once."""
    calls = (p for turn in request.turns for p in turn.parts if isinstance(p, Call))
    yield from dict.fromkeys(names.at_target(call.tool).name for call in calls)


def _chosen(request: NeutralRequest, names: ToolNames) -> tuple[list[Block], dict[str, Any]]:
    """Return the tools that the model may call; allowed ones cut them, and nothing widens."""
    tools = {tool.tool: tool for tool in one_of_each(request.tools, request.told)}
    choice = request.choice
    tell_lost_choice(request)
    if choice is None or not tools:
        return _written(request, list(tools.values()), names), {}
    allowed = [tools[each] for each in dict.fromkeys(choice.allowed) if each in tools]
    kind = {"none": "none", "auto": "auto", "required": "any"}[choice.mode]
    if choice.allowed and not allowed:
        request.told.changed.append("allowed no tool, for the allowed ones are not offered")
        kind = "none"
    elif choice.mode == "required" and len(choice.allowed) == 1:
        name = names.at_target(allowed[0].tool).name
        named = {"type": "tool", "name": name}
        return _written(request, list(tools.values()), names), named
    elif choice.allowed and choice.mode != "none":
        if len(allowed) < len(tools):
            request.told.changed.append(f"offered the {len(allowed)} allowed tools alone")
        tools = {tool.tool: tool for tool in tools.values() if tool in allowed}
    return _written(request, list(tools.values()), names), {"type": kind}


def _written(request: NeutralRequest, tools: Sequence[AskedTool], names: ToolNames) -> list[Block]:
    told = request.told
    strict, spaces, blocks = 0, set[str](), []
    for tool in tools:
        made: dict[str, Any] = {"name": names.at_target(tool.tool).name}
        space = tool.tool.namespace
        about = tool.about_namespace if space not in spaces else ""
        spaces.add(space)
        told_of = [about, tool.description, _grammar(tool) if tool.grammar else ""]
        if description := "\n\n".join(text for text in told_of if text.strip()):
            made["description"] = description
        schema = _arguments(tool, told)
        made["input_schema"] = schema
        if tool.strict and not tool.custom:
            fits = strict < _MOST_STRICT and fits_strict(schema)
            strict += fits
            if fits:
                made["strict"] = True
            else:
                told.left_out.append(f"`strict` of the tool `{tool.tool.name}`")
        blocks.append(Block(made, tool.cache))
    return blocks


def _arguments(tool: AskedTool, told: Told) -> bytes:
    if tool.custom:
        return FREE_TEXT
    return arguments_schema(tool.parameters, tool.tool.name, told)


def _grammar(tool: AskedTool) -> str:
    """Return what a description says of the form of free text."""
    try:
        form: Mapping[str, Any] = table(loads(tool.grammar))
    except JsonTextError:
        return ""
    form = table(form.get("grammar")) or form
    syntax, definition = form.get("syntax"), form.get("definition")
    if not isinstance(definition, str):
        return ""
    return fixed_text("grammar").format(syntax=syntax, definition=definition).strip()


def schema_format(request: NeutralRequest) -> bytes:
    """Return the JSON of a schema as ``output_config`` takes it, ``b""`` for none."""
    schema = request.schema
    if schema is None:
        return b""
    if not schema.schema:
        request.told.left_out.append("JSON mode, which Messages has with a schema only")
        return b""
    return closed(schema.schema, request.told)
