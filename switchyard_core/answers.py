"""What an answering router yields: the events that an answer is made of.

The engine writes them in the wire format of whoever asked, whole or as a stream. A router of
kind ``answers`` is an asynchronous generator over them::

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

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from switchyard_core.asking import ModelUsage
from switchyard_core.decision import DecisionWarning

__all__ = [
    "Announced",
    "AnswerEvent",
    "Extension",
    "Finished",
    "Progress",
    "SectionFinished",
    "SectionStarted",
    "TextDelta",
    "Usage",
]


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

    Args:
        status: A word of the router; becomes ``x-switchyard-phase`` of a whole answer.
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
