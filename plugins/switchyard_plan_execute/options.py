"""The keys of a ``plan_execute`` route."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from switchyard_core import LabelName, LatchOptions, Prompt, RuleSetName, TargetName

__all__ = ["PlanExecuteOptions"]


class PlanExecuteOptions(LatchOptions):
    """Options of ``type = "plan_execute"``.

    Args:
        capable_target: Serves every request until the first edit.
        efficient_target: Serves the session from the first edit on.
        planning_prompt: Replaces the built-in planning instruction.
        planning_prompt_position: ``append`` puts it after the caller's own instructions.
        handoff_prompt: A user's text that is added to the handoff request only.
        planner_reasoning_as_text: Turns the planner's visible reasoning into assistant text
            from the handoff on.
        reasoning_text_max_chars: Most characters of such text in all; the newest are kept.
        opaque_reasoning: Whether the planner's opaque reasoning is sent to the executor;
            ``auto`` keeps it where both share an origin.
        mutation_rules: Rule sets that label tool calls, tried in order.
        handoff_on: Labels that end planning.
        on_missing_history: Whether a request that continues by id is served with a warning
            or rejected.
        on_origin_bound: What happens to a history with compactions, files or references to items
            that only the planner's provider can read, at another provider: the planner
            serves it, they are removed, or they are sent as they are.
    """

    capable_target: TargetName
    efficient_target: TargetName
    planning_prompt: Prompt | None = None
    planning_prompt_position: Literal["prepend", "append"] = "prepend"
    handoff_prompt: Prompt | None = None
    planner_reasoning_as_text: bool = False
    reasoning_text_max_chars: int = Field(default=16000, ge=0)
    opaque_reasoning: Literal["auto", "keep", "drop"] = "auto"
    mutation_rules: list[RuleSetName] = Field(default=["coding_agents"], min_length=1)
    handoff_on: list[LabelName] = Field(default=["file_edit"], min_length=1)
    on_missing_history: Literal["warn", "reject"] = "warn"
    on_origin_bound: Literal["stay", "drop", "send"] = "stay"
