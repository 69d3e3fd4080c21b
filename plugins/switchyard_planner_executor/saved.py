"""What a plan store keeps of a run that waits, as plain data."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from switchyard_core import ModelUsage, TargetView, Transcript
from switchyard_planner_executor.events import RunFinished, usage_json
from switchyard_planner_executor.plan import Plan
from switchyard_planner_executor.records import StepRecord

if TYPE_CHECKING:
    from switchyard_planner_executor.run import PlanRun

__all__ = ["executor_of", "is_for", "restore", "save", "spent"]


def save(run: PlanRun) -> dict[str, Any]:
    """Return what a run has done, and with which model."""
    return {
        "executor_model": executor_of(run.executor.target),
        "plan": run.plan.model_dump(mode="json") if run.plan is not None else None,
        "records": [{**record.as_json(), "replanned": record.replanned} for record in run.records],
        "transcript": run.executor.transcript.dumps(),
        "planner": usage_json(run.planner.usage),
        "executor": usage_json(run.executor.usage),
        "calls": run.executor.calls,
        "replans": run.replans,
    }


def is_for(state: Mapping[str, Any], target: TargetView) -> bool:
    """Return whether a run would go on with the model that it was shown with.

    A reload can put another model behind the same name: at another price, and in another wire
    format, in which the conversation so far could not be sent.
    """
    return bool(state["executor_model"] == executor_of(target))


def restore(run: PlanRun, state: Mapping[str, Any]) -> None:
    """Let a new run go on from what :func:`save` gave; what it takes from here counts apart."""
    run.plan = Plan.model_validate_json(json.dumps(state["plan"]))
    steps = {step.step: step for step in run.plan.steps}
    run.records = [
        StepRecord.from_json(steps[data["step"]], data, replanned=data["replanned"])
        for data in state["records"]
    ]
    run.executor.transcript = Transcript.loads(run.executor.target.wire_format, state["transcript"])
    run.planner.usage = ModelUsage(**state["planner"])
    run.executor.usage = ModelUsage(**state["executor"])
    run.executor.calls, run.replans = state["calls"], state["replans"]
    run.restored = run.finished()


def spent(run: PlanRun) -> RunFinished:
    """Return how a run ended, without what was spent before this request."""
    now, before = run.finished(), run.restored
    if before is None:
        return now
    return replace(
        now,
        planner=_less(now.planner, before.planner),
        executor=_less(now.executor, before.executor),
        calls=now.calls - before.calls,
    )


def _less(now: ModelUsage, before: ModelUsage) -> ModelUsage:
    return ModelUsage(
        input_tokens=now.input_tokens - before.input_tokens,
        output_tokens=now.output_tokens - before.output_tokens,
        cached_tokens=now.cached_tokens - before.cached_tokens,
    )


def executor_of(target: TargetView) -> list[str]:
    """Return what tells one executor from another: wire format, model, digest of the origin."""
    # A client's address is nobody's business where a plan is stored.
    origin = hashlib.sha256(repr(target.origin).encode("utf-8", "surrogatepass")).hexdigest()
    return [target.wire_format, target.id, origin]
