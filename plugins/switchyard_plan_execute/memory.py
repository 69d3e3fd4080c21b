"""What a session's latch record remembers beside the handoff: who made what since."""

from __future__ import annotations

from hashlib import blake2b
from typing import Self

from pydantic import BaseModel, ConfigDict, ValidationError

from switchyard_core import Effect, LatchRecord, Request, RouteContext, UpdateRecord
from switchyard_core.conversation import ToolCall

__all__ = ["Memory", "Spans", "kept"]

#: First and last index of messages.
Spans = tuple[tuple[int, int], ...]
#: Most spans that are kept apart: a record holds a kilobyte.
MAX_SPANS = 40


def call_digest(call: ToolCall) -> str:
    """Return a short digest of a call; some providers give an id twice in a session."""
    source = (
        call.source
        if isinstance(call.source, bytes)
        else str(call.source).encode("utf-8", "surrogatepass")
    )
    named = f"{call.id} {call.name} ".encode("utf-8", "surrogatepass")
    return blake2b(named + source, digest_size=8).hexdigest()


def kept(context: RouteContext, record: LatchRecord) -> tuple[Effect, ...]:
    """Return the effect that keeps a latched session's record, if it differs."""
    session = context.session
    if session.identity is None or session.record in (None, record):
        return ()
    return (UpdateRecord(session.identity, record),)


class Memory(BaseModel):
    """What is remembered of a latched session, as JSON in its record.

    Args:
        call: Digest of the call that handed off.
        planner: Messages that the planner made after the handoff.
        sealed: Whether the planner made the last compaction.
        refused: Index of the last message whose reasoning was refused with all before it.
        overflow: Bytes of the smallest body that the executor refused as too long.
        keep: Whether the executor demands the planner's reasoning.
        apart: Whether the planner refuses the executor's reasoning.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    call: str = ""
    planner: Spans = ()
    sealed: bool = False
    refused: int | None = None
    overflow: int | None = None
    keep: bool = False
    apart: bool = False

    @classmethod
    def of(cls, record: LatchRecord | None) -> Self:
        """Return what a record holds; nothing when it cannot be read."""
        if record is None or not record.data:
            return cls()
        try:
            return cls.model_validate_json(record.data)
        except ValidationError:
            return cls()

    @classmethod
    def handed_off(cls, request: Request, call: int | None) -> Self:
        """Return what to remember of a handoff by a call, or by an edit in a text."""
        return cls() if call is None else cls(call=call_digest(request.conversation.calls[call]))

    def data(self) -> bytes:
        """Return it as bytes for a record."""
        said = self.model_dump_json(exclude_defaults=True).encode("ascii")
        return b"" if said == b"{}" else said

    def but(self, **changes: object) -> Self:
        """Return a copy with some fields replaced."""
        return self.model_copy(update=changes)

    def handoff_call(self, request: Request) -> int | None:
        """Return the number of the call that handed off, ``None`` after a compaction."""
        for number, call in enumerate(request.conversation.calls):
            if call_digest(call) == self.call:
                return number
        return None

    def fitting(self, request: Request) -> Self:
        """Return what still holds: a history that has become shorter was compacted."""
        if not self.planner and self.refused is None:
            return self
        last = max(self.refused or 0, *(end for _, end in self.planner), 0)
        # The answer to the last request, which a retry of it does not hold.
        if last <= len(request.conversation.messages):
            return self
        return self.but(planner=(), refused=None)

    def with_planners_turn(self, request: Request) -> Self:
        """Return it with the coming answer as the planner's."""
        number, spans = len(request.conversation.messages), list(self.planner)
        if spans and number - spans[-1][1] <= 2:  # nothing but results in between
            spans[-1] = (spans[-1][0], max(number, spans[-1][1]))
        else:
            spans.append((number, number))
        if len(spans) > MAX_SPANS:
            spans[:2] = [(spans[0][0], spans[1][1])]
        return self.but(planner=tuple(spans))

    def fits(self, request: Request) -> bool:
        """Return whether a request is smaller than all that were refused as too long."""
        return self.overflow is None or len(request.body) < self.overflow
