"""The route type ``llm_classifier``: a judge model says which of two targets a task needs."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from switchyard_core import (
    Decision,
    DecisionWarning,
    LatchOptions,
    LatchRecord,
    Prompt,
    Reason,
    ReleaseAfterSuccess,
    Remember,
    Request,
    RequestError,
    Rewrite,
    RouteContext,
    TargetName,
    handoff_rewrites,
)
from switchyard_core.answering import AskError, ModelCall
from switchyard_core.conversation import Text

__all__ = ["LlmClassifierOptions", "LlmClassifierRouter"]

#: Most characters of a reason that are kept; a latch record holds 1 KiB in all.
_WHY_CHARS = 120


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


class JudgeFailedError(Exception):
    """There is no verdict; the text says why."""


class Judgement(BaseModel):
    """The verdict on one request to a coding agent."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    strong: bool = Field(description="whether the strong model is needed")
    why: str = Field(description="the reason, in one short sentence")


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """Asks a target for a verdict on the user's last words; of long ones it sees both ends."""

    target: str  # Name of the target
    prompt: str  # Its instructions
    max_chars: int  # Most characters of the words that it sees; of longer ones, both ends
    max_output_tokens: int  # Limit of its reply, in tokens

    async def verdict(self, request: Request, context: RouteContext) -> Judgement | None:
        """Return the verdict, ``None`` when the user said nothing."""
        text, half = _last_words(request), self.max_chars // 2
        if not text:
            return None
        call = ModelCall(
            text=text if len(text) <= self.max_chars else f"{text[:half]}\n[...]\n{text[-half:]}",
            instructions=self.prompt,
            schema=Judgement.model_json_schema(),
            schema_name="verdict",
            max_output_tokens=self.max_output_tokens,
        )
        try:
            said = Judgement.model_validate_json((await context.ask(self.target, call)).text)
        except (AskError, RequestError) as error:
            raise JudgeFailedError(error.message) from error
        except ValidationError as error:
            raise JudgeFailedError(f"the reply of `{self.target}` is not a verdict") from error
        return said.model_copy(update={"why": " ".join(said.why.split())[:_WHY_CHARS]})


class Remembered(BaseModel):
    """What a session's record holds."""

    model_config = ConfigDict(frozen=True)

    digest: str
    strong: bool
    why: str
    judged: bool
    through: int | None

    @classmethod
    def of(cls, request: Request, *, strong: bool, why: str, judged: bool = False) -> Self:
        """Return what to remember of a request."""
        # Nobody knows who made the history so far: it counts as the other target's.
        fresh = request.conversation.last_assistant is None
        return cls(
            digest=request.history_digest.hex(),
            strong=strong,
            why=why,
            judged=judged,
            through=None if fresh else len(request.conversation.messages) - 1,
        )

    def record(self) -> LatchRecord:
        """Return the record that holds it."""
        return LatchRecord(data=self.model_dump_json().encode("utf-8"))


def _remembered_in(record: LatchRecord | None) -> Remembered | None:
    try:
        return None if record is None else Remembered.model_validate_json(record.data)
    except ValidationError:
        return None


def _last_words(request: Request) -> str:
    for message in reversed(request.conversation.messages):
        texts = [part.text for part in message.content if isinstance(part, Text)]
        if message.role == "user" and any(text.strip() for text in texts):
            return "\n".join(texts)
    return ""


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
        known = _remembered_in(context.session.record)
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
