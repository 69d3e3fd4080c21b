"""What a router asks and answers: calls to models, and the events of its own answer.

A router never opens a connection. It asks with
``await context.ask(target, ModelCall(...))``; the engine makes the call with the target's key,
retries and timeouts, and a test feeds canned replies.

A router of kind ``answers`` is an asynchronous generator of events, which the engine writes in
the wire format of the caller, whole or as a stream::

    async def answer(self, request, context):
        reply = await context.ask("writer", ModelCall(text="..."))
        yield SectionStarted(kind="answer")
        yield TextDelta(reply.text)
        yield SectionFinished()
        yield Usage(reply.usage)
        yield Finished("completed")

Until the first event nothing was sent, and a :class:`~switchyard_core.RequestError` becomes the
answer. After it the status is 200, and what goes wrong has to be said in the text.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from switchyard_core.conversation import Image
from switchyard_core.decision import DecisionWarning, Failure
from switchyard_core.errors import SwitchyardError

__all__ = [
    "Announced",
    "AnswerEvent",
    "Ask",
    "AskError",
    "Extension",
    "Finished",
    "ModelCall",
    "ModelReply",
    "ModelUsage",
    "Progress",
    "RequestedCall",
    "SectionFinished",
    "SectionStarted",
    "TextDelta",
    "ToolOutput",
    "ToolSpec",
    "Usage",
    "WouldAsk",
]

#: Words of the three wire formats for a reply that was cut at a limit.
_CUT = frozenset(
    {"incomplete", "length", "max_output_tokens", "max_tokens", "model_context_window_exceeded"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """A tool as a model sees it, the same for every wire format.

    Args:
        name: ``[a-zA-Z0-9_-]``, up to 64 characters.
        parameters: JSON schema of its arguments, an object.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCall:
    """One call to a model, the same for every wire format.

    Args:
        text: The user's message; used when ``items`` is empty.
        instructions: System instructions, ``""`` for none.
        items: The conversation as items of the target's own wire format (``messages`` or
            ``input``), when it is more than one user message.
        images: Images of the user's message, beside ``text``.
        tools: Tools, as :class:`ToolSpec` or in the target's own wire format.
        schema: JSON schema that the reply must follow, as structured output; every property
            required and ``additionalProperties`` false.
        schema_name: Name of that schema, ``[a-zA-Z0-9_-]``, up to 64 characters.
        max_output_tokens: Limit of the reply in tokens; ``None`` leaves it to the provider.
        temperature: Sampling temperature; ``None`` leaves it to the provider.
        sampling: Further sampling settings by neutral names: ``temperature``, ``top_p``,
            ``top_k``, ``stop`` (a sequence of texts), ``seed``, ``frequency_penalty``,
            ``presence_penalty``. Those that the target's format has no place for are left out.
        keep_reasoning: Ask for the reasoning in a form that can be sent back with ``items``,
            where the format gives it only on demand (Responses).
        role: What the call is for, one word: for logs, and for the file name of a recording.
    """

    text: str = ""
    instructions: str = ""
    items: tuple[Mapping[str, Any], ...] = ()
    images: tuple[Image, ...] = ()
    tools: tuple[ToolSpec | Mapping[str, Any], ...] = ()
    schema: Mapping[str, Any] | None = None
    schema_name: str = "answer"
    max_output_tokens: int | None = None
    temperature: float | None = None
    sampling: Mapping[str, Any] = field(default_factory=dict)
    keep_reasoning: bool = False
    role: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelUsage:
    """Tokens of one call, 0 where the provider reports none.

    Args:
        input_tokens: All tokens of the input, cached and written ones included, in every wire
            format.
        output_tokens: Tokens of the reply, reasoning included.
        cached_tokens: How many of the input came from a cache.
        cache_write_tokens: How many of the input were written to a cache.
        reasoning_tokens: How many of the output were reasoning.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0

    def __add__(self, other: ModelUsage) -> ModelUsage:
        """Return the sum of two calls."""
        return ModelUsage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            cache_write_tokens=self.cache_write_tokens + other.cache_write_tokens,
            reasoning_tokens=self.reasoning_tokens + other.reasoning_tokens,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestedCall:
    """A tool call that a reply asks for; ``arguments`` is JSON text."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOutput:
    """What came of a tool call.

    Args:
        text: What the model is told.
        ok: Whether the tool ran and returned.
        error: Why not, one word: ``arguments``, ``unknown``, ``exception``, ``timeout``; ``""``
            when it did.
        ms: Milliseconds that it took.
    """

    call: RequestedCall
    text: str
    ok: bool = True
    error: str = ""
    ms: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReply:
    """What a model answered.

    Args:
        text: Its visible text, ``""`` without any.
        items: Its items of the target's own wire format, to be sent back as they are.
        stop: Why it stopped, in the provider's own word: ``stop``, ``length``, ``end_turn``, …
        refusal: Text of a refusal, ``""`` when it did not refuse.
        wants: What it waits for that no answer can be given to, each in the provider's own word,
            such as ``custom_tool_call`` or ``pause_turn``; empty for a reply that is complete or
            asks for ``calls`` alone.
    """

    text: str = ""
    calls: tuple[RequestedCall, ...] = ()
    items: tuple[Mapping[str, Any], ...] = ()
    stop: str = ""
    refusal: str = ""
    usage: ModelUsage = field(default_factory=ModelUsage)
    wants: tuple[str, ...] = ()

    @property
    def truncated(self) -> bool:
        """Whether the reply was cut at a limit of tokens."""
        return self.stop in _CUT


class AskError(SwitchyardError):
    """A model that was asked gave no usable answer.

    Args:
        message: What happened, naming the target.
        failure: The provider's answer, or how the transport failed.
        usage: What the answer took nevertheless.
    """

    def __init__(self, message: str, failure: Failure, usage: ModelUsage | None = None) -> None:
        self.message = message
        self.failure = failure
        self.usage = usage or ModelUsage()
        super().__init__(message)


class WouldAsk(SwitchyardError):  # noqa: N818  # not a fault: an explanation ends here
    """A router wants to ask a model where nothing may be sent: in an explanation."""

    def __init__(self, target: str, call: ModelCall) -> None:
        self.target = target
        self.call = call
        super().__init__(f"would ask {target}")


#: What ``context.ask`` is.
Ask = Callable[[str, ModelCall], Awaitable[ModelReply]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Announced:
    """Facts for the headers of the answer.

    Those of a stream leave with its first section or :class:`Progress`; what is announced later
    is for whole answers.

    Args:
        phase: Value of ``x-switchyard-phase``, ``""`` to leave it.
        facts: ``{"plan-id": "..."}`` becomes ``x-switchyard-plan-id``; names of ``a-z``, ``0-9``
            and ``-``, values of one line of ASCII.
        warnings: Their codes go into ``x-switchyard-warning``.
    """

    phase: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[DecisionWarning, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionStarted:
    """A part of the answer begins: one output item (Responses), one block (Messages).

    Args:
        kind: A word of the router, such as ``plan`` or ``step``.
        title: For people; not part of the text.
    """

    kind: str
    title: str = ""


@dataclass(frozen=True, slots=True)
class TextDelta:
    """More text of the section that is open."""

    delta: str


@dataclass(frozen=True, slots=True)
class SectionFinished:
    """The section that is open ends; the engine ends its text with a blank line."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Something that happened, as plain data: a log, sent as a comment of the stream if wanted."""

    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Extension:
    """The machine-readable part of the answer: its ``switchyard`` object; the last one counts."""

    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens that were used; the answer states the sum of all these events."""

    usage: ModelUsage


@dataclass(frozen=True, slots=True)
class Finished:
    """The end of the answer, always the last event.

    ``status`` is a word of the router; it becomes ``x-switchyard-phase`` of a whole answer.
    """

    status: str


AnswerEvent = (
    Announced
    | SectionStarted
    | TextDelta
    | SectionFinished
    | Progress
    | Extension
    | Usage
    | Finished
)
