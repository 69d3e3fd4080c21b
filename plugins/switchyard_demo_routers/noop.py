"""The route type ``noop``: one target, nothing else."""

from __future__ import annotations

from switchyard_core import Decision, Options, Reason, Request, RouteContext, TargetName

__all__ = ["NoopOptions", "NoopRouter"]


class NoopOptions(Options):
    """Options of ``type = "noop"``.

    Args:
        target: Serves every request.
    """

    target: TargetName


class NoopRouter:
    """Sends every request to one target: what any other router is compared with."""

    def __init__(self, options: NoopOptions) -> None:
        self._decision = Decision(
            target=options.target,
            reason=Reason(code="only_target", detail="the route has one target"),
        )

    async def route(self, request: Request, context: RouteContext) -> Decision:  # noqa: ARG002  # protocol
        """Return the same decision for every request."""
        return self._decision
