"""Writing a call of our own in a wire format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from switchyard_core.answering import ModelCall, ToolSpec
from switchyard_core.declarations import WireFormat
from switchyard_core.jsonio.tree import encode
from switchyard_core.wire.items import user_item
from switchyard_core.wire.replies import read_reply
from switchyard_core.wire.structured import (
    StructuredOutput,
    schema_fields,
    schema_prompt,
    schema_tool,
    tool_choice,
)
from switchyard_core.wire.verbatim import encode_items

__all__ = ["compose", "left_out_sampling", "read_reply"]

#: Messages demands a limit; this one stands where the call sets none.
_DEFAULT_MAX_TOKENS = 4096
_HISTORY: Mapping[WireFormat, str] = MappingProxyType(
    {"openai_chat": "messages", "openai_responses": "input", "anthropic_messages": "messages"}
)
_LIMIT: Mapping[WireFormat, str] = MappingProxyType(
    {
        "openai_chat": "max_completion_tokens",
        "openai_responses": "max_output_tokens",
        "anthropic_messages": "max_tokens",
    }
)
#: The places that a wire format has for the neutral sampling settings.
_SAMPLING: Mapping[WireFormat, Mapping[str, str]] = MappingProxyType(
    {
        "openai_chat": {
            "temperature": "temperature",
            "top_p": "top_p",
            "stop": "stop",
            "seed": "seed",
            "frequency_penalty": "frequency_penalty",
            "presence_penalty": "presence_penalty",
        },
        "openai_responses": {"temperature": "temperature", "top_p": "top_p"},
        "anthropic_messages": {
            "temperature": "temperature",
            "top_p": "top_p",
            "top_k": "top_k",
            "stop": "stop_sequences",
        },
    }
)

#: The highest temperature, where a provider refuses a higher one.
_MOST_TEMPERATURE: Mapping[WireFormat, float] = MappingProxyType({"anthropic_messages": 1.0})


def compose(
    wire_format: WireFormat,
    call: ModelCall,
    model: str,
    structured_output: StructuredOutput = "json_schema",
) -> bytes:
    """Return the body of a call that is not streamed.

    Args:
        wire_format: Wire format of the target.
        call: What to ask.
        model: The provider's model id.
        structured_output: How the target is made to follow ``call.schema``. ``read_reply`` must
            be told the schema's name when it is ``forced_tool``.
    """
    forced = call.schema is not None and structured_output == "forced_tool"
    instructions = call.instructions
    if call.schema is not None and structured_output == "prompt":
        instructions = "\n\n".join(filter(None, (instructions, schema_prompt(call))))
    items = call.items or (user_item(wire_format, call.text, call.images),)
    body = {"model": model, **_conversation(wire_format, instructions, items)}
    if wire_format == "openai_responses":
        body["store"] = False
        if call.keep_reasoning:
            body["include"] = ["reasoning.encrypted_content"]
    if call.schema is not None and structured_output == "json_schema":
        body |= schema_fields(wire_format, call)
    tools = (*call.tools, schema_tool(call)) if forced else call.tools
    if tools:
        body["tools"] = [_tool(wire_format, tool) for tool in tools]
    if forced:
        body["tool_choice"] = tool_choice(wire_format, call.schema_name)
    limit = call.max_output_tokens
    if limit is not None or wire_format == "anthropic_messages":
        body[_LIMIT[wire_format]] = _DEFAULT_MAX_TOKENS if limit is None else limit
    body |= _sampling(wire_format, call)
    return _encoded(body, _HISTORY[wire_format])


def left_out_sampling(wire_format: WireFormat, sampling: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the sampling settings that a call in a wire format leaves out.

    Args:
        wire_format: Wire format of the target.
        sampling: As in ``ModelCall.sampling``; a value of ``None`` stands for absent.
    """
    places = _SAMPLING[wire_format]
    return tuple(
        name for name, value in sampling.items() if value is not None and name not in places
    )


def _conversation(
    wire_format: WireFormat, instructions: str, items: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    history = _HISTORY[wire_format]
    if not instructions:
        return {history: items}
    if wire_format == "openai_chat":
        return {history: ({"role": "system", "content": instructions}, *items)}
    key = "instructions" if wire_format == "openai_responses" else "system"
    return {key: instructions, history: items}


def _tool(wire_format: WireFormat, tool: ToolSpec | Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(tool, ToolSpec):
        return dict(tool)
    named = {"name": tool.name, "description": tool.description}
    parameters = dict(tool.parameters)
    if wire_format == "openai_chat":
        return {"type": "function", "function": {**named, "parameters": parameters}}
    if wire_format == "openai_responses":
        # Without a word the provider makes every parameter required.
        return {"type": "function", **named, "parameters": parameters, "strict": False}
    return {**named, "input_schema": parameters}


def _sampling(wire_format: WireFormat, call: ModelCall) -> dict[str, Any]:
    settings = dict(call.sampling)
    if call.temperature is not None:
        settings["temperature"] = call.temperature
    stop = settings.get("stop")
    if stop is not None:
        settings["stop"] = [stop] if isinstance(stop, str) else list(stop)
    warmth, most = settings.get("temperature"), _MOST_TEMPERATURE.get(wire_format)
    if warmth is not None and most is not None and warmth > most:
        # The formats of OpenAI go up to 2, and a caller of theirs may use that.
        settings["temperature"] = most
    return {
        key: settings[name]
        for name, key in _SAMPLING[wire_format].items()
        if settings.get(name) is not None
    }


def _encoded(body: Mapping[str, Any], history: str) -> bytes:
    members = (
        encode(key) + b":" + (encode_items(value) if key == history else encode(value))
        for key, value in body.items()
    )
    return b"{" + b",".join(members) + b"}"
