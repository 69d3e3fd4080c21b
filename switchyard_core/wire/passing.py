"""What a passing answer shows: its tokens, and whether its stream ended well.

Nothing here is between the provider and the client: chunks are noted after they were passed on.
"""

from __future__ import annotations

import json
import re
from collections import deque
from typing import TYPE_CHECKING, Any

import msgspec

from switchyard_core.answering import ModelUsage

if TYPE_CHECKING:
    from switchyard_core.wire.format import Format

__all__ = ["AnswerTrace", "StreamWatch", "usage_of"]

#: How much of a stream's end is looked at, and of its beginning, where Messages tells the input.
EDGE_BYTES = 16 * 1024
#: Largest whole answer that is read; the tokens of a larger one are not counted.
WHOLE_BYTES = 1024 * 1024

# In JSON text a quote inside a string is escaped, so this is a key and never what a model said.
_USAGE = re.compile(rb'"usage"\s*:\s*(?=\{)')
# Longest object of usage that is read, in bytes.
_USAGE_BYTES = 4096
_EVENT = b"\nevent:"
# Enough of an event to tell its name; longest mark that the border of two chunks may cut.
_NAME_BYTES = 64


class StreamWatch:
    """Looks for the end mark and for an error event in a passing stream.

    A provider may answer 200 and then send an error event, or stop; the client retries, and the
    retry must find its session unchanged.
    """

    def __init__(self, wire_format: Format) -> None:
        self._format = wire_format
        self._carry = b"\n"
        self._ended = False
        #: Whether an error event passed by.
        self.failed = False

    def see(self, chunk: bytes) -> None:
        """Look at the next bytes."""
        window = self._carry + chunk
        self._ended = self._ended or bool(self._format.end_mark.search(window))
        self.failed = self.failed or bool(self._format.error_mark.search(window))
        self._carry = window[-_NAME_BYTES:]

    @property
    def succeeded(self) -> bool:
        """Whether the stream reached its end without an error event."""
        return self._ended and not self.failed


class _Answer(msgspec.Struct):
    """The one member of a whole answer that is read."""

    usage: Any = None


class AnswerTrace:
    """Keeps the edges of one answer, without its content encoding, and reads them at its end.

    ``certain`` looks at every chunk for the end mark of a stream, not at the edges alone.
    """

    def __init__(
        self, wire_format: Format, content_type: str = "", *, certain: bool = False
    ) -> None:
        kind = content_type.partition(";")[0].strip().lower()
        #: Whether it notes other bytes than those that reach the caller.
        self.apart = False
        self.wire_format = wire_format.name
        self._format = wire_format
        self._streams = kind == "text/event-stream"
        self._whole = kind.endswith(("/json", "+json"))
        self._watch = StreamWatch(wire_format) if certain else None
        self._start: list[bytes] = []
        self._start_size = 0
        self._end: deque[bytes] = deque()
        self._end_size = 0
        self._size = 0
        self._event = b""
        self._carry = b"\n"

    def note(self, chunk: bytes) -> None:
        """Note a chunk, decoded, that was passed on."""
        if self._streams:
            self._note_edges(chunk)
            if self._watch is not None:
                self._watch.see(chunk)
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
    def whole(self) -> bytes:
        """The answer, ``b""`` for a stream and for a large one."""
        return b"".join(self._start) if self._whole else b""

    def tokens(self) -> ModelUsage | None:
        """Return the usage in the answer, ``None`` without one."""
        found: list[Any] = []
        if self._streams:
            found = [*_usages(b"".join(self._start)), *_usages(b"".join(self._end))]
        elif self._whole:
            try:
                found = [msgspec.json.decode(b"".join(self._start), type=_Answer).usage]
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                return None
        # A stream may tell its usage again and again, and every count only grows.
        largest: dict[str, Any] = {}
        for usage in found:
            _grow(largest, usage)
        tokens = self._format.usage(largest)
        return tokens if tokens.input_tokens or tokens.output_tokens else None

    @property
    def broken_stream(self) -> bool:
        """Whether it is a stream that ended in an error event, or without its end mark."""
        if not self._streams:
            return False
        if self._watch is not None:
            return not self._watch.succeeded
        end = b"".join(self._end)
        watch = StreamWatch(self._format)
        watch.see(self._event + b"\n" + end)
        if watch.succeeded:
            return False
        # The last event of Responses has no name and does not begin in here: nobody can tell.
        hidden = self._size > self._end_size and not self._event and b"\n\n" not in end[:-4]
        return not (hidden and self._format.ends_with_whole_answer)


def usage_of(wire_format: Format, content_type: str, body: bytes) -> ModelUsage | None:
    """Return the usage in what came of an answer that nobody passes on, ``None`` without one."""
    trace = AnswerTrace(wire_format, content_type)
    trace.note(body)
    return trace.tokens()


def _usages(data: bytes) -> list[Any]:
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


def _grow(largest: dict[str, Any], usage: Any) -> None:
    """Keep the largest of each count, nested ones too."""
    for key, value in usage.items() if isinstance(usage, dict) else ():
        if isinstance(value, dict):
            inner = largest.get(key)
            if not isinstance(inner, dict):
                largest[key] = inner = {}
            _grow(inner, value)
        elif isinstance(value, int) and not isinstance(value, bool):
            known = largest.get(key, 0)
            largest[key] = max(value, known) if isinstance(known, int) else known
