"""The texts that models are given: data files, and what is filled into them."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from string import Template

from switchyard_core.answering import ToolSpec
from switchyard_planner_executor.options import PlannerExecutorOptions
from switchyard_planner_executor.plan import PlanStep

__all__ = [
    "BLOCKED_TOOL",
    "blocked_tool",
    "executor_instructions",
    "filled",
    "planner_instructions",
    "step_text",
]

#: Name of the tool by which the executor says that a step cannot be done.
BLOCKED_TOOL = "report_blocked"


@cache
def _template(name: str) -> Template:
    text = (files("switchyard_planner_executor") / "prompts" / f"{name}.md").read_text("utf-8")
    return Template(text.strip())


def filled(name: str, /, **values: object) -> str:
    """Return a text of ``prompts/`` with its placeholders filled; one inside of a value stays."""
    return _template(name).substitute({key: str(value) for key, value in values.items()})


def planner_instructions(options: PlannerExecutorOptions) -> str:
    """Return the instruction of the planner: the policy's own as it is, or the built-in one."""
    name = "planner" if options.searchable else "planner_without_search"
    return options.planner_prompt or filled(name, max_steps=options.max_steps)


def executor_instructions(options: PlannerExecutorOptions) -> str:
    """Return the instruction of the executor: the policy's own as it is, or the built-in one."""
    return options.executor_prompt or filled("executor")


def step_text(step: PlanStep, *, query_tool: str | None) -> str:
    """Return the message of one step: its number and action, and with a query how to look it up."""
    if step.query is None:
        return filled("step", step=step.step, action=step.action)
    if query_tool is None:
        raise ValueError(f"step {step.step} has a query, and there is no tool for it")
    return filled(
        "step_query", step=step.step, action=step.action, tool=query_tool, query=step.query
    )


def blocked_tool() -> ToolSpec:
    """Return the tool that the executor is offered where the rest can be planned again."""
    return ToolSpec(
        name=BLOCKED_TOOL,
        description=" ".join(filled("blocked_tool").split()),
        parameters={
            "type": "object",
            "properties": {"reason": {"type": "string", "description": filled("blocked_reason")}},
            "required": ["reason"],
            "additionalProperties": False,
        },
    )
