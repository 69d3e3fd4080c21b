"""The route type ``fallback``: the next target when one fails."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from switchyard_core import (
    Decision,
    DecisionWarning,
    Failure,
    Options,
    Reason,
    Request,
    Rewrite,
    RouteContext,
    TargetName,
    TargetView,
    handoff_rewrites,
)
from switchyard_core.conversation import Reasoning

__all__ = ["FallbackOptions", "FallbackRouter"]

#: The words of the option ``on``.
FailureKind = Literal["transport", "rate_limit", "server_error", "context_length"]


def _distinct(names: list[str]) -> list[str]:
    if len(set(names)) != len(names):
        raise ValueError("a target is listed twice")
    return names


class FallbackOptions(Options):
    """Options of ``type = "fallback"``.

    Args:
        targets: In the order in which they are tried, 2 to 8, each once.
        on: Kinds of failure that are worth the next target; any other failure is the caller's.
    """

    targets: Annotated[
        list[TargetName], Field(min_length=2, max_length=8), AfterValidator(_distinct)
    ]
    on: list[FailureKind] = Field(
        default=["transport", "rate_limit", "server_error", "context_length"], min_length=1
    )


class FallbackRouter:
    """Sends a request to the first target that it fits, and after a failure to the next."""

    def __init__(self, options: FallbackOptions) -> None:
        self._targets, self._on = tuple(options.targets), frozenset(options.on)

    async def route(self, request: Request, context: RouteContext) -> Decision:
        """Return the first target whose window the request fits; the first one when none does."""
        fitting = [
            name
            for name in self._targets
            if context.targets[name].fits(request) and _can_know(context.targets[name], request)
        ]
        name, code, why = self._targets[0], "first_target", ""
        if fitting and fitting[0] != name:
            name, code, why = fitting[0], "window", ", the first whose window is large enough"
            if not _can_know(context.targets[self._targets[0]], request):
                code, why = "history", ", the first that may know the history"
        reason = Reason(code=code, detail=f"try 1: `{name}`{why}", facts={"try": "1"})
        rewrites = self._conversions(name, request, context)
        return Decision(target=name, reason=reason, rewrites=rewrites)

    async def next(
        self, request: Request, failed: Decision, failure: Failure, context: RouteContext
    ) -> Decision | None:
        """Return the next try, ``None`` when the failure is the caller's or no target is left."""
        said = f"`{failed.target}` failed: {failure.status or 'no answer'} {failure.code}".strip()
        first = self._targets[0]
        # Only the first target gets a history as it is: it may hold what a later one thought.
        kept = all(rewrite.name != "drop_opaque_reasoning" for rewrite in failed.rewrites)
        if failed.target == first and kept and _refuses_reasoning(request, failure):
            rewrites = self._conversions(first, request, context, drop=True)
            return _again(failed, first, rewrites, "reasoning_dropped", said)
        if not _kinds(failure) & self._on:
            return None
        origin, alone = context.targets[failed.target].origin, request.misses_history
        for name in self._targets[self._targets.index(failed.target) + 1 :]:
            target = context.targets[name]
            # Another provider cannot know a history that is only named by id.
            foreign = target.origin != origin or not _can_know(target, request)
            if target.fits(request) and not (alone and foreign):
                rewrites = self._conversions(name, request, context)
                return _again(failed, name, rewrites, f"failed:{failed.target}", said)
        return None

    def _conversions(
        self, name: str, request: Request, context: RouteContext, *, drop: bool = False
    ) -> tuple[Rewrite, ...]:
        """Return what a history that any of the targets may have made needs for one of them."""
        target = context.targets[name]
        views = [context.targets[other] for other in self._targets if other != name]
        foreign = [view for view in views if _differs(view, target)]
        first = name == self._targets[0] and not drop
        if first or request.conversation.last_assistant is None:
            return ()
        return handoff_rewrites(
            source=(foreign or views)[0],
            target=target,
            through_message=len(request.conversation.messages) - 1,
            opaque="drop" if drop else "auto",
            drop_continuation=not request.misses_history,
        )


def _differs(one: TargetView, other: TargetView) -> bool:
    """Return whether one of two targets cannot read what only the other's provider can."""
    return one.origin != other.origin or one.wire_format != other.wire_format


def _can_know(target: TargetView, request: Request) -> bool:
    """Return whether a target may know what of its history a request only names."""
    return target.wire_format == request.wire_format or not request.misses_history


def _again(
    failed: Decision, name: str, rewrites: tuple[Rewrite, ...], code: str, said: str
) -> Decision:
    number = int(failed.reason.facts["try"]) + 1
    reason = Reason(
        code="next_target" if name != failed.target else code,
        detail=f"try {number}: `{name}`, since {said}",
        facts={"try": str(number)},
    )
    warning = DecisionWarning(code=code, detail=said)
    return failed.with_(
        target=name, reason=reason, rewrites=rewrites, warnings=(*failed.warnings, warning)
    )


_TOO_LONG = frozenset({"overflow", "silent_overflow"})
#: What a provider may say that any other target would say of this request, too.
_OF_THE_REQUEST = frozenset({"signature", "reasoning_missing", "parameter", "order", "refusal"})


def _kinds(failure: Failure) -> frozenset[FailureKind]:
    """Return the kinds of a failure, none when another target would fail like this one."""
    kinds: set[FailureKind] = set()
    if failure.kind == "transport" or failure.status == 408:
        kinds.add("transport")
    if failure.status == 429 or (failure.kind == "content" and failure.meaning == "not_overflow"):
        kinds.add("rate_limit")
    if failure.meaning in _TOO_LONG:
        kinds.add("context_length")
    elif failure.kind == "content" and failure.meaning not in _OF_THE_REQUEST:
        kinds.add("server_error")
    if failure.status >= 500 or failure.meaning == "overloaded":
        kinds.add("server_error")
    return frozenset(kinds)


def _refuses_reasoning(request: Request, failure: Failure) -> bool:
    """Return whether a provider says that it cannot read the reasoning of a history."""
    parts = request.conversation.parts()
    return failure.meaning == "signature" and any(isinstance(p, Reasoning) for _, p in parts)
