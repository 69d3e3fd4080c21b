"""Runs requests through a policy without a socket, a clock or a key."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from itertools import count
from pathlib import Path
from random import Random
from types import ModuleType, TracebackType
from typing import Self

from switchyard_core.decision import Decision
from switchyard_core.engine.calling import Upstreams
from switchyard_core.errors import PolicyError, RequestError, UpstreamError
from switchyard_core.hookspecs import PROJECT
from switchyard_core.plugins import PluginRegistry, builtins
from switchyard_core.policy import Policy, load_policy, load_policy_text
from switchyard_core.replay import Replay
from switchyard_core.request import Request
from switchyard_core.rewrites import RewriteReport
from switchyard_core.switchyard import Switchyard
from switchyard_core.testing.answered import Answered
from switchyard_core.testing.canned import CannedAnswers, Questions
from switchyard_core.testing.upstream import FakeReply, FakeUpstream
from switchyard_core.upstream.base import Outgoing
from switchyard_core.workbench import Explanation, explain
from switchyard_core.world import World

__all__ = ["Harness", "Routed", "registry_of"]

#: What the injected clock says: 2023-11-14, in seconds since the epoch.
NOW = 1_700_000_000.0
#: What a policy check says of a route type that nobody gives.
UNKNOWN_TYPE = "SY301"


def registry_of(plugins: Iterable[object] = (), *, installed: bool = False) -> PluginRegistry:
    """Return the core and the plugins that a test asks for, and nothing else.

    What else happens to be installed cannot change a test's result, because it is not loaded.

    Args:
        plugins: Modules, or objects with hooks. A module that an installed distribution names
            as its entry point is loaded by it, so messages name distribution and version.
        installed: Load everything that is installed as well. A broken plugin among those is
            an error only for a policy that needs it.

    Raises:
        PluginError: A given plugin is broken, or two give the same name.
    """
    # By identity: a plugin object need not be hashable.
    given = list({id(each): each for each in (builtins, *plugins)}.values())
    modules = {each.__name__ for each in given if isinstance(each, ModuleType)}
    points = entry_points(group=PROJECT)
    named = {point.value: point.name for point in points if point.value in modules}
    others = [(_name(each), each) for each in given if _name(each) not in named]
    registry = PluginRegistry.from_entry_points(
        entry_points=[point for point in points if installed or point.value in modules],
        plugins=others,
    )
    if installed:
        registry.raise_broken({*named.values(), *(name for name, _ in others)})
    else:
        registry.raise_broken()
    return registry


def _name(plugin: object) -> str:
    return plugin.__name__ if isinstance(plugin, ModuleType) else type(plugin).__name__


@dataclass(frozen=True, slots=True, kw_only=True)
class Routed:
    """What became of one request.

    Args:
        decision: The decision that was carried out last.
        sent: Everything that was sent for it, one more per further try.
        reports: What each rewrite changed in the body that was sent last.
        status: HTTP status of the answer.
        answer: Body of the answer.
    """

    decision: Decision
    sent: tuple[Outgoing, ...]
    reports: tuple[RewriteReport, ...]
    status: int
    answer: bytes

    @property
    def outgoing(self) -> Outgoing:
        """What was sent last."""
        return self.sent[-1]


class Harness:
    """A policy with its plugins, and one :class:`FakeUpstream` in place of every provider.

    Args:
        policy: A policy file, or the text of a policy.
        plugins: The plugins that the policy needs; nothing else but the core is loaded.
        installed: Load every installed plugin as well; see :func:`registry_of`.
        replies: What the provider plays.
        seed: Seed of the routers' randomness.
        now: Seconds since the epoch, for routers.
        upstream: The provider, in place of one with ``replies``.
        replay: Recorded calls to answer from, or a folder to record the provider's answers to.
        answers: What models say to routers that ask: ``{"judge": ["yes", ModelReply(...)]}``,
            played in order, the last one again and again; an :class:`~switchyard_core.AskError`
            is raised. Or a function of target and call. ``None`` makes the calls to the provider.

    Attributes:
        asked: The calls that routers asked for; see :class:`.Questions`.
        engine: What decides, rewrites and calls.
        policy: The loaded policy.
        random: The routers' randomness; seed it again to repeat a draw.
        upstream: The provider.

    Raises:
        PolicyError: The policy has errors; all of them are in it.
        PluginError: A given plugin is broken.

    Example:
        >>> harness = Harness(policy_text)                            # doctest: +SKIP
        >>> routed = await harness.run(story.request(session="s"))    # doctest: +SKIP
        >>> routed.decision.target, routed.outgoing.body              # doctest: +SKIP
    """

    def __init__(  # noqa: PLR0913  # all that a test may put in place of the real thing
        self,
        policy: str | os.PathLike[str],
        *,
        plugins: Sequence[object] = (),
        installed: bool = False,
        replies: Sequence[FakeReply | UpstreamError] = (),
        seed: int = 0,
        now: float = NOW,
        upstream: FakeUpstream | None = None,
        replay: Replay | None = None,
        answers: CannedAnswers | None = None,
    ) -> None:
        registry = registry_of(plugins, installed=installed)
        self.upstream = upstream if upstream is not None else FakeUpstream(*replies)
        self.random = Random(seed)  # noqa: S311  # no secrets
        self.policy = _load(policy, registry)
        numbers = count(1)
        keys = [client.api_key_env for client in self.policy.clients.values()]
        world = World(
            environ={key: "test-key" for key in keys if key is not None},
            random=self.random,
            clock=lambda: now,
            monotonic=lambda: 0.0,
            new_id=lambda prefix: f"{prefix}_{next(numbers):024x}",
        )
        upstreams = Upstreams(
            self.policy,
            registry.rewrites,
            world,
            connect=lambda _client: self.upstream,
            replay=replay,
        )
        self.asked = Questions(upstreams, answers, self.upstream.requests)
        # Which run a body was sent for; the requests keep the bodies, and so their ids.
        self._runs: dict[int, object] = {}
        self.engine = Switchyard(
            self.policy,
            registry,
            world=world,
            upstreams=upstreams,
            ask=self.asked.ask,
        )

    async def decide(self, request: Request, *, dry_run: bool = False) -> Decision:
        """Return the decision for a request, as :meth:`~switchyard_core.Switchyard.decide`."""
        return await self.engine.decide(request, dry_run=dry_run)

    async def explain(self, request: Request) -> Explanation:
        """Return why a request goes where it goes and what is done to it; changes nothing.

        Raises:
            RequestError: The request is refused.
        """
        return await explain(self.engine, request)

    async def run(self, request: Request) -> Routed:
        """Decide, rewrite, send and read the answer to its end.

        Raises:
            RequestError: The request is refused; nothing was sent.
            UpstreamError: The last reply is one, or breaks off.
        """
        before, run = len(self.upstream.requests), object()
        async with await self.engine.handle(
            request,
            sent=lambda _, outgoing: self._runs.update({id(outgoing.body): run}),
        ) as response:
            answer = await response.read()
        # Other requests may run at the same time: what was sent for them is not this one's.
        sent = self.upstream.requests[before:]
        return Routed(
            decision=response.decision,
            sent=tuple(one for one in sent if self._runs.get(id(one.body), run) is run),
            reports=response.reports,
            status=response.status,
            answer=answer,
        )

    async def answer(self, request: Request) -> Answered:
        """Let an answering router answer, and return what it said and what it asked.

        Raises:
            RequestError: The request is refused, or its route does not answer by itself.
            UpstreamError: A model gave no answer, and the router did not mind.
            PluginError: The router broke its contract.
            AssertionError: It asks a target for which there is no reply.
        """
        before = len(self.asked.calls)
        try:
            events = [event async for event in self.engine.answer(request)]
        except Exception as error:
            if self.asked.missing is not None:
                raise self.asked.missing from error
            raise
        if self.asked.missing is not None:
            raise self.asked.missing
        return Answered(
            model=self.engine.runtime_for(request).route.id,
            events=tuple(events),
            calls=tuple(self.asked.calls[before:]),
        )

    async def refused(self, request: Request) -> RequestError:
        """Return the error with which a request is refused.

        Raises:
            AssertionError: It is not refused, or something was sent.
        """
        before = len(self.upstream.requests)
        try:
            routed = await self.run(request)
        except RequestError as error:
            if len(self.upstream.requests) == before:
                return error
            msg = f"the request was refused ({error.message}), but something was sent"
            raise AssertionError(msg) from error
        msg = f"the request was not refused: it went to `{routed.decision.target}`"
        raise AssertionError(msg)

    async def aclose(self) -> None:
        """Close the connections."""
        await self.engine.aclose()

    async def __aenter__(self) -> Self:
        """Return the harness itself."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the connections."""
        await self.aclose()


def _load(policy: str | os.PathLike[str], registry: PluginRegistry) -> Policy:
    try:
        if isinstance(policy, str) and "\n" in policy:
            return load_policy_text(policy, "policy", registry, base_dir=Path())
        return load_policy(Path(policy), registry)
    except PolicyError as error:
        if any(finding.code == UNKNOWN_TYPE for finding in error.findings):
            error.add_note(
                "a Harness loads the core and the plugins that it is given: "
                "pass the module as `plugins=[...]`, or `installed=True` for all that is installed"
            )
        raise
