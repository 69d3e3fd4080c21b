"""A decision is data: target, reason, rewrites, effects; and the request that it becomes.

A router returns one and does nothing; the engine carries it out. So every decision can be
printed, compared, replayed and tested without a network.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from switchyard_core.declarations import WireFormat
from switchyard_core.identity import Identity

__all__ = [
    "Decision",
    "DecisionWarning",
    "Effect",
    "Failure",
    "Latch",
    "LatchRecord",
    "Outgoing",
    "Reason",
    "ReleaseAfterSuccess",
    "Remember",
    "Rewrite",
    "RewriteReport",
    "RewriteScope",
    "UpdateRecord",
]

#: Maximum size in bytes of :attr:`LatchRecord.data`.
MAX_RECORD_DATA = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewrite:
    """A named rewrite and its parameters (a mapping of plain values)."""

    name: str
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class RewriteScope:
    """What a rewrite may know besides the body, shared by all rewrites of one request.

    Args:
        facts: Counters that one rewrite leaves for a later one of the same request,
            such as ``dropped_reasoning``.
        headers: The headers that are sent with the body, by lower-case name, to be changed in
            place. They hold no credential.
        untouched: A rewrite adds a line for what it cannot look into because of its type.
        skipped: A rewrite says why it does nothing, where its user waits for more.
    """

    wire_format: WireFormat
    facts: dict[str, Any] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    untouched: list[str] = field(default_factory=list)
    skipped: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteReport:
    """What one rewrite did to one body.

    Args:
        changes: One line per change; empty when nothing had to change.
        skipped: Why it did not run, ``""`` when it did.
        untouched: One line per value that it would have looked into, or added to, and that has
            another type than the wire format says: what, where, and that it was sent untouched.
    """

    name: str
    changes: tuple[str, ...] = ()
    skipped: str = ""
    untouched: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LatchRecord:
    """What a latch store keeps for one identity.

    Args:
        handoff_key: 16-byte digest of the history that carried the handoff, so that a retry
            of it gets the same body again; ``None`` until a request could carry it.
        drop_opaque: The provider refused the planner's opaque reasoning once.
        data: At most 1024 bytes that belong to the router.
    """

    handoff_key: bytes | None = None
    drop_opaque: bool = False
    data: bytes = b""

    def __post_init__(self) -> None:
        if len(self.data) > MAX_RECORD_DATA:
            msg = f"a latch record holds at most {MAX_RECORD_DATA} bytes of router data"
            raise ValueError(msg)


@dataclass(frozen=True, slots=True)
class Latch:
    """Effect: latch an identity, before any call; refused when the store is full."""

    identity: Identity
    record: LatchRecord


@dataclass(frozen=True, slots=True)
class UpdateRecord:
    """Effect: replace the record of a latched identity, before the call."""

    identity: Identity
    record: LatchRecord


@dataclass(frozen=True, slots=True)
class ReleaseAfterSuccess:
    """Effect: free an identity's slot when its request has succeeded."""

    identity: Identity


@dataclass(frozen=True, slots=True)
class Remember:
    """Effect: keep a record for an identity, new or not, before the call, if there is room.

    For what a router can do without, such as a verdict that it could ask for again: a full
    store refuses nothing, and the decision has the warning ``memory_full``.
    """

    identity: Identity
    record: LatchRecord


Effect = Latch | UpdateRecord | Remember | ReleaseAfterSuccess


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why a target was chosen.

    Args:
        code: A word of the router, such as ``mutation_in_history``.
        detail: One sentence for people.
        facts: What decided, as plain data: rule set, rule, tool, wire path, word.
    """

    code: str
    detail: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionWarning:
    """Something the caller should know; the request continues."""

    code: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Where a request goes and what is done to its body.

    Args:
        target: Name of a target of the policy.
        phase: A word of the router; ``""`` for routers without phases.
        rewrites: What the router asks for; the engine adds what the target needs and puts
            all of them in their order.
        warnings: Shown in ``x-switchyard-warning`` and the log.
        effects: What happens to the latch store.
        route: Name of the route; the engine fills it in.
        identity: Whom the request belongs to; the engine fills it in.
        trace: How it came to this, as plain data for ``explain``; the engine and the router
            add to it.
    """

    target: str
    reason: Reason
    phase: str = ""
    rewrites: tuple[Rewrite, ...] = ()
    warnings: tuple[DecisionWarning, ...] = ()
    effects: tuple[Effect, ...] = ()
    route: str = ""
    identity: Identity | None = None
    trace: Mapping[str, Any] = field(default_factory=dict)

    @property
    def frees(self) -> bool:
        """Whether it frees something after a success."""
        return any(isinstance(effect, ReleaseAfterSuccess) for effect in self.effects)

    def with_(self, **changes: Any) -> Decision:
        """Return a copy with some fields replaced."""
        return replace(self, **changes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why a call failed before any byte reached the caller.

    Args:
        kind: ``status`` (the provider answered with an error), ``content`` (it answered 200, and
            the answer says that it failed, or is empty or unreadable) or ``transport``.
        status: HTTP status, 0 for ``transport``.
        code: The provider's error code or type if it could be read, else the transport's kind.
        body: The first 64 KiB of the error's body; of a stream, those of its error event.
        retry: The provider's words about another try: those of the headers ``retry-after``,
            ``retry-after-ms`` and ``x-should-retry`` that it sent. Only where a router asked.
        meaning: What the body says, by the phrases that providers are known to use: ``overflow``,
            ``signature``, ``reasoning_missing``, ``parameter``, ``order``, ``overloaded``,
            ``refusal`` and others of :func:`~switchyard_core.models.phrases.meaning_of`; ``""``
            for none.
    """

    kind: str
    status: int
    code: str
    body: bytes
    retry: Mapping[str, str] = field(default_factory=dict)
    meaning: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    """One request to a provider, ready to be sent.

    Args:
        wire_format: Wire format of the body.
        path: Path with its version, such as ``/v1/responses``.
        headers: Names and values in sending order; ``host`` and the headers that frame the
            body are set by the client and ignored here.
        body: The body's bytes, sent as they are.
        stream: Whether the body asks for a stream.
        target: Id of the target the request goes to.
        model: Model id as the provider knows it.
        method: HTTP method, upper case.
        query: Query string as the caller sent it, without ``?``.
        route: Name of the route that it is for, ``""`` for none.
        role: What the call is for, one word, such as a phase; ``""`` when nobody says.
        reports: What each rewrite changed in the caller's body.
    """

    wire_format: WireFormat
    path: str
    # Neither credentials nor prompts belong into a traceback or a log.
    headers: tuple[tuple[str, str], ...] = field(repr=False)
    body: bytes = field(repr=False)
    stream: bool
    target: str
    model: str
    method: str = "POST"
    query: str = ""
    # For logs and the names of recordings: no provider gets them.
    route: str = ""
    role: str = ""
    reports: tuple[RewriteReport, ...] = field(default=(), repr=False)
