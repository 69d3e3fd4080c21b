"""The texts that models are given: data files, and what is filled into them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from string import Template

from switchyard_core import ToolSpec
from switchyard_planner_executor.plan import Plan, PlanStep

__all__ = [
    "BLOCKED_TOOL",
    "blocked_tool",
    "executor_instructions",
    "planner_instructions",
    "replan_text",
    "retry_text",
    "revise_text",
    "step_text",
]

#: Name of the tool by which the executor says that a step cannot be done.
BLOCKED_TOOL = "report_blocked"


@cache
def _template(name: str) -> Template:
    text = (files("switchyard_planner_executor") / "prompts" / f"{name}.md").read_text("utf-8")
    return Template(text.strip())


def _filled(name: str, /, **values: object) -> str:
    """Fill a text in one pass: what stands in a value is never a placeholder itself."""
    return _template(name).substitute({key: str(value) for key, value in values.items()})


def planner_instructions(prompt: str | None, *, max_steps: int, searchable: bool) -> str:
    """Return the instruction of the planner.

    Args:
        prompt: The policy's own, used as it is; ``None`` for the built-in one.
        max_steps: Most steps of a plan.
        searchable: Whether a step can look something up.
    """
    name = "planner" if searchable else "planner_without_search"
    return _filled(name, max_steps=max_steps) if prompt is None else prompt


def executor_instructions(prompt: str | None) -> str:
    """Return the instruction of the executor: the policy's own as it is, or the built-in one."""
    return _filled("executor") if prompt is None else prompt


def step_text(step: PlanStep, *, query_tool: str | None) -> str:
    """Return the message of one step: its number and action, and with a query how to look it up.

    Raises:
        ValueError: The step has a query and no tool is known.
    """
    if step.query is None:
        return _filled("step", step=step.step, action=step.action)
    if query_tool is None:
        msg = f"step {step.step} has a query, and no tool to use it with is known"
        raise ValueError(msg)
    return _filled(
        "step_query", step=step.step, action=step.action, tool=query_tool, query=step.query
    )


def replan_text(
    plan: Plan,
    *,
    done: Sequence[tuple[PlanStep, str]],
    failed: PlanStep,
    why: str,
    first: int,
    max_steps: int,
) -> str:
    """Return what the planner is told when the rest of a plan is made again.

    Args:
        plan: The plan so far; only its goal is told.
        done: Steps that are done, with their results.
        failed: The step that is not.
        why: What was wrong with it.
        first: Number of the first step of the rest.
        max_steps: Most steps of the rest.
    """
    results = [f"{step.step}. {step.action}\nResult: {text}" for step, text in done]
    return _filled(
        "replan",
        goal=plan.goal,
        done="\n\n".join(results) or "none",
        failed=f"{failed.step}. {failed.action}",
        why=why,
        first=first,
        second=first + 1,
        max_steps=max_steps,
    )


def revise_text(plan: Plan, *, request: str, feedback: str) -> str:
    """Return what the planner is told when a person wants a plan changed."""
    shown = json.dumps(plan.model_dump(mode="json"), ensure_ascii=False, indent=2)
    return _filled("revise", request=request, plan=shown, feedback=feedback)


def retry_text(request: str, *, detail: str, first: int = 1) -> str:
    """Return what the planner is told when its plan could not be used.

    Args:
        request: What it was asked.
        detail: What was wrong with its answer.
        first: Number of the first step.
    """
    return _filled("retry", request=request, detail=detail, first=first)


def blocked_tool() -> ToolSpec:
    """Return the tool that the executor is offered where the rest can be planned again."""
    reason = {"type": "string", "description": _filled("blocked_reason")}
    return ToolSpec(
        name=BLOCKED_TOOL,
        description=" ".join(_filled("blocked_tool").split()),
        parameters={
            "type": "object",
            "properties": {"reason": reason},
            "required": ["reason"],
            "additionalProperties": False,
        },
    )
