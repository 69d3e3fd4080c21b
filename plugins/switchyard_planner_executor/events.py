"""What happens in a run, as one ordered log of frozen events.

Each event is plain data in :func:`as_json`; a file of such lines is the debug format of a run.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from switchyard_core import ModelUsage
from switchyard_planner_executor.estimate import Estimate
from switchyard_planner_executor.plan import Plan

__all__ = [
    "ApprovalRequired",
    "PlanCreated",
    "Replanned",
    "RunEvent",
    "RunFinished",
    "StepFailed",
    "StepFinished",
    "StepStarted",
    "StepText",
    "ToolCalled",
    "ToolReturned",
    "as_json",
    "usage_json",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanCreated:
    """A plan is there, and nothing of it has run.

    Args:
        plan_id: Its id.
        digest: Digest of the plan and of what it would be run with.
        plan: The plan.
        estimate: What running it would take.
        warnings: Codes of what was odd about it.
    """

    plan_id: str
    digest: str
    plan: Plan
    estimate: Estimate
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRequired:
    """The run stops until somebody approves this very plan."""

    plan_id: str
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepStarted:
    """A step begins."""

    step: int
    action: str
    query: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepText:
    """Text of a step's result."""

    step: int
    delta: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCalled:
    """The model asks for a tool; ``arguments`` is JSON text."""

    step: int
    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolReturned:
    """A tool call ended, after ``ms`` milliseconds; ``error`` is ``""`` when it is ``ok``."""

    step: int
    name: str
    ok: bool
    ms: float
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFinished:
    """A step has its result."""

    step: int
    result: str
    usage: ModelUsage


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFailed:
    """A step has none.

    Args:
        step: Its number.
        code: One word: ``upstream``, ``timeout``, ``run_timeout``, ``tool_rounds``,
            ``truncated``, ``refused``, ``unfamiliar_call`` or ``blocked``.
        error: One sentence for people.
        usage: Tokens of what it tried.
    """

    step: int
    code: str
    error: str
    usage: ModelUsage


@dataclass(frozen=True, slots=True, kw_only=True)
class Replanned:
    """The rest of the plan was replaced.

    Args:
        plan_id: Id of the plan.
        digest: The new digest.
        plan: The new plan: the steps that ran, then the new ones.
        why: Code of the failure that led to it.
        estimate: What the new steps would take.
    """

    plan_id: str
    digest: str
    plan: Plan
    why: str
    estimate: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFinished:
    """The end of the log.

    Args:
        status: ``planned``, ``completed``, ``failed`` or ``rejected``.
        reason: Why it failed, a word; ``""`` otherwise.
        planner: Tokens of the planner's calls.
        executor: Tokens of the executor's calls.
        calls: Executor calls that were made.
    """

    status: str
    reason: str
    planner: ModelUsage
    executor: ModelUsage
    calls: int


RunEvent = (
    PlanCreated
    | ApprovalRequired
    | StepStarted
    | StepText
    | ToolCalled
    | ToolReturned
    | StepFinished
    | StepFailed
    | Replanned
    | RunFinished
)

_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")


def as_json(event: RunEvent) -> dict[str, Any]:
    """Return an event as plain data; ``event`` is its name in snake_case."""
    name = _CAPITAL.sub("_", type(event).__name__).lower()
    return {"event": name, **{f.name: _plain(getattr(event, f.name)) for f in fields(event)}}


def _plain(value: Any) -> Any:
    if isinstance(value, Plan):
        return value.model_dump(mode="json")
    if isinstance(value, Estimate):
        return {**value.as_json(), "text": value.as_text()}
    if isinstance(value, ModelUsage):
        return usage_json(value)
    if isinstance(value, tuple):
        return list(value)
    return value


def usage_json(usage: ModelUsage) -> Mapping[str, int]:
    """Return tokens as plain data."""
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cached_tokens": usage.cached_tokens,
    }
