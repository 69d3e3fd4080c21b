"""An answer of Messages, told to whom it may concern."""

from __future__ import annotations

from switchyard_core.wire.retelling import AnswerReader

__all__ = ["MessagesReader"]


class MessagesReader(AnswerReader):
    """Reads answers of Messages."""

    def event(self, name: str, data: bytes) -> None:
        """Read one event of a stream."""
        raise NotImplementedError

    def finish(self) -> None:
        """Note that the stream has ended."""
        raise NotImplementedError

    def whole(self, body: bytes) -> None:
        """Read a whole answer."""
        raise NotImplementedError
