"""The executor: one conversation in its own wire format, one step at a time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence

from switchyard_core import (
    AskError,
    DecisionWarning,
    ModelCall,
    ModelReply,
    ModelUsage,
    RequestedCall,
    RequestError,
    RouteContext,
    ToolOutput,
    ToolSpec,
    Transcript,
)
from switchyard_planner_executor.caller import CallerSettings
from switchyard_planner_executor.deadline import Deadline, StepFailure
from switchyard_planner_executor.events import (
    RunEvent,
    StepFailed,
    StepFinished,
    StepStarted,
    StepText,
    ToolCalled,
    ToolReturned,
)
from switchyard_planner_executor.options import PlannerExecutorOptions
from switchyard_planner_executor.plan import PlanStep
from switchyard_planner_executor.records import StepRecord
from switchyard_planner_executor.wording import (
    BLOCKED_TOOL,
    blocked_tool,
    executor_instructions,
    step_text,
)

__all__ = ["Executor"]


class Executor:
    """Carries out steps; sees neither the request, nor the goal, nor a later step.

    Args:
        options: Options of the route.
        context: ``ask``, ``tools``, ``targets`` and ``clock`` are used.
        settings: What the caller sets.
        instructions: The caller's instructions, ``""`` for none.
        mode: Mode of the run.
        warnings: Where it notes what was odd.
    """

    def __init__(
        self,
        options: PlannerExecutorOptions,
        context: RouteContext,
        *,
        settings: CallerSettings,
        instructions: str,
        mode: str,
        warnings: list[DecisionWarning],
    ) -> None:
        self.target = context.targets[options.executor_target]
        #: The conversation so far; it grows with each step.
        self.transcript = Transcript(self.target.wire_format)
        #: Tokens of all calls so far.
        self.usage = ModelUsage()
        #: Calls so far.
        self.calls = 0
        self._options = options
        self._context = context
        self._settings = settings
        self._told = instructions
        self._mode = mode
        self._warnings = warnings

    async def step(self, record: StepRecord, end: float) -> AsyncGenerator[RunEvent]:
        """Carry out one step and yield what happens; the record says how it ended.

        Args:
            record: Of the step.
            end: Time of the event loop at which the run's time is over.
        """
        step = record.step
        start = self._context.clock()
        yield StepStarted(step=step.step, action=step.action, query=step.query)
        self.transcript.user(self.step_text(step))
        limit = self._deadline(end)
        try:
            reply: ModelReply | None = None
            for left in range(self._options.max_tool_rounds, -1, -1):
                reply = await self._ask(record, limit)
                if not reply.calls:
                    break
                self._check_calls(reply.calls, left)
                for call in reply.calls:
                    yield ToolCalled(step=step.step, name=call.name, arguments=call.arguments)
                outputs = await self._run_tools(record, reply.calls, limit)
                self.transcript.reply(reply)
                self.transcript.results(outputs)
                for output in outputs:
                    record.note_tool(output)
                    yield ToolReturned(
                        step=step.step,
                        name=output.call.name,
                        ok=output.ok,
                        ms=output.ms,
                        error=output.error,
                    )
            if reply is None:
                raise AssertionError  # max_tool_rounds is 0 or more, so there was a call
            self._conclude(record, reply)
        except StepFailure as failure:
            record.status, record.code, record.error = "failed", failure.code, failure.error
        record.ms = (self._context.clock() - start) * 1000
        if record.status == "failed":
            yield StepFailed(
                step=step.step, code=record.code, error=record.error, usage=record.usage
            )
            return
        yield StepText(step=step.step, delta=record.result)
        yield StepFinished(step=step.step, result=record.result, usage=record.usage)

    def _check_calls(self, calls: Sequence[RequestedCall], left: int) -> None:
        """End the step if the executor gives it up, or has had its rounds."""
        for call in calls:
            if call.name == BLOCKED_TOOL and self._mode == "replan":
                raise StepFailure("blocked", _reason_of(call))
        if not left:
            raise StepFailure(
                "tool_rounds",
                f"it asked for tools more than {self._options.max_tool_rounds} times "
                "(`max_tool_rounds`)",
            )

    def _conclude(self, record: StepRecord, reply: ModelReply) -> None:
        text = reply.text.strip()
        step = record.step.step
        if reply.truncated:
            if not text:
                raise StepFailure("truncated", "its answer was cut before it said anything")
            self._warn("step_truncated", f"the result of step {step} was cut at a token limit")
        elif not text:
            self._warn("step_empty", f"the executor said nothing in step {step}")
        self.transcript.reply(reply)
        record.result = text
        record.status = "completed"

    def _warn(self, code: str, detail: str) -> None:
        self._warnings.append(DecisionWarning(code=code, detail=detail))

    def _deadline(self, run_at: float) -> Deadline:
        options = self._options
        return Deadline(
            step_at=asyncio.get_running_loop().time() + options.step_timeout_s,
            step_s=options.step_timeout_s,
            run_at=run_at,
            run_s=options.run_timeout_s,
        )

    async def _ask(self, record: StepRecord, limit: Deadline) -> ModelReply:
        options = self._options
        call = ModelCall(
            instructions=self.instructions(),
            items=self.transcript.items,
            tools=self.tools(),
            max_output_tokens=self._settings.max_output_tokens or options.executor_max_tokens,
            sampling=self._settings.sampling,
            keep_reasoning=True,
            role="executor",
        )
        self.calls += 1
        try:
            reply = await limit.within(self._context.ask(options.executor_target, call))
        except (AskError, RequestError) as error:
            # A call that is refused on our side, such as for a missing key, is no other thing to
            # the caller: the plan is shown already, and no step that ran may run again.
            raise StepFailure("upstream", error.message) from error
        record.usage += reply.usage
        self.usage += reply.usage
        if reply.refusal:
            raise StepFailure("refused", f"the executor refused: {reply.refusal}")
        if reply.wants:
            # Not even its other calls are made: without all the results it cannot go on.
            words = ", ".join(f"`{word}`" for word in reply.wants)
            raise StepFailure(
                "unfamiliar_call",
                f"the executor waits for {words}, which this route cannot give it; look for what "
                "offers it, such as `extra_body` of the target, and take it out",
            )
        return reply

    async def _run_tools(
        self, record: StepRecord, calls: Sequence[RequestedCall], limit: Deadline
    ) -> Sequence[ToolOutput]:
        cap = self._options.max_tool_output_chars
        try:
            return await limit.within(self._context.tools.run(calls, max_output_chars=cap))
        except StepFailure as failure:
            # They were called, and one with side effects goes on: the answer must not hide it.
            for call in calls:
                record.note_tool(ToolOutput(call=call, text="", ok=False, error=failure.code))
            raise

    # --- what the executor is told -------------------------------------------------------

    def instructions(self) -> str:
        """Return the executor's instructions, with the caller's if they go along."""
        parts = (executor_instructions(self._options.executor_prompt), self._told)
        return "\n\n".join(part for part in parts if part)

    def tools(self) -> tuple[ToolSpec, ...]:
        """Return the tools that every call offers."""
        specs = self._context.tools.specs
        return specs if self._mode != "replan" else (*specs, blocked_tool())

    def step_text(self, step: PlanStep) -> str:
        """Return the message of a step."""
        return step_text(step, query_tool=self._options.hinted_tool)


def _reason_of(call: RequestedCall) -> str:
    try:
        reason = json.loads(call.arguments)["reason"]
    except (ValueError, KeyError, TypeError, RecursionError):
        reason = None
    return reason if isinstance(reason, str) and reason.strip() else "it cannot be done"
