"""The route type ``budget``: a session that has spent its budget goes to a cheaper target."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from switchyard_core import Decision, LintRule, Outcome, RouteType, hookimpl

from switchyard_budget.ledger import Ledger
from switchyard_budget.lint import UNPRICED_TARGET
from switchyard_budget.router import BudgetOptions, BudgetRouter

__all__ = ["BudgetOptions", "BudgetPlugin", "BudgetRouter", "plugin"]


class BudgetPlugin:
    """Counts what sessions take, for the routers that it makes.

    Args:
        capacity: Most sessions that are remembered.
    """

    def __init__(self, capacity: int = 10_000) -> None:
        self._ledger = Ledger(capacity)

    @hookimpl
    def switchyard_route_types(self) -> Iterable[RouteType]:
        """Return the route type."""
        return (
            RouteType(
                name="budget",
                options=BudgetOptions,
                router=partial(BudgetRouter, ledger=self._ledger),
                summary="sends a session that has spent its budget to a cheaper target",
            ),
        )

    @hookimpl
    def switchyard_lint_rules(self) -> Iterable[LintRule]:
        """Return the check of prices."""
        return (UNPRICED_TARGET,)

    @hookimpl
    def switchyard_request_finished(self, decision: Decision, outcome: Outcome) -> None:
        """Note what an answer took, also one that broke off: the provider bills it."""
        if decision.identity is not None and outcome.usage_by_target:
            self._ledger.add(decision.route, decision.identity.session, outcome.usage_by_target)


#: What the entry point names.
plugin = BudgetPlugin()
