"""What happens in a run: its log of frozen events, the record of each step, what it spent.

Each event is plain data in :func:`as_json`; a file of such lines is the debug format of a run.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

from switchyard_core.answering import ModelUsage, ToolOutput
from switchyard_planner_executor.estimate import Estimate
from switchyard_planner_executor.plan import Plan, PlanStep

__all__ = [
    "ApprovalRequired",
    "PlanCreated",
    "Replanned",
    "RunEvent",
    "RunFinished",
    "Spent",
    "StepFailed",
    "StepFinished",
    "StepRecord",
    "StepStarted",
    "StepText",
    "ToolCalled",
    "ToolReturned",
    "as_json",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanCreated:
    """A plan exists, and none of it has run; ``warnings`` are codes."""

    plan_id: str
    digest: str
    plan: Plan
    estimate: Estimate
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRequired:
    """The run stops until this very plan is approved."""

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
    """A step ended without a result.

    ``code`` is ``upstream``, ``timeout``, ``run_timeout``, ``tool_rounds``, ``truncated``,
    ``refused``, ``unfamiliar_call`` or ``blocked``; ``error`` is a sentence for people.
    """

    step: int
    code: str
    error: str
    usage: ModelUsage


@dataclass(frozen=True, slots=True, kw_only=True)
class Replanned:
    """The rest of the plan was replaced after code ``why``; ``estimate`` is about the new steps."""

    plan_id: str
    digest: str
    plan: Plan
    why: str
    estimate: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFinished:
    """The end of the log, with all tokens; ``reason`` is one word for why it failed, or ``""``."""

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
        return {**value.as_json(), "text": value.as_text(), "summary": value.as_summary()}
    if isinstance(value, ModelUsage):
        return asdict(value)
    return list(value) if isinstance(value, tuple) else value


@dataclass(slots=True, kw_only=True)
class Spent:
    """Tokens of the planner and the executor, and the number of the executor's calls."""

    planner: ModelUsage = field(default_factory=ModelUsage)
    executor: ModelUsage = field(default_factory=ModelUsage)
    calls: int = 0

    def __add__(self, other: Spent) -> Spent:
        planner, executor = self.planner + other.planner, self.executor + other.executor
        return Spent(planner=planner, executor=executor, calls=self.calls + other.calls)


@dataclass(slots=True, kw_only=True)
class StepRecord:
    """What became of one step; filled in while it runs.

    ``code`` and ``error`` are those of :class:`StepFailed`, ``""`` without a failure;
    ``replanned`` says that a new plan took over from here. ``tool_calls`` have ``name``,
    ``arguments``, ``ok`` and ``ms``; ``ms`` of the step is from its first call to its end.
    """

    step: PlanStep
    status: Literal["completed", "failed", "not_run"] = "not_run"
    result: str = ""
    code: str = ""
    error: str = ""
    replanned: bool = False
    tool_calls: list[dict[str, Any]] = field(default_factory=list)
    usage: ModelUsage = field(default_factory=ModelUsage)
    ms: float = 0.0

    def note_tool(self, output: ToolOutput) -> None:
        """Note a tool call that ended."""
        call, ms = output.call, round(output.ms, 1)
        self.tool_calls.append(
            {"name": call.name, "arguments": call.arguments, "ok": output.ok, "ms": ms}
        )

    def as_json(self) -> dict[str, Any]:
        """Return the record as the answer's machine-readable part shows it."""
        return {
            "step": self.step.step,
            "status": self.status,
            "result": self.result,
            "error": self.error or None,
            "tool_calls": [dict(call) for call in self.tool_calls],
            "usage": asdict(self.usage),
            "ms": round(self.ms, 1),
        }
