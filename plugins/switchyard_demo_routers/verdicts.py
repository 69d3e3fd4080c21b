"""The judge of ``llm_classifier``: what it is asked, what it says, what is remembered of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from switchyard_core import (
    AskError,
    LatchRecord,
    ModelCall,
    Request,
    RequestError,
    RouteContext,
    Text,
)

__all__ = ["Judge", "JudgeFailedError", "Judgement", "Remembered", "remembered_in"]

#: Most characters of a reason that are kept; a latch record holds 1 KiB in all.
WHY_CHARS = 120


class JudgeFailedError(Exception):
    """There is no verdict; the text says why."""


class Judgement(BaseModel):
    """The verdict on one request to a coding agent."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    strong: bool = Field(description="whether the strong model is needed")
    why: str = Field(description="the reason, in one short sentence")


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """Asks a target for a verdict on the user's last words.

    Args:
        target: Name of the target.
        prompt: Its instructions.
        max_chars: Most characters of the words that it sees; of longer ones, both ends.
        max_output_tokens: Limit of its reply, in tokens.
    """

    target: str
    prompt: str
    max_chars: int
    max_output_tokens: int

    async def verdict(self, request: Request, context: RouteContext) -> Judgement | None:
        """Return the verdict, ``None`` when the user said nothing.

        Raises:
            JudgeFailedError: The judge could not be asked, or its reply is no verdict.
        """
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
            raise JudgeFailedError(f"the reply of `{self.target}` is no verdict") from error
        return said.model_copy(update={"why": " ".join(said.why.split())[:WHY_CHARS]})


class Remembered(BaseModel):
    """What a session's record holds.

    Args:
        digest: Digest of the history that the verdict was about, in hex.
        strong: The verdict.
        why: Its reason.
        judged: Whether the judge gave it; ``False`` when it stands in for a verdict.
        through: Index of the last message that the other target may have made.
    """

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


def remembered_in(record: LatchRecord | None) -> Remembered | None:
    """Return what a record holds, ``None`` when there is none or it cannot be read."""
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
