"""How ``switchyard plan`` prints a run: for people, as one result, or as its log."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Protocol, TextIO

from switchyard_planner_executor.rendering import REASONS
from switchyard_planner_executor.visible import one_line, plain_lines

__all__ = ["PRINTERS", "Printer"]


class Printer(Protocol):
    """Prints one run; everything is flushed at once, so that the plan is seen before it runs."""

    def request(self, text: str) -> None:
        """Print what was asked for."""
        ...

    def event(self, event: Mapping[str, Any]) -> None:
        """Print something that happened."""
        ...

    def waits(self, found: Mapping[str, Any], advice: str) -> None:
        """Print that a plan waits, and how it is run."""
        ...

    def finished(self, found: Mapping[str, Any]) -> None:
        """Print the end."""
        ...

    def interrupted(self) -> None:
        """Print what was done and what was not, when the user stopped it."""
        ...


#: What a step is after an event of the log.
_STATES: Mapping[str, str] = MappingProxyType(
    {"step_started": "stopped", "step_finished": "completed", "step_failed": "failed"}
)
#: The same for people.
_WORDS: Mapping[str, str] = MappingProxyType(
    {"stopped": "stopped", "completed": "done", "failed": "failed", "not_run": "not run"}
)


class _Steps:
    """What became of each step so far, from the log.

    Args:
        out: Where it is printed.
    """

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._plan: Mapping[str, Any] | None = None
        self._ended: dict[int, str] = {}

    def _note(self, event: Mapping[str, Any]) -> None:
        name = event["event"]
        if name in ("plan_created", "replanned"):
            self._plan = event["plan"]
        elif name in _STATES:
            self._ended[event["step"]] = _STATES[name]

    def _stopped(self) -> list[dict[str, Any]]:
        """Return what became of each step of a run that the user stopped, as plain data."""
        steps = (self._plan or {}).get("steps", ())
        return [
            {"step": step["step"], "status": self._ended.get(step["step"], "not_run")}
            for step in steps
        ]


class _Text(_Steps):
    """Request, plan, estimate, then each step as it ends, then totals."""

    def request(self, text: str) -> None:
        self._say(f"Request: {one_line(text)}")

    def event(self, event: Mapping[str, Any]) -> None:
        # An approved plan is told again when it runs; it was shown already.
        again = event["event"] == "plan_created" and self._plan is not None
        self._note(event)
        handler: Callable[[Mapping[str, Any]], None] | None = getattr(
            self, f"_on_{event['event']}", None
        )
        if handler is not None and not again:
            handler(event)

    def _on_plan_created(self, event: Mapping[str, Any]) -> None:
        self._show(event)

    def _on_replanned(self, event: Mapping[str, Any]) -> None:
        self._say(f"\nNew plan for the rest, because a step ended with `{event['why']}`.")
        self._show(event)

    def _show(self, event: Mapping[str, Any]) -> None:
        plan = event["plan"]
        self._say(f"\nPlan: {one_line(plan['goal'])}")
        for step in plan["steps"]:
            query = f"  (search: {one_line(step['query'])})" if step["query"] is not None else ""
            self._say(f"  {step['step']}. {one_line(step['action'])}{query}")
        if not plan["steps"]:
            self._say("  The plan has no steps.")
        self._say("\n" + event["estimate"]["text"])

    def _on_step_started(self, event: Mapping[str, Any]) -> None:
        self._say(f"\nStep {event['step']}: {one_line(event['action'])}")

    def _on_tool_returned(self, event: Mapping[str, Any]) -> None:
        state = "ok" if event["ok"] else f"failed ({event['error']})"
        self._say(f"  [{event['name']}: {state}]")

    def _on_step_finished(self, event: Mapping[str, Any]) -> None:
        self._say(textwrap.indent(plain_lines(event["result"]) or "(no text)", "  "))

    def _on_step_failed(self, event: Mapping[str, Any]) -> None:
        self._say(f"  failed: {one_line(event['error'])}")

    def waits(self, found: Mapping[str, Any], advice: str) -> None:
        if self._ended:
            self._say("\nThe new plan for the rest waits for approval: it was not run.")
            self._closing(found)
            return
        self._say(f"\nNothing ran: the plan waits for approval. {advice}")

    def finished(self, found: Mapping[str, Any]) -> None:
        if found["status"] == "planned" and not self._ended:
            self._say("\nNothing ran.")
            return
        self._closing(found)

    def _closing(self, found: Mapping[str, Any]) -> None:
        left = [s["step"] for s in found.get("steps", ()) if s["status"] == "not_run"]
        if left:
            self._say("\nNot run: " + ", ".join(f"step {number}" for number in left))
        if found["status"] == "planned":
            return
        reason = found.get("reason", "")
        if reason not in ("", "step_failed"):
            self._say(f"\nThe run ended early: {REASONS.get(reason, reason)}.")
        planner = found["usage"]["planner"]
        actual, expected = found["estimate"]["actual"], found["estimate"]["calls"]["expected"]
        calls = f"{actual['calls']} executor call{'s' * (actual['calls'] != 1)}"
        self._say(
            f"\n{found['status']}: {calls} (expected {expected}), "
            f"{actual['input_tokens']} input and {actual['output_tokens']} output tokens; "
            f"planner {planner['input_tokens']} and {planner['output_tokens']}"
        )

    def interrupted(self) -> None:
        self._say("\nStopped.")
        for step in (self._plan or {}).get("steps", ()):
            state = _WORDS[self._ended.get(step["step"], "not_run")]
            self._say(f"  {step['step']}. {one_line(step['action'])}: {state}")

    def _say(self, text: str) -> None:
        print(text, file=self._out, flush=True)


class _Json(_Steps):
    """The machine-readable part of the answer, once."""

    def request(self, text: str) -> None:
        """Print nothing: the result stands alone."""

    def event(self, event: Mapping[str, Any]) -> None:
        """Take note only."""
        self._note(event)

    def waits(self, found: Mapping[str, Any], advice: str) -> None:
        del advice
        self.finished(found)

    def finished(self, found: Mapping[str, Any]) -> None:
        print(json.dumps(found, indent=2, ensure_ascii=False), file=self._out, flush=True)

    def interrupted(self) -> None:
        self.finished({"status": "interrupted", "steps": self._stopped()})


class _JsonLines(_Steps):
    """Every event on a line of its own, as it happens."""

    def request(self, text: str) -> None:
        self._print({"event": "request", "text": text})

    def event(self, event: Mapping[str, Any]) -> None:
        self._note(event)
        self._print(event)

    def _print(self, event: Mapping[str, Any]) -> None:
        print(json.dumps(event, ensure_ascii=False), file=self._out, flush=True)

    def waits(self, found: Mapping[str, Any], advice: str) -> None:
        """Print nothing: the log has ended with the plan."""

    def finished(self, found: Mapping[str, Any]) -> None:
        """Print nothing: the last event says it."""

    def interrupted(self) -> None:
        self._print({"event": "interrupted", "steps": self._stopped()})


#: How to print, by the value of ``--output``.
PRINTERS: Mapping[str, Callable[[TextIO], Printer]] = MappingProxyType(
    {"text": _Text, "json": _Json, "jsonl": _JsonLines}
)
