"""Writing an answer in a caller's wire format: its parts one after another, as a stream or whole.

Routers that answer on their own and the scripted provider write through the same writers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from switchyard_core.answering import (
    Announced,
    AnswerEvent,
    Extension,
    Finished,
    ModelUsage,
    Progress,
    SectionFinished,
    SectionStarted,
    TextDelta,
    Usage,
)
from switchyard_core.jsonio.tree import encode, loads

if TYPE_CHECKING:
    from switchyard_core.wire.format import Format

__all__ = [
    "AnswerPart",
    "AnswerWriter",
    "Closed",
    "Event",
    "Frame",
    "More",
    "Opened",
    "PartWriter",
    "Piece",
    "Sections",
    "answer_id",
    "answer_writer",
    "comment",
    "legal",
    "one_line",
    "sse",
    "stream_bytes",
]


#: Line ends to Unicode though not to the format; some clients cut lines there. JSON has them
#: inside of strings only, where an escape is the same character.
_LINE_ENDS = tuple((end.encode(), b"\\u%04x" % ord(end)) for end in "\x85\u2028\u2029")
#: Stands for a piece of text where the events around it are made once.
_TEXT = "<a piece of text>"


@dataclass(frozen=True, slots=True)
class Event:
    """One server-sent event, not encoded yet."""

    data: Mapping[str, Any] | str  # an object, or a word such as `[DONE]`
    name: str = ""


def sse(data: Mapping[str, Any] | str, name: str = "") -> bytes:
    """Return one event."""
    head = f"event: {name}\n".encode() if name else b""
    line = data.encode() if isinstance(data, str) else _line(data)
    return head + b"data: " + line + b"\n\n"


def comment(data: Mapping[str, Any] | None) -> bytes:
    """Return a comment of a stream, JSON or a ping; every conforming client ignores it."""
    if data is None:
        return b": ping\n\n"
    try:
        return b": " + _line(data) + b"\n\n"
    except (TypeError, RecursionError) as error:
        msg = f"the data of a comment is not JSON: {error}"
        raise ValueError(msg) from None


def _line(data: Mapping[str, Any]) -> bytes:
    return one_line(encode(dict(data)))


def legal(raw: bytes) -> bytes:
    """Return JSON of a provider as UTF-8, which some cut in the middle of a character."""
    return raw if raw.isascii() else raw.decode("utf-8", "replace").encode()


def one_line(line: bytes) -> bytes:
    """Return JSON text without anything that some client takes for the end of a line."""
    if not line.isascii():
        for character, escape in _LINE_ENDS:
            line = line.replace(character, escape)
    return line


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """What is known of an answer before its first part."""

    model: str
    id: str  # id of the answer, with the prefix of its wire format
    created_s: int  # seconds since the epoch
    include_usage: bool = False  # of a Chat stream
    #: Body of the request, for an answer that looks in all as its provider writes it: settings
    #: repeated, every count. `None` leaves out what a router cannot know.
    request: Mapping[str, Any] | None = None
    #: Whether what only a provider itself knows is made up, too.
    invents: bool = False
    stop: str = "stop"  # why it ends; see :attr:`PartWriter.stop_words`
    only_calls: bool = False  # whether the answer will be tool calls without a text


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerPart:
    """One part of an answer; its text comes in pieces."""

    #: `call` is a tool call: its text is the JSON of the arguments, or the free text of a `custom`
    #: one. `refusal` is the model's own, where a format tells it from text.
    kind: Literal["text", "reasoning", "call", "refusal"]
    id: str = ""
    name: str = ""
    namespace: str = ""  # namespace of the tool, `""` without one
    custom: bool = False  # whether a call takes free text
    opaque: str = ""  # opaque form of reasoning, or signature of a call, `""` without one


class PartWriter(ABC):
    """Writes one answer: ``begin``; ``open``, ``more`` and ``close`` for each part; ``end``.

    For a whole body the events are ignored, and ``whole`` takes the place of ``end``: both have the
    same content.
    """

    #: What an answer's id begins with, and a tool call's.
    id_prefix: ClassVar[str]
    call_prefix: ClassVar[str] = "call_"
    #: Whether tools can take free text.
    has_custom_calls: ClassVar[bool] = False
    #: Key of the object that holds arguments which are none, `""` where any text may be arguments.
    object_key: ClassVar[str] = ""
    #: Whether the end of a text tells whether the answer was cut in it.
    tells_cuts: ClassVar[bool] = False
    #: Words for the reasons to stop: ``stop``, ``calls``, ``length``, ``filter``; others stay.
    stop_words: ClassVar[Mapping[str, str]]

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        #: The parts so far, and their texts; the last one may be open.
        self.parts: list[AnswerPart] = []
        self.texts: list[Any] = []
        #: What is written around each piece of the open part, `()` before the first one.
        self._around: tuple[bytes, ...] = ()

    @classmethod
    @abstractmethod
    def id_of(cls, key: str) -> str:
        """Return the id of a provider's answer that follows from 64 hex digits."""

    @property
    def wants_opaque(self) -> bool:
        """Whether reasoning always has an opaque form, given or not."""
        return False

    def ping(self) -> Event | None:
        """Return the event that keeps a stream alive, ``None`` where only a comment does."""
        return None

    @abstractmethod
    def begin(self, usage: ModelUsage) -> Iterable[Event]:
        """Return the first events of a stream; ``usage`` is what is known of it by then."""

    def open(self, part: AnswerPart) -> Iterable[Event]:
        """Begin a part."""
        self.parts.append(part)
        self.texts.append("")
        return self._opened(len(self.parts) - 1, part)

    def more(self, text: str) -> Iterable[Event]:
        """Add text to the part that is open."""
        index, part = len(self.parts) - 1, self.parts[-1]
        said = self.texts.pop()
        first = [] if said else self._first(index, part)
        # A string that nothing else holds grows in place.
        said += text
        self.texts.append(said)
        return [*first, *self._more(index, part, text)]

    def piece(self, raw: bytes) -> bytes:
        """Add text to the part that is open: a JSON string; return the bytes of a stream.

        They are those of :meth:`more`, made once for each part; a part gets pieces or texts. Its
        text is not kept.
        """
        if not self._around:
            return self._prepared() + self.piece(raw)
        if not raw.isascii():
            raw = one_line(legal(raw))
        return self._around[0] + raw + self._around[1]

    def close(self) -> Iterable[Event]:
        """End the part that is open."""
        self._around = ()
        return self._closed(len(self.parts) - 1, self.parts[-1], self.texts[-1])

    @property
    def is_empty(self) -> bool:
        """Whether the part that is open has no text by now."""
        return not self._around and not self.texts[-1]

    def _prepared(self) -> bytes:
        """Make what is written around the pieces of a part; return what comes before them."""
        index, part = len(self.parts) - 1, self.parts[-1]
        begun = stream_bytes(self._first(index, part))
        before, _, behind = self._sample(index, part).rpartition(encode(_TEXT))
        self._around = (before, behind)
        return begun

    def _sample(self, index: int, part: AnswerPart) -> bytes:
        return stream_bytes(self._more(index, part, _TEXT))

    @abstractmethod
    def end(self, usage: ModelUsage, extension: Mapping[str, Any]) -> Iterable[Event]:
        """Return the last events of a stream; ``extension`` adds members to the last object."""

    @abstractmethod
    def whole(self, usage: ModelUsage, extension: Mapping[str, Any]) -> dict[str, Any]:
        """Return the whole body."""

    def arguments(self, text: str) -> str:
        """Return the arguments of a call as this wire format can carry them."""
        return text

    @property
    def stop_word(self) -> str:
        """Why the answer ends, in the words of this wire format."""
        return self.stop_words.get(self.frame.stop, self.frame.stop)

    @abstractmethod
    def _opened(self, index: int, part: AnswerPart) -> Iterable[Event]: ...

    def _first(self, index: int, part: AnswerPart) -> Iterable[Event]:
        """Return the events before the first text of a part."""
        del index, part
        return ()

    @abstractmethod
    def _more(self, index: int, part: AnswerPart, text: str) -> Iterable[Event]: ...

    @abstractmethod
    def _closed(self, index: int, part: AnswerPart, text: Any) -> Iterable[Event]:
        """Return the events of a part's end; ``text`` is empty where pieces are not kept."""


def stream_bytes(events: Iterable[Event]) -> bytes:
    """Return events as they are sent."""
    return b"".join([sse(event.data, event.name) for event in events])


# --- the events of a router --------------------------------------------------------------

#: What ends the text of every section: helpers of the SDKs join sections without a separator.
_END = "\n\n"


@dataclass(frozen=True, slots=True)
class Opened:
    """A section begins."""

    index: int


@dataclass(frozen=True, slots=True)
class More:
    """More text of a section, never empty."""

    index: int
    delta: str


@dataclass(frozen=True, slots=True)
class Closed:
    """A section is complete; its text ends with a blank line."""

    index: int
    text: str


Piece = Opened | More | Closed


class Sections:
    """Follows the events of one answer.

    Trailing whitespace of a section is held back, so that its text ends with exactly one blank line
    whatever the router wrote. A section begins with its first visible character; one without any is
    not written, because providers refuse empty parts when the answer comes back as history.
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
        """Return what an event writes; one out of order is a ``ValueError``."""
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
                msg = f"`{type(event).__name__}` is not an event of an answer; see `AnswerEvent`"
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
    """Return a copy of data as its JSON reads."""
    try:
        return loads(encode(dict(data)))
    except (TypeError, ValueError, RecursionError) as error:
        msg = f"the data of an `Extension` is not a JSON object: {error}"
        raise ValueError(msg) from None


class AnswerWriter:
    """Writes one answer of a router in one wire format: as a stream, or whole.

    A stream is ``begin()``, ``event()`` for each event of the router, then ``end()``; each gives
    complete server-sent events, so that comments may come between any two. A whole body is
    ``note()`` for each event, then ``whole()``. The same events give the same content. Events out
    of order and a missing ``Finished`` are a ``ValueError``.
    """

    def __init__(self, writer: PartWriter, extension_key: str) -> None:
        self._writer = writer
        self._extension_key = extension_key
        self._sections = Sections()

    def begin(self) -> bytes:
        """Return the first bytes of a stream."""
        return stream_bytes(self._writer.begin(ModelUsage()))

    def event(self, event: AnswerEvent) -> bytes:
        """Return the bytes of one event in a stream, ``b""`` when it writes nothing."""
        return b"".join(
            [stream_bytes(self._written(piece)) for piece in self._sections.take(event)]
        )

    def note(self, event: AnswerEvent) -> None:
        """Take one event for the whole body."""
        for piece in self._sections.take(event):
            self._written(piece)

    def end(self) -> bytes:
        """Return the last bytes of a stream."""
        return stream_bytes(self._writer.end(self._sections.usage, self._finished()))

    def whole(self) -> bytes:
        """Return the whole body."""
        return encode(self._writer.whole(self._sections.usage, self._finished()))

    def _written(self, piece: Piece) -> Iterable[Event]:
        match piece:
            case Opened():
                return self._writer.open(AnswerPart(kind="text"))
            case More():
                return self._writer.more(piece.delta)
            case Closed():
                return self._writer.close()

    def _finished(self) -> dict[str, Any]:
        if self._sections.status is None:
            msg = "the answer is not finished: the last event of an answer is `Finished`"
            raise ValueError(msg)
        extension = self._sections.extension
        return {} if extension is None else {self._extension_key: extension}


def answer_writer(
    wire_format: Format,
    *,
    model: str,
    answer_id: str,
    created_s: int,
    extension_key: str = "switchyard",
    include_usage: bool = False,
) -> AnswerWriter:
    """Return a writer for one answer of a router.

    ``include_usage`` is the ``stream_options.include_usage`` of a Chat request; the other formats
    and whole bodies always state the usage.
    """
    frame = Frame(model=model, id=answer_id, created_s=created_s, include_usage=include_usage)
    return AnswerWriter(wire_format.writer(frame), extension_key)


def answer_id(wire_format: Format, new_id: Callable[[str], str]) -> str:
    """Return a new id of an answer, in the form of the wire format."""
    prefix = wire_format.writer.id_prefix
    return prefix + new_id(prefix[:-1]).removeprefix(f"{prefix[:-1]}_")
