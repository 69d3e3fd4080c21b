"""What of a caller's request reaches a run beside the task."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from switchyard_core import (
    DecisionWarning,
    Request,
    RouteContext,
    WireFormat,
    left_out_sampling,
)
from switchyard_planner_executor.caller import CallerSettings, caller_settings, caller_warnings
from switchyard_planner_executor.options import PlannerExecutorOptions
from switchyard_planner_executor.run import PlanRun

__all__ = ["Caller"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """What the caller says beside the task.

    Args:
        settings: Sampling and limits, for the executor.
        instructions: The caller's instructions for the executor, ``""`` for none.
        warnings: What of the request reaches no model.
    """

    settings: CallerSettings
    instructions: str
    warnings: tuple[DecisionWarning, ...]

    @classmethod
    def of(cls, request: Request, options: PlannerExecutorOptions, context: RouteContext) -> Caller:
        """Return it for a request."""
        keeps = options.caller_instructions == "executor"
        settings = caller_settings(request)
        return cls(
            settings=settings,
            instructions=request.instructions if keeps else "",
            warnings=(
                *caller_warnings(request, keeps_instructions=keeps),
                *_left_out(settings, context.targets[options.executor_target].wire_format),
            ),
        )

    def run(
        self, options: PlannerExecutorOptions, context: RouteContext, plan_id: str = ""
    ) -> PlanRun:
        """Return a run for it."""
        return PlanRun(
            options,
            context,
            plan_id=plan_id,
            settings=self.settings,
            instructions=self.instructions,
        )


def _left_out(settings: CallerSettings, wire_format: WireFormat) -> Iterator[DecisionWarning]:
    """Yield a warning for settings that the executor's format has no place for."""
    names = left_out_sampling(wire_format, settings.sampling)
    if names:
        detail = f"the executor's wire format has no place for: {', '.join(names)}"
        yield DecisionWarning(code="sampling_left_out", detail=detail)
