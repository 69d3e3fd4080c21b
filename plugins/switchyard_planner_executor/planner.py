"""Asking the planner: one structured reply, never tools, never prose that is guessed at."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace

from switchyard_core import Conversation, RequestError, RouteContext, Transcript
from switchyard_core.answering import ModelCall, ModelReply
from switchyard_core.conversation import Text, UserMessage
from switchyard_planner_executor.events import Spent, StepRecord
from switchyard_planner_executor.options import PlannerExecutorOptions
from switchyard_planner_executor.plan import Plan, PlanError, ReadPlan, plan_schema, read_plan
from switchyard_planner_executor.wording import filled, planner_instructions

__all__ = ["Planner"]


class Planner:
    """Makes plans with one target, each a plan or an error; adds the tokens to ``spent``."""

    def __init__(
        self, options: PlannerExecutorOptions, context: RouteContext, spent: Spent
    ) -> None:
        self._options = options
        self._ask_target = context.ask
        self._wire_format = context.targets[options.planner_target].wire_format
        self._spent = spent

    async def plan(self, user: UserMessage, history: Conversation | None = None) -> ReadPlan:
        """Return a plan for a request; it is all that the planner sees, except for ``history``."""
        if history is None:
            return await self._read(ModelCall(text=user.text, images=user.images))
        told = Transcript(self._wire_format)
        for role, text in _said(history):
            if role == "user":
                told.user(text)
            else:
                told.assistant(text)
        told.user(user.text, user.images)
        return await self._read(ModelCall(items=told.items))

    async def revise(self, user: UserMessage, plan: Plan, feedback: str) -> ReadPlan:
        """Return another plan for the same request."""
        shown = json.dumps(plan.model_dump(mode="json"), ensure_ascii=False, indent=2)
        text = filled("revise", request=user.text, plan=shown, feedback=feedback)
        return await self._read(ModelCall(text=text, images=user.images))

    async def replan(self, plan: Plan, records: Sequence[StepRecord]) -> ReadPlan:
        """Return a plan for the rest; ``records`` are the steps that ran, the failed one last."""
        *before, failed = records
        done = [f"{r.step.step}. {r.step.action}\nResult: {r.result or r.error}" for r in before]
        first = failed.step.step + 1
        text = filled(
            "replan",
            goal=plan.goal,
            done="\n\n".join(done) or "none",
            failed=f"{failed.step.step}. {failed.step.action}",
            why=failed.error,
            first=first,
            second=first + 1,
            max_steps=self._options.max_steps,
        )
        return await self._read(ModelCall(text=text), first=first)

    async def _read(self, call: ModelCall, *, first: int = 1) -> ReadPlan:
        options = self._options
        for retries_left in range(options.planner_retries, -1, -1):
            reply = await self._ask(call)
            try:
                return read_plan(
                    reply,
                    max_steps=options.max_steps,
                    lenient=options.planner_output == "lenient",
                    first=first,
                    searchable=options.searchable,
                )
            except PlanError as error:
                if not retries_left:
                    raise
                call = self._again(call, error, first)
        raise AssertionError  # the last round of the loop returns or raises

    async def _ask(self, call: ModelCall) -> ModelReply:
        options = self._options
        call = replace(
            call,
            instructions=planner_instructions(options),
            schema=plan_schema(),
            schema_name="plan",
            max_output_tokens=options.planner_max_tokens,
            role="planner",
        )
        try:
            async with asyncio.timeout(options.planner_timeout_s):
                reply = await self._ask_target(options.planner_target, call)
        except TimeoutError:
            raise RequestError(
                f"the planner `{options.planner_target}` gave no plan within "
                f"{options.planner_timeout_s:g} s",
                "planner_timeout",
                504,
            ) from None
        self._spent.planner += reply.usage
        return reply

    def _again(self, call: ModelCall, error: PlanError, first: int) -> ModelCall:
        request = call.text if not call.items else "The conversation above."
        text = filled("retry", request=request, detail=error.detail, first=first)
        if not call.items:
            return replace(call, text=text)
        told = Transcript(self._wire_format, call.items)
        told.assistant(error.raw_text)
        told.user(text)
        return ModelCall(items=told.items)


def _said(history: Conversation) -> Iterator[tuple[str, str]]:
    """Yield who said what before the last message of the user, text only."""
    messages = list(history.messages)
    while messages and messages[-1].role != "user":
        messages.pop()
    for message in messages[:-1]:
        text = "\n\n".join(part.text for part in message.content if isinstance(part, Text))
        if message.role in ("user", "assistant") and text.strip():
            yield message.role, text
