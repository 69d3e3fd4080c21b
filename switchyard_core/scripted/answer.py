"""One turn as the answer to a request: ids, counts and calls, written in its wire format."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from switchyard_core.answering import ModelUsage
from switchyard_core.scripted.script import Call, Turn
from switchyard_core.scripted.select import Asked
from switchyard_core.wire.answers import AnswerPart, Event, Frame, PartWriter

__all__ = ["Answer", "StopWord", "as_bytes", "make_answer", "pieces"]

StopWord = Literal["stop", "calls", "length", "filter"]

#: The words of the wire formats for the same reason to stop.
_STOP_WORDS: dict[str, StopWord] = {
    "stop": "stop",
    "end_turn": "stop",
    "tool_calls": "calls",
    "tool_use": "calls",
    "length": "length",
    "max_tokens": "length",
    "max_output_tokens": "length",
    "content_filter": "filter",
    "refusal": "filter",
}

#: Characters of a piece of a stream.
_PIECE = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One answer of the scripted provider."""

    key: str  # hex digits that make the ids of this answer; the same for the same request
    model: str
    created: int  # seconds since the epoch
    reasoning: str
    encrypted: str
    text: str
    calls: tuple[Call, ...]
    #: Why the answer ends, in the words of :data:`StopWord` or, if the script gives a word that no
    #: format knows, that word.
    stop: str
    usage: ModelUsage  # tokens; those of a cache are input, reasoning is output
    sealed: str = ""  # opaque reasoning that a strict provider makes
    signed: str = ""  # signature of the first call that a strict provider makes

    def events(self, asked: Asked) -> Iterator[Event]:
        """Yield the answer as a stream, end mark included."""
        writer = asked.format.writer(self._frame(asked))
        yield from writer.begin(self.usage)
        yield from self._written(writer)
        yield from writer.end(self.usage, {})

    def whole(self, asked: Asked) -> dict[str, Any]:
        """Return the answer as a whole body."""
        writer = asked.format.writer(self._frame(asked))
        for _ in self._written(writer):
            pass
        return writer.whole(self.usage, {})

    def compaction(self, asked: Asked) -> dict[str, Any]:
        """Return the answer to a request that has its history compacted."""
        return asked.format.compaction(self._frame(asked), self._opaque, self.usage)

    def _frame(self, asked: Asked) -> Frame:
        """Return what is known of the answer before its first part."""
        return Frame(
            model=self.model,
            id=asked.format.writer.id_of(self.key),
            created_s=self.created,
            include_usage=asked.format.includes_usage(asked.fields),
            request=asked.body,
            invents=True,
            stop=self.stop,
            only_calls=bool(self.calls) and not self.text,
        )

    @property
    def _opaque(self) -> str:
        """Opaque reasoning, made up where neither the script nor the provider gives one."""
        return self.encrypted or self.sealed or base64.b64encode(self.key.encode()).decode()

    def _written(self, writer: PartWriter) -> Iterator[Event]:
        for part, text in self._parts(writer):
            yield from writer.open(part)
            for piece in pieces(text):
                yield from writer.more(piece)
            yield from writer.close()

    def _parts(self, writer: PartWriter) -> Iterator[tuple[AnswerPart, str]]:
        if self.reasoning or self.encrypted:
            opaque = self._opaque if writer.wants_opaque else self.encrypted
            yield AnswerPart(kind="reasoning", opaque=opaque), self.reasoning
        if self.text:
            yield AnswerPart(kind="text"), self.text
        for number, call in enumerate(self.calls):
            custom = call.input if writer.has_custom_calls else None
            made = hashlib.sha256(f"{self.key} {number}".encode()).hexdigest()[:24]
            part = AnswerPart(
                kind="call",
                id=call.id or writer.call_prefix + made,
                name=call.name,
                namespace=call.namespace or "",
                custom=custom is not None,
                opaque="" if number else self.signed,
            )
            yield part, writer.arguments(_arguments(call)) if custom is None else custom


def make_answer(turn: Turn, asked: Asked, created: int) -> Answer:
    """Return a turn as the answer to a request.

    Ids follow from the body alone: a repeated request gets the same answer.
    """
    key = hashlib.sha256(asked.raw).hexdigest()
    offered = asked.offered
    calls = tuple(_pick(call, offered) for call in turn.calls)
    usage = turn.usage
    letters = len(turn.text) + len(turn.reasoning) + sum(len(_arguments(call)) for call in calls)
    return Answer(
        key=key,
        model=asked.model or "scripted-model",
        created=created,
        reasoning=turn.reasoning,
        encrypted=turn.encrypted,
        text=turn.text,
        calls=calls,
        stop=_STOP_WORDS.get(turn.stop, turn.stop) if turn.stop else "calls" if calls else "stop",
        usage=ModelUsage(
            input_tokens=max(1, len(asked.raw) // 4) if usage.input is None else usage.input,
            output_tokens=max(1, letters // 4) if usage.output is None else usage.output,
            cached_tokens=usage.cached,
            reasoning_tokens=usage.reasoning,
        ),
    )


def as_bytes(data: Mapping[str, Any] | str) -> bytes:
    """Return a value as one line of JSON, a word as it is."""
    text = data if isinstance(data, str) else _compact(data)
    # A lone surrogate that a request echoes becomes its JSON escape.
    return text.encode("utf-8", "backslashreplace")


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def pieces(text: str) -> Iterator[str]:
    """Yield a text in pieces as a stream sends it; nothing for an empty one."""
    for start in range(0, len(text), _PIECE):
        yield text[start : start + _PIECE]


def _pick(call: Call, offered: tuple[str, ...]) -> Call:
    if not call.any_of:
        return call
    for option in call.any_of:
        full = f"{option.namespace}.{option.name}" if option.namespace else option.name
        if full in offered:
            return _pick(option, offered)
    return _pick(call.any_of[-1], offered)


def _arguments(call: Call) -> str:
    arguments = call.arguments
    if arguments is None:
        arguments = {} if call.input is None else {"input": call.input}
    return arguments if isinstance(arguments, str) else _compact(arguments)
