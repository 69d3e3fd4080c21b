"""What a history needs for the model that continues it: whose parts are whose, and the rewrites."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Literal, Self

from switchyard_core import (
    FirstMutation,
    Request,
    Rewrite,
    RouteContext,
    TargetView,
    handoff_rewrites,
)
from switchyard_core.conversation import Reasoning
from switchyard_plan_execute.memory import Memory, Spans
from switchyard_plan_execute.options import PlanExecuteOptions

__all__ = ["Handoff", "Shares", "has_reasoning"]


@dataclass(frozen=True, slots=True)
class Shares:
    """Which part of a history is the planner's.

    Args:
        call: Number of the call that handed off, ``None`` when the history does not hold it.
        planner: Further messages of the planner.
        refused: Messages whose reasoning the executor refused, whoever made it.
    """

    call: int | None = None
    planner: Spans = ()
    refused: Spans = ()

    @classmethod
    def of(cls, first: FirstMutation | None) -> Self:
        """Return what is the planner's up to the turn of an edit, made by a call or in a text."""
        if first is None or first.number is not None:
            return cls(None if first is None else first.number)
        return cls(planner=((0, first.verdict.message),))

    @property
    def place(self) -> dict[str, Any]:
        """What the executor cannot read, as the arguments that name it."""
        return {"through_call": self.call, "spans": (*self.refused, *self.planner)}

    def unreadable(self, request: Request) -> set[int]:
        """Return the indexes of the messages whose reasoning the executor cannot read."""
        refused = {n for first, last in self.refused for n in range(first, last + 1)}
        return self.planners(request) | refused

    def planners(self, request: Request) -> set[int]:
        """Return the indexes of the planner's messages."""
        conversation, end = request.conversation, -1
        if self.call is not None and self.call < len(conversation.calls):
            end = conversation.calls[self.call].message
        spanned = {n for first, last in self.planner for n in range(first, last + 1)}
        made = set(range(end + 1)) | spanned
        return {n for n, m in enumerate(conversation.messages) if m.role == "assistant"} & made

    def executors(self, request: Request) -> set[int]:
        """Return the indexes of the executor's messages."""
        messages = enumerate(request.conversation.messages)
        return {n for n, m in messages if m.role == "assistant"} - self.planners(request)


def has_reasoning(request: Request, messages: Collection[int]) -> bool:
    """Return whether any of some messages holds reasoning."""
    said = request.conversation.messages
    return any(isinstance(part, Reasoning) for n in messages for part in said[n].content)


class Handoff:
    """The rewrites for both targets of a route."""

    def __init__(self, options: PlanExecuteOptions) -> None:
        self._options = options
        self._handoff_on = frozenset(options.handoff_on)

    def planner(self, context: RouteContext) -> TargetView:
        """Return the capable target."""
        return context.targets[self._options.capable_target]

    def executor(self, context: RouteContext) -> TargetView:
        """Return the efficient target."""
        return context.targets[self._options.efficient_target]

    def is_foreign(self, context: RouteContext) -> bool:
        """Return whether the executor has another provider than the planner."""
        planner, executor = self.planner(context), self.executor(context)
        return planner.origin != executor.origin or planner.wire_format != executor.wire_format

    def keeps_place(self, context: RouteContext) -> bool:
        """Return whether the handoff prompt stays in place, in all requests to the executor."""
        bound = self.executor(context).accepts.prefix_bound
        return bound and self._options.handoff_prompt is not None

    def converts(self, request: Request, context: RouteContext, memory: Memory) -> bool:
        """Return whether it matters to the executor what is the planner's."""
        some = Shares(call=0)
        return self.keeps_place(context) or bool(self.rewrites(request, context, memory, some))

    def shares(self, request: Request, context: RouteContext, memory: Memory) -> Shares:
        """Return whose parts are whose."""
        if context.session.record is not None and memory.call:
            found = Shares(memory.handoff_call(request))
        else:
            found = Shares.of(context.mutations.first(self._handoff_on))
        spans, last = found.planner + memory.planner, len(request.conversation.messages) - 1
        if memory.sealed:
            spans = ((0, last),)
        refused = () if memory.refused is None else ((0, min(memory.refused, last)),)
        return Shares(found.call, spans, refused)

    def rewrites(
        self,
        request: Request,
        context: RouteContext,
        memory: Memory,
        shares: Shares,
        *,
        drop: bool = False,
        transition: bool = False,
    ) -> tuple[Rewrite, ...]:
        """Return what the executor needs.

        ``drop`` removes the planner's reasoning in any case; ``transition`` says that a
        continuation id names a response of the planner.
        """
        options, record = self._options, context.session.record
        opaque: Literal["auto", "keep", "drop"] = options.opaque_reasoning
        if drop or (record is not None and record.drop_opaque):
            opaque = "drop"
        elif memory.keep:
            opaque = "keep"
        cap = options.reasoning_text_max_chars if options.planner_reasoning_as_text else None
        return handoff_rewrites(
            source=self.planner(context),
            target=self.executor(context),
            **shares.place,
            opaque=opaque,
            as_text_max_chars=cap,
            drop_continuation=transition and not request.misses_history,
            lose_context=options.on_origin_bound == "drop",
        )

    def prompt(
        self, request: Request, context: RouteContext, shares: Shares, *, wanted: bool
    ) -> tuple[Rewrite, ...]:
        """Return the handoff prompt for the executor, if it belongs into a request.

        An executor that checks the prefix of its thinking finds it at the place of the handoff, in
        every request; any other one gets it where it is ``wanted``, at the end.
        """
        text = self._options.handoff_prompt
        if text is None:
            return ()
        if not self.keeps_place(context):
            parameters = {"text": text}
            return (Rewrite(name="append_user_text", parameters=parameters),) if wanted else ()
        if shares.call is None:
            return ()
        if context.housekeeping and not has_reasoning(request, shares.executors(request)):
            return ()
        placed = {"text": text, "behind_call": shares.call}
        return (Rewrite(name="append_user_text", parameters=placed),)

    def returning(
        self, request: Request, context: RouteContext, shares: Shares, *, drop: bool
    ) -> tuple[Rewrite, ...]:
        """Return what the planner needs of a history that the executor continued.

        Nothing where it can read all of it: the client's own bytes, since they are what its earlier
        thinking was made behind. ``drop`` removes the executor's reasoning in any case.
        """
        planner, spans = self.planner(context), _spans(shares.executors(request))
        if not spans:
            return ()
        opaque: Literal["auto", "keep", "drop"] = "auto"
        if self._options.opaque_reasoning == "keep" or drop:
            opaque = "drop" if drop else "keep"
        rewrites = handoff_rewrites(
            source=self.executor(context),
            target=planner,
            spans=spans,
            opaque=opaque,
            drop_continuation=not request.misses_history,
        )
        # A text for an empty result would change what is before the planner's own thinking.
        return tuple(
            each
            for each in rewrites
            if not (planner.accepts.prefix_bound and each.name == "drop_empty_content")
        )

    def only_planner_knows(self, request: Request, context: RouteContext) -> bool:
        """Return whether only the planner may know what of its history a request names."""
        planner, executor = self.planner(context), self.executor(context)
        spoken, missing = request.wire_format, request.missing_history
        if self._options.on_origin_bound == "drop":
            # The policy gives up what is sealed in an item, but not the whole history.
            missing = tuple(set(missing).intersection(request.continuation))
        return planner.wire_format == spoken != executor.wire_format and bool(missing)

    def lost_at_executor(
        self, request: Request, context: RouteContext, shares: Shares
    ) -> tuple[str, ...]:
        """Return the planner's context that the executor cannot read, where that keeps it away."""
        if self._options.on_origin_bound != "stay" or not self.is_foreign(context):
            return ()
        return request.foreign_context(**shares.place)

    def lost_at_planner(
        self, request: Request, context: RouteContext, shares: Shares
    ) -> tuple[str, ...]:
        """Return the executor's context that the planner cannot read."""
        if not self.is_foreign(context):
            return ()
        spans = _spans(shares.executors(request))
        if shares == Shares():  # after a compaction, which is not the assistant's message
            spans = ((0, len(request.conversation.messages) - 1),)
        return request.foreign_context(spans=spans)


def _spans(messages: Collection[int]) -> Spans:
    """Return some indexes as spans."""
    spans: list[tuple[int, int]] = []
    for number in sorted(messages):
        if spans and spans[-1][1] == number - 1:
            spans[-1] = (spans[-1][0], number)
        else:
            spans.append((number, number))
    return tuple(spans)
