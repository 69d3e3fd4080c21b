"""The route type ``llm_classifier``: a judge model says which of two targets a task needs."""

from __future__ import annotations

from importlib.resources import files
from typing import Literal

from pydantic import Field

from switchyard_core import (
    Decision,
    DecisionWarning,
    LatchStoreName,
    Options,
    Prompt,
    Reason,
    ReleaseAfterSuccess,
    Remember,
    Request,
    Rewrite,
    RouteContext,
    TargetName,
    handoff_rewrites,
)
from switchyard_demo_routers.verdicts import Judge, JudgeFailedError, Remembered, remembered_in

__all__ = ["LlmClassifierOptions", "LlmClassifierRouter"]


class LlmClassifierOptions(Options):
    """Options of ``type = "llm_classifier"``; docs/demo_routers.md says what each is for."""

    judge_target: TargetName
    strong_target: TargetName
    weak_target: TargetName
    classify_trigger: Literal["every_request", "user_turn", "new_session"] = "user_turn"
    on_error: Literal["strong", "weak"] = "strong"
    judge_prompt: Prompt | None = None
    judge_max_chars: int = Field(default=4000, ge=2)
    judge_max_output_tokens: int = Field(default=1024, ge=1)
    latch_store: LatchStoreName = "memory"
    latch_capacity: int = Field(default=4096, ge=1)


class LlmClassifierRouter:
    """Asks the judge about the user's last words, and remembers the verdict per session."""

    def __init__(self, options: LlmClassifierOptions) -> None:
        self._trigger, self._on_error = options.classify_trigger, options.on_error == "strong"
        self._targets = (options.strong_target, options.weak_target)
        built_in = files("switchyard_demo_routers") / "prompts" / "judge.md"
        self._judge = Judge(
            target=options.judge_target,
            prompt=options.judge_prompt or built_in.read_text("utf-8").strip(),
            max_chars=options.judge_max_chars,
            max_output_tokens=options.judge_max_output_tokens,
        )

    async def route(self, request: Request, context: RouteContext) -> Decision:
        """Return the target that the verdict names; no failure of the judge is the caller's."""
        known = remembered_in(context.session.record)
        if context.housekeeping:
            found = known or self._found(request, None, "a client's side call is not judged")
            return self._decision(request, context, found, "housekeeping")
        if known is not None and self._holds(known, request):
            return self._decision(request, context, known, "remembered")
        code, strong, why = "nothing_to_judge", None, "the user said nothing"
        warnings: tuple[DecisionWarning, ...] = ()
        try:
            if (said := await self._judge.verdict(request, context)) is not None:
                code, strong, why = "judged", said.strong, said.why
        except JudgeFailedError as error:
            code, why = "judge_failed", "there is no verdict"
            warnings = (DecisionWarning(code=code, detail=str(error)),)
        found = self._found(request, strong, why)
        if known is not None and known.strong == found.strong:
            found = found.model_copy(update={"through": known.through})
        decision = self._decision(request, context, found, code).with_(warnings=warnings)
        if context.session.identity is None or context.session.final:
            return decision
        return decision.with_(effects=(Remember(context.session.identity, found.record()),))

    def _holds(self, known: Remembered, request: Request) -> bool:
        """Return whether a remembered verdict is good for a request; it always is for a retry."""
        if known.digest == request.history_digest.hex():
            return True
        if self._trigger == "new_session":
            return known.judged
        said = [m.role for m in request.conversation.messages if m.role != "system"]
        return self._trigger == "user_turn" and said[-1:] != ["user"]

    def _found(self, request: Request, strong: bool | None, why: str) -> Remembered:  # noqa: FBT001  # a verdict or none
        # Nobody knows who made the history so far: it counts as the other target's.
        fresh = request.conversation.last_assistant is None
        return Remembered(
            digest=request.history_digest.hex(),
            strong=self._on_error if strong is None else strong,
            why=why,
            judged=strong is not None,
            through=None if fresh else request.conversation.messages[-1].last,
        )

    def _decision(
        self, request: Request, context: RouteContext, found: Remembered, code: str
    ) -> Decision:
        name, other = self._targets if found.strong else self._targets[::-1]
        word = "strong" if found.strong else "weak"
        rewrites: tuple[Rewrite, ...] = ()
        if found.through is not None:
            last = request.conversation.messages[-1:]
            changes = bool(last) and last[0].last == found.through and not request.misses_history
            source, target = context.targets[other], context.targets[name]
            rewrites = handoff_rewrites(
                source=source, target=target, through_item=found.through, drop_continuation=changes
            )
        session, reason = context.session, Reason(code=code, detail=f"{word}: {found.why}")
        decision = Decision(target=name, phase=word, reason=reason, rewrites=rewrites)
        if session.final and session.identity is not None:
            return decision.with_(effects=(ReleaseAfterSuccess(session.identity),))
        return decision
