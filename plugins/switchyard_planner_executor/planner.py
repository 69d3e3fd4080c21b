"""Asking the planner: one structured reply, never tools, never prose that is guessed at."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from switchyard_core import (
    Ask,
    Conversation,
    ModelCall,
    ModelReply,
    ModelUsage,
    RequestError,
    Text,
    Transcript,
    UserMessage,
    WireFormat,
)
from switchyard_planner_executor.options import PlannerExecutorOptions
from switchyard_planner_executor.plan import Plan, plan_schema
from switchyard_planner_executor.reading import PlanError, ReadPlan, read_plan
from switchyard_planner_executor.records import StepRecord
from switchyard_planner_executor.wording import (
    planner_instructions,
    replan_text,
    retry_text,
    revise_text,
)

__all__ = ["Planner", "must_have_tools"]

_SCHEMA_NAME = "plan"
_GATEWAY_TIMEOUT = 504


@dataclass(slots=True, kw_only=True)
class Planner:
    """Makes plans with one target.

    Args:
        options: Options of the route.
        wire_format: Of the planner's target.
        ask: Asks a target.
        searchable: Whether a step may have a query at all.
        usage: Tokens so far.
        calls: Calls so far.
    """

    options: PlannerExecutorOptions
    wire_format: WireFormat
    ask: Ask
    searchable: bool
    usage: ModelUsage = field(default_factory=ModelUsage)
    calls: int = 0

    async def plan(self, user: UserMessage, history: Conversation | None = None) -> ReadPlan:
        """Return a plan for a request.

        Args:
            user: The request. Nothing else reaches the planner, unless:
            history: What was said before it, for ``planner_sees = "conversation"``.

        Raises:
            PlanError: The reply is no plan; carries its text.
            RequestError: The planner took too long.
            AskError: The planner's provider gave no answer.
        """
        if history is None:
            return await self._read(ModelCall(text=user.text, images=user.images))
        told = Transcript(self.wire_format)
        for role, text in _told(history):
            if role == "user":
                told.user(text)
            else:
                told.assistant(text)
        told.user(user.text, user.images)
        return await self._read(ModelCall(items=told.items))

    async def revise(self, user: UserMessage, plan: Plan, feedback: str) -> ReadPlan:
        """Return another plan for the same request; raises like :meth:`plan`."""
        text = revise_text(plan, request=user.text, feedback=feedback)
        return await self._read(ModelCall(text=text, images=user.images))

    async def replan(self, plan: Plan, records: Sequence[StepRecord], first: int) -> ReadPlan:
        """Return a plan for what is left after a failed step; raises like :meth:`plan`.

        Args:
            plan: The plan so far.
            records: The steps that ran, the failed one last.
            first: Number of the next step.
        """
        *before, failed = records
        text = replan_text(
            plan,
            done=[(record.step, record.result or record.error) for record in before],
            failed=failed.step,
            why=failed.error,
            first=first,
            max_steps=self.options.max_steps,
        )
        return await self._read(ModelCall(text=text), first=first)

    async def _read(self, call: ModelCall, *, first: int = 1) -> ReadPlan:
        options = self.options
        for left in range(options.planner_retries, -1, -1):
            reply = await self._ask(call)
            try:
                found = read_plan(
                    reply,
                    max_steps=options.max_steps,
                    lenient=options.planner_output == "lenient",
                    first=first,
                )
                must_have_tools(found.plan, reply.text, searchable=self.searchable)
            except PlanError as error:
                if not left:
                    raise
                call = self._again(call, error, first)
            else:
                return found
        raise AssertionError  # the last round of the loop returns or raises

    async def _ask(self, call: ModelCall) -> ModelReply:
        options = self.options
        whole = ModelCall(
            text=call.text,
            images=call.images,
            items=call.items,
            instructions=planner_instructions(
                options.planner_prompt,
                max_steps=options.max_steps,
                searchable=self.searchable,
            ),
            schema=plan_schema(),
            schema_name=_SCHEMA_NAME,
            max_output_tokens=options.planner_max_tokens,
            role="planner",
        )
        self.calls += 1
        try:
            async with asyncio.timeout(options.planner_timeout_s):
                reply = await self.ask(options.planner_target, whole)
        except TimeoutError:
            raise RequestError(
                message=f"the planner `{options.planner_target}` gave no plan within "
                f"{options.planner_timeout_s:g} s",
                code="planner_timeout",
                status=_GATEWAY_TIMEOUT,
            ) from None
        self.usage += reply.usage
        return reply

    def _again(self, call: ModelCall, error: PlanError, first: int) -> ModelCall:
        """Return the call that sends a fault back to the planner."""
        if not call.items:
            text = retry_text(call.text, detail=error.detail, first=first)
            return ModelCall(text=text, images=call.images)
        told = Transcript(self.wire_format, call.items)
        told.assistant(error.raw_text)
        told.user(retry_text("The conversation above.", detail=error.detail, first=first))
        return ModelCall(items=told.items)


def must_have_tools(plan: Plan, text: str, *, searchable: bool) -> None:
    """Refuse a plan that wants a search where no tool is known for it.

    Args:
        plan: The plan.
        text: What it was read from.
        searchable: Whether a step may have a query at all.

    Raises:
        PlanError: ``schema``.
    """
    wanting = [str(step.step) for step in plan.steps if step.query is not None]
    if wanting and not searchable:
        raise PlanError(
            "schema",
            text,
            f"step {', '.join(wanting)} has a `query`, and the route names no tool for it: list "
            "one in `tools`, or say which of them in `query_tool`",
        )


def _told(history: Conversation) -> Iterable[tuple[str, str]]:
    """Yield who said what before the last message of the user, text only."""
    messages = list(history.messages)
    while messages and messages[-1].role != "user":
        messages.pop()
    for message in messages[:-1]:
        text = "\n\n".join(part.text for part in message.content if isinstance(part, Text))
        if message.role in ("user", "assistant") and text.strip():
            yield message.role, text
