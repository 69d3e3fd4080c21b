"""What a route type implements, and what it is given.

A router reads the request and its context and returns a :class:`Decision`. It has no side
effect: it must not change the request, must be deterministic for a given context, must survive
an empty and a huge history, and chooses only targets that its policy declares.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from random import Random
from typing import Literal, Protocol, runtime_checkable

from switchyard_core.answering import AnswerEvent, Ask, ModelCall, ModelReply, WouldAsk
from switchyard_core.decision import Decision, Failure, LatchRecord
from switchyard_core.declarations import WireFormat
from switchyard_core.identity import Identity
from switchyard_core.mutation import MutationRules, Verdict
from switchyard_core.pricing import Price
from switchyard_core.request import Request
from switchyard_core.stores import PlanStore
from switchyard_core.tools import Toolbox
from switchyard_core.world import fresh_id

__all__ = [
    "AnsweringRouter",
    "FirstMutation",
    "Mutations",
    "RouteContext",
    "Router",
    "SessionView",
    "TargetView",
    "estimate_tokens",
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
        ...


@runtime_checkable
class RetryingRouter(Router, Protocol):
    """A router that may decide a second time, after a failure."""

    async def next(
        self, request: Request, failed: Decision, failure: Failure, context: RouteContext
    ) -> Decision | None:
        """Return the next try, ``None`` to give the failure to the client."""
        ...


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
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetView:
    """What a router may know of a target.

    Args:
        name: Its name in the policy.
        id: The provider's model id.
        wire_format: Wire format that its provider speaks.
        origin: Equal for targets behind the same address with the same key: only then can
            one read the other's opaque reasoning.
        context_window: Tokens, ``None`` when it is not declared.
        on_overflow: What to do with a request that does not fit.
        price: What it costs, ``None`` when the policy does not say.
        structured_output: How it is made to answer in JSON.
    """

    name: str
    id: str
    wire_format: WireFormat
    origin: object
    context_window: int | None = None
    on_overflow: Literal["send", "stay", "reject"] = "send"
    price: Price | None = None
    structured_output: Literal["json_schema", "forced_tool", "prompt"] = "json_schema"

    def fits(self, request: Request) -> bool:
        """Return whether a request's estimated size is within the declared window."""
        return self.context_window is None or estimate_tokens(request) <= self.context_window


def estimate_tokens(request: Request) -> int:
    """Return a request's size in tokens, estimated at four bytes of JSON each, rounded up."""
    return -(-len(request.body) // BYTES_PER_TOKEN)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionView:
    """Whom a request belongs to and what is remembered of them; read only.

    Args:
        identity: ``None`` when the request does not say.
        record: The latch record, ``None`` when the identity is not latched.
        final: Whether the request is marked as the session's last.
    """

    identity: Identity | None = None
    record: LatchRecord | None = None
    final: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstMutation:
    """The oldest call with one of some labels.

    Args:
        number: Its number among all calls of the history, from 0.
        verdict: Label, rule and place.
    """

    number: int
    verdict: Verdict


class Mutations:
    """The verdicts of the route's mutation rules on one request, made as far as they are read."""

    def __init__(self, request: Request, rules: MutationRules) -> None:
        self._request = request
        self._rules = rules
        self._labelled: list[Verdict] = []
        self._rest: Iterator[Verdict] | None = None

    def _more(self) -> Iterator[Verdict]:
        """Yield the verdicts that were not made yet, and keep them."""
        if self._rest is None:
            request = self._request
            self._rest = self._rules.iterate(
                request.conversation, body=request.tree, wire_format=request.wire_format
            )
        for verdict in self._rest:
            self._labelled.append(verdict)
            yield verdict

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """One verdict per tool call of the history, oldest first."""
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
        """Return the oldest call whose label is among some, ``None`` without one.

        Calls behind it are not labelled: the first one decides.
        """
        known = list(self._labelled)
        for number, verdict in enumerate(chain(known, self._more())):
            if verdict.label in labels:
                return FirstMutation(number=number, verdict=verdict)
        return None


async def _ask_nobody(target: str, call: ModelCall) -> ModelReply:
    raise WouldAsk(target, call)


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteContext:
    """Everything besides the request that a decision may depend on.

    Args:
        route: Name of the route.
        targets: The policy's targets, by name.
        session: Identity and latch record.
        mutations: Verdicts of the route's rules.
        housekeeping: Whether the request is a client's side call: a title, a compaction, a
            token count.
        random: The only source of randomness; tests seed it.
        clock: Seconds since the epoch; tests inject it.
        ask: ``await context.ask(target, call)`` asks a target that the route declares and
            returns its :class:`~switchyard_core.ModelReply`; it raises
            :class:`~switchyard_core.AskError` when there is no usable answer. An explanation
            ends where a router asks.
        tools: The tools that the route lists.
        plans: The route's plan store, ``None`` when its options name none.
        new_id: Makes an id that cannot be guessed, ``<prefix>_<24 hexadecimal digits>``.
    """

    route: str
    targets: Mapping[str, TargetView]
    session: SessionView
    mutations: Mutations
    housekeeping: bool = False
    random: Random = field(default_factory=Random)
    clock: Callable[[], float] = lambda: 0.0
    ask: Ask = _ask_nobody
    tools: Toolbox = field(default_factory=Toolbox)
    plans: PlanStore | None = None
    new_id: Callable[[str], str] = fresh_id
