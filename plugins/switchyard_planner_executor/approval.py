"""Plans that wait: what a request says about one, where it waits, and who may run it.

Only what the caller says about a plan in so many words counts: a header, a member of the body,
and where the policy allows it a user's text of exactly two words. Nothing is inferred from the
conversation.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from switchyard_core import Request, RequestError, RouteContext
from switchyard_core.conversation import Image, UserMessage
from switchyard_core.stores import PlanRecord, PlanState, PlanStore
from switchyard_planner_executor.caller import member, refusal
from switchyard_planner_executor.json_text import NotJsonError, strict_json

__all__ = ["MAX_REVISIONS", "Intent", "PendingPlan", "StoredPlan", "read_intent"]

#: How often one plan may be revised.
MAX_REVISIONS = 5
HEADER = "x-switchyard-plan"
BODY_KEY = "switchyard"
METADATA_KEY = "switchyard_plan"

_HOW = (
    f"Write the header `{HEADER}: approve <plan_id> <plan_digest>` (or `reject <plan_id>`, "
    f"`revise <plan_id>`), or in the body "
    f'`"{BODY_KEY}": {{"approve": {{"plan_id": "...", "plan_digest": "..."}}}}`.'
)
_MAX_CHARS = 256

#: What must be named with each word about a waiting plan: members in the body, words elsewhere.
_NAMED: Mapping[str, tuple[str, ...]] = {
    "approve": ("plan_id", "plan_digest"),
    "reject": ("plan_id",),
    "revise": ("plan_id",),
}


# --- what a request says -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """What a request wants of the plans."""

    #: `make` a plan; `run` the caller's own; `approve`, `reject` or `revise` one that waits
    verb: str
    plan_id: str = ""  # Which one waits
    digest: str | None = None  # What an approval saw; `None` for a user's text, which names none
    value: Any = None  # The caller's own plan as parsed JSON, not checked yet
    hold: bool = False  # Whether the plan is to wait for approval, whatever the policy says


def read_intent(request: Request, *, by_text: bool) -> Intent:
    """Return what a request wants; the first of these that says something counts.

    The header, the member ``switchyard`` of the body, in OpenAI's formats
    ``metadata.switchyard_plan``, and with ``by_text`` a last user message that is exactly
    ``approve <plan_id>``. What could be read as something else is refused.
    """
    if HEADER in request.headers:
        return _from_words(request.headers.joined(HEADER) or "", f"the header `{HEADER}`", None)
    raw = request.fields.raw(BODY_KEY)
    if raw is not None and raw != b"null":
        return _from_body(raw)
    if request.wire_format != "anthropic_messages":
        metadata = member(request, "metadata")
        text = metadata.get(METADATA_KEY) if isinstance(metadata, dict) else None
        where = f"metadata.{METADATA_KEY}"
        if text is not None and not isinstance(text, str):
            raise _malformed(f"`{where}` must be a string", where)
        if text is not None:
            return _from_words(text, f"`{where}`", where)
    plan_id = _approved_in_words(request) if by_text else None
    return Intent(verb="make") if plan_id is None else Intent(verb="approve", plan_id=plan_id)


def _from_words(text: str, where: str, param: str | None) -> Intent:
    word, *names = text.split() or [""]
    if word not in _NAMED:
        raise _malformed(f"{where} says neither `approve`, `reject` nor `revise`", param)
    expected = len(_NAMED[word])
    if len(names) != expected:
        what = "the id and the digest" if expected == 2 else "the id"
        raise _malformed(
            f"{where} must name {what} of the plan after `{word}`, and nothing else", param
        )
    return _about_plan(word, [(name, where, param) for name in names])


def _from_body(raw: bytes) -> Intent:
    members = _object(raw)
    hold = "approval" in members
    if hold and members.pop("approval") != "always":
        raise _malformed(f'`{BODY_KEY}.approval` can only be "always"', f"{BODY_KEY}.approval")
    if len(members) > 1:
        asked = _listed(members)
        raise _malformed(f"`{BODY_KEY}` can ask for one thing only, not for {asked}", BODY_KEY)
    for key, value in members.items():
        where = f"{BODY_KEY}.{key}"
        if key == "plan":
            return Intent(verb="run", value=value, hold=hold)
        if key not in _NAMED:
            keys = _listed([*_NAMED, "plan", "approval"])
            raise _malformed(f"`{where}` is not known here; `{BODY_KEY}` may have {keys}", where)
        if hold:
            param = f"{BODY_KEY}.approval"
            raise _malformed(f"`{param}` cannot be combined with `{key}`", param)
        expected = _NAMED[key]
        if not isinstance(value, dict) or set(value) != set(expected):
            keys = _listed(expected)
            raise _malformed(f"`{where}` must be an object with {keys} and nothing else", where)
        return _about_plan(
            key, [(value[name], f"`{where}.{name}`", f"{where}.{name}") for name in expected]
        )
    return Intent(verb="make", hold=hold)


def _about_plan(word: str, names: list[tuple[Any, str, str | None]]) -> Intent:
    for text, where, param in names:
        if not isinstance(text, str) or not text.strip() or len(text) > _MAX_CHARS:
            raise _malformed(f"{where} must be a text of 1 to {_MAX_CHARS} characters", param)
    plan_id, *digest = (text for text, _, _ in names)
    return Intent(verb=word, plan_id=plan_id, digest=digest[0] if digest else None)


def _object(raw: bytes) -> dict[str, Any]:
    try:
        found = strict_json(raw)
    except NotJsonError as error:
        raise _malformed(f"`{BODY_KEY}` cannot be read: {error}", BODY_KEY) from None
    if not isinstance(found, dict):
        raise _malformed(f"`{BODY_KEY}` must be an object", BODY_KEY)
    return found


def _listed(names: Any) -> str:
    """Return names in back-ticks, long or strange ones cut."""
    *some, last = [f"`{name[:40]}`" for name in list(names)[:10]]
    return f"{', '.join(some)} and {last}" if some else last


def _approved_in_words(request: Request) -> str | None:
    """Return the plan that the last message approves, if it is a user's and says only that."""
    spoken = [m for m in request.conversation.messages if m.role != "system"]
    if not spoken or spoken[-1].role != "user":
        return None
    message = request.user_message
    words = message.text.split()
    exact = len(words) == 2 and words[0] == "approve" and not message.images
    return words[1] if exact and not message.left_out else None


def _malformed(what: str, param: str | None) -> RequestError:
    return refusal(f"{what}; nothing was run. {_HOW}", "approval_malformed", param=param)


# --- where a plan waits --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingPlan:
    """What a plan store keeps: the request, the planner's prompt, and ``PlanRun.save()``."""

    user: UserMessage
    prompt_digest: str
    state: Mapping[str, Any] = field(default_factory=dict)
    revisions: int = 0

    def to_bytes(self) -> bytes:
        """Return it as the ``data`` of a record."""
        return json.dumps(asdict(self), ensure_ascii=False).encode("utf-8", "surrogatepass")

    @classmethod
    def from_bytes(cls, data: bytes) -> PendingPlan:
        """Return what :meth:`to_bytes` wrote."""
        kept = json.loads(data.decode("utf-8", "surrogatepass"))
        user = kept.pop("user")
        images = tuple(Image(**image) for image in user.pop("images"))
        left_out = tuple(user.pop("left_out"))
        return cls(user=UserMessage(**user, images=images, left_out=left_out), **kept)


class StoredPlan:
    """A plan in the route's store; ``pending`` is what its record holds while it waits."""

    def __init__(self, context: RouteContext, record: PlanRecord, pending: PendingPlan) -> None:
        self.record = record
        self.pending = pending
        self._store = _store_of(context)
        self._clock = context.clock

    @classmethod
    async def reserve(cls, context: RouteContext, plan_id: str, pending: PendingPlan) -> StoredPlan:
        """Take a place in the store before any model is asked, or raise PlanCapacityError."""
        record = PlanRecord(plan_id=plan_id, owner=_owner_of(context), created_s=context.clock())
        await _store_of(context).add(record)
        return cls(context, record, pending)

    @classmethod
    async def find(cls, context: RouteContext, plan_id: str) -> StoredPlan:
        """Return a waiting plan of this session, or one made without a session; or refuse."""
        store = _store_of(context)
        record = await store.get(plan_id)
        if record is None or record.owner not in (None, _owner_of(context)):
            what = (
                f"there is no plan `{plan_id[:80]}` of this session: plans are kept until the "
                "server stops or their time is over; ask for a new one"
            )
            raise refusal(what, "plan_unknown", status=404)
        if record.state == "expired":
            what = f"the plan `{plan_id}` waited longer than {store.ttl_s:g} s"
            raise refusal(f"{what}: ask for a new one", "plan_expired", status=410)
        if record.state != "planned":
            raise _not_pending(record)
        return cls(context, record, PendingPlan.from_bytes(record.data))

    async def claim(self, state: PlanState) -> None:
        """Move on from waiting; of many at the same time one wins, the others are refused (422)."""
        # What a plan was made from is not needed any more once it is rejected.
        data = b"" if state == "rejected" else self.record.data
        claimed = self.record.with_(state=state, data=data)
        if not await self._store.swap(self.record, claimed):
            raise _not_pending(await self._store.get(claimed.plan_id) or claimed)
        self.record = claimed

    async def keep(self, digest: str, **changes: Any) -> None:
        """Let the plan wait for approval of ``digest``; ``changes`` are fields of ``pending``."""
        self.pending = replace(self.pending, **changes)
        waiting = self.record.with_(
            state="planned", digest=digest, created_s=self._clock(), data=self.pending.to_bytes()
        )
        if not await self._store.swap(self.record, waiting):
            # The planner took longer than plans are kept, and the place went to another plan.
            await self._store.add(waiting)
        self.record = waiting

    async def settle(self, state: PlanState) -> None:
        """Note how a run ended; what it was made from is not needed any more."""
        await self._store.swap(self.record, self.record.with_(state=state, data=b""))

    async def drop(self) -> None:
        """Give the place back."""
        await self._store.remove(self.record.plan_id)


def _store_of(context: RouteContext) -> PlanStore:
    if context.plans is None:
        raise RuntimeError("this route type needs a plan store: its options name one")
    return context.plans


def _owner_of(context: RouteContext) -> tuple[str, str | None] | None:
    identity = context.session.identity
    return identity.key if identity is not None else None


def _not_pending(record: PlanRecord) -> RequestError:
    return refusal(
        f"the plan `{record.plan_id}` does not wait for approval: it is {record.state}",
        "plan_not_pending",
        status=422,
        details={"status": record.state, "plan_id": record.plan_id},
    )
