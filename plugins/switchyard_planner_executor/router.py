"""The router of ``planner_executor``: reads what the caller wants and lets a run do it."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass

from switchyard_core import (
    AnswerEvent,
    Decision,
    DecisionWarning,
    PlanRecord,
    Reason,
    Request,
    RequestError,
    RouteContext,
    UserMessage,
    WireFormat,
    left_out_sampling,
)
from switchyard_planner_executor.approval import (
    Approve,
    Fresh,
    Reject,
    Revise,
    RunPlan,
    read_intent,
)
from switchyard_planner_executor.caller import (
    CallerSettings,
    caller_settings,
    caller_warnings,
    refuse_unserved,
    require_user_text,
)
from switchyard_planner_executor.events import ApprovalRequired, RunFinished
from switchyard_planner_executor.options import PlannerExecutorOptions
from switchyard_planner_executor.pending import MAX_REVISIONS, Desk, Pending, changed
from switchyard_planner_executor.plan import Plan
from switchyard_planner_executor.reading import PlanError, read_plan_value
from switchyard_planner_executor.rendering import Narrator
from switchyard_planner_executor.run import PlanRun
from switchyard_planner_executor.wording import planner_instructions

__all__ = ["PlannerExecutorRouter"]

#: How much of a planner's unusable reply a caller is shown, in characters.
RAW_TEXT_CHARS = 4000
_BAD_GATEWAY = 502


@dataclass(frozen=True, slots=True, kw_only=True)
class _Caller:
    """What the caller says beside the task."""

    settings: CallerSettings
    instructions: str
    warnings: tuple[DecisionWarning, ...]

    @classmethod
    def of(
        cls, request: Request, options: PlannerExecutorOptions, context: RouteContext
    ) -> _Caller:
        keeps = options.caller_instructions == "executor"
        settings = caller_settings(request)
        return cls(
            settings=settings,
            instructions=request.instructions if keeps else "",
            warnings=(
                *caller_warnings(request, keeps_instructions=keeps),
                *_left_out(settings, context.targets[options.executor_target].wire_format),
            ),
        )

    def run(
        self, options: PlannerExecutorOptions, context: RouteContext, plan_id: str = ""
    ) -> PlanRun:
        return PlanRun(
            options,
            context,
            plan_id=plan_id,
            settings=self.settings,
            instructions=self.instructions,
        )


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
        caller = _Caller.of(request, options, context)
        if isinstance(intent, Fresh):
            events = self._fresh(request, context, caller, intent)
        elif isinstance(intent, RunPlan):
            events = self._given(context, caller, intent)
        else:
            events = self._decided(request, context, caller, intent)
        async with contextlib.aclosing(events):
            async for event in events:
                yield event

    # --- a new request -------------------------------------------------------------------

    async def _fresh(
        self, request: Request, context: RouteContext, caller: _Caller, intent: Fresh
    ) -> AsyncGenerator[AnswerEvent]:
        options = self._options
        history = request.conversation if options.planner_sees == "conversation" else None
        run = caller.run(options, context)
        gate = intent.hold or options.approval == "always"
        if not gate and options.approval == "none":
            with _unusable():
                await run.make_plan(request.user_message, history)
            _check_cost(run, options)
            async for event in self._run(run, caller):
                yield event
            return
        desk = Desk(context)
        record = await desk.reserve(run.plan_id)
        try:
            with _unusable():
                await run.make_plan(request.user_message, history)
            _check_cost(run, options)
            if gate or _is_dear(run, options):
                record = await desk.keep(record, run.digest, self._pending(request, run))
            else:
                await desk.drop(record)
        except BaseException:
            await desk.drop(record)
            raise
        if record.state == "planned":
            for event in _waiting(run, caller):
                yield event
            return
        async for event in self._run(run, caller):
            yield event

    async def _given(
        self, context: RouteContext, caller: _Caller, intent: RunPlan
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
            run.use_plan(read_plan_value(intent.value, max_steps=options.max_steps))
        except PlanError as error:
            raise _refusal(error, status=400, code="plan_invalid") from error
        _check_cost(run, options)
        if intent.hold or (options.approval == "over_cost" and _is_dear(run, options)):
            desk = Desk(context)
            record = await desk.reserve(run.plan_id)
            await desk.keep(
                record, run.digest, Pending(user=UserMessage(text=""), state=run.state())
            )
            for event in _waiting(run, caller):
                yield event
            return
        async for event in self._run(run, caller):
            yield event

    # --- a plan that waits ---------------------------------------------------------------

    async def _decided(
        self,
        request: Request,
        context: RouteContext,
        caller: _Caller,
        intent: Approve | Reject | Revise,
    ) -> AsyncGenerator[AnswerEvent]:
        desk = Desk(context)
        record = await desk.find(intent.plan_id)
        pending = Pending.from_bytes(record.data)
        run = caller.run(self._options, context, record.plan_id)
        run.restore(pending.state)
        if isinstance(intent, Reject):
            await desk.claim(record, "rejected")
            for event in _rejected(run, caller):
                yield event
            return
        if isinstance(intent, Revise):
            for event in await self._revised(request, desk, record, pending, run, caller):
                yield event
            return
        _check_digest(intent, record, run)
        _check_cost(run, self._options)
        record = await desk.claim(record, "running")
        async for event in self._approved(desk, record, pending, run, caller):
            yield event

    async def _approved(
        self, desk: Desk, record: PlanRecord, pending: Pending, run: PlanRun, caller: _Caller
    ) -> AsyncGenerator[AnswerEvent]:
        """Run an approved plan; whatever happens, the store knows how it ended."""
        try:
            async for event in self._run(run, caller):
                yield event
        finally:
            if run.status == "planned":
                again = Pending(
                    user=pending.user,
                    state=run.state(),
                    prompt_digest=pending.prompt_digest,
                    revisions=pending.revisions,
                )
                await desk.keep(record, run.digest, again)
            else:
                await desk.settle(record, "completed" if run.status == "completed" else "failed")

    async def _revised(
        self,
        request: Request,
        desk: Desk,
        record: PlanRecord,
        pending: Pending,
        run: PlanRun,
        caller: _Caller,
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
            with _unusable():
                await run.revise_plan(pending.user, plan, request.user_message.text)
            _check_cost(run, self._options)
        except BaseException:
            # The plan that was there waits on.
            await desk.keep(claimed, record.digest, pending)
            raise
        await desk.keep(
            claimed, run.digest, self._pending(request, run, pending.user, pending.revisions + 1)
        )
        return list(_waiting(run, caller))

    # --- running -------------------------------------------------------------------------

    async def _run(self, run: PlanRun, caller: _Caller) -> AsyncGenerator[AnswerEvent]:
        last_step = self._options.answer == "last_step"
        narrator = Narrator(run, waits=False, last_step=last_step, warnings=caller.warnings)
        for event in narrator.tell(run.created()):
            yield event
        events = run.execute()
        async with contextlib.aclosing(events):
            async for happened in events:
                for event in narrator.tell(happened):
                    yield event

    def _pending(
        self,
        request: Request,
        run: PlanRun,
        user: UserMessage | None = None,
        revisions: int = 0,
    ) -> Pending:
        options = self._options
        text = planner_instructions(
            options.planner_prompt,
            max_steps=options.max_steps,
            searchable=options.hinted_tool is not None,
        )
        return Pending(
            user=user if user is not None else request.user_message,
            state=run.state(),
            prompt_digest=hashlib.sha256(text.encode()).hexdigest(),
            revisions=revisions,
        )


def _left_out(settings: CallerSettings, wire_format: WireFormat) -> Iterator[DecisionWarning]:
    """Yield a warning for settings that the executor's format has no place for."""
    names = left_out_sampling(wire_format, settings.sampling)
    if names:
        detail = f"the executor's wire format has no place for: {', '.join(names)}"
        yield DecisionWarning(code="sampling_left_out", detail=detail)


def _waiting(run: PlanRun, caller: _Caller) -> list[AnswerEvent]:
    """Return the answer that shows a plan and how to go on."""
    narrator = Narrator(run, waits=True, last_step=False, warnings=caller.warnings)
    run.status = "planned"
    events = (
        run.created(),
        ApprovalRequired(plan_id=run.plan_id, digest=run.digest),
        run.finished(),
    )
    return [told for event in events for told in narrator.tell(event)]


def _rejected(run: PlanRun, caller: _Caller) -> list[AnswerEvent]:
    narrator = Narrator(run, waits=False, last_step=False, warnings=caller.warnings)
    run.status = "rejected"
    finished: RunFinished = run.finished()
    return list(narrator.tell(finished))


def _check_digest(intent: Approve, record: PlanRecord, run: PlanRun) -> None:
    if intent.digest is not None and intent.digest != record.digest:
        raise changed(
            f"the plan `{record.plan_id}` is not the one that was approved: its digest is "
            "another one; look at it again"
        )
    if run.digest != record.digest:
        raise changed(
            f"what the plan `{record.plan_id}` would be run with has changed since it was shown "
            "(mode, tools or executor of the policy): ask for a new one"
        )


def _check_cost(run: PlanRun, options: PlannerExecutorOptions) -> None:
    """Refuse a plan that may cost more than the policy allows."""
    cost, limit = run.estimate.cost_usd, options.max_cost_usd
    if limit is None or cost is None or cost.high <= limit:
        return
    raise RequestError(
        message=f"the plan may cost up to ${cost.high:.4f}, over the ${limit:g} of "
        "`max_cost_usd`; no step ran",
        code="plan_too_costly",
        headers={"x-should-retry": "false"},
        details={"estimate": run.estimate.as_json(), "plan_digest": run.digest},
    )


def _is_dear(run: PlanRun, options: PlannerExecutorOptions) -> bool:
    cost, limit = run.estimate.cost_usd, options.approval_over_usd
    # Without a price nobody can say that it is cheap.
    return cost is None or limit is None or cost.high > limit


@contextlib.contextmanager
def _unusable() -> Iterator[None]:
    """Turn a reply that is no plan into what the caller is told."""
    try:
        yield
    except PlanError as error:
        raise _refusal(error, status=_BAD_GATEWAY, code="plan_unusable") from error


def _refusal(error: PlanError, *, status: int, code: str) -> RequestError:
    return RequestError(
        message=f"{error}; no step ran",
        code=code,
        status=status,
        headers={"x-should-retry": "false"},
        details={"reason": error.reason, "raw_text": error.raw_text[:RAW_TEXT_CHARS]},
    )
