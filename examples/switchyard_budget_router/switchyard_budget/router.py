"""The options of ``type = "budget"``, and the router that they configure."""

from __future__ import annotations

from pydantic import Field
from switchyard_core import (
    Decision,
    DecisionWarning,
    Options,
    Reason,
    Request,
    RouteContext,
    TargetName,
    handoff_rewrites,
)

from switchyard_budget.ledger import Ledger, cost_usd

__all__ = ["BudgetOptions", "BudgetRouter"]


class BudgetOptions(Options):
    """Options of ``type = "budget"``.

    Args:
        target: Serves a session until its budget is spent, and requests that name no session.
        cheap: Serves it from then on.
        budget_usd: What a session may cost, in US dollars.
    """

    target: TargetName
    cheap: TargetName
    budget_usd: float = Field(gt=0, allow_inf_nan=False)


class BudgetRouter:
    """Sends a session that has spent its budget to a cheaper target.

    A session's sub-agents spend its budget, too. The router only reads the ledger: the plugin
    fills it when answers end.

    Args:
        options: The route's options.
        ledger: What sessions took so far.
    """

    def __init__(self, options: BudgetOptions, ledger: Ledger) -> None:
        self._options = options
        self._ledger = ledger

    async def route(self, request: Request, context: RouteContext) -> Decision:
        """Return the target for a session with what it has spent."""
        options, identity = self._options, context.session.identity
        if identity is None:
            reason = Reason(code="no_session", detail="the request names no session")
            return Decision(target=options.target, reason=reason)
        taken = self._ledger.of(context.route, identity.session)
        spent = sum(cost_usd(usage, context.targets[name].price) for name, usage in taken.items())
        detail = f"this session spent ${spent:.4f} of ${options.budget_usd:g}"
        if spent < options.budget_usd:
            reason = Reason(code="within_budget", detail=detail)
            return Decision(target=options.target, reason=reason)
        return _handed_over(options, request, context, detail)


def _handed_over(
    options: BudgetOptions, request: Request, context: RouteContext, detail: str
) -> Decision:
    """Return the decision for a session over its budget."""
    source, target = context.targets[options.target], context.targets[options.cheap]
    reason = Reason(code="over_budget", detail=detail)
    if request.misses_history and source.origin != target.origin:
        # Only the first provider knows the history that the request names by its id.
        warning = DecisionWarning(code="history_elsewhere", detail=f"`{target.name}` lacks it")
        return Decision(target=options.target, reason=reason, warnings=(warning,))
    rewrites = handoff_rewrites(
        source=source,
        target=target,
        through_message=request.conversation.last_assistant,
        drop_continuation=not request.misses_history,
    )
    return Decision(target=options.cheap, reason=reason, rewrites=rewrites)
