"""What a router's answer must be, and which exceptions are a plugin's own fault."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import Any

from switchyard_core.decision import (
    Decision,
    DecisionWarning,
    Latch,
    LatchRecord,
    Reason,
    ReleaseAfterSuccess,
    Remember,
    UpdateRecord,
)
from switchyard_core.declarations import Rewrite
from switchyard_core.identity import Identity

__all__ = ["breach_of", "ends_task"]

_EFFECTS = (Latch, UpdateRecord, Remember, ReleaseAfterSuccess)


def ends_task(error: BaseException) -> bool:
    """Return whether an exception is how the host ends this task, and no fault of what ran in it.

    A plugin may raise anything, ``SystemExit`` and a ``CancelledError`` of its own too. Only a
    task that somebody asked to end, and a generator that is closed, are to be left alone; the
    class of the error does not tell the one from the other.
    """
    if isinstance(error, Exception):
        return False
    task = asyncio.current_task()
    return isinstance(error, GeneratorExit) or (task is not None and task.cancelling() > 0)


def breach_of(decision: Any, rewrites: Collection[str]) -> str:
    """Return what is wrong with the types of a router's decision, ``""`` when nothing is.

    Args:
        decision: What the router returned.
        rewrites: Names of the rewrites that installed plugins give.

    Returns:
        The end of a sentence that begins with the router; never a value of the decision, but
        for the name of an unknown rewrite.
    """
    if not isinstance(decision, Decision):
        return f"returned {_kind(decision)}, not a Decision"
    for name, (fits, wanted) in _FIELDS.items():
        value = getattr(decision, name)
        if not fits(value):
            return f"returned a Decision whose `{name}` is {_kind(value)}, not {wanted}"
    for rewrite in decision.rewrites:
        if rewrite.name not in rewrites:
            known = ", ".join(sorted(rewrites))
            return (
                f"asked for the rewrite `{rewrite.name}`, which no installed plugin gives "
                f"(known: {known})"
            )
    return ""


def _kind(value: object) -> str:
    return type(value).__name__


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_reason(value: object) -> bool:
    return (
        isinstance(value, Reason)
        and _is_text(value.code)
        and _is_text(value.detail)
        and isinstance(value.facts, Mapping)
        and all(_is_text(word) for pair in value.facts.items() for word in pair)
    )


def _are_rewrites(value: object) -> bool:
    return isinstance(value, tuple) and all(
        isinstance(item, Rewrite) and _is_text(item.name) and isinstance(item.parameters, Mapping)
        for item in value
    )


def _are_warnings(value: object) -> bool:
    return isinstance(value, tuple) and all(
        isinstance(item, DecisionWarning) and _is_text(item.code) and _is_text(item.detail)
        for item in value
    )


def _are_effects(value: object) -> bool:
    return isinstance(value, tuple) and all(
        isinstance(item, _EFFECTS)
        and isinstance(item.identity, Identity)
        and isinstance(getattr(item, "record", _NO_RECORD), LatchRecord)
        for item in value
    )


_NO_RECORD = LatchRecord()
_FIELDS: Mapping[str, tuple[Callable[[object], bool], str]] = MappingProxyType(
    {
        "target": (_is_text, "a string"),
        "phase": (_is_text, "a string"),
        "reason": (_is_reason, "a Reason of strings"),
        "rewrites": (_are_rewrites, "a tuple of Rewrite"),
        "warnings": (_are_warnings, "a tuple of DecisionWarning"),
        "effects": (_are_effects, "a tuple of effects on identities"),
        "trace": (lambda value: isinstance(value, Mapping), "a mapping"),
    }
)
