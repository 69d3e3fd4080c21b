"""What a route type implements, and its input.

A router reads the request and its context and returns a :class:`Decision`. It has no side effect,
must not change the request, must be deterministic for a given context, must survive an empty and a
huge history, and chooses only targets that its policy declares.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import chain
from random import Random
from typing import Any, Literal, Protocol, runtime_checkable

from pydantic import BaseModel, ConfigDict, Field

from switchyard_core.answering import AnswerEvent, Ask, ModelCall, ModelReply, WouldAsk
from switchyard_core.clients import SideCall
from switchyard_core.decision import Decision, Failure, LatchRecord, Rewrite
from switchyard_core.declarations import WireFormat
from switchyard_core.identity import Identity
from switchyard_core.models import Profile
from switchyard_core.mutation import MutationRules, Root, TextHistory, Verdict
from switchyard_core.request import Request
from switchyard_core.stores import PlanStore
from switchyard_core.tools import Toolbox
from switchyard_core.world import fresh_id

__all__ = [
    "AnsweringRouter",
    "FirstMutation",
    "Mutations",
    "Price",
    "RouteContext",
    "Router",
    "SessionView",
    "TargetView",
    "estimate_tokens",
    "handoff_rewrites",
    "is_foreign",
]

#: Bytes of JSON that are counted as one token when a request is measured against a window.
BYTES_PER_TOKEN = 4


@runtime_checkable
class Router(Protocol):
    """Decides where each request of one route goes.

    A router may also have ``async def next(self, request, failed, failure, context)``, which
    returns a second :class:`Decision` or ``None``. It is called when a call failed before any
    byte reached the client; the new decision starts from the caller's original body again.
    """

    async def route(self, request: Request, context: RouteContext) -> Decision:
        """Return the decision for one request."""


@runtime_checkable
class RetryingRouter(Router, Protocol):
    """A router that may decide a second time, after a failure."""

    async def next(
        self, request: Request, failed: Decision, failure: Failure, context: RouteContext
    ) -> Decision | None:
        """Return the next try, ``None`` to give the failure to the client."""


@runtime_checkable
class AnsweringRouter(Router, Protocol):
    """A router of kind ``answers``: it asks models itself and writes the answer.

    Its ``route`` is asked first and must not ask anybody: it says, for the log and for
    explanations, which target is asked first and why.
    """

    def answer(self, request: Request, context: RouteContext) -> AsyncIterator[AnswerEvent]:
        """Yield the answer's events; an asynchronous generator.

        Raises:
            RequestError: The request is refused; only before the first event.
        """


class Price(BaseModel):
    """``[prices."<target id>"]``: US dollars per million tokens, with the date of the prices.

    Args:
        as_of: Day of the prices.
        input: Fresh input.
        output: Output.
        cached_input: Input read from a cache.
        cache_write: Input written to a cache.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    as_of: date
    input: float = Field(ge=0, allow_inf_nan=False)
    output: float = Field(ge=0, allow_inf_nan=False)
    cached_input: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    cache_write: float | None = Field(default=None, ge=0, allow_inf_nan=False)


class TargetView(Protocol):
    """What a router may know of a target; read only."""

    @property
    def name(self) -> str:
        """Its name in the policy."""

    @property
    def id(self) -> str:
        """The provider's model id."""

    @property
    def wire_format(self) -> WireFormat:
        """Wire format that its provider speaks."""

    @property
    def origin(self) -> object:
        """Equal for targets behind the same address with the same key.

        Only then can one read the other's opaque reasoning.
        """

    @property
    def accepts(self) -> Profile:
        """What is known of what the model accepts."""

    @property
    def context_window(self) -> int | None:
        """Tokens, ``None`` when it is not declared."""

    @property
    def on_overflow(self) -> Literal["send", "stay", "reject"]:
        """What to do with a request that does not fit."""

    @property
    def price(self) -> Price | None:
        """What it costs, ``None`` when the policy does not say."""

    @property
    def structured_output(self) -> Literal["json_schema", "forced_tool", "prompt"]:
        """How it is made to answer in JSON."""

    def fits(self, request: Request) -> bool:
        """Return whether a request's estimated size is within the declared window."""


def estimate_tokens(request: Request) -> int:
    """Return a request's size in tokens, estimated at four bytes of JSON each, rounded up."""
    return -(-len(request.body) // BYTES_PER_TOKEN)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionView:
    """Whom a request belongs to and what is remembered of them; read only.

    Args:
        record: The latch record, ``None`` when the identity is not latched.
        final: Whether the request is marked as the session's last.
    """

    identity: Identity | None = None
    record: LatchRecord | None = None
    final: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstMutation:
    """The oldest call, or edit in a text, with one of some labels.

    Args:
        number: Counts all calls from 0; ``None`` for an edit in a text.
    """

    number: int | None
    verdict: Verdict

    @property
    def through(self) -> Mapping[str, int]:
        """Its place for :func:`handoff_rewrites`: everything up to its turn is the source's."""
        if self.number is None:
            return {"through_message": self.verdict.message}
        return {"through_call": self.number}


class Mutations:
    """The verdicts of the route's mutation rules on one request, made as far as they are read."""

    def __init__(self, request: Request, rules: MutationRules) -> None:
        self._request = request
        self._rules = rules
        self._labelled: list[Verdict] = []
        self._rest: Iterator[Verdict] | None = None

    def _more(self) -> Iterator[Verdict]:
        if self._rest is None:
            request = self._request
            if not (request.conversation.calls or self._rules.reads_text):
                self._rest = iter(())
                return
            self._rest = self._rules.iterate(
                self._history(), body=request.tree, wire_format=request.wire_format
            )
        for verdict in self._rest:
            self._labelled.append(verdict)
            yield verdict

    def _history(self) -> TextHistory:
        request = self._request
        return TextHistory(
            conversation=request.conversation,
            instructions=lambda: request.instructions,
            instructions_source=request.instructions_source,
            key=request.history_key,
        )

    @property
    def workspace(self) -> tuple[Root, ...]:
        """Where the workspace is, as the policy and the client's prompt say."""
        return self._rules.roots(self._history())

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """One verdict per tool call of the history and per edit in a text, oldest first."""
        for _ in self._more():
            pass
        return tuple(self._labelled)

    @property
    def labelled(self) -> tuple[Verdict, ...]:
        """The verdicts that somebody asked for so far, oldest first."""
        return tuple(self._labelled)

    @property
    def scanned(self) -> bool:
        """Whether anybody asked for a verdict."""
        return self._rest is not None

    def first(self, labels: Collection[str]) -> FirstMutation | None:
        """Return the oldest call or edit whose label is among some, ``None`` without one.

        What is behind it is not labelled: the first one decides.
        """
        calls = 0
        for verdict in chain(tuple(self._labelled), self._more()):
            is_call = verdict.offset is None
            if verdict.label in labels:
                return FirstMutation(number=calls if is_call else None, verdict=verdict)
            calls += is_call
        return None


async def _ask_nobody(target: str, call: ModelCall) -> ModelReply:
    raise WouldAsk(target, call)


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteContext:
    """Everything besides the request that a decision may depend on.

    Args:
        targets: The policy's targets, by name.
        session: Identity and latch record.
        mutations: Verdicts of the route's rules.
        side_call: What is known of a client's side call (a title, a compaction, a token count),
            such as its ``kind``; ``None`` for a turn.
        random: The only source of randomness; tests seed it.
        clock: Seconds since the epoch; tests inject it.
        ask: ``await context.ask(target, call)`` asks a target that the route declares and
            returns its :class:`~switchyard_core.answering.ModelReply`; it raises
            ``AskError`` when no usable answer comes. An explanation
            ends where a router asks.
        tools: The tools that the route lists.
        plans: The route's plan store, ``None`` when its options name none.
        new_id: Makes an id that cannot be guessed, ``<prefix>_<24 hexadecimal digits>``.
    """

    route: str
    targets: Mapping[str, TargetView]
    session: SessionView
    mutations: Mutations
    side_call: SideCall | None = None
    random: Random = field(default_factory=Random)
    clock: Callable[[], float] = lambda: 0.0
    ask: Ask = _ask_nobody
    tools: Toolbox = field(default_factory=Toolbox)
    plans: PlanStore | None = None
    new_id: Callable[[str], str] = fresh_id

    @property
    def housekeeping(self) -> bool:
        """Whether the request is a client's side call."""
        return self.side_call is not None


def is_foreign(source: TargetView, target: TargetView) -> bool:
    """Return whether a target cannot read what only the provider of another one can."""
    return source.origin != target.origin or source.wire_format != target.wire_format


def _refuses(source: TargetView, target: TargetView) -> bool:
    """Return whether a target of the same origin refuses the thinking that another one made.

    It does where it reads no other model's, and where it can read it but checks its prefix.
    """
    accepts, same = target.accepts, source.id == target.id
    reads = same or accepts.reads_from(source.id)
    return accepts.prefix_bound if reads else accepts.reasoning.foreign == "refused"


def handoff_rewrites(  # noqa: PLR0913  # all that a handoff may have to know
    *,
    source: TargetView,
    target: TargetView,
    through_call: int | None = None,
    through_message: int | None = None,
    opaque: Literal["auto", "keep", "drop"] = "auto",
    spans: Sequence[tuple[int, int]] = (),
    as_text_max_chars: int | None = None,
    drop_continuation: bool = False,
    lose_context: bool = False,
) -> tuple[Rewrite, ...]:
    """Return the rewrites for a history that ``source`` began and ``target`` continues.

    In the same origin nothing is changed but what is asked for, and thinking that the target can
    read but that is bound to another prefix. At another origin everything that only ``source``'s
    provider can read goes, and with it whatever the next provider would then refuse.

    Args:
        source: The target that made the first part of the history.
        target: The target that gets the request.
        through_call: Number of the last call of ``source``, among all calls of the history;
            ``None`` when the history holds nothing of it any more.
        through_message: In place of ``through_call``: index of the last message that may be of
            ``source``; every assistant message up to there counts as its.
        opaque: What happens to opaque reasoning; ``auto`` drops it at another origin, and where
            the target refuses it as made behind another prefix.
        spans: First and last index of further messages that ``source`` made.
        as_text_max_chars: Turns visible reasoning into text of at most so many characters;
            ``None`` leaves it.
        drop_continuation: Whether a continuation id names a response of ``source`` and the
            history is all here, so that the id can go at another origin.
        lose_context: Whether compactions, files and references to items of ``source``'s provider
            are removed at another origin, too; they are lost for the target then.
    """
    foreign = is_foreign(source, target)
    drop = opaque == "drop" or (opaque == "auto" and (foreign or _refuses(source, target)))
    rewrites: list[Rewrite] = []

    def add(name: str, **parameters: Any) -> None:
        rewrites.append(Rewrite(name=name, parameters=parameters))

    told = (through_call, through_message, tuple(spans) or None)
    names = ("through_call", "through_message", "spans")
    place = {name: given for name, given in zip(names, told, strict=True) if given is not None}
    if place:
        if as_text_max_chars is not None:
            add("reasoning_as_text", **place, max_chars=as_text_max_chars)
        if drop:
            add("drop_opaque_reasoning", **place)
        if foreign:
            add("drop_origin_bound", **place, context=lose_context)
    if foreign or rewrites:
        when = "always" if foreign else "dropped"
        add(
            "drop_reasoning_companions",
            when=when,
            drop_continuation=drop_continuation and foreign,
        )
        for name in ("remap_tool_ids", "repair_tool_pairs", "drop_empty_content"):
            add(name, when=when)
        add("limit_cache_marks", when=when)
    return tuple(rewrites)
