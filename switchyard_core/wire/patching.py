"""The two changes that a passing answer may get: the name of its model, and a masked key."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from switchyard_core.wire.events import EventCutter, SentEvent
from switchyard_core.wire.success import HEAD_BYTES

if TYPE_CHECKING:
    from switchyard_core.wire.format import Format

__all__ = ["KeyMask", "ModelPatch"]

# In JSON text a quote inside a string is escaped, so these are members and not what a model said.
_ERROR = re.compile(rb'"error"\s*:\s*["{]|"type"\s*:\s*"error"|\nevent:\s*error\b')
# Longest mark that the border of two chunks may cut.
_MARK_BYTES = 32
#: A shorter key, such as a word for a server that needs none, may stand in any text.
_SHORTEST_KEY = 8


class ModelPatch:
    """Puts another model into the first event of a stream that names one; the rest passes.

    It stands in one of the events before the content, or nowhere.

    Args:
        wire_format: Wire format of the stream.
        model: The id to put in.
    """

    def __init__(self, wire_format: Format, model: str) -> None:
        self._format = wire_format
        self._model = model
        self._events = EventCutter()
        self._size = 0
        self._done = False

    def feed(self, chunk: bytes) -> bytes:
        """Return what may be sent on; an event that is not complete yet waits."""
        if self._done:
            return chunk
        self._size += len(chunk)
        events = self._events.feed(chunk)
        passed = b"".join([self._patched(event) for event in events])
        if self._done or self._size > HEAD_BYTES:
            passed += self.end()
        return passed

    def end(self) -> bytes:
        """Return what still waits, as it came."""
        self._done = True
        return self._events.left()

    def _patched(self, event: SentEvent) -> bytes:
        if self._done or not event.data:
            return event.raw
        patched = self._format.with_model(event.data, self._model)
        if patched is None:
            self._done = event.name not in self._format.head_events
            return event.raw
        self._done = True
        return event.raw.replace(event.data, patched, 1)


class KeyMask:
    """Masks a key in what follows the beginning of an error; the length stays the same.

    Args:
        key: The key.
        from_start: Whether all of the answer is an error.
    """

    def __init__(self, key: str, *, from_start: bool) -> None:
        self._key = key.encode()
        self._carry = b"\n"
        self._held = b""
        self._active = from_start

    @staticmethod
    def worth(key: str) -> bool:
        """Return whether a key is long enough to be a secret."""
        return len(key) >= _SHORTEST_KEY

    def feed(self, chunk: bytes) -> bytes:
        """Return what may be sent on: an end that may begin the key waits for the next chunk."""
        if not self._active:
            window = self._carry + chunk
            # The first look is much cheaper, and enough for nearly all chunks.
            if b"error" not in window or _ERROR.search(window) is None:
                self._carry = window[-_MARK_BYTES:]
                return chunk
            self._active = True
        masked = (self._held + chunk).replace(self._key, b"*" * len(self._key))
        keep = self._open_end(masked)
        self._held = masked[len(masked) - keep :]
        return masked[: len(masked) - keep]

    def end(self) -> bytes:
        """Return what still waits."""
        rest, self._held = self._held, b""
        return rest

    def _open_end(self, data: bytes) -> int:
        """Return how many of the last bytes may be the beginning of the key."""
        longest = min(len(self._key) - 1, len(data))
        return next((n for n in range(longest, 0, -1) if data.endswith(self._key[:n])), 0)
