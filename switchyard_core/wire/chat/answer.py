"""OpenAI Chat Completions: how its answers and errors are read and written.

Source: shapes of the public API reference; ``reasoning_content`` is the field that
OpenAI-compatible providers use for readable reasoning.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

from switchyard_core.answering import ModelReply, ModelUsage
from switchyard_core.errors import RequestError
from switchyard_core.jsonio.tree import ObjectText, encode
from switchyard_core.wire.answers import AnswerPart, Event, PartWriter
from switchyard_core.wire.chat.neutral import read_request, write_request
from switchyard_core.wire.chat.request import ChatRequests
from switchyard_core.wire.chat.told import ChatReader, openai_usage
from switchyard_core.wire.format import EventKind, Verbatim
from switchyard_core.wire.history import word
from switchyard_core.wire.neutral import Facts, NeutralRequest
from switchyard_core.wire.replies import (
    FILTERED,
    ShapeError,
    an_array,
    an_object,
    objects,
    requested_call,
    shown,
    table,
    text_in,
    texts_of,
)

__all__ = ["OpenAIChat", "openai_error", "openai_provider_error", "openai_usage"]

#: Keys of a message that no request needs, and some providers refuse, when they say nothing; an
#: empty ``tool_calls`` is refused by OpenAI itself.
_EMPTY = ("refusal", "audio", "function_call", "tool_calls")
#: Members that only OpenAI's answers have.
_SERVED = {"service_tier": "default", "system_fingerprint": "fp_scripted"}
#: Key of a delta that holds the text of a part.
_KEYS = {"text": "content", "reasoning": "reasoning_content", "refusal": "refusal"}


class ChatWriter(PartWriter):
    """Writes ``chat.completion`` objects: one message, texts joined."""

    id_prefix = "chatcmpl-"
    stop_words: ClassVar[Mapping[str, str]] = {
        "stop": "stop",
        "calls": "tool_calls",
        "length": "length",
        "filter": "content_filter",
        "refusal": "content_filter",
        "pause": "stop",
    }

    @classmethod
    def id_of(cls, key: str) -> str:
        """Return an id of 29 digits."""
        return f"{cls.id_prefix}{key[:29]}"

    def begin(self, usage: ModelUsage) -> Iterable[Event]:
        """Return the chunk that gives the role."""
        content = None if self.frame.only_calls else ""
        return [self._chunk({"role": "assistant", "content": content, "refusal": None})]

    def end(self, usage: ModelUsage, extension: Mapping[str, Any]) -> Iterator[Event]:
        """Yield the chunk with the reason to stop, the usage, and the end mark.

        OpenAI sends the usage in a chunk without a choice, which breaks many clients that read
        ``choices[0]``: a router's usage is in the last chunk with one.
        """
        told = {"usage": self._usage(usage)} if self.frame.include_usage else {}
        if self.frame.request is None:
            yield self._chunk({}, self.stop_word, {**told, **extension})
        else:
            yield self._chunk({}, self.stop_word, extension)
            if told:
                yield Event({**self._head("chat.completion.chunk"), "choices": [], **told})
        yield Event("[DONE]")

    def whole(self, usage: ModelUsage, extension: Mapping[str, Any]) -> dict[str, Any]:
        """Return the ``chat.completion``."""
        text, reasoning = self._joined("text"), self._joined("reasoning")
        content = text if text or self.frame.request is None else None
        refusal = self._joined("refusal") or None
        message: dict[str, Any] = {"role": "assistant", "content": content, "refusal": refusal}
        if reasoning:
            message["reasoning_content"] = reasoning
        calls = [
            _call(part, text)
            for part, text in zip(self.parts, self.texts, strict=True)
            if part.kind == "call"
        ]
        if calls:
            message["tool_calls"] = calls
        message["annotations"] = []
        reason = self.stop_word
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": reason}
        return {
            **self._head("chat.completion", {}),
            "choices": [choice],
            "usage": self._usage(usage),
            **self._served,
            **extension,
        }

    def _opened(self, index: int, part: AnswerPart) -> Iterable[Event]:
        if part.kind != "call":
            return []
        return [self._chunk({"tool_calls": [{"index": self._number(index), **_call(part, "")}]})]

    def _more(self, index: int, part: AnswerPart, text: str) -> Iterable[Event]:
        if part.kind == "call":
            said = {"custom": {"input": text}} if part.custom else {"function": {"arguments": text}}
            piece = {"index": self._number(index), **said}
            return [self._chunk({"tool_calls": [piece]})]
        return [self._chunk({_KEYS[part.kind]: text})]

    def _closed(self, index: int, part: AnswerPart, text: str) -> Iterable[Event]:
        return []

    def _number(self, index: int) -> int:
        return sum(part.kind == "call" for part in self.parts[:index])

    def _joined(self, kind: str) -> str:
        texts = zip(self.parts, self.texts, strict=True)
        return "".join(text for part, text in texts if part.kind == kind)

    def _chunk(
        self,
        delta: dict[str, Any],
        finish: str | None = None,
        more: Mapping[str, Any] | None = None,
    ) -> Event:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        # As the provider does it: every chunk has the key once it was asked for.
        usage = {"usage": None} if self.frame.include_usage else {}
        head = self._head("chat.completion.chunk")
        return Event({**head, "choices": [choice], **usage, **(more or {})})

    def _head(self, kind: str, served: Mapping[str, Any] | None = None) -> dict[str, Any]:
        frame = self.frame
        head = {"id": frame.id, "object": kind, "created": frame.created_s, "model": frame.model}
        return {**head, **(self._served if served is None else served)}

    @property
    def _served(self) -> Mapping[str, Any]:
        return _SERVED if self.frame.invents else {}

    def _usage(self, usage: ModelUsage) -> dict[str, Any]:
        cached: dict[str, Any] = {"cached_tokens": usage.cached_tokens}
        counts = {
            "prompt_tokens": usage.input_tokens,
            "completion_tokens": usage.output_tokens,
            "total_tokens": usage.input_tokens + usage.output_tokens,
            "prompt_tokens_details": cached,
        }
        if self.frame.request is None:
            return counts
        if not self.frame.invents:
            if usage.cache_write_tokens:
                cached["cache_write_tokens"] = usage.cache_write_tokens
            spent = {"reasoning_tokens": usage.reasoning_tokens}
            return {**counts, "completion_tokens_details": spent}
        cached["audio_tokens"] = 0
        spent = {
            "reasoning_tokens": usage.reasoning_tokens,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        }
        return {**counts, "completion_tokens_details": spent}


class OpenAIChat(ChatRequests):
    """Chat Completions."""

    writer = ChatWriter
    reader = ChatReader
    end_mark = re.compile(rb"\ndata:\s*\[DONE\]|\"finish_reason\":\s*\"")
    error_mark = re.compile(rb"\ndata:\s*\{\s*\"error\"")

    said_key = "choices"

    def neutral(self, fields: ObjectText) -> NeutralRequest:
        """Return what a request says."""
        return read_request(fields)

    def write(self, request: NeutralRequest, facts: Facts) -> bytes:
        """Return the body that says the same."""
        return write_request(request, facts, self)

    def event_kind(self, name: str, tree: Mapping[str, Any]) -> EventKind:
        """Return the kind of a chunk; one that only tells the role is not content yet."""
        told = tree.get("choices")
        choices = [table(choice) for choice in told] if isinstance(told, list) else []
        for choice in choices:
            _refuse_failed(choice)
            said = table(choice.get("delta", {"text": True}))
            if any(value for key, value in said.items() if key != "role"):
                return "content"
        return "end" if any(choice.get("finish_reason") for choice in choices) else "head"

    def check_answer(self, tree: Mapping[str, Any]) -> None:
        """Refuse an answer without a choice, or whose first choice failed."""
        _refuse_failed(_first_choice(tree)[1])

    def says_nothing(self, tree: Mapping[str, Any]) -> bool:
        """Return whether the first choice has neither text nor calls."""
        message = table(_first_choice(tree)[1].get("message"))
        return not any(value for key, value in message.items() if key != "role")

    def read_answer(self, tree: Mapping[str, Any], fields: ObjectText) -> ModelReply:
        """Return what the first choice says."""
        place, choice = _first_choice(tree)
        _refuse_failed(choice)
        stop = word(choice.get("finish_reason"))
        message, place = an_object(choice, "message", place), f"{place}.message"
        content = message.get("content")
        if isinstance(content, list):
            text = texts_of(objects(content, f"{place}.content"), "text", "text")
        else:
            text = text_in(message, "content", place) if content else ""
        called = objects(message.get("tool_calls") or None, f"{place}.tool_calls")
        refusal = word(message.get("refusal"))
        if stop == "content_filter":
            refusal = refusal or text or FILTERED
        legacy = ["function_call"] if message.get("function_call") else []
        others = [call.get("type") for _, call in called if not _is_function(call)]
        return ModelReply(
            text=text,
            calls=tuple(_read_call(call, at) for at, call in called if _is_function(call)),
            items=(_item(fields, message),),
            stop=stop,
            refusal=refusal,
            wants=shown([*legacy, *others]),
            usage=self.usage(table(tree.get("usage"))),
        )

    def usage(self, told: Mapping[str, Any]) -> ModelUsage:
        """Return what a ``usage`` says."""
        return openai_usage(told)

    def error_body(self, error: RequestError, request_id: str) -> bytes:
        """Return the error in OpenAI's shape."""
        return openai_error(error)

    def error_event(self, error: RequestError, request_id: str, last: bytes) -> bytes:
        """Return the error as an event without a name."""
        return b"data: " + openai_error(error) + b"\n\n"

    def provider_error(self, status: int, message: str, request_id: str) -> dict[str, Any]:
        """Return the error in OpenAI's shape."""
        return openai_provider_error(status, message)

    def provider_error_event(self, status: int, message: str, number: int) -> Event:
        """Return the error as an event without a name."""
        return Event(openai_provider_error(status, message))


def _first_choice(tree: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    choices = objects(an_array(tree, "choices"), "choices")
    if not choices:
        msg = "`choices` is empty"
        raise ShapeError(msg)
    return choices[0]


def _refuse_failed(choice: Mapping[str, Any]) -> None:
    if choice.get("error") or choice.get("finish_reason") == "error":
        msg = "the provider reports an error in the choice"
        raise ShapeError(msg)


def openai_error(error: RequestError) -> bytes:
    """Return an error as ``{"error": {"message", "type", "param", "code", …details}}``."""
    kind = "invalid_request_error" if error.status < 500 else "api_error"  # HTTP
    told = {"message": error.message, "type": kind, "param": error.param, "code": error.code}
    return encode({"error": {**error.details, **told}})


def openai_provider_error(status: int, message: str) -> dict[str, Any]:
    """Return an error as OpenAI itself writes it."""
    kind, code = "invalid_request_error", None
    if status == 429:  # HTTP
        kind, code = "rate_limit_error", "rate_limit_exceeded"
    elif status >= 500:  # HTTP
        kind = "server_error"
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def _call(part: AnswerPart, text: str) -> dict[str, Any]:
    if part.custom:
        return {"id": part.id, "type": "custom", "custom": {"name": part.name, "input": text}}
    function = {"name": part.name, "arguments": text}
    signed = {"extra_content": {"google": {"thought_signature": part.opaque}}}
    return {"id": part.id, "type": "function", "function": function} | (
        signed if part.opaque else {}
    )


def _is_function(call: Mapping[str, Any]) -> bool:
    # Some providers leave it unsaid.
    return call.get("type") == "function" or not call.get("type")


def _read_call(call: Mapping[str, Any], place: str) -> Any:
    function, at = an_object(call, "function", place), f"{place}.function"
    name = text_in(function, "name", at)
    return requested_call(text_in(call, "id", place), name, function.get("arguments"), at)


def _item(fields: ObjectText, message: Mapping[str, Any]) -> Verbatim:
    """Return the message as a request may hold it: with all keys but ``annotations``."""
    choices = fields.array("choices")
    choice = None if choices is None else choices.object(0)
    item = None if choice is None else choice.object("message")
    if item is None:
        msg = "`choices[0].message` is not an object"
        raise ShapeError(msg)
    item.delete("annotations")
    for key in _EMPTY:
        if key in message and not message[key]:
            item.delete(key)
    if not message.get("role"):
        item.set("role", b'"assistant"')
    return Verbatim(item.dump())
