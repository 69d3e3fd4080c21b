"""How an answer is told from one wire format to another: a reader tells a teller, in order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable

from switchyard_core.answering import ModelUsage
from switchyard_core.wire.answers import AnswerPart

__all__ = ["AnswerReader", "AnswerTeller"]


class AnswerTeller(ABC):
    """Takes what an answer says and writes it elsewhere.

    ``key`` names a part within the provider's answer. Parts may be open at the same time, and come
    in any order; the teller writes one after another. What is told twice is the reader's to find.
    """

    @abstractmethod
    def head(self, *, answer_id: str, model: str, created_s: int, usage: ModelUsage) -> None:
        """Tell what is known before the first part; 0 and ``""`` for what is not."""

    @abstractmethod
    def open(self, key: Hashable, part: AnswerPart) -> None:
        """Begin a part; its id and name are the provider's own."""

    @abstractmethod
    def more(self, key: Hashable, raw: bytes) -> None:
        """Add text to a part: a JSON string with its quotes, a piece of arguments too."""

    @abstractmethod
    def close(self, key: Hashable) -> None:
        """End a part; the one after it can be written now."""

    @abstractmethod
    def end(self, stop: str, usage: ModelUsage) -> None:
        """End the answer: nothing follows.

        ``stop`` is ``stop``, ``calls``, ``length``, ``filter``, ``pause`` or ``refusal``; ``""``
        leaves it to what was told (``calls`` if there was one).
        """

    @abstractmethod
    def ping(self) -> None:
        """Tell that the provider is still at work."""


class AnswerReader(ABC):
    """Reads one answer of a wire format and tells it.

    An error that the provider tells inside of an answer, or a shape that nobody can read, is a
    :class:`~switchyard_core.wire.replies.ShapeError`; what is unknown is left alone. A stream must
    never be kept: only what the end of an open part needs.
    """

    def __init__(self, teller: AnswerTeller) -> None:
        self.teller = teller

    @abstractmethod
    def event(self, name: str, data: bytes) -> None:
        """Read one event of a stream; ``data`` is its JSON, or a word such as ``[DONE]``."""

    @abstractmethod
    def finish(self) -> None:
        """Note that the stream has ended; a ``ShapeError`` when its answer has not."""

    @abstractmethod
    def whole(self, body: bytes) -> None:
        """Read a whole answer."""
