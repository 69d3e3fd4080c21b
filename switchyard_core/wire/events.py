"""Reading server-sent events: where one ends, its name and its data."""

from __future__ import annotations

import re

import msgspec

__all__ = ["EventCutter", "SentEvent"]

_BLANK_LINE = re.compile(rb"\r\n\r\n|\n\r\n|\n\n|\r\r")
# A blank line that the border of two chunks cuts may begin so many bytes before it.
_BORDER = 3
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


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
        #: What stood before the data of the last plain event, and its name.
        self._head, self._name = b"data: ", ""

    def feed(self, chunk: bytes) -> list[SentEvent]:
        """Return the events that a chunk completes."""
        if not self._edge:
            event = self._plain(chunk)
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
            events.append(self._plain(raw) or self._read(raw))
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
        return [self._read(rest)] if rest.strip() else []

    def _plain(self, raw: bytes) -> SentEvent | None:
        """Return an event that is written like the last one, ``None`` for any other."""
        head = self._head
        # One line of data, and the blank one.
        if (
            raw.startswith(head)
            and raw.find(10, len(head)) == len(raw) - 2
            and raw[-1] == 10
            and 13 not in raw
        ):
            return SentEvent(raw, self._name, raw[len(head) : -2])
        return None

    def _read(self, raw: bytes) -> SentEvent:
        name, data = "", []
        lines = raw.removeprefix(_BYTE_ORDER_MARK).splitlines()
        for line in lines:
            field, _, value = line.partition(b":")
            if field == b"data":
                data.append(value.removeprefix(b" "))
            elif field == b"event":
                name = value.strip().decode("utf-8", "replace")
        head = lines[0] + b"\ndata: " if name else b"data: "
        if raw.startswith(head) and len(lines) == 2 + bool(name):
            self._head, self._name = head, name
        return SentEvent(raw, name, b"\n".join(data))
