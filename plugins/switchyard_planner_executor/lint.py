"""What a policy check says about ``planner_executor`` routes beyond their single keys."""

from __future__ import annotations

from collections.abc import Iterator

from switchyard_core import Finding, LintRule, Policy
from switchyard_planner_executor.options import PlannerExecutorOptions

__all__ = ["LINT_RULES", "unguarded_side_effects", "unpriced_targets", "without_effect"]


def _routes(policy: Policy) -> Iterator[tuple[str, PlannerExecutorOptions]]:
    for name, route in policy.routes.items():
        if isinstance(route.options, PlannerExecutorOptions):
            yield name, route.options


def unguarded_side_effects(policy: Policy) -> Iterator[Finding]:
    """Yield tools that change something on a route where no person has seen what will run.

    A plan that is made before any untrusted text is read, approved, and never changed cannot
    be made to do more by what a tool returns. Without approval nobody has looked at it; with
    ``mode = "replan"`` the next plan is made after tool results were read.
    """
    for route, options in _routes(policy):
        why, fix = "", 'write `approval = "always"`'
        if options.mode == "replan":
            why = 'with `mode = "replan"`, where what a tool returns can add steps'
            fix = 'use `mode = "plan_then_execute"`, or leave the tool out'
        elif options.approval != "always":
            why = f'with `approval = "{options.approval}"`, where plans run that nobody has seen'
        for index, name in enumerate(options.tools if why else ()):
            tool = policy.tools.get(name)
            if tool is not None and tool.side_effects:
                yield policy.finding(
                    "PLEX001",
                    f"the tool `{name}` has side effects and is offered {why}",
                    ("routes", route, "tools", index),
                    fix=fix,
                )


def without_effect(policy: Policy) -> Iterator[Finding]:
    """Yield keys that are written down and change nothing, because another key is as it is."""
    for route, options in _routes(policy):
        for key, idle, needs in _idle(options):
            if idle and key in options.model_fields_set:
                yield policy.finding(
                    "PLEX002",
                    f"`{key}` has no effect without {needs}",
                    ("routes", route, key),
                    fix=f"remove `{key}`, or write {needs}",
                )


def _idle(options: PlannerExecutorOptions) -> tuple[tuple[str, bool, str], ...]:
    """Return keys with whether they are idle now, and what they need."""
    steady, free = options.mode != "replan", options.approval == "none"
    replan, approval = '`mode = "replan"`', 'an `approval` other than "none"'
    return (
        ("max_replans", steady, replan),
        ("replan_approval", steady, replan),
        ("replan_approval", free and not steady, approval),
        ("allow_caller_plans", options.approval != "always", '`approval = "always"`'),
    )


def unpriced_targets(policy: Policy) -> Iterator[Finding]:
    """Yield executors without a price on routes that compare what a plan may cost with a limit."""
    for route, options in _routes(policy):
        key = "approval" if options.approval == "over_cost" else "max_cost_usd"
        if key == "max_cost_usd" and options.max_cost_usd is None:
            continue
        name = options.executor_target
        target = policy.targets[name]
        if target.id not in policy.prices:
            yield policy.finding(
                "SY316",
                f"`{key}` compares costs, and the target `{name}` has no price",
                ("routes", route, "executor_target"),
                severity="error",
                fix=f'add `[prices."{target.id}"]` with `as_of`, `input` and `output`, '
                f"or remove `{key}`",
            )


#: The rules of this plugin. What an error says has a code of its own, so that no comment in a
#: policy can switch it off.
LINT_RULES = (
    LintRule(
        code="PLEX001",
        name="unguarded-side-effects",
        check=unguarded_side_effects,
        summary="finds tools with side effects on routes without a fixed, approved plan",
    ),
    LintRule(
        code="PLEX002",
        name="setting-without-effect",
        check=without_effect,
        summary="finds keys that another key of the route makes idle",
    ),
    LintRule(
        code="PLEX003",
        name="unpriced-target",
        check=unpriced_targets,
        summary="finds executors without a price on routes that compare costs (SY316)",
        severity="error",
    ),
)
