"""What became of each step of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from switchyard_core import ModelUsage, ToolOutput
from switchyard_planner_executor.events import usage_json
from switchyard_planner_executor.plan import PlanStep

__all__ = ["StepRecord"]

StepStatus = Literal["completed", "failed", "not_run"]


@dataclass(slots=True, kw_only=True)
class StepRecord:
    """One step and its result; filled in while it runs.

    Args:
        step: The step.
        status: ``not_run`` until it ended.
        result: What the executor answered, ``""`` before.
        code: Word for its failure, ``""`` without one.
        error: The failure for people.
        replanned: Whether a new plan took over from here.
        tool_calls: Its tool calls with their results.
        usage: Tokens of its calls.
        ms: Milliseconds from its first call to its end.
    """

    step: PlanStep
    status: StepStatus = "not_run"
    result: str = ""
    code: str = ""
    error: str = ""
    replanned: bool = False
    tool_calls: list[dict[str, Any]] = field(default_factory=list)
    usage: ModelUsage = field(default_factory=ModelUsage)
    ms: float = 0.0

    def note_tool(self, output: ToolOutput) -> None:
        """Note a tool call that ended."""
        self.tool_calls.append(
            {
                "name": output.call.name,
                "arguments": output.call.arguments,
                "ok": output.ok,
                "ms": round(output.ms, 1),
            }
        )

    def as_json(self) -> dict[str, Any]:
        """Return the record as plain data, as the answer's extension shows it."""
        return {
            "step": self.step.step,
            "status": self.status,
            "result": self.result,
            "error": self.error or None,
            "tool_calls": [dict(call) for call in self.tool_calls],
            "usage": usage_json(self.usage),
            "ms": round(self.ms, 1),
        }

    @classmethod
    def from_json(cls, step: PlanStep, data: Mapping[str, Any], replanned: bool) -> StepRecord:  # noqa: FBT001  # restores one stored fact
        """Return a record that :meth:`as_json` wrote."""
        return cls(
            step=step,
            status=data["status"],
            result=data["result"],
            error=data["error"] or "",
            replanned=replanned,
            tool_calls=[dict(call) for call in data["tool_calls"]],
            usage=ModelUsage(**data["usage"]),
            ms=data["ms"],
        )
