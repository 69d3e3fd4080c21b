"""A recorded conversation at a glance: its phases, and what decided each request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from typing import Any

from switchyard_core.explain.explanation import Question
from switchyard_core.workbench.rehearsal import Rehearsed

__all__ = ["Entry", "Timeline", "entry_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One request of a timeline.

    Args:
        number: Its place in the conversation, from 1.
        route: Name of its route, ``""`` when it was refused before it had one.
        session: Session id, ``None`` when it has none.
        agent: Agent id of a sub-agent.
        phase: The router's word; ``refused`` and ``would ask`` when there is no answer.
        target: Name of the target, ``""`` for a refused request.
        reason: Code of the reason, or of the error.
        detail: What decided, for people.
        call: Wire path of the call that decided, ``""`` when none did.
        tool: Its tool.
        label: Its label.
        rule_set: Rule set that labelled it.
        rule: Rule that labelled it.
        word: What decided inside its arguments.
        latch: ``set``, ``held``, ``freed``, or ``""`` when the session is not latched.
        latched_before: Whether the session was latched before the request.
        latched_after: Whether it is after it.
    """

    number: int
    route: str = ""
    session: str | None = None
    agent: str | None = None
    phase: str = ""
    target: str = ""
    reason: str = ""
    detail: str = ""
    call: str = ""
    tool: str = ""
    label: str = ""
    rule_set: str = ""
    rule: str = ""
    word: str = ""
    latch: str = ""
    latched_before: bool = False
    latched_after: bool = False


#: Facts of a reason that say which call decided.
_FACTS = ("call", "tool", "label", "rule_set", "rule", "word")


def entry_of(number: int, played: Rehearsed) -> Entry:
    """Return the entry of a request that was played.

    Args:
        number: Its place in the conversation, from 1.
        played: What became of it.
    """
    found, error = played.found, played.error
    if isinstance(found, Question):
        return Entry(
            number=number,
            route=found.route,
            phase="would ask",
            target=found.target,
            reason="no reply",
            detail=f"give one with --reply {found.target}=FILE",
        )
    if found is None:
        code, message = (error.code, error.message) if error is not None else ("", "")
        return Entry(number=number, phase="refused", reason=code, detail=message)
    decision, identity = found.decision, found.decision.identity
    before = bool(decision.trace.get("latched_before"))
    after = bool(decision.trace.get("latched_after"))
    entry = Entry(
        number=number,
        route=decision.route,
        session=identity.session if identity is not None else None,
        agent=identity.agent if identity is not None else None,
        latched_before=before,
    )
    if error is not None:
        return replace(
            entry, phase="refused", reason=error.code, detail=error.message, latched_after=before
        )
    facts: dict[str, Any] = {
        key: str(decision.reason.facts[key]) for key in _FACTS if key in decision.reason.facts
    }
    return replace(
        entry,
        phase=decision.phase,
        target=decision.target,
        reason=decision.reason.code,
        detail=decision.reason.detail,
        latched_after=after and not played.released,
        latch="freed" if played.released else "held" if before else "set" if after else "",
        **facts,
    )


class Timeline:
    """The requests of a conversation in order.

    Args:
        entries: One of each request.
    """

    def __init__(self, entries: Sequence[Entry]) -> None:
        self.entries = tuple(entries)

    def phases(self) -> Iterator[tuple[str, str, tuple[Entry, ...]]]:
        """Yield phase, target and entries of each run of requests that went the same way."""
        for (phase, target), run in groupby(self.entries, lambda each: (each.phase, each.target)):
            yield phase, target, tuple(run)

    def as_json(self) -> dict[str, Any]:
        """Return the timeline as plain data."""
        return {
            "requests": [asdict(entry) for entry in self.entries],
            "phases": [
                {
                    "phase": phase,
                    "target": target,
                    "first": run[0].number,
                    "last": run[-1].number,
                }
                for phase, target, run in self.phases()
            ],
        }

    def as_text(self) -> str:
        """Return the timeline for people: a headline for each phase, a line for each request."""
        sessions = {entry.session for entry in self.entries} - {None}
        count = len(self.entries)
        requests = f"{count} request" if count == 1 else f"{count} requests"
        of = f", {len(sessions)} sessions" if len(sessions) > 1 else ""
        lines = [f"timeline  {requests}{of}"]
        for phase, target, run in self.phases():
            first, last = run[0].number, run[-1].number
            span = f"request {first}" if first == last else f"requests {first}-{last}"
            on = f" on {target}" if target else ""
            lines.append(f"{phase or 'routed'}{on}, {span}")
            lines += [_line(entry, named=len(sessions) > 1) for entry in run]
        return "\n".join(lines) + "\n"


def _line(entry: Entry, *, named: bool) -> str:
    parts = [f"{entry.number:>4}  {entry.reason}"]
    if entry.call:
        by = f" by {entry.rule_set}/{entry.rule}" if entry.rule else ""
        word = f", word `{entry.word}`" if entry.word else ""
        parts.append(f"{entry.tool} at {entry.call}: {entry.label}{by}{word}")
    elif entry.detail:
        parts.append(entry.detail)
    if entry.latch:
        parts.append(f"latch {entry.latch}")
    if named and entry.session is not None:
        agent = f" agent {entry.agent}" if entry.agent is not None else ""
        parts.append(f"session {entry.session}{agent}")
    return "; ".join(parts)
