"""When a review of ``plan_review`` is due: executor turns and failed tool results are counted."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import cache
from importlib.resources import files
from typing import Any, Self

import tomli
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from switchyard_core import (
    FirstMutation,
    LabelName,
    LatchOptions,
    LatchRecord,
    Prompt,
    ReleaseAfterSuccess,
    Request,
    Rewrite,
    RouteContext,
    RuleSetName,
    TargetName,
    UpdateRecord,
    handoff_rewrites,
)
from switchyard_core.conversation import ToolResult
from switchyard_core.jsonio import ObjectText
from switchyard_core.patterns import compile_pattern

__all__ = [
    "Counts",
    "PlanReviewOptions",
    "changes",
    "counts_in",
    "failed_results",
    "handed_off",
    "lost_context",
    "release",
    "update",
]


class PlanReviewOptions(LatchOptions):
    """Options of ``type = "plan_review"``.

    Args:
        capable_target: Plans until the first edit, and reviews.
        efficient_target: Serves the session from the first edit on.
        planning_prompt: Replaces the built-in planning instruction.
        review_prompt: Replaces the built-in user's text of a review.
        review_every: Executor turns between reviews; 0 never reviews for their number.
        review_after_failures: Failed tool results in a row that call for a review; 0 never.
        max_reviews: Most reviews of one session.
        mutation_rules: Rule sets that label tool calls, tried in order.
        handoff_on: Labels that end planning.
    """

    capable_target: TargetName
    efficient_target: TargetName
    planning_prompt: Prompt | None = None
    review_prompt: Prompt | None = None
    review_every: int = Field(default=20, ge=0)
    review_after_failures: int = Field(default=3, ge=0)
    max_reviews: int = Field(default=3, ge=1)
    mutation_rules: list[RuleSetName] = Field(default=["coding_agents"], min_length=1)
    handoff_on: list[LabelName] = Field(default=["file_edit"], min_length=1)

    @model_validator(mode="after")
    def _reviews(self) -> Self:
        if not self.review_every and not self.review_after_failures:
            msg = "`review_every` and `review_after_failures` are both 0: use `plan_execute`"
            raise ValueError(msg)
        return self


class Counts(BaseModel):
    """What a session's record holds."""

    model_config = ConfigDict(frozen=True)

    last: str
    through: int | None = None
    reviewing: bool = False
    turns: int = 1
    failures: int = 0
    reviews: int = 0

    def record(self) -> LatchRecord:
        """Return the record that holds them."""
        return LatchRecord(data=self.model_dump_json().encode("ascii"))

    def with_results(self, request: Request) -> Counts:
        """Return the counts with the tool results that a request brings."""
        run = self.failures
        for failed in failed_results(request):
            run = run + 1 if failed else 0
        through = self.through
        if through is not None and len(request.conversation.messages) - 1 <= through:
            through = None
        digest = request.history_digest.hex()
        return self.model_copy(update={"failures": run, "last": digest, "through": through})

    def due(self, options: PlanReviewOptions) -> str:
        """Return why a review is due, ``""`` when none is."""
        if self.reviews >= options.max_reviews:
            return ""
        if options.review_after_failures and self.failures >= options.review_after_failures:
            return f"{self.failures} tool results in a row failed"
        if options.review_every and self.turns >= options.review_every:
            return f"the executor made {self.turns} turns"
        return ""

    def after_turn(self) -> Counts:
        """Return the counts when the executor makes the next turn."""
        return self.model_copy(update={"turns": self.turns + 1, "reviewing": False})

    def after_review(self, request: Request) -> Counts:
        """Return the counts when the planner makes the next turn."""
        last, number = len(request.conversation.messages) - 1, self.reviews + 1
        return Counts(last=self.last, through=last, reviewing=True, turns=0, reviews=number)

    def planner_message(self, request: Request) -> int | None:
        """Return the index of the last message that may be the planner's, ``None`` without."""
        through = self.through
        if through is None or not self.reviews:
            return through
        roles = [message.role for message in request.conversation.messages[: through + 2]]
        # The review's own turn, once the client has sent it.
        return through + 1 if roles[through + 1 :] == ["assistant"] else through


def counts_in(record: LatchRecord) -> Counts:
    """Return what a record holds; fresh counts when it cannot be read."""
    try:
        return Counts.model_validate_json(record.data)
    except ValidationError:
        return Counts(last="")


def handed_off(request: Request, first: FirstMutation) -> Counts:
    """Return the counts of the executor's first turn, after the planner's first edit."""
    return Counts(last=request.history_digest.hex(), through=first.verdict.message)


def changes(
    options: PlanReviewOptions, request: Request, context: RouteContext, counts: Counts
) -> tuple[Rewrite, ...]:
    """Return what the history up to the last change of hands needs for who makes the turn."""
    planner = context.targets[options.capable_target]
    executor = context.targets[options.efficient_target]
    review = counts.reviewing
    # The texts of earlier reviews are gone, and with them what the planner's thinking followed.
    moved = review and planner.accepts.prefix_bound
    return handoff_rewrites(
        source=executor if review else planner,
        target=planner if review else executor,
        through_message=counts.through if review else counts.planner_message(request),
        opaque="drop" if moved else "auto",
        drop_continuation=counts.turns <= 1 and not request.misses_history,
    )


def lost_context(
    options: PlanReviewOptions, request: Request, context: RouteContext, counts: Counts
) -> tuple[str, ...]:
    """Return what of the planner's part only its provider can read, if that is another one."""
    planner = context.targets[options.capable_target]
    executor = context.targets[options.efficient_target]
    if planner.origin == executor.origin and planner.wire_format == executor.wire_format:
        return ()
    return request.foreign_context(through_message=counts.planner_message(request))


def release(context: RouteContext) -> tuple[ReleaseAfterSuccess, ...]:
    """Return the effect that frees a slot after a session's last request."""
    session = context.session
    if session.final and session.identity is not None:
        return (ReleaseAfterSuccess(session.identity),)
    return ()


def update(context: RouteContext, counts: Counts) -> tuple[UpdateRecord, ...]:
    """Return the effect that keeps the counts."""
    identity = context.session.identity
    return () if identity is None else (UpdateRecord(identity, counts.record()),)


def failed_results(request: Request) -> Iterator[bool]:
    """Yield, per tool result since the assistant's last turn, whether its call failed."""
    conversation = request.conversation
    last, items = conversation.last_assistant, request.fields.array(request.history_key)
    for message in conversation.messages[(-1 if last is None else last) + 1 :]:
        if message.role != "tool" or items is None:
            continue
        if request.wire_format == "anthropic_messages":
            results = (part for part in message.content if isinstance(part, ToolResult))
            yield from (result.is_error for result in results)
            continue
        for index in range(message.first, message.last + 1):
            item = items.object(index)
            if item is not None:
                yield _failed(item)


def _failed(item: ObjectText) -> bool:
    statuses, patterns = _signs()
    if item.text("status") in statuses:
        return True
    texts = [text for key in ("content", "output") for text in _texts(item.value(key))]
    return any(found(text) for found in patterns for text in texts)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for part in value:
            text = part.get("text") if isinstance(part, dict) else None
            yield from _texts(text if isinstance(text, str) else json.dumps(part))


@cache
def _signs() -> tuple[frozenset[str], tuple[Callable[[str], bool], ...]]:
    """Return the statuses of failed calls, and tests of the texts of their results."""
    text = (files("switchyard_demo_routers") / "failed_results.toml").read_text("utf-8")
    signs = tomli.loads(text)
    return frozenset(signs["statuses"]), tuple(map(compile_pattern, signs["patterns"]))
