"""A conversation of our own with a model, kept in the model's own wire format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from switchyard_core.asking import ModelReply, ToolOutput
from switchyard_core.conversation import Image
from switchyard_core.declarations import WireFormat

__all__ = ["Transcript"]


class Transcript:
    """Grows turn by turn; what the model said goes back as it came.

    Thinking signatures, encrypted reasoning, call ids and fields that nobody here knows are
    kept, because a reply's items are never taken apart.

    Args:
        wire_format: Of the target that is asked.
        items: What was said before.
    """

    def __init__(self, wire_format: WireFormat, items: Sequence[Mapping[str, Any]] = ()) -> None:
        self.wire_format = wire_format
        self._items: list[Mapping[str, Any]] = list(items)

    @property
    def items(self) -> tuple[Mapping[str, Any], ...]:
        """Everything so far, for :attr:`ModelCall.items`."""
        return tuple(self._items)

    def user(self, text: str, images: Sequence[Image] = ()) -> None:
        """Add a message of the user."""
        raise NotImplementedError

    def assistant(self, text: str) -> None:
        """Add text that an assistant said elsewhere."""
        raise NotImplementedError

    def reply(self, reply: ModelReply) -> None:
        """Add what the model answered."""
        raise NotImplementedError

    def results(self, outputs: Sequence[ToolOutput]) -> None:
        """Add the results of all calls of the last reply."""
        raise NotImplementedError
