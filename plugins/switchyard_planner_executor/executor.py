"""The executor: one conversation in its own wire format, one step at a time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Sequence
from typing import TypeVar

from switchyard_core import DecisionWarning, RequestError, RouteContext, Transcript
from switchyard_core.answering import (
    AskError,
    ModelCall,
    ModelReply,
    RequestedCall,
    ToolOutput,
    ToolSpec,
)
from switchyard_planner_executor.caller import Caller
from switchyard_planner_executor.events import (
    RunEvent,
    Spent,
    StepFailed,
    StepFinished,
    StepRecord,
    StepStarted,
    StepText,
    ToolCalled,
    ToolReturned,
)
from switchyard_planner_executor.options import PlannerExecutorOptions
from switchyard_planner_executor.wording import (
    BLOCKED_TOOL,
    blocked_tool,
    executor_instructions,
    step_text,
)

__all__ = ["Executor"]

_T = TypeVar("_T")


class _StepFailure(Exception):  # noqa: N818  # a step's end, not an error of ours
    """Ends a step without a result; see :class:`StepFailed`."""

    def __init__(self, code: str, error: str) -> None:
        self.code = code
        self.error = error
        super().__init__(error)


class Executor:
    """Carries out steps; sees neither the request, nor the goal, nor a later step.

    Its calls and tokens are added to ``spent``, what was odd to ``warnings``. Its ``transcript``
    grows with each step; every call sends ``instructions`` and offers ``tools``.
    """

    def __init__(
        self,
        options: PlannerExecutorOptions,
        context: RouteContext,
        *,
        caller: Caller,
        spent: Spent,
        warnings: list[DecisionWarning],
    ) -> None:
        self.target = context.targets[options.executor_target]
        self.transcript = Transcript(self.target.wire_format)
        parts = (executor_instructions(options), caller.instructions)
        self.instructions = "\n\n".join(part for part in parts if part)
        self._can_block = options.mode == "replan"
        blocked = (blocked_tool(),) if self._can_block else ()
        self.tools: tuple[ToolSpec, ...] = (*context.tools.specs, *blocked)
        self._options = options
        self._context = context
        self._caller = caller
        self._spent = spent
        self._warnings = warnings

    async def step(self, record: StepRecord, run_ends: float) -> AsyncGenerator[RunEvent]:
        """Carry out one step until ``run_ends``, in loop time; yield events, fill in the record."""
        step = record.step
        start = self._context.clock()
        yield StepStarted(step=step.step, action=step.action, query=step.query)
        self.transcript.user(step_text(step, query_tool=self._options.hinted_tool))
        ends = (asyncio.get_running_loop().time() + self._options.step_timeout_s, run_ends)
        try:
            reply = await self._ask(record, ends)
            rounds_left = self._options.max_tool_rounds
            while reply.calls:
                self._check_calls(reply.calls, rounds_left)
                rounds_left -= 1
                for call in reply.calls:
                    yield ToolCalled(step=step.step, name=call.name, arguments=call.arguments)
                outputs = await self._run_tools(record, reply.calls, ends)
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
                reply = await self._ask(record, ends)
            self._conclude(record, reply)
        except _StepFailure as failure:
            record.status, record.code, record.error = "failed", failure.code, failure.error
        record.ms = (self._context.clock() - start) * 1000
        if record.status == "failed":
            code, error = record.code, record.error
            yield StepFailed(step=step.step, code=code, error=error, usage=record.usage)
            return
        yield StepText(step=step.step, delta=record.result)
        yield StepFinished(step=step.step, result=record.result, usage=record.usage)

    def _check_calls(self, calls: Sequence[RequestedCall], rounds_left: int) -> None:
        for call in calls:
            if call.name == BLOCKED_TOOL and self._can_block:
                raise _StepFailure("blocked", _reason_of(call))
        if not rounds_left:
            most = self._options.max_tool_rounds
            what = f"it asked for tools more than {most} times (`max_tool_rounds`)"
            raise _StepFailure("tool_rounds", what)

    def _conclude(self, record: StepRecord, reply: ModelReply) -> None:
        text = reply.text.strip()
        step = record.step.step
        if reply.truncated:
            if not text:
                raise _StepFailure("truncated", "its answer was cut before it said anything")
            self._warn("step_truncated", f"the result of step {step} was cut at a token limit")
        elif not text:
            self._warn("step_empty", f"the executor said nothing in step {step}")
        self.transcript.reply(reply)
        record.result = text
        record.status = "completed"

    def _warn(self, code: str, detail: str) -> None:
        self._warnings.append(DecisionWarning(code=code, detail=detail))

    async def _ask(self, record: StepRecord, ends: tuple[float, float]) -> ModelReply:
        options, caller = self._options, self._caller
        call = ModelCall(
            instructions=self.instructions,
            items=self.transcript.items,
            tools=self.tools,
            max_output_tokens=caller.max_output_tokens or options.executor_max_tokens,
            sampling=caller.sampling,
            keep_reasoning=True,
            role="executor",
        )
        self._spent.calls += 1
        try:
            reply = await self._within(ends, self._context.ask(options.executor_target, call))
        except (AskError, RequestError) as error:
            # A call that is refused on our side, such as for a missing key, looks the same to
            # the caller: the plan is shown already, and no step that ran may run again.
            raise _StepFailure("upstream", error.message) from error
        record.usage += reply.usage
        self._spent.executor += reply.usage
        if reply.refusal:
            raise _StepFailure("refused", f"the executor refused: {reply.refusal}")
        if reply.wants:
            # Not even its other calls are made: without all the results it cannot continue.
            words = ", ".join(f"`{word}`" for word in reply.wants)
            raise _StepFailure(
                "unfamiliar_call",
                f"the executor waits for {words}, which this route cannot give it; look for what "
                "offers it, such as `extra_body` of the target, and take it out",
            )
        return reply

    async def _run_tools(
        self, record: StepRecord, calls: Sequence[RequestedCall], ends: tuple[float, float]
    ) -> Sequence[ToolOutput]:
        limit = self._options.max_tool_output_chars
        try:
            return await self._within(ends, self._context.tools.run(calls, max_output_chars=limit))
        except _StepFailure as failure:
            # They were called, and one with side effects continues: the answer must not hide it.
            for call in calls:
                record.note_tool(ToolOutput(call=call, text="", ok=False, error=failure.code))
            raise

    async def _within(self, ends: tuple[float, float], work: Awaitable[_T]) -> _T:
        step_ends, run_ends = ends
        try:
            async with asyncio.timeout_at(min(ends)):
                return await work
        except TimeoutError:
            if run_ends <= step_ends:
                what = f"the run took longer than {self._options.run_timeout_s:g} s"
                raise _StepFailure("run_timeout", what) from None
            what = f"it took longer than {self._options.step_timeout_s:g} s"
            raise _StepFailure("timeout", what) from None


def _reason_of(call: RequestedCall) -> str:
    try:
        reason = json.loads(call.arguments)["reason"]
    except (ValueError, KeyError, TypeError, RecursionError):
        reason = None
    return reason if isinstance(reason, str) and reason.strip() else "it cannot be done"
