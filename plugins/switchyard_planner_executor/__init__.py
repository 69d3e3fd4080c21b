"""Make the whole plan first, then carry it out step by step.

Not to be confused with ``plan_execute``, which picks a model for one call: this route type makes
many calls and writes the answer itself. A planner turns the request into a structured
:class:`Plan`; an executor works through it on one conversation, with tools that plugins give.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from switchyard_core import LintRule, RouteType, hookimpl
from switchyard_planner_executor.estimate import Estimate
from switchyard_planner_executor.lint import LINT_RULES
from switchyard_planner_executor.modes import MODES, UnknownModeError, get_mode
from switchyard_planner_executor.options import PlannerExecutorOptions
from switchyard_planner_executor.pending import MAX_REVISIONS
from switchyard_planner_executor.plan import Plan, PlanStep, plan_digest, plan_schema
from switchyard_planner_executor.reading import PlanError, ReadPlan, read_plan, read_plan_value
from switchyard_planner_executor.router import PlannerExecutorRouter
from switchyard_planner_executor.run import PlanRun

__all__ = [
    "MAX_REVISIONS",
    "MODES",
    "Estimate",
    "Plan",
    "PlanError",
    "PlanRun",
    "PlanStep",
    "PlannerExecutorOptions",
    "PlannerExecutorRouter",
    "ReadPlan",
    "UnknownModeError",
    "get_mode",
    "plan_digest",
    "plan_schema",
    "read_plan",
    "read_plan_value",
    "switchyard_lint_rules",
    "switchyard_register_commands",
    "switchyard_route_types",
]


@hookimpl
def switchyard_lint_rules() -> Iterable[LintRule]:
    """Return what a policy check says about routes of this type."""
    return LINT_RULES


@hookimpl
def switchyard_route_types() -> Iterable[RouteType]:
    """Return the route type ``planner_executor``."""
    return (
        RouteType(
            name="planner_executor",
            options=PlannerExecutorOptions,
            router=PlannerExecutorRouter,
            summary="answers with a whole plan, then runs it step by step (not `plan_execute`)",
            kind="answers",
        ),
    )


@hookimpl
def switchyard_register_commands(cli: Any) -> None:
    """Add ``switchyard plan``."""
    from switchyard_planner_executor.command import command  # noqa: PLC0415  # only the CLI needs it

    cli.add_command(command)
