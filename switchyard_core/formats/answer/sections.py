"""A router's answer as events: checked for their order, and written in a wire format."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from switchyard_core.answers import (
    Announced,
    AnswerEvent,
    Extension,
    Finished,
    Progress,
    SectionFinished,
    SectionStarted,
    TextDelta,
    Usage,
)
from switchyard_core.asking import ModelUsage
from switchyard_core.declarations import WireFormat
from switchyard_core.formats.answer.chat import ChatAnswer
from switchyard_core.formats.answer.messages import MessagesAnswer
from switchyard_core.formats.answer.responses import ResponsesAnswer
from switchyard_core.formats.answer.writer import Frame, Part, PartWriter
from switchyard_core.jsontext import encode, loads

__all__ = [
    "WRITERS",
    "AnswerWriter",
    "Closed",
    "More",
    "Opened",
    "Piece",
    "Sections",
    "answer_id",
    "answer_writer",
]

#: The writer of each wire format.
WRITERS: Mapping[WireFormat, type[PartWriter]] = MappingProxyType(
    {
        "openai_chat": ChatAnswer,
        "openai_responses": ResponsesAnswer,
        "anthropic_messages": MessagesAnswer,
    }
)

#: What ends the text of every section: helpers of the SDKs join sections without a separator.
_END = "\n\n"


@dataclass(frozen=True, slots=True)
class Opened:
    """A section begins to be written.

    Args:
        index: Its number among the written sections, from 0.
    """

    index: int


@dataclass(frozen=True, slots=True)
class More:
    """More text of a section.

    Args:
        index: Number of the section.
        delta: The text, never empty.
    """

    index: int
    delta: str


@dataclass(frozen=True, slots=True)
class Closed:
    """A section is complete.

    Args:
        index: Number of the section.
        text: All of its text, with the blank line at its end.
    """

    index: int
    text: str


Piece = Opened | More | Closed


class Sections:
    """Follows the events of one answer.

    Whitespace at the end of what a section said so far is held back, so that its text ends with
    exactly one blank line whatever the router wrote. A section begins to be written with its
    first visible character; one without any is not written at all, because providers refuse
    empty parts when the answer comes back as history.

    Attributes:
        texts: Texts of the complete sections.
        usage: Sum of the usage so far.
        extension: Data of the last :class:`~switchyard_core.Extension`, ``None`` without one.
        status: Status of :class:`~switchyard_core.Finished`, ``None`` before it.
    """

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.usage = ModelUsage()
        self.extension: Any = None
        self.status: str | None = None
        self._open: str | None = None
        self._said: list[str] = []
        self._held = ""

    def take(self, event: AnswerEvent) -> tuple[Piece, ...]:
        """Return what an event writes.

        Raises:
            ValueError: The event is none, or may not stand here; the message says why.
        """
        if self.status is not None:
            msg = f"`{type(event).__name__}` after `Finished`, which is the last event of an answer"
            raise ValueError(msg)
        match event:
            case SectionStarted():
                self._start(event)
            case TextDelta():
                return self._more(event)
            case SectionFinished():
                return self._close()
            case Extension():
                self.extension = _plain(event.data)
            case Usage():
                self.usage += event.usage
            case Finished():
                self._finish(event)
            case Announced() | Progress():
                pass
            case _:
                msg = f"`{type(event).__name__}` is no event of an answer; see `AnswerEvent`"
                raise ValueError(msg)
        return ()

    def _start(self, event: SectionStarted) -> None:
        if self._open is not None:
            msg = (
                f"the section `{event.kind}` starts while the section `{self._open}` is open: "
                "yield `SectionFinished` first"
            )
            raise ValueError(msg)
        self._open, self._said, self._held = event.kind, [], ""

    def _more(self, event: TextDelta) -> tuple[Piece, ...]:
        if self._open is None:
            msg = "`TextDelta` outside of a section: yield `SectionStarted` first"
            raise ValueError(msg)
        if not isinstance(event.delta, str):
            msg = f"the delta of a `TextDelta` must be text, not {type(event.delta).__name__}"
            raise ValueError(msg)  # noqa: TRY004  # one error for all that a router does wrong
        text = self._held + event.delta
        visible = text.rstrip()
        self._held = text[len(visible) :]
        if not visible:
            return ()
        index = len(self.texts)
        opened = () if self._said else (Opened(index),)
        self._said.append(visible)
        return (*opened, More(index, visible))

    def _close(self) -> tuple[Piece, ...]:
        if self._open is None:
            msg = "`SectionFinished` without a section: yield `SectionStarted` first"
            raise ValueError(msg)
        self._open = None
        if not self._said:
            return ()
        index = len(self.texts)
        self.texts.append("".join(self._said) + _END)
        return More(index, _END), Closed(index, self.texts[index])

    def _finish(self, event: Finished) -> None:
        if self._open is not None:
            msg = f"`Finished` while the section `{self._open}` is open: yield `SectionFinished`"
            raise ValueError(msg)
        self.status = event.status


def _plain(data: Mapping[str, Any]) -> Any:
    """Return data as it will be read, independent of what the router does with its own."""
    try:
        return loads(encode(dict(data)))
    except (TypeError, ValueError, RecursionError) as error:
        msg = f"the data of an `Extension` is no JSON object: {error}"
        raise ValueError(msg) from None


class AnswerWriter:
    """Writes one answer of a router in one wire format: as a stream, or whole.

    A stream is ``begin()``, then ``event()`` for each event of the router, then ``end()``; each
    gives complete server-sent events, so comments may be put between any two. A whole body is
    ``event()`` for each event, then ``whole()``. The same events give the same content.

    The text of each section ends with exactly one blank line, whatever the router wrote, and a
    section without a visible character is not written. Events out of order are ``ValueError``:
    text outside of a section, a section in another one, anything after ``Finished``.
    """

    def __init__(self, writer: PartWriter, extension_key: str) -> None:
        self._writer = writer
        self._extension_key = extension_key
        self._sections = Sections()

    def begin(self) -> bytes:
        """Return the first bytes of a stream; the tokens are not known yet."""
        return self._writer.begin(ModelUsage())

    def event(self, event: AnswerEvent) -> bytes:
        """Return the bytes of one event in a stream, ``b""`` when it writes nothing.

        Raises:
            ValueError: The event may not come here.
        """
        return b"".join(self._piece(piece) for piece in self._sections.take(event))

    def end(self) -> bytes:
        """Return the last bytes of a stream.

        Raises:
            ValueError: There was no ``Finished``.
        """
        return self._writer.end("stop", self._sections.usage, self._finished())

    def whole(self) -> bytes:
        """Return the whole body.

        Raises:
            ValueError: There was no ``Finished``.
        """
        return encode(self._writer.whole("stop", self._sections.usage, self._finished()))

    def _piece(self, piece: Piece) -> bytes:
        match piece:
            case Opened():
                return self._writer.open(Part(kind="text"))
            case More():
                return self._writer.more(piece.delta)
            case Closed():
                return self._writer.close()

    def _finished(self) -> dict[str, Any]:
        """Return the extension as members of an object, once the answer is complete."""
        if self._sections.status is None:
            msg = "the answer is not finished: the last event of an answer is `Finished`"
            raise ValueError(msg)
        extension = self._sections.extension
        return {} if extension is None else {self._extension_key: extension}


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
        extension_key: Key of the machine-readable part.
        include_usage: Whether a Chat request has ``stream_options.include_usage``; the other
            formats and whole bodies always state the usage.
    """
    frame = Frame(
        model=model,
        id=answer_id,
        created_s=created_s,
        include_usage=include_usage,
        # Nobody keeps it: a later request cannot name it.
        request={"store": False},
    )
    return AnswerWriter(WRITERS[wire_format](frame), extension_key)


def answer_id(wire_format: WireFormat, new_id: Callable[[str], str]) -> str:
    """Return a new id of an answer, formed as clients of the wire format know it.

    Args:
        wire_format: The caller's.
        new_id: Makes ``<prefix>_<something>``, such as ``context.new_id``.
    """
    prefix = WRITERS[wire_format].id_prefix
    return prefix + new_id(prefix[:-1]).removeprefix(f"{prefix[:-1]}_")
