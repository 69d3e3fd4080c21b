"""A run: a plan is made, shown, and worked through one step at a time.

There is one implementation: the route, ``switchyard plan`` and library calls use this object.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from switchyard_core import Conversation, DecisionWarning, RequestError, RouteContext, Transcript
from switchyard_core.answering import AskError, ModelUsage
from switchyard_core.conversation import UserMessage
from switchyard_planner_executor.caller import Caller
from switchyard_planner_executor.estimate import Estimate, estimate
from switchyard_planner_executor.events import (
    ApprovalRequired,
    PlanCreated,
    Replanned,
    RunEvent,
    RunFinished,
    Spent,
    StepRecord,
)
from switchyard_planner_executor.executor import Executor
from switchyard_planner_executor.options import PlannerExecutorOptions, get_mode
from switchyard_planner_executor.plan import Plan, PlanError, PlanStep, ReadPlan
from switchyard_planner_executor.planner import Planner
from switchyard_planner_executor.wording import step_text

__all__ = ["PlanRun"]


class PlanRun:
    """One plan, from the request to the last result.

    Of the context, ``ask``, ``tools``, ``targets``, ``clock`` and ``new_id`` are used. ``status``
    is ``planned``, ``running``, ``completed``, ``failed`` or ``rejected``, ``reason`` one word for
    why it failed; ``spent`` excludes what was spent before the plan waited.
    """

    def __init__(
        self,
        options: PlannerExecutorOptions,
        context: RouteContext,
        *,
        plan_id: str = "",
        caller: Caller | None = None,
    ) -> None:
        self.options = options
        self.mode = get_mode(options.mode)
        self.plan_id = plan_id or context.new_id("plan")
        self.plan: Plan | None = None
        self.records: list[StepRecord] = []
        self.warnings: list[DecisionWarning] = []
        self.status, self.reason = "planned", ""
        self.approved = False
        self.spent, self._spent_before = Spent(), Spent()
        self._replans = 0
        self._route = context.route
        self._planner = Planner(options, context, self.spent)
        self._executor = Executor(
            options, context, caller=caller or Caller(), spent=self.spent, warnings=self.warnings
        )

    # --- what it knows ---------------------------------------------------------------------------

    @property
    def calls(self) -> int:
        """How many calls the executor took so far."""
        return (self._spent_before + self.spent).calls

    @property
    def results(self) -> list[str]:
        """The results of the finished steps, in order."""
        return [record.result for record in self.records if record.status == "completed"]

    @property
    def digest(self) -> str:
        """Digest of the plan and of what it would be run with; ``""`` without a plan."""
        if self.plan is None:
            return ""
        return self.plan.digest(
            route=self._route,
            mode=self.mode,
            tools=sorted(self.options.tools),
            executor_target=self.options.executor_target,
        )

    @property
    def estimate(self) -> Estimate:
        """What running the steps that are left would take."""
        left, executor = self._left(), self._executor
        # What was said in this run is sent again with each call.
        said = executor.transcript.dumps() if self.records else ""
        return estimate(
            left,
            [step_text(step, query_tool=self.options.hinted_tool) for step in left],
            instructions=executor.instructions + said,
            tools=executor.tools,
            options=self.options,
            target=executor.target,
        )

    @property
    def forbidden_usd(self) -> float | None:
        """The high estimate in US dollars if ``max_cost_usd`` forbids it, else ``None``."""
        cost, limit = self.estimate.cost_usd, self.options.max_cost_usd
        return None if limit is None or cost is None or cost.high <= limit else cost.high

    @property
    def is_dear(self) -> bool:
        """Whether ``over_cost`` makes the plan wait for approval."""
        if self.options.approval != "over_cost":
            return False
        cost, limit = self.estimate.cost_usd, self.options.approval_over_usd
        # Without a price it cannot be known to be cheap.
        return cost is None or limit is None or cost.high > limit

    @property
    def _made(self) -> Plan:
        if self.plan is None:
            raise RuntimeError("there is no plan yet: call make_plan or use_plan first")
        return self.plan

    def _left(self) -> list[PlanStep]:
        ran = {record.step.step for record in self.records}
        return [step for step in self._made.steps if step.step not in ran]

    # --- the plan --------------------------------------------------------------------------------

    async def make_plan(
        self, request: str | UserMessage, history: Conversation | None = None
    ) -> Plan:
        """Ask the planner for a plan and keep it; it sees the request, and the history if given."""
        user = UserMessage(text=request) if isinstance(request, str) else request
        return self.use_plan(await self._planner.plan(user, history))

    async def revise_plan(self, request: UserMessage, feedback: str) -> Plan:
        """Ask the planner for another plan; raises like :meth:`make_plan`."""
        return self.use_plan(await self._planner.revise(request, self._made, feedback))

    def use_plan(self, found: Plan | ReadPlan) -> Plan:
        """Keep a plan that was made elsewhere."""
        read = found if isinstance(found, ReadPlan) else ReadPlan(plan=found)
        self.plan = read.plan
        self.warnings += read.warnings
        if not read.plan.steps:
            self.warnings.append(DecisionWarning(code="plan_empty", detail="the plan has no steps"))
        return read.plan

    def created(self) -> PlanCreated:
        """Return the event that shows the plan."""
        return PlanCreated(
            plan_id=self.plan_id,
            digest=self.digest,
            plan=self._made,
            estimate=self.estimate,
            warnings=tuple(dict.fromkeys(warning.code for warning in self.warnings)),
        )

    # --- the steps -------------------------------------------------------------------------------

    async def execute(self) -> AsyncGenerator[RunEvent]:
        """Run the steps that are left, in order, and yield what happens.

        The plan is frozen: results never change it, except for ``mode = "replan"`` after a
        failed step. Ends with :class:`RunFinished`; closing it early cancels the running call.
        """
        self.status = "running"
        ends = asyncio.get_running_loop().time() + self.options.run_timeout_s
        while self.status == "running" and (left := self._left()):
            record = StepRecord(step=left[0])
            self.records.append(record)
            # Closed at once when this is: a call must not continue until garbage collection.
            async with contextlib.aclosing(self._executor.step(record, ends)) as events:
                async for event in events:
                    yield event
            if record.status == "failed":
                for event in await self._after_failure(record, ends):
                    yield event
        if self.status == "running":
            bad = any(r.status == "failed" and not r.replanned for r in self.records)
            self.status, self.reason = ("failed", "step_failed") if bad else ("completed", "")
        yield self.finished()

    def finished(self) -> RunFinished:
        """Return the event that ends the log, with all that was spent for the plan."""
        total = self._spent_before + self.spent
        return RunFinished(
            status=self.status,
            reason=self.reason,
            planner=total.planner,
            executor=total.executor,
            calls=total.calls,
        )

    def _fail(self, reason: str) -> tuple[()]:
        self.status, self.reason = "failed", reason
        return ()

    async def _after_failure(self, record: StepRecord, ends: float) -> Sequence[RunEvent]:
        if record.code == "run_timeout":
            return self._fail("run_timeout")
        if self.mode != "replan":
            return self._fail("step_failed") if self.options.on_step_error == "stop" else ()
        if self._replans >= self.options.max_replans:
            return self._fail("replans_used_up")
        self._replans += 1
        unusable = "; a new plan for the rest was unusable"
        try:
            async with asyncio.timeout_at(ends):
                found = await self._planner.replan(self._made, self.records)
        except TimeoutError:
            return self._fail("run_timeout")
        except PlanError as error:
            record.error += f"{unusable}: {error.reason}"
            return self._fail("plan_unusable")
        except (AskError, RequestError) as error:
            record.error += f"; the planner could not be asked again: {error.message}"
            return self._fail("planner_failed")
        if not found.plan.steps:
            record.error += f"{unusable}: it has no steps"
            return self._fail("plan_unusable")
        record.replanned = True
        return self._replaced(found, why=record.code)

    def _replaced(self, found: ReadPlan, *, why: str) -> Sequence[RunEvent]:
        """Put a plan for the rest after the steps that ran; it may have to wait."""
        ran = tuple(record.step for record in self.records)
        plan = self._made.model_copy(update={"steps": (*ran, *found.plan.steps)})
        self.use_plan(ReadPlan(plan=plan, warnings=found.warnings))
        event = Replanned(
            plan_id=self.plan_id, digest=self.digest, plan=plan, why=why, estimate=self.estimate
        )
        asked = self.approved or self.options.approval == "always"
        if self.forbidden_usd is not None:
            self._fail("plan_too_costly")
        elif self.options.waits_again and (asked or self.is_dear):
            self.status = "planned"
            return event, ApprovalRequired(plan_id=self.plan_id, digest=self.digest)
        return (event,)

    # --- a run that waits ------------------------------------------------------------------------

    def save(self) -> dict[str, Any]:
        """Return what the run has done, and with which model, as plain data."""
        return {
            "executor_model": self._executor_model(),
            "plan": self._made.model_dump(mode="json"),
            "records": [{**r.as_json(), "replanned": r.replanned} for r in self.records],
            "transcript": self._executor.transcript.dumps(),
            "spent": asdict(self._spent_before + self.spent),
            "replans": self._replans,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from what :meth:`save` returned."""
        self.plan = Plan.model_validate(state["plan"])
        steps = {step.step: step for step in self.plan.steps}
        for row in state["records"]:
            changes = {"step": steps[row["step"]], "error": row["error"] or ""}
            self.records.append(
                StepRecord(**{**row, **changes, "usage": ModelUsage(**row["usage"])})
            )
        wire_format = self._executor.target.wire_format
        self._executor.transcript = Transcript.loads(wire_format, state["transcript"])
        spent = state["spent"]
        usages = {name: ModelUsage(**spent[name]) for name in ("planner", "executor")}
        self._spent_before = Spent(**usages, calls=spent["calls"])
        self._replans = state["replans"]

    def runs_as_shown(self, state: Mapping[str, Any]) -> bool:
        """Return whether the executor is the one the run was shown with; a reload can change it."""
        return bool(state["executor_model"] == self._executor_model())

    def _executor_model(self) -> list[str]:
        """Return what tells one executor from another: wire format, model, digest of the origin."""
        target = self._executor.target
        # A stored plan must not reveal the address of a client.
        origin = hashlib.sha256(repr(target.origin).encode("utf-8", "surrogatepass")).hexdigest()
        return [target.wire_format, target.id, origin]
