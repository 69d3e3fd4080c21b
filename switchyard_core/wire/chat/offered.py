"""Tools of a Chat Completions request, and which of them must be called: read and written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from switchyard_core.jsonio.tree import ObjectText, array_of, object_of
from switchyard_core.wire.chat.asked import Holder, mark_of, objects_in, others_in, printable
from switchyard_core.wire.history import fixed_text
from switchyard_core.wire.naming import ToolNames
from switchyard_core.wire.neutral import (
    SCHEMA_TOOL,
    AskedTool,
    Choice,
    Facts,
    NeutralRequest,
    Told,
    ToolName,
    one_of_each,
    tell_lost_choice,
)
from switchyard_core.wire.schemas import FREE_TEXT, arguments_schema

__all__ = ["read_choice", "read_tools", "write_tools"]

_MODES: dict[str, Literal["none", "auto", "required"]] = {
    "none": "none",
    "auto": "auto",
    "required": "required",
    "any": "required",  # Mistral's word
}
_OF_TOOL = frozenset(
    {"type", "function", "custom", "name", "description", "parameters", "strict", "cache_control"}
)
#: Choices that leave room for the tool of a schema.
_FREE = (None, "auto", "none")


def read_tools(fields: ObjectText, told: Told) -> tuple[AskedTool, ...]:
    """Return the tools that the caller itself runs; name those that only its provider can."""
    tools = []
    for place, tool in objects_in(fields, "tools", "", told.lost):
        asked = _asked(tool)
        told.left_out += others_in(tool, _OF_TOOL, place) if asked is not None else []
        if asked is None:
            told.lost.append(f"{place} of type {printable(tool.text('type') or '')}")
        elif asked.tool.name:
            tools.append(asked)
        else:
            told.left_out.append(f"{place}, which has no name")
    for place, function in objects_in(fields, "functions", "", told.lost):
        if function.text("name"):
            tools.append(_function(function, b""))
        else:
            told.left_out.append(f"{place}, which has no name")
    if fields.raw("web_search_options") not in (None, b"null"):
        told.lost.append("web_search_options")
    return one_of_each(tools, told)


def _asked(tool: Holder) -> AskedTool | None:
    function, custom = tool.object("function"), tool.object("custom")
    if function is not None:
        return _function(function, mark_of(tool))
    if custom is not None:
        return _custom(custom, mark_of(tool))
    # Some clients leave out the level in between.
    flat = tool.text("type") in ("function", None) and tool.text("name")
    return _function(tool, b"") if flat else None


def _function(function: Holder, cache: bytes) -> AskedTool:
    parameters = function.raw("parameters") or b""
    return AskedTool(
        tool=ToolName(name=function.text("name") or ""),
        description=function.text("description") or "",
        parameters=parameters if parameters[:1] == b"{" else b"",
        strict={b"true": True, b"false": False}.get(function.raw("strict") or b""),
        cache=cache or mark_of(function),
    )


def _custom(custom: Holder, cache: bytes) -> AskedTool:
    form = custom.object("format")
    grammar = form.object("grammar") if form is not None else None
    return AskedTool(
        tool=ToolName(name=custom.text("name") or ""),
        description=custom.text("description") or "",
        custom=True,
        grammar=_grammar(grammar) if grammar is not None else b"",
        cache=cache,
    )


def _grammar(grammar: Holder) -> bytes:
    # Without the level that no other format has.
    members = {key: grammar.raw(key) for key in dict.fromkeys(grammar.keys())}
    return object_of({"type": "grammar", **members})


def read_choice(fields: ObjectText, told: Told) -> Choice | None:
    """Return which tools must be called; one that is lost leaves none, never all of them."""
    key = "tool_choice" if "tool_choice" in fields else "function_call"
    if fields.raw(key) in (None, b"null"):
        return None
    mode = _MODES.get(fields.text(key) or "")
    chosen = fields.object(key)
    if mode is not None:
        return Choice(mode=mode)
    if chosen is None:
        told.left_out.append(f"{key}, which is not of a known form")
        return None
    allowed = chosen.object("allowed_tools")
    listed: list[Holder] = [chosen]
    if allowed is not None:
        mode = _MODES.get(allowed.text("mode") or "", "auto")
        listed = [tool for _, tool in objects_in(allowed, "tools", f"{key}.", told.left_out)]
    named = tuple([found for tool in listed for found in _name(tool)])
    if len(named) < len(listed):
        told.lost.append(f"{key}, as far as it is no function")
    # Without any of them no tool may be called, never all of them.
    return Choice(mode=(mode or "required") if named else "none", allowed=named)


def _name(tool: Holder) -> Iterator[ToolName]:
    inner = tool.object("function") or tool.object("custom") or tool
    name = inner.text("name") or ""
    if name:
        yield ToolName(name=name)


# --- writing ---------------------------------------------------------------------------------


def write_tools(request: NeutralRequest, names: ToolNames, facts: Facts) -> dict[str, Any]:
    """Return the tools, and which of them must be called; nothing is widened."""
    tools, choice = _chosen(request, names)
    spaces = set[str]()
    made = [_written(tool, names, spaces, request.told) for tool in tools]
    schema = request.schema
    forced = facts.forced_schema and schema is not None and bool(schema.schema)
    if forced and choice not in _FREE:
        request.told.left_out.append("the schema of the answer, for a tool must be called")
    elif forced and schema is not None:
        about = schema.description or fixed_text("schema_tool")
        named = {"name": SCHEMA_TOOL, "description": about, "parameters": schema.schema}
        own = bool(made) and choice != "none"
        choice = "required" if own else _by_name(SCHEMA_TOOL)
        made.append(object_of({"type": "function", "function": object_of(named)}))
    if not made:
        return {}
    body: dict[str, Any] = {"tools": array_of(made)}
    if choice is not None:
        body["tool_choice"] = choice
    if request.parallel is not None:
        body["parallel_tool_calls"] = request.parallel
    return body


def _chosen(request: NeutralRequest, names: ToolNames) -> tuple[list[AskedTool], Any]:
    """Return the tools that the model may call; most servers know no allowed ones among others."""
    offered, choice = one_of_each(request.tools, request.told), request.choice
    tools = {tool.tool: tool for tool in offered}
    tell_lost_choice(request)
    if choice is None or not tools:
        return list(tools.values()), None
    allowed = [tools[each] for each in dict.fromkeys(choice.allowed) if each in tools]
    if choice.mode == "none" or not choice.allowed:
        return list(tools.values()), choice.mode
    if not allowed:
        request.told.changed.append("allowed no tool, for the allowed ones are not offered")
        return list(tools.values()), "none"
    if choice.mode == "required" and len(choice.allowed) == 1:
        return list(tools.values()), _by_name(names.at_target(allowed[0].tool).name)
    if len(allowed) < len(tools):
        request.told.changed.append(f"offered the {len(allowed)} allowed tools alone")
    return [tool for tool in tools.values() if tool in allowed], choice.mode


def _by_name(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name}}


def _written(tool: AskedTool, names: ToolNames, spaces: set[str], told: Told) -> bytes:
    """Return a tool as a function; ``spaces`` are the namespaces that were explained."""
    space = tool.tool.namespace
    about = tool.about_namespace if space not in spaces else ""
    spaces.add(space)
    described = (about, tool.description, _form_of(tool.grammar))
    function: dict[str, Any] = {"name": names.at_target(tool.tool).name}
    if description := "\n\n".join([text for text in described if text.strip()]):
        function["description"] = description
    # Some providers demand the parameters.
    schema = FREE_TEXT if tool.custom else arguments_schema(tool.parameters, tool.tool.name, told)
    function["parameters"] = schema
    if tool.strict is not None and not tool.custom:
        function["strict"] = tool.strict
    return object_of({"type": "function", "function": object_of(function)})


def _form_of(grammar: bytes) -> str:
    """Return what a description says of the form of free text."""
    form = ObjectText(grammar or b"{}")
    inner = form.object("grammar")
    form = form if inner is None else inner
    definition, syntax = form.text("definition"), form.text("syntax") or ""
    if not definition:
        return ""
    return fixed_text("grammar").format(syntax=syntax, definition=definition).strip()
