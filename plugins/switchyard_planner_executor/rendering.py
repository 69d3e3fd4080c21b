"""A run told to people: as the answer to a caller, and as what ``switchyard plan`` prints.

What models wrote can neither hide nor move nor imitate what is around it: a person approves
what was shown. A line break in an action would look like one more step, and a control
character can clear a terminal or reverse the direction of reading.
"""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any, TextIO

from switchyard_core import DecisionWarning
from switchyard_core.answering import (
    Announced,
    AnswerEvent,
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
    StepRecord,
    as_json,
)
from switchyard_planner_executor.run import PlanRun
from switchyard_planner_executor.text import one_line, plain_lines

__all__ = ["PRINTERS", "Narrator", "Printer"]

_NO_STEPS = "The plan has no steps."
#: Why a run ended early, by its word; other words are shown as they are.
_REASONS = {
    "replans_used_up": "the plan was replaced as often as `max_replans` allows",
    "run_timeout": "it took longer than `run_timeout_s` allows",
    "plan_unusable": "the planner's new plan for the rest could not be used",
    "planner_failed": "the planner could not be asked for a new plan",
    "plan_too_costly": "the new plan for the rest may cost more than `max_cost_usd` allows",
}

#: What a step is after an event of the log.
_STATES: Mapping[str, str] = {
    "step_started": "stopped",
    "step_finished": "completed",
    "step_failed": "failed",
}
#: The same for people.
_WORDS: Mapping[str, str] = {
    "stopped": "stopped",
    "completed": "done",
    "failed": "failed",
    "not_run": "not run",
}


def _plan_lines(plan: Mapping[str, Any], *, gap: str) -> list[str]:
    lines = [f"Plan: {one_line(plan['goal'])}"]
    for step in plan["steps"]:
        query = f"{gap}(search: {one_line(step['query'])})" if step["query"] is not None else ""
        lines.append(f"{step['step']}. {one_line(step['action'])}{query}")
    return lines if plan["steps"] else [*lines, _NO_STEPS]


def _ended_early(reason: str) -> str:
    """Return a sentence about a run that ended early, ``""`` when a step failed or none did."""
    if reason in ("", "step_failed"):
        return ""
    return f"The run ended early: {_REASONS.get(reason, reason)}."


# --- for the caller ------------------------------------------------------------------------------


class Narrator:
    """Turns the events of one run into those of an answer."""

    def __init__(
        self, run: PlanRun, warnings: tuple[DecisionWarning, ...] = (), *, quiet: bool = False
    ) -> None:
        self._run = run
        self._warnings = warnings
        self._told_warnings = 0
        # One section is open from the plan on: the headers of a stream and its signs of life
        # must not wait for the last result.
        self._quiet = quiet
        self._replanned: Replanned | None = None
        self._shown: Estimate | None = None

    def tell(self, event: RunEvent) -> Iterator[AnswerEvent]:
        """Yield what one event of the run becomes."""
        # Of a rejected plan none is told, and the headers of a stream leave with a section.
        if isinstance(event, PlanCreated) or self._run.status == "rejected":
            facts = {"plan-id": self._run.plan_id, "plan-digest": self._run.digest}
            yield Announced(phase=self._run.status, facts=facts)
            yield from self._warn()
        yield Progress(as_json(event))
        if isinstance(event, PlanCreated):
            self._shown = event.estimate
            yield from self._section("plan", "Plan", _plan_text(event))
            if self._quiet:
                yield SectionStarted(kind="step", title="Result")
        elif isinstance(event, ApprovalRequired):
            text = _how_to_continue(event, begun=bool(self._run.records))
            if self._quiet and self._replanned is not None:
                yield TextDelta(f"{_plan_text(self._replanned)}\n\n{text}")
            yield from self._section("approval", "Approval", text)
        elif isinstance(event, Replanned):
            self._replanned = event
            yield from self._section("plan", "New plan", _plan_text(event))
        elif isinstance(event, StepFinished):
            yield from self._step(event.step, event.result or "(no text)")
        elif isinstance(event, StepFailed):
            stop = "" if event.error.endswith((".", "!", "?")) else "."
            yield from self._step(event.step, f"This step failed: {event.error}{stop}")
        elif isinstance(event, RunFinished):
            yield from self._finish(event)

    def _warn(self) -> Iterator[AnswerEvent]:
        warnings = (*self._warnings, *self._run.warnings)
        if len(warnings) > self._told_warnings:
            yield Announced(warnings=warnings[self._told_warnings :])
            self._told_warnings = len(warnings)

    def _step(self, number: int, text: str) -> Iterator[AnswerEvent]:
        action = next(r.step.action for r in self._run.records if r.step.step == number)
        heading = f"## Step {number}: {one_line(action)}"
        yield from self._section("step", heading, f"{heading}\n\n{text}")

    def _section(self, kind: str, title: str, text: str) -> Iterator[AnswerEvent]:
        if not self._quiet:
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
            yield Announced(facts={"steps": f"{len(run.results)}/{len(run.plan.steps)}"})
        yield Extension(self._extension(event))
        # What an earlier answer about the same plan stated is not stated again.
        yield Usage(run.spent.planner + run.spent.executor)
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
        lines = [] if run.plan.steps else [_NO_STEPS]
        ran = {record.step.step for record in run.records}
        left = [str(step.step) for step in run.plan.steps if step.step not in ran]
        if left:
            lines.append(f"Not run: step{'s' * (len(left) > 1)} {', '.join(left)}.")
        lines.append(_ended_early(event.reason))
        took = run.spent
        if self._shown is not None and took.calls:
            calls = f"{took.calls:,} model call{'s' * (took.calls != 1)}"
            lines.append(
                f"Took {calls} (expected {self._shown.calls.expected:,}), "
                f"{took.executor.input_tokens:,} input tokens (expected "
                f"{self._shown.input_tokens.expected:,}), {took.executor.output_tokens:,} output "
                f"tokens (expected {self._shown.output_tokens.expected:,})."
            )
        return "\n\n".join(line for line in lines if line)

    def _extension(self, event: RunFinished) -> dict[str, Any]:
        run = self._run
        records = {record.step.step: record for record in run.records}
        steps = run.plan.steps if run.plan is not None else ()
        return {
            "plan_id": run.plan_id,
            "plan_digest": run.digest,
            "status": event.status,
            **({"reason": event.reason} if event.reason else {}),
            "plan": run.plan.model_dump(mode="json") if run.plan is not None else None,
            "steps": [records.get(s.step, StepRecord(step=s)).as_json() for s in steps],
            "estimate": self._estimate(event),
            "usage": {"planner": asdict(event.planner), "executor": asdict(event.executor)},
            "warnings": [
                {"code": warning.code, "detail": warning.detail}
                for warning in (*self._warnings, *run.warnings)
            ],
        }

    def _estimate(self, event: RunFinished) -> dict[str, Any] | None:
        """Return what was expected when this answer began, and what it took."""
        if event.status == "planned" and self._replanned is not None:
            # What decides about an approval is what the new steps would take.
            actual = {"calls": 0, "input_tokens": 0, "output_tokens": 0}
            return {**self._replanned.estimate.as_json(), "actual": actual}
        if self._shown is None:
            return None
        took = self._run.spent
        actual = {
            "calls": took.calls,
            "input_tokens": took.executor.input_tokens,
            "output_tokens": took.executor.output_tokens,
        }
        return {**self._shown.as_json(), "actual": actual}


def _plan_text(event: PlanCreated | Replanned) -> str:
    lines = _plan_lines(event.plan.model_dump(), gap=" ")
    return "\n".join([lines[0], "", *lines[1:], "", event.estimate.as_line()])


def _how_to_continue(event: ApprovalRequired, *, begun: bool) -> str:
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


# --- for the terminal ----------------------------------------------------------------------------


class Printer:
    """Prints a run for people as it happens, flushed, so that the plan is seen before it runs."""

    def __init__(self, out: TextIO, *, verbose: bool = False) -> None:
        self._out = out
        self._estimate = "text" if verbose else "summary"
        self._steps: list[Mapping[str, Any]] | None = None
        self._states: dict[int, str] = {}

    def request(self, text: str) -> None:
        """Print what was asked for."""
        self._say(f"Request: {one_line(text)}")

    def event(self, event: Mapping[str, Any]) -> None:
        """Print something that happened, an event of the log as plain data."""
        shown = self._steps is not None
        self._note(event)
        name = event["event"]
        if name == "replanned":
            self._say(f"\nNew plan for the rest, because a step ended with `{event['why']}`.")
        # An approved plan is told again when it runs; it was shown already.
        if name == "replanned" or (name == "plan_created" and not shown):
            goal, *steps = _plan_lines(event["plan"], gap="  ")
            self._say("\n".join(["", goal, *(f"  {step}" for step in steps)]))
            self._say("\n" + event["estimate"][self._estimate])
        elif name == "step_started":
            self._say(f"\nStep {event['step']}: {one_line(event['action'])}")
        elif name == "tool_returned":
            state = "ok" if event["ok"] else f"failed ({event['error']})"
            self._say(f"  [{event['name']}: {state}]")
        elif name == "step_finished":
            self._say(textwrap.indent(plain_lines(event["result"]) or "(no text)", "  "))
        elif name == "step_failed":
            self._say(f"  failed: {one_line(event['error'])}")

    def waits(self, result: Mapping[str, Any], advice: str) -> None:
        """Print that a plan waits, and how it is run."""
        if self._states:
            self._say("\nThe new plan for the rest waits for approval: it was not run.")
            self._closing(result)
        else:
            self._say(f"\nNothing ran: the plan waits for approval. {advice}")

    def finished(self, result: Mapping[str, Any]) -> None:
        """Print the end; ``result`` is the machine-readable part of the answer."""
        if result["status"] == "planned" and not self._states:
            self._say("\nNothing ran.")
        else:
            self._closing(result)

    def interrupted(self) -> None:
        """Print what was done and what was not, when the user stopped it."""
        self._say("\nStopped.")
        for step, became in zip(self._steps or (), self._stopped(), strict=True):
            state = _WORDS[became["status"]]
            self._say(f"  {step['step']}. {one_line(step['action'])}: {state}")

    def unsaved(self, plan: Mapping[str, Any]) -> None:
        """Print a plan that could not be saved, where it was not printed yet."""

    def _note(self, event: Mapping[str, Any]) -> None:
        if event["event"] in ("plan_created", "replanned"):
            self._steps = event["plan"]["steps"]
        elif event["event"] in _STATES:
            self._states[event["step"]] = _STATES[event["event"]]

    def _stopped(self) -> list[dict[str, Any]]:
        """Return what became of each step of a run that the user stopped, as plain data."""
        numbers = [step["step"] for step in self._steps or ()]
        return [{"step": n, "status": self._states.get(n, "not_run")} for n in numbers]

    def _closing(self, result: Mapping[str, Any]) -> None:
        left = [f"step {s['step']}" for s in result.get("steps", ()) if s["status"] == "not_run"]
        if left:
            self._say(f"\nNot run: {', '.join(left)}")
        if result["status"] == "planned":
            return
        early = _ended_early(result.get("reason", ""))
        if early:
            self._say(f"\n{early}")
        planner = result["usage"]["planner"]
        actual, expected = result["estimate"]["actual"], result["estimate"]["calls"]["expected"]
        calls = f"{actual['calls']} executor call{'s' * (actual['calls'] != 1)}"
        self._say(
            f"\n{result['status']}: {calls} (expected {expected}), "
            f"{actual['input_tokens']} tokens sent and {actual['output_tokens']} received; "
            f"planner {planner['input_tokens']} and {planner['output_tokens']}"
        )

    def _say(self, text: str) -> None:
        print(text, file=self._out, flush=True)


class _JsonPrinter(Printer):
    """Prints the machine-readable part of the answer, once, and nothing else."""

    def request(self, text: str) -> None:
        pass

    def event(self, event: Mapping[str, Any]) -> None:
        self._note(event)

    def waits(self, result: Mapping[str, Any], advice: str) -> None:
        self.finished(result)
        sys.stderr.write(f"The plan waits for approval. {advice}\n")

    def finished(self, result: Mapping[str, Any]) -> None:
        self._say(json.dumps(result, indent=2, ensure_ascii=False))

    def interrupted(self) -> None:
        self.finished({"status": "interrupted", "steps": self._stopped()})

    def unsaved(self, plan: Mapping[str, Any]) -> None:
        self.finished({"status": "planned", "plan": plan})


class _JsonLinesPrinter(_JsonPrinter):
    """Prints every event on its own line, as it happens; the last one says how it ended."""

    def request(self, text: str) -> None:
        self.event({"event": "request", "text": text})

    def event(self, event: Mapping[str, Any]) -> None:
        self._note(event)
        self._say(json.dumps(event, ensure_ascii=False))

    def finished(self, result: Mapping[str, Any]) -> None:
        pass

    def interrupted(self) -> None:
        self.event({"event": "interrupted", "steps": self._stopped()})


#: How to print, by the value of ``--output``.
PRINTERS: Mapping[str, type[Printer]] = {
    "text": Printer,
    "json": _JsonPrinter,
    "jsonl": _JsonLinesPrinter,
}
