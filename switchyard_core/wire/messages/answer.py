"""Anthropic Messages: how its answers and errors are read and written.

Source: shapes of the public API reference.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar

from switchyard_core.answering import ModelReply, ModelUsage
from switchyard_core.errors import RequestError
from switchyard_core.jsonio.tree import ObjectText, encode
from switchyard_core.wire.answers import AnswerPart, Event, PartWriter
from switchyard_core.wire.format import EventKind, Verbatim
from switchyard_core.wire.history import word
from switchyard_core.wire.messages.neutral import read_request
from switchyard_core.wire.messages.request import MessagesRequests
from switchyard_core.wire.messages.told import MessagesReader, usage_of
from switchyard_core.wire.messages.writing import write_request
from switchyard_core.wire.neutral import Facts, NeutralRequest
from switchyard_core.wire.replies import (
    ShapeError,
    ToldError,
    an_array,
    objects,
    requested_call,
    table,
    text_in,
    texts_of,
)

__all__ = ["AnthropicMessages"]

#: A refusal that comes without a word.
_REFUSED = "the model refused to answer"
#: Kinds of parts that are a block of text.
_TEXTS = ("text", "refusal")
#: The provider waits for a request to continue with its own tools.
_PAUSED = "pause_turn"
_ERROR_TYPES: Mapping[int, str] = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}
#: What an error says of a request that does not fit.
_TOO_LONG = "prompt is too long"
#: Types of statuses that other providers use, and those of a status that says nothing.
_OTHER_TYPES: Mapping[int, str] = {402: "billing_error", 504: "timeout_error"}
_SERVER_TYPES = frozenset({"overloaded_error", "timeout_error"})


class MessagesWriter(PartWriter):
    """Writes ``message`` objects and their streams of named events: one block per part."""

    id_prefix = "msg_"
    call_prefix = "toolu_01"
    object_key = "_raw"
    stop_words: ClassVar[Mapping[str, str]] = {
        "stop": "end_turn",
        "calls": "tool_use",
        "length": "max_tokens",
        "filter": "refusal",
        "refusal": "refusal",
        "pause": _PAUSED,
    }

    @classmethod
    def id_of(cls, key: str) -> str:
        """Return an id of 24 characters."""
        return f"{cls.id_prefix}01{key[:22]}"

    @property
    def wants_opaque(self) -> bool:
        """A thinking block always has a signature; clients send it back as it came."""
        return True

    def begin(self, usage: ModelUsage) -> Iterator[Event]:
        """Yield the event with the empty message."""
        if self.frame.invents:
            usage = replace(usage, output_tokens=1)
        yield _event("message_start", message=self._message([], None, usage))
        if self.frame.invents:
            yield _event("ping")

    def ping(self) -> Event:
        """Return the event ``ping``."""
        return _event("ping")

    @property
    def stop_word(self) -> str:
        """Why the answer ends; a refusal is told by the word alone."""
        refused = self.frame.stop == "stop" and any(p.kind == "refusal" for p in self.parts)
        return "refusal" if refused else super().stop_word

    def end(self, usage: ModelUsage, extension: Mapping[str, Any]) -> Iterable[Event]:
        """Return the event with usage and extension, and the last one."""
        delta = {"stop_reason": self.stop_word, "stop_sequence": None}
        return [
            _event("message_delta", delta=delta, usage=self._usage(usage), **extension),
            _event("message_stop"),
        ]

    def whole(self, usage: ModelUsage, extension: Mapping[str, Any]) -> dict[str, Any]:
        """Return the ``message``."""
        written = zip(self.parts, self.texts, strict=True)
        blocks = [_block(part, text) for part, text in written]
        return {**self._message(blocks, self.stop_word, usage), **extension}

    def arguments(self, text: str) -> str:
        """Return the object that Messages demands, without spaces; ``""`` for an empty one."""
        try:
            value = json.loads(text)
        except ValueError:
            value = None
        value = value if isinstance(value, dict) else {"input": text}
        # The API itself begins with an empty piece; an empty object has no further one.
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")) if value else ""

    def _opened(self, index: int, part: AnswerPart) -> Iterator[Event]:
        block = _block(replace(part, opaque=""), "")
        yield _event("content_block_start", index=index, content_block=block)
        if part.kind == "call":
            yield from self._more(index, part, "")

    def _more(self, index: int, part: AnswerPart, text: str) -> Iterable[Event]:
        if part.kind in _TEXTS:
            delta = {"type": "text_delta", "text": text}
        elif part.kind == "reasoning":
            delta = {"type": "thinking_delta", "thinking": text}
        else:
            delta = {"type": "input_json_delta", "partial_json": text}
        return [_event("content_block_delta", index=index, delta=delta)]

    def _closed(self, index: int, part: AnswerPart, text: str) -> Iterator[Event]:
        if part.kind == "reasoning":
            delta = {"type": "signature_delta", "signature": part.opaque}
            yield _event("content_block_delta", index=index, delta=delta)
        yield _event("content_block_stop", index=index)

    def _message(
        self, content: list[dict[str, Any]], stop_reason: str | None, usage: ModelUsage
    ) -> dict[str, Any]:
        # The provider itself has the model first.
        first = {} if self.frame.request is None else {"model": self.frame.model}
        return {
            **first,
            "id": self.frame.id,
            "type": "message",
            "role": "assistant",
            "model": self.frame.model,
            "content": content,
            "stop_reason": stop_reason,
            "stop_sequence": None,
            "usage": self._usage(usage),
        }

    def _usage(self, usage: ModelUsage) -> dict[str, Any]:
        # This format counts the tokens of a cache apart.
        of_cache = usage.cached_tokens + usage.cache_write_tokens
        counts: dict[str, Any] = {
            "input_tokens": max(0, usage.input_tokens - of_cache),
            "cache_creation_input_tokens": usage.cache_write_tokens,
            "cache_read_input_tokens": usage.cached_tokens,
            "output_tokens": usage.output_tokens,
        }
        if self.frame.invents:
            return {**counts, "service_tier": "standard"}
        if usage.reasoning_tokens and self.frame.request is not None:
            counts["output_tokens_details"] = {"thinking_tokens": usage.reasoning_tokens}
        return counts


class AnthropicMessages(MessagesRequests):
    """Messages."""

    writer = MessagesWriter
    reader = MessagesReader
    end_mark = re.compile(rb"\nevent:\s*message_stop|\"type\":\s*\"message_stop\"")
    error_mark = re.compile(rb"\nevent:\s*error\b")
    head_events = frozenset({"message_start", "ping"})
    said_key = "content"
    answer_key = "message"
    #: Claude Code drops the thinking of every turn whose answer names another model.
    answer_model = "requested"
    request_id_header = "request-id"
    overloaded = 529
    indent = None

    def neutral(self, fields: ObjectText) -> NeutralRequest:
        """Return what a request says."""
        self.history(fields)
        return read_request(fields)

    def write(self, request: NeutralRequest, facts: Facts) -> bytes:
        """Return the body that says the same."""
        return write_request(request, facts, self)

    def event_kind(self, name: str, tree: Mapping[str, Any]) -> EventKind:
        """Return the kind of an event by its type."""
        kind = word(tree.get("type")) or name
        if kind in self.head_events:
            return "head"
        return "end" if kind in ("message_delta", "message_stop") else "content"

    def read_answer(self, tree: Mapping[str, Any], fields: ObjectText) -> ModelReply:
        """Return what the blocks say."""
        blocks, raw = objects(an_array(tree, "content"), "content"), fields.array("content")
        if raw is None:
            msg = "`content` is not an array"
            raise ShapeError(msg)
        text = texts_of(blocks, "text", "text")
        stop = word(tree.get("stop_reason"))
        refusal = ""
        if stop == "refusal":
            details = table(tree.get("stop_details"))
            refusal = text or word(details.get("explanation")) or _REFUSED
        calls = []
        for index, (at, block) in enumerate(blocks):
            node = raw.object(index)
            if block.get("type") == "tool_use" and node is not None:
                arguments = node.raw("input")
                told = None if arguments is None else arguments.decode("utf-8", "replace")
                names = (text_in(block, "id", at), text_in(block, "name", at))
                calls.append(requested_call(*names, told, at))
        return ModelReply(
            text=text,
            calls=tuple(calls),
            items=(Verbatim(b'{"role":"assistant","content":' + raw.dump() + b"}"),),
            stop=stop,
            refusal=refusal,
            wants=(stop,) if stop == _PAUSED else (),
            usage=self.usage(table(tree.get("usage"))),
        )

    def usage(self, told: Mapping[str, Any]) -> ModelUsage:
        """Return what a ``usage`` says, tokens of a cache counted as input."""
        return usage_of(told)

    def error_body(self, error: RequestError, request_id: str) -> bytes:
        """Return the error in Anthropic's shape."""
        kind = {**_ERROR_TYPES, 504: "timeout_error"}.get(error.status)
        if kind is None:
            kind = "invalid_request_error" if error.status < 500 else "api_error"  # HTTP
        message = f"{error.message} ({error.code})"
        told = {**error.details, "type": kind, "message": message}
        return encode({"type": "error", "error": told, "request_id": request_id})

    def error_event(self, error: RequestError, request_id: str, last: bytes) -> bytes:
        """Return the error as an event ``error``."""
        return b"event: error\ndata: " + self.error_body(error, request_id) + b"\n\n"

    def provider_error(self, status: int, message: str, request_id: str) -> dict[str, Any]:
        """Return the error in Anthropic's shape."""
        error = {"type": _ERROR_TYPES.get(status, "api_error"), "message": message}
        return {"type": "error", "error": error, "request_id": request_id}

    def overflow(self, told: ToldError) -> ToldError:
        """Return the error with the words that Claude Code compacts its history on."""
        message = told.message
        if _TOO_LONG not in message:
            message = f"{_TOO_LONG}: {message}"
        return replace(told, message=message, kind="invalid_request_error", code="")

    def translated_error(self, status: int, told: ToldError, request_id: str) -> dict[str, Any]:
        """Return the error with a type that this format has; its code is told in the message."""
        apart = told.code and told.code not in told.message
        message = f"{told.message} ({told.code})" if apart else told.message
        body = self.provider_error(status, message, request_id)
        # Clients act on the type, and other formats have one type for many statuses.
        kind = _ERROR_TYPES.get(status) or _OTHER_TYPES.get(status)
        if kind is None and status < 500:  # HTTP
            kind = "invalid_request_error"
        elif kind is None and told.kind in _SERVER_TYPES:
            kind = told.kind
        body["error"]["type"] = kind or "api_error"
        return body

    def provider_error_event(self, status: int, message: str, number: int) -> Event:
        """Return the error as an event ``error``."""
        return Event(self.provider_error(status, message, "req_scripted"), "error")

    def credential(self, key: str) -> tuple[str, str]:
        """Return the header of Anthropic's keys."""
        return "x-api-key", key


def _event(name: str, **fields: Any) -> Event:
    return Event({"type": name, **fields}, name)


def _block(part: AnswerPart, text: str) -> dict[str, Any]:
    if part.kind in _TEXTS:
        return {"type": "text", "text": text}
    if part.kind == "reasoning":
        return {"type": "thinking", "thinking": text, "signature": part.opaque}
    made = json.loads(text) if text else {}
    return {"type": "tool_use", "id": part.id, "name": part.name, "input": made}
