"""An answer told in another wire format: from the provider's bytes to the caller's."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NoReturn

from switchyard_core.answering import ModelUsage
from switchyard_core.errors import UpstreamError
from switchyard_core.jsonio.tree import JsonTextError, ObjectText, encode, loads
from switchyard_core.wire.answers import (
    AnswerPart,
    Event,
    Frame,
    PartWriter,
    answer_id,
    comment,
    sse,
)
from switchyard_core.wire.events import EventCutter, SentEvent
from switchyard_core.wire.naming import ToolNames, id_for_caller, told_apart
from switchyard_core.wire.replies import ShapeError, count, told_error
from switchyard_core.wire.retelling import AnswerTeller

if TYPE_CHECKING:
    from switchyard_core.wire.format import AnswerModel, Format

__all__ = ["AnswerTranslation"]

_COMMENT = comment(None)


class AnswerTranslation:
    """One answer of a provider, told in the caller's wire format.

    Args:
        source: The format that the provider speaks.
        caller: The format that the caller reads.
        request: The caller's own body.
        model: The model id that the caller asked for.
        answer_model: Whether the answer names that one, or the provider's.
        new_id: Returns a new id with a prefix, for what came without one.
        created_s: Seconds since the epoch, for an answer without a time.
        forced_schema: Name of the tool whose arguments are the text of the answer.
        streams: Whether the caller asked for a stream, which it gets whatever the provider sent;
            ``None`` for what the provider sends.
    """

    def __init__(  # noqa: PLR0913  # all that the bytes of an answer depend on
        self,
        *,
        source: Format,
        caller: Format,
        request: ObjectText,
        model: str,
        answer_model: AnswerModel,
        new_id: Callable[[str], str],
        created_s: int,
        forced_schema: str | None = None,
        streams: bool | None = None,
    ) -> None:
        self._source, self._caller = source, caller
        self._streams = streams
        self._cutter = EventCutter()
        self._teller = _Teller(
            _Asked(source, caller, request, model, answer_model, new_id, created_s, forced_schema)
        )
        self._teller.streams = streams is not False
        self._reader = source.reader(self._teller)

    @property
    def usage(self) -> ModelUsage | None:
        """What the provider told so far of its tokens, ``None`` for nothing."""
        return self._teller.usage

    def feed(self, chunk: bytes) -> bytes:
        """Return the caller's bytes for a chunk of a stream, ``b""`` for none yet."""
        return self._read(self._cutter.feed(chunk))

    def end(self) -> bytes:
        """Return the last bytes of a stream; all of them where the caller asked for none.

        Raises:
            UpstreamError: The provider's stream had no end (``cut``), or reported an error.
        """
        # Half of an event is no wrong one: the rest of it is missing.
        last = self._read(self._cutter.end(), "cut")
        try:
            self._reader.finish()
        except ShapeError as error:
            self._fail(error, "cut")
        return last + self._teller.taken() if self._teller.streams else self._teller.whole()

    def whole(self, body: bytes) -> bytes:
        """Return a whole answer.

        Raises:
            UpstreamError: It is none, or reports an error.
        """
        self._teller.streams = self._streams is True
        try:
            self._reader.whole(body)
        except (ShapeError, JsonTextError) as error:
            self._fail(error)
        return self._teller.taken() if self._teller.streams else self._teller.whole()

    def error(self, status: int, body: bytes, request_id: str) -> bytes:
        """Return an error answer of the provider; code and type stay where the format has them."""
        told = told_error(body)
        tree = self._caller.translated_error(status, told, request_id)
        return encode(tree)

    def tokens(self, body: bytes) -> bytes:
        """Return an answer to a request for a count of tokens."""
        try:
            tokens = count(loads(body), "input_tokens")
        except JsonTextError as error:
            self._fail(error)
        return encode(self._caller.token_count(tokens))

    def _read(self, events: Iterable[SentEvent], failure: str = "protocol") -> bytes:
        reader, teller = self._reader, self._teller
        try:
            for event in events:
                if event.data:
                    reader.event(event.name, event.data)
                else:
                    teller.ping()
        except (ShapeError, JsonTextError) as error:
            self._fail(error, failure)
        return teller.taken()

    def _fail(self, error: Exception, kind: str = "protocol") -> NoReturn:
        # Nothing may follow: what is written looks like an answer.
        self._teller.taken()
        self._teller.over = True
        msg = f"not an answer of {self._source.name}: {error}"
        raise UpstreamError(msg, kind=kind) from None


@dataclass(frozen=True, slots=True)
class _Asked:
    """What an answer has to look like."""

    source: Format
    caller: Format
    request: ObjectText
    model: str
    answer_model: AnswerModel
    new_id: Callable[[str], str]
    created_s: int
    forced_schema: str | None


@dataclass(slots=True)
class _Waiting:
    """A part that is not written yet: another one is open, or it said nothing so far."""

    part: AnswerPart
    pieces: list[bytes] = field(default_factory=list)
    closed: bool = False
    #: Whether it says something; a call always does.
    says: bool = False

    def add(self, raw: bytes) -> None:
        """Add a piece of its text."""
        self.pieces.append(raw)
        self.says = self.says or bool(loads(raw).strip())


class _Settings(Mapping[str, Any]):
    """A request as a mapping; only the values that somebody asks for are decoded."""

    def __init__(self, fields: ObjectText) -> None:
        self._fields = fields

    def __getitem__(self, key: str) -> Any:
        if key not in self._fields:
            raise KeyError(key)
        return self._fields.value(key)

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields.keys())

    def __len__(self) -> int:
        return len(self._fields)


class _Teller(AnswerTeller):
    """Writes what it is told in the caller's format, one part after another."""

    def __init__(self, asked: _Asked) -> None:
        self._asked = asked
        self._writer: PartWriter | None = None
        self._out: list[bytes] = []
        #: The part that is written, and those that wait, in the order of their beginnings.
        self._current: Hashable = None
        self._wrote = False
        self._waiting: dict[Hashable, _Waiting] = {}
        self._ids: set[str] = set()
        self._end: tuple[str, ModelUsage] = ("", ModelUsage())
        self.usage: ModelUsage | None = None
        self.streams = True
        #: Whether nothing follows.
        self.over = False

    # --- what the reader tells ---------------------------------------------------------------

    def head(self, *, answer_id: str, model: str, created_s: int, usage: ModelUsage) -> None:
        self._count(usage)
        if self._writer is None:
            self._begin(answer_id, model, created_s)

    def open(self, key: Hashable, part: AnswerPart) -> None:
        if part.kind == "call" and part.name == self._asked.forced_schema:
            part = AnswerPart(kind="text")
        self._waiting[key] = _Waiting(part, says=part.kind == "call")
        self._proceed()

    def more(self, key: Hashable, raw: bytes) -> None:
        if key == self._current:
            self._write(raw)
            return
        waiting = self._waiting.get(key)
        if waiting is not None:
            waiting.add(raw)
            self._proceed()

    def close(self, key: Hashable) -> None:
        if key == self._current:
            self._close()
            self._proceed()
        elif key in self._waiting:
            self._waiting[key].closed = True
            self._proceed()

    def end(self, stop: str, usage: ModelUsage) -> None:
        if self._current is not None:
            self._close()
        for waiting in self._waiting.values():
            waiting.closed = True
        self._proceed()
        self._count(usage)
        writer = self._begun()
        calls = any(part.kind == "call" for part in writer.parts)
        if stop in ("", "stop", "calls"):
            stop = "calls" if calls else "stop"
        writer.frame = replace(writer.frame, stop=stop)
        self.over = True
        if self.streams:
            self._send(writer.end(self.usage or ModelUsage(), {}))

    def ping(self) -> None:
        if self.streams and not self.over:
            ping = None if self._writer is None else self._writer.ping()
            self._out.append(_COMMENT if ping is None else sse(ping.data, ping.name))

    # --- what the caller gets ----------------------------------------------------------------

    def taken(self) -> bytes:
        """Return the bytes since the last time."""
        out, self._out = self._out, []
        return b"".join(out)

    def whole(self) -> bytes:
        """Return the whole answer."""
        return encode(self._begun().whole(self.usage or ModelUsage(), {}))

    def _begun(self) -> PartWriter:
        return self._begin() if self._writer is None else self._writer

    def _begin(self, told_id: str = "", model: str = "", created_s: int = 0) -> PartWriter:
        asked = self._asked
        kind = asked.caller.writer
        if not told_id:
            told_id = answer_id(asked.caller, asked.new_id)
        elif not told_id.startswith(kind.id_prefix):
            told_id = kind.id_of(sha256(told_id.encode("utf-8", "replace")).hexdigest())
        named = model if asked.answer_model == "provider" else asked.model
        frame = Frame(
            model=named or model or asked.model,
            id=told_id,
            created_s=created_s or asked.created_s,
            include_usage=asked.caller.includes_usage(asked.request),
            request=_Settings(asked.request),
        )
        self._writer = writer = kind(frame)
        if self.streams:
            self._send(writer.begin(self.usage or ModelUsage()))
        return writer

    def _proceed(self) -> None:
        """Write what can be written: the parts one after another."""
        while self._current is None:
            found = next((key for key, each in self._waiting.items() if each.says), None)
            if found is None:
                return
            waiting = self._waiting.pop(found)
            self._open(found, waiting.part)
            for raw in waiting.pieces:
                self._write(raw)
            if waiting.closed:
                self._close()

    def _open(self, key: Hashable, part: AnswerPart) -> None:
        writer = self._begun()
        self._current, self._wrote = key, False
        self._send(writer.open(self._part(part)))

    def _write(self, raw: bytes) -> None:
        self._wrote = self._wrote or len(raw) > 2
        self._send(self._begun().more(loads(raw)))

    def _close(self) -> None:
        writer = self._begun()
        if not self._wrote and writer.parts[-1].kind == "call" and not writer.parts[-1].custom:
            self._send(writer.more(writer.arguments("{}")))
        self._current = None
        self._send(writer.close())

    def _send(self, events: Iterable[Event]) -> None:
        sent = [sse(event.data, event.name) for event in events]
        if self.streams:
            self._out += sent

    def _count(self, usage: ModelUsage) -> None:
        known = self.usage
        if known is None:
            self.usage = usage if usage != ModelUsage() else None
        else:
            self.usage = ModelUsage(**{
                name: getattr(usage, name) or getattr(known, name)
                for name in ModelUsage.__dataclass_fields__
            })  # fmt: skip

    # --- names and ids ------------------------------------------------------------------------

    @cached_property
    def _names(self) -> ToolNames:
        asked = self._asked
        return ToolNames(asked.caller.neutral(asked.request).tools, asked.source)

    def _part(self, part: AnswerPart) -> AnswerPart:
        """Return a part with the caller's names and ids; opaque forms stay with their provider."""
        if part.kind != "call":
            return replace(part, opaque="")
        asked = self._asked
        found = self._names.asked(part.name, part.namespace)
        told = id_for_caller(part.id, asked.caller) if part.id else ""
        if not told:
            prefix = asked.caller.writer.call_prefix.partition("_")[0]
            told = f"{prefix}_{asked.new_id(prefix).removeprefix(f'{prefix}_')}"
        number = 0
        while told in self._ids:
            number += 1
            told = told_apart(part.id, number, asked.caller)
        self._ids.add(told)
        return AnswerPart(
            kind="call",
            id=told,
            name=part.name if found is None else found.tool.name,
            namespace=part.namespace if found is None else found.tool.namespace,
        )
