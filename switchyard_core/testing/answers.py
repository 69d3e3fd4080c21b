"""Routers that ask models: canned replies, what was asked, and what the router answered."""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable, Mapping, MutableSequence, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from switchyard_core.answering import (
    Announced,
    AnswerEvent,
    AskError,
    ModelCall,
    ModelReply,
    ModelUsage,
)
from switchyard_core.decision import Outgoing
from switchyard_core.declarations import WireFormat
from switchyard_core.engine.calling import Upstreams
from switchyard_core.request import Request
from switchyard_core.scripted import Player, Script, Scripted, Turn
from switchyard_core.scripted.script import Call as ScriptedCall
from switchyard_core.wire import format_of
from switchyard_core.wire.answers import AnswerWriter, Sections, answer_id, answer_writer

__all__ = [
    "Answered",
    "AskedCall",
    "CannedAnswers",
    "Questions",
    "complete_reply",
    "streamed_text",
    "whole_text",
]

#: A reply to play: a text that ends well, a whole reply, or the error of a model that fails.
CannedReply = str | ModelReply | AskError
#: Replies by target, or a function of target and call, which may be asynchronous.
CannedAnswers = (
    Mapping[str, CannedReply | Sequence[CannedReply]]
    | Callable[[str, ModelCall], CannedReply | Awaitable[CannedReply]]
)
#: When the answers of tests are made: 2023-11-14, in seconds since the epoch.
_CREATED_S = 1_700_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedCall:
    """A call that a router asked for."""

    target: str  # Name of the target
    call: ModelCall  # What it was asked, the same for every wire format
    outgoing: Outgoing  # What is sent for it, in the target's own wire format, without a credential
    #: What the router was told, `None` when the call failed or was cancelled
    reply: ModelReply | None = None


class Questions:
    """Keeps the calls that routers ask for and plays replies; ``missing`` is what a test forgot."""

    def __init__(
        self, upstreams: Upstreams, answers: CannedAnswers | None, sent: MutableSequence[Outgoing]
    ) -> None:
        self.calls: list[AskedCall] = []
        self.missing: AssertionError | None = None
        self._upstreams = upstreams
        self._answers = answers
        self._sent = sent
        self._played: dict[str, int] = {}

    async def ask(self, request: Request, name: str, call: ModelCall, route: str) -> ModelReply:
        """Return the reply to a call; the engine's :data:`.AskTarget`."""
        outgoing = self.outgoing(request, name, call, route)
        number = len(self.calls)
        self.calls.append(AskedCall(target=name, call=call, outgoing=outgoing))
        if self._answers is None:
            reply = await self._upstreams.ask(request, name, call, route)
        else:
            self._sent.append(outgoing)
            reply = complete_reply(await self._reply(self._answers, name, call), outgoing)
        self.calls[number] = replace(self.calls[number], reply=reply)
        return reply

    def outgoing(self, request: Request, name: str, call: ModelCall, route: str = "") -> Outgoing:
        """Return what is sent for a call, without a credential; nothing is asked."""
        return self._upstreams.question(request, name, call, route)

    async def _reply(self, answers: CannedAnswers, name: str, call: ModelCall) -> CannedReply:
        if callable(answers):
            found = answers(name, call)
            return await found if inspect.isawaitable(found) else found
        replies = answers.get(name, ())
        if isinstance(replies, CannedReply):
            return replies
        if not replies:
            targets = ", ".join(f"`{target}`" for target in answers) or "no target"
            self.missing = AssertionError(
                f"the router asks `{name}`, and the test has no reply for it: `answers` has "
                f"replies for {targets}"
            )
            raise self.missing
        number = self._played.get(name, 0)
        self._played[name] = number + 1
        return replies[min(number, len(replies) - 1)]


def complete_reply(reply: CannedReply, outgoing: Outgoing) -> ModelReply:
    """Return a reply completed with the items that the target's provider would have given it."""
    if isinstance(reply, AskError):
        raise reply
    if isinstance(reply, str):
        reply = ModelReply(text=reply)
    if reply.items and reply.stop:
        return reply
    calls = tuple(
        ScriptedCall(name=call.name, arguments=call.arguments, id=call.id) for call in reply.calls
    )
    turns = (Turn(text=reply.text, calls=calls),)
    player = Player(Script(version=1, scripts=(Scripted(turns=turns),)), lambda: 0.0)
    played = player.play(
        outgoing.method, outgoing.path, outgoing.headers, outgoing.body, outgoing.wire_format
    )
    read = format_of(outgoing.wire_format).read_reply(b"".join(played.chunks))
    return replace(reply, items=reply.items or read.items, stop=reply.stop or read.stop)


@dataclass(frozen=True, kw_only=True)
class Answered:
    """An answer, and the calls made for it; reading events in an illegal order is a ValueError."""

    model: str  # Model id of the route
    events: tuple[AnswerEvent, ...]  # What the router said, in order
    calls: tuple[AskedCall, ...] = ()  # What it asked, in the order in which the calls began

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
        return {name: fact for each in self._announced() for name, fact in each.facts.items()}

    @property
    def warnings(self) -> tuple[str, ...]:
        """Codes of its warnings."""
        return tuple(warning.code for each in self._announced() for warning in each.warnings)

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

    def _announced(self) -> list[Announced]:
        return [event for event in self.events if isinstance(event, Announced)]

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
