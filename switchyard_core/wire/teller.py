"""Writing what a reader tells of an answer: in the caller's format, one part after another."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from switchyard_core.answering import ModelUsage
from switchyard_core.jsonio.tree import ObjectText, encode, loads
from switchyard_core.wire.answers import (
    AnswerPart,
    Event,
    Frame,
    PartWriter,
    answer_id,
    comment,
    legal,
    stream_bytes,
)
from switchyard_core.wire.free_text import ObjectOnly, Retelling, Unwrapped, Wrapped
from switchyard_core.wire.naming import ToolNames, id_for_caller, told_apart
from switchyard_core.wire.retelling import AnswerTeller

if TYPE_CHECKING:
    from switchyard_core.wire.format import AnswerModel, Format

__all__ = ["Asked", "Teller"]

_COMMENT = comment(None)
#: A piece without a text is its quotes.
_QUOTES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What an answer has to look like; see :class:`AnswerTranslation`."""

    source: Format
    caller: Format
    request: ObjectText
    model: str
    answer_model: AnswerModel
    new_id: Callable[[str], str]
    created_s: int
    forced_schema: str | None


class _Settings(Mapping[str, Any]):
    """A request as a mapping; only the values that somebody asks for are decoded."""

    def __init__(self, body: ObjectText) -> None:
        self._body = body
        self._values: dict[str, Any] = {}

    def __getitem__(self, key: str) -> Any:
        if key not in self._body:
            raise KeyError(key)
        if key not in self._values:
            self._values[key] = self._body.value(key)
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._body.keys())

    def __len__(self) -> int:
        return len(self._body)


@dataclass(slots=True)
class _Waiting:
    """A part that is not written: another one is open, or it says nothing so far."""

    part: AnswerPart
    says: bool  # whether it has something to say; a call always has
    #: Whether the call that is the answer may take its place.
    spare: bool = False
    closed: bool = False
    pieces: list[bytes] = field(default_factory=list)

    def add(self, raw: bytes) -> None:
        """Add a piece of its text."""
        raw = legal(raw)
        self.pieces.append(raw)
        self.says = self.says or bool(loads(raw).strip())


class Teller(AnswerTeller):
    """Takes what an answer says; the caller's bytes are taken out of it."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self._writer: PartWriter | None = None
        #: What was written since the last time that somebody took it.
        self.out: list[bytes] = []
        #: The part that is written, and those that wait, in the order of their beginnings.
        self._current: Hashable = None
        self._waiting: dict[Hashable, _Waiting] = {}
        #: What takes the pieces of the current part as they come, `None` where they are retold.
        self._direct: Callable[[bytes], bytes] | None = None
        self._retelling: Retelling | None = None
        #: How many calls had each id.
        self._ids: dict[str, int] = {}
        self._called = self._forced = False
        #: Whether the current part is over, and its end waits for what follows.
        self._ending = False
        #: What was told of the tokens so far, `None` for nothing.
        self.usage: ModelUsage | None = None
        #: Whether the answer is a stream.
        self.streams = True
        #: Whether nothing follows.
        self.over = False

    # --- what the reader tells ---------------------------------------------------------------

    def head(self, *, answer_id: str, model: str, created_s: int, usage: ModelUsage) -> None:
        """Write the beginning."""
        self._count(usage)
        if self._writer is None:
            self._begin(answer_id, model, created_s)

    def open(self, key: Hashable, part: AnswerPart) -> None:
        """Begin a part, or let it wait."""
        forced = self._asked.forced_schema
        is_answer = forced is not None and part.kind == "call" and part.name == forced
        self._forced = self._forced or is_answer
        if is_answer:
            part = AnswerPart(kind="text")
        spare = forced is not None and not is_answer and part.kind == "text"
        self._waiting[key] = _Waiting(part, says=part.kind == "call", spare=spare)
        self._proceed()

    def more(self, key: Hashable, raw: bytes) -> None:
        """Write a piece, or let it wait."""
        if key == self._current:
            if self._direct is None:
                self._write(legal(raw))
            elif len(raw) > _QUOTES:
                self.out.append(self._direct(raw))
            return
        waiting = self._waiting.get(key)
        if waiting is not None:
            waiting.add(raw)
            self._proceed()

    def close(self, key: Hashable) -> None:
        """End a part, or note that it ends."""
        if key == self._current:
            self._finish()
        elif key in self._waiting:
            self._waiting[key].closed = True
        self._proceed()

    def end(self, stop: str, usage: ModelUsage) -> None:
        """Write all that waits, and the end."""
        if self.over:
            return
        for waiting in self._waiting.values():
            waiting.closed = True
            self._called = self._called or waiting.part.kind == "call"
            # Beside the answer itself, other text would spoil it.
            waiting.spare = waiting.spare and self._forced
        self._count(usage)
        writer = self._begun()
        if stop in ("", "stop", "calls"):
            stop = "calls" if self._called else "stop"
        waits = any(each.says and not each.spare for each in self._waiting.values())
        if self._current is not None and waits:
            self._close()
        writer.frame = replace(writer.frame, stop=stop)
        self._proceed()
        if self._current is not None:
            self._close()
        if self.streams:
            self._send(writer.end(self.usage or ModelUsage(), {}))
        self.over = True

    def ping(self) -> None:
        """Write a sign of life as the format has it; before the beginning there is a comment."""
        if self.streams and not self.over:
            ping = None if self._writer is None else self._writer.ping()
            self.out.append(_COMMENT if ping is None else stream_bytes([ping]))

    # --- what the caller gets ----------------------------------------------------------------

    def taken(self) -> bytes:
        """Return the bytes since the last time."""
        out, self.out = self.out, []
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
            model=named or asked.model or model,
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
        """Write the parts that wait, up to one that is still open."""
        while self._current is None or self._ending:
            ready = (key for key, each in self._waiting.items() if each.says and not each.spare)
            key = next(ready, None)
            if key is None:
                return
            if self._current is not None:
                self._close()
            waiting = self._waiting.pop(key)
            self._current = key
            self._open(waiting.part)
            for raw in waiting.pieces:
                self._write(raw)
            if waiting.closed:
                self._finish()

    def _open(self, part: AnswerPart) -> None:
        writer = self._begun()
        self._retelling = None
        if part.kind == "call":
            part = self._call(part, writer)
            self._called = True
        else:
            # Opaque forms stay with the provider that made them.
            part = replace(part, opaque="")
        self._direct = writer.piece if self.streams and self._retelling is None else None
        self._send(writer.open(part))

    def _write(self, raw: bytes) -> None:
        if self._retelling is not None:
            raw = self._retelling.piece(raw)
            if self.streams and self._retelling.passes:
                self._retelling, self._direct = None, self._begun().piece
        self._add(raw)

    def _add(self, raw: bytes) -> None:
        if len(raw) > _QUOTES:
            writer = self._begun()
            if self.streams:
                self.out.append(writer.piece(raw))
            else:
                self._send(writer.more(loads(raw)))

    def _finish(self) -> None:
        """End the current part, at once unless its end tells how the answer ends."""
        writer = self._begun()
        self._ending = writer.tells_cuts and writer.parts[-1].kind != "call"
        if not self._ending:
            self._close()

    def _close(self) -> None:
        self._ending = False
        writer = self._begun()
        if self._retelling is not None:
            self._add(self._retelling.rest())
        part = writer.parts[-1]
        if writer.is_empty and part.kind == "call" and not part.custom:
            self._add(encode(writer.arguments("{}")))
        self._current = self._direct = None
        self._send(writer.close())

    def _send(self, events: Iterable[Event]) -> None:
        if self.streams:
            self.out.append(stream_bytes(events))
        else:
            for _ in events:
                pass

    def _count(self, usage: ModelUsage) -> None:
        """Take what is told of the tokens; what is told no more stays."""
        known = self.usage or ModelUsage()
        names = [each.name for each in fields(ModelUsage)]
        told = {name: getattr(usage, name) or getattr(known, name) for name in names}
        self.usage = ModelUsage(**told) if any(told.values()) else None

    # --- names and ids -----------------------------------------------------------------------

    @cached_property
    def _names(self) -> ToolNames:
        asked = self._asked
        return ToolNames(asked.caller.asked_tools(asked.request), asked.source)

    def _call(self, part: AnswerPart, writer: PartWriter) -> AnswerPart:
        """Return a call with the caller's names and ids, and see to its arguments."""
        found = self._names.asked(part.name, part.namespace)
        custom = part.custom and writer.has_custom_calls if found is None else found.custom
        if custom != part.custom:
            self._retelling = Unwrapped() if custom else Wrapped()
        elif writer.object_key:
            self._retelling = ObjectOnly(writer.object_key, waits=not self.streams)
        tool = part if found is None else found.tool
        return AnswerPart(
            kind="call",
            id=self._id(part.id),
            name=tool.name,
            namespace=tool.namespace,
            custom=custom,
        )

    def _id(self, made: str) -> str:
        """Return the id of a call for the caller, once."""
        asked = self._asked
        if made:
            told = id_for_caller(made, asked.caller)
        else:
            prefix = asked.caller.writer.call_prefix.partition("_")[0]
            told = f"{prefix}_{asked.new_id(prefix).removeprefix(f'{prefix}_')}"
        number = self._ids.get(told, 0)
        self._ids[told] = number + 1
        return told_apart(made, number, asked.caller) if number else told
