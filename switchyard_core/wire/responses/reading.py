"""OpenAI Responses: how its requests are read."""

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
from switchyard_core.jsonio.tree import ObjectText
from switchyard_core.request import Endpoint
from switchyard_core.wire.caller_words import instruction_text, said_by_user
from switchyard_core.wire.chat.reading import openai_error
from switchyard_core.wire.format import NULL, Turns, decode_items, history_raw, lacks_history, word

__all__ = ["CALL_TYPES", "HOSTED_TYPES", "OUTPUT_TYPES", "OpenAIResponses"]

#: Items that are calls which the client (or an MCP server) runs, with their kind.
CALL_TYPES: Mapping[str, CallKind] = {
    "function_call": "function",
    "custom_tool_call": "custom",
    "local_shell_call": "builtin",
    "shell_call": "builtin",
    "apply_patch_call": "builtin",
    "mcp_call": "mcp",
}
#: Calls that run at the provider and never touch the workspace.
HOSTED_TYPES = frozenset(
    {
        "web_search_call",
        "file_search_call",
        "code_interpreter_call",
        "image_generation_call",
        "computer_call",
        "mcp_list_tools",
        "mcp_approval_request",
        "tool_search_call",
    }
)
#: Items that answer a call.
OUTPUT_TYPES = frozenset(
    {
        "function_call_output",
        "custom_tool_call_output",
        "local_shell_call_output",
        "shell_call_output",
        "apply_patch_call_output",
        "computer_call_output",
        "tool_search_output",
    }
)
_ROLES: Mapping[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
}


class _Item(msgspec.Struct):
    type: Any = None
    role: Any = None
    content: msgspec.Raw = NULL
    id: Any = None
    call_id: Any = None
    name: Any = None
    namespace: Any = None
    server_label: Any = None
    arguments: Any = None
    input: Any = None
    action: msgspec.Raw = NULL
    operation: msgspec.Raw = NULL
    summary: msgspec.Raw = NULL
    encrypted_content: msgspec.Raw = NULL
    tools: msgspec.Raw = NULL


class _Part(msgspec.Struct):
    type: Any = None
    text: msgspec.Raw = NULL


class _Tool(msgspec.Struct):
    type: Any = None
    name: Any = None
    tools: msgspec.Raw = NULL


class OpenAIResponses:
    """Reads Responses requests."""

    name: WireFormat = "openai_responses"
    history_key = "input"
    continuation_keys: tuple[str, ...] = ("previous_response_id", "conversation")
    paths: Mapping[Endpoint, str] = {
        "create": "/responses",
        "input_tokens": "/responses/input_tokens",
        "compact": "/responses/compact",
    }

    def read(self, fields: ObjectText) -> Conversation:
        """Return the neutral view of ``input``."""
        tools = list(_tool_names(fields.raw("tools")))
        raw = self.history(fields)
        turns = Turns()
        if not raw:
            return Conversation(messages=(), tools=tuple(tools))
        if raw[:1] == b'"':
            turns.start("user", 0)
            turns.add(Text(source=raw))
            return Conversation(messages=turns.messages(), tools=tuple(tools))
        # Outputs of a local shell call may name the call's item instead of its call id.
        aliases: dict[str, str] = {}
        for index, item in enumerate(decode_items(raw, _Item)):
            if item is None:
                turns.start("user", index)
                turns.add(Opaque(type=""))
                continue
            if word(item.type) == "local_shell_call" and word(item.call_id):
                aliases[word(item.id)] = word(item.call_id)
            elif word(item.type) == "additional_tools":
                tools += _tool_names(bytes(item.tools))
            _add_item(turns, item, index, aliases)
        return Conversation(messages=turns.messages(), tools=tuple(tools))

    def history(self, fields: ObjectText) -> bytes:
        """Return the bytes of ``input``; a continuation or a stored prompt may have none."""
        if fields.raw("input") is None and (self.continuation(fields) or "prompt" in fields):
            return b""
        return history_raw(fields, "input", text_too=True)

    def continuation(self, fields: ObjectText) -> tuple[str, ...]:
        """Return which of ``previous_response_id`` and ``conversation`` is set."""
        return tuple(
            key for key in self.continuation_keys if fields.raw(key) not in (None, b"null", b'""')
        )

    def offers_tools(self, fields: ObjectText, conversation: Conversation) -> bool:
        """Return whether ``tools``, or an ``additional_tools`` item, offers any."""
        return bool(fields.array("tools")) or any(
            isinstance(part, Opaque) and part.type == "additional_tools"
            for _, part in conversation.parts()
        )

    def misses_history(self, fields: ObjectText, conversation: Conversation) -> bool:
        """Return whether a continued history is not in ``input``."""
        return lacks_history(fields.raw("input") or b"", conversation)

    def user_message(self, fields: ObjectText) -> UserMessage:
        """Return the last message of role ``user``, or the ``input`` that is a string."""
        raw = self.history(fields)
        if raw[:1] == b'"':
            return said_by_user(raw)
        for item in reversed(_messages(raw)):
            if item.role == "user":
                return said_by_user(item.content)
        return UserMessage(text="")

    def instructions(self, fields: ObjectText) -> str:
        """Return ``instructions`` and the text of all ``system`` and ``developer`` messages."""
        items = _messages(self.history(fields))
        return instruction_text(
            [
                fields.raw("instructions") or b"",
                *(item.content for item in items if _ROLES.get(word(item.role)) == "system"),
            ]
        )

    def error_body(self, error: RequestError, request_id: str) -> bytes:
        """Return the error in OpenAI's shape."""
        return openai_error(error)


def _messages(raw: bytes) -> list[_Item]:
    """Return the messages of an ``input``, without calls, reasoning and the like."""
    items = decode_items(raw, _Item) if raw[:1] == b"[" else []
    return [item for item in items if item is not None and _kind(item) == "message"]


def _kind(item: _Item) -> str:
    return word(item.type) or ("message" if item.role is not None else "")


def _add_item(turns: Turns, item: _Item, index: int, aliases: Mapping[str, str]) -> None:
    kind = _kind(item)
    path = f"$.input[{index}]"
    if kind == "message":
        turns.start(_ROLES.get(word(item.role), "user"), index)
        _add_content(turns, bytes(item.content))
    elif kind == "reasoning":
        turns.start("assistant", index)
        turns.add(Reasoning(text=_summary(bytes(item.summary)), opaque=True))
    elif kind in CALL_TYPES:
        number = turns.start("assistant", index)
        call = _call(item, kind, number, path)
        turns.add(call)
        if kind == "mcp_call":  # its output stands in the item itself
            turns.add(ToolResult(call_id=call.id, path=path))
    elif kind in HOSTED_TYPES:
        number = turns.start("assistant", index)
        turns.add(ToolCall(id=word(item.id), name=kind, kind="hosted", message=number, path=path))
    elif kind in OUTPUT_TYPES:
        turns.start("tool", index)
        call_id = word(item.call_id) or aliases.get(word(item.id), word(item.id))
        turns.add(ToolResult(call_id=call_id, path=path))
    else:
        turns.start("system" if kind == "additional_tools" else "user", index)
        turns.add(Opaque(type=kind))


def _call(item: _Item, kind: str, number: int, path: str) -> ToolCall:
    named = kind in ("function_call", "custom_tool_call", "mcp_call")
    source: Any = item.input if kind == "custom_tool_call" else item.arguments
    if not named:
        # Built-in calls have no name and no arguments: the action or operation stands for them.
        key = "operation" if kind == "apply_patch_call" else "action"
        source = b'{"%s":%s}' % (key.encode(), bytes(getattr(item, key)))
    elif not isinstance(source, (str, dict)):
        source = ""
    return ToolCall(
        id=word(item.call_id) or word(item.id),
        name=word(item.name) if named else kind,
        namespace=word(item.namespace) or None,
        server=word(item.server_label) or None,
        kind=CALL_TYPES[kind],
        source=source,
        message=number,
        path=path,
    )


def _add_content(turns: Turns, content: bytes) -> None:
    if content[:1] == b'"':
        turns.add(Text(source=content))
    elif content[:1] == b"[":
        for part in decode_items(content, _Part):
            if part is not None and word(part.type) in ("input_text", "output_text", "text"):
                turns.add(Text(source=bytes(part.text)))
            else:
                turns.add(Opaque(type=word(part.type) if part is not None else ""))


def _summary(raw: bytes) -> str:
    if raw[:1] != b"[":
        return ""
    parts = decode_items(raw, _Part)
    texts = (Text(source=bytes(part.text)).text for part in parts if part is not None)
    return "\n\n".join(text for text in texts if text.strip())


def _tool_names(raw: bytes | None) -> tuple[str, ...]:
    if raw is None or raw[:1] != b"[":
        return ()
    names: list[str] = []
    for tool in decode_items(raw, _Tool):
        if tool is None:
            continue
        if word(tool.type) == "namespace":
            names.extend(_tool_names(bytes(tool.tools)))
        else:
            names.append(word(tool.name) or word(tool.type))
    return tuple(name for name in names if name)
