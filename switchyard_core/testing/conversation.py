"""A builder of request bodies that reads like the story it tells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from switchyard_core.declarations import WIRE_FORMATS, WireFormat
from switchyard_core.jsonio.tree import encode
from switchyard_core.request import Request
from switchyard_core.testing.bodies_chat import chat_body
from switchyard_core.testing.bodies_messages import messages_body
from switchyard_core.testing.bodies_responses import responses_body
from switchyard_core.testing.story import Call, CallShape, Item, Said, Story, Thought, Turn, Words

__all__ = ["ConversationBuilder", "conversation"]

_WRITERS = {
    "openai_chat": chat_body,
    "openai_responses": responses_body,
    "anthropic_messages": messages_body,
}


def conversation(wire_format: WireFormat) -> ConversationBuilder:
    """Return the beginning of a conversation in one wire format.

    Raises:
        ValueError: The wire format is unknown.

    Example:
        >>> story = conversation("openai_chat").user("fix it").reads("read", path="a.py")
        >>> [message["role"] for message in story.build()["messages"]]
        ['user', 'assistant', 'tool']
    """
    if wire_format not in WIRE_FORMATS:
        msg = f"unknown wire format `{wire_format}`; known: {', '.join(WIRE_FORMATS)}"
        raise ValueError(msg)
    return ConversationBuilder(story=Story(wire_format=wire_format))


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationBuilder:
    """A conversation so far; every method returns a longer one and leaves this one as it is.

    A tool call ends the assistant's turn and its result follows at once, unless the call was
    given with others to :meth:`parallel`. What the assistant says or thinks belongs to the
    call that comes next.

    Args:
        story: What has been told.
        thoughts: What the assistant said since its last call.
    """

    story: Story
    thoughts: tuple[Said | Thought, ...] = ()

    # --- the other side ------------------------------------------------------------------

    def system(self, text: str, *, cached: bool = False) -> Self:
        """Add instructions; ``cached`` puts a cache mark on them (Messages)."""
        return self._with(Words(role="system", text=text, cached=cached))

    def developer(self, text: str) -> Self:
        """Add a developer message; on Messages further instructions."""
        return self._with(Words(role="developer", text=text))

    def user(self, text: str, *, cached: bool = False) -> Self:
        """Add text of the user; ``cached`` puts a cache mark on it (Messages)."""
        return self._with(Words(role="user", text=text, cached=cached))

    # --- the assistant -------------------------------------------------------------------

    def says(self, text: str) -> Self:
        """Let the assistant say something."""
        return replace(self, thoughts=(*self.thoughts, Said(text=text)))

    def reasoning(self, text: str = "", *, encrypted: str | None = None) -> Self:
        """Let the assistant think.

        Args:
            text: What can be read of it; on Messages an empty one with ``encrypted`` is a
                redacted block.
            encrypted: Its opaque form: ``encrypted_content``, ``signature``, or a
                ``reasoning_details`` entry.
        """
        return replace(self, thoughts=(*self.thoughts, Thought(text=text, encrypted=encrypted)))

    def reads(self, tool: str, /, *, result: str = "contents", **arguments: Any) -> Self:
        """Let the assistant call a tool that only looks."""
        return self.parallel(Call(name=tool, arguments=arguments, result=result))

    def edits(
        self, tool: str, /, *, fails: bool = False, answered: bool = True, **arguments: Any
    ) -> Self:
        """Let the assistant call a tool that changes a file."""
        return self.parallel(Call(name=tool, arguments=arguments, fails=fails, answered=answered))

    def runs(
        self,
        command: str,
        *,
        tool: str = "bash",
        shape: CallShape = "function",
        result: str = "",
        answered: bool = True,
    ) -> Self:
        """Let the assistant run a shell command.

        Args:
            command: The command line.
            tool: Name of the tool of a function call; its argument is ``command``.
            shape: ``local_shell_call`` or ``shell_call`` for the built-in tools of Responses.
            result: What the command printed.
            answered: Whether there is a result.
        """
        arguments: Mapping[str, Any] = {"command": command}
        if shape == "local_shell_call":
            arguments = {"type": "exec", "command": ["bash", "-lc", command], "env": {}}
        elif shape == "shell_call":
            arguments = {"commands": [command]}
        return self.parallel(
            Call(name=tool, arguments=arguments, result=result, answered=answered, shape=shape)
        )

    def calls(  # noqa: PLR0913  # one word per way in which a call can differ
        self,
        tool: str,
        arguments: Mapping[str, Any] | str | None = None,
        *,
        result: str | None = None,
        fails: bool = False,
        answered: bool = True,
        namespace: str | None = None,
        server: str = "",
        custom: bool = False,
        shape: CallShape = "function",
        id: str = "",  # noqa: A002  # the wire's own word
    ) -> Self:
        """Let the assistant call a tool in any shape; see :class:`Call` for the arguments.

        ``custom`` is short for ``shape="custom"``.
        """
        return self.parallel(
            Call(
                name=tool,
                arguments={} if arguments is None else arguments,
                result=result,
                fails=fails,
                answered=answered,
                namespace=namespace,
                server=server,
                shape="custom" if custom else shape,
                id=id,
            )
        )

    def parallel(self, *calls: Call) -> Self:
        """Let the assistant make several calls in one turn; their results follow together."""
        number = len(self.story.calls)
        prefix = "toolu" if self.story.wire_format == "anthropic_messages" else "call"
        named = [
            call if call.id else replace(call, id=f"{prefix}_{number + place:04}")
            for place, call in enumerate(calls, 1)
        ]
        turn = Turn(parts=(*self.thoughts, *named))
        story = replace(self.story, steps=(*self.story.steps, turn))
        return replace(self, story=story, thoughts=())

    # --- the rest ------------------------------------------------------------------------

    def item(self, value: Any) -> Self:
        """Put an item of the wire format itself into ``messages`` or ``input``, as it is."""
        return self._with(Item(value=value))

    def offers(self, *tools: str) -> Self:
        """Offer tools that nobody has called; those that were called are offered anyway."""
        return replace(self, story=replace(self.story, offered=(*self.story.offered, *tools)))

    def lite(self) -> Self:
        """Offer the tools in the first item of the history (Responses).

        Raises:
            ValueError: The wire format has no such shape.
        """
        if self.story.wire_format != "openai_responses":
            msg = f"{self.story.wire_format} has no tools inside the history"
            raise ValueError(msg)
        return replace(self, story=replace(self.story, lite=True))

    def build(self, model: str = "switchyard/plan-execute", **fields: Any) -> dict[str, Any]:
        """Return the body as a tree: a new one each time.

        Args:
            model: Model id that is asked for.
            fields: Further top-level fields, such as ``stream=True``; they come last and win.

        Raises:
            ValueError: The story has a call that the wire format cannot express.
        """
        return {"model": model, **_WRITERS[self.story.wire_format](self._told().story), **fields}

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
        """Return the body as a request.

        Args:
            model: Model id that is asked for.
            headers: The client's headers.
            session: Session id, sent as ``x-switchyard-session-id``.
            final: Whether the request is marked as the session's last.
            fields: Further top-level fields of the body.
        """
        pairs = list(headers.items() if isinstance(headers, Mapping) else headers)
        if session is not None:
            pairs.append(("x-switchyard-session-id", session))
        if final:
            pairs.append(("x-switchyard-session-final", "true"))
        return Request(
            wire_format=self.story.wire_format, body=self.body(model, **fields), headers=pairs
        )

    def _with(self, step: Words | Turn | Item) -> Self:
        told = self._told()
        steps = (*told.story.steps, step)
        return replace(told, story=replace(told.story, steps=steps))

    def _told(self) -> Self:
        """Return the conversation with what the assistant said last as a turn of its own."""
        if not self.thoughts:
            return self
        steps = (*self.story.steps, Turn(parts=self.thoughts))
        return replace(self, thoughts=(), story=replace(self.story, steps=steps))
