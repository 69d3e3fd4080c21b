"""OpenAI Responses: how its answers and errors are read and written.

Source: shapes of the public API reference.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar

import msgspec

from switchyard_core.answering import ModelReply, ModelUsage
from switchyard_core.errors import RequestError
from switchyard_core.jsonio.tree import ObjectText, encode
from switchyard_core.wire.answers import AnswerPart, Event, Frame, PartWriter, legal, one_line
from switchyard_core.wire.chat.answer import openai_error, openai_provider_error, openai_usage
from switchyard_core.wire.format import EventKind, Verbatim
from switchyard_core.wire.history import word
from switchyard_core.wire.neutral import Facts, NeutralRequest
from switchyard_core.wire.replies import (
    FILTERED,
    ShapeError,
    an_array,
    objects,
    refuse_error,
    requested_call,
    status_word,
    table,
    text_in,
    texts_of,
)
from switchyard_core.wire.responses.neutral import read_request, write_request
from switchyard_core.wire.responses.request import ResponsesRequests
from switchyard_core.wire.responses.sent import ENDS, cut_reason, refuse_failed, wants
from switchyard_core.wire.responses.told import ResponsesReader

__all__ = ["OpenAIResponses"]

#: What a provider's answer repeats of the request, with the value for a request without it.
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
#: Those whose value the provider alone knows where the request has none.
_OPEN = ("temperature", "top_logprobs", "top_p")
_ENCRYPTED = "reasoning.encrypted_content"
_SEQUENCE = re.compile(rb'"sequence_number"\s*:\s*(\d{1,12})')


class ResponsesWriter(PartWriter):
    """Writes ``response`` objects and their streams of numbered events: one item per part."""

    id_prefix = "resp_"
    has_custom_calls = True
    tells_cuts = True
    stop_words: ClassVar[Mapping[str, str]] = {
        "length": "max_output_tokens",
        "filter": "content_filter",
        "refusal": "content_filter",
    }

    def __init__(self, frame: Frame) -> None:
        super().__init__(frame)
        self._sent = 0
        #: Pieces of the open part: the end of a stream repeats its texts.
        self._pieces: list[bytes] = []
        #: An event with one of them, for its number and its text.
        self._form = b""

    @classmethod
    def id_of(cls, key: str) -> str:
        """Return an id of 48 digits."""
        return f"{cls.id_prefix}{key[:48]}"

    @property
    def wants_opaque(self) -> bool:
        """Whether the request asks for encrypted reasoning."""
        include = (self.frame.request or {}).get("include")
        return isinstance(include, list) and _ENCRYPTED in include

    def begin(self, usage: ModelUsage) -> Iterator[Event]:
        """Yield the events that announce the response."""
        response = self._response("in_progress", [])
        for kind in ("response.created", "response.in_progress"):
            yield self._event(kind, response=response)

    def end(self, usage: ModelUsage, extension: Mapping[str, Any]) -> Iterator[Event]:
        """Yield the event with the complete response."""
        response = self.whole(usage, extension)
        yield self._event(f"response.{response['status']}", response=response)

    def whole(self, usage: ModelUsage, extension: Mapping[str, Any]) -> dict[str, Any]:
        """Return the ``response``."""
        items = [self._item(index, self._status) for index in range(len(self.parts))]
        return {**self._response(self._status, items, usage), **extension}

    @property
    def _status(self) -> str:
        return "incomplete" if self.frame.stop in self.stop_words else "completed"

    def _opened(self, index: int, part: AnswerPart) -> Iterator[Event]:
        item = self._item(index, "in_progress")
        content = _CONTENT.get(part.kind)
        if content is not None:
            item["content"] = []
        yield self._event("response.output_item.added", output_index=index, item=item)
        if content is not None:
            at = self._place(index)
            yield self._event("response.content_part.added", **at, part=content(""))

    def _first(self, index: int, part: AnswerPart) -> Iterator[Event]:
        if part.kind == "reasoning":
            at = self._place(index)
            yield self._event("response.reasoning_summary_part.added", **at, part=_summary(""))

    def _more(self, index: int, part: AnswerPart, text: str) -> Iterator[Event]:
        at = self._place(index)
        if part.kind == "text":
            yield self._event("response.output_text.delta", **at, delta=text, logprobs=[])
        elif part.kind == "refusal":
            yield self._event("response.refusal.delta", **at, delta=text)
        elif part.kind == "call":
            yield self._event(f"{_call_stem(part)}.delta", **at, delta=text)
        else:
            yield self._event("response.reasoning_summary_text.delta", **at, delta=text)

    def _sample(self, index: int, part: AnswerPart) -> bytes:
        sample = super()._sample(index, part)
        self._sent -= 1
        return sample

    def _prepared(self) -> bytes:
        begun = super()._prepared()
        before, behind = self._around
        # Every event has a number of its own, in front of its text.
        start, key, rest = before.partition(b'"sequence_number":')
        parts = (start + key, rest.lstrip(b"0123456789"), behind)
        first, middle, last = (part.replace(b"%", b"%%") for part in parts)
        self._form = first + b"%d" + middle + b"%b" + last
        return begun

    def piece(self, raw: bytes) -> bytes:
        """Add text to the part that is open; it is kept."""
        if not self._form:
            return self._prepared() + self.piece(raw)
        if not raw.isascii():
            raw = one_line(legal(raw))
        self._pieces.append(raw)
        number = self._sent
        self._sent = number + 1
        return self._form % (number, raw)

    def close(self) -> Iterable[Event]:
        """End the part that is open; a text that came in pieces stays encoded."""
        if self._pieces:
            said = b"".join([piece[1:-1] for piece in self._pieces])
            self.texts[-1] = msgspec.Raw(b'"' + said + b'"')
            self._pieces, self._form = [], b""
        return super().close()

    def _closed(self, index: int, part: AnswerPart, text: Any) -> Iterator[Event]:
        at = self._place(index)
        if part.kind == "text":
            yield self._event("response.output_text.done", **at, text=text, logprobs=[])
            yield self._event("response.content_part.done", **at, part=_text(text))
        elif part.kind == "refusal":
            yield self._event("response.refusal.done", **at, refusal=text)
            yield self._event("response.content_part.done", **at, part=_refusal(text))
        elif part.kind == "call":
            yield self._event(f"{_call_stem(part)}.done", **at, **{_call_key(part): text})
        elif text:
            yield self._event("response.reasoning_summary_text.done", **at, text=text)
            yield self._event("response.reasoning_summary_part.done", **at, part=_summary(text))
        item = self._item(index, self._status)
        yield self._event("response.output_item.done", output_index=index, item=item)

    def _event(self, kind: str, **fields: Any) -> Event:
        self._sent += 1
        return Event({"type": kind, "sequence_number": self._sent - 1, **fields}, kind)

    def _place(self, index: int) -> dict[str, Any]:
        kind = self.parts[index].kind
        inner = {"content_index": 0} if kind in _CONTENT else _SUMMARY_PLACE.get(kind, {})
        return {"item_id": self._item_id(index), "output_index": index, **inner}

    def _item_id(self, index: int) -> str:
        part, stem = self.parts[index], self.frame.id.removeprefix(self.id_prefix)
        call = "ctc" if part.custom else "fc"
        prefix = {"reasoning": "rs", "call": call}.get(part.kind, "msg")
        if not self.frame.invents:
            return f"{prefix}_{stem}_{index}"
        if part.kind != "call":
            return f"{prefix}_{stem}"
        number = sum(part.kind == "call" for part in self.parts[:index])
        return f"{prefix}_{stem[:-2]}{number:02d}"

    def _item(self, index: int, status: str) -> dict[str, Any]:
        part, text = self.parts[index], self.texts[index]
        head = {"id": self._item_id(index)}
        content = _CONTENT.get(part.kind)
        if content is not None:
            said = {"status": status, "content": [content(text)], "role": "assistant"}
            return {**head, "type": "message", **said}
        if part.kind == "reasoning":
            sealed = {"encrypted_content": part.opaque} if part.opaque else {}
            summary = [_summary(text)] if text else []
            return {**head, "type": "reasoning", "summary": summary, **sealed}
        named = {"call_id": part.id, "name": part.name}
        if part.namespace:
            named["namespace"] = part.namespace
        kind = "custom_tool_call" if part.custom else "function_call"
        # A call that is complete is that also in an answer that was cut behind it.
        made = "in_progress" if status == "in_progress" else "completed"
        return {**head, "type": kind, "status": made, **named, _call_key(part): text}

    def _response(
        self, status: str, output: list[dict[str, Any]], usage: ModelUsage | None = None
    ) -> dict[str, Any]:
        frame, request = self.frame, self.frame.request
        cut = {"reason": self.stop_word} if status == "incomplete" else None
        head = {
            "id": frame.id,
            "object": "response",
            "created_at": frame.created_s,
            "status": status,
            "background": False,
        }
        told = None if usage is None else _usage(usage)
        if request is None:
            # Nobody keeps it: a later request cannot name it.
            return {
                **head,
                "error": None,
                "incomplete_details": None,
                "instructions": None,
                "metadata": {},
                "model": frame.model,
                "output": output,
                "parallel_tool_calls": True,
                "previous_response_id": None,
                "store": False,
                "temperature": None,
                "tool_choice": "auto",
                "tools": [],
                "top_p": None,
                "usage": told,
            }
        return {
            **head,
            "completed_at": frame.created_s if status == "completed" else None,
            "error": None,
            "incomplete_details": cut,
            "model": frame.model,
            "output": output,
            "usage": told,
            **self._repeated(request),
        }

    def _repeated(self, request: Mapping[str, Any]) -> dict[str, Any]:
        found = {
            key: copy.deepcopy(usual) if request.get(key) is None else request[key]
            for key, usual in _REPEATED.items()
        }
        if not self.frame.invents:
            # What the provider took for itself is unknown, and nobody keeps a translated answer.
            found |= {key: request.get(key) for key in _OPEN} | {"store": False}
            found["service_tier"] = None
        return found


class OpenAIResponses(ResponsesRequests):
    """Responses."""

    writer = ResponsesWriter
    reader = ResponsesReader
    end_mark = re.compile(
        rb"\nevent:\s*response\.(?:completed|incomplete)"
        rb"|\"type\":\s*\"response\.(?:completed|incomplete)\""
    )
    error_mark = re.compile(rb"\nevent:\s*(?:error|response\.failed)\b")
    ends_with_whole_answer = True
    head_events = frozenset(
        {"response.created", "response.in_progress", "response.queued", "ping", "keepalive"}
    )
    said_key = "output"
    answer_key = "response"

    def neutral(self, fields: ObjectText) -> NeutralRequest:
        """Return what a request says."""
        return read_request(fields, self.history(fields))

    def write(self, request: NeutralRequest, facts: Facts) -> bytes:
        """Return the body that says the same."""
        return write_request(request, facts, self)

    def event_kind(self, name: str, tree: Mapping[str, Any]) -> EventKind:
        """Return the kind of an event by its type; the last one tells how the answer ended."""
        kind = word(tree.get("type")) or name
        if kind in self.head_events:
            return "head"
        if kind in ENDS:
            refuse_error(table(tree.get("response")))
            answer = table(tree.get("response"))
            for status in (kind.removeprefix("response."), word(answer.get("status"))):
                refuse_failed(status, answer.get("incomplete_details"))
            return "end"
        return "content"

    def check_answer(self, tree: Mapping[str, Any]) -> None:
        """Refuse an answer that failed, was cancelled, or is incomplete for an unknown reason."""
        refuse_failed(word(tree.get("status")), tree.get("incomplete_details"))
        an_array(tree, "output")

    def read_answer(self, tree: Mapping[str, Any], fields: ObjectText) -> ModelReply:
        """Return what the items of ``output`` say."""
        status = word(tree.get("status"))
        if status not in ("", "completed", "incomplete"):
            raise ShapeError(status_word(status))
        items, raw = objects(an_array(tree, "output"), "output"), fields.array("output")
        if raw is None:
            msg = "`output` is not an array"
            raise ShapeError(msg)
        parts = [
            part
            for at, item in items
            if item.get("type") == "message"
            for part in objects(item.get("content") or None, f"{at}.content")
        ]
        text = texts_of(parts, "output_text", "text")
        refusal = texts_of(parts, "refusal", "refusal")
        stop = status
        if status == "incomplete":
            details = tree.get("incomplete_details")
            stop = word(table(details).get("reason")) if cut_reason(details) else status
        if stop == "content_filter":
            refusal = refusal or text or FILTERED
        return ModelReply(
            text=text,
            calls=tuple(
                requested_call(*_named(item, at), item.get("arguments"), at)
                for at, item in items
                if item.get("type") == "function_call"
            ),
            items=tuple(Verbatim(raw.raw(index)) for index in range(len(raw))),
            stop=stop,
            refusal=refusal,
            wants=wants([item for _, item in items]),
            usage=self.usage(table(tree.get("usage"))),
        )

    def usage(self, told: Mapping[str, Any]) -> ModelUsage:
        """Return what a ``usage`` says."""
        return openai_usage(told)

    def error_body(self, error: RequestError, request_id: str) -> bytes:
        """Return the error in OpenAI's shape."""
        return openai_error(error)

    def error_event(self, error: RequestError, request_id: str, last: bytes) -> bytes:
        """Return the error as an event ``error``, its number behind that of the last event."""
        told = {"code": error.code, "message": error.message, "param": None}
        # The official SDK ends quietly unless the event has an `error` of its own.
        event: dict[str, Any] = {"type": "error", **told, "error": {"type": "error", **told}}
        numbers = _SEQUENCE.findall(last)
        if numbers:
            event["sequence_number"] = int(numbers[-1]) + 1
        return b"event: error\ndata: " + encode(event) + b"\n\n"

    def provider_error(self, status: int, message: str, request_id: str) -> dict[str, Any]:
        """Return the error in OpenAI's shape."""
        return openai_provider_error(status, message)

    def provider_error_event(self, status: int, message: str, number: int) -> Event:
        """Return the event ``response.failed``."""
        failure = {
            "id": "resp_failed",
            "object": "response",
            "created_at": 0,
            "status": "failed",
            "model": "scripted",
            "output": [],
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "error": {"code": "server_error", "message": message},
        }
        event = {"type": "response.failed", "sequence_number": number, "response": failure}
        return Event(event, "response.failed")

    def token_count(self, tokens: int) -> dict[str, Any]:
        """Return the answer of ``/responses/input_tokens``."""
        return {"object": "response.input_tokens", "input_tokens": tokens}

    def compaction(self, frame: Frame, opaque: str, usage: ModelUsage) -> dict[str, Any]:
        """Return the answer of ``/responses/compact``: the user's messages and an opaque item."""
        items = (frame.request or {}).get("input")
        kept = [
            item
            for item in (items if isinstance(items, list) else ())
            if isinstance(item, Mapping) and item.get("role") == "user"
        ]
        compacted = f"cmp_{frame.id.removeprefix('resp_')}"
        summary = {"id": compacted, "type": "compaction", "encrypted_content": opaque}
        return {
            "id": frame.id,
            "object": "response.compaction",
            "created_at": frame.created_s,
            "output": [*kept, summary],
            "usage": _usage(usage),
        }


def _usage(usage: ModelUsage) -> dict[str, Any]:
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {
            "cached_tokens": usage.cached_tokens,
            "cache_write_tokens": usage.cache_write_tokens,
        },
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }


def _named(item: Mapping[str, Any], at: str) -> tuple[str, str]:
    return text_in(item, "call_id", at), text_in(item, "name", at)


def _text(text: Any) -> dict[str, Any]:
    return {"type": "output_text", "annotations": [], "logprobs": [], "text": text}


def _refusal(text: Any) -> dict[str, Any]:
    return {"type": "refusal", "refusal": text}


#: What the content of a message is, by the kind of its part.
_CONTENT: Mapping[str, Callable[[Any], dict[str, Any]]] = {"text": _text, "refusal": _refusal}
_SUMMARY_PLACE: Mapping[str, dict[str, Any]] = {"reasoning": {"summary_index": 0}}


def _summary(text: Any) -> dict[str, Any]:
    return {"type": "summary_text", "text": text}


def _call_stem(part: AnswerPart) -> str:
    return f"response.{'custom_tool_call_input' if part.custom else 'function_call_arguments'}"


def _call_key(part: AnswerPart) -> str:
    return "input" if part.custom else "arguments"
