"""Reading server-sent events: where one ends, its name and its data."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["EventCutter", "SentEvent"]

_BLANK_LINE = re.compile(rb"\r\n\r\n|\n\r\n|\n\n|\r\r")
# A blank line that the border of two chunks cuts may begin so many bytes before it.
_BORDER = 3


@dataclass(frozen=True, slots=True)
class SentEvent:
    """One event of a stream, with the blank line that ends it."""

    raw: bytes
    name: str
    data: bytes  # `b""` for a comment; lines of data are joined


class EventCutter:
    """Cuts a stream into events; what follows the last whole one waits in :attr:`rest`."""

    def __init__(self) -> None:
        self.rest = b""

    def feed(self, chunk: bytes) -> list[SentEvent]:
        """Return the events that a chunk completes."""
        start = max(0, len(self.rest) - _BORDER)
        stream = self.rest + chunk
        events: list[SentEvent] = []
        done = 0
        while (blank := _BLANK_LINE.search(stream, max(start, done))) is not None:
            events.append(_read(stream[done : blank.end()]))
            done = blank.end()
        self.rest = stream[done:]
        return events

    def end(self) -> list[SentEvent]:
        """Return the event that the end of the stream leaves without its blank line."""
        rest, self.rest = self.rest, b""
        return [_read(rest)] if rest.strip() else []


def _read(raw: bytes) -> SentEvent:
    name, data = "", []
    for line in raw.splitlines():
        field, _, value = line.partition(b":")
        if field == b"data":
            data.append(value.removeprefix(b" "))
        elif field == b"event":
            name = value.strip().decode("utf-8", "replace")
    return SentEvent(raw, name, b"\n".join(data))
