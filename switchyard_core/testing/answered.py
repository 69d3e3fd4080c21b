"""What an answering router said to a request, as it is and as any caller would read it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from switchyard_core.answers import Announced, AnswerEvent
from switchyard_core.asking import ModelUsage
from switchyard_core.declarations import WireFormat
from switchyard_core.testing.canned import AskedCall
from switchyard_core.wire import format_of
from switchyard_core.wire.answers import AnswerWriter, Sections, answer_id, answer_writer

__all__ = ["Answered", "streamed_text", "whole_text"]

#: When the answers of tests are made: 2023-11-14, in seconds since the epoch.
_CREATED_S = 1_700_000_000


@dataclass(frozen=True, kw_only=True)
class Answered:
    """An answer, and the calls that were made for it.

    Args:
        model: Model id of the route.
        events: What the router said, in order.
        calls: What it asked, in the order in which the calls began.

    Raises:
        ValueError: From everything that reads the events, when their order is illegal.
    """

    model: str
    events: tuple[AnswerEvent, ...]
    calls: tuple[AskedCall, ...]

    @cached_property
    def _sections(self) -> Sections:
        sections = Sections()
        for event in self.events:
            sections.take(event)
        return sections

    @property
    def texts(self) -> tuple[str, ...]:
        """Text of each section that says something, with the blank line at its end."""
        return tuple(self._sections.texts)

    @property
    def text(self) -> str:
        """All of the text, as the SDKs' helpers join it."""
        return "".join(self.texts)

    @property
    def extension(self) -> Mapping[str, Any]:
        """The answer's ``switchyard`` object, empty without one."""
        found: Mapping[str, Any] = self._sections.extension or {}
        return found

    @property
    def status(self) -> str:
        """The word with which it finished."""
        return self._sections.status or ""

    @property
    def usage(self) -> ModelUsage:
        """The tokens that the answer states."""
        return self._sections.usage

    @property
    def facts(self) -> Mapping[str, str]:
        """What the answer's headers say, without ``x-switchyard-``."""
        announced = [event for event in self.events if isinstance(event, Announced)]
        return {name: value for event in announced for name, value in event.facts.items()}

    @property
    def warnings(self) -> tuple[str, ...]:
        """Codes of its warnings."""
        announced = [event for event in self.events if isinstance(event, Announced)]
        return tuple(warning.code for event in announced for warning in event.warnings)

    @property
    def bodies(self) -> tuple[bytes, ...]:
        """The outgoing body of each call."""
        return tuple(asked.outgoing.body for asked in self.calls)

    def asked(self, target: str) -> tuple[AskedCall, ...]:
        """Return the calls to one target, in order."""
        return tuple(asked for asked in self.calls if asked.target == target)

    def whole(self, wire_format: WireFormat) -> bytes:
        """Return the answer as a whole body, the same in every run: id and time are fixed."""
        writer = self._writer(wire_format)
        for event in self.events:
            writer.note(event)
        return writer.whole()

    def body(self, wire_format: WireFormat) -> dict[str, Any]:
        """Return the whole body as a tree."""
        tree: dict[str, Any] = json.loads(self.whole(wire_format))
        return tree

    def stream(self, wire_format: WireFormat) -> bytes:
        """Return the answer as the bytes of a stream, without comments."""
        writer = self._writer(wire_format)
        pieces = [writer.begin(), *(writer.event(event) for event in self.events), writer.end()]
        return b"".join(pieces)

    def _writer(self, wire_format: WireFormat) -> AnswerWriter:
        return answer_writer(
            format_of(wire_format),
            model=self.model,
            answer_id=answer_id(format_of(wire_format), "{}_test".format),
            created_s=_CREATED_S,
            include_usage=True,
        )


def whole_text(wire_format: WireFormat, body: bytes) -> str:
    """Return the text that a client reads from a whole answer."""
    tree = json.loads(body)
    if wire_format == "openai_chat":
        return str(tree["choices"][0]["message"]["content"] or "")
    parts: Sequence[Any] = tree.get("content") or ()
    if wire_format == "openai_responses":
        parts = [part for item in tree["output"] for part in item["content"]]
    return "".join(part["text"] for part in parts)


def streamed_text(wire_format: WireFormat, stream: bytes) -> str:
    """Return the text that a client reads from a stream."""
    lines = [line for line in stream.decode("utf-8").split("\n") if line.startswith("data:")]
    data = [line.removeprefix("data:").strip() for line in lines]
    events = [json.loads(text) for text in data if text != "[DONE]"]
    if wire_format == "openai_chat":
        choices = [choice for event in events for choice in event["choices"]]
        return "".join(choice["delta"].get("content") or "" for choice in choices)
    if wire_format == "openai_responses":
        return "".join(e["delta"] for e in events if e["type"] == "response.output_text.delta")
    return "".join(e["delta"]["text"] for e in events if e["type"] == "content_block_delta")
