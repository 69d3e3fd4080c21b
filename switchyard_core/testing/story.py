"""What a conversation is told as, before it becomes a body of one wire format."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from switchyard_core.declarations import WireFormat

__all__ = ["Call", "CallShape", "Item", "Said", "Story", "Thought", "Turn", "Words", "call"]

#: How a call stands on the wire. ``function`` exists everywhere, ``custom`` on Chat and
#: Responses (elsewhere it is a function with one argument ``input``), ``legacy`` only on Chat,
#: ``mcp`` on Responses and Messages, the other three only on Responses.
CallShape = Literal[
    "function",
    "custom",
    "legacy",
    "mcp",
    "local_shell_call",
    "shell_call",
    "apply_patch_call",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A tool call of the assistant, and what came of it.

    Args:
        name: Tool name; not used by the built-in shapes.
        arguments: Arguments of a function; a string is sent as it is (broken JSON, for
            example), and for ``custom`` it is the free text. For the built-in shapes the
            ``action`` or ``operation``.
        result: Text of the result, ``None`` for a default.
        fails: Whether the result says that the call failed.
        answered: Whether there is a result at all.
        namespace: Namespace of the tool, on Responses.
        server: MCP server of the tool.
        shape: How it stands on the wire.
        id: Call id; made up from the number of the call when empty.
    """

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)
    result: str | None = None
    fails: bool = False
    answered: bool = True
    namespace: str | None = None
    server: str = ""
    shape: CallShape = "function"
    id: str = ""

    @property
    def output(self) -> str:
        """Text of the result."""
        if self.result is not None:
            return self.result
        return "error: it did not work" if self.fails else "ok"


def call(name: str, /, *, fails: bool = False, answered: bool = True, **arguments: Any) -> Call:
    """Return a function call for :meth:`~.ConversationBuilder.parallel`.

    Args:
        name: Tool name.
        fails: Whether its result says that it failed.
        answered: Whether there is a result.
        arguments: Arguments of the tool.
    """
    return Call(name=name, arguments=arguments, fails=fails, answered=answered)


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """Text of the assistant."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Thought:
    """Reasoning of the assistant: readable text, and its opaque form if there is one."""

    text: str
    encrypted: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What the assistant made at once; its results follow it."""

    parts: tuple[Said | Thought | Call, ...]

    @property
    def calls(self) -> tuple[Call, ...]:
        """Its calls, in order."""
        return tuple(part for part in self.parts if isinstance(part, Call))


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """Text of the user, or instructions; ``cached`` puts a cache mark on it (Messages)."""

    role: Literal["system", "developer", "user"]
    text: str
    cached: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """An item of the wire format itself, put into the history as it is."""

    value: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """A whole conversation.

    Args:
        wire_format: Wire format of the body.
        steps: In order.
        offered: Names of tools that are offered though nobody calls them.
        lite: Whether the tools stand in the first item of the history (Responses).
    """

    wire_format: WireFormat
    steps: tuple[Words | Turn | Item, ...] = ()
    offered: tuple[str, ...] = ()
    lite: bool = False

    @property
    def calls(self) -> tuple[Call, ...]:
        """Every call, in order."""
        turns = (step for step in self.steps if isinstance(step, Turn))
        return tuple(call for turn in turns for call in turn.calls)

    def tools(self) -> Iterator[Call]:
        """Yield one call per tool that must be offered: those called, then the others."""
        seen: set[tuple[str, str | None, str]] = set()
        for each in (*self.calls, *(Call(name=name) for name in self.offered)):
            key = (each.name, each.namespace, each.shape)
            if key not in seen:
                seen.add(key)
                yield each
