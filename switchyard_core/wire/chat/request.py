"""OpenAI Chat Completions: how its requests are read and written."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import msgspec

from switchyard_core.answering import ToolOutput
from switchyard_core.conversation import (
    Conversation,
    Image,
    Opaque,
    Part,
    Reasoning,
    Role,
    Text,
    ToolCall,
    ToolResult,
)
from switchyard_core.declarations import Endpoint, WireFormat
from switchyard_core.jsonio.tree import ObjectText
from switchyard_core.wire.chat.view import INSTEAD, ChatView
from switchyard_core.wire.format import Format
from switchyard_core.wire.history import NULL, Turns, decode_items, decode_one, word

__all__ = ["ChatRequests"]

_NO_THOUGHT = (NULL, NULL, NULL)


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


#: Keys and words of a body that no other format with ``messages`` has.
_OWN_KEYS = (
    *("functions", "max_completion_tokens", "n", "parallel_tool_calls", "reasoning_effort"),
    *("response_format", "store", "stream_options"),
)
_OWN_WORDS = (b'"tool_calls"', b'"tool_call_id"', b'"function_call"', b'"image_url"')


class _Tool(msgspec.Struct):
    name: Any = None
    function: msgspec.Raw = NULL
    custom: msgspec.Raw = NULL


class ChatRequests(Format):
    """Reads and writes Chat Completions requests."""

    name: ClassVar[WireFormat] = "openai_chat"
    paths: ClassVar[Mapping[Endpoint, str]] = {"create": "/chat/completions"}
    view = ChatView
    context_mark = re.compile(rb'"file_id"')
    tool_keys = ("tools", "functions")
    roles: ClassVar[Mapping[str, Role]] = {
        "system": "system",
        "developer": "system",
        "user": "user",
        "assistant": "assistant",
        "tool": "tool",
        "function": "tool",
    }
    legal_id = re.compile(r".{1,40}", re.DOTALL)
    effort = ("reasoning_effort",)
    limit_key = "max_completion_tokens"
    old_limit_keys = ("max_tokens",)
    sampling: ClassVar[Mapping[str, str]] = {
        "temperature": "temperature",
        "top_p": "top_p",
        "stop": "stop",
        "seed": "seed",
        "frequency_penalty": "frequency_penalty",
        "presence_penalty": "presence_penalty",
    }

    def read(self, fields: ObjectText) -> Conversation:
        """Return the neutral view of ``messages``."""
        turns, known, roles = Turns(), set[str](), self.roles
        for index, message in enumerate(decode_items(self.history(fields), _Message)):
            if message is None:
                turns.start("user", index)
                turns.parts.append(Opaque(type=""))
                continue
            said = message.role
            role = roles.get(said, "user") if isinstance(said, str) else "user"
            number, parts = turns.start(role, index), turns.parts
            if role == "tool":
                _add_result(parts, message, number, index, known)
                continue
            thought = (message.reasoning_content, message.reasoning, message.reasoning_details)
            if role == "assistant" and thought != _NO_THOUGHT:
                _add_reasoning(parts, message)
            content = bytes(message.content)
            if content[:1] == b'"':
                parts.append(Text(source=content))
            elif content[:1] == b"[":
                _add_content(parts, content)
            called = message.tool_calls is not None or message.function_call is not None
            if role == "assistant" and called:
                known |= _add_calls(parts, message, number, index)
        return Conversation(messages=turns.messages(), tools=self.offered_tools(fields))

    def is_plain(self, fields: ObjectText) -> bool:
        """Return whether a body with ``messages`` has nothing that only this format has."""
        raw = fields.dump()
        own = (*self.sampling, *_OWN_KEYS)
        shared = ("temperature", "top_p")
        return not (
            any(key in fields for key in own if key not in shared)
            or any(word in raw for word in _OWN_WORDS)
        )

    def offered_tools(self, fields: ObjectText) -> tuple[str, ...]:
        """Return the names of the tools."""
        names = []
        for key in self.tool_keys:
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
                name = word(named.name if named is not None else tool.name)
                if name:
                    names.append(name)
        return tuple(names)

    def said(self, fields: ObjectText) -> list[tuple[Any, msgspec.Raw | bytes]]:
        """Return role and content of every message."""
        messages = decode_items(self.history(fields), _Message)
        return [(m.role, m.content) for m in messages if m is not None]

    def includes_usage(self, fields: ObjectText) -> bool:
        """Return whether ``stream_options.include_usage`` is set."""
        options = fields.object("stream_options")
        return options is not None and options.raw("include_usage") == b"true"

    def opening(self, instructions: str, items: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return ``messages``, instructions first."""
        said = ({"role": "system", "content": instructions},) if instructions else ()
        return {"messages": (*said, *items)}

    def schema_fields(self, name: str, schema: Mapping[str, Any]) -> dict[str, Any]:
        """Return ``response_format``."""
        named = {"name": name, "strict": True, "schema": schema}
        return {"response_format": {"type": "json_schema", "json_schema": named}}

    def tool(self, name: str, description: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Return a tool of type ``function``."""
        named = {"name": name, "description": description, "parameters": parameters}
        return {"type": "function", "function": named}

    def tool_choice(self, name: str) -> dict[str, Any]:
        """Return the choice of one function."""
        return {"type": "function", "function": {"name": name}}

    def image(self, image: Image) -> dict[str, Any]:
        """Return an ``image_url`` part."""
        detail = {"detail": image.detail} if image.detail else {}
        return {"type": "image_url", "image_url": {"url": image.url, **detail}}

    def result_items(self, outputs: Sequence[ToolOutput]) -> tuple[dict[str, Any], ...]:
        """Return a message per result; only its text says whether a call failed."""
        return tuple(
            {"role": "tool", "tool_call_id": output.call.id, "content": output.text}
            for output in outputs
        )

    def refuses_item(self, item: Mapping[str, Any]) -> bool:
        """Return whether a message has neither content nor what may be in its place."""
        return not item.get("content") and not any(item.get(key) for key in INSTEAD)


def _add_reasoning(parts: list[Part], message: _Message) -> None:
    raws = (bytes(message.reasoning_content), bytes(message.reasoning))
    visible = next((raw for raw in raws if raw[:1] == b'"'), b"")
    opaque = bytes(message.reasoning_details)[:1] == b"["
    if visible or opaque:
        text = Text(source=visible).text if visible else ""
        parts.append(Reasoning(text=text, opaque=opaque))


def _add_content(parts: list[Part], content: bytes) -> None:
    for part in decode_items(content, _Part):
        if part is not None and part.type == "text":
            parts.append(Text(source=bytes(part.text)))
        else:
            parts.append(Opaque(type=word(part.type) if part else ""))


def _add_calls(parts: list[Part], message: _Message, number: int, index: int) -> set[str]:
    ids = set()
    calls = message.tool_calls if isinstance(message.tool_calls, list) else []
    for position, call in enumerate(calls):
        if isinstance(call, dict):
            path = f"$.messages[{index}].tool_calls[{position}]"
            made = _call(call, number, path)
            ids.add(made.id)
            parts.append(made)
    if isinstance(message.function_call, dict):
        name = word(message.function_call.get("name"))
        ids.add(name)
        parts.append(
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


def _add_result(
    parts: list[Part], message: _Message, number: int, index: int, known: set[str]
) -> None:
    name = word(message.name)
    # The older role `function` refers to its call by the tool's name.
    call_id = word(message.tool_call_id) or name
    path = f"$.messages[{index}]"
    if name and call_id not in known:
        parts.append(ToolCall(id=call_id, name=name, message=number, path=path))
    parts.append(ToolResult(call_id=call_id, name=name or None, path=path))
