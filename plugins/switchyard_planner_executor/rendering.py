"""A run told to the caller: its events become sections of text and one machine-readable object."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from switchyard_core import (
    Announced,
    AnswerEvent,
    DecisionWarning,
    Extension,
    Finished,
    Progress,
    SectionFinished,
    SectionStarted,
    TextDelta,
    Usage,
)
from switchyard_planner_executor.estimate import Estimate
from switchyard_planner_executor.events import (
    ApprovalRequired,
    PlanCreated,
    Replanned,
    RunEvent,
    RunFinished,
    StepFailed,
    StepFinished,
    as_json,
    usage_json,
)
from switchyard_planner_executor.plan import Plan
from switchyard_planner_executor.run import PlanRun
from switchyard_planner_executor.saved import spent
from switchyard_planner_executor.visible import one_line

__all__ = ["REASONS", "Narrator", "plan_text"]


class Narrator:
    """Turns the events of one run into those of an answer.

    Args:
        run: The run; read when it ends.
        waits: Whether the plan that is shown waits for approval.
        last_step: Whether the text is the last step's alone.
        warnings: What the caller should know besides what the run says.
    """

    def __init__(
        self,
        run: PlanRun,
        *,
        waits: bool,
        last_step: bool,
        warnings: tuple[DecisionWarning, ...] = (),
    ) -> None:
        self._run = run
        self._waits = waits
        self._last_step = last_step
        self._warnings = warnings
        self._told = 0
        # With `last_step` one section is open from the plan on: the headers of a stream and its
        # signs of life must not wait for the last result.
        self._quiet = last_step and not waits
        self._replanned: Replanned | None = None
        self._shown: Estimate | None = None

    def tell(self, event: RunEvent) -> Iterator[AnswerEvent]:
        """Yield what one event of the run becomes."""
        if isinstance(event, PlanCreated):
            yield from self._announce("planned" if self._waits else "running")
        elif isinstance(event, RunFinished) and event.status == "rejected":
            # No plan was announced, and the headers of a stream leave with the first section.
            yield from self._announce("rejected")
        yield Progress(as_json(event))
        if isinstance(event, PlanCreated):
            self._shown = event.estimate
            yield from self._section("plan", "Plan", plan_text(event.plan, event.estimate))
            if self._quiet:
                yield SectionStarted(kind="step", title="Result")
        elif isinstance(event, ApprovalRequired):
            text = _how_to_go_on(event, begun=bool(self._run.records))
            if self._quiet:
                new = self._replanned
                shown = "" if new is None else f"{plan_text(new.plan, new.estimate)}\n\n"
                yield TextDelta(f"{shown}{text}")
            yield from self._section("approval", "Approval", text)
        elif isinstance(event, Replanned):
            self._replanned = event
            yield from self._section("plan", "New plan", plan_text(event.plan, event.estimate))
        elif isinstance(event, StepFinished):
            yield from self._step(event.step, event.result or "(no text)")
        elif isinstance(event, StepFailed):
            yield from self._step(event.step, f"This step failed: {self._error(event)}")
        elif isinstance(event, RunFinished):
            yield from self._finish(event)

    def _announce(self, phase: str) -> Iterator[AnswerEvent]:
        facts = {"plan-id": self._run.plan_id, "plan-digest": self._run.digest}
        yield Announced(phase=phase, facts=facts)
        yield from self._warn()

    def _warn(self) -> Iterator[AnswerEvent]:
        """Announce the warnings that were not announced yet."""
        warnings = (*self._warnings, *self._run.warnings)
        if len(warnings) > self._told:
            yield Announced(warnings=warnings[self._told :])
            self._told = len(warnings)

    def _error(self, event: StepFailed) -> str:
        # A re-plan that failed as well adds to the record, not to the event.
        return event.error if event.error.endswith((".", "!", "?")) else f"{event.error}."

    def _step(self, number: int, text: str) -> Iterator[AnswerEvent]:
        action = one_line(next(r.step.action for r in self._run.records if r.step.step == number))
        heading = f"## Step {number}: {action}"
        yield from self._section("step", heading, f"{heading}\n\n{text}")

    def _section(self, kind: str, title: str, text: str) -> Iterator[AnswerEvent]:
        if self._quiet:
            return
        yield SectionStarted(kind=kind, title=title)
        yield TextDelta(text)
        yield SectionFinished()

    def _finish(self, event: RunFinished) -> Iterator[AnswerEvent]:
        run = self._run
        closing = self._closing(event)
        if closing:
            yield from self._section("summary", "Summary", closing)
        if self._quiet:
            if event.status != "planned":
                yield TextDelta(self._last_text() or closing)
            yield SectionFinished()
        yield from self._warn()
        if run.plan is not None:
            done = sum(record.status == "completed" for record in run.records)
            yield Announced(facts={"steps": f"{done}/{len(run.plan.steps)}"})
        yield Extension(self._extension(event))
        # What an earlier answer of the same plan stated is not stated again.
        took = spent(run)
        yield Usage(took.planner + took.executor)
        yield Finished(event.status)

    def _last_text(self) -> str:
        for record in reversed(self._run.records):
            if record.status == "completed":
                return record.result
            if record.status == "failed":
                return f"Step {record.step.step} failed: {record.error}"
        return ""

    def _closing(self, event: RunFinished) -> str:
        run = self._run
        if event.status == "rejected":
            rest = "no further step of it runs" if run.records else "nothing of it ran"
            return f"The plan was rejected: {rest}."
        if run.plan is None or event.status == "planned":
            return ""
        lines = []
        if not run.plan.steps:
            lines.append("The plan has no steps.")
        ran = {record.step.step for record in run.records}
        left = [str(step.step) for step in run.plan.steps if step.step not in ran]
        if left:
            lines.append(f"Not run: step{'s' * (len(left) > 1)} {', '.join(left)}.")
        if event.reason and event.reason != "step_failed":
            lines.append(f"The run ended early: {REASONS.get(event.reason, event.reason)}.")
        took = spent(run)
        if self._shown is not None and took.calls:
            calls = f"{took.calls:,} model call{'s' * (took.calls != 1)}"
            lines.append(
                f"Took {calls} (expected {self._shown.calls.expected:,}), "
                f"{took.executor.input_tokens:,} input tokens (expected "
                f"{self._shown.input_tokens.expected:,}), {took.executor.output_tokens:,} output "
                f"tokens (expected {self._shown.output_tokens.expected:,})."
            )
        return "\n\n".join(lines)

    def _extension(self, event: RunFinished) -> dict[str, Any]:
        run = self._run
        plan = run.plan
        records = {record.step.step: record.as_json() for record in run.records}
        steps = (
            []
            if plan is None
            else [records.get(step.step) or _not_run(step.step) for step in plan.steps]
        )
        # Beside what was expected when this answer began: of a run that had waited, the rest.
        took = spent(run)
        actual = {
            "calls": took.calls,
            "input_tokens": took.executor.input_tokens,
            "output_tokens": took.executor.output_tokens,
        }
        waiting = self._replanned if event.status == "planned" else None
        if waiting is not None:
            # What decides about an approval is what the new steps would take.
            estimate: dict[str, Any] | None = waiting.estimate.as_json()
            actual = {"calls": 0, "input_tokens": 0, "output_tokens": 0}
        else:
            estimate = self._shown.as_json() if self._shown is not None else None
        return {
            "plan_id": run.plan_id,
            "plan_digest": run.digest,
            "status": event.status,
            **({"reason": event.reason} if event.reason else {}),
            "plan": plan.model_dump(mode="json") if plan is not None else None,
            "steps": steps,
            "estimate": None if estimate is None else {**estimate, "actual": actual},
            "usage": {
                "planner": usage_json(event.planner),
                "executor": usage_json(event.executor),
            },
            "warnings": [
                {"code": warning.code, "detail": warning.detail}
                for warning in (*self._warnings, *run.warnings)
            ],
        }


#: Why a run ended early, by its word, for people.
REASONS = {
    "replans_used_up": "the plan was replaced as often as `max_replans` allows",
    "run_timeout": "it took longer than `run_timeout_s` allows",
    "plan_unusable": "the planner's new plan for the rest could not be used",
    "planner_failed": "the planner could not be asked for a new plan",
    "plan_too_costly": "the new plan for the rest may cost more than `max_cost_usd` allows",
}


def _not_run(number: int) -> dict[str, Any]:
    return {
        "step": number,
        "status": "not_run",
        "result": "",
        "error": None,
        "tool_calls": [],
        "usage": {"input_tokens": 0, "output_tokens": 0, "cached_tokens": 0},
        "ms": 0.0,
    }


def plan_text(plan: Plan, estimate: Estimate) -> str:
    """Return a plan for people: goal, every action with its query, what it would take."""
    lines = [f"Plan: {one_line(plan.goal)}", ""]
    for step in plan.steps:
        query = f" (search: {one_line(step.query)})" if step.query is not None else ""
        lines.append(f"{step.step}. {one_line(step.action)}{query}")
    if not plan.steps:
        lines.append("The plan has no steps.")
    return "\n".join([*lines, "", estimate.as_line()])


def _how_to_go_on(event: ApprovalRequired, *, begun: bool) -> str:
    approve = f"`x-switchyard-plan: approve {event.plan_id} {event.digest}`"
    if begun:
        return (
            "Nothing of the new steps has run. To run them, send a request with the header "
            f"{approve}; `reject {event.plan_id}` ends the run here."
        )
    return (
        f"Nothing of this plan has run. To run it, send a request with the header {approve}; "
        f"`reject {event.plan_id}` drops it, `revise {event.plan_id}` makes another one from what "
        "your message says."
    )
