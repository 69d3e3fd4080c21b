"""Anthropic Messages: how its requests are read and written."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import msgspec

from switchyard_core.answering import ToolOutput
from switchyard_core.conversation import (
    CallKind,
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
from switchyard_core.wire.callers import only_results
from switchyard_core.wire.format import Format
from switchyard_core.wire.history import NULL, Turns, decode_items, word
from switchyard_core.wire.messages.origin import COMPACTION
from switchyard_core.wire.messages.view import MessagesView

__all__ = ["MessagesRequests"]

_CALLS: Mapping[str, CallKind] = {
    "tool_use": "function",
    "mcp_tool_use": "mcp",
    "server_tool_use": "hosted",
}
#: What only bodies of this format have at the top, and inside.
_OWN_KEYS = ("system", "stop_sequences", "thinking", "context_management")
_OWN_WORDS = (b'"input_schema"', b'"tool_use"', b'"tool_result"')
#: Types of the blocks that answer a call of the client or of an MCP server.
_RESULTS = frozenset({"tool_result", "mcp_tool_result"})
#: An image in an address: media type and base64 text.
_DATA_URL = re.compile(r"data:(?P<type>[^;,]+)(?:;[^;,]*)*;base64,(?P<data>.*)", re.DOTALL)


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
    content: msgspec.Raw = NULL


class _Tool(msgspec.Struct):
    name: Any = None


class MessagesRequests(Format):
    """Reads and writes Messages requests."""

    name: ClassVar[WireFormat] = "anthropic_messages"
    paths: ClassVar[Mapping[Endpoint, str]] = {
        "create": "/messages",
        "count_tokens": "/messages/count_tokens",
    }
    counted_keys = frozenset(
        {"model", "messages", "system", "tools", "tool_choice", "thinking", "output_config"}
    )
    version_follows_base = True
    view = MessagesView
    instructions_key = "system"
    continuation_keys = ("thread",)
    context_mark = re.compile(rb'"(?:compaction|container_upload|file_id)"')
    roles: ClassVar[Mapping[str, Role]] = {
        "user": "user",
        "assistant": "assistant",
        "system": "system",
    }
    legal_id = re.compile(r"[a-zA-Z0-9_-]{1,64}")
    effort = ("output_config", "effort")
    longest_name = 128
    limit_key = "max_tokens"
    needs_limit = True
    sampling: ClassVar[Mapping[str, str]] = {
        "temperature": "temperature",
        "top_p": "top_p",
        "top_k": "top_k",
        "stop": "stop_sequences",
    }
    max_temperature = 1.0
    headers = ("anthropic-version", "anthropic-beta")
    needed_headers: ClassVar[Mapping[str, str]] = {"anthropic-version": "2023-06-01"}

    def read(self, fields: ObjectText) -> Conversation:
        """Return the neutral view of ``messages``."""
        turns, roles = Turns(), self.roles
        for index, message in enumerate(decode_items(self.history(fields), _Message)):
            if message is None:
                turns.start("user", index)
                turns.parts.append(Opaque(type=""))
                continue
            said = message.role
            role = roles.get(said, "user") if isinstance(said, str) else "user"
            content = bytes(message.content)
            if content[:1] == b"[":
                _add_blocks(turns, role, decode_items(content, _Block), index)
                continue
            turns.start(role, index)
            if content[:1] == b'"':
                turns.parts.append(Text(source=content))
        return Conversation(messages=turns.messages(), tools=self.offered_tools(fields))

    def resembles(self, fields: ObjectText, headers: Mapping[str, str]) -> bool:
        """Return whether a body with ``messages`` has what only this format has."""
        raw = fields.dump()
        return "messages" in fields and (
            any(name in headers for name in self.needed_headers)
            or any(key in fields for key in _OWN_KEYS)
            or any(word in raw for word in _OWN_WORDS)
        )

    def offered_tools(self, fields: ObjectText) -> tuple[str, ...]:
        """Return the names of the tools."""
        raw = fields.raw("tools")
        if raw is None or raw[:1] != b"[":
            return ()
        tools = decode_items(raw, _Tool)
        return tuple([name for tool in tools if tool is not None and (name := word(tool.name))])

    def said(self, fields: ObjectText) -> list[tuple[Any, msgspec.Raw | bytes]]:
        """Return role and content of every message."""
        messages = decode_items(self.history(fields), _Message)
        return [(m.role, m.content) for m in messages if m is not None]

    def is_only_results(self, content: msgspec.Raw | bytes) -> bool:
        """Return whether it has ``tool_result`` blocks and nothing else."""
        return only_results(content)

    def continuation(self, fields: ObjectText) -> tuple[str, ...]:
        """Return ``thread`` when it resumes from an earlier response.

        Source: the official SDK's tool runner, which sends
        ``{"type": "continue", "previous_message_id": ...}`` and the new turn only.
        """
        thread = fields.object("thread")
        return ("thread",) if thread is not None and thread.text("type") == "continue" else ()

    def asks_for_history(self, keys: Sequence[str]) -> Mapping[str, Any]:
        """Return what makes the official SDK go on without a thread.

        Source: its thread state, which reads ``error.details``.
        """
        if "thread" not in keys:
            return {}
        return {"details": {"error_code": "thread_unsupported_request", "unsupported": ["thread"]}}

    def hidden_history(self, fields: ObjectText) -> tuple[str, ...]:
        """Return the compactions that cannot be read."""
        raw = fields.raw("messages") or b""
        if b'"compaction"' not in raw:
            return ()
        return tuple(
            f"messages[{index}].content[{number}]"
            for index, message in enumerate(decode_items(raw, _Message))
            if message is not None
            for number, block in enumerate(decode_items(bytes(message.content), _Block))
            if block is not None and block.type == COMPACTION and not _is_said(block.content)
        )

    def schema_fields(self, name: str, schema: Mapping[str, Any]) -> dict[str, Any]:
        """Return ``output_config.format``."""
        return {"output_config": {"format": {"type": "json_schema", "schema": schema}}}

    def tool(self, name: str, description: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Return a tool with ``input_schema``."""
        return {"name": name, "description": description, "input_schema": parameters}

    def tool_choice(self, name: str) -> dict[str, Any]:
        """Return the choice of one tool."""
        return {"type": "tool", "name": name}

    def image(self, image: Image) -> dict[str, Any]:
        """Return an ``image`` block; it cannot say how closely to look."""
        found = _DATA_URL.fullmatch(image.url)
        if found is None:
            return {"type": "image", "source": {"type": "url", "url": image.url}}
        source = {"type": "base64", "media_type": found["type"], "data": found["data"]}
        return {"type": "image", "source": source}

    def result_items(self, outputs: Sequence[ToolOutput]) -> tuple[dict[str, Any], ...]:
        """Return one user message with all results."""
        blocks = [_result_block(output) for output in outputs]
        return ({"role": "user", "content": blocks},) if blocks else ()


def _is_said(raw: msgspec.Raw) -> bool:
    """Return whether a value is a text that is not empty."""
    return bytes(raw)[:1] == b'"' and bytes(raw) != b'""'


def _result_block(output: ToolOutput) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": output.call.id, "content": output.text}
    # The provider refuses an error without a text.
    return block if output.ok else {**block, "content": output.text or "failed", "is_error": True}


def _add_blocks(turns: Turns, role: Role, blocks: list[_Block | None], index: int) -> None:
    if role == "user" and any(_is_result(block) for block in blocks):
        # Results are a message of their own in the neutral view, the user's words follow it.
        turns.start("tool", index)
        for position, block in enumerate(blocks):
            if block is not None and _is_result(block):
                path = f"$.messages[{index}].content[{position}]"
                turns.parts.append(_result(block, path))
        blocks = [block for block in blocks if not _is_result(block)]
        if not blocks:
            return
    number = turns.start(role, index)
    for position, block in enumerate(blocks):
        turns.parts.append(_part(block, number, f"$.messages[{index}].content[{position}]"))


def _part(block: _Block | None, number: int, path: str) -> Part:
    kind = word(block.type) if block is not None else ""
    if block is None:
        return Opaque(type="")
    if kind == "text":
        return Text(source=bytes(block.text))
    if kind in ("thinking", "redacted_thinking"):
        raw = bytes(block.thinking)
        return Reasoning(text=Text(source=raw).text if raw[:1] == b'"' else "", opaque=True)
    if kind in _CALLS:
        return ToolCall(
            id=word(block.id),
            name=word(block.name),
            server=word(block.server_name) or None,
            kind=_CALLS[kind],
            source=bytes(block.input) if block.input is not NULL else "",
            message=number,
            path=path,
        )
    return _result(block, path) if kind in _RESULTS else Opaque(type=kind)


def _is_result(block: _Block | None) -> bool:
    return block is not None and block.type == "tool_result"


def _result(block: _Block, path: str) -> ToolResult:
    return ToolResult(call_id=word(block.tool_use_id), is_error=block.is_error is True, path=path)
