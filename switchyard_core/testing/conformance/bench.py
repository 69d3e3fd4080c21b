"""One route of a policy, whose router is driven by hand, and by the engine."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import fields
from functools import partial, update_wrapper
from itertools import count
from random import Random
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from switchyard_core.answering import AnswerEvent, Ask, AskError, ModelCall, ModelReply
from switchyard_core.clients import SideCall
from switchyard_core.decision import Decision, Failure, Outgoing
from switchyard_core.declarations import WIRE_FORMATS, WireFormat
from switchyard_core.engine.answering import checked_events
from switchyard_core.engine.side_calls import side_call_of
from switchyard_core.errors import (
    PluginError,
    PolicyError,
    RequestError,
    UpstreamError,
    with_place,
)
from switchyard_core.jsonio.tree import ObjectText, loads
from switchyard_core.request import Request
from switchyard_core.router import AnsweringRouter, RetryingRouter, RouteContext
from switchyard_core.testing.answers import complete_reply
from switchyard_core.testing.conformance import samples
from switchyard_core.testing.conformance.watching import Watch, watched
from switchyard_core.testing.harness import NOW, Harness
from switchyard_core.wire import format_of
from switchyard_core.world import World

if TYPE_CHECKING:
    import pytest

    from switchyard_core.testing.conformance.router import RouteSuite

__all__ = [
    "Bench",
    "Interview",
    "Outcome",
    "PerFormat",
    "Trial",
    "about",
    "describe",
    "each_trial",
    "named_like",
    "require",
    "with_bench",
]

#: What became of a request: where it goes, or why it is refused.
Outcome = Decision | RequestError
#: Requests that a router is tried with: those of its suite, the same with odd fields, with next to
#: nothing in them, with a thousand tool calls, and a client's calls beside its conversation.
Kind = Literal["usual", "odd", "empty", "huge", "side"]
_Function = TypeVar("_Function", bound=Callable[..., Any])
_Check = Callable[[Any, Any], Coroutine[Any, Any, None]]
_Test = Callable[[Any, WireFormat], None]
_DOWN = Failure(kind="status", status=503, code="overloaded", body=b"")


class PerFormat:
    """Tests that take a ``wire_format`` run once for each that their subject knows."""

    def wire_formats(self) -> Sequence[WireFormat]:
        """Return the wire formats of the tests; all unless a suite knows better."""
        return WIRE_FORMATS

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Run the tests once per wire format; pytest calls this."""
        if "wire_format" in metafunc.fixturenames:
            try:
                found = self.wire_formats()
            except (AssertionError, PolicyError, PluginError):
                found = WIRE_FORMATS[:1]  # the tests tell it better
            metafunc.parametrize("wire_format", found)


def require(condition: object, message: str) -> None:
    """Fail with a message unless a condition holds."""
    if not condition:
        raise AssertionError(message)


@contextmanager
def about(what: str) -> Iterator[None]:
    """End the message of a failure inside with what it is about."""
    try:
        yield
    except AssertionError as error:
        raise AssertionError(f"{error} ({what})") from error.__cause__


def named_like(check: Callable[..., Any], test: _Function) -> _Function:
    """Give a test the name and the docstring of the check that it runs, but its own arguments."""
    update_wrapper(test, check)
    del test.__wrapped__  # type: ignore[attr-defined]  # pytest would take the check's arguments
    return test


def with_bench(check: _Check) -> _Test:
    """Make a test of a check of a bench; it has its own event loop."""

    def test(self: Any, wire_format: WireFormat) -> None:
        asyncio.run(check(self, self.bench(wire_format)))

    return named_like(check, test)


def each_trial(*kinds: Kind) -> Callable[[_Check], _Test]:
    """Make a test of a check: it runs for every request, whose name ends a failure's message."""

    def decorate(check: _Check) -> _Test:
        async def run(self: Any, bench: Bench) -> None:
            for name, trial in bench.trials(*kinds).items():
                with about(name):
                    await check(self, trial)

        return with_bench(named_like(check, run))

    return decorate


def describe(outcome: Outcome) -> str:
    """Return everything of an outcome that a router decides, as text that can be compared."""
    if isinstance(outcome, RequestError):
        return f"refused with {outcome.code}: {outcome.message}"
    parts = [
        f"{field.name}={getattr(outcome, field.name)!r}"
        for field in fields(outcome)
        if field.name not in ("trace", "route", "identity")
    ]
    return f"Decision({', '.join(parts)})"


class Bench:
    """One route of a policy with its own engine; ``asked`` are the targets that ``route`` asked."""

    def __init__(
        self, suite: RouteSuite, harness: Harness, route: str, wire_format: WireFormat
    ) -> None:
        self.suite = suite
        self.harness = harness
        self.wire_format = wire_format
        self.runtime = harness.engine.runtimes[route]
        self.targets = self.runtime.route.targets
        self.numbers = count(1)
        self.asked: set[str] = set()

    def another(self) -> Bench:
        """Return the same route on a new engine."""
        return self.suite.bench(self.wire_format)

    def trials(self, *kinds: Kind) -> dict[str, Trial]:
        """Return a trial with a new request for each of some kinds, by name."""
        found: dict[str, Request] = {}
        for kind in kinds:
            # The usual and the odd ones are the suite's own.
            make = getattr(samples, f"{kind}_requests", self.suite.requests)
            found |= make(self.wire_format, self.runtime.route.id)
        if kinds == ("odd",):
            found = {name: samples.odd_request(request) for name, request in found.items()}
        return {name: Trial(self, request) for name, request in found.items()}

    @property
    def advice(self) -> str:
        """What is to be done about a target that the route does not declare."""
        declared = ", ".join(self.targets) or "none"
        return f"type such options as `TargetName`; declared here: {declared}"


class Trial:
    """One request to one route."""

    def __init__(self, bench: Bench, request: Request) -> None:
        self.bench = bench
        self.request = request

    def again(self) -> Trial:
        """Return the same with a request that has not been read yet."""
        request = self.request
        fresh = Request(
            wire_format=request.wire_format,
            body=request.body,
            headers=tuple(request.headers.items_),
            endpoint=request.endpoint,
            query=request.query,
            session_final=request.session_final,
        )
        return Trial(self.bench, fresh)

    def changes(self, before: Trial) -> str:
        """Return which parts of the request are not what they were, ``""`` for none."""
        request, body = self.request, before.request.body
        read = format_of(request.wire_format).read
        same = {
            "its body": request.body == body,
            "its headers": request.headers.items_ == before.request.headers.items_,
            "`request.fields`": request.fields.dump() == body,
            "`request.tree()`": request.tree() == loads(body),
            "`request.conversation`": request.conversation == read(ObjectText(body)),
        }
        return ", ".join(name for name, is_same in same.items() if not is_same)

    async def route(
        self, *, housekeeping: bool | None = None, watch: Watch | None = None
    ) -> Outcome:
        """Ask the router alone, with the same context each time; nothing is latched."""
        if housekeeping is None:
            marks = self.bench.harness.policy.housekeeping
            housekeeping = side_call_of(self.request, marks) is not None
        context = await self.context(self._ask, housekeeping=housekeeping)
        deciding = self.bench.runtime.router.route(self.request, context)
        decision: Outcome = await _refused_or(watched(deciding, watch))
        require(
            isinstance(decision, Decision | RequestError),
            f"the router returned {type(decision).__name__}: return a `Decision`",
        )
        return decision

    async def decision(self, *, housekeeping: bool | None = None) -> Decision | None:
        """Return what :meth:`route` does, ``None`` when the router refuses the request."""
        outcome = await self.route(housekeeping=housekeeping)
        return outcome if isinstance(outcome, Decision) else None

    async def next(self, failed: Decision, failure: Failure) -> Outcome | None:
        """Ask the router for another try, if it has one."""
        router = self.bench.runtime.router
        if not isinstance(router, RetryingRouter):
            return None
        context = await self.context(self._ask)
        again: Outcome | None = await _refused_or(
            router.next(self.request, failed, failure, context)
        )
        require(
            again is None or isinstance(again, Decision | RequestError),
            f"`next` returned {type(again).__name__}: return a `Decision` or `None`",
        )
        return again

    async def decide(self, *, dry_run: bool = False) -> Outcome:
        """Decide as the engine does, effects included, with the same randomness each time."""
        harness = self.bench.harness
        harness.random.seed(0)
        deciding = harness.engine.decide(self.request, dry_run=dry_run, ask=self._ask)
        outcome: Outcome = await _refused_or(deciding)
        return outcome

    async def sent(self) -> tuple[Decision, bytes] | None:
        """Return the decision and the outgoing body, in the caller's wire format.

        ``None`` when the request is refused, or translated for a target of another format.
        """
        decision = await self.decide(dry_run=True)
        if isinstance(decision, RequestError) or self.spoken(decision) != self.request.wire_format:
            return None
        return decision, self.rewritten(decision)

    def spoken(self, decision: Decision) -> WireFormat:
        """Return the wire format of the target of a decision."""
        return self.bench.harness.policy.targets[decision.target].wire_format

    def rewritten(self, decision: Decision) -> bytes:
        """Return what a decision makes of the body."""
        try:
            return self.bench.harness.engine.rewrite(self.request, decision).body
        except PluginError as error:
            raise AssertionError(str(error)) from error

    async def latches(self) -> tuple[int, Any]:
        """Return how many identities are latched, and the record of this request's."""
        runtime = self.bench.harness.engine.runtime_for(self.request)
        if runtime.store is None:
            return 0, None
        identity = runtime.sessions(self.request)[0]
        record = await runtime.store.get(identity) if identity is not None else None
        return await runtime.store.count(), record

    async def context(
        self, ask: Ask, *, housekeeping: bool = False, setting: int = 0
    ) -> RouteContext:
        """Return what the router is given; another setting is another clock and randomness."""
        self.bench.harness.engine.runtime_for(self.request)
        world = World(
            random=Random(setting),  # noqa: S311  # no secrets
            clock=lambda: NOW + 40_000_000.25 * setting,
            # Never the same twice on one bench: its plan store may keep what was made before.
            new_id=lambda prefix: f"{prefix}_{next(self.bench.numbers):024x}",
        )
        side_call = SideCall(kind="other", mark="bench") if housekeeping else None
        routed = self.bench.runtime.routed(self.request, side_call)
        return await self.bench.runtime.context(routed, ask, world)

    async def _ask(self, target: str, call: ModelCall) -> ModelReply:
        self.bench.asked.add(target)
        return self.bench.suite.reply(target, call)


async def _refused_or(deciding: Awaitable[Any]) -> Any:
    try:
        return await deciding
    except RequestError as error:
        return error
    except AssertionError:
        raise
    except PluginError as error:
        raise AssertionError(str(error)) from error
    except Exception as error:
        message = f"the router raised {with_place(error)}"
        raise AssertionError(f"{message}; it must decide, or refuse with a RequestError") from error


class Interview:
    """Asks an answering router for one answer, and answers its questions with the suite's replies.

    ``fail`` and ``hold`` are the numbers of a call that fails, or is never answered; another
    ``setting`` gives another clock and other randomness.
    """

    def __init__(
        self, trial: Trial, *, setting: int = 0, fail: int | None = None, hold: int | None = None
    ) -> None:
        self.events: list[AnswerEvent] = []
        self.asked: list[Outgoing] = []
        self.strangers: list[str] = []
        self.refusal: RequestError | UpstreamError | None = None
        self.open = 0
        self.held = asyncio.Event()
        #: For each event the steps that led to it: kinds of events, calls begun and answered.
        self.ways: list[tuple[str, ...]] = []
        self._steps: list[str] = []
        self._trial, self._bench = trial, trial.bench
        self._setting, self._fail, self._hold = setting, fail, hold
        self._missing: AssertionError | None = None
        runtime = trial.bench.runtime
        require(
            runtime.answers and isinstance(runtime.router, AnsweringRouter),
            f'`{runtime.route.type.name}` is not a route type of `kind="answers"`: its contract is '
            "`RouterConformance`",
        )

    @property
    def calls(self) -> list[tuple[str, bytes]]:
        """Target and outgoing body of each call, in order."""
        return [(outgoing.target, outgoing.body) for outgoing in self.asked]

    async def run(self, *, watch: Watch | None = None, stop: int | None = None) -> None:
        """Take the answer to its end, or close it after ``stop`` events."""
        try:
            await watched(self._take(stop), watch)
        except (RequestError, UpstreamError) as error:
            self.refusal = error
        except PluginError as error:
            raise self._missing or AssertionError(str(error)) from error
        if self._missing is not None:
            raise self._missing
        if isinstance(self.refusal, UpstreamError):
            require(
                not self.events,
                f"the router lets `{self.refusal.message}` end an answer that it has begun: catch "
                "`AskError`, say in the text what went wrong, and finish",
            )

    async def _take(self, stop: int | None) -> None:
        router, name = self._bench.runtime.router, self._bench.runtime.route.type.name
        assert isinstance(router, AnsweringRouter)  # noqa: S101  # see the constructor
        blame = partial(self._bench.harness.engine.registry.fault, "route_type", name)
        context = await self._trial.context(self._ask, setting=self._setting)
        async with aclosing(checked_events(router, self._trial.request, context, blame)) as events:
            async for event in events:
                self.events.append(event)
                self._steps.append(f"{type(event).__name__} {getattr(event, 'kind', '')}")
                self.ways.append(tuple(self._steps))
                if len(self.events) == stop:
                    return

    async def _ask(self, target: str, call: ModelCall) -> ModelReply:
        if target not in self._bench.targets:
            self.strangers.append(target)
            raise PluginError(f"asked the target `{target}`, which the route does not declare")
        outgoing = self._bench.harness.asked.outgoing(self._trial.request, target, call)
        number = len(self.asked)
        self.asked.append(outgoing)
        self.open += 1
        self._steps.append(f"asks {target} {call.role}")
        try:
            # A real call takes a while: others run meanwhile.
            await asyncio.sleep(0)
            if number == self._hold:
                self.held.set()
                await asyncio.Event().wait()
            if number == self._fail:
                raise AskError(f"asking `{target}` gave status 503", _DOWN)
            return complete_reply(self._bench.suite.reply(target, call), outgoing)
        except AssertionError as error:
            self._missing = error
            raise
        finally:
            self._steps.append("was answered")
            self.open -= 1
