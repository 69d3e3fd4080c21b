"""Writing a call of our own in a wire format, and reading the answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from switchyard_core.asking import ModelCall, ModelReply, ModelUsage, RequestedCall, ToolSpec
from switchyard_core.declarations import WireFormat
from switchyard_core.jsontext import JsonTextError, encode, loads

__all__ = ["compose", "read_reply"]

#: Messages demands a limit; this one stands where the call sets none.
_DEFAULT_MAX_TOKENS = 4096


def compose(wire_format: WireFormat, call: ModelCall, model: str) -> bytes:
    """Return the body of a call that is not streamed.

    Args:
        wire_format: Wire format of the target.
        call: What to ask.
        model: The provider's model id.
    """
    body = {"model": model, **_WRITERS[wire_format](call)}
    if call.tools:
        body["tools"] = [dict(tool) for tool in call.tools if not isinstance(tool, ToolSpec)]
    if call.temperature is not None:
        body["temperature"] = call.temperature
    return encode(body)


def read_reply(wire_format: WireFormat, body: bytes) -> ModelReply:
    """Return what a whole answer says.

    Raises:
        ValueError: The body is no answer of the wire format.
    """
    try:
        tree = loads(body)
        if isinstance(tree, dict):
            return _READERS[wire_format](tree)
    except (JsonTextError, LookupError, TypeError, AttributeError) as error:
        msg = f"not an answer of {wire_format}: {error}"
        raise ValueError(msg) from None
    msg = f"not an answer of {wire_format}: not an object"
    raise ValueError(msg)


def _items(call: ModelCall) -> list[dict[str, Any]]:
    if call.items:
        return [dict(item) for item in call.items]
    return [{"role": "user", "content": call.text}]


# --- Chat --------------------------------------------------------------------------------


def _chat(call: ModelCall) -> dict[str, Any]:
    body: dict[str, Any] = {"messages": _items(call)}
    if call.instructions:
        body["messages"].insert(0, {"role": "system", "content": call.instructions})
    if call.schema is not None:
        schema = {"name": call.schema_name, "strict": True, "schema": dict(call.schema)}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    if call.max_output_tokens is not None:
        body["max_completion_tokens"] = call.max_output_tokens
    return body


def _chat_reply(tree: Mapping[str, Any]) -> ModelReply:
    choice = tree["choices"][0]
    message = choice["message"]
    calls = tuple(
        RequestedCall(
            id=call["id"],
            name=call["function"]["name"],
            arguments=call["function"]["arguments"],
        )
        for call in message.get("tool_calls") or ()
        if call.get("function")
    )
    usage = tree.get("usage") or {}
    return ModelReply(
        text=message.get("content") or "",
        calls=calls,
        items=(message,),
        stop=choice.get("finish_reason") or "",
        refusal=message.get("refusal") or "",
        usage=ModelUsage(
            input_tokens=usage.get("prompt_tokens") or 0,
            output_tokens=usage.get("completion_tokens") or 0,
            cached_tokens=(usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0,
        ),
    )


# --- Responses ---------------------------------------------------------------------------


def _responses(call: ModelCall) -> dict[str, Any]:
    body: dict[str, Any] = {"input": _items(call), "store": False}
    if call.instructions:
        body["instructions"] = call.instructions
    if call.schema is not None:
        schema = {"name": call.schema_name, "strict": True, "schema": dict(call.schema)}
        body["text"] = {"format": {"type": "json_schema", **schema}}
    if call.max_output_tokens is not None:
        body["max_output_tokens"] = call.max_output_tokens
    return body


def _responses_reply(tree: Mapping[str, Any]) -> ModelReply:
    items = tree["output"]
    said = [item for item in items if item.get("type") == "message"]
    parts = [part for item in said for part in item.get("content") or ()]
    calls = tuple(
        RequestedCall(id=item["call_id"], name=item["name"], arguments=item["arguments"])
        for item in items
        if item.get("type") == "function_call"
    )
    usage = tree.get("usage") or {}
    incomplete = tree.get("incomplete_details") or {}
    return ModelReply(
        text="".join(part["text"] for part in parts if part.get("type") == "output_text"),
        calls=calls,
        items=tuple(items),
        stop=incomplete.get("reason") or tree.get("status") or "",
        refusal="".join(part["refusal"] for part in parts if part.get("type") == "refusal"),
        usage=ModelUsage(
            input_tokens=usage.get("input_tokens") or 0,
            output_tokens=usage.get("output_tokens") or 0,
            cached_tokens=(usage.get("input_tokens_details") or {}).get("cached_tokens") or 0,
        ),
    )


# --- Messages ----------------------------------------------------------------------------


def _messages(call: ModelCall) -> dict[str, Any]:
    limit = call.max_output_tokens
    body: dict[str, Any] = {
        "max_tokens": _DEFAULT_MAX_TOKENS if limit is None else limit,
        "messages": _items(call),
    }
    if call.instructions:
        body["system"] = call.instructions
    if call.schema is not None:
        body["output_config"] = {"format": {"type": "json_schema", "schema": dict(call.schema)}}
    return body


def _messages_reply(tree: Mapping[str, Any]) -> ModelReply:
    blocks = tree["content"]
    text = "".join(block["text"] for block in blocks if block.get("type") == "text")
    calls = tuple(
        RequestedCall(id=block["id"], name=block["name"], arguments=encode(block["input"]).decode())
        for block in blocks
        if block.get("type") == "tool_use"
    )
    usage = tree.get("usage") or {}
    stop = tree.get("stop_reason") or ""
    return ModelReply(
        text=text,
        calls=calls,
        items=({"role": "assistant", "content": blocks},),
        stop=stop,
        refusal=text if stop == "refusal" else "",
        usage=ModelUsage(
            input_tokens=usage.get("input_tokens") or 0,
            output_tokens=usage.get("output_tokens") or 0,
            cached_tokens=usage.get("cache_read_input_tokens") or 0,
        ),
    )


_WRITERS: Mapping[WireFormat, Callable[[ModelCall], dict[str, Any]]] = MappingProxyType(
    {"openai_chat": _chat, "openai_responses": _responses, "anthropic_messages": _messages}
)
_READERS: Mapping[WireFormat, Callable[[Mapping[str, Any]], ModelReply]] = MappingProxyType(
    {
        "openai_chat": _chat_reply,
        "openai_responses": _responses_reply,
        "anthropic_messages": _messages_reply,
    }
)
