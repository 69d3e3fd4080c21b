"""Make the whole plan first, then carry it out step by step.

Not to be confused with ``plan_execute``, which picks a model for one call: this route type makes
many calls and writes the answer itself. A planner turns the request into a structured
:class:`Plan`; an executor works through it on one conversation, with tools that plugins give.
"""

from __future__ import annotations

from collections.abc import Iterable

from switchyard_core import LintRule, hookimpl
from switchyard_planner_executor.estimate import Estimate
from switchyard_planner_executor.lint import LINT_RULES
from switchyard_planner_executor.modes import MODES, UnknownModeError, get_mode
from switchyard_planner_executor.options import PlannerExecutorOptions
from switchyard_planner_executor.plan import Plan, PlanStep, plan_digest, plan_schema
from switchyard_planner_executor.reading import PlanError, ReadPlan, read_plan, read_plan_value

__all__ = [
    "MODES",
    "Estimate",
    "Plan",
    "PlanError",
    "PlanStep",
    "PlannerExecutorOptions",
    "ReadPlan",
    "UnknownModeError",
    "get_mode",
    "plan_digest",
    "plan_schema",
    "read_plan",
    "read_plan_value",
    "switchyard_lint_rules",
]


@hookimpl
def switchyard_lint_rules() -> Iterable[LintRule]:
    """Return what a policy check says about routes of this type."""
    return LINT_RULES
