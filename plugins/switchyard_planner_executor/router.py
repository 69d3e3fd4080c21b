"""The router of ``planner_executor``: reads what the caller wants and lets a run do it."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import AsyncGenerator
from dataclasses import replace

from switchyard_core import (
    AnswerEvent,
    Decision,
    PlanRecord,
    Reason,
    Request,
    RequestError,
    RouteContext,
    UserMessage,
)
from switchyard_planner_executor.approval import (
    Approve,
    Fresh,
    Reject,
    Revise,
    RunPlan,
    read_intent,
)
from switchyard_planner_executor.budget import is_dear
from switchyard_planner_executor.caller import refuse_unserved, require_user_text
from switchyard_planner_executor.caller_view import Caller
from switchyard_planner_executor.events import ApprovalRequired, RunFinished
from switchyard_planner_executor.options import PlannerExecutorOptions
from switchyard_planner_executor.pending import MAX_REVISIONS, Desk, Pending
from switchyard_planner_executor.plan import Plan
from switchyard_planner_executor.planner import must_have_tools
from switchyard_planner_executor.reading import PlanError, read_plan_value
from switchyard_planner_executor.refusals import (
    check_cost,
    check_digest,
    check_version,
    plan_refusal,
    unusable,
)
from switchyard_planner_executor.rendering import Narrator
from switchyard_planner_executor.run import PlanRun
from switchyard_planner_executor.saved import restore, save
from switchyard_planner_executor.wording import planner_instructions

__all__ = ["PlannerExecutorRouter"]


class PlannerExecutorRouter:
    """Plans with one target, then runs the plan step by step on another.

    Args:
        options: The route's options.
    """

    def __init__(self, options: PlannerExecutorOptions) -> None:
        self._options = options

    async def route(self, request: Request, context: RouteContext) -> Decision:
        """Return what would be asked first; asks nobody."""
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
        """Yield the plan, then the result of each step.

        Raises:
            RequestError: The request, the plan or the approval is refused; nothing ran.
        """
        options = self._options
        refuse_unserved(request, caller_tools=options.caller_tools)
        intent = read_intent(request, by_text=options.approval_by_text)
        if isinstance(intent, (Fresh, Revise)):
            require_user_text(request)
        caller = Caller.of(request, options, context)
        if isinstance(intent, Fresh):
            events = self._fresh(request, context, caller, intent)
        elif isinstance(intent, RunPlan):
            events = self._given(request, context, caller, intent)
        else:
            events = self._decided(request, context, caller, intent)
        async with contextlib.aclosing(events):
            async for event in events:
                yield event

    # --- a new request -------------------------------------------------------------------

    async def _fresh(
        self, request: Request, context: RouteContext, caller: Caller, intent: Fresh
    ) -> AsyncGenerator[AnswerEvent]:
        options = self._options
        history = request.conversation if options.planner_sees == "conversation" else None
        run = caller.run(options, context)
        gate = intent.hold or options.approval == "always"
        if not gate and options.approval == "none":
            with unusable():
                await run.make_plan(request.user_message, history)
            check_cost(run, options)
            async with contextlib.aclosing(self._run(run, caller)) as events:
                async for event in events:
                    yield event
            return
        desk = Desk(context)
        record = await desk.reserve(run.plan_id)
        try:
            with unusable():
                await run.make_plan(request.user_message, history)
            check_cost(run, options)
        except BaseException:
            await desk.drop(record)
            raise
        pending = self._pending(request.user_message, run)
        holds = gate or is_dear(run.estimate, options)
        async with contextlib.aclosing(
            self._placed(desk, record, pending, run, caller, holds=holds)
        ) as events:
            async for event in events:
                yield event

    async def _placed(
        self,
        desk: Desk,
        record: PlanRecord,
        pending: Pending,
        run: PlanRun,
        caller: Caller,
        *,
        holds: bool,
    ) -> AsyncGenerator[AnswerEvent]:
        """Let a plan that has a place in the store wait there, or run it."""
        if holds:
            await desk.keep(record, run.digest, pending)
            for event in _waiting(run, caller):
                yield event
            return
        if _may_wait_later(self._options):
            running = await desk.claim(record, "running")
            events = self._approved(desk, running, pending, run, caller)
        else:
            await desk.drop(record)
            events = self._run(run, caller)
        async with contextlib.aclosing(events):
            async for event in events:
                yield event

    async def _given(
        self, request: Request, context: RouteContext, caller: Caller, intent: RunPlan
    ) -> AsyncGenerator[AnswerEvent]:
        """Run a plan that the caller brings."""
        options = self._options
        if options.approval == "always" and not options.allow_caller_plans:
            raise RequestError(
                message="this route runs only plans of its own that were approved: it takes no "
                "plan from a caller unless its policy says `allow_caller_plans = true`",
                code="caller_plans_off",
                headers={"x-should-retry": "false"},
            )
        run = caller.run(options, context)
        try:
            found = read_plan_value(intent.value, max_steps=options.max_steps)
            searchable = options.hinted_tool is not None
            must_have_tools(found.plan, json.dumps(intent.value), searchable=searchable)
            run.use_plan(found)
        except PlanError as error:
            raise plan_refusal(error, status=400, code="plan_invalid") from error
        check_cost(run, options)
        holds = intent.hold or is_dear(run.estimate, options)
        if not holds and not _may_wait_later(options):
            async with contextlib.aclosing(self._run(run, caller)) as events:
                async for event in events:
                    yield event
            return
        desk = Desk(context)
        record = await desk.reserve(run.plan_id)
        # A revision needs to know what the plan is for.
        user = request.user_message
        if not user.text.strip():
            user = replace(user, text=found.plan.goal)
        pending = self._pending(user, run)
        async with contextlib.aclosing(
            self._placed(desk, record, pending, run, caller, holds=holds)
        ) as events:
            async for event in events:
                yield event

    # --- a plan that waits ---------------------------------------------------------------

    async def _decided(
        self,
        request: Request,
        context: RouteContext,
        caller: Caller,
        intent: Approve | Reject | Revise,
    ) -> AsyncGenerator[AnswerEvent]:
        desk = Desk(context)
        record = await desk.find(intent.plan_id)
        pending = Pending.from_bytes(record.data)
        run = caller.run(self._options, context, record.plan_id)
        restore(run, pending.state)
        if isinstance(intent, Reject):
            await desk.claim(record, "rejected")
            for event in _rejected(run, caller):
                yield event
            return
        if isinstance(intent, Revise):
            for event in await self._revised(request, desk, record, pending, run, caller):
                yield event
            return
        check_version(intent, run, pending)
        check_digest(intent, record, run, pending)
        check_cost(run, self._options)
        record = await desk.claim(record, "running")
        run.approved = True
        async with contextlib.aclosing(
            self._approved(desk, record, pending, run, caller)
        ) as events:
            async for event in events:
                yield event

    async def _approved(
        self, desk: Desk, record: PlanRecord, pending: Pending, run: PlanRun, caller: Caller
    ) -> AsyncGenerator[AnswerEvent]:
        """Run a plan that has a place; whatever happens, the store knows how it ended."""
        # Only a new plan of the rest waits again, not one that nobody came to run.
        run.status = "running"
        try:
            async with contextlib.aclosing(self._run(run, caller)) as events:
                async for event in events:
                    yield event
        finally:
            if run.status == "planned":
                await desk.keep(record, run.digest, replace(pending, state=save(run)))
            else:
                await desk.settle(record, "completed" if run.status == "completed" else "failed")

    async def _revised(
        self,
        request: Request,
        desk: Desk,
        record: PlanRecord,
        pending: Pending,
        run: PlanRun,
        caller: Caller,
    ) -> list[AnswerEvent]:
        """Make another plan from what the caller says of the one that waits."""
        if pending.revisions >= MAX_REVISIONS:
            raise RequestError(
                message=f"the plan `{record.plan_id}` was revised {MAX_REVISIONS} times, which is "
                "the most: approve it, reject it, or ask for a new one",
                code="plan_revisions_used_up",
                headers={"x-should-retry": "false"},
            )
        plan: Plan | None = run.plan
        if plan is None or run.records:
            raise RequestError(
                message=f"some steps of the plan `{record.plan_id}` ran already: approve or reject "
                "what is left of it",
                code="plan_begun",
                headers={"x-should-retry": "false"},
            )
        claimed = await desk.claim(record, "planning")
        try:
            with unusable():
                await run.revise_plan(pending.user, plan, request.user_message.text)
            check_cost(run, self._options)
        except BaseException:
            # The plan that was there waits on.
            await desk.keep(claimed, record.digest, pending)
            raise
        await desk.keep(
            claimed, run.digest, self._pending(pending.user, run, pending.revisions + 1)
        )
        return list(_waiting(run, caller))

    # --- running -------------------------------------------------------------------------

    async def _run(self, run: PlanRun, caller: Caller) -> AsyncGenerator[AnswerEvent]:
        last_step = self._options.answer == "last_step"
        narrator = Narrator(run, waits=False, last_step=last_step, warnings=caller.warnings)
        for event in narrator.tell(run.created()):
            yield event
        events = run.execute()
        async with contextlib.aclosing(events):
            async for happened in events:
                for event in narrator.tell(happened):
                    yield event

    def _pending(self, user: UserMessage, run: PlanRun, revisions: int = 0) -> Pending:
        options = self._options
        text = planner_instructions(
            options.planner_prompt,
            max_steps=options.max_steps,
            searchable=options.hinted_tool is not None,
        )
        return Pending(
            user=user,
            state=save(run),
            prompt_digest=hashlib.sha256(text.encode()).hexdigest(),
            revisions=revisions,
        )


def _waiting(run: PlanRun, caller: Caller) -> list[AnswerEvent]:
    """Return the answer that shows a plan and how to go on."""
    narrator = Narrator(run, waits=True, last_step=False, warnings=caller.warnings)
    run.status = "planned"
    events = (
        run.created(),
        ApprovalRequired(plan_id=run.plan_id, digest=run.digest),
        run.finished(),
    )
    return [told for event in events for told in narrator.tell(event)]


def _rejected(run: PlanRun, caller: Caller) -> list[AnswerEvent]:
    narrator = Narrator(run, waits=False, last_step=False, warnings=caller.warnings)
    run.status = "rejected"
    finished: RunFinished = run.finished()
    return list(narrator.tell(finished))


def _may_wait_later(options: PlannerExecutorOptions) -> bool:
    """Return whether a run that begins at once may come to wait, at a new plan of the rest."""
    return (
        options.mode == "replan"
        and options.approval != "none"
        and options.replan_approval == "again"
    )
