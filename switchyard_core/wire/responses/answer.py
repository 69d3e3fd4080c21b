"""An answer as OpenAI Responses: one message item per section.

Source: shapes of the public API reference.
"""

from __future__ import annotations

from typing import Any

from switchyard_core.jsonio.tree import encode
from switchyard_core.wire.answer.base import Frame, Writer
from switchyard_core.wire.answer.sections import Closed, More, Opened, Piece
from switchyard_core.wire.sse import sse

__all__ = ["ResponsesAnswer"]


class ResponsesAnswer(Writer):
    """Writes ``response`` objects and their streams of numbered events."""

    def __init__(self, frame: Frame) -> None:
        super().__init__(frame)
        self._number = 0

    def begin(self) -> bytes:
        """Return the events that announce the response."""
        response = self._response("in_progress", [], None)
        return b"".join(
            self._event(kind, response=response)
            for kind in ("response.created", "response.in_progress")
        )

    def end(self) -> bytes:
        """Return the event with the complete response."""
        return self._event("response.completed", response=self._completed())

    def whole(self) -> bytes:
        """Return the ``response``."""
        return encode(self._completed())

    def _piece(self, piece: Piece) -> bytes:
        match piece:
            case Opened():
                return self._opened(piece.index)
            case More():
                return self._event(
                    "response.output_text.delta",
                    **self._place(piece.index),
                    delta=piece.delta,
                    logprobs=[],
                )
            case Closed():
                return self._closed(piece)

    def _opened(self, index: int) -> bytes:
        item = {**self._item(index, ""), "status": "in_progress", "content": []}
        return self._event(
            "response.output_item.added", output_index=index, item=item
        ) + self._event("response.content_part.added", **self._place(index), part=_part(""))

    def _closed(self, piece: Closed) -> bytes:
        place, text = self._place(piece.index), piece.text
        return (
            self._event("response.output_text.done", **place, text=text, logprobs=[])
            + self._event("response.content_part.done", **place, part=_part(text))
            + self._event(
                "response.output_item.done",
                output_index=piece.index,
                item=self._item(piece.index, text),
            )
        )

    def _event(self, kind: str, **fields: Any) -> bytes:
        event = {"type": kind, "sequence_number": self._number, **fields}
        self._number += 1
        return sse(event, kind)

    def _place(self, index: int) -> dict[str, Any]:
        return {"item_id": self._item_id(index), "output_index": index, "content_index": 0}

    def _item_id(self, index: int) -> str:
        return f"msg_{self._frame.id.removeprefix('resp_')}_{index}"

    def _item(self, index: int, text: str) -> dict[str, Any]:
        return {
            "id": self._item_id(index),
            "type": "message",
            "status": "completed",
            "content": [_part(text)],
            "role": "assistant",
        }

    def _completed(self) -> dict[str, Any]:
        extension = self._finished()
        items = [self._item(index, text) for index, text in enumerate(self._sections.texts)]
        return {**self._response("completed", items, self._usage()), **extension}

    def _response(
        self, status: str, output: list[dict[str, Any]], usage: dict[str, Any] | None
    ) -> dict[str, Any]:
        frame = self._frame
        return {
            "id": frame.id,
            "object": "response",
            "created_at": frame.created_s,
            "status": status,
            "background": False,
            "error": None,
            "incomplete_details": None,
            "instructions": None,
            "metadata": {},
            "model": frame.model,
            "output": output,
            "parallel_tool_calls": True,
            "previous_response_id": None,
            # Nobody keeps it: a later request cannot name it.
            "store": False,
            "temperature": None,
            "tool_choice": "auto",
            "tools": [],
            "top_p": None,
            "usage": usage,
        }

    def _usage(self) -> dict[str, Any]:
        usage = self._sections.usage
        return {
            "input_tokens": usage.input_tokens,
            "input_tokens_details": {
                "cached_tokens": usage.cached_tokens,
                "cache_write_tokens": 0,
            },
            "output_tokens": usage.output_tokens,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": usage.input_tokens + usage.output_tokens,
        }


def _part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "annotations": [], "logprobs": [], "text": text}
