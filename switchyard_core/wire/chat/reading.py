"""OpenAI Chat Completions: how its requests are read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from switchyard_core.conversation import (
    Conversation,
    Opaque,
    Reasoning,
    Role,
    Text,
    ToolCall,
    ToolResult,
    UserMessage,
)
from switchyard_core.declarations import WireFormat
from switchyard_core.errors import RequestError
from switchyard_core.jsonio.tree import ObjectText, encode
from switchyard_core.request import Endpoint
from switchyard_core.wire.caller_words import instruction_text, said_by_user
from switchyard_core.wire.format import NULL, Turns, decode_items, decode_one, history_raw, word

__all__ = ["REASONING_KEYS", "OpenAIChat", "openai_error"]

#: Keys under which providers return reasoning on an assistant message.
REASONING_KEYS = ("reasoning_content", "reasoning", "reasoning_details")

_ROLES: Mapping[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}


class _Message(msgspec.Struct):
    role: Any = ""
    content: msgspec.Raw = NULL
    tool_calls: Any = None
    function_call: Any = None
    name: Any = None
    tool_call_id: Any = None
    reasoning_content: msgspec.Raw = NULL
    reasoning: msgspec.Raw = NULL
    reasoning_details: msgspec.Raw = NULL


class _Named(msgspec.Struct):
    name: Any = None


class _Part(msgspec.Struct):
    type: Any = None
    text: msgspec.Raw = NULL


class _Tool(msgspec.Struct):
    name: Any = None
    function: msgspec.Raw = NULL
    custom: msgspec.Raw = NULL


class OpenAIChat:
    """Reads Chat Completions requests."""

    name: WireFormat = "openai_chat"
    history_key = "messages"
    continuation_keys: tuple[str, ...] = ()
    paths: Mapping[Endpoint, str] = {"create": "/chat/completions"}

    def read(self, fields: ObjectText) -> Conversation:
        """Return the neutral view of ``messages``."""
        messages = decode_items(history_raw(fields, "messages"), _Message)
        turns, known = Turns(), set[str]()
        for index, message in enumerate(messages):
            if message is None:
                turns.start("user", index)
                turns.add(Opaque(type=""))
                continue
            role = _ROLES.get(word(message.role), "user")
            number = turns.start(role, index)
            if role == "tool":
                _add_result(turns, message, number, index, known)
            else:
                if role == "assistant":
                    _add_reasoning(turns, message)
                _add_content(turns, message.content)
                if role == "assistant":
                    known |= _add_calls(turns, message, number, index)
        return Conversation(messages=turns.messages(), tools=_tool_names(fields))

    def history(self, fields: ObjectText) -> bytes:
        """Return the bytes of ``messages``."""
        return history_raw(fields, "messages")

    def continuation(self, fields: ObjectText) -> tuple[str, ...]:
        """Return nothing: the format has no continuation by id."""
        return ()

    def offers_tools(self, fields: ObjectText, conversation: Conversation) -> bool:
        """Return whether ``tools`` or the older ``functions`` is there and not empty."""
        return any(fields.array(key) for key in ("tools", "functions"))

    def misses_history(self, fields: ObjectText, conversation: Conversation) -> bool:
        """Return False: the format has no continuation by id."""
        return False

    def user_message(self, fields: ObjectText) -> UserMessage:
        """Return the last message of role ``user``."""
        for message in reversed(decode_items(history_raw(fields, "messages"), _Message)):
            if message is not None and message.role == "user":
                return said_by_user(message.content)
        return UserMessage(text="")

    def instructions(self, fields: ObjectText) -> str:
        """Return the text of all messages of role ``system`` and ``developer``."""
        messages = decode_items(history_raw(fields, "messages"), _Message)
        return instruction_text(
            message.content
            for message in messages
            if message is not None and _ROLES.get(word(message.role)) == "system"
        )

    def error_body(self, error: RequestError, request_id: str) -> bytes:
        """Return the error in OpenAI's shape."""
        return openai_error(error)


def openai_error(error: RequestError) -> bytes:
    """Return an error as ``{"error": {"message", "type", "param", "code", …details}}``."""
    kind = "invalid_request_error" if error.status < 500 else "api_error"  # HTTP
    return encode(
        {
            "error": {
                **error.details,
                "message": error.message,
                "type": kind,
                "param": error.param,
                "code": error.code,
            }
        }
    )


def _add_reasoning(turns: Turns, message: _Message) -> None:
    visible = next(
        (
            bytes(raw)
            for raw in (message.reasoning_content, message.reasoning)
            if bytes(raw)[:1] == b'"'
        ),
        b"",
    )
    opaque = bytes(message.reasoning_details)[:1] == b"["
    if visible or opaque:
        text = Text(source=visible).text if visible else ""
        turns.add(Reasoning(text=text, opaque=opaque))


def _add_content(turns: Turns, raw: msgspec.Raw) -> None:
    content = bytes(raw)
    if content[:1] == b'"':
        turns.add(Text(source=content))
    elif content[:1] == b"[":
        for part in decode_items(content, _Part):
            if part is not None and part.type == "text":
                turns.add(Text(source=bytes(part.text)))
            else:
                turns.add(Opaque(type=word(part.type) if part else ""))


def _add_calls(turns: Turns, message: _Message, number: int, index: int) -> set[str]:
    ids = set()
    calls = message.tool_calls if isinstance(message.tool_calls, list) else []
    for position, call in enumerate(calls):
        if isinstance(call, dict):
            path = f"$.messages[{index}].tool_calls[{position}]"
            made = _call(call, number, path)
            ids.add(made.id)
            turns.add(made)
    if isinstance(message.function_call, dict):
        name = word(message.function_call.get("name"))
        ids.add(name)
        turns.add(
            ToolCall(
                id=name,
                name=name,
                source=_arguments(message.function_call.get("arguments")),
                message=number,
                path=f"$.messages[{index}].function_call",
            )
        )
    return ids


def _call(call: Mapping[str, Any], number: int, path: str) -> ToolCall:
    named = call.get("function")
    custom = call.get("type") == "custom" or not isinstance(named, dict)
    if custom:
        named = call.get("custom")
    named = named if isinstance(named, dict) else {}
    return ToolCall(
        id=word(call.get("id")),
        name=word(named.get("name")),
        kind="custom" if custom else "function",
        source=word(named.get("input")) if custom else _arguments(named.get("arguments")),
        message=number,
        path=path,
    )


def _arguments(value: Any) -> str | Mapping[str, Any]:
    # Some clients send the object instead of its JSON text; the provider decides about that.
    return value if isinstance(value, (str, dict)) else ""


def _add_result(turns: Turns, message: _Message, number: int, index: int, known: set[str]) -> None:
    name = word(message.name)
    # The older role `function` refers to its call by the tool's name.
    call_id = word(message.tool_call_id) or name
    path = f"$.messages[{index}]"
    if name and call_id not in known:
        turns.add(ToolCall(id=call_id, name=name, message=number, path=path))
    turns.add(ToolResult(call_id=call_id, name=name or None, path=path))


def _tool_names(fields: ObjectText) -> tuple[str, ...]:
    names = []
    for key in ("tools", "functions"):
        raw = fields.raw(key)
        if raw is None or raw[:1] != b"[":
            continue
        for tool in decode_items(raw, _Tool):
            if tool is None:
                continue
            inner = next(
                (raw for raw in (tool.function, tool.custom) if bytes(raw)[:1] == b"{"), None
            )
            named = decode_one(inner, _Named) if inner is not None else None
            names.append(word(named.name if named is not None else tool.name))
    return tuple(name for name in names if name)
