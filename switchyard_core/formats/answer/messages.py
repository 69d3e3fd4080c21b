"""An answer as Anthropic Messages: one block per part.

Source: shapes of the public API reference.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, ClassVar

from switchyard_core.asking import ModelUsage
from switchyard_core.formats.answer.sse import sse
from switchyard_core.formats.answer.writer import Part, PartWriter
from switchyard_core.jsontext import JsonTextError, encode, loads

__all__ = ["MessagesAnswer"]


class MessagesAnswer(PartWriter):
    """Writes ``message`` objects and their streams of named events."""

    id_prefix = "msg_"
    call_prefix = "toolu_01"
    stop_words: ClassVar[Mapping[str, str]] = {
        "stop": "end_turn",
        "calls": "tool_use",
        "length": "max_tokens",
        "filter": "refusal",
    }

    def begin(self, usage: ModelUsage) -> bytes:
        """Return the event with the empty message, and a sign of life."""
        return _event("message_start", message=self._message([], None, usage)) + _event("ping")

    def end(self, stop: str, usage: ModelUsage, extension: Mapping[str, Any]) -> bytes:
        """Return the event with the reason to stop and the usage, and the last one."""
        delta = {"stop_reason": self.stop_word(stop), "stop_sequence": None}
        return _event("message_delta", delta=delta, usage=_usage(usage), **extension) + _event(
            "message_stop"
        )

    def whole(self, stop: str, usage: ModelUsage, extension: Mapping[str, Any]) -> dict[str, Any]:
        """Return the ``message``."""
        parts = zip(self.parts, self.texts, strict=True)
        blocks = [self._block(part, text) for part, text in parts]
        return {**self._message(blocks, self.stop_word(stop), usage), **extension}

    def arguments(self, text: str) -> str:
        """Return arguments as the object that this wire format demands."""
        try:
            fits = isinstance(loads(text.encode()), dict)
        except JsonTextError:
            fits = False
        return text if fits else encode({"input": text}).decode()

    def _opened(self, index: int, part: Part) -> bytes:
        block = self._block(part, "")
        if part.kind == "reasoning":
            block["signature"] = ""
        opened = _event("content_block_start", index=index, content_block=block)
        # The API itself begins arguments with an empty piece.
        return opened + (self._more(index, part, "") if part.kind == "call" else b"")

    def _more(self, index: int, part: Part, text: str) -> bytes:
        if part.kind == "text":
            delta = {"type": "text_delta", "text": text}
        elif part.kind == "reasoning":
            delta = {"type": "thinking_delta", "thinking": text}
        else:
            delta = {"type": "input_json_delta", "partial_json": text}
        return _event("content_block_delta", index=index, delta=delta)

    def _closed(self, index: int, part: Part, text: str) -> bytes:
        signed = b""
        if part.kind == "reasoning":
            delta = {"type": "signature_delta", "signature": self._block(part, text)["signature"]}
            signed = _event("content_block_delta", index=index, delta=delta)
        return signed + _event("content_block_stop", index=index)

    def _block(self, part: Part, text: str) -> dict[str, Any]:
        if part.kind == "text":
            return {"type": "text", "text": text}
        if part.kind == "reasoning":
            # Clients send a thinking block back as it came, and one without a signature is refused.
            signature = part.opaque or base64.b64encode(self.frame.id.encode()).decode()
            return {"type": "thinking", "thinking": text, "signature": signature}
        arguments = loads(text.encode()) if text else {}
        return {"type": "tool_use", "id": part.id, "name": part.name, "input": arguments}

    def _message(
        self, content: list[dict[str, Any]], stop_reason: str | None, usage: ModelUsage
    ) -> dict[str, Any]:
        return {
            "id": self.frame.id,
            "type": "message",
            "role": "assistant",
            "model": self.frame.model,
            "content": content,
            "stop_reason": stop_reason,
            "stop_sequence": None,
            "usage": _usage(usage),
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
