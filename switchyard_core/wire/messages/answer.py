"""An answer as Anthropic Messages: one text block per section.

Source: shapes of the public API reference.
"""

from __future__ import annotations

from typing import Any

from switchyard_core.answering import ModelUsage
from switchyard_core.jsonio.tree import encode
from switchyard_core.wire.answer.base import Writer
from switchyard_core.wire.answer.sections import Closed, More, Opened, Piece
from switchyard_core.wire.sse import sse

__all__ = ["MessagesAnswer"]


class MessagesAnswer(Writer):
    """Writes ``message`` objects and their streams of named events."""

    def begin(self) -> bytes:
        """Return the event with the empty message; the tokens are not known yet."""
        return _event("message_start", message=self._message([], None, _usage(ModelUsage())))

    def end(self) -> bytes:
        """Return the event with usage and extension, and the last one."""
        extension = self._finished()
        delta = {"stop_reason": "end_turn", "stop_sequence": None}
        usage = _usage(self._sections.usage)
        return _event("message_delta", delta=delta, usage=usage, **extension) + _event(
            "message_stop"
        )

    def whole(self) -> bytes:
        """Return the ``message``."""
        extension = self._finished()
        blocks = [{"type": "text", "text": text} for text in self._sections.texts]
        message = self._message(blocks, "end_turn", _usage(self._sections.usage))
        return encode({**message, **extension})

    def _piece(self, piece: Piece) -> bytes:
        index = piece.index
        match piece:
            case Opened():
                block = {"type": "text", "text": ""}
                return _event("content_block_start", index=index, content_block=block)
            case More():
                delta = {"type": "text_delta", "text": piece.delta}
                return _event("content_block_delta", index=index, delta=delta)
            case Closed():
                return _event("content_block_stop", index=index)

    def _message(
        self, content: list[dict[str, Any]], stop_reason: str | None, usage: dict[str, Any]
    ) -> dict[str, Any]:
        return {
            "id": self._frame.id,
            "type": "message",
            "role": "assistant",
            "model": self._frame.model,
            "content": content,
            "stop_reason": stop_reason,
            "stop_sequence": None,
            "usage": usage,
        }


def _event(name: str, **fields: Any) -> bytes:
    return sse({"type": name, **fields}, name)


def _usage(usage: ModelUsage) -> dict[str, Any]:
    # This format counts the tokens that came from a cache apart.
    return {
        "input_tokens": max(0, usage.input_tokens - usage.cached_tokens),
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": usage.cached_tokens,
        "output_tokens": usage.output_tokens,
    }
