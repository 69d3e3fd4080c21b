"""Make the whole plan first, then carry it out step by step.

Not to be confused with ``plan_execute``, which picks a model for one call: this route type makes
many calls and writes the answer itself. A planner turns the request into a structured
:class:`Plan`; an executor works through it in one conversation, with tools that plugins give.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from switchyard_core import LintRule, RouteType, hookimpl
from switchyard_planner_executor.options import (
    LINT_RULES,
    MODES,
    PlannerExecutorOptions,
    UnknownModeError,
    get_mode,
)
from switchyard_planner_executor.plan import (
    Plan,
    PlanError,
    PlanStep,
    UnusablePlanError,
    read_plan_value,
)
from switchyard_planner_executor.router import PlannerExecutorRouter
from switchyard_planner_executor.run import PlanRun

__all__ = [
    "MODES",
    "Plan",
    "PlanError",
    "PlanRun",
    "PlanStep",
    "PlannerExecutorOptions",
    "UnknownModeError",
    "UnusablePlanError",
    "get_mode",
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
