"""What an event of a router's answer must hold so that it can be written."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from types import MappingProxyType

from switchyard_core.answering import (
    Announced,
    Extension,
    Finished,
    ModelUsage,
    Progress,
    SectionFinished,
    SectionStarted,
    TextDelta,
    Usage,
)
from switchyard_core.decision import DecisionWarning

__all__ = ["breach_of_event"]

_FACT_NAME = re.compile(r"[a-z0-9-]{1,64}")
#: What every client reads alike in the value of a header: ASCII that can be seen, spaces inside.
_FACT_VALUE = re.compile(r"(?:[!-~](?:[ -~]*[!-~])?)?")
#: Facts that the engine and the server state themselves.
_RESERVED = frozenset({"phase", "reason", "request-id", "route", "target", "warning"})
_SHOWN_CHARS = 40
_COUNTS = tuple(field.name for field in fields(ModelUsage))


def breach_of_event(event: object) -> str:
    """Return what is wrong with an event, as the end of a sentence, or ``""``.

    The text quotes only the name of a fact: other values may come from a user.
    """
    check = next((check for kind, check in _CHECKS.items() if isinstance(event, kind)), None)
    if check is None:
        return f"yields {type(event).__name__}, which is not an event of an answer"
    what = check(event)
    return f"yields `{type(event).__name__}` whose {what}" if what else ""


def _announced(event: Announced) -> str:
    if not isinstance(event.facts, Mapping):
        return "`facts` is not a mapping"
    for name, value in event.facts.items():
        if not isinstance(name, str) or _FACT_NAME.fullmatch(name) is None:
            shown = repr(name)[:_SHOWN_CHARS]
            return f"fact {shown} has a name that no header can have: use a-z, 0-9 and `-`"
        if name in _RESERVED:
            return f"fact `{name}` has the name of a header that switchyard sets"
        if not isinstance(value, str) or _FACT_VALUE.fullmatch(value) is None:
            return (
                f"fact `{name}` has a value that no header can hold: use one line of ASCII, and "
                "put texts into the answer's `Extension`"
            )
    if not isinstance(event.warnings, tuple) or not all(map(_is_warning, event.warnings)):
        return "`warnings` is not a tuple of DecisionWarning with text as code"
    return "" if _is_text(event.phase) else "`phase` is not text"


def _is_warning(value: object) -> bool:
    return isinstance(value, DecisionWarning) and _is_text(value.code)


def _usage(event: Usage) -> str:
    usage = event.usage
    counts = isinstance(usage, ModelUsage) and all(
        isinstance(getattr(usage, name), int) for name in _COUNTS
    )
    return "" if counts else "`usage` is not a ModelUsage of integers"


def _typed(field: str, kind: type, name: str) -> Callable[[object], str]:
    wrong = f"`{field}` is not {name}"
    return lambda event: "" if isinstance(getattr(event, field), kind) else wrong


def _is_text(value: object) -> bool:
    """Return whether a value is text that can be encoded; a lone surrogate cannot."""
    return isinstance(value, str) and not any("\ud800" <= char <= "\udfff" for char in value)


_CHECKS: Mapping[type, Callable[..., str]] = MappingProxyType(
    {
        Announced: _announced,
        SectionStarted: _typed("kind", str, "a string"),
        # A lone surrogate, as models send it, is written as its JSON escape.
        TextDelta: _typed("delta", str, "a string"),
        SectionFinished: lambda _event: "",
        Progress: _typed("data", Mapping, "a mapping"),
        Extension: _typed("data", Mapping, "a mapping"),
        Usage: _usage,
        Finished: lambda event: "" if _is_text(event.status) else "`status` is not text",
    }
)
