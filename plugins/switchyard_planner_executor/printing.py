"""How ``switchyard plan`` prints a run: for people, as one result, or as its log."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Protocol, TextIO

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


class _Text:
    """Request, plan, estimate, then each step as it ends, then totals."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._plan: Mapping[str, Any] | None = None
        self._ended: dict[int, str] = {}

    def request(self, text: str) -> None:
        self._say(f"Request: {text}")

    def event(self, event: Mapping[str, Any]) -> None:
        handler: Callable[[Mapping[str, Any]], None] | None = getattr(
            self, f"_on_{event['event']}", None
        )
        if handler is not None:
            handler(event)

    def _on_plan_created(self, event: Mapping[str, Any]) -> None:
        # An approved plan is told again when it runs; it was shown already.
        if self._plan is None:
            self._show(event)

    def _on_replanned(self, event: Mapping[str, Any]) -> None:
        self._say(f"\nNew plan for the rest, because a step ended with `{event['why']}`.")
        self._show(event)

    def _show(self, event: Mapping[str, Any]) -> None:
        plan = self._plan = event["plan"]
        self._say(f"\nPlan: {plan['goal']}")
        for step in plan["steps"]:
            query = f"  (search: {step['query']})" if step["query"] is not None else ""
            self._say(f"  {step['step']}. {step['action']}{query}")
        if not plan["steps"]:
            self._say("  The plan has no steps.")
        self._say("\n" + event["estimate"]["text"])

    def _on_step_started(self, event: Mapping[str, Any]) -> None:
        self._ended[event["step"]] = "stopped"
        self._say(f"\nStep {event['step']}: {event['action']}")

    def _on_tool_returned(self, event: Mapping[str, Any]) -> None:
        state = "ok" if event["ok"] else f"failed ({event['error']})"
        self._say(f"  [{event['name']}: {state}]")

    def _on_step_finished(self, event: Mapping[str, Any]) -> None:
        self._ended[event["step"]] = "done"
        self._say(textwrap.indent(event["result"] or "(no text)", "  "))

    def _on_step_failed(self, event: Mapping[str, Any]) -> None:
        self._ended[event["step"]] = "failed"
        self._say(f"  failed: {event['error']}")

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
        planner, executor = found["usage"]["planner"], found["usage"]["executor"]
        actual, expected = found["estimate"]["actual"], found["estimate"]["calls"]["expected"]
        self._say(
            f"\n{found['status']}: {actual['calls']} executor calls (expected {expected}), "
            f"{executor['input_tokens']} input and {executor['output_tokens']} output tokens; "
            f"planner {planner['input_tokens']} and {planner['output_tokens']}"
        )

    def interrupted(self) -> None:
        self._say("\nStopped.")
        for step in (self._plan or {}).get("steps", ()):
            state = self._ended.get(step["step"], "not run")
            self._say(f"  {step['step']}. {step['action']}: {state}")

    def _say(self, text: str) -> None:
        print(text, file=self._out, flush=True)


class _Json:
    """The machine-readable part of the answer, once."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def request(self, text: str) -> None:
        """Print nothing: the result stands alone."""

    def event(self, event: Mapping[str, Any]) -> None:
        """Print nothing."""

    def waits(self, found: Mapping[str, Any], advice: str) -> None:
        del advice
        self.finished(found)

    def finished(self, found: Mapping[str, Any]) -> None:
        print(json.dumps(found, indent=2, ensure_ascii=False), file=self._out, flush=True)

    def interrupted(self) -> None:
        """Print nothing: there is no result."""


class _JsonLines:
    """Every event on a line of its own, as it happens."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def request(self, text: str) -> None:
        self.event({"event": "request", "text": text})

    def event(self, event: Mapping[str, Any]) -> None:
        print(json.dumps(event, ensure_ascii=False), file=self._out, flush=True)

    def waits(self, found: Mapping[str, Any], advice: str) -> None:
        """Print nothing: the log has ended with the plan."""

    def finished(self, found: Mapping[str, Any]) -> None:
        """Print nothing: the last event says it."""

    def interrupted(self) -> None:
        self.event({"event": "interrupted"})


#: How to print, by the value of ``--output``.
PRINTERS: Mapping[str, Callable[[TextIO], Printer]] = MappingProxyType(
    {"text": _Text, "json": _Json, "jsonl": _JsonLines}
)
