"""One answer of a router, driven by hand: what it says, what it asks, and what is left running."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator, Mapping
from functools import partial
from random import Random

from switchyard_core.answering import AnswerEvent, AskError, ModelCall, ModelReply
from switchyard_core.decision import Failure
from switchyard_core.engine.answering import checked_events
from switchyard_core.errors import PluginError, RequestError, UpstreamError
from switchyard_core.request import Request
from switchyard_core.router import AnsweringRouter, RouteContext
from switchyard_core.testing.canned import complete_reply
from switchyard_core.testing.conformance.bench import Bench, Trial, require
from switchyard_core.testing.conformance.samples import empty_requests
from switchyard_core.testing.conformance.watching import Watch, watched
from switchyard_core.testing.harness import NOW
from switchyard_core.upstream.base import Outgoing
from switchyard_core.world import World

__all__ = ["Interview", "answering_bench", "every_request"]

_DOWN = Failure(kind="status", status=503, code="overloaded", body=b"")


def answering_bench(bench: Bench) -> Bench:
    """Return a bench whose router answers by itself.

    Raises:
        AssertionError: It does not.
    """
    kind = bench.runtime.route.type.name
    require(
        bench.runtime.answers and isinstance(bench.runtime.router, AnsweringRouter),
        f'`{kind}` is no route type of `kind="answers"`: its contract is `RouterConformance`',
    )
    return bench


def every_request(trial: Trial, bench: Bench) -> Mapping[str, Request]:
    """Return new requests, by name: the suite's, and some with next to nothing in them."""
    model = bench.runtime.route.id
    return {**trial.requests(model), **empty_requests(trial.wire_format, model)}


class Interview:
    """Asks a router for one answer, and answers its questions with the suite's replies.

    Args:
        bench: The route.
        request: The request.
        what: What it is, for messages.
        setting: Another number gives another clock and other randomness; ids are new ones anyway.
        fail: Number of the call, from 0, that fails as if the provider were overloaded.
        hold: Number of the call that is never answered.

    Attributes:
        events: What the router said.
        asked: What was sent for its calls, in order; nothing for undeclared targets.
        strangers: Undeclared targets that it asked.
        refusal: Why it refused, or which error of a model it let through.
        open: Calls that have begun and not ended.
        held: Set when the call to hold has begun.
    """

    def __init__(
        self,
        bench: Bench,
        request: Request,
        *,
        what: str,
        setting: int = 0,
        fail: int | None = None,
        hold: int | None = None,
    ) -> None:
        self.events: list[AnswerEvent] = []
        self.asked: list[Outgoing] = []
        self.strangers: list[str] = []
        self.refusal: RequestError | UpstreamError | None = None
        self.open = 0
        self.held = asyncio.Event()
        self._bench = answering_bench(bench)
        self._request = request
        self._what = what
        self._setting = setting
        self._fail = fail
        self._hold = hold
        self._missing: AssertionError | None = None

    @property
    def calls(self) -> list[tuple[str, bytes]]:
        """Target and outgoing body of each call, in order."""
        return [(outgoing.target, outgoing.body) for outgoing in self.asked]

    async def run(self, *, watch: Watch | None = None, stop: int | None = None) -> None:
        """Take the answer to its end.

        Args:
            watch: Watches the router's own code.
            stop: How many events are taken before the answer is closed, from 1.

        Raises:
            AssertionError: The router broke its contract.
        """
        taking = self._take(stop)
        try:
            await (watched(taking, watch) if watch is not None else taking)
        except (RequestError, UpstreamError) as error:
            self.refusal = error
        except PluginError as error:
            raise self._missing or AssertionError(f"{error}, for {self._what}") from error
        if self._missing is not None:
            raise self._missing
        if isinstance(self.refusal, UpstreamError):
            require(
                not self.events,
                f"the router lets `{self.refusal.message}` end an answer that it has begun, for "
                f"{self._what}: catch `AskError`, say in the text what went wrong, and finish",
            )

    async def _take(self, stop: int | None) -> None:
        bench, router = self._bench, self._bench.runtime.router
        if not isinstance(router, AnsweringRouter):
            raise TypeError
        name = bench.runtime.route.type.name
        blame = partial(bench.harness.engine.registry.fault, "route_type", name)
        events = checked_events(router, self._request, await self._context(), blame)
        async with contextlib.aclosing(events):
            async for event in events:
                self.events.append(event)
                if len(self.events) == stop:
                    return

    async def _context(self) -> RouteContext:
        bench, setting = self._bench, self._setting
        bench.harness.engine.runtime_for(self._request)
        # Never the same twice on one bench: its plan store may keep what was made before.
        numbers = bench.numbers
        world = World(
            random=Random(setting),  # noqa: S311  # no secrets
            clock=lambda: NOW + 40_000_000.0 * setting + 0.25 * setting,
            new_id=lambda prefix: f"{prefix}_{next(numbers):024x}",
        )
        return await bench.runtime.context(bench.runtime.routed(self._request), self._ask, world)

    async def _ask(self, target: str, call: ModelCall) -> ModelReply:
        if target not in self._bench.runtime.route.targets:
            self.strangers.append(target)
            msg = f"asked the target `{target}`, which the route does not declare"
            raise PluginError(msg)
        outgoing = self._bench.harness.asked.outgoing(self._request, target, call)
        number = len(self.asked)
        self.asked.append(outgoing)
        with self._begun():
            # A real call takes a while: others run meanwhile.
            await asyncio.sleep(0)
            if number == self._hold:
                self.held.set()
                await asyncio.Event().wait()
            if number == self._fail:
                raise AskError(f"asking `{target}` gave status 503", _DOWN)
            try:
                reply = self._bench.reply(target, call)
            except AssertionError as error:
                self._missing = error
                raise
            return complete_reply(reply, outgoing)

    @contextlib.contextmanager
    def _begun(self) -> Iterator[None]:
        self.open += 1
        try:
            yield
        finally:
            self.open -= 1
