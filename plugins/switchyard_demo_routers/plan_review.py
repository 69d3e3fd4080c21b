"""The route type ``plan_review``: plan, execute, and let the planner look again now and then."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files

from switchyard_core import (
    Decision,
    DecisionWarning,
    Failure,
    Latch,
    Reason,
    Request,
    Rewrite,
    RouteContext,
    handoff_rewrites,
)
from switchyard_core.conversation import Reasoning
from switchyard_demo_routers.reviews import (
    Counts,
    PlanReviewOptions,
    changes,
    counts_in,
    handed_off,
    lost_context,
    release,
    update,
)

__all__ = ["PlanReviewRouter"]


class PlanReviewRouter:
    """Sends a session to the planner until its first edit, and again when a review is due."""

    def __init__(self, options: PlanReviewOptions) -> None:
        self._options, self._handoff_on = options, frozenset(options.handoff_on)
        prompts = files("switchyard_demo_routers") / "prompts"
        plan, review = ((prompts / n).read_text("utf-8").strip() for n in ("plan.md", "review.md"))
        self._planning_prompt = options.planning_prompt or plan
        self._review_prompt = options.review_prompt or review

    async def route(self, request: Request, context: RouteContext) -> Decision:
        """Return planner or executor; only a session that was handed off is reviewed."""
        session, first = context.session, None
        if session.record is not None:
            counts = counts_in(session.record)
        elif (first := context.mutations.first(self._handoff_on)) is None:
            return self._planning(request, context)
        else:
            counts = handed_off(request, first)
        lost = lost_context(self._options, request, context, counts)
        if lost:
            return self._staying(request, context, lost)
        if context.housekeeping:
            reason = Reason(code="housekeeping", detail="a side call goes where the session is")
            return self._executing(request, context, counts, reason)
        if first is None:
            return self._latched(request, context, counts)
        reason = Reason(code="mutation_in_history", detail=f"{first.verdict.place} edits a file")
        decision = self._executing(request, context, counts, reason)
        if session.identity is None or session.final:
            return decision
        return decision.with_(effects=(Latch(session.identity, counts.record()),))

    async def next(
        self, request: Request, failed: Decision, failure: Failure, context: RouteContext
    ) -> Decision | None:
        """Return the executor's turn in place of a review that failed.

        A planner that refuses thinking, which it made behind a review of a session that is
        forgotten, is asked again without any.
        """
        if failed.phase == "planning" and failure.meaning == "signature":
            return self._without_thinking(request, failed, context)
        if failed.phase != "reviewing" or context.session.record is None:
            return None
        counts = counts_in(context.session.record).after_turn()
        detail = f"the planner could not look: {failure.status or failure.code}"
        reason = Reason(code="review_failed", detail=detail)
        warnings = (*failed.warnings, DecisionWarning(code=reason.code, detail=detail))
        again = self._executing(request, context, counts, reason)
        return again.with_(effects=again.effects + update(context, counts), warnings=warnings)

    def _without_thinking(
        self, request: Request, failed: Decision, context: RouteContext
    ) -> Decision | None:
        if any(rewrite.name == "drop_opaque_reasoning" for rewrite in failed.rewrites):
            return None
        planner = context.targets[self._options.capable_target]
        dropped = handoff_rewrites(
            source=planner,
            target=planner,
            through_message=request.conversation.last_assistant,
            opaque="drop",
        )
        detail = "the planner refused thinking in the history: it was removed"
        warning = DecisionWarning(code="reasoning_dropped", detail=detail)
        rewrites = (*dropped, *failed.rewrites)
        return failed.with_(rewrites=rewrites, warnings=(*failed.warnings, warning))

    def _planning(self, request: Request, context: RouteContext) -> Decision:
        prompt = Rewrite(name="insert_planning_prompt", parameters={"text": self._planning_prompt})
        code = "housekeeping" if context.housekeeping else "no_mutation"
        # What thinking was made behind has to be in front of it in side calls, too.
        bound = context.targets[self._options.capable_target].accepts.prefix_bound
        parts = (part for _, part in request.conversation.parts()) if bound else ()
        told = not context.housekeeping or any(isinstance(part, Reasoning) for part in parts)
        return Decision(
            target=self._options.capable_target,
            phase="planning",
            reason=Reason(code=code, detail="no file was edited yet"),
            rewrites=(prompt,) if told else (),
            effects=release(context),
        )

    def _staying(self, request: Request, context: RouteContext, lost: Sequence[str]) -> Decision:
        """Return the planner's turn with what the executor's provider cannot read."""
        detail = f"the history holds {lost[0]}, which only the planner's provider can read"
        warning = DecisionWarning(code="origin_bound", detail=detail)
        planned = self._planning(request, context)
        return planned.with_(reason=Reason(code="origin_bound", detail=detail), warnings=(warning,))

    def _latched(self, request: Request, context: RouteContext, counts: Counts) -> Decision:
        if counts.last == request.history_digest.hex():  # a retry: what was decided, not counted
            why = "it was due when this was first sent" if counts.reviewing else ""
        else:
            counts = counts.with_results(request)
            planner = context.targets[self._options.capable_target]
            open_call = request.conversation.ends_with_open_call
            can = planner.fits(request) and not request.misses_history and not open_call
            why = counts.due(self._options) if can else ""
            counts = counts.after_review(request) if why else counts.after_turn()
        if not why:
            reason = Reason(code="latched", detail="the session was handed to the executor")
            decision = self._executing(request, context, counts, reason)
            return decision.with_(effects=decision.effects + update(context, counts))
        text = Rewrite(name="append_user_text", parameters={"text": self._review_prompt})
        return Decision(
            target=self._options.capable_target,
            phase="reviewing",
            reason=Reason(code="review_due", detail=why, facts={"review": str(counts.reviews)}),
            rewrites=(*changes(self._options, request, context, counts), text),
            effects=release(context) + update(context, counts),
        )

    def _executing(
        self, request: Request, context: RouteContext, counts: Counts, reason: Reason
    ) -> Decision:
        return Decision(
            target=self._options.efficient_target,
            phase="executing",
            reason=reason,
            rewrites=changes(self._options, request, context, counts),
            effects=release(context),
        )
