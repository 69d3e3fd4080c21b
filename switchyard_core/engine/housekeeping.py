"""Which requests are a client's side calls: titles, compaction, token counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import msgspec
import tomli

from switchyard_core.jsonio.tree import ObjectText
from switchyard_core.policy.models import Housekeeping
from switchyard_core.request import Request

__all__ = ["HousekeepingMark", "housekeeping_mark", "shipped_marks"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HousekeepingMark:
    """One way in which a client marks a side call; every part that is set must hold.

    The keys are those of ``housekeeping.toml``, which explains them.
    """

    name: str
    metadata: str = ""
    unless: tuple[str, ...] = ()
    subagent: tuple[str, ...] = ()
    wire_format: str = ""
    headers: tuple[str, ...] = ()
    body: tuple[str, ...] = ()
    tools: bool = True

    def holds(self, request: Request) -> bool:
        """Return whether a request carries this mark; the cheap parts are looked at first."""
        if self.wire_format and request.wire_format != self.wire_format:
            return False
        if any(not request.headers.get(name, "").strip() for name in self.headers):
            return False
        if self.metadata:
            value = request.mark.metadata.get(self.metadata)
            if not isinstance(value, str) or value in self.unless:
                return False
        if self.subagent and request.mark.subagent not in self.subagent:
            return False
        if any(not _has(request.fields, dotted) for dotted in self.body):
            return False
        return self.tools or not request.offers_tools


@cache
def shipped_marks() -> tuple[HousekeepingMark, ...]:
    """Return the marks of known clients, from ``housekeeping.toml``."""
    text = (files("switchyard_core.engine") / "housekeeping.toml").read_text("utf-8")
    return msgspec.convert(tomli.loads(text)["marks"], tuple[HousekeepingMark, ...])


def housekeeping_mark(request: Request, own: Sequence[Housekeeping]) -> str:
    """Return what marks a request as a side call, ``""`` for a turn of the conversation."""
    if request.endpoint != "create":
        return request.endpoint
    for mark in shipped_marks():
        if mark.holds(request):
            return mark.name
    for number, condition in enumerate(own):
        if condition.holds(request.headers, request.tree):
            return f"housekeeping[{number}]"
    return ""


def _has(fields: ObjectText, dotted: str) -> bool:
    holder: ObjectText | None = fields
    *outer, last = dotted.split(".")
    for key in outer:
        holder = holder.object(key) if holder is not None else None
    return holder is not None and holder.raw(last) not in (None, b"null")
