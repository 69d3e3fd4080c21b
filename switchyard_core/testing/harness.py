"""Runs requests through a policy without a socket, a clock or a key."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.metadata import entry_points
from itertools import count
from pathlib import Path
from random import Random
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, Self

from switchyard_core.decision import Decision, Outgoing, RewriteReport
from switchyard_core.engine.calling import Upstreams
from switchyard_core.errors import PolicyError, RequestError, UpstreamError
from switchyard_core.explain import Explanation, explain
from switchyard_core.hookspecs import PROJECT
from switchyard_core.plugins import PluginRegistry, builtins
from switchyard_core.policy import Policy, load_policy, load_policy_text
from switchyard_core.replay import Replay
from switchyard_core.request import Request
from switchyard_core.switchyard import Switchyard
from switchyard_core.testing.answers import Answered, CannedAnswers, Questions
from switchyard_core.testing.provider import FakeReply, FakeUpstream
from switchyard_core.wire import format_of
from switchyard_core.world import World

if TYPE_CHECKING:
    import httpx

    from switchyard_core.server.app import SwitchyardApp

__all__ = ["NOW", "Harness", "Routed", "Served", "registry_of"]

#: What the injected clock says: 2023-11-14, in seconds since the epoch.
NOW = 1_700_000_000.0
#: Code of a policy check for a route type that no plugin gives.
_UNKNOWN_TYPE = "SY301"


def registry_of(plugins: Iterable[object] = (), *, installed: bool = False) -> PluginRegistry:
    """Return the core and the plugins that a test asks for, and nothing else.

    What else happens to be installed cannot change a test's result, because it is not loaded.

    Args:
        plugins: Modules, or objects with hooks. A module that an installed distribution names
            as its entry point is loaded by it, so messages name distribution and version.
        installed: Load everything that is installed as well. A broken plugin among those is
            an error only for a policy that needs it.
    """
    # By identity: a plugin object need not be hashable.
    given = list({id(each): each for each in (builtins, *plugins)}.values())
    if not installed and all(isinstance(each, ModuleType) for each in given):
        return _registry_of_modules(tuple(given), tuple(sys.path))
    return _new_registry(given, installed=installed)


@lru_cache(maxsize=64)
def _registry_of_modules(given: tuple[object, ...], _path: tuple[str, ...]) -> PluginRegistry:
    """Return the one registry of some modules: to make it takes as long as many tests do."""
    return _new_registry(given, installed=False)


def _new_registry(given: Sequence[object], *, installed: bool) -> PluginRegistry:
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
class _Sent:
    status: int  # HTTP status of the answer
    answer: bytes  # Body of the answer
    sent: tuple[Outgoing, ...]  # Everything that was sent, one more per further try

    @property
    def outgoing(self) -> Outgoing:
        """What was sent last."""
        return self.sent[-1]

    @property
    def tree(self) -> dict[str, Any]:
        """The body that was sent last, as a tree."""
        tree: dict[str, Any] = json.loads(self.outgoing.body)
        return tree


@dataclass(frozen=True, slots=True, kw_only=True)
class Routed(_Sent):
    """What became of one request, with the decision that led to it."""

    decision: Decision  # The decision that was carried out last
    reports: tuple[RewriteReport, ...]  # What each rewrite changed in the body that was sent last


@dataclass(frozen=True, slots=True, kw_only=True)
class Served(_Sent):
    """What a caller sees of one request, the same through the library and over HTTP."""

    target: str = ""  # Name of the target, `""` for a refused request
    phase: str = ""  # The router's word, if it has one
    reason: str = ""  # Code of the decision's reason
    warnings: tuple[str, ...] = ()  # Codes of the decision's warnings
    code: str = ""  # Code of the error of a refused request
    message: str = ""  # Its text
    headers: Mapping[str, str]  # Of the answer over HTTP, in lower case; of an error in both doors


class Harness:
    """A policy with its plugins, and one :class:`FakeUpstream` in place of every provider.

    Args:
        policy: A policy file, or the text of a policy.
        plugins: The plugins that the policy needs; nothing else but the core is loaded. Or what
            :func:`registry_of` made of them, to make it once for many harnesses.
        installed: Load every installed plugin as well; see :func:`registry_of`.
        replies: What the provider plays.
        seed: Seed of the routers' randomness.
        now: Seconds since the epoch, for routers.
        upstream: The provider, in place of one with ``replies``.
        replay: Recorded calls to answer from, or a folder to record the provider's answers to.
        answers: What models say to routers that ask: ``{"judge": ["yes", ModelReply(...)]}``,
            played in order, the last one again and again; an ``AskError``
            is raised. Or a function of target and call. ``None`` makes the calls to the provider.
        door: How :meth:`ask` sends requests: to the engine, or to the server in process.

    Set ``now`` to let time pass, and seed ``random`` again to repeat a draw; ``asked`` has the
    calls that routers asked for.

    Example:
        >>> harness = Harness(policy_text)                            # doctest: +SKIP
        >>> routed = await harness.run(story.request(session="s"))    # doctest: +SKIP
        >>> routed.decision.target, routed.outgoing.body              # doctest: +SKIP
    """

    def __init__(  # noqa: PLR0913  # all that a test may put in place of the real thing
        self,
        policy: str | os.PathLike[str],
        *,
        plugins: Sequence[object] | PluginRegistry = (),
        installed: bool = False,
        replies: Sequence[FakeReply | UpstreamError] = (),
        seed: int = 0,
        now: float = NOW,
        upstream: FakeUpstream | None = None,
        replay: Replay | None = None,
        answers: CannedAnswers | None = None,
        door: Literal["library", "http"] = "library",
    ) -> None:
        registry = (
            plugins
            if isinstance(plugins, PluginRegistry)
            else registry_of(plugins, installed=installed)
        )
        self.door = door
        self.now = now
        self.upstream = upstream if upstream is not None else FakeUpstream(*replies)
        self.random = Random(seed)  # noqa: S311  # no secrets
        self.policy = _load(policy, registry)
        numbers = count(1)
        keys = [client.api_key_env for client in self.policy.clients.values()]
        world = World(
            environ={key: "test-key" for key in keys if key is not None},
            random=self.random,
            clock=lambda: self.now,
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
            self.policy, registry, world=world, upstreams=upstreams, ask=self.asked.ask
        )

    @cached_property
    def app(self) -> SwitchyardApp:
        """The server of this policy as an ASGI application."""
        from switchyard_core.server.app import SwitchyardApp  # noqa: PLC0415  # only when served

        return SwitchyardApp(self.engine)

    def client(self) -> httpx.AsyncClient:
        """Return an HTTP client of the server in process; close it, or use ``async with``."""
        import httpx  # noqa: PLC0415  # only when served

        transport = httpx.ASGITransport(app=self.app)
        return httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1")

    async def decide(self, request: Request, *, dry_run: bool = False) -> Decision:
        """Return the decision for a request, as :meth:`~switchyard_core.Switchyard.decide`."""
        return await self.engine.decide(request, dry_run=dry_run)

    async def explain(self, request: Request) -> Explanation:
        """Return why a request goes where it goes and what is done to it; changes nothing."""
        return await explain(self.engine, request)

    async def run(self, request: Request) -> Routed:
        """Decide, rewrite, send and read the answer to its end; raises what the engine raises."""
        before, run = len(self.upstream.requests), object()
        async with await self.engine.handle(
            request, sent=lambda _, outgoing: self._runs.update({id(outgoing.body): run})
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

    async def ask(self, request: Request) -> Served:
        """Send a request through the harness's door and return what its caller sees."""
        before = len(self.upstream.requests)
        if self.door == "http":
            seen = await self._over_http(request)
            return Served(sent=tuple(self.upstream.requests[before:]), **seen)
        try:
            routed = await self.run(request)
        except RequestError as error:
            return Served(
                status=error.status,
                answer=format_of(request.wire_format).error_body(error, ""),
                sent=tuple(self.upstream.requests[before:]),
                code=error.code,
                message=error.message,
                headers=error.headers,
            )
        decision = routed.decision
        return Served(
            status=routed.status,
            answer=routed.answer,
            sent=routed.sent,
            target=decision.target,
            phase=decision.phase,
            reason=decision.reason.code,
            warnings=tuple(warning.code for warning in decision.warnings),
            headers={},
        )

    async def _over_http(self, request: Request) -> dict[str, Any]:
        async with self.client() as client:
            answer = await client.post(
                "/v1" + format_of(request.wire_format).paths[request.endpoint],
                content=request.body,
                headers=[("content-type", "application/json"), *request.headers.items_],
            )
        words = ("target", "phase", "reason", "warning")
        seen = {name: answer.headers.get(f"x-switchyard-{name}", "") for name in words}
        seen |= {
            "status": answer.status_code,
            "answer": answer.content,
            "headers": dict(answer.headers),
            "warnings": tuple(filter(None, seen.pop("warning").split(","))),
        }
        if answer.is_error and not seen["target"]:
            error = answer.json()["error"]
            # Messages has no field for the code: it is at the end of the text.
            code = error.get("code") or error["message"].rpartition("(")[2].rstrip(")")
            seen |= {"code": code, "message": error["message"]}
        return seen

    async def latched(self, route: str = "") -> int:
        """Return how many identities are latched on a route; the policy's first one when empty."""
        name = route or next(iter(self.policy.routes))
        store = self.engine.runtimes[name].store
        if store is None:
            raise AssertionError(f"the route `{name}` has no latch store")
        return await store.count()

    async def answer(self, request: Request) -> Answered:
        """Let an answering router answer, and return what it said and what it asked."""
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
        """Return the error of a request that must be refused, before anything was sent."""
        before = len(self.upstream.requests)
        try:
            routed = await self.run(request)
        except RequestError as error:
            if len(self.upstream.requests) == before:
                return error
            msg = f"the request was refused ({error.message}), but something was sent"
            raise AssertionError(msg) from error
        raise AssertionError(f"the request was not refused: it went to `{routed.decision.target}`")

    async def aclose(self) -> None:
        """Close the connections."""
        await self.engine.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.aclose()


def _load(policy: str | os.PathLike[str], registry: PluginRegistry) -> Policy:
    try:
        if isinstance(policy, str) and "\n" in policy:
            return load_policy_text(policy, "policy", registry, base_dir=Path())
        return load_policy(Path(policy), registry)
    except PolicyError as error:
        if any(finding.code == _UNKNOWN_TYPE for finding in error.findings):
            error.add_note(
                "a Harness loads the core and the plugins that it is given: "
                "pass the module as `plugins=[...]`, or `installed=True` for all that is installed"
            )
        raise
