"""Making a model answer by a schema: natively, by a tool it has to call, or by asking for it."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any, Literal

import tomli

from switchyard_core.answering import ModelCall, ToolSpec
from switchyard_core.declarations import WireFormat
from switchyard_core.jsonio.tree import encode

__all__ = ["StructuredOutput", "schema_fields", "schema_prompt", "schema_tool", "tool_choice"]

#: Ways to make a target answer by a schema.
StructuredOutput = Literal["json_schema", "forced_tool", "prompt"]


def schema_fields(wire_format: WireFormat, call: ModelCall) -> dict[str, Any]:
    """Return the members of a body that ask for a call's schema in the format's own way."""
    strict = {"strict": True, "schema": dict(call.schema or {})}
    if wire_format == "openai_chat":
        named = {"name": call.schema_name, **strict}
        return {"response_format": {"type": "json_schema", "json_schema": named}}
    if wire_format == "openai_responses":
        return {"text": {"format": {"type": "json_schema", "name": call.schema_name, **strict}}}
    return {"output_config": {"format": {"type": "json_schema", "schema": strict["schema"]}}}


def schema_tool(call: ModelCall) -> ToolSpec:
    """Return the tool whose arguments are the reply."""
    return ToolSpec(
        name=call.schema_name, description=_texts()["tool"], parameters=dict(call.schema or {})
    )


def tool_choice(wire_format: WireFormat, name: str) -> dict[str, Any]:
    """Return the value of ``tool_choice`` that makes a model call one tool."""
    if wire_format == "openai_chat":
        return {"type": "function", "function": {"name": name}}
    kind = "function" if wire_format == "openai_responses" else "tool"
    return {"type": kind, "name": name}


def schema_prompt(call: ModelCall) -> str:
    """Return what asks for the schema in words."""
    return f"{_texts()['prompt'].strip()}\n\n{encode(dict(call.schema or {})).decode()}"


@cache
def _texts() -> dict[str, str]:
    return tomli.loads((files(__package__) / "structured.toml").read_text("utf-8"))
