"""Whether an answer is a success by what it says: its status alone does not tell.

A provider may answer 200 and say in the body, or in the first event of a stream, that it failed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from switchyard_core.declarations import Endpoint
from switchyard_core.jsonio.tree import JsonTextError, loads
from switchyard_core.models.phrases import meaning_of
from switchyard_core.wire.events import EventCutter, SentEvent
from switchyard_core.wire.passing import WHOLE_BYTES
from switchyard_core.wire.replies import ShapeError, refuse_error

if TYPE_CHECKING:
    from switchyard_core.wire.format import Format

__all__ = ["HEAD_BYTES", "SuccessCheck"]

#: Maximum size in bytes of the head of a stream that is looked at; Responses repeats the whole
#: request in its first event.
HEAD_BYTES = 1024 * 1024

_EVENT_LINE = re.compile(rb"(?:\xef\xbb\xbf)?(?:(?:event|data|id|retry)?:)")
_DONE = b"[DONE]"
_EMPTY = "the answer is empty"
_TOO_LONG = "the request does not fit into the model's window"


class SuccessCheck:
    """Looks at an answer of status 200 until it tells whether it is a success.

    A stream tells with its first content, or with an error before that; a whole body at its end.

    Args:
        wire_format: Wire format of the answer.
        endpoint: What was called.
        streams: Whether the headers announce a stream.
    """

    def __init__(self, wire_format: Format, endpoint: Endpoint, *, streams: bool) -> None:
        self._format = wire_format
        self._endpoint = endpoint
        self._announced = streams
        #: Whether it is a stream, ``None`` while nothing of it came.
        self.streams: bool | None = None
        self._events: EventCutter | None = None  # of a stream
        self._begun = False  # whether an event of the answer itself came by
        self._body: list[bytes] = []
        self._size = 0
        #: Whether it is known.
        self.settled = False
        #: Why the answer is a failure, ``""`` when it is not.
        self.failure = ""
        #: JSON of the error.
        self.error = b""

    def see(self, data: bytes) -> None:
        """Look at the next bytes."""
        if self.settled or not data:
            return
        self._size += len(data)
        if self.streams is None:
            self.streams = self._is_stream(data)
        if self.streams:
            self._events = self._events or EventCutter()
            self._judge(self._events.feed(data))
            self.settled = self.settled or self._size > HEAD_BYTES
        else:
            self._body.append(data)
            self.settled = self._size > WHOLE_BYTES

    def end(self) -> None:
        """Note that nothing follows."""
        if not self.settled and self._events is not None:
            self._judge(self._events.end())
            if not self.settled:
                self._fail("the stream ended before its first content" if self._begun else _EMPTY)
        elif not self.settled:
            self._judge_whole(b"".join(self._body))
        self._body.clear()

    def _is_stream(self, data: bytes) -> bool | None:
        start = data.lstrip()[:1]
        if self._announced and start:
            # Some servers announce a stream, and then send the page of an error.
            return start not in (b"{", b"<")
        return _EVENT_LINE.match(data.lstrip()) is not None if start else None

    def _fail(self, why: str, error: bytes = b"") -> None:
        self.settled, self.failure, self.error = True, why, error

    # --- a stream -------------------------------------------------------------------------

    def _judge(self, events: list[SentEvent]) -> None:
        for event in events:
            if not self.settled:
                self._judge_event(event)

    def _judge_event(self, event: SentEvent) -> None:
        known_head = event.name in self._format.head_events
        if not event.data or known_head:
            self._begun = self._begun or known_head
            return
        if event.data == _DONE:
            self.settled = True
            self.failure = "" if self._begun else _EMPTY
            return
        tree = _object(event.data)
        if tree is None:
            self._fail("an event of the stream is not JSON", event.data)
            return
        try:
            refuse_error({"type": event.name, **tree})
            kind = self._format.event_kind(event.name, tree)
        except ShapeError as error:
            self._fail(str(error), event.data)
            return
        self._begun = True
        self.settled = kind != "head"
        if kind == "end" and meaning_of(event.data, 200) == "silent_overflow":
            self._fail(_TOO_LONG, event.data)

    # --- a whole body ---------------------------------------------------------------------

    def _judge_whole(self, body: bytes) -> None:
        self.settled = True
        if not body.strip():
            self._fail(_EMPTY)
            return
        tree = _object(body)
        if tree is None:
            self._fail("the answer is not a JSON object", body)
            return
        try:
            refuse_error(tree)
            if self._endpoint == "create":
                self._format.check_answer(tree)
                silent = self._format.says_nothing(tree)
                if silent and meaning_of(body, 200) == "silent_overflow":
                    self._fail(_TOO_LONG, body)
        except ShapeError as error:
            self._fail(str(error), body)


def _object(data: bytes) -> dict[str, Any] | None:
    try:
        tree = msgspec.json.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        try:
            tree = loads(data)  # takes what other readers of JSON take, too
        except JsonTextError:
            return None
    return tree if isinstance(tree, dict) else None
