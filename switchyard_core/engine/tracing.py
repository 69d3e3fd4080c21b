"""How a decision came about, as plain data."""

from __future__ import annotations

from typing import Any

from switchyard_core.decision import Decision, Latch
from switchyard_core.engine.runtime import RouteRuntime
from switchyard_core.router import RouteContext

__all__ = ["trace_of"]


def trace_of(
    runtime: RouteRuntime, context: RouteContext, mark: str, decision: Decision, *, dry_run: bool
) -> dict[str, Any]:
    """Return how a decision came about, as plain data."""
    identity, record = context.session.identity, context.session.record
    trace: dict[str, Any] = {
        "route": runtime.route.id,
        "route_type": runtime.route.type.name,
        "identity": None,
        "housekeeping": mark,
        "final": context.session.final,
        "latched_before": record is not None,
        "latched_after": record is not None
        or any(isinstance(effect, Latch) for effect in decision.effects),
        "calls": None,
        **decision.trace,
    }
    if identity is not None:
        trace["identity"] = {
            "session": identity.session,
            "agent": identity.agent,
            "source": identity.source,
            "agent_source": identity.agent_source,
        }
    if context.mutations.scanned:
        # An explanation lists every call; a request is not held up for those behind the first.
        verdicts = context.mutations.verdicts if dry_run else context.mutations.labelled
        trace["calls"] = [
            {
                "tool": verdict.tool,
                "call": verdict.call_path,
                "label": verdict.label,
                "rule_set": verdict.rule_set,
                "rule": verdict.rule,
                "word": verdict.word,
                "detail": verdict.detail,
            }
            for verdict in verdicts
        ]
    return trace
