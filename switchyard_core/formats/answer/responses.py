"""An answer as OpenAI Responses: one item per part.

Source: shapes of the public API reference.
"""

from __future__ import annotations

import base64
import copy
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from switchyard_core.asking import ModelUsage
from switchyard_core.formats.answer.sse import sse
from switchyard_core.formats.answer.writer import Frame, Part, PartWriter

__all__ = ["ResponsesAnswer"]

# What the object repeats of the request, with the value for a request that has none.
_REPEATED: Mapping[str, Any] = {
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "prompt_cache_key": None,
    "reasoning": {"effort": None, "summary": None},
    "safety_identifier": None,
    "service_tier": "default",
    "store": True,
    "temperature": 1.0,
    "text": {"format": {"type": "text"}, "verbosity": "medium"},
    "tool_choice": "auto",
    "tools": [],
    "top_logprobs": 0,
    "top_p": 1.0,
    "truncation": "disabled",
    "user": None,
}


class ResponsesAnswer(PartWriter):
    """Writes ``response`` objects and their streams of numbered events."""

    id_prefix = "resp_"
    call_prefix = "call_"
    has_custom_calls = True
    stop_words: ClassVar[Mapping[str, str]] = {
        "length": "max_output_tokens",
        "filter": "content_filter",
    }

    def __init__(self, frame: Frame) -> None:
        super().__init__(frame)
        self._number = 0

    def begin(self, usage: ModelUsage) -> bytes:
        """Return the events that announce the response."""
        del usage
        response = self._response("in_progress", [], None)
        return b"".join(
            self._event(kind, response=response)
            for kind in ("response.created", "response.in_progress")
        )

    def end(self, stop: str, usage: ModelUsage, extension: Mapping[str, Any]) -> bytes:
        """Return the event with the complete response."""
        whole = self.whole(stop, usage, extension)
        return self._event(f"response.{whole['status']}", response=whole)

    def whole(self, stop: str, usage: ModelUsage, extension: Mapping[str, Any]) -> dict[str, Any]:
        """Return the ``response``."""
        status = "incomplete" if stop in self.stop_words else "completed"
        parts = zip(self.parts, self.texts, strict=True)
        items = [self._item(n, part, text, status) for n, (part, text) in enumerate(parts)]
        return {**self._response(status, items, stop, usage), **extension}

    def compaction(
        self, items: Sequence[Mapping[str, Any]], opaque: str, usage: ModelUsage
    ) -> dict[str, Any]:
        """Return the answer of ``/responses/compact``: items that are kept, and an opaque one."""
        summary = {
            "id": self._item_id("cmp", 0),
            "type": "compaction",
            "encrypted_content": opaque or self._made_up(),
        }
        return {
            "id": self.frame.id,
            "object": "response.compaction",
            "created_at": self.frame.created_s,
            "output": [*items, summary],
            "usage": _usage(usage),
        }

    def _opened(self, index: int, part: Part) -> bytes:
        item = self._item(index, part, "", "in_progress")
        begun: dict[str, Any] = dict(item)
        begun.update((key, []) for key in ("summary", "content") if key in item)
        added = self._event("response.output_item.added", output_index=index, item=begun)
        if part.kind != "text":
            return added
        place = self._place(index, part)
        return added + self._event("response.content_part.added", **place, part=_text(""))

    def _more(self, index: int, part: Part, text: str) -> bytes:
        place = self._place(index, part)
        if part.kind == "text":
            return self._event("response.output_text.delta", **place, delta=text, logprobs=[])
        if part.kind == "call":
            return self._event(f"{_call_stem(part)}.delta", **place, delta=text)
        added = b""
        if self.texts[index] == text:  # the first piece
            empty = {"type": "summary_text", "text": ""}
            added = self._event("response.reasoning_summary_part.added", **place, part=empty)
        return added + self._event("response.reasoning_summary_text.delta", **place, delta=text)

    def _closed(self, index: int, part: Part, text: str) -> bytes:
        place = self._place(index, part)
        done = b""
        if part.kind == "text":
            done = self._event(
                "response.output_text.done", **place, text=text, logprobs=[]
            ) + self._event("response.content_part.done", **place, part=_text(text))
        elif part.kind == "call":
            key = "input" if part.custom else "arguments"
            done = self._event(f"{_call_stem(part)}.done", **place, **{key: text})
        elif text:
            stem = "response.reasoning_summary"
            summary = {"type": "summary_text", "text": text}
            done = self._event(f"{stem}_text.done", **place, text=text) + self._event(
                f"{stem}_part.done", **place, part=summary
            )
        item = self._item(index, part, text, "completed")
        return done + self._event("response.output_item.done", output_index=index, item=item)

    def _event(self, kind: str, **fields: Any) -> bytes:
        event = {"type": kind, "sequence_number": self._number, **fields}
        self._number += 1
        return sse(event, kind)

    def _place(self, index: int, part: Part) -> dict[str, Any]:
        inner = {"text": {"content_index": 0}, "reasoning": {"summary_index": 0}}
        item_id = self._item_id(_prefix(part), index)
        return {"item_id": item_id, "output_index": index, **inner.get(part.kind, {})}

    def _item_id(self, prefix: str, index: int) -> str:
        return f"{prefix}_{self.frame.id.removeprefix(self.id_prefix)}_{index}"

    def _item(self, index: int, part: Part, text: str, status: str) -> dict[str, Any]:
        head = {"id": self._item_id(_prefix(part), index)}
        if part.kind == "text":
            content = [_text(text)]
            said = {"type": "message", "status": status, "content": content, "role": "assistant"}
            return {**head, **said}
        if part.kind == "reasoning":
            summary = [{"type": "summary_text", "text": text}] if text else []
            include = self.frame.request.get("include")
            wanted = isinstance(include, list) and "reasoning.encrypted_content" in include
            opaque = part.opaque or (self._made_up() if wanted else "")
            sealed = {"encrypted_content": opaque} if opaque else {}
            return {**head, "type": "reasoning", "summary": summary, **sealed}
        named = {"call_id": part.id, "name": part.name}
        if part.namespace:
            named["namespace"] = part.namespace
        kind, key = ("custom_tool_call", "input") if part.custom else ("function_call", "arguments")
        # A call that is complete is that also in an answer that was cut behind it.
        made = "in_progress" if status == "in_progress" else "completed"
        return {**head, "type": kind, "status": made, **named, key: text}

    def _made_up(self) -> str:
        """Return what takes the place of encrypted content that nobody gave."""
        return base64.b64encode(self.frame.id.encode()).decode()

    def _response(
        self,
        status: str,
        output: list[dict[str, Any]],
        stop: str | None,
        usage: ModelUsage | None = None,
    ) -> dict[str, Any]:
        frame = self.frame
        reason = self.stop_words.get(stop or "")
        return {
            "id": frame.id,
            "object": "response",
            "created_at": frame.created_s,
            "status": status,
            "background": False,
            "completed_at": frame.created_s if status == "completed" else None,
            "error": None,
            "incomplete_details": {"reason": reason} if status == "incomplete" else None,
            "model": frame.model,
            "output": output,
            "usage": None if usage is None else _usage(usage),
            **{
                key: copy.deepcopy(usual) if (said := frame.request.get(key)) is None else said
                for key, usual in _REPEATED.items()
            },
        }


def _prefix(part: Part) -> str:
    if part.kind == "call":
        return "ctc" if part.custom else "fc"
    return "msg" if part.kind == "text" else "rs"


def _call_stem(part: Part) -> str:
    kind = "custom_tool_call_input" if part.custom else "function_call_arguments"
    return f"response.{kind}"


def _text(text: str) -> dict[str, Any]:
    return {"type": "output_text", "annotations": [], "logprobs": [], "text": text}


def _usage(usage: ModelUsage) -> dict[str, Any]:
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }
