"""Plays a recorded conversation in order, and summarizes its phases and decisions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

from switchyard_core.decision import Latch, ReleaseAfterSuccess, Remember, UpdateRecord
from switchyard_core.errors import LatchCapacityError, RequestError
from switchyard_core.explain.explanation import Explanation, Question, explain_or_ask
from switchyard_core.identity import Identity
from switchyard_core.request import Request
from switchyard_core.stores import MemoryLatchStore

if TYPE_CHECKING:
    from switchyard_core.switchyard import Switchyard

__all__ = ["Entry", "Rehearsal", "Rehearsed", "Timeline", "entry_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsed:
    """The result of one request."""

    #: Its explanation, or the question at which it ends; ``None`` when it was refused earlier.
    found: Explanation | Question | None
    error: RequestError | None = None  # why a server would refuse it
    released: bool = False  # whether it frees its session's slot when it succeeds


class Rehearsal:
    """Plays requests in order as a server would; each sees the latches set by earlier ones.

    The routes of ``yard`` get latch stores in memory; no target is called.
    """

    def __init__(
        self, yard: Switchyard, replies: Mapping[str, Sequence[str]] | None = None
    ) -> None:
        self._yard = yard
        self._replies = replies
        for runtime in yard.runtimes.values():
            if runtime.store is not None:
                runtime.store = MemoryLatchStore(runtime.store.capacity)

    async def play(self, request: Request) -> Rehearsed:
        """Decide the next request as if every call succeeds."""
        try:
            found = await explain_or_ask(self._yard, request, self._replies)
        except RequestError as error:
            return Rehearsed(found=None, error=error)
        if isinstance(found, Question):
            return Rehearsed(found=found)
        released = False
        for effect in found.decision.effects:
            if isinstance(effect, ReleaseAfterSuccess):
                released |= await self._release(found.decision.route, effect.identity)
            else:
                try:
                    await self._keep(found.decision.route, effect)
                except LatchCapacityError as error:
                    return Rehearsed(found=found, error=error)
        return Rehearsed(found=found, released=released)

    async def _keep(self, route: str, effect: Latch | UpdateRecord | Remember) -> None:
        store = self._yard.runtimes[route].store
        if store is None:
            return
        if isinstance(effect, Latch):
            await store.latch(effect.identity, effect.record)
        elif not await store.update(effect.identity, effect.record) and isinstance(
            effect, Remember
        ):
            try:
                await store.latch(effect.identity, effect.record)
            except LatchCapacityError:
                # Remembering is optional; a server's decision has a warning.
                return

    async def _release(self, route: str, identity: Identity) -> bool:
        runtime = self._yard.runtimes[route]
        released = runtime.store is not None and await runtime.store.release(identity)
        if runtime.route.subagents is not None and identity.agent is None:
            released |= await self._release(runtime.route.subagents, identity)
        return released


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One request of a timeline."""

    number: int  # its place in the conversation, from 1
    route: str = ""  # name of its route, ``""`` when it was refused before it had one
    session: str | None = None
    agent: str | None = None  # id of a sub-agent
    phase: str = ""  # the router's word, or ``refused`` or ``would ask``
    target: str = ""  # name of the target, ``""`` for a refused request
    reason: str = ""  # code of the reason, or of the error
    detail: str = ""  # what decided, for people
    call: str = ""  # wire path of the call that decided, ``""`` when none did
    tool: str = ""
    label: str = ""
    rule_set: str = ""  # rule set that labelled it
    rule: str = ""  # rule that labelled it
    word: str = ""  # what decided inside its arguments
    latch: str = ""  # ``set``, ``held``, ``freed``, or ``""`` when the session is not latched
    latched_before: bool = False  # whether the session was latched before the request
    latched_after: bool = False  # whether it is after it


#: Facts of a reason that say which call decided.
_FACTS = ("call", "tool", "label", "rule_set", "rule", "word")


def entry_of(number: int, played: Rehearsed) -> Entry:
    """Return the entry of a request that was played."""
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


@dataclass(frozen=True, slots=True)
class Timeline:
    """The requests of a conversation in order."""

    entries: Sequence[Entry]

    def phases(self) -> Iterator[tuple[str, str, tuple[Entry, ...]]]:
        """Yield phase, target and entries of each run of requests that went the same way."""
        for (phase, target), run in groupby(self.entries, lambda each: (each.phase, each.target)):
            yield phase, target, tuple(run)

    def as_json(self) -> dict[str, Any]:
        """Return the timeline as plain data."""
        return {
            "requests": [asdict(entry) for entry in self.entries],
            "phases": [
                {"phase": phase, "target": target, "first": run[0].number, "last": run[-1].number}
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
