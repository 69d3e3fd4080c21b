"""One turn made ready for a request: ids, counts and calls, still in no wire format."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from switchyard_core.scripted.script import Call, Turn
from switchyard_core.scripted.select import Asked, offered_tools

__all__ = ["Answer", "Event", "MadeCall", "StopWord", "compact", "make_answer", "pieces"]

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

_PIECE = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One server-sent event.

    Args:
        data: Its data, one line.
        name: Its name, empty for none.
    """

    data: str
    name: str = ""

    def encode(self) -> bytes:
        """Return the event's bytes, blank line included."""
        head = f"event: {self.name}\n" if self.name else ""
        return f"{head}data: {self.data}\n\n".encode("utf-8", "backslashreplace")


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeCall:
    """A tool call with everything settled.

    Args:
        id: 24 letters and digits without a prefix, or the id that the script gives.
        fixed_id: Whether the script gives the id.
        name: Tool name.
        arguments: JSON text.
        input: Text of a free-form call.
        namespace: Namespace of the tool.
    """

    id: str
    fixed_id: bool
    name: str
    arguments: str
    input: str | None
    namespace: str | None

    def id_with(self, prefix: str) -> str:
        """Return the call id, with the prefix of a wire format unless the script gives it."""
        return self.id if self.fixed_id else prefix + self.id


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One answer of the scripted provider.

    Args:
        key: Hex digits that make the ids of this answer; the same for the same request.
        model: Model id, as asked.
        created: Seconds since the epoch.
        reasoning: Readable reasoning.
        encrypted: Opaque reasoning.
        text: Text.
        calls: Tool calls.
        stop: Why the answer ends, in the words of :data:`StopWord` or, if the script gives a
            word that no format knows, that word.
        input_tokens: Cached ones included.
        output_tokens: Reasoning included.
        cached_tokens: Part of the input.
        reasoning_tokens: Part of the output.
    """

    key: str
    model: str
    created: int
    reasoning: str
    encrypted: str
    text: str
    calls: tuple[MadeCall, ...]
    stop: str
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    reasoning_tokens: int


def make_answer(turn: Turn, asked: Asked, created: int) -> Answer:
    """Return a turn as the answer to a request.

    Ids follow from the body alone, so that a request repeated gives the same answer.
    """
    key = hashlib.sha256(asked.raw).hexdigest()
    offered = offered_tools(asked.body)
    calls = tuple(
        _made(_pick(call, offered), key, number) for number, call in enumerate(turn.calls)
    )
    usage = turn.usage
    letters = len(turn.text) + len(turn.reasoning) + sum(len(call.arguments) for call in calls)
    return Answer(
        key=key,
        model=asked.model or "scripted-model",
        created=created,
        reasoning=turn.reasoning,
        encrypted=turn.encrypted,
        text=turn.text,
        calls=calls,
        stop=_STOP_WORDS.get(turn.stop, turn.stop) if turn.stop else "calls" if calls else "stop",
        input_tokens=max(1, len(asked.raw) // 4) if usage.input is None else usage.input,
        output_tokens=max(1, letters // 4) if usage.output is None else usage.output,
        cached_tokens=usage.cached,
        reasoning_tokens=usage.reasoning,
    )


def compact(value: Any) -> str:
    """Return a value as JSON without spaces, unicode as it is."""
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


def _made(call: Call, key: str, number: int) -> MadeCall:
    arguments = call.arguments
    if arguments is None:
        arguments = {} if call.input is None else {"input": call.input}
    return MadeCall(
        id=call.id or hashlib.sha256(f"{key} {number}".encode()).hexdigest()[:24],
        fixed_id=call.id is not None,
        name=call.name,
        arguments=arguments if isinstance(arguments, str) else compact(arguments),
        input=call.input,
        namespace=call.namespace,
    )
