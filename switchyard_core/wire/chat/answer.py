"""An answer as OpenAI Chat Completions: one message, sections joined.

Source: shapes of the public API reference. The usage of a stream stands in its last chunk with
a choice, beside the extension: many clients read ``choices[0]`` of every chunk.
"""

from __future__ import annotations

from typing import Any

from switchyard_core.jsonio.tree import encode
from switchyard_core.wire.answer.base import Writer
from switchyard_core.wire.answer.sections import More, Piece
from switchyard_core.wire.sse import sse

__all__ = ["ChatAnswer"]


class ChatAnswer(Writer):
    """Writes ``chat.completion`` objects."""

    def begin(self) -> bytes:
        """Return the chunk that gives the role."""
        return self._chunk({"role": "assistant", "content": "", "refusal": None})

    def end(self) -> bytes:
        """Return the chunk with the reason to stop, the extension and the usage, and the mark."""
        extension = self._finished()
        usage = {"usage": self._usage()} if self._frame.include_usage else {}
        return self._chunk({}, "stop", {**usage, **extension}) + b"data: [DONE]\n\n"

    def whole(self) -> bytes:
        """Return the ``chat.completion``."""
        extension = self._finished()
        message: dict[str, Any] = {
            "role": "assistant",
            "content": "".join(self._sections.texts),
            "refusal": None,
            "annotations": [],
        }
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
        head = self._head("chat.completion")
        return encode({**head, "choices": [choice], "usage": self._usage(), **extension})

    def _piece(self, piece: Piece) -> bytes:
        return self._chunk({"content": piece.delta}) if isinstance(piece, More) else b""

    def _chunk(
        self, delta: dict[str, Any], finish: str | None = None, more: dict[str, Any] | None = None
    ) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        # As the provider does it: every chunk has the key once it was asked for.
        usage = {"usage": None} if self._frame.include_usage else {}
        head = self._head("chat.completion.chunk")
        return sse({**head, "choices": [choice], **usage, **(more or {})})

    def _head(self, kind: str) -> dict[str, Any]:
        frame = self._frame
        return {"id": frame.id, "object": kind, "created": frame.created_s, "model": frame.model}

    def _usage(self) -> dict[str, Any]:
        usage = self._sections.usage
        return {
            "prompt_tokens": usage.input_tokens,
            "completion_tokens": usage.output_tokens,
            "total_tokens": usage.input_tokens + usage.output_tokens,
            "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
        }
