"""An answer as OpenAI Chat Completions: one message, texts joined.

Source: shapes of the public API reference; ``reasoning_content`` is the field that
OpenAI-compatible providers use for readable reasoning.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from switchyard_core.asking import ModelUsage
from switchyard_core.formats.answer.sse import sse
from switchyard_core.formats.answer.writer import Part, PartWriter

__all__ = ["ChatAnswer"]


class ChatAnswer(PartWriter):
    """Writes ``chat.completion`` objects."""

    id_prefix = "chatcmpl-"
    call_prefix = "call_"
    stop_words: ClassVar[Mapping[str, str]] = {"calls": "tool_calls", "filter": "content_filter"}

    def begin(self, usage: ModelUsage) -> bytes:
        """Return the chunk that gives the role."""
        del usage
        return self._chunk({"role": "assistant", "content": "", "refusal": None})

    def end(self, stop: str, usage: ModelUsage, extension: Mapping[str, Any]) -> bytes:
        """Return the chunk with the reason to stop, the usage, and the end mark."""
        stated = {"usage": _usage(usage)} if self.frame.include_usage else {}
        if stated and self.frame.usage_apart:
            last = sse({**self._head("chat.completion.chunk"), "choices": [], **stated})
            stated = {}
        else:
            last = b""
        end = self._chunk({}, self.stop_word(stop), {**stated, **extension})
        return end + last + b"data: [DONE]\n\n"

    def whole(self, stop: str, usage: ModelUsage, extension: Mapping[str, Any]) -> dict[str, Any]:
        """Return the ``chat.completion``."""
        calls = [
            self._call(part, text)
            for part, text in zip(self.parts, self.texts, strict=True)
            if part.kind == "call"
        ]
        reasoning = self._joined("reasoning")
        text = self._joined("text")
        message = {
            "role": "assistant",
            "content": text if text or not calls else None,
            "refusal": None,
            **({"reasoning_content": reasoning} if reasoning else {}),
            **({"tool_calls": calls} if calls else {}),
            "annotations": [],
        }
        choice = {
            "index": 0,
            "message": message,
            "logprobs": None,
            "finish_reason": self.stop_word(stop),
        }
        head = self._head("chat.completion")
        return {**head, "choices": [choice], "usage": _usage(usage), **extension}

    def _opened(self, index: int, part: Part) -> bytes:
        if part.kind != "call":
            return b""
        number = sum(earlier.kind == "call" for earlier in self.parts[:index])
        return self._chunk({"tool_calls": [{"index": number, **self._call(part, "")}]})

    def _more(self, index: int, part: Part, text: str) -> bytes:
        if part.kind == "call":
            number = sum(earlier.kind == "call" for earlier in self.parts[:index])
            return self._chunk({"tool_calls": [{"index": number, "function": {"arguments": text}}]})
        return self._chunk({"content" if part.kind == "text" else "reasoning_content": text})

    def _closed(self, index: int, part: Part, text: str) -> bytes:
        del index, part, text
        return b""

    def _call(self, part: Part, arguments: str) -> dict[str, Any]:
        function = {"name": part.name, "arguments": arguments}
        return {"id": part.id, "type": "function", "function": function}

    def _joined(self, kind: str) -> str:
        parts = zip(self.parts, self.texts, strict=True)
        return "".join(text for part, text in parts if part.kind == kind)

    def _chunk(
        self,
        delta: dict[str, Any],
        finish: str | None = None,
        members: Mapping[str, Any] | None = None,
    ) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        # As the provider does it: every chunk has the key once it was asked for.
        usage = {"usage": None} if self.frame.include_usage else {}
        head = self._head("chat.completion.chunk")
        return sse({**head, "choices": [choice], **usage, **(members or {})})

    def _head(self, kind: str) -> dict[str, Any]:
        frame = self.frame
        return {"id": frame.id, "object": kind, "created": frame.created_s, "model": frame.model}


def _usage(usage: ModelUsage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }
