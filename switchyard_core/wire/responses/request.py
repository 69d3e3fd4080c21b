"""OpenAI Responses: how its requests are read and written."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, TypeGuard

import msgspec

from switchyard_core.answering import ModelCall, ToolOutput
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
from switchyard_core.wire.format import Format
from switchyard_core.wire.history import NULL, Turns, decode_items, word
from switchyard_core.wire.neutral import AskedTool
from switchyard_core.wire.responses.origin import hidden_history
from switchyard_core.wire.responses.view import (
    CALL_TYPES,
    CONTINUATION_KEYS,
    HOSTED_TYPES,
    OUTPUT_TYPES,
    ResponsesView,
    continuation,
)

__all__ = ["ResponsesRequests"]


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


class ResponsesRequests(Format):
    """Reads and writes Responses requests."""

    name: ClassVar[WireFormat] = "openai_responses"
    paths: ClassVar[Mapping[Endpoint, str]] = {
        "create": "/responses",
        "input_tokens": "/responses/input_tokens",
        "compact": "/responses/compact",
    }
    counted_keys = frozenset(
        {"model", "input", "instructions", "tools", "tool_choice", "parallel_tool_calls",
         "reasoning", "text"}
    )  # fmt: skip
    view = ResponsesView
    history_key = "input"
    instructions_key = "instructions"
    continuation_keys = CONTINUATION_KEYS
    context_mark = re.compile(
        rb'"(?:compaction|compaction_summary|context_compaction|item_reference|file_id)"|\{\s*"id"'
    )
    roles: ClassVar[Mapping[str, Role]] = {
        "system": "system",
        "developer": "system",
        "user": "user",
        "assistant": "assistant",
    }
    legal_id = re.compile(r".{1,64}", re.DOTALL)
    effort = ("reasoning", "effort")
    has_namespaces = True
    has_custom_tools = True
    limit_key = "max_output_tokens"
    sampling: ClassVar[Mapping[str, str]] = {"temperature": "temperature", "top_p": "top_p"}
    text_type = "input_text"

    def read(self, fields: ObjectText) -> Conversation:
        """Return the neutral view of ``input``."""
        tools = list(_tool_names(fields.raw("tools")))
        raw = self.history(fields)
        turns = Turns()
        if raw[:1] == b'"':
            turns.start("user", 0)
            turns.parts.append(Text(source=raw))
        # Outputs of a local shell call may name the call's item instead of its call id.
        aliases: dict[str, str] = {}
        for index, item in enumerate(_items(raw)):
            if item is None:
                turns.start("user", index)
                turns.parts.append(Opaque(type=""))
                continue
            if item.type == "local_shell_call" and word(item.call_id):
                aliases[word(item.id)] = word(item.call_id)
            elif item.type == "additional_tools":
                tools += _tool_names(bytes(item.tools))
            _add_item(turns, item, index, aliases)
        return Conversation(messages=turns.messages(), tools=tuple(tools))

    def said(self, fields: ObjectText) -> list[tuple[Any, msgspec.Raw | bytes]]:
        """Return role and content of every message, without calls, reasoning and the like."""
        raw = self.history(fields)
        if raw[:1] == b'"':
            return [("user", raw)]
        return [
            (item.role, item.content)
            for item in _items(raw)
            if item is not None and _kind(item) == "message"
        ]

    def history(self, fields: ObjectText) -> bytes:
        """Return the bytes of ``input``; a continuation or a stored prompt may have none."""
        raw = fields.raw("input")
        if raw is None and (self.continuation(fields) or "prompt" in fields):
            return b""
        if raw is None or raw[:1] not in (b"[", b'"'):
            raise self.wrong_history(raw, "an array or a string")
        return raw

    def continuation(self, fields: ObjectText) -> tuple[str, ...]:
        """Return which of ``previous_response_id`` and ``conversation`` is set."""
        return continuation(fields)

    def hidden_history(self, fields: ObjectText) -> tuple[str, ...]:
        """Return compactions, item references, a stored prompt, and results without any call."""
        return hidden_history(fields)

    def resembles(self, fields: ObjectText, headers: Mapping[str, str]) -> bool:
        """Return whether a body has ``input``, or continues an earlier response."""
        return any(key in fields for key in ("input", *CONTINUATION_KEYS))

    def offers_tools(self, fields: ObjectText, conversation: Conversation) -> bool:
        """Return whether ``tools``, or an ``additional_tools`` item, offers any."""
        return super().offers_tools(fields, conversation) or any(
            isinstance(part, Opaque) and part.type == "additional_tools"
            for _, part in conversation.parts()
        )

    def offered_tools(self, fields: ObjectText) -> tuple[str, ...]:
        """Return the names of all tools, those of a namespace behind its name."""
        later = [item.tools for item in _items(fields.raw("input") or b"") if _offers(item)]
        raws = (fields.raw("tools"), *map(bytes, later))
        return tuple(name for raw in raws for name in _tool_names(raw, spaced=True))

    def asked_tools(self, fields: ObjectText) -> tuple[AskedTool, ...]:
        """Return the tools that the caller runs; its history may offer some, too."""
        later = any(map(_offers, _items(fields.raw("input") or b"")))
        return self.neutral(fields).tools if later else super().asked_tools(fields)

    def own_fields(self, call: ModelCall) -> dict[str, Any]:
        """Return that nothing is to be stored, and what is needed to send reasoning back."""
        include = {"include": ["reasoning.encrypted_content"]} if call.keep_reasoning else {}
        return {"store": False, **include}

    def schema_fields(self, name: str, schema: Mapping[str, Any]) -> dict[str, Any]:
        """Return ``text.format``."""
        wanted = {"type": "json_schema", "name": name, "strict": True, "schema": schema}
        return {"text": {"format": wanted}}

    def tool(self, name: str, description: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Return a tool of type ``function``; by default the provider would require everything."""
        named = {"name": name, "description": description, "parameters": parameters}
        return {"type": "function", **named, "strict": False}

    def tool_choice(self, name: str) -> dict[str, Any]:
        """Return the choice of one function."""
        return {"type": "function", "name": name}

    def image(self, image: Image) -> dict[str, Any]:
        """Return an ``input_image`` part."""
        return {"type": "input_image", "image_url": image.url, "detail": image.detail or "auto"}

    def result_items(self, outputs: Sequence[ToolOutput]) -> tuple[dict[str, Any], ...]:
        """Return an output per call; only its text says whether a call failed."""
        return tuple(
            {"type": "function_call_output", "call_id": output.call.id, "output": output.text}
            for output in outputs
        )

    def refuses_item(self, item: Mapping[str, Any]) -> bool:
        """Return False: an empty item may be what a reasoning item needs behind it."""
        del item
        return False


def _items(raw: bytes) -> list[_Item | None]:
    return decode_items(raw, _Item) if raw[:1] == b"[" else []


def _offers(item: _Item | None) -> TypeGuard[_Item]:
    return item is not None and item.type == "additional_tools"


def _kind(item: _Item) -> str:
    return word(item.type) or ("message" if item.role is not None else "")


def _add_item(turns: Turns, item: _Item, index: int, aliases: Mapping[str, str]) -> None:
    kind = _kind(item)
    path = f"$.input[{index}]"
    if kind == "message":
        turns.start(ResponsesRequests.roles.get(word(item.role), "user"), index)
        _add_content(turns.parts, bytes(item.content))
    elif kind == "reasoning":
        turns.start("assistant", index)
        turns.parts.append(Reasoning(text=_summary(bytes(item.summary)), opaque=True))
    elif kind in CALL_TYPES:
        number = turns.start("assistant", index)
        call = _call(item, kind, number, path)
        turns.parts.append(call)
        if kind == "mcp_call":  # the item holds its output
            turns.parts.append(ToolResult(call_id=call.id, path=path))
    elif kind in HOSTED_TYPES:
        number = turns.start("assistant", index)
        turns.parts.append(
            ToolCall(id=word(item.id), name=kind, kind="hosted", message=number, path=path)
        )
    elif kind in OUTPUT_TYPES:
        turns.start("tool", index)
        call_id = word(item.call_id) or aliases.get(word(item.id), word(item.id))
        turns.parts.append(ToolResult(call_id=call_id, path=path))
    else:
        turns.start("system" if kind == "additional_tools" else "user", index)
        turns.parts.append(Opaque(type=kind))


def _call(item: _Item, kind: str, number: int, path: str) -> ToolCall:
    named = kind in ("function_call", "custom_tool_call", "mcp_call")
    source: Any = item.input if kind == "custom_tool_call" else item.arguments
    if not named:
        # Built-in calls have no name and no arguments: the action or operation replaces them.
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


def _add_content(parts: list[Part], content: bytes) -> None:
    if content[:1] == b'"':
        parts.append(Text(source=content))
    elif content[:1] == b"[":
        for part in decode_items(content, _Part):
            if part is not None and word(part.type) in ("input_text", "output_text", "text"):
                parts.append(Text(source=bytes(part.text)))
            else:
                parts.append(Opaque(type=word(part.type) if part is not None else ""))


def _summary(raw: bytes) -> str:
    if raw[:1] != b"[":
        return ""
    parts = decode_items(raw, _Part)
    texts = (Text(source=bytes(part.text)).text for part in parts if part is not None)
    return "\n\n".join(text for text in texts if text.strip())


def _tool_names(raw: bytes | None, *, spaced: bool = False) -> tuple[str, ...]:
    """Return the names of some tools; ``spaced`` puts the name of a namespace before its tools'."""
    if raw is None or raw[:1] != b"[":
        return ()
    names: list[str] = []
    for tool in decode_items(raw, _Tool):
        if tool is None:
            continue
        if word(tool.type) == "namespace":
            space = f"{word(tool.name)}." if spaced else ""
            names.extend(f"{space}{name}" for name in _tool_names(bytes(tool.tools), spaced=spaced))
        else:
            names.append(word(tool.name) or word(tool.type))
    return tuple([name for name in names if name])
