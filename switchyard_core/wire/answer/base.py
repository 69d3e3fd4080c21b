"""What the three writers of answers have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from switchyard_core.answering import AnswerEvent
from switchyard_core.wire.answer.sections import Piece, Sections

__all__ = ["Frame", "Writer"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """What is known of an answer before its first event.

    Args:
        model: Model id that the answer names: the route's.
        id: Id of the answer.
        created_s: Seconds since the epoch.
        extension_key: Key of the extension object.
        include_usage: Whether a Chat stream states the usage.
    """

    model: str
    id: str
    created_s: int
    extension_key: str
    include_usage: bool


class Writer(ABC):
    """Writes one answer; see :class:`~switchyard_core.wire.answer.AnswerWriter`."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame
        self._sections = Sections()

    @abstractmethod
    def begin(self) -> bytes:
        """Return the first bytes of a stream."""

    def event(self, event: AnswerEvent) -> bytes:
        """Return the bytes of one event in a stream, ``b""`` when it writes nothing.

        Raises:
            ValueError: The event may not stand here.
        """
        return b"".join(self._piece(piece) for piece in self._sections.take(event))

    @abstractmethod
    def end(self) -> bytes:
        """Return the last bytes of a stream.

        Raises:
            ValueError: The answer is not finished.
        """

    def note(self, event: AnswerEvent) -> None:
        """Take one event for the whole body.

        Raises:
            ValueError: The event may not stand here.
        """
        self._sections.take(event)

    @abstractmethod
    def whole(self) -> bytes:
        """Return the whole body.

        Raises:
            ValueError: The answer is not finished.
        """

    @abstractmethod
    def _piece(self, piece: Piece) -> bytes:
        """Return the bytes of a piece in a stream."""

    def _finished(self) -> dict[str, Any]:
        """Return the extension as members of an object, once the answer is complete."""
        if self._sections.status is None:
            msg = "the answer is not finished: the last event of an answer is `Finished`"
            raise ValueError(msg)
        extension = self._sections.extension
        return {} if extension is None else {self._frame.extension_key: extension}
