"""How many tokens an answer says it took, and how its stream ended: read from what passed by.

Nothing here is between the provider and the client. Each chunk is noted after it was passed on,
by reference, and the few that are kept are looked at when the answer is over.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from switchyard_core.declarations import WireFormat
from switchyard_core.wire.watching import StreamWatch

__all__ = ["AnswerTrace", "Tokens"]

#: How much of a stream's end is looked at, and of its beginning, where Messages tells the input.
EDGE_BYTES = 16 * 1024
#: Largest whole answer that is read; the tokens of a larger one are not counted.
WHOLE_BYTES = 1024 * 1024

# In JSON text a quote inside a string is escaped, so this is a key and never what a model said.
_USAGE = re.compile(rb'"usage"\s*:\s*(?=\{)')
# Longest object of usage that is read, in bytes.
_USAGE_BYTES = 4096
_EVENT = b"\nevent:"
# Enough of an event to tell its name.
_NAME_BYTES = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """What an answer took, in the words of one wire format for all.

    Args:
        input: Tokens of the whole prompt, those from a cache included.
        cached: Those of the input that were read from a cache.
        output: Tokens of the answer, reasoning included.
    """

    input: int = 0
    cached: int = 0
    output: int = 0


class _Answer(msgspec.Struct):
    """The one member of a whole answer that is read."""

    usage: Any = None


class AnswerTrace:
    """Keeps the edges of one answer.

    Args:
        wire_format: Wire format of the answer.
        headers: Its headers, names in lower case.
    """

    __slots__ = (
        "_carry",
        "_end",
        "_end_size",
        "_event",
        "_format",
        "_size",
        "_start",
        "_start_size",
        "_streams",
        "_whole",
    )

    def __init__(self, wire_format: WireFormat, headers: Mapping[str, str]) -> None:
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        plain = headers.get("content-encoding", "identity") == "identity"
        self._format = wire_format
        self._streams = plain and kind == "text/event-stream"
        self._whole = plain and kind.endswith(("/json", "+json"))
        self._start: list[bytes] = []
        self._start_size = 0
        self._end: deque[bytes] = deque()
        self._end_size = 0
        self._size = 0
        self._event = b""
        self._carry = b"\n"

    def note(self, chunk: bytes) -> None:
        """Note a chunk that was passed on."""
        if self._streams:
            self._note_edges(chunk)
        elif self._whole:
            self._start.append(chunk)
            self._start_size += len(chunk)
            if self._start_size > WHOLE_BYTES:
                self._whole = False
                self._start.clear()

    def _note_edges(self, chunk: bytes) -> None:
        if self._start_size < EDGE_BYTES:
            self._start.append(chunk)
            self._start_size += len(chunk)
        self._note_event(chunk)
        self._size += len(chunk)
        self._end.append(chunk)
        self._end_size += len(chunk)
        while self._end_size - len(self._end[0]) >= EDGE_BYTES:
            self._end_size -= len(self._end.popleft())

    def tokens(self) -> Tokens | None:
        """Return what the answer says it took, ``None`` when it does not say."""
        if self._streams:
            found = [*_usages(b"".join(self._start)), *_usages(b"".join(self._end))]
        elif self._whole:
            try:
                usage = msgspec.json.decode(b"".join(self._start), type=_Answer).usage
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                return None
            found = [usage] if isinstance(usage, dict) else []
        else:
            return None
        return _messages(found) if self._format == "anthropic_messages" else _openai(found)

    def _note_event(self, chunk: bytes) -> None:
        """Keep the beginning of the last event: on Responses it may be longer than the end."""
        window = self._carry + chunk
        position = window.rfind(_EVENT)
        if position >= 0:
            self._event = window[position : position + _NAME_BYTES]
        elif self._event:
            self._event += chunk[: _NAME_BYTES - len(self._event)]
        self._carry = window[1 - len(_EVENT) :]

    @property
    def broken_stream(self) -> bool:
        """Whether it is a stream that ended in an error event, or without its end mark."""
        if not self._streams:
            return False
        end = b"".join(self._end)
        watch = StreamWatch(self._format)
        watch.see(self._event + b"\n" + end)
        if watch.succeeded:
            return False
        # The last event of Responses has no name and does not begin in here: nobody can tell.
        hidden = self._size > self._end_size and not self._event and b"\n\n" not in end[:-4]
        return not hidden or self._format != "openai_responses"


def _usages(data: bytes) -> list[dict[str, Any]]:
    """Return every object under the key ``usage`` that can be read in a part of a stream."""
    decoder = json.JSONDecoder()
    found = []
    for match in _USAGE.finditer(data):
        text = data[match.end() : match.end() + _USAGE_BYTES].decode("utf-8", "replace")
        try:
            usage, _ = decoder.raw_decode(text)
        except (ValueError, RecursionError):
            continue
        found.append(usage)
    return found


def _openai(usages: list[dict[str, Any]]) -> Tokens | None:
    sizes = [
        Tokens(
            input=_count(usage, "prompt_tokens", "input_tokens"),
            output=_count(usage, "completion_tokens", "output_tokens"),
            cached=_count(
                usage.get("prompt_tokens_details") or usage.get("input_tokens_details"),
                "cached_tokens",
            ),
        )
        for usage in usages
    ]
    return _largest(sizes)


def _messages(usages: list[dict[str, Any]]) -> Tokens | None:
    # The input is told when the stream starts, the output when it ends; some providers tell all
    # at the end, and every count only grows.
    part = {
        name: max((_count(usage, name) for usage in usages), default=0)
        for name in (
            "input_tokens",
            "cache_read_input_tokens",
            "cache_creation_input_tokens",
            "output_tokens",
        )
    }
    tokens = Tokens(
        input=part["input_tokens"]
        + part["cache_read_input_tokens"]
        + part["cache_creation_input_tokens"],
        cached=part["cache_read_input_tokens"],
        output=part["output_tokens"],
    )
    return _largest([tokens])


def _largest(sizes: list[Tokens]) -> Tokens | None:
    """Return the largest of each count: a stream may tell its usage again and again."""
    tokens = Tokens(
        input=max((size.input for size in sizes), default=0),
        cached=max((size.cached for size in sizes), default=0),
        output=max((size.output for size in sizes), default=0),
    )
    return tokens if tokens.input or tokens.output else None


def _count(usage: Any, *names: str) -> int:
    for name in names:
        value = usage.get(name) if isinstance(usage, dict) else None
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return 0
