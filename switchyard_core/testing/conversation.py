"""A builder of request bodies that reads like the story it tells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from switchyard_core.declarations import WIRE_FORMATS, WireFormat
from switchyard_core.jsonio.tree import encode
from switchyard_core.request import Request
from switchyard_core.testing.story import (
    Call,
    CallShape,
    Item,
    Said,
    Story,
    Thought,
    Words,
    body_of,
)

__all__ = ["ConversationBuilder", "conversation"]


def conversation(wire_format: WireFormat) -> ConversationBuilder:
    """Return the beginning of a conversation in one wire format.

    Example:
        >>> story = conversation("openai_chat").user("fix it").reads("read", path="a.py")
        >>> [message["role"] for message in story.build()["messages"]]
        ['user', 'assistant', 'tool']
    """
    if wire_format not in WIRE_FORMATS:
        raise ValueError(f"unknown wire format `{wire_format}`; known: {', '.join(WIRE_FORMATS)}")
    return ConversationBuilder(wire_format=wire_format)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationBuilder(Story):
    """A conversation so far; every method returns a longer one and leaves this one as it is.

    A tool call ends the assistant's turn and its result follows at once, unless the call was
    given with others to :meth:`parallel`. What the assistant says or thinks belongs to the
    call that comes next.
    """

    thoughts: tuple[Said | Thought, ...] = ()  # What the assistant said since its last call

    def system(self, text: str, *, cached: bool = False) -> Self:
        """Add instructions; ``cached`` puts a cache mark on them (Messages)."""
        return self._with(Words("system", text, cached))

    def developer(self, text: str) -> Self:
        """Add a developer message; on Messages further instructions."""
        return self._with(Words("developer", text))

    def user(self, text: str, *, cached: bool = False) -> Self:
        """Add text of the user; ``cached`` puts a cache mark on it (Messages)."""
        return self._with(Words("user", text, cached))

    def item(self, value: Any) -> Self:
        """Put an item of the wire format itself into ``messages`` or ``input``, as it is."""
        return self._with(Item(value))

    def says(self, text: str) -> Self:
        """Let the assistant say something."""
        return replace(self, thoughts=(*self.thoughts, Said(text)))

    def reasoning(self, text: str = "", *, encrypted: str | None = None) -> Self:
        """Let the assistant think; with ``encrypted`` only, Messages gets a redacted block."""
        return replace(self, thoughts=(*self.thoughts, Thought(text, encrypted)))

    def reads(self, tool: str, /, *, result: str = "contents", **arguments: Any) -> Self:
        """Let the assistant call a tool that only looks."""
        return self.parallel(Call(name=tool, arguments=arguments, result=result))

    def edits(
        self, tool: str, /, *, fails: bool = False, answered: bool = True, **arguments: Any
    ) -> Self:
        """Let the assistant call a tool that changes a file."""
        return self.parallel(Call(name=tool, arguments=arguments, fails=fails, answered=answered))

    def runs(
        self, command: str, *, tool: str = "bash", shape: CallShape = "function", **more: Any
    ) -> Self:
        """Let the assistant run a shell command; ``more`` are other fields of :class:`Call`."""
        arguments: Mapping[str, Any] = {"command": command}
        if shape == "local_shell_call":
            arguments = {"type": "exec", "command": ["bash", "-lc", command], "env": {}}
        elif shape == "shell_call":
            arguments = {"commands": [command]}
        more = {"result": "", **more}
        return self.parallel(Call(name=tool, arguments=arguments, shape=shape, **more))

    def calls(
        self,
        tool: str,
        arguments: Mapping[str, Any] | str | None = None,
        *,
        custom: bool = False,
        **more: Any,
    ) -> Self:
        """Let the assistant call a tool in any shape; ``custom`` is the shape of that name."""
        if custom:
            more["shape"] = "custom"
        given = {} if arguments is None else arguments
        return self.parallel(Call(name=tool, arguments=given, **more))

    def parallel(self, *calls: Call) -> Self:
        """Let the assistant make several calls in one turn; their results follow together."""
        first = len(self.made_calls) + 1
        prefix = "toolu" if self.wire_format == "anthropic_messages" else "call"
        named = [
            call if call.id else replace(call, id=f"{prefix}_{number:04}")
            for number, call in enumerate(calls, first)
        ]
        return replace(self, steps=(*self.steps, (*self.thoughts, *named)), thoughts=())

    def offers(self, *tools: str) -> Self:
        """Offer tools that nobody has called; those that were called are offered anyway."""
        return replace(self, offered=(*self.offered, *tools))

    def lite(self) -> Self:
        """Offer the tools in the first item of the history (Responses)."""
        if self.wire_format != "openai_responses":
            raise ValueError(f"{self.wire_format} has no tools inside the history")
        return replace(self, tools_in_history=True)

    def build(self, model: str = "switchyard/plan-execute", **fields: Any) -> dict[str, Any]:
        """Return the body as a new tree; ``fields`` such as ``stream=True`` come last and win."""
        return {"model": model, **body_of(self._told()), **fields}

    def body(self, model: str = "switchyard/plan-execute", **fields: Any) -> bytes:
        """Return the body as compact JSON; see :meth:`build`."""
        return encode(self.build(model, **fields))

    def request(
        self,
        model: str = "switchyard/plan-execute",
        *,
        headers: Mapping[str, str] | Sequence[tuple[str, str]] = (),
        session: str | None = None,
        final: bool = False,
        **fields: Any,
    ) -> Request:
        """Return the body as a request of a session; ``final`` marks the session's last."""
        pairs = list(headers.items() if isinstance(headers, Mapping) else headers)
        if session is not None:
            pairs.append(("x-switchyard-session-id", session))
        if final:
            pairs.append(("x-switchyard-session-final", "true"))
        return Request(wire_format=self.wire_format, body=self.body(model, **fields), headers=pairs)

    def _with(self, step: Words | Item) -> Self:
        told = self._told()
        return replace(told, steps=(*told.steps, step))

    def _told(self) -> Self:
        """Return the conversation with what the assistant said last as its own turn."""
        if not self.thoughts:
            return self
        return replace(self, steps=(*self.steps, self.thoughts), thoughts=())
