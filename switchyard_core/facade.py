"""The public object: a policy, ready to decide, rewrite and serve."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from os import PathLike
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Self

from switchyard_core.answers import AnswerEvent
from switchyard_core.cases import CaseResult, read_cases, run_cases
from switchyard_core.decision import Decision
from switchyard_core.engine import Engine, Response, Upstreams, connect, script_findings
from switchyard_core.engine.explanation import Explanation, explain
from switchyard_core.errors import PolicyError
from switchyard_core.plugins import PluginRegistry
from switchyard_core.policy import Client, Policy, load_policy, load_policy_text
from switchyard_core.replay import Replay
from switchyard_core.request import Request
from switchyard_core.upstream.base import Outgoing, Upstream

if TYPE_CHECKING:
    from switchyard_core.server.app import SwitchyardApp

__all__ = ["Switchyard"]


class Switchyard:
    """Routes the requests of coding agents by a policy.

    Make one with :meth:`from_policy`. It may be shared by any number of tasks.

    Example:
        >>> yard = Switchyard.from_policy("policies/plan_execute.toml")   # doctest: +SKIP
        >>> decision = await yard.decide(request)                         # doctest: +SKIP
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    @classmethod
    def from_policy(
        cls,
        source: str | PathLike[str],
        *,
        registry: PluginRegistry | None = None,
        connect: Callable[[Client], Upstream] = connect,
        environ: Mapping[str, str] | None = None,
        random: Random | None = None,
        replay: Replay | None = None,
    ) -> Self:
        """Return a switchyard for a policy file.

        Args:
            source: Path of the TOML file.
            registry: Plugins to use; ``None`` takes all installed ones.
            connect: Makes the connection to a provider; tests give another.
            environ: Where API keys stand when a call is made; ``None`` is the process's
                environment. Nothing else reads it.
            random: Source of randomness for routers.
            replay: Recorded model calls to answer from, or a folder to record calls to.

        Raises:
            PolicyError: The policy has errors; all of them are in it.
        """
        registry = registry if registry is not None else PluginRegistry.from_entry_points()
        policy = load_policy(Path(source), registry)
        return cls.from_loaded(
            policy, registry, connect=connect, environ=environ, random=random, replay=replay
        )

    @classmethod
    def from_policy_text(
        cls,
        text: str,
        *,
        name: str = "policy",
        base_dir: str | PathLike[str] | None = None,
        registry: PluginRegistry | None = None,
        connect: Callable[[Client], Upstream] = connect,
        environ: Mapping[str, str] | None = None,
        random: Random | None = None,
        replay: Replay | None = None,
    ) -> Self:
        """Return a switchyard for the text of a policy; ``name`` stands in error messages.

        Raises:
            PolicyError: The policy has errors; all of them are in it.
        """
        registry = registry if registry is not None else PluginRegistry.from_entry_points()
        folder = Path(base_dir) if base_dir is not None else Path()
        policy = load_policy_text(text, name, registry, base_dir=folder)
        return cls.from_loaded(
            policy, registry, connect=connect, environ=environ, random=random, replay=replay
        )

    @classmethod
    def from_loaded(
        cls,
        policy: Policy,
        registry: PluginRegistry,
        *,
        connect: Callable[[Client], Upstream] = connect,
        environ: Mapping[str, str] | None = None,
        random: Random | None = None,
        replay: Replay | None = None,
    ) -> Self:
        """Return a switchyard for a policy that is loaded already.

        Raises:
            PolicyError: The script of a scripted client has errors.
        """
        findings = script_findings(policy)
        if findings:
            raise PolicyError(findings)
        upstreams = Upstreams(policy.clients, connect, replay=replay)
        engine = Engine(policy, registry, upstreams=upstreams, environ=environ, random=random)
        return cls(engine)

    @property
    def policy(self) -> Policy:
        """The policy."""
        return self.engine.policy

    async def decide(self, request: Request, *, dry_run: bool = False) -> Decision:
        """Return where a request goes; no network.

        A handoff latches its identity, since the caller will act on it; ``dry_run`` changes
        nothing and reports a full store as a warning.

        Raises:
            RequestError: The request is refused; nothing changed.
        """
        return await self.engine.decide(request, dry_run=dry_run)

    def rewrite(self, request: Request, decision: Decision) -> Outgoing:
        """Return what is sent for a decision: path, headers without credentials, body.

        Guarantees:
            Pure. The caller's body is not changed, and every byte of it that no rewrite of the
            decision concerns is in the outgoing body.
        """
        return self.engine.rewrite(request, decision).outgoing

    async def handle(self, request: Request) -> Response:
        """Decide, rewrite and call; return the provider's answer.

        Raises:
            RequestError: The request is refused; nothing was sent.
            UpstreamError: The provider could not be reached.
        """
        return await self.engine.handle(request)

    def answer(self, request: Request) -> AsyncGenerator[AnswerEvent]:
        """Yield what an answering router says to a request, as events and not as bytes.

        Use it as ``async with contextlib.aclosing(yard.answer(request)) as events`` when you may
        stop early: closing it cancels the call that runs.

        Raises:
            RequestError: The request is refused, or its route does not answer by itself.
            UpstreamError: A model could not be asked.
        """
        return self.engine.answers.events(request)

    async def explain(self, request: Request) -> Explanation:
        """Return why a request would go where, and its outgoing body; nothing changes.

        Raises:
            RequestError: The request would be refused.
            WouldAsk: The route's router would ask a model first.
        """
        return await explain(self.engine, request)

    async def test(self, tests: str | PathLike[str]) -> tuple[CaseResult, ...]:
        """Run a test file of this policy; nothing is called, and nothing of this changes.

        Args:
            tests: Path of the test file.

        Returns:
            One result per case, in the order of the file.

        Raises:
            PolicyError: There are mistakes in the test file; carries all of them.
        """
        registry = self.engine.registry
        cases = read_cases(Path(tests), self.policy, registry)
        return (await run_cases(cases, self.policy, registry))[0]

    async def finish(self, decision: Decision, ok: bool) -> None:  # noqa: FBT001  # reads well
        """End a request whose call the host made itself: a final one frees its slot if ``ok``."""
        await self.engine.finish(decision, ok=ok)

    def asgi(self, **options: Any) -> SwitchyardApp:
        """Return the server as an ASGI application, to mount or to call in process.

        Args:
            options: Keyword arguments of :class:`switchyard_core.server.app.SwitchyardApp`.
        """
        from switchyard_core.server.app import SwitchyardApp  # noqa: PLC0415  # only when served

        return SwitchyardApp(self.engine, **options)

    async def aclose(self) -> None:
        """Close every connection to a provider."""
        await self.engine.aclose()
