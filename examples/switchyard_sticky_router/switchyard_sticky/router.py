"""The options of ``type = "sticky"``, and the router that they configure."""

from __future__ import annotations

from hashlib import blake2b
from typing import Literal

from pydantic import Field
from switchyard_core import Decision, Options, Reason, Request, RouteContext, TargetName

__all__ = ["StickyOptions", "StickyRouter"]


class StickyOptions(Options):
    """Options of ``type = "sticky"``; a misspelt key is an error at its place in the policy.

    Args:
        targets: Targets to choose from, one or more.
        default: Serves requests that name no session; the first of ``targets`` when absent.
        per: ``session`` keeps sub-agents with their session, ``agent`` chooses for each.
    """

    targets: list[TargetName] = Field(min_length=1)
    default: TargetName | None = None
    per: Literal["session", "agent"] = "session"


class StickyRouter:
    """Gives each session one target, without storing it.

    Each pair of a session and a target has a rank, and the highest wins. So a session's target
    is the same after a restart and in every worker, and when a target is added or removed, only
    its own sessions move.

    Args:
        options: The route's options.
    """

    def __init__(self, options: StickyOptions) -> None:
        self._targets = tuple(options.targets)
        self._default = options.default or options.targets[0]
        self._per = options.per

    async def route(self, request: Request, context: RouteContext) -> Decision:
        """Return the target of the request's session."""
        identity = context.session.identity
        if identity is None:
            reason = Reason(code="no_session", detail="the request names no session")
            return Decision(target=self._default, reason=reason)
        agent = identity.agent if self._per == "agent" else None
        whom = f"{identity.session}\0{agent or ''}"
        target = max(self._targets, key=lambda name: _rank(whom, name))
        reason = Reason(code=self._per, detail=f"this {self._per} belongs to `{target}`")
        return Decision(target=target, reason=reason)


def _rank(whom: str, target: str) -> bytes:
    return blake2b(f"{whom}\0{target}".encode(), digest_size=16).digest()
