"""Plans that wait: kept in the route's plan store, approved once, by whoever may."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from switchyard_core import (
    Identity,
    Image,
    PlanRecord,
    PlanState,
    PlanStore,
    RequestError,
    RouteContext,
    UserMessage,
)

__all__ = ["MAX_REVISIONS", "Desk", "Pending", "changed"]

#: How often one plan may be revised.
MAX_REVISIONS = 5
_GONE, _NOT_FOUND, _CHANGED, _NOT_PENDING = 410, 404, 412, 422


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """What a plan store keeps for this route type.

    Args:
        user: The request that the plan is for.
        state: State of the run; see function `saved.save`.
        prompt_digest: Digest of the planner's prompt.
        revisions: How often the plan was revised.
    """

    user: UserMessage
    state: Mapping[str, Any]
    prompt_digest: str = ""
    revisions: int = 0

    def to_bytes(self) -> bytes:
        """Return it as the ``data`` of a record."""
        return json.dumps(
            {
                "text": self.user.text,
                "images": [{"url": i.url, "detail": i.detail} for i in self.user.images],
                "left_out": list(self.user.left_out),
                "state": self.state,
                "prompt_digest": self.prompt_digest,
                "revisions": self.revisions,
            },
            ensure_ascii=False,
        ).encode("utf-8", "surrogatepass")

    @classmethod
    def from_bytes(cls, data: bytes) -> Pending:
        """Return what :meth:`to_bytes` wrote."""
        kept = json.loads(data.decode("utf-8", "surrogatepass"))
        user = UserMessage(
            text=kept["text"],
            images=tuple(Image(**image) for image in kept["images"]),
            left_out=tuple(kept["left_out"]),
        )
        return cls(
            user=user,
            state=kept["state"],
            prompt_digest=kept["prompt_digest"],
            revisions=kept["revisions"],
        )


class Desk:
    """Looks after the pending plans of one request's identity.

    Args:
        context: What the route is given; its plan store, clock and session are used.
    """

    def __init__(self, context: RouteContext) -> None:
        if context.plans is None:
            msg = "this route type needs a plan store: its options name one"
            raise RuntimeError(msg)
        self._store: PlanStore = context.plans
        self._clock = context.clock
        self._owner = _key(context.session.identity)

    async def reserve(self, plan_id: str) -> PlanRecord:
        """Take a place in the store, before any model is asked.

        Raises:
            PlanCapacityError: There is none.
        """
        record = PlanRecord(plan_id=plan_id, owner=self._owner, created_s=self._clock())
        await self._store.add(record)
        return record

    async def find(self, plan_id: str) -> PlanRecord:
        """Return a plan that waits and belongs to this identity.

        A plan made without identity belongs to whoever names its id and digest.

        Raises:
            RequestError: 404 ``plan_unknown``, 410 ``plan_expired``, 422 ``plan_not_pending``.
        """
        record = await self._store.get(plan_id)
        if record is None or (record.owner is not None and record.owner != self._owner):
            raise _problem(
                _NOT_FOUND,
                "plan_unknown",
                f"there is no plan `{plan_id[:80]}` of this session: plans are kept until the "
                "server stops or their time is over; ask for a new one",
            )
        if record.state == "expired":
            raise _problem(
                _GONE,
                "plan_expired",
                f"the plan `{plan_id}` waited longer than {self._store.ttl_s:g} s: ask for a new "
                "one",
            )
        if record.state != "planned":
            raise self._not_pending(record)
        return record

    async def claim(self, record: PlanRecord, state: PlanState) -> PlanRecord:
        """Move a waiting plan on; of many at the same time one wins.

        Raises:
            RequestError: 422 ``plan_not_pending``: another request was faster.
        """
        # What a plan was made from is not needed any more once it is rejected.
        data = b"" if state == "rejected" else record.data
        claimed = record.with_(state=state, data=data)
        if not await self._store.swap(record, claimed):
            now = await self._store.get(record.plan_id)
            raise self._not_pending(now if now is not None else claimed)
        return claimed

    async def keep(self, record: PlanRecord, digest: str, pending: Pending) -> PlanRecord:
        """Let a plan wait for approval; its time begins now.

        Raises:
            PlanCapacityError: Its place was taken meanwhile, and there is none.
        """
        waiting = record.with_(
            state="planned", digest=digest, created_s=self._clock(), data=pending.to_bytes()
        )
        if not await self._store.swap(record, waiting):
            # The planner took longer than plans are kept, and the place went to somebody else.
            await self._store.add(waiting)
        return waiting

    async def settle(self, record: PlanRecord, state: PlanState) -> None:
        """Note how a run ended; what it was made from is not needed any more."""
        await self._store.swap(record, record.with_(state=state, data=b""))

    async def drop(self, record: PlanRecord) -> None:
        """Give a reserved place back."""
        await self._store.remove(record.plan_id)

    def _not_pending(self, record: PlanRecord) -> RequestError:
        return _problem(
            _NOT_PENDING,
            "plan_not_pending",
            f"the plan `{record.plan_id}` does not wait for approval: it is {record.state}",
            {"status": record.state, "plan_id": record.plan_id},
        )


def changed(what: str) -> RequestError:
    """Return the error for a plan that is not the one that was approved."""
    return _problem(_CHANGED, "plan_changed", what)


def _problem(
    status: int, code: str, message: str, details: Mapping[str, str] = MappingProxyType({})
) -> RequestError:
    return RequestError(
        message=message,
        code=code,
        status=status,
        headers={"x-should-retry": "false"},
        details=details,
    )


def _key(identity: Identity | None) -> tuple[str, str | None] | None:
    return identity.key if identity is not None else None
