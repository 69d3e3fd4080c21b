"""Why a request goes where it goes and what is done to its body, as data and as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import unified_diff
from typing import Any

from switchyard_core.decision import Decision
from switchyard_core.engine.core import Engine
from switchyard_core.jsonio.printing import pretty
from switchyard_core.request import Request
from switchyard_core.rewrites import RewriteReport, order_rewrites

__all__ = ["Explanation", "explain", "explanation"]

_RED, _GREEN, _CYAN, _PLAIN = "\x1b[31m", "\x1b[32m", "\x1b[36m", "\x1b[0m"
_CONTEXT_LINES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """A decision, what its rewrites changed, and the bodies before and after.

    Args:
        decision: The decision.
        model: Model id as the target's provider knows it.
        reports: What each rewrite changed, in the order in which they ran.
        parameters: Parameters of each rewrite, in the same order.
        path: Path that the request is sent to.
        before: The caller's body.
        after: The body that is sent.
    """

    decision: Decision
    model: str
    reports: tuple[RewriteReport, ...]
    parameters: tuple[Mapping[str, Any], ...]
    path: str
    before: bytes
    after: bytes

    def as_json(self) -> dict[str, Any]:
        """Return the explanation as plain data; ``body`` is the outgoing body as text."""
        decision = self.decision
        return {
            "route": decision.route,
            "target": decision.target,
            "model": self.model,
            "phase": decision.phase,
            "reason": {
                "code": decision.reason.code,
                "detail": decision.reason.detail,
                "facts": dict(decision.reason.facts),
            },
            "identity": decision.trace.get("identity"),
            "warnings": [
                {"code": warning.code, "detail": warning.detail} for warning in decision.warnings
            ],
            "rewrites": [
                {
                    "name": report.name,
                    "parameters": dict(parameters),
                    "changes": list(report.changes),
                    "skipped": report.skipped,
                }
                for report, parameters in zip(self.reports, self.parameters, strict=True)
            ],
            "trace": dict(decision.trace),
            "path": self.path,
            "body": self.after.decode("utf-8", "replace"),
        }

    def diff(self) -> list[str]:
        """Return a unified diff of the caller's body and the outgoing one, one member per line.

        Numbers, escapes and key order stand there as they are in the bytes.
        """
        before, after = pretty(self.before).split("\n"), pretty(self.after).split("\n")
        skipped = _equal_start(before, after)
        # Long histories are mostly equal; difflib is only given the part that differs.
        lines = list(
            unified_diff(
                before[skipped:],
                after[skipped:],
                "caller body",
                "outgoing body",
                n=_CONTEXT_LINES,
                lineterm="",
            )
        )
        return [_moved(line, skipped) for line in lines]

    def as_text(self, *, color: bool = False) -> str:
        """Return the explanation for people: the chain from the route to the outgoing body."""
        lines = [*self._story(), ""]
        diff = self.diff()
        lines += [_colored(line) if color else line for line in diff]
        if not diff:
            lines.append("the outgoing body equals the caller's")
        return "\n".join(lines) + "\n"

    def _story(self) -> Iterator[str]:
        decision, trace = self.decision, self.decision.trace
        kind = f" ({trace['route_type']})" if "route_type" in trace else ""
        yield f"route     {decision.route}{kind}"
        yield f"identity  {_identity(trace.get('identity'))}"
        if trace.get("housekeeping"):
            yield f"side call {trace['housekeeping']}"
        yield from _calls(trace.get("calls"))
        for asked in trace.get("asked", ()):
            yield f"asked     {asked['target']}: {asked['reply']}"
        if "latched_before" in trace:
            states = ("latched" if trace[key] else "not latched" for key in _LATCH_KEYS)
            yield f"latch     {' -> '.join(states)}"
        phase = f", {decision.phase}" if decision.phase else ""
        yield f"target    {decision.target} ({self.model}){phase}"
        detail = f": {decision.reason.detail}" if decision.reason.detail else ""
        yield f"reason    {decision.reason.code}{detail}"
        for name, value in decision.reason.facts.items():
            yield f"          {name} = {value}"
        for warning in decision.warnings:
            yield f"warning   {warning.code}: {warning.detail}"
        for report in self.reports:
            yield f"rewrite   {report.name}{'' if report.changes else f': {_idle(report)}'}"
            for change in report.changes:
                yield f"          {change}"
        yield f"sent to   POST {self.path}"


_LATCH_KEYS = ("latched_before", "latched_after")


def explanation(engine: Engine, request: Request, decision: Decision) -> Explanation:
    """Return the explanation of a decision that was made; nothing is called or changed.

    Args:
        engine: Whose decision it is.
        request: The request.
        decision: From ``engine.decide(request, dry_run=True)``, or the real one.
    """
    rewritten = engine.rewrite(request, decision)
    ordered = order_rewrites(decision.rewrites, engine.registry.rewrites)
    return Explanation(
        decision=decision,
        model=rewritten.outgoing.model,
        reports=rewritten.reports,
        parameters=tuple(rewrite.parameters for rewrite in ordered),
        path=rewritten.outgoing.path,
        before=request.body,
        after=rewritten.outgoing.body,
    )


async def explain(engine: Engine, request: Request) -> Explanation:
    """Decide a request without any effect and explain it.

    Raises:
        RequestError: The request would be refused.
        PluginError: The router broke its contract.
    """
    return explanation(engine, request, await engine.decide(request, dry_run=True))


def _identity(identity: Mapping[str, Any] | None) -> str:
    if identity is None:
        return "none: nothing is remembered for this request"
    text = f"session {identity['session']} from {identity['source']}"
    if identity.get("agent") is not None:
        text += f", agent {identity['agent']} from {identity['agent_source']}"
    return text


def _calls(calls: list[Mapping[str, Any]] | None) -> Iterator[str]:
    if calls is None:
        yield "calls     not looked at"
        return
    yield f"calls     {len(calls)} in the history"
    for call in calls:
        rule = f" by {call['rule_set']}/{call['rule']}" if call.get("rule") else ""
        word = f", word `{call['word']}`" if call.get("word") else ""
        detail = f": {call['detail']}" if call.get("detail") else ""
        yield f"          {call['tool']} at {call['call']}: {call['label']}{rule}{word}{detail}"


def _idle(report: RewriteReport) -> str:
    return report.skipped or "nothing to change"


def _equal_start(before: list[str], after: list[str]) -> int:
    """Return how many lines at the start may be left out of a diff with its context."""
    pairs = enumerate(zip(before, after, strict=False))
    shorter = min(len(before), len(after))
    equal = next((number for number, (old, new) in pairs if old != new), shorter)
    return max(0, equal - _CONTEXT_LINES)


def _moved(line: str, by: int) -> str:
    """Return a line of a diff; the numbers of a hunk's head count from the whole text."""
    if not line.startswith("@@") or not by:
        return line
    words = line.split(" ")
    for place in (1, 2):
        start, comma, length = words[place][1:].partition(",")
        words[place] = f"{words[place][0]}{int(start) + by}{comma}{length}"
    return " ".join(words)


def _colored(line: str) -> str:
    color = {"+": _GREEN, "-": _RED, "@": _CYAN}.get(line[:1])
    return f"{color}{line}{_PLAIN}" if color else line
