"""Tools of a Responses request, and which of them must be called: read and written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import msgspec

from switchyard_core.jsonio.tree import array_of, encode, loads, object_of
from switchyard_core.wire.history import NULL, decode_items, decode_one, fixed_text, word
from switchyard_core.wire.naming import ToolNames, flat_name
from switchyard_core.wire.neutral import (
    SCHEMA_TOOL,
    AskedTool,
    Choice,
    NeutralRequest,
    Told,
    ToolName,
    one_of_each,
)
from switchyard_core.wire.schemas import arguments_schema
from switchyard_core.wire.shapes import type_of

__all__ = ["Offered", "by_tool", "in_spaces", "read_choice", "write_choice", "write_tools"]


class _Tool(msgspec.Struct):
    type: Any = None
    name: Any = None
    namespace: Any = None
    description: Any = None
    strict: Any = None
    parameters: msgspec.Raw = NULL
    format: msgspec.Raw = NULL
    tools: msgspec.Raw = NULL
    server_label: Any = None
    mode: Any = None


class Offered:
    """The tools that a request offers, wherever they are; the last one of a name counts."""

    def __init__(self, told: Told) -> None:
        self._told = told
        self._found: dict[ToolName, AskedTool] = {}

    @property
    def tools(self) -> tuple[AskedTool, ...]:
        """All that the caller itself runs."""
        return tuple(self._found.values())

    def add(self, raw: bytes | None, place: str, space: _Tool | None = None) -> None:
        """Add the tools of an array; name those that only its provider can run."""
        if raw is None or raw == b"null":
            return
        if raw[:1] != b"[":
            self._told.lost.append(f"{place}, which is not an array")
            return
        for index, tool in enumerate(decode_items(raw, _Tool)):
            self._add(tool, f"{place}[{index}]", space)

    def _add(self, tool: _Tool | None, place: str, space: _Tool | None) -> None:
        kind = word(tool.type) if tool is not None else ""
        name = word(tool.name) if tool is not None else ""
        if tool is None or not name or kind not in ("function", "custom", "namespace"):
            label = name or (word(tool.server_label) if tool is not None else "")
            named = f"{kind or 'of no known type'}{f' {label}' if label else ''}"
            self._told.lost.append(f"{place} ({named})")
        elif kind == "namespace":
            self.add(bytes(tool.tools), f"{place}.tools", tool)
        else:
            asked = _asked(tool, space)
            one_of_each((*filter(None, (self._found.get(asked.tool),)), asked), self._told)
            self._found[asked.tool] = asked


def _asked(tool: _Tool, space: _Tool | None) -> AskedTool:
    parameters, form = bytes(tool.parameters), bytes(tool.format)
    custom = tool.type == "custom"
    free = form[:1] != b"{" or loads(form).get("type") != "grammar"
    return AskedTool(
        tool=ToolName(name=tool.name, namespace=word(space.name) if space is not None else ""),
        description=word(tool.description),
        parameters=parameters if type_of(parameters) == "object" and not custom else b"",
        strict=tool.strict if isinstance(tool.strict, bool) else None,
        custom=custom,
        grammar=b"" if free or not custom else form,
        about_namespace=word(space.description) if space is not None else "",
    )


def read_choice(raw: bytes | None, told: Told) -> Choice | None:
    """Return which tools must be called; one that is lost leaves none, never all of them."""
    if raw is None or raw == b"null":
        return None
    if raw[:1] == b'"':
        mode = loads(raw)
        if mode in ("none", "auto", "required"):
            return Choice(mode=mode)
    asked = decode_one(raw, _Tool) if raw[:1] == b"{" else None
    if asked is None:
        told.left_out.append("tool_choice, which is not of a known form")
        return None
    if asked.type == "allowed_tools":
        return _allowed(asked, told)
    name = _chosen(asked)
    if name is not None:
        return Choice(mode="required", allowed=(name,))
    told.lost.append(f"tool_choice ({word(asked.type) or 'of no known type'})")
    return Choice(mode="none")


def in_spaces(choice: Choice | None, tools: Sequence[AskedTool]) -> Choice | None:
    """Return a choice whose bare names are those of tools in a namespace, where one has each.

    A choice by name has no place for the namespace.
    """
    if choice is None or not choice.allowed:
        return choice
    offered = [each.tool for each in tools]
    return replace(choice, allowed=tuple([_meant(name, offered) for name in choice.allowed]))


def _meant(name: ToolName, offered: Sequence[ToolName]) -> ToolName:
    if name in offered or name.namespace:
        return name
    found = [each for each in offered if name.name in (each.name, flat_name(each))]
    return found[0] if len(found) == 1 else name


def _allowed(asked: _Tool, told: Told) -> Choice:
    raw = bytes(asked.tools)
    tools = decode_items(raw, _Tool) if raw[:1] == b"[" else []
    found = [None if tool is None else _chosen(tool) for tool in tools]
    told.lost += [f"tool_choice.tools[{at}]" for at, name in enumerate(found) if name is None]
    allowed = tuple([name for name in found if name is not None])
    mode: Literal["auto", "required"] = "required" if asked.mode == "required" else "auto"
    return Choice(mode=mode, allowed=allowed) if allowed else Choice(mode="none")


def _chosen(tool: _Tool) -> ToolName | None:
    if tool.type not in ("function", "custom") or not word(tool.name):
        return None
    return ToolName(name=tool.name, namespace=word(tool.namespace))


# --- writing -----------------------------------------------------------------------------


def by_tool(request: NeutralRequest) -> NeutralRequest:
    """Return the request with a tool that the model must call in the place of its schema."""
    schema, choice = request.schema, request.choice
    if schema is None or not schema.schema:
        return request
    if choice is not None and choice.mode == "required":
        told = "the schema of the answer, beside tools that must be called"
        request.told.left_out.append(told)
        return replace(request, schema=None)
    name, about = ToolName(name=SCHEMA_TOOL), schema.description or fixed_text("schema_tool")
    tool = AskedTool(tool=name, description=about, parameters=schema.schema)
    alone = not request.tools or (choice is not None and choice.mode == "none")
    allowed = () if alone or choice is None else choice.allowed
    forced = Choice(mode="required", allowed=(*allowed, name) if alone or allowed else ())
    return replace(request, tools=(*request.tools, tool), choice=forced, schema=None)


def write_tools(tools: Sequence[AskedTool], names: ToolNames, told: Told) -> bytes:
    """Return the array of tools, those of a namespace together; ``b""`` without any."""
    groups: dict[tuple[str, int], list[AskedTool]] = {}
    for number, tool in enumerate(one_of_each(tools, told)):
        space = tool.tool.namespace
        groups.setdefault((space, 0 if space else number), []).append(tool)
    return array_of([_group(group, names, told) for group in groups.values()]) if groups else b""


def _group(tools: Sequence[AskedTool], names: ToolNames, told: Told) -> bytes:
    space, written = tools[0].tool.namespace, [_written(tool, names, told) for tool in tools]
    if not space:
        return written[0]
    about = next((tool.about_namespace for tool in tools if tool.about_namespace), "")
    named = {"type": "namespace", "name": space, "description": about}
    return object_of({**named, "tools": array_of(written)})


def _written(tool: AskedTool, names: ToolNames, told: Told) -> bytes:
    name = names.at_target(tool.tool).name
    members: dict[str, Any] = {"type": "custom" if tool.custom else "function", "name": name}
    if tool.description:
        members["description"] = tool.description
    if tool.custom:
        if tool.grammar:
            members["format"] = tool.grammar
    else:
        members["parameters"] = arguments_schema(tool.parameters, tool.tool.name, told)
        # Without it the provider would demand every parameter.
        members["strict"] = bool(tool.strict)
    return object_of(members)


def write_choice(request: NeutralRequest, names: ToolNames) -> dict[str, Any]:
    """Return ``tool_choice``; of the allowed tools only those that are offered."""
    choice = request.choice
    if choice is None:
        return {}
    if choice.mode == "none" or not choice.allowed:
        return {"tool_choice": choice.mode}
    offered = {tool.tool: tool for tool in request.tools}
    tools = [_pointer(offered[each], names) for each in choice.allowed if each in offered]
    if not tools:
        request.told.changed.append("allowed no tool, for the allowed ones are not offered")
        return {"tool_choice": "none"}
    if choice.mode == "required" and len(tools) == 1:
        return {"tool_choice": encode(tools[0])}
    return {"tool_choice": encode({"type": "allowed_tools", "mode": choice.mode, "tools": tools})}


def _pointer(tool: AskedTool, names: ToolNames) -> dict[str, Any]:
    name = names.at_target(tool.tool)
    space = {"namespace": name.namespace} if name.namespace else {}
    return {"type": "custom" if tool.custom else "function", "name": name.name, **space}
