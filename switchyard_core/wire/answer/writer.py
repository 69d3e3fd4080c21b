"""The writer of answers for a wire format."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Protocol

from switchyard_core.answering import AnswerEvent
from switchyard_core.declarations import WireFormat
from switchyard_core.wire.answer.base import Frame, Writer
from switchyard_core.wire.chat.answer import ChatAnswer
from switchyard_core.wire.messages.answer import MessagesAnswer
from switchyard_core.wire.responses.answer import ResponsesAnswer

__all__ = ["AnswerWriter", "answer_id", "answer_writer"]

_WRITERS: Mapping[WireFormat, type[Writer]] = MappingProxyType(
    {
        "openai_chat": ChatAnswer,
        "openai_responses": ResponsesAnswer,
        "anthropic_messages": MessagesAnswer,
    }
)
_PREFIXES: Mapping[WireFormat, str] = MappingProxyType(
    {"openai_chat": "chatcmpl", "openai_responses": "resp", "anthropic_messages": "msg"}
)


class AnswerWriter(Protocol):
    """Writes one answer in one wire format: as a stream, or whole.

    A stream is ``begin()``, then ``event()`` for each event of the router, then ``end()``; each
    gives complete server-sent events, so that comments may stand between any two. A whole body
    is ``note()`` for each event, then ``whole()``. The same events give the same content.

    The text of each section ends with exactly one blank line, whatever the router wrote, and a
    section without a visible character is not written. Events out of order are ``ValueError``:
    text outside of a section, a section in another one, anything after ``Finished``.
    """

    def begin(self) -> bytes:
        """Return the first bytes of a stream."""
        ...

    def event(self, event: AnswerEvent) -> bytes:
        """Return the bytes of one event in a stream, ``b""`` when it writes nothing.

        Raises:
            ValueError: The event may not stand here.
        """
        ...

    def end(self) -> bytes:
        """Return the last bytes of a stream.

        Raises:
            ValueError: There was no ``Finished``.
        """
        ...

    def note(self, event: AnswerEvent) -> None:
        """Take one event for the whole body.

        Raises:
            ValueError: The event may not stand here.
        """
        ...

    def whole(self) -> bytes:
        """Return the whole body.

        Raises:
            ValueError: There was no ``Finished``.
        """
        ...


def answer_writer(
    wire_format: WireFormat,
    *,
    model: str,
    answer_id: str,
    created_s: int,
    extension_key: str = "switchyard",
    include_usage: bool = False,
) -> AnswerWriter:
    """Return a writer for one answer.

    Args:
        wire_format: The caller's.
        model: Model id that the answer names: the route's, since several models may serve it.
        answer_id: See :func:`answer_id`.
        created_s: Whole seconds since the epoch.
        extension_key: Where the machine-readable part stands.
        include_usage: Whether a Chat request has ``stream_options.include_usage``; the other
            formats and whole bodies always state the usage.
    """
    frame = Frame(
        model=model,
        id=answer_id,
        created_s=created_s,
        extension_key=extension_key,
        include_usage=include_usage,
    )
    return _WRITERS[wire_format](frame)


def answer_id(wire_format: WireFormat, new_id: Callable[[str], str]) -> str:
    """Return a new id of an answer, formed as clients of the wire format know it.

    Args:
        wire_format: The caller's.
        new_id: Makes ``<prefix>_<something>``, such as ``context.new_id``.
    """
    made = new_id(_PREFIXES[wire_format])
    return made.replace("_", "-", 1) if wire_format == "openai_chat" else made
