"""Requests that a client makes for itself: which ones they are, and where a policy sends them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from switchyard_core.clients import SMALL_MODEL, SideCall, SideCallMark, clients, is_small_model
from switchyard_core.decision import Decision, Effect, Reason, ReleaseAfterSuccess
from switchyard_core.engine.routes import Routed
from switchyard_core.identity import from_subagent
from switchyard_core.jsonio.tree import encode
from switchyard_core.policy.models import Housekeeping, Policy, Target
from switchyard_core.request import Request
from switchyard_core.router import handoff_rewrites, is_foreign

__all__ = ["PHASE", "redirected", "side_call_of"]

#: Kind of a side call that a condition of the policy marks without naming a kind.
_OTHER = "other"
#: Bytes at the end of a history in which a client's own prompt begins: the longest has 6 KB.
_END_BYTES = 32 * 1024
#: Phase of a side call that has a target of its own.
PHASE = "side_call"


def side_call_of(
    request: Request, own: Sequence[Housekeeping], *, named: bool = True
) -> SideCall | None:
    """Return what is known of a side call, ``None`` for a turn.

    ``own`` are the policy's conditions; ``named`` is whether a route has the requested model id.
    """
    if request.endpoint != "create":
        return SideCall(kind=request.endpoint, mark=request.endpoint)
    end = request.history_end(_END_BYTES)
    headers, body = request.headers.by_name, request.body
    for known in _marks(request.wire_format, bare=not request.lists_tools):
        mark, user, system = known.mark, known.user, known.system
        # Without a call each: nearly every request fails here, at every mark.
        if (mark.headers and mark.headers[0] not in headers) or (
            mark.metadata and not request.mark.metadata
        ):
            continue
        if (user and not any(map(end.__contains__, user))) or (
            system and not any(map(body.__contains__, system))
        ):
            continue
        if _holds(mark, request):
            return SideCall(kind=mark.kind, mark=mark.name)
    if not named and _is_small(request):
        return SideCall(kind=SMALL_MODEL, mark=SMALL_MODEL)
    for number, condition in enumerate(own):
        if not condition.kinds and condition.holds(request.headers, request.tree):
            return SideCall(kind=condition.kind or _OTHER, mark=f"housekeeping[{number}]")
    return None


def redirected(routed: Routed, call: SideCall, policy: Policy) -> Decision | None:
    """Return the decision for a side call that the policy sends to a target of its own.

    ``None`` leaves it to the router: without such a target, where the request does not fit its
    window, and where only a provider of the caller's format has the history.
    """
    request, runtime = routed.request, routed.runtime
    if request.endpoint != "create" or runtime.answers:
        return None
    target = _target(call, request, policy)
    if target is None or not target.fits(request):
        return None
    if target.wire_format != request.wire_format and request.misses_history:
        return None
    identity = routed.identity
    effects: tuple[Effect, ...] = ()
    if request.session_final and identity is not None:
        effects = (ReleaseAfterSuccess(identity),)
    others = [policy.targets[name] for name in runtime.route.targets]
    foreign = next((other for other in others if is_foreign(other, target)), target)
    # Nothing is inserted here, so what a target thought behind an insertion is not valid.
    bound = target.accepts.prefix_bound
    return Decision(
        target=target.name,
        phase=PHASE,
        reason=Reason(
            code="housekeeping",
            detail=f"the policy sends side calls of kind `{call.kind}` to this target",
            facts={"kind": call.kind, "mark": call.mark},
        ),
        rewrites=handoff_rewrites(
            source=foreign,
            target=target,
            # Nobody asks the router who made which part: all of it may be another origin's.
            through_message=(
                request.conversation.last_assistant if bound or foreign is not target else None
            ),
            opaque="drop" if bound else "auto",
        ),
        effects=effects,
    )


def _target(call: SideCall, request: Request, policy: Policy) -> Target | None:
    for condition in policy.housekeeping:
        if condition.target is None:
            continue
        if condition.kinds:
            holds = call.kind in condition.kinds
        else:
            holds = condition.holds(request.headers, request.tree)
        if holds:
            return policy.targets[condition.target]
    return None


@dataclass(frozen=True, slots=True)
class _Mark:
    """A mark with what tells cheaply that most requests do not have it."""

    mark: SideCallMark
    #: Phrases as they are inside JSON strings: of the user's last message, of the instructions.
    user: tuple[bytes, ...]
    system: tuple[bytes, ...]


@cache
def _marks(wire_format: str, *, bare: bool) -> tuple[_Mark, ...]:
    """Return the marks for requests in a wire format, with or without a list of tools."""
    return tuple(
        _Mark(mark, _written(mark.user), _written(mark.system))
        for client in clients()
        for mark in client.side_calls
        if mark.wire_format in ("", wire_format) and (mark.tools or bare)
    )


def _written(phrases: tuple[str, ...]) -> tuple[bytes, ...]:
    """Return phrases as JSON has them: to look for them is far cheaper than to read it."""
    return tuple(encode(phrase)[1:-1] for phrase in phrases)


def _is_small(request: Request) -> bool:
    """Return whether it asks for a small model, and is not a turn of the user's own session."""
    if not is_small_model(request.model):
        return False
    return from_subagent(request.headers, request.mark) or not request.offers_tools


def _holds(mark: SideCallMark, request: Request) -> bool:
    """Return whether a request that has the phrases of a mark has all of it."""
    headers = request.headers.by_name
    for name in mark.headers:
        if not headers.get(name, "").strip():
            return False
    if mark.user_agent and not headers.get("user-agent", "").startswith(mark.user_agent):
        return False
    if mark.metadata and not _told(mark, request.mark.metadata.get(mark.metadata)):
        return False
    if mark.subagent and request.mark.subagent not in mark.subagent:
        return False
    for path in mark.body:
        if request.at(path) is None:
            return False
    return (mark.tools or not request.offers_tools) and _says(mark, request)


def _told(mark: SideCallMark, value: object) -> bool:
    if not isinstance(value, str) or value in mark.unless:
        return False
    return not mark.values or value in mark.values


def _says(mark: SideCallMark, request: Request) -> bool:
    """Return whether the texts of a mark are where they belong."""
    if mark.system and not any(phrase in request.instructions for phrase in mark.system):
        return False
    if not mark.user:
        return True
    said = "\n" + request.user_message.text
    return any("\n" + phrase in said for phrase in mark.user)
