"""Anthropic Messages: how its requests are read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from switchyard_core.conversation import (
    CallKind,
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
from switchyard_core.wire.caller_words import instruction_text, only_results, said_by_user
from switchyard_core.wire.format import NULL, Turns, decode_items, history_raw, lacks_history, word

__all__ = ["RESULT_TYPES", "AnthropicMessages"]

_CALLS: Mapping[str, CallKind] = {
    "tool_use": "function",
    "mcp_tool_use": "mcp",
    "server_tool_use": "hosted",
}
#: Types of the blocks that answer a call of the client or of an MCP server.
RESULT_TYPES = frozenset({"tool_result", "mcp_tool_result"})
_ERROR_TYPES: Mapping[int, str] = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}


class _Message(msgspec.Struct):
    role: Any = ""
    content: msgspec.Raw = NULL


class _Block(msgspec.Struct):
    type: Any = None
    text: msgspec.Raw = NULL
    thinking: msgspec.Raw = NULL
    signature: msgspec.Raw = NULL
    id: Any = None
    name: Any = None
    server_name: Any = None
    input: msgspec.Raw = NULL
    tool_use_id: Any = None
    is_error: Any = None


class _Tool(msgspec.Struct):
    name: Any = None


class AnthropicMessages:
    """Reads Messages requests."""

    name: WireFormat = "anthropic_messages"
    history_key = "messages"
    continuation_keys: tuple[str, ...] = ("thread",)
    paths: Mapping[Endpoint, str] = {
        "create": "/messages",
        "count_tokens": "/messages/count_tokens",
    }

    def read(self, fields: ObjectText) -> Conversation:
        """Return the neutral view of ``messages``."""
        turns = Turns()
        for index, message in enumerate(decode_items(history_raw(fields, "messages"), _Message)):
            if message is None:
                turns.start("user", index)
                turns.add(Opaque(type=""))
                continue
            role: Role = "user"
            if message.role == "assistant":
                role = "assistant"
            elif message.role == "system":
                role = "system"
            _add_message(turns, role, message, index)
        return Conversation(messages=turns.messages(), tools=_tool_names(fields))

    def history(self, fields: ObjectText) -> bytes:
        """Return the bytes of ``messages``."""
        return history_raw(fields, "messages")

    def continuation(self, fields: ObjectText) -> tuple[str, ...]:
        """Return ``thread`` when it resumes from an earlier response.

        Source: the official SDK's tool runner, which sends
        ``{"type": "continue", "previous_message_id": ...}`` and the new turn only.
        """
        thread = fields.object("thread")
        return ("thread",) if thread is not None and thread.text("type") == "continue" else ()

    def offers_tools(self, fields: ObjectText, conversation: Conversation) -> bool:
        """Return whether ``tools`` is there and not empty."""
        return bool(fields.array("tools"))

    def misses_history(self, fields: ObjectText, conversation: Conversation) -> bool:
        """Return whether a resumed thread's history is not in ``messages``."""
        return lacks_history(fields.raw("messages") or b"", conversation)

    def user_message(self, fields: ObjectText) -> UserMessage:
        """Return the last user message that is more than tool results."""
        for message in reversed(decode_items(history_raw(fields, "messages"), _Message)):
            if message is None or message.role != "user" or only_results(message.content):
                continue
            return said_by_user(message.content)
        return UserMessage(text="")

    def instructions(self, fields: ObjectText) -> str:
        """Return ``system`` and the text of all messages of role ``system``."""
        messages = decode_items(history_raw(fields, "messages"), _Message)
        return instruction_text(
            [
                fields.raw("system") or b"",
                *(m.content for m in messages if m is not None and m.role == "system"),
            ]
        )

    def error_body(self, error: RequestError, request_id: str) -> bytes:
        """Return the error in Anthropic's shape."""
        kind = _ERROR_TYPES.get(error.status)
        if kind is None:
            kind = "invalid_request_error" if error.status < 500 else "api_error"  # HTTP
        message = f"{error.message} ({error.code})"
        return encode(
            {
                "type": "error",
                "error": {**error.details, "type": kind, "message": message},
                "request_id": request_id,
            }
        )


def _add_message(turns: Turns, role: Role, message: _Message, index: int) -> None:
    content = bytes(message.content)
    blocks = decode_items(content, _Block) if content[:1] == b"[" else []
    if role == "user" and any(_is_result(block) for block in blocks):
        # Results are a message of their own in the neutral view, the user's words follow it.
        turns.start("tool", index)
        for position, block in enumerate(blocks):
            if block is not None and _is_result(block):
                path = f"$.messages[{index}].content[{position}]"
                turns.add(_result(block, path))
        blocks = [block for block in blocks if not _is_result(block)]
        if not blocks:
            return
    number = turns.start(role, index)
    if content[:1] == b'"':
        turns.add(Text(source=content))
    for position, block in enumerate(blocks):
        _add_block(turns, block, number, f"$.messages[{index}].content[{position}]")


def _add_block(turns: Turns, block: _Block | None, number: int, path: str) -> None:
    kind = word(block.type) if block is not None else ""
    if block is None:
        turns.add(Opaque(type=""))
    elif kind == "text":
        turns.add(Text(source=bytes(block.text)))
    elif kind in ("thinking", "redacted_thinking"):
        raw = bytes(block.thinking)
        text = Text(source=raw).text if raw[:1] == b'"' else ""
        turns.add(Reasoning(text=text, opaque=True))
    elif kind in _CALLS:
        turns.add(
            ToolCall(
                id=word(block.id),
                name=word(block.name),
                server=word(block.server_name) or None,
                kind=_CALLS[kind],
                source=bytes(block.input) if block.input is not NULL else "",
                message=number,
                path=path,
            )
        )
    elif kind in RESULT_TYPES:
        turns.add(_result(block, path))
    else:
        turns.add(Opaque(type=kind))


def _is_result(block: _Block | None) -> bool:
    return block is not None and word(block.type) == "tool_result"


def _result(block: _Block, path: str) -> ToolResult:
    return ToolResult(call_id=word(block.tool_use_id), is_error=block.is_error is True, path=path)


def _tool_names(fields: ObjectText) -> tuple[str, ...]:
    raw = fields.raw("tools")
    if raw is None or raw[:1] != b"[":
        return ()
    tools = decode_items(raw, _Tool)
    return tuple(word(tool.name) for tool in tools if tool is not None and word(tool.name))
