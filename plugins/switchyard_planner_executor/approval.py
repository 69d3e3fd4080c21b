"""What a request wants of the plans: a new one, or to go on with one that waits.

Only what the caller says about a plan in so many words counts: a header, a member of the body,
and where the policy allows it a user's text of exactly two words. Nothing is inferred from the
conversation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

from switchyard_core import Request, RequestError
from switchyard_planner_executor.body import member
from switchyard_planner_executor.strict_json import NotJsonError, RepeatedKeyError, loads

__all__ = ["Approve", "Fresh", "Intent", "Reject", "Revise", "RunPlan", "read_intent"]

HEADER = "x-switchyard-plan"
BODY_KEY = "switchyard"
METADATA_KEY = "switchyard_plan"

_HOW = (
    f"Write the header `{HEADER}: approve <plan_id> <plan_digest>` (or `reject <plan_id>`, "
    f"`revise <plan_id>`), or in the body "
    f'`"{BODY_KEY}": {{"approve": {{"plan_id": "...", "plan_digest": "..."}}}}`.'
)
_MAX_CHARS = 256
#: Words of the text form, and how many more words each wants.
_WORDS = {"approve": 2, "reject": 1, "revise": 1}
#: Members of the body form, and the members that each wants in turn.
_MEMBERS = {
    "approve": ("plan_id", "plan_digest"),
    "reject": ("plan_id",),
    "revise": ("plan_id",),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fresh:
    """Make a plan.

    Args:
        hold: Whether the caller wants it to wait for approval, whatever the policy says.
    """

    hold: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Approve:
    """Run a plan that waits.

    Args:
        plan_id: Which one.
        digest: What the caller saw; ``None`` only for the text of a user, which names none.
    """

    plan_id: str
    digest: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reject:
    """Give up a plan that waits."""

    plan_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Revise:
    """Make a plan that waits again; the last user message says what should be different."""

    plan_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan:
    """Run the caller's own plan without asking the planner.

    Args:
        value: Parsed JSON, not checked yet.
        hold: Whether the caller wants it to wait for approval, whatever the policy says.
    """

    value: Any
    hold: bool = False


Intent = Fresh | Approve | Reject | Revise | RunPlan


def read_intent(request: Request, *, by_text: bool) -> Intent:
    """Return what a request wants; the first of these that says something counts.

    The header, the member ``switchyard`` of the body, in OpenAI's formats
    ``metadata.switchyard_plan``, and with ``by_text`` a last user message that is exactly
    ``approve <plan_id>``.

    Args:
        request: The request.
        by_text: Whether such a message counts.

    Raises:
        RequestError: ``approval_malformed`` (400): it is said in a way that can be read as
            something else; nothing was asked or run.
    """
    header = request.headers.joined(HEADER)
    if header is not None or HEADER in request.headers:
        return _from_words(header or "", f"the header `{HEADER}`", None)
    raw = request.fields.raw(BODY_KEY)
    if raw is not None and raw != b"null":
        return _from_body(raw)
    if request.wire_format != "anthropic_messages":
        found = _from_metadata(request)
        if found is not None:
            return found
    if by_text:
        plan_id = _approved_in_words(request)
        if plan_id is not None:
            return Approve(plan_id=plan_id)
    return Fresh()


def _from_metadata(request: Request) -> Intent | None:
    metadata = member(request, "metadata")
    text = metadata.get(METADATA_KEY) if isinstance(metadata, dict) else None
    if text is None:
        return None
    where = f"metadata.{METADATA_KEY}"
    if not isinstance(text, str):
        _refuse(f"`{where}` must be a string", where)
    return _from_words(text, f"`{where}`", where)


def _from_words(text: str, where: str, param: str | None) -> Approve | Reject | Revise:
    words = text.split()
    verb = words[0] if words else ""
    if verb not in _WORDS:
        _refuse(f"{where} says neither `approve`, `reject` nor `revise`", param)
    if len(words) != 1 + _WORDS[verb]:
        wanted = "the id and the digest" if _WORDS[verb] == 2 else "the id"
        _refuse(f"{where} must name {wanted} of the plan behind `{verb}`, and nothing else", param)
    return _intent(verb, [_name(word, where, param) for word in words[1:]])


def _intent(verb: str, names: list[str]) -> Approve | Reject | Revise:
    if verb == "approve":
        return Approve(plan_id=names[0], digest=names[1])
    return Reject(plan_id=names[0]) if verb == "reject" else Revise(plan_id=names[0])


def _name(text: Any, where: str, param: str | None) -> str:
    if not isinstance(text, str) or not text.strip() or len(text) > _MAX_CHARS:
        _refuse(f"{where} must be a text of 1 to {_MAX_CHARS} characters", param)
    return text


def _from_body(raw: bytes) -> Intent:
    said = _object(raw)
    hold = "approval" in said
    if hold and said.pop("approval") != "always":
        _refuse(f'`{BODY_KEY}.approval` can only be "always"', f"{BODY_KEY}.approval")
    if len(said) > 1:
        _refuse(f"`{BODY_KEY}` can ask for one thing only, not for {_listed(said)}", BODY_KEY)
    for key, value in said.items():
        where = f"{BODY_KEY}.{key}"
        if key == "plan":
            return RunPlan(value=value, hold=hold)
        if key not in _MEMBERS:
            known = _listed([*_MEMBERS, "plan", "approval"])
            _refuse(f"`{where}` is not known here; `{BODY_KEY}` may have {known}", where)
        if hold:
            _refuse(f"`{BODY_KEY}.approval` does not go with `{key}`", f"{BODY_KEY}.approval")
        wanted = _MEMBERS[key]
        if not isinstance(value, dict) or set(value) != set(wanted):
            _refuse(f"`{where}` must be an object with {_listed(wanted)} and nothing else", where)
        at = [(value[name], f"{where}.{name}") for name in wanted]
        return _intent(key, [_name(text, f"`{path}`", path) for text, path in at])
    return Fresh(hold=hold)


def _object(raw: bytes) -> dict[str, Any]:
    try:
        said = loads(raw)
    except (NotJsonError, RepeatedKeyError) as error:
        _refuse(f"`{BODY_KEY}` cannot be read: {error}", BODY_KEY)
    if not isinstance(said, dict):
        _refuse(f"`{BODY_KEY}` must be an object", BODY_KEY)
    return said


def _listed(names: Any) -> str:
    """Return names in back-ticks, long or strange ones cut."""
    *some, last = [f"`{name[:40]}`" for name in list(names)[:10]]
    return f"{', '.join(some)} and {last}" if some else last


def _approved_in_words(request: Request) -> str | None:
    """Return the plan that the last message approves, if that is a user's and says only that."""
    spoken = [m for m in request.conversation.messages if m.role != "system"]
    if not spoken or spoken[-1].role != "user":
        return None
    message = request.user_message
    words = message.text.split()
    exact = len(words) == 2 and words[0] == "approve" and not message.images
    return words[1] if exact and not message.left_out else None


def _refuse(what: str, param: str | None) -> NoReturn:
    raise RequestError(
        message=f"{what}; nothing was run. {_HOW}",
        code="approval_malformed",
        param=param,
        headers={"x-should-retry": "false"},
    )
