"""The route type ``llm_classifier``: a judge model says which of two targets a task needs."""

from __future__ import annotations

from importlib.resources import files
from typing import Literal

from pydantic import Field

from switchyard_core import (
    Decision,
    DecisionWarning,
    LatchOptions,
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


class LlmClassifierOptions(LatchOptions):
    """Options of ``type = "llm_classifier"``; docs/demo_routers.md says what each is for."""

    judge_target: TargetName
    strong_target: TargetName
    weak_target: TargetName
    classify_trigger: Literal["every_request", "user_turn", "new_session"] = "user_turn"
    on_error: Literal["strong", "weak"] = "strong"
    judge_prompt: Prompt | None = None
    judge_max_chars: int = Field(default=4000, ge=2)
    judge_max_output_tokens: int = Field(default=1024, ge=1)


class LlmClassifierRouter:
    """Asks the judge about the user's last words, and remembers the verdict per session."""

    def __init__(self, options: LlmClassifierOptions) -> None:
        self._trigger, self._on_error = options.classify_trigger, options.on_error == "strong"
        self._targets = (options.strong_target, options.weak_target)
        text = (files("switchyard_demo_routers") / "prompts" / "judge.md").read_text("utf-8")
        self._judge = Judge(
            target=options.judge_target,
            prompt=options.judge_prompt or text.strip(),
            max_chars=options.judge_max_chars,
            max_output_tokens=options.judge_max_output_tokens,
        )

    async def route(self, request: Request, context: RouteContext) -> Decision:
        """Return the target that the verdict names; no failure of the judge is the caller's."""
        known = remembered_in(context.session.record)
        if context.housekeeping:
            found = known or Remembered.of(request, strong=self._on_error, why="not judged")
            return self._decision(request, context, found, "housekeeping")
        if known is not None and self._holds(known, request):
            return self._decision(request, context, known, "remembered")
        code, said = "nothing_to_judge", None
        warnings: tuple[DecisionWarning, ...] = ()
        try:
            said = await self._judge.verdict(request, context)
        except JudgeFailedError as error:
            code = "judge_failed"
            warnings = (DecisionWarning(code=code, detail=str(error)),)
        found = Remembered.of(request, strong=self._on_error, why="there is no verdict")
        if said is not None:
            code = "judged"
            found = Remembered.of(request, strong=said.strong, why=said.why, judged=True)
        if known is not None and known.strong == found.strong:
            found = found.model_copy(update={"through": known.through})
        decision = self._decision(request, context, found, code).with_(warnings=warnings)
        if (identity := context.session.identity) is None or context.session.final:
            return decision
        return decision.with_(effects=(Remember(identity, found.record()),))

    def _holds(self, known: Remembered, request: Request) -> bool:
        """Return whether a remembered verdict is good for a request; it always is for a retry."""
        if known.digest == request.history_digest.hex():
            return True
        if self._trigger == "new_session":
            return known.judged
        said = [m.role for m in request.conversation.messages if m.role != "system"]
        return self._trigger == "user_turn" and said[-1:] != ["user"]

    def _decision(
        self, request: Request, context: RouteContext, found: Remembered, code: str
    ) -> Decision:
        name, other = self._targets if found.strong else self._targets[::-1]
        word = "strong" if found.strong else "weak"
        rewrites: tuple[Rewrite, ...] = ()
        if found.through is not None:
            last = len(request.conversation.messages) - 1
            rewrites = handoff_rewrites(
                source=context.targets[other],
                target=context.targets[name],
                through_message=found.through,
                drop_continuation=last == found.through and not request.misses_history,
            )
        identity = context.session.identity if context.session.final else None
        reason = Reason(code=code, detail=f"{word}: {found.why}")
        effects = () if identity is None else (ReleaseAfterSuccess(identity),)
        return Decision(target=name, phase=word, reason=reason, rewrites=rewrites, effects=effects)
