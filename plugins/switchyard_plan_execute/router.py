"""The decision: planner or executor, and what the body needs for it."""

from __future__ import annotations

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
    UpdateRecord,
    handoff_rewrites,
)
from switchyard_core.conversation import Reasoning
from switchyard_plan_execute.options import PlanExecuteOptions

__all__ = ["PlanExecuteRouter"]

PLANNING = "planning"
EXECUTING = "executing"

# Statuses and words by which providers say that they cannot read another model's reasoning,
# and words by which they speak of the parameter of that name instead.
_REFUSAL_STATUSES = (400, 404, 422)
_REFUSAL_WORDS = (b"signature", b"encrypted", b"reasoning", b"thinking")
_PARAMETER_WORDS = (b"reasoning.", b"reasoning_effort", b"unsupported_", b"unsupported ")


class PlanExecuteRouter:
    """Sends a session to the capable target until its first edit, then to the efficient one."""

    def __init__(self, options: PlanExecuteOptions) -> None:
        self._options = options
        self._handoff_on = frozenset(options.handoff_on)
        self._planning_prompt = options.planning_prompt or _built_in_prompt()

    async def route(self, request: Request, context: RouteContext) -> Decision:
        """Return the decision for one request."""
        warnings = self._missing_history(request)
        latched = context.session.record is not None
        if context.housekeeping:
            decision = self._housekeeping(request, context)
        elif latched:
            decision = self._latched(request, context)
        elif (first := context.mutations.first(self._handoff_on)) is None:
            decision = self._planning(context, missing=bool(warnings))
        elif self._must_stay(request, context):
            reason = Reason(
                code="window_stay",
                detail="the efficient target's context window is too small for this request",
                facts=_facts(first),
            )
            decision = self._planning(context, missing=False).with_(reason=reason)
        else:
            decision = self._handoff(request, context, first)
        return decision.with_(warnings=decision.warnings + warnings) if warnings else decision

    async def next(
        self, request: Request, failed: Decision, failure: Failure, context: RouteContext
    ) -> Decision | None:
        """Return a second try without the planner's opaque reasoning when that was refused."""
        kept = all(rewrite.name != "drop_opaque_reasoning" for rewrite in failed.rewrites)
        if failed.phase != EXECUTING or not kept or not _refuses_reasoning(failure):
            return None
        first = context.mutations.first(self._handoff_on)
        if first is None or not _has_reasoning(request, first):
            return None
        rewrites = [r for r in failed.rewrites if r.name == "append_user_text"]
        effects: tuple[Effect, ...] = tuple(
            effect for effect in failed.effects if isinstance(effect, ReleaseAfterSuccess)
        )
        session = context.session
        if session.identity is not None and session.record is not None:
            effects += (UpdateRecord(session.identity, replace(session.record, drop_opaque=True)),)
        warning = DecisionWarning(
            code="reasoning_dropped",
            detail=f"the provider refused the planner's reasoning ({failure.status}); "
            "it was removed and the request sent again",
        )
        return failed.with_(
            rewrites=(
                *self._conversions(
                    request, context, first, drop=True, transition=_drops_id(failed)
                ),
                *rewrites,
            ),
            effects=effects,
            warnings=(*failed.warnings, warning),
        )

    # --- the four outcomes ---------------------------------------------------------------

    def _planning(self, context: RouteContext, *, missing: bool) -> Decision:
        reason = Reason(code="no_mutation", detail="no file was edited yet")
        if missing:
            reason = Reason(
                code="history_missing",
                detail="no edit is visible, but the request does not hold its history",
            )
        prompt = Rewrite(
            name="insert_planning_prompt",
            parameters={
                "text": self._planning_prompt,
                "position": self._options.planning_prompt_position,
            },
        )
        return Decision(
            target=self._options.capable_target,
            phase=PLANNING,
            reason=reason,
            rewrites=(prompt,),
            effects=self._release(context),
        )

    def _handoff(self, request: Request, context: RouteContext, first: FirstMutation) -> Decision:
        session, carries = context.session, not request.conversation.ends_with_open_call
        effects: tuple[Effect, ...] = self._release(context)
        reason = Reason(code="mutation_in_history", detail=_story(first), facts=_facts(first))
        if session.identity is not None and session.final:
            reason = replace(reason, code="final_handoff")
        elif session.identity is not None:
            key = request.history_digest if carries else None
            effects = (Latch(session.identity, LatchRecord(handoff_key=key)),)
        last = request.conversation.last_assistant
        fresh = last is None or first.verdict.message >= last
        prompt = carries and (session.identity is not None or fresh)
        return self._executing(
            request, context, reason, first=first, prompt=prompt, transition=fresh
        ).with_(effects=effects)

    def _latched(self, request: Request, context: RouteContext) -> Decision:
        session, record = context.session, context.session.record
        effects: tuple[Effect, ...] = self._release(context)
        prompt = False
        if self._options.handoff_prompt is not None and record is not None:
            waiting = record.handoff_key is None
            if waiting and not request.conversation.ends_with_open_call and session.identity:
                # The transition itself ended with an open call: this one carries the prompt.
                prompt = True
                carried = replace(record, handoff_key=request.history_digest)
                effects = (UpdateRecord(session.identity, carried), *effects)
            elif not waiting:
                prompt = record.handoff_key == request.history_digest
        # A retry of the handoff request is the handoff request: its continuation id is the
        # planner's still.
        again = (
            record is not None
            and bool(request.continuation)
            and record.handoff_key == request.history_digest
        )
        reason = Reason(code="latched", detail="the session was handed to the efficient target")
        return self._executing(
            request,
            context,
            reason,
            first=self._planner_call(context),
            prompt=prompt,
            transition=again,
        ).with_(effects=effects)

    def _housekeeping(self, request: Request, context: RouteContext) -> Decision:
        """Return where the session is; never the planning or handoff prompt, never a latch."""
        latched = context.session.record is not None
        first = context.mutations.first(self._handoff_on) if not latched else None
        reason = Reason(
            code="housekeeping",
            detail="a side call of the client goes where the session is",
            facts=_facts(first) if first else {},
        )
        if not latched and (first is None or self._must_stay(request, context)):
            return Decision(
                target=self._options.capable_target,
                phase=PLANNING,
                reason=reason,
                effects=self._release(context),
            )
        first = first or self._planner_call(context)
        return self._executing(
            request, context, reason, first=first, prompt=False, transition=False
        ).with_(effects=self._release(context))

    # --- parts ---------------------------------------------------------------------------

    def _executing(
        self,
        request: Request,
        context: RouteContext,
        reason: Reason,
        *,
        first: FirstMutation | None,
        prompt: bool,
        transition: bool,
    ) -> Decision:
        rewrites = self._conversions(request, context, first, transition=transition)
        text = self._options.handoff_prompt
        if prompt and text is not None:
            rewrites += (Rewrite(name="append_user_text", parameters={"text": text}),)
        return Decision(
            target=self._options.efficient_target, phase=EXECUTING, reason=reason, rewrites=rewrites
        )

    def _conversions(
        self,
        request: Request,
        context: RouteContext,
        first: FirstMutation | None,
        *,
        transition: bool = False,
        drop: bool = False,
    ) -> tuple[Rewrite, ...]:
        options, record = self._options, context.session.record
        drop = drop or (record is not None and record.drop_opaque)
        cap = options.reasoning_text_max_chars if options.planner_reasoning_as_text else None
        return handoff_rewrites(
            source=context.targets[options.capable_target],
            target=context.targets[options.efficient_target],
            opaque="drop" if drop else options.opaque_reasoning,
            as_text_max_chars=cap,
            drop_continuation=transition and not request.misses_history,
            **(first.through if first else {}),
        )

    def _planner_call(self, context: RouteContext) -> FirstMutation | None:
        """Return the edit that handed off, ``None`` when it does not matter.

        It matters when something of the planner's has to be converted; a latched request
        otherwise needs no look at its history.
        """
        if not self._options.planner_reasoning_as_text and not self._drops(context):
            return None
        return context.mutations.first(self._handoff_on)

    def _drops(self, context: RouteContext) -> bool:
        options, record = self._options, context.session.record
        if options.opaque_reasoning == "drop" or (record is not None and record.drop_opaque):
            return True
        capable, efficient = (
            context.targets[name] for name in (options.capable_target, options.efficient_target)
        )
        return options.opaque_reasoning == "auto" and capable.origin != efficient.origin

    def _must_stay(self, request: Request, context: RouteContext) -> bool:
        target = context.targets[self._options.efficient_target]
        return target.on_overflow == "stay" and not target.fits(request)

    def _release(self, context: RouteContext) -> tuple[ReleaseAfterSuccess, ...]:
        """A final request frees its slot, and a root's its sub-agents', whatever the phase."""
        session = context.session
        if session.final and session.identity is not None:
            return (ReleaseAfterSuccess(session.identity),)
        return ()

    def _missing_history(self, request: Request) -> tuple[DecisionWarning, ...]:
        if not request.misses_history:
            return ()
        if self._options.on_missing_history == "reject":
            keys = " and ".join(f"`{key}`" for key in request.continuation_keys)
            raise RefusedError(
                message=(
                    "this route decides from the conversation's history, which this request "
                    f"only names by id; send the whole history in `{request.history_key}` and "
                    f"omit {keys}"
                ),
                code="history_required",
                param=request.continuation[0],
                headers={"x-should-retry": "false"},
            )
        warning = DecisionWarning(
            code="history_missing",
            detail="the history is named by id only: edits in it cannot be seen, and another "
            "provider cannot know that id",
        )
        return (warning,)


def _refuses_reasoning(failure: Failure) -> bool:
    words = failure.body.lower()
    return (
        failure.kind == "status"
        and failure.status in _REFUSAL_STATUSES
        and any(word in words for word in _REFUSAL_WORDS)
        and not any(word in words for word in _PARAMETER_WORDS)
    )


def _has_reasoning(request: Request, first: FirstMutation) -> bool:
    """Whether the planner's part of the history holds reasoning that could be dropped."""
    messages = request.conversation.messages[: first.verdict.message + 1]
    return any(isinstance(part, Reasoning) for message in messages for part in message.content)


def _drops_id(decision: Decision) -> bool:
    return any(rewrite.parameters.get("drop_continuation") for rewrite in decision.rewrites)


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
