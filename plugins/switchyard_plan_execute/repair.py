"""Second tries where a provider refuses reasoning of the history, or misses it."""

from __future__ import annotations

from dataclasses import replace

from switchyard_core import (
    Decision,
    DecisionWarning,
    Effect,
    Failure,
    LatchRecord,
    ReleaseAfterSuccess,
    Request,
    Rewrite,
    RouteContext,
    handoff_rewrites,
)
from switchyard_plan_execute.handoff import Handoff, has_reasoning
from switchyard_plan_execute.memory import Memory, kept

__all__ = ["Repair", "releases"]

#: What is told of each second try; after one of them there is no third.
_TOLD = {
    "reasoning_dropped": "refused reasoning of the history ({}); it was removed",
    "reasoning_kept": "demands the reasoning of the history ({}); it was kept",
}


class Repair:
    """Decides what else to try when a provider spoke of the history's reasoning."""

    def __init__(self, handoff: Handoff) -> None:
        self._handoff = handoff

    def next(
        self,
        request: Request,
        context: RouteContext,
        failed: Decision,
        failure: Failure,
        *,
        executing: bool,
    ) -> Decision | None:
        """Return a second try, ``None`` where the failure has another cause."""
        if any(warning.code in _TOLD for warning in failed.warnings):
            return None
        if failure.meaning == "signature":
            again = self._without_reasoning if executing else self._without_any_reasoning
            return again(request, context, failed, failure)
        if executing and failure.meaning == "reasoning_missing":
            return self._with_reasoning(request, context, failed, failure)
        return None

    def _without_reasoning(
        self, request: Request, context: RouteContext, failed: Decision, failure: Failure
    ) -> Decision | None:
        """Return the executor's turn without the planner's reasoning.

        Without any where that is not enough: the provider does not say which one it refuses.
        """
        handoff, record = self._handoff, context.session.record
        memory = Memory.of(record)
        shares = handoff.shares(request, context, memory)
        last = len(request.conversation.messages) - 1
        bound = handoff.executor(context).accepts.prefix_bound
        if bound or shares.call is None or _drops(failed):
            memory = memory.but(refused=last)
            shares = replace(shares, refused=((0, last),))
        if not has_reasoning(request, shares.unreadable(request)):
            return None
        effects: tuple[Effect, ...] = releases(failed)
        if record is not None:
            after = replace(record, drop_opaque=True, data=memory.data())
            effects += kept(context, after)
        rewrites = handoff.rewrites(
            request, context, memory, shares, drop=True, transition=_drops_id(failed)
        )
        return _repaired(failed, failure, rewrites, effects)

    def _without_any_reasoning(
        self, request: Request, context: RouteContext, failed: Decision, failure: Failure
    ) -> Decision | None:
        """Return the planner's turn without reasoning, where it may be bound to another prefix.

        Without the executor's, if there is any: then the planner's own is what it was.
        """
        planner, last = self._handoff.planner(context), len(request.conversation.messages) - 1
        if not planner.accepts.prefix_bound or not has_reasoning(request, range(last + 1)):
            return None
        effects: tuple[Effect, ...] = releases(failed)
        rewrites, record = self._without_executors(request, context, failed)
        if not rewrites:
            rewrites = handoff_rewrites(
                source=planner, target=planner, through_message=last, opaque="drop"
            )
        elif record is not None:
            effects += kept(context, record)
        instruction = tuple(r for r in failed.rewrites if r.name == "insert_planning_prompt")
        return _repaired(failed, failure, rewrites + instruction, effects)

    def _without_executors(
        self, request: Request, context: RouteContext, failed: Decision
    ) -> tuple[tuple[Rewrite, ...], LatchRecord | None]:
        """Return the rewrites for a planner that reads the executor's reasoning, and a record."""
        record = context.session.record
        memory = Memory.of(record)
        shares = self._handoff.shares(request, context, memory)
        if (
            record is None
            or _drops(failed)
            or not has_reasoning(request, shares.executors(request))
        ):
            return (), None
        rewrites = self._handoff.returning(request, context, shares, drop=True)
        return rewrites, replace(record, data=memory.but(apart=True).data())

    def _with_reasoning(
        self, request: Request, context: RouteContext, failed: Decision, failure: Failure
    ) -> Decision | None:
        """Return the executor's turn with the planner's reasoning, which it demands."""
        handoff, record = self._handoff, context.session.record
        memory = Memory.of(record).but(keep=True)
        shares = handoff.shares(request, context, memory)
        if not _drops(failed) or not has_reasoning(request, shares.planners(request)):
            return None
        effects: tuple[Effect, ...] = releases(failed)
        if record is not None:
            after = replace(record, drop_opaque=False, data=memory.data())
            effects += kept(context, after)
            context = replace(context, session=replace(context.session, record=after))
        rewrites = handoff.rewrites(request, context, memory, shares, transition=_drops_id(failed))
        return _repaired(failed, failure, rewrites, effects, code="reasoning_kept")


def _repaired(
    failed: Decision,
    failure: Failure,
    rewrites: tuple[Rewrite, ...],
    effects: tuple[Effect, ...],
    *,
    code: str = "reasoning_dropped",
) -> Decision:
    """Return a second try with other reasoning; the handoff prompt stays."""
    detail = f"the provider {_TOLD[code].format(failure.status)} and the request sent again"
    prompt = tuple(r for r in failed.rewrites if r.name == "append_user_text")
    warning = DecisionWarning(code=code, detail=detail)
    return failed.with_(
        rewrites=rewrites + prompt, effects=effects, warnings=(*failed.warnings, warning)
    )


def releases(decision: Decision) -> tuple[ReleaseAfterSuccess, ...]:
    """Return what a decision frees: a second try must not latch again."""
    return tuple(e for e in decision.effects if isinstance(e, ReleaseAfterSuccess))


def _drops(decision: Decision) -> bool:
    return any(rewrite.name == "drop_opaque_reasoning" for rewrite in decision.rewrites)


def _drops_id(decision: Decision) -> bool:
    return any(rewrite.parameters.get("drop_continuation") for rewrite in decision.rewrites)
