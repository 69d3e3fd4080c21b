"""A run: a plan is made, shown, and worked through one step at a time.

There is one implementation. The route, ``switchyard plan`` and a library call use this object.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator

from switchyard_core import (
    AskError,
    Conversation,
    DecisionWarning,
    RequestError,
    RouteContext,
    UserMessage,
)
from switchyard_planner_executor.budget import is_dear, over_limit
from switchyard_planner_executor.caller import CallerSettings
from switchyard_planner_executor.estimate import Basis, Estimate, estimate
from switchyard_planner_executor.events import (
    ApprovalRequired,
    PlanCreated,
    Replanned,
    RunEvent,
    RunFinished,
)
from switchyard_planner_executor.executor import Executor
from switchyard_planner_executor.modes import get_mode
from switchyard_planner_executor.options import PlannerExecutorOptions
from switchyard_planner_executor.plan import Plan, PlanStep, plan_digest
from switchyard_planner_executor.planner import Planner
from switchyard_planner_executor.reading import PlanError, ReadPlan
from switchyard_planner_executor.records import StepRecord

__all__ = ["PlanRun"]


class PlanRun:
    """One plan, from the request to the last result.

    Args:
        options: Options of the route.
        context: What the route is given: ``ask``, ``tools``, ``targets`` and ``clock`` are used.
        plan_id: Id of the plan; ``""`` makes a new one.
        settings: What the caller sets for the executor.
        instructions: The caller's instructions for the executor, ``""`` for none.

    Raises:
        UnknownModeError: The mode is none of the known ones.
    """

    def __init__(
        self,
        options: PlannerExecutorOptions,
        context: RouteContext,
        *,
        plan_id: str = "",
        settings: CallerSettings | None = None,
        instructions: str = "",
    ) -> None:
        self.options = options
        self.mode = get_mode(options.mode)
        self.plan_id = plan_id or context.new_id("plan")
        self.plan: Plan | None = None
        self.records: list[StepRecord] = []
        self.warnings: list[DecisionWarning] = []
        self.status = "planned"
        self.reason = ""
        self.replans = 0
        self.approved = False
        #: What was spent before this request, when a run goes on that had waited.
        self.restored: RunFinished | None = None
        self._context = context
        self.planner = Planner(
            options=options,
            wire_format=context.targets[options.planner_target].wire_format,
            ask=context.ask,
            searchable=options.hinted_tool is not None,
        )
        self.executor = Executor(
            options,
            context,
            settings=settings if settings is not None else CallerSettings(),
            instructions=instructions,
            mode=self.mode,
            warnings=self.warnings,
        )

    # --- what it knows -------------------------------------------------------------------

    @property
    def calls(self) -> int:
        """How many calls the executor took so far."""
        return self.executor.calls

    @property
    def results(self) -> list[str]:
        """The results of the finished steps, in order."""
        return [record.result for record in self.records if record.status == "completed"]

    @property
    def digest(self) -> str:
        """Digest of the plan and of what it would be run with; ``""`` without a plan."""
        if self.plan is None:
            return ""
        return plan_digest(
            self.plan,
            route_id=self._context.route,
            mode=self.mode,
            tools=self.options.tools,
            executor_target=self.options.executor_target,
        )

    @property
    def estimate(self) -> Estimate:
        """What running the steps that are left would take."""
        left, options, executor = self._left(), self.options, self.executor
        basis = Basis(
            # What was said in this run is sent again with each call.
            instructions=executor.instructions() + executor.transcript.dumps() * bool(self.records),
            step_texts=[executor.step_text(step) for step in left],
            tools=executor.tools(),
            output_tokens=options.estimate_output_tokens,
            max_output_tokens=options.executor_max_tokens,
            max_tool_rounds=options.max_tool_rounds,
            max_tool_output_chars=options.max_tool_output_chars,
            target=options.executor_target,
            model=executor.target.id,
            price=executor.target.price,
        )
        return estimate(self._made.model_copy(update={"steps": tuple(left)}), basis)

    @property
    def _made(self) -> Plan:
        if self.plan is None:
            msg = "there is no plan yet: call make_plan or use_plan first"
            raise RuntimeError(msg)
        return self.plan

    def _left(self) -> list[PlanStep]:
        ran = {record.step.step for record in self.records}
        return [step for step in self._made.steps if step.step not in ran]

    # --- the plan ------------------------------------------------------------------------

    async def make_plan(
        self, request: str | UserMessage, history: Conversation | None = None
    ) -> Plan:
        """Ask the planner for a plan and keep it.

        Args:
            request: What the user wants; all that the planner sees, unless:
            history: The conversation before it.

        Raises:
            PlanError: The reply is no plan; carries reason and text.
            AskError: The planner's provider gave no answer.
            RequestError: The planner took too long.
        """
        user = UserMessage(text=request) if isinstance(request, str) else request
        return self._take(await self.planner.plan(user, history))

    async def revise_plan(self, request: UserMessage, plan: Plan, feedback: str) -> Plan:
        """Ask the planner for another plan; raises like :meth:`make_plan`."""
        return self._take(await self.planner.revise(request, plan, feedback))

    def use_plan(self, found: Plan | ReadPlan) -> Plan:
        """Keep a plan that was made elsewhere."""
        return self._take(found if isinstance(found, ReadPlan) else ReadPlan(plan=found))

    def _take(self, found: ReadPlan) -> Plan:
        self.plan = found.plan
        self.warnings += found.warnings
        if not found.plan.steps:
            self.warnings.append(DecisionWarning(code="plan_empty", detail="the plan has no steps"))
        return found.plan

    def created(self) -> PlanCreated:
        """Return the event that shows the plan."""
        return PlanCreated(
            plan_id=self.plan_id,
            digest=self.digest,
            plan=self._made,
            estimate=self.estimate,
            warnings=tuple(dict.fromkeys(warning.code for warning in self.warnings)),
        )

    # --- the steps -----------------------------------------------------------------------

    async def execute(self) -> AsyncGenerator[RunEvent]:
        """Run the steps that are left, in order, and yield what happens.

        The plan is frozen: results never change it, but for ``mode = "replan"`` after a failed
        step. Ends with :class:`RunFinished`; closing it early cancels the call that runs.
        """
        self.status = "running"
        end = asyncio.get_running_loop().time() + self.options.run_timeout_s
        while self.status == "running":
            left = self._left()
            if not left:
                break
            # Closed at once when this is: a call must not go on until somebody collects it.
            record = StepRecord(step=left[0])
            self.records.append(record)
            async with contextlib.aclosing(self.executor.step(record, end)) as events:
                async for event in events:
                    yield event
            if record.status == "failed":
                async with contextlib.aclosing(self._after_failure(record, end)) as events:
                    async for event in events:
                        yield event
        if self.status == "running":
            bad = any(r.status == "failed" and not r.replanned for r in self.records)
            self.status = "failed" if bad else "completed"
            self.reason = "step_failed" if bad else ""
        yield self.finished()

    def finished(self) -> RunFinished:
        """Return the event that ends the log."""
        return RunFinished(
            status=self.status,
            reason=self.reason,
            planner=self.planner.usage,
            executor=self.executor.usage,
            calls=self.calls,
        )

    def fail(self, reason: str) -> None:
        """Note that the run ended early."""
        self.status, self.reason = "failed", reason

    async def _after_failure(self, record: StepRecord, end: float) -> AsyncGenerator[RunEvent]:
        """Decide how a run goes on after a failed step."""
        if record.code == "run_timeout":
            self.fail("run_timeout")
        elif self.mode != "replan":
            if self.options.on_step_error == "stop":
                self.fail("step_failed")
        elif self.replans >= self.options.max_replans:
            self.fail("replans_used_up")
        else:
            async with contextlib.aclosing(self._replan(record, end)) as events:
                async for event in events:
                    yield event

    async def _replan(self, record: StepRecord, end: float) -> AsyncGenerator[RunEvent]:
        made, first = self._made, record.step.step + 1
        self.replans += 1
        try:
            async with asyncio.timeout_at(end):
                found = await self.planner.replan(made, self.records, first)
        except TimeoutError:
            self.fail("run_timeout")
            return
        except PlanError as error:
            self.fail("plan_unusable")
            record.error += f"; a new plan for the rest was unusable: {error.reason}"
            return
        except (AskError, RequestError) as error:
            self.fail("planner_failed")
            record.error += f"; the planner could not be asked again: {error.message}"
            return
        if not found.plan.steps:
            self.fail("plan_unusable")
            record.error += "; a new plan for the rest was unusable: it has no steps"
            return
        record.replanned = True
        ran = tuple(each.step for each in self.records)
        plan = made.model_copy(update={"steps": (*ran, *found.plan.steps)})
        self._take(ReadPlan(plan=plan, warnings=found.warnings))
        yield Replanned(
            plan_id=self.plan_id,
            digest=self.digest,
            plan=self._made,
            why=record.code,
            estimate=self.estimate,
        )
        if over_limit(self.estimate, self.options) is not None:
            self.fail("plan_too_costly")
        elif self._waits_again():
            self.status = "planned"
            yield ApprovalRequired(plan_id=self.plan_id, digest=self.digest)

    def _waits_again(self) -> bool:
        """Return whether a plan of the rest waits for approval as the first one did, or would."""
        options = self.options
        if options.replan_approval != "again" or options.approval == "none":
            return False
        return options.approval == "always" or self.approved or is_dear(self.estimate, options)
