"""Reading server-sent events: where one ends, its name and its data."""

from __future__ import annotations

import re

import msgspec

__all__ = ["EventCutter", "SentEvent"]

_BLANK_LINE = re.compile(rb"\r\n\r\n|\n\r\n|\n\n|\r\r")
# A blank line that the border of two chunks cuts may begin so many bytes before it.
_BORDER = 3
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
#: The name of an event by what stands in front of its data, and how many are known at most.
_NAMES = {b"": ""}
_MOST_NAMES = 128


class SentEvent(msgspec.Struct, frozen=True, gc=False):
    """One event of a stream, with the blank line that ends it."""

    raw: bytes
    name: str
    data: bytes  # `b""` for a comment; lines of data are joined

    @property
    def is_comment(self) -> bool:
        """Whether it is a comment and nothing else."""
        return not self.data and self.raw.lstrip()[:1] == b":"


class EventCutter:
    """Cuts a stream into events; what follows the last whole one waits."""

    def __init__(self) -> None:
        #: What waits, and the last bytes of it, where a blank line may begin.
        self._pieces: list[bytes] = []
        self._edge = b""

    def feed(self, chunk: bytes) -> list[SentEvent]:
        """Return the events that a chunk completes."""
        if not self._edge:
            event = _plain(chunk)
            if event is not None:
                return [event]
        # Only the new bytes are searched, and what waits is joined once: one event may be large.
        window = self._edge + chunk
        events: list[SentEvent] = []
        done = 0
        while (blank := _BLANK_LINE.search(window, done)) is not None:
            raw = window[done : blank.end()]
            if self._pieces:
                raw = b"".join([*self._pieces, raw])
                self._pieces.clear()
            events.append(_plain(raw) or _read(raw))
            done = blank.end()
        keep = max(done, len(window) - _BORDER)
        if keep > done:
            self._pieces.append(window[done:keep])
        self._edge = window[keep:]
        return events

    def left(self) -> bytes:
        """Return what still waits, and forget it."""
        rest = b"".join([*self._pieces, self._edge])
        self._pieces.clear()
        self._edge = b""
        return rest

    def end(self) -> list[SentEvent]:
        """Return the event that the end of the stream leaves without its blank line."""
        rest = self.left()
        return [_read(rest)] if rest.strip() else []


def _plain(raw: bytes) -> SentEvent | None:
    """Return an event as nearly all are written, ``None`` for any other."""
    head, _, data = raw.partition(b"data: ")
    name = _NAMES.get(head)
    # One line of data, and the blank one.
    if name is None or data.find(10) != len(data) - 2 or data[-1] != 10 or 13 in data:
        return None
    return SentEvent(raw, name, data[:-2])


def _read(raw: bytes) -> SentEvent:
    name, data = "", []
    lines = raw.removeprefix(_BYTE_ORDER_MARK).splitlines()
    for line in lines:
        field, _, value = line.partition(b":")
        if field == b"data":
            data.append(value.removeprefix(b" "))
        elif field == b"event":
            name = value.strip().decode("utf-8", "replace")
    if len(_NAMES) < _MOST_NAMES and raw.startswith(lines[0] + b"\ndata: ") and name:
        _NAMES[lines[0] + b"\n"] = name
    return SentEvent(raw, name, b"\n".join(data))
