"""A conversation of our own with a model, kept in the model's own wire format."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

from switchyard_core.answering import ModelReply, ToolOutput
from switchyard_core.conversation import Image
from switchyard_core.declarations import WireFormat
from switchyard_core.jsonio.tree import ArrayText
from switchyard_core.wire import FORMATS
from switchyard_core.wire.format import Verbatim, assistant_item, encode_items

__all__ = ["Transcript"]


class Transcript:
    """Grows turn by turn; the model's items go back to the byte.

    Thinking signatures, encrypted reasoning, call ids and unknown fields survive, because a reply's
    items are never taken apart. A Chat message loses only what a request may not hold:
    ``annotations``, and an empty ``refusal``, ``audio``, ``function_call`` or ``tool_calls``.
    """

    def __init__(self, wire_format: WireFormat, items: Sequence[Mapping[str, Any]] = ()) -> None:
        self.wire_format = wire_format
        self._items: list[Mapping[str, Any]] = list(items)
        self._asked: tuple[str, ...] | None = None

    @property
    def items(self) -> tuple[Mapping[str, Any], ...]:
        """Everything so far, for :attr:`ModelCall.items`."""
        return tuple(self._items)

    def dumps(self) -> str:
        """Return the conversation as JSON text, the model's items in the bytes they came in."""
        return encode_items(self._items).decode("utf-8", "surrogatepass")

    @classmethod
    def loads(cls, wire_format: WireFormat, text: str) -> Self:
        """Return the conversation that :meth:`dumps` wrote; a ``JsonTextError`` for other text."""
        array = ArrayText(text.encode("utf-8", "surrogatepass"))
        return cls(wire_format, [Verbatim(array.raw(index)) for index in range(len(array))])

    def user(self, text: str, images: Sequence[Image] = ()) -> None:
        """Add a message of the user."""
        self._add([FORMATS[self.wire_format].user_message_item(text, images)])

    def assistant(self, text: str) -> None:
        """Add text of an assistant from elsewhere, unless blank, which providers refuse."""
        if text.strip():
            self._add([assistant_item(text)])

    def reply(self, reply: ModelReply) -> None:
        """Add the model's answer, without messages that are empty, which providers refuse."""
        refuses = FORMATS[self.wire_format].refuses_item
        self._add(item for item in reply.items if not refuses(item))
        self._asked = tuple(call.id for call in reply.calls)

    def results(self, outputs: Sequence[ToolOutput]) -> None:
        """Add the results of all calls of the last reply.

        Raises:
            ValueError: Other calls have results: providers refuse a call without a result, and a
                result without a call.
        """
        given = tuple(output.call.id for output in outputs)
        if self._asked is not None and sorted(given) != sorted(self._asked):
            msg = (
                f"the last reply asks for the calls {', '.join(self._asked) or 'none'}; "
                f"there are results of {', '.join(given) or 'none'}"
            )
            raise ValueError(msg)
        self._add(FORMATS[self.wire_format].result_items(outputs))

    def _add(self, items: Iterable[Mapping[str, Any]]) -> None:
        self._items += items
        self._asked = None
