"""The neutral, frozen view of a conversation that routers and rules read.

The same story told in three wire formats gives the same view. It is read from the caller's
body once per request and never written back: rewrites work on the body itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import msgspec

__all__ = [
    "Conversation",
    "Image",
    "Message",
    "Opaque",
    "Part",
    "Reasoning",
    "Role",
    "Text",
    "ToolCall",
    "ToolResult",
    "UserMessage",
    "parse_json",
]

#: ``developer`` instructions count as ``system``.
Role = Literal["system", "user", "assistant", "tool"]
#: ``hosted`` calls run at the provider and never touch the workspace.
CallKind = Literal["function", "custom", "builtin", "mcp", "hosted"]


def parse_json(text: str | bytes) -> Any:
    """Parse JSON as leniently as a provider might: any number, any depth Python can hold.

    Numbers beyond the range of a float become infinities. Anything else is a ``ValueError``.
    """
    try:
        # Ten times as fast, and stricter: whatever it refuses, the lenient way may still read.
        return msgspec.json.decode(text)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        pass
    try:
        return json.loads(text)
    except RecursionError:
        msg = "nested too deeply"
        raise ValueError(msg) from None


class Text(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """Visible text of a message, decoded when somebody reads it.

    Args:
        source: JSON of the string.
    """

    source: bytes

    @cached_property
    def text(self) -> str:
        """The text; ``""`` when the source is not a string."""
        value = parse_json(self.source)
        return value if isinstance(value, str) else ""


class Reasoning(msgspec.Struct, frozen=True, kw_only=True):
    """A model's reasoning: what of it can be read, and whether an opaque form is attached."""

    text: str
    opaque: bool


class Opaque(msgspec.Struct, frozen=True, kw_only=True):
    """A part that routing does not read: images, files, unknown item types."""

    type: str


class ToolCall(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A tool call of the request.

    Args:
        id: Id that the result refers to, ``""`` when the call has none.
        name: Tool name; for calls without one the item type (``shell_call``,
            ``apply_patch_call``); ``""`` when a function call names no tool.
        namespace: Namespace of the tool, if the wire format gives one.
        server: MCP server of the tool, if the wire format gives one.
        kind: How the call was made.
        source: What the model wrote, not parsed yet: JSON text (``str`` or ``bytes``), or the
            raw text of a free-form call (``kind="custom"``), or a mapping.
        message: Index of its message in :attr:`Conversation.messages`.
        path: Wire path, such as ``$.input[6]`` or ``$.messages[2].tool_calls[0]``.
    """

    id: str
    name: str
    namespace: str | None = None
    server: str | None = None
    kind: CallKind = "function"
    source: str | bytes | Mapping[str, Any] = ""
    message: int = 0
    path: str = "$"

    @cached_property
    def arguments(self) -> Any:
        """The parsed arguments.

        A free-form call gives ``{"input": text}``, text that is not JSON ``{"_raw": text}``,
        no arguments at all ``{}``.
        """
        source = self.source
        if isinstance(source, Mapping):
            return source
        if self.kind == "custom":
            return {"input": _decoded(source)}
        if not source:
            return {}
        try:
            return parse_json(source)
        except ValueError:
            return {"_raw": _decoded(source)}

    def as_document(self) -> dict[str, Any]:
        """Return the call as JSONPath rules read it."""
        return {
            "type": "tool_call",
            "id": self.id,
            "name": self.name,
            "namespace": self.namespace,
            "server": self.server,
            "kind": self.kind,
            "arguments": self.arguments,
        }


class ToolResult(msgspec.Struct, frozen=True, kw_only=True):
    """A tool's answer; ``name`` only where the wire format repeats the tool's name in it."""

    call_id: str
    name: str | None = None
    is_error: bool = False
    path: str = "$"


Part = Text | Reasoning | ToolCall | ToolResult | Opaque


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """One turn: a run of wire items that the same side made.

    Args:
        role: Who made it; tool results are ``tool`` in every wire format.
        content: Its parts, in order.
        first: Index of its first wire item in the history (``messages`` or ``input``).
        last: Index of its last wire item, inclusive.
    """

    role: Role
    content: tuple[Part, ...]
    first: int
    last: int


class Conversation(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The history of one request.

    Args:
        messages: In order; equal neighbours of role ``assistant`` or ``tool`` are one message.
        tools: Names of the tools that the request offers.
    """

    messages: tuple[Message, ...]
    tools: tuple[str, ...] = ()

    @cached_property
    def calls(self) -> tuple[ToolCall, ...]:
        """The tool calls that the assistant made and the client ran, oldest first.

        A result that names its tool replaces a missing call; readers put such a call into the
        ``tool`` message. Calls in user messages do not count.
        """
        return tuple(
            part
            for message in self.messages
            if message.role in ("assistant", "tool")
            for part in message.content
            if isinstance(part, ToolCall) and part.kind != "hosted"
        )

    @cached_property
    def result_ids(self) -> frozenset[str]:
        """Ids of the calls that have a result."""
        return frozenset(
            part.call_id
            for message in self.messages
            for part in message.content
            if isinstance(part, ToolResult)
        )

    @property
    def last_assistant(self) -> int | None:
        """Index of the last assistant message, ``None`` without one."""
        for index in range(len(self.messages) - 1, -1, -1):
            if self.messages[index].role == "assistant":
                return index
        return None

    def turn_end(self, index: int) -> int:
        """Return the index of the last message before the next assistant turn."""
        while index + 1 < len(self.messages) and self.messages[index + 1].role != "assistant":
            index += 1
        return index

    def end_behind(self, number: int) -> int | None:
        """Return the number of wire items up to the turn that follows a call and its results.

        ``None`` while the call, or another one of its turn, waits for its result at the very end.
        """
        if number >= len(self.calls):
            return None
        message = self.calls[number].message
        end = self.turn_end(message)
        last = end == len(self.messages) - 1
        if end == message or (last and self.ends_with_open_call):
            return None
        return self.messages[end].last + 1

    @property
    def ends_with_open_call(self) -> bool:
        """Whether the history ends with an unanswered call of the last assistant turn.

        A user message behind it ends the turn: the call was interrupted.
        """
        index = self.last_assistant
        if index is None or any(m.role == "user" for m in self.messages[index:]):
            return False
        return any(
            isinstance(part, ToolCall) and part.kind != "hosted" and part.id not in self.result_ids
            for part in self.messages[index].content
        )

    def document(self) -> dict[str, Any]:
        """Return the tree that JSONPath rules run on, built once.

        ``{"messages": [{"role", "content": [{"type": "tool_call", ...}, ...]}], "tools": [...]}``,
        the same for the three wire formats.
        """
        return self._document

    @cached_property
    def _document(self) -> dict[str, Any]:
        return {
            "messages": [
                {"role": m.role, "content": [_part_document(p) for p in m.content]}
                for m in self.messages
            ],
            "tools": [{"name": name} for name in self.tools],
        }

    def parts(self) -> Iterator[tuple[Message, Part]]:
        """Yield every part with its message, oldest first."""
        for message in self.messages:
            for part in message.content:
                yield message, part


def _part_document(part: Part) -> dict[str, Any]:
    if isinstance(part, ToolCall):
        return part.as_document()
    if isinstance(part, ToolResult):
        return {
            "type": "tool_result",
            "call_id": part.call_id,
            "name": part.name,
            "is_error": part.is_error,
        }
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    if isinstance(part, Reasoning):
        return {"type": "reasoning", "text": part.text}
    return {"type": part.type}


def _decoded(source: str | bytes) -> str:
    return source if isinstance(source, str) else source.decode("utf-8", "replace")


def text_of(parts: Sequence[Part]) -> str:
    """Return the visible text of some parts, joined by line breaks."""
    return "\n".join(part.text for part in parts if isinstance(part, Text))


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """An image that a user sent, the same for every wire format.

    Args:
        url: An ``https:`` address, or a ``data:<media type>;base64,`` URL with the bytes.
        detail: How closely a model is to look, in OpenAI's words; ``""`` leaves it open.
    """

    url: str
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class UserMessage:
    """What a user said last.

    Args:
        text: The text parts, joined by a blank line.
        images: The images.
        left_out: Types of the other parts, such as ``input_file``, in order.
    """

    text: str
    images: tuple[Image, ...] = ()
    left_out: tuple[str, ...] = ()
