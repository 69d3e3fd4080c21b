"""The router of ``planner_executor``: reads what the caller wants and lets a run do it."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import AsyncGenerator, Iterator
from dataclasses import replace
from typing import Any

from switchyard_core import Decision, Reason, Request, RequestError, RouteContext
from switchyard_core.answering import AnswerEvent
from switchyard_core.conversation import UserMessage
from switchyard_planner_executor.approval import (
    MAX_REVISIONS,
    Intent,
    PendingPlan,
    StoredPlan,
    read_intent,
)
from switchyard_planner_executor.caller import (
    Caller,
    read_caller,
    refusal,
    refuse_unserved,
    require_user_text,
)
from switchyard_planner_executor.events import ApprovalRequired
from switchyard_planner_executor.options import PlannerExecutorOptions
from switchyard_planner_executor.plan import PlanError, UnusablePlanError, read_plan_value
from switchyard_planner_executor.rendering import Narrator
from switchyard_planner_executor.run import PlanRun
from switchyard_planner_executor.wording import planner_instructions

__all__ = ["PlannerExecutorRouter"]


class PlannerExecutorRouter:
    """Plans with one target, then runs the plan step by step on another."""

    def __init__(self, options: PlannerExecutorOptions) -> None:
        self._options = options

    async def route(self, request: Request, context: RouteContext) -> Decision:
        """Return what would be asked first, without asking it."""
        del request, context
        options = self._options
        tools = f", tools {', '.join(options.tools)}" if options.tools else ""
        return Decision(
            target=options.planner_target,
            reason=Reason(
                code="plan_first",
                detail=f"asks `{options.planner_target}` for a plan, then runs up to "
                f"{options.max_steps} steps on `{options.executor_target}`{tools}",
            ),
            phase="planned",
        )

    async def answer(self, request: Request, context: RouteContext) -> AsyncGenerator[AnswerEvent]:
        """Yield the plan, then the result of each step."""
        options = self._options
        refuse_unserved(request, options)
        intent = read_intent(request, by_text=options.approval_by_text)
        if intent.verb in ("make", "revise"):
            require_user_text(request)
        caller = read_caller(request, options, context.targets[options.executor_target].wire_format)
        run = PlanRun(options, context, plan_id=intent.plan_id, caller=caller)
        if intent.verb in ("make", "run"):
            stored = await self._begin(run, request, context, intent)
        else:
            stored = await self._decide(run, request, context, intent)
        if run.status == "running":
            events = self._run(run, stored, caller)
            async with contextlib.aclosing(events):
                async for event in events:
                    yield event
            return
        for event in _ended(run, caller):
            yield event

    # Both leave the run with the status `running`, or with that of the answer, and return the
    # plan in the store if it is there.

    async def _begin(
        self, run: PlanRun, request: Request, context: RouteContext, intent: Intent
    ) -> StoredPlan | None:
        """Make a plan for a new request, or take the caller's own; let it wait or run."""
        options, user, stored = self._options, request.user_message, None
        given = intent.verb == "run"
        holds = intent.hold or (options.approval == "always" and not given)
        if not given and (holds or options.approval != "none"):
            # Before the planner is asked: a plan that finds no place would be lost.
            stored = await StoredPlan.reserve(context, run.plan_id, self._pending(user))
        try:
            if given:
                self._take_plan(run, intent.value)
            else:
                history = request.conversation if options.planner_sees == "conversation" else None
                with _unusable("plan_unusable", status=502):
                    await run.make_plan(user, history)
            _check_cost(run)
        except BaseException:
            if stored is not None:
                await stored.drop()
            raise
        holds = holds or run.is_dear
        if given and (holds or options.waits_again):
            if not user.text.strip() and run.plan is not None:
                # A revision needs to know what the plan is for.
                user = replace(user, text=run.plan.goal)
            stored = await StoredPlan.reserve(context, run.plan_id, self._pending(user))
        return await self._placed(run, stored, holds=holds)

    async def _placed(
        self, run: PlanRun, stored: StoredPlan | None, *, holds: bool
    ) -> StoredPlan | None:
        """Let a plan wait in the store, or run it; then it needs the store only to wait later."""
        if stored is not None and holds:
            await stored.keep(run.digest, state=run.save())
            return stored
        run.status = "running"
        if stored is not None and self._options.waits_again:
            await stored.claim("running")
            return stored
        if stored is not None:
            await stored.drop()
        return None

    def _take_plan(self, run: PlanRun, value: Any) -> None:
        options = self._options
        if options.approval == "always" and not options.allow_caller_plans:
            raise refusal(
                "this route runs only its own plans, after approval: it takes no plan from a "
                "caller unless its policy says `allow_caller_plans = true`",
                "caller_plans_off",
            )
        with _unusable("plan_invalid", status=400):
            run.use_plan(
                read_plan_value(value, max_steps=options.max_steps, searchable=options.searchable)
            )

    async def _decide(
        self, run: PlanRun, request: Request, context: RouteContext, intent: Intent
    ) -> StoredPlan:
        stored = await StoredPlan.find(context, intent.plan_id)
        run.restore(stored.pending.state)
        if intent.verb == "reject":
            await stored.claim("rejected")
            run.status = "rejected"
        elif intent.verb == "revise":
            await self._revise(run, stored, request.user_message.text)
        else:
            _check_approval(run, intent, stored)
            _check_cost(run)
            await stored.claim("running")
            run.status, run.approved = "running", True
        return stored

    async def _revise(self, run: PlanRun, stored: StoredPlan, feedback: str) -> None:
        """Make another plan from what the caller says about the one that waits."""
        pending = stored.pending
        if pending.revisions >= MAX_REVISIONS:
            raise refusal(
                f"the plan `{run.plan_id}` was revised {MAX_REVISIONS} times, which is the most: "
                "approve it, reject it, or ask for a new one",
                "plan_revisions_used_up",
            )
        if run.records:
            raise refusal(
                f"some steps of the plan `{run.plan_id}` ran already: approve or reject what is "
                "left of it",
                "plan_begun",
            )
        await stored.claim("planning")
        try:
            with _unusable("plan_unusable", status=502):
                await run.revise_plan(pending.user, feedback)
            _check_cost(run)
        except BaseException:
            # The plan from before keeps waiting.
            await stored.keep(stored.record.digest)
            raise
        await stored.keep(
            run.digest,
            state=run.save(),
            prompt_digest=self._prompt_digest(),
            revisions=pending.revisions + 1,
        )

    async def _run(
        self, run: PlanRun, stored: StoredPlan | None, caller: Caller
    ) -> AsyncGenerator[AnswerEvent]:
        """Run a plan; whatever happens, the store knows how it ended."""
        narrator = Narrator(run, caller.warnings, quiet=self._options.answer == "last_step")
        try:
            for event in narrator.tell(run.created()):
                yield event
            async with contextlib.aclosing(run.execute()) as events:
                async for happened in events:
                    for event in narrator.tell(happened):
                        yield event
        finally:
            # Only a new plan for the rest waits again, not one whose run never began.
            if stored is not None and run.status == "planned":
                await stored.keep(run.digest, state=run.save())
            elif stored is not None:
                await stored.settle("completed" if run.status == "completed" else "failed")

    def _pending(self, user: UserMessage) -> PendingPlan:
        return PendingPlan(user=user, prompt_digest=self._prompt_digest())

    def _prompt_digest(self) -> str:
        return hashlib.sha256(planner_instructions(self._options).encode()).hexdigest()


def _ended(run: PlanRun, caller: Caller) -> Iterator[AnswerEvent]:
    """Yield the answer of a request that runs nothing: a plan that waits, or was rejected."""
    narrator = Narrator(run, caller.warnings)
    if run.status == "planned":
        yield from narrator.tell(run.created())
        yield from narrator.tell(ApprovalRequired(plan_id=run.plan_id, digest=run.digest))
    yield from narrator.tell(run.finished())


# --- why a plan does not run ---------------------------------------------------------------------


def _check_approval(run: PlanRun, intent: Intent, stored: StoredPlan) -> None:
    """Refuse an approval of another plan, or of one that would run otherwise now."""
    name, digest, pending = f"the plan `{run.plan_id}`", stored.record.digest, stored.pending
    if intent.digest is None and (run.records or pending.revisions):
        # Its id is the same, so a client that repeats a request would approve an unseen plan.
        raise _changed(
            f"{name} was made again since it was first shown: approve it by its digest, in the "
            "header or in the body"
        )
    if intent.digest not in (None, digest):
        raise _changed(
            f"{name} is not the one that was approved: the digest does not match; look at it again"
        )
    as_shown = run.digest == digest and run.runs_as_shown(pending.state)
    searches = run.plan.searches if run.plan is not None else 0
    if not as_shown or (searches and not run.options.searchable):
        raise _changed(
            f"what {name} would be run with has changed since it was shown (mode, tools or "
            "executor of the policy): ask for a new one"
        )


def _changed(what: str) -> RequestError:
    return refusal(what, "plan_changed", status=412)


def _check_cost(run: PlanRun) -> None:
    high = run.forbidden_usd
    if high is not None:
        raise refusal(
            f"the plan may cost up to ${high:.4f}, over the ${run.options.max_cost_usd:g} of "
            "`max_cost_usd`; no step ran",
            "plan_too_costly",
            details={"estimate": run.estimate.as_json(), "plan_digest": run.digest},
        )


@contextlib.contextmanager
def _unusable(code: str, *, status: int) -> Iterator[None]:
    """Turn what is not a plan into an error with the reason and the text."""
    try:
        yield
    except PlanError as error:
        raise UnusablePlanError.of(error, code, status) from error
