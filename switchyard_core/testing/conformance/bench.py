"""One route of a policy, whose router is driven by hand, and by the engine."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, fields
from itertools import count
from random import Random
from typing import Any

from switchyard_core.answering import ModelCall, ModelReply
from switchyard_core.decision import Decision, Failure
from switchyard_core.declarations import WireFormat
from switchyard_core.engine.housekeeping import housekeeping_mark
from switchyard_core.engine.routes import RouteRuntime
from switchyard_core.errors import PluginError, RequestError
from switchyard_core.request import Request
from switchyard_core.router import RetryingRouter, RouteContext
from switchyard_core.testing.conformance.watching import Watch, watched
from switchyard_core.testing.harness import NOW, Harness
from switchyard_core.world import World

__all__ = ["Bench", "Outcome", "Trial", "describe", "require"]

#: What became of a request: where it goes, or why it is refused.
Outcome = Decision | RequestError


def require(condition: object, message: str) -> None:
    """Fail with a message unless a condition holds.

    Raises:
        AssertionError: It does not.
    """
    if not condition:
        raise AssertionError(message)


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
    """Drives one route.

    Args:
        harness: The policy that has it.
        route: Name of the route.
        reply: Answers what the router asks a model.
    """

    def __init__(
        self, harness: Harness, route: str, reply: Callable[[str, ModelCall], ModelReply]
    ) -> None:
        self.harness = harness
        self.runtime: RouteRuntime = harness.engine.runtimes[route]
        #: Answers what the router asks a model.
        self.reply = reply
        #: Numbers for the ids that it is given.
        self.numbers = count(1)
        #: Targets that the router asked.
        self.asked: set[str] = set()

    async def ask(self, target: str, call: ModelCall) -> ModelReply:
        """Answer in place of a model: ``context.ask`` of the router."""
        self.asked.add(target)
        return self.reply(target, call)

    async def route(
        self,
        request: Request,
        *,
        what: str = "a request",
        housekeeping: bool | None = None,
        watch: Watch | None = None,
    ) -> Outcome:
        """Ask the router alone, with the same context each time; nothing is latched.

        Args:
            request: The request.
            what: What it is, for messages.
            housekeeping: Whether it is a side call; ``None`` finds out as the engine does.
            watch: Watches the router's own code.

        Raises:
            AssertionError: The router raised something that is no refusal, or returned no
                decision.
        """
        context = await self._context(request, housekeeping=housekeeping)
        coroutine = self.runtime.router.route(request, context)
        decision: Outcome = await _refused_or(
            watched(coroutine, watch) if watch is not None else coroutine, what
        )
        require(
            isinstance(decision, Decision | RequestError),
            f"the router returned {type(decision).__name__} for {what}: return a `Decision`",
        )
        return decision

    async def next(
        self, request: Request, failed: Decision, failure: Failure, *, what: str
    ) -> Outcome | None:
        """Ask a router that has a next try for it.

        Raises:
            AssertionError: It raised something, or returned no decision.
        """
        router = self.runtime.router
        if not isinstance(router, RetryingRouter):
            return None
        context = await self._context(request, housekeeping=False)
        again: Outcome | None = await _refused_or(
            router.next(request, failed, failure, context), what
        )
        require(
            again is None or isinstance(again, Decision | RequestError),
            f"`next` returned {type(again).__name__} for {what}: return a `Decision` or `None`",
        )
        return again

    async def _context(self, request: Request, *, housekeeping: bool | None) -> RouteContext:
        self.harness.engine.runtime_for(request)
        if housekeeping is None:
            housekeeping = bool(housekeeping_mark(request, self.harness.policy.housekeeping))
        routed = self.runtime.routed(request, "side call" if housekeeping else "")
        world = World(random=Random(0), clock=lambda: NOW)  # noqa: S311  # no secrets
        return await self.runtime.context(routed, self.ask, world)

    async def decide(self, request: Request, *, what: str, dry_run: bool = False) -> Outcome:
        """Decide as the engine does, effects included, with the same randomness each time."""
        self.harness.random.seed(0)
        engine = self.harness.engine
        outcome: Outcome = await _refused_or(
            engine.decide(request, dry_run=dry_run, ask=self.ask), what
        )
        return outcome

    async def sent(self, request: Request, *, what: str) -> tuple[Decision, bytes] | None:
        """Return the decision and the outgoing body of a request, ``None`` if it is refused."""
        decision = await self.decide(request, what=what, dry_run=True)
        if isinstance(decision, RequestError):
            return None
        return decision, self.rewritten(request, decision, what=what)

    def rewritten(self, request: Request, decision: Decision, *, what: str) -> bytes:
        """Return what a decision makes of a body."""
        try:
            return self.harness.engine.rewrite(request, decision).body
        except PluginError as error:
            raise AssertionError(f"{error}, for {what}") from error

    async def latches(self, request: Request) -> tuple[int, Any]:
        """Return how many identities are latched, and the record of this request's."""
        store = self.runtime.store
        if store is None:
            return 0, None
        identity = self.runtime.sessions.read(request)
        return await store.count(), await store.get(identity) if identity is not None else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What a check works with.

    Args:
        wire_format: Wire format of the requests.
        bench: Returns the route on an engine of its own, a new one each time.
        requests: Returns new requests for a model id, by name.
        removes: Types of history items that the router's rewrites may remove.
    """

    wire_format: WireFormat
    bench: Callable[[], Bench]
    requests: Callable[[str], Mapping[str, Request]]
    removes: Collection[str] = ()


async def _refused_or(deciding: Awaitable[Any], what: str) -> Any:
    try:
        return await deciding
    except RequestError as error:
        return error
    except AssertionError:
        raise
    except PluginError as error:
        raise AssertionError(f"{error}, for {what}") from error
    except Exception as error:
        message = f"the router raised {type(error).__name__}: {error}, for {what}"
        raise AssertionError(f"{message}; it must decide, or refuse with a RequestError") from error
