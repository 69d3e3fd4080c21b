"""Which rewrites a conversation needs when another model takes it over."""

from __future__ import annotations

from typing import Any, Literal

from switchyard_core.declarations import Rewrite
from switchyard_core.router import TargetView

__all__ = ["handoff_rewrites"]


def handoff_rewrites(
    *,
    source: TargetView,
    target: TargetView,
    through_call: int | None = None,
    through_message: int | None = None,
    opaque: Literal["auto", "keep", "drop"] = "auto",
    as_text_max_chars: int | None = None,
    drop_continuation: bool = False,
) -> tuple[Rewrite, ...]:
    """Return the rewrites for a history that ``source`` began and ``target`` continues.

    In the same origin nothing is changed but what is asked for. At another origin the opaque
    reasoning goes, and with it whatever the next provider would then refuse.

    Args:
        source: The target that made the first part of the history.
        target: The target that gets the request.
        through_call: Number of the last call of ``source``, among all calls of the history;
            ``None`` when the history holds nothing of it any more.
        through_message: In place of ``through_call``: index of the last message that may be of
            ``source``; every assistant message up to there counts as its.
        opaque: What happens to opaque reasoning; ``auto`` drops it at another origin.
        as_text_max_chars: Turns visible reasoning into text of at most so many characters;
            ``None`` leaves it.
        drop_continuation: Whether a continuation id names a response of ``source`` and the
            history is all here, so that the id can go at another origin.
    """
    foreign = source.origin != target.origin or source.wire_format != target.wire_format
    drop = opaque == "drop" or (opaque == "auto" and foreign)
    rewrites: list[Rewrite] = []

    def add(name: str, **parameters: Any) -> None:
        rewrites.append(Rewrite(name=name, parameters=parameters))

    through = {"through_call": through_call, "through_message": through_message}
    place = {name: number for name, number in through.items() if number is not None}
    if place:
        if as_text_max_chars is not None:
            add("reasoning_as_text", **place, max_chars=as_text_max_chars)
        if drop:
            add("drop_opaque_reasoning", **place)
    if foreign or rewrites:
        when = "always" if foreign else "dropped"
        add(
            "drop_reasoning_companions",
            when=when,
            drop_continuation=drop_continuation and foreign,
        )
        for name in ("remap_tool_ids", "repair_tool_pairs", "drop_empty_content"):
            add(name, when=when)
        add("limit_cache_marks", when=when)
    return tuple(rewrites)
