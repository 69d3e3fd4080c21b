"""The decision: planner or executor, and what the body needs for it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from importlib.resources import files

from switchyard_core import (
    Decision,
    DecisionWarning,
    Effect,
    Failure,
    FirstMutation,
    Latch,
    LatchRecord,
    Reason,
    RefusedError,
    ReleaseAfterSuccess,
    Request,
    Rewrite,
    RouteContext,
)
from switchyard_plan_execute.handoff import Handoff, Shares, has_reasoning
from switchyard_plan_execute.memory import Memory, kept
from switchyard_plan_execute.options import PlanExecuteOptions
from switchyard_plan_execute.repair import Repair, releases

__all__ = ["PlanExecuteRouter"]

PLANNING = "planning"
EXECUTING = "executing"


class PlanExecuteRouter:
    """Sends a session to the capable target until its first edit, then to the efficient one."""

    def __init__(self, options: PlanExecuteOptions) -> None:
        self._options = options
        self._handoff_on = frozenset(options.handoff_on)
        self._handoff_of = Handoff(options)
        self._repair = Repair(self._handoff_of)
        self._planning_prompt = options.planning_prompt or _built_in_prompt()

    async def route(self, request: Request, context: RouteContext) -> Decision:
        """Return the decision for one request."""
        warnings = self._missing_history(request)
        if context.housekeeping:
            decision = self._housekeeping(request, context)
        elif context.session.record is not None:
            decision = self._latched(request, context, context.session.record)
        elif (first := context.mutations.first(self._handoff_on)) is None:
            decision = self._planning(context, _no_mutation(missing=bool(warnings)))
        else:
            decision = self._handoff(request, context, first)
        return decision.with_(warnings=decision.warnings + warnings) if warnings else decision

    async def next(
        self, request: Request, failed: Decision, failure: Failure, context: RouteContext
    ) -> Decision | None:
        """Return a second try where the history, as it was sent, is what was refused."""
        executor = self._handoff_of.executor(context)
        executing = failed.phase == EXECUTING
        if executing and failure.meaning == "overflow" and executor.on_overflow == "stay":
            return self._overflowed(request, context, failed)
        return self._repair.next(request, context, failed, failure, executing=executing)

    # --- the four outcomes ---------------------------------------------------------------

    def _planning(self, context: RouteContext, reason: Reason) -> Decision:
        return Decision(
            target=self._options.capable_target,
            phase=PLANNING,
            reason=reason,
            rewrites=(self._instruction(),),
            effects=self._release(context),
        )

    def _handoff(self, request: Request, context: RouteContext, first: FirstMutation) -> Decision:
        session, carries = context.session, not request.conversation.ends_with_open_call
        shares = Shares.of(first)
        stay = self._stay(request, context, shares, Memory())
        if stay is not None:
            reason = replace(stay[0], facts=_facts(first))
            return self._planning(context, reason).with_(warnings=stay[1])
        effects: tuple[Effect, ...] = self._release(context)
        reason = Reason(code="mutation_in_history", detail=_story(first), facts=_facts(first))
        if session.identity is not None and session.final:
            reason = replace(reason, code="final_handoff")
        elif session.identity is not None:
            key = request.history_digest if carries else None
            memory = Memory.handed_off(request, first.number)
            effects = (Latch(session.identity, LatchRecord(handoff_key=key, data=memory.data())),)
        last = request.conversation.last_assistant
        fresh = last is None or first.verdict.message >= last
        wanted = carries and (session.identity is not None or fresh)
        rewrites = self._handoff_of.rewrites(
            request, context, Memory(), shares, transition=fresh
        ) + self._handoff_of.prompt(request, context, shares, wanted=wanted)
        return self._executing(reason, rewrites, effects)

    def _latched(self, request: Request, context: RouteContext, record: LatchRecord) -> Decision:
        handoff = self._handoff_of
        memory = Memory.of(record).fitting(request)
        shares = Shares()
        if handoff.converts(request, context, memory) or not self._fits(request, context, memory):
            shares = handoff.shares(request, context, memory)
        stay = self._stay(request, context, shares, memory)
        if stay is not None:
            returned = self._returned(request, context, shares, stay)
            memory = memory.with_planners_turn(request)
            remembered = kept(context, replace(record, data=memory.data()))
            return returned.with_(effects=remembered + self._release(context))
        if memory.sealed and not request.foreign_context(**shares.place):
            memory = memory.but(sealed=False)
        wanted = False
        after = replace(record, data=memory.data()) if memory != Memory.of(record) else record
        if self._options.handoff_prompt is not None:
            if record.handoff_key is None and not request.conversation.ends_with_open_call:
                # The transition itself ended with an open call: this one carries the prompt.
                wanted, after = True, replace(after, handoff_key=request.history_digest)
            elif record.handoff_key is not None:
                wanted = record.handoff_key == request.history_digest
        reason = Reason(code="latched", detail="the session was handed to the efficient target")
        transition = self._continues_planner(request, record, memory)
        rewrites = handoff.rewrites(
            request, context, memory, shares, transition=transition
        ) + handoff.prompt(request, context, shares, wanted=wanted)
        effects = kept(context, after) + self._release(context)
        return self._executing(reason, rewrites, effects)

    def _housekeeping(self, request: Request, context: RouteContext) -> Decision:
        """Return where the session is; what was inserted stays where thinking is bound to it."""
        handoff, record = self._handoff_of, context.session.record
        first = context.mutations.first(self._handoff_on) if record is None else None
        reason = Reason(
            code="housekeeping",
            detail="a side call of the client goes where the session is",
            facts=_facts(first) if first else {},
        )
        if record is None and first is None:
            everybody = range(len(request.conversation.messages))
            rewrites = self._side_instruction(request, context, everybody)
            return self._planning(context, reason).with_(rewrites=rewrites)
        memory = Memory.of(record)
        shares = handoff.shares(request, context, memory)
        stay = self._stay(request, context, shares, memory)
        if stay is None:
            rewrites = handoff.rewrites(request, context, memory, shares)
            rewrites += handoff.prompt(request, context, shares, wanted=False)
            return self._executing(reason, rewrites, self._release(context))
        returned = self._returned(request, context, shares, (reason, stay[1]))
        effects: tuple[Effect, ...] = ()
        if record is not None and request.endpoint != "count_tokens":
            sealed = memory.but(sealed=True)
            effects = kept(context, replace(record, data=sealed.data()))
        return returned.with_(effects=effects + self._release(context))

    # --- the way back to the planner -------------------------------------------------------

    def _stay(
        self, request: Request, context: RouteContext, shares: Shares, memory: Memory
    ) -> tuple[Reason, tuple[DecisionWarning, ...]] | None:
        """Return why the planner serves a request of the executor's, ``None`` if it does not."""
        handoff = self._handoff_of
        lost = handoff.lost_at_executor(request, context, shares)
        if lost:
            detail = (
                f"the history holds {_listed(lost)}, which the efficient target's provider "
                "cannot read: the capable target serves this request"
            )
            reason = Reason(code="origin_bound", detail=detail)
            return reason, (DecisionWarning(code="origin_bound", detail=detail),)
        if context.session.record is None and handoff.only_planner_knows(request, context):
            detail = (
                "the request names its history only by id, and the efficient target speaks "
                "another wire format: the capable target serves this request"
            )
            reason = Reason(code="origin_bound", detail=detail)
            return reason, (DecisionWarning(code="origin_bound", detail=detail),)
        if self._fits(request, context, memory):
            return None
        latched = context.session.record is not None
        if latched and handoff.lost_at_planner(request, context, shares):
            return None
        return _WINDOW_STAY, ()

    def _fits(self, request: Request, context: RouteContext, memory: Memory) -> bool:
        executor = self._handoff_of.executor(context)
        return executor.on_overflow != "stay" or (executor.fits(request) and memory.fits(request))

    def _returned(
        self,
        request: Request,
        context: RouteContext,
        shares: Shares,
        why: tuple[Reason, tuple[DecisionWarning, ...]],
    ) -> Decision:
        """Return the planner's turn in a session that was handed off, or its side call."""
        reason, warnings = why
        if context.housekeeping:
            planners = shares.planners(request)
            instruction = self._side_instruction(request, context, planners)
        else:
            instruction = (self._instruction(),)
        returning: tuple[Rewrite, ...] = ()
        if context.session.record is not None:
            apart = Memory.of(context.session.record).apart
            returning = self._handoff_of.returning(request, context, shares, drop=apart)
        decision = self._planning(context, reason)
        return decision.with_(rewrites=returning + instruction, warnings=warnings)

    def _overflowed(
        self, request: Request, context: RouteContext, failed: Decision
    ) -> Decision | None:
        """Return the planner's try after the executor found the request too long."""
        handoff, record = self._handoff_of, context.session.record
        memory = Memory.of(record)
        shares = handoff.shares(request, context, memory)
        if handoff.lost_at_planner(request, context, shares):
            return None
        warning = DecisionWarning(
            code="overflow_retried",
            detail="the efficient target refused the request as too long for its window: the "
            "capable target got it",
        )
        reason = failed.reason if context.housekeeping else _WINDOW_STAY
        decision = self._returned(request, context, shares, (reason, (*failed.warnings, warning)))
        effects: tuple[Effect, ...] = releases(failed)
        if record is not None:
            memory = memory.but(overflow=len(request.body))
            if not context.housekeeping:
                memory = memory.with_planners_turn(request)
            elif request.endpoint != "count_tokens":
                memory = memory.but(sealed=True)
            effects += kept(context, replace(record, data=memory.data()))
        return decision.with_(effects=effects)

    # --- parts ---------------------------------------------------------------------------

    def _executing(
        self, reason: Reason, rewrites: tuple[Rewrite, ...], effects: tuple[Effect, ...]
    ) -> Decision:
        return Decision(
            target=self._options.efficient_target,
            phase=EXECUTING,
            reason=reason,
            rewrites=rewrites,
            effects=effects,
        )

    def _instruction(self) -> Rewrite:
        position = self._options.planning_prompt_position
        parameters = {"text": self._planning_prompt, "position": position}
        return Rewrite(name="insert_planning_prompt", parameters=parameters)

    def _side_instruction(
        self, request: Request, context: RouteContext, planners: Collection[int]
    ) -> tuple[Rewrite, ...]:
        """Return the planning instruction for a side call that holds thinking made behind it."""
        bound = self._handoff_of.planner(context).accepts.prefix_bound
        return (self._instruction(),) if bound and has_reasoning(request, planners) else ()

    def _continues_planner(self, request: Request, record: LatchRecord, memory: Memory) -> bool:
        """Return whether a continuation id names a response of the planner.

        It does in a retry of the handoff request, and behind a turn that the planner made since.
        """
        if not request.continuation:
            return False
        last = request.conversation.last_assistant
        stayed = bool(memory.planner) and last is not None and memory.planner[-1][1] >= last
        return stayed or record.handoff_key == request.history_digest

    def _release(self, context: RouteContext) -> tuple[ReleaseAfterSuccess, ...]:
        """A final request frees its slot, and a root's its sub-agents', whatever the phase."""
        session = context.session
        if session.final and session.identity is not None:
            return (ReleaseAfterSuccess(session.identity),)
        return ()

    def _missing_history(self, request: Request) -> tuple[DecisionWarning, ...]:
        places = request.missing_history
        if not places:
            return ()
        named = set(places) & set(request.continuation_keys)
        if self._options.on_missing_history == "reject":
            keys = request.continuation_keys if named else places
            raise RefusedError(
                message=(
                    "this route decides from the conversation's history, which this request "
                    "only names by id, or holds in a form that only one provider can read; send "
                    f"the whole history in `{request.history_key}` and omit {_quoted(keys)}"
                ),
                code="history_required",
                param=places[0],
                headers={"x-should-retry": "false"},
            )
        how = "named by id only" if named else f"hidden in {_quoted(places)}"
        warning = DecisionWarning(
            code="history_missing",
            detail=f"the history is {how}: edits in it cannot be seen, and another provider "
            "cannot read it",
        )
        return (warning,)


_WINDOW_STAY = Reason(
    code="window_stay",
    detail="the efficient target's context window is too small for this request",
)


def _no_mutation(*, missing: bool) -> Reason:
    if not missing:
        return Reason(code="no_mutation", detail="no file was edited yet")
    return Reason(
        code="history_missing",
        detail="no edit is visible, but the request does not hold its history",
    )


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return f"{names[0]}{more}"


def _quoted(places: Sequence[str]) -> str:
    return " and ".join(f"`{place}`" for place in places[:4])


def _built_in_prompt() -> str:
    resource = files("switchyard_plan_execute") / "prompts" / "planning.md"
    return resource.read_text("utf-8").strip()


def _story(first: FirstMutation) -> str:
    verdict = first.verdict
    text = f"{verdict.place} is a {verdict.label}"
    return f"{text}: {verdict.detail}" if verdict.detail else text


def _facts(first: FirstMutation) -> dict[str, str]:
    verdict = first.verdict
    facts = {
        "label": verdict.label,
        "rule_set": verdict.rule_set,
        "rule": verdict.rule,
        "jsonpath": verdict.jsonpath,
        "tool": verdict.tool,
        "call": verdict.call_path,
    }
    if verdict.word:
        facts["word"] = verdict.word
    if verdict.offset is not None:
        facts["offset"] = str(verdict.offset)
    return facts
