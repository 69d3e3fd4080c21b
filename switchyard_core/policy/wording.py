"""Says in the user's words what a model does not like about a value."""

from __future__ import annotations

import datetime as dt
import types
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from switchyard_core.errors import Finding
from switchyard_core.policy.document import Document, dotted
from switchyard_core.policy.positions import Location
from switchyard_core.policy.secrets import looks_like_credential, shown
from switchyard_core.policy.shapes import annotations_at, keys_at, word_of

__all__ = [
    "absent",
    "existing",
    "misspelt",
    "nearest",
    "problem",
    "suggestion",
    "unknown_key",
    "wrong_type",
]

#: pydantic's error types that mean "another type of value", and the word for the right one.
_TYPES: Mapping[str, str] = types.MappingProxyType(
    {
        "string_type": "a string",
        "int_type": "an integer",
        "int_from_float": "an integer",
        "float_type": "a number",
        "bool_type": "true or false",
        "list_type": "an array",
        "tuple_type": "an array",
        "set_type": "an array",
        "frozen_set_type": "an array",
        "dict_type": "a table",
        "model_type": "a table",
        "model_attributes_type": "a table",
        "dataclass_type": "a table",
        "none_required": "absent",
    }
)


#: Prefixes of pydantic's error types for values that are no date or time.
_DATE_PROBLEMS = ("date_", "time_", "datetime_", "timezone_")


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that a misspelt one most likely meant, if any is near."""
    by_folded = {candidate.casefold(): candidate for candidate in sorted(known, reverse=True)}
    found = get_close_matches(name.casefold()[:200], list(by_folded), n=1, cutoff=0.6)
    return by_folded[found[0]] if found else None


def suggestion(name: str, known: Iterable[str], otherwise: str) -> str:
    """Return a fix: the nearest known name, or another way out when none is near."""
    near = nearest(name, known)
    return f"did you mean `{near}`?" if near is not None else otherwise


def unknown_key(document: Document, location: Location, allowed: Iterable[str]) -> Finding:
    """Return the finding for a key that its table does not have."""
    key = str(location[-1])
    names = sorted(allowed)
    return document.finding(
        "SY104",
        f"unknown key `{shown(key)}`" if key.strip() else "a key has no name",
        location,
        at_key=True,
        notes=(f"allowed keys: {', '.join(names)}",) if names else (),
        fix=suggestion(key, names, "remove the key"),
    )


def problem(
    document: Document,
    location: Location,
    model: type[BaseModel],
    raw: Any,
    detail: ErrorDetails,
    also: tuple[str, ...],
) -> Finding:
    """Return the finding for one problem that pydantic has with a value.

    Args:
        document: The document.
        location: Where the value stands.
        model: What it should be.
        raw: The value.
        detail: The problem.
        also: Further keys that the table may have.
    """
    kind = detail["type"]
    inner, value = existing(raw, detail["loc"], keep_last=kind == "missing")
    where = (*location, *inner)
    context = detail.get("ctx", {})
    if kind == "extra_forbidden":
        return unknown_key(document, where, _allowed(model, inner, also))
    if kind == "missing":
        return _missing(document, where, model, inner, str(detail["loc"][-1]))
    if kind in _TYPES:
        return wrong_type(document, where, _TYPES[kind], value)
    if kind.startswith(_DATE_PROBLEMS):
        return _bad_date(document, where, kind, value)
    if kind in {"literal_error", "enum"}:
        return _not_allowed(document, where, value, _literals(context.get("expected", "")))
    raised = context.get("error")
    if isinstance(raised, ValueError):
        return _refused(document, where, raised)
    return document.finding(
        "SY107", _range_message(kind, context, detail["msg"]), where, fix="change the value"
    )


def _allowed(model: type[BaseModel], inner: Location, also: tuple[str, ...]) -> tuple[str, ...]:
    """Return the keys that may stand where an unknown one does."""
    return (*keys_at(model, inner[:-1]), *(also if len(inner) == 1 else ()))


def absent(raw: Any, detail: ErrorDetails) -> Location:
    """Return the place that a missing key would have."""
    return (*existing(raw, detail["loc"], keep_last=True)[0], str(detail["loc"][-1]))


def misspelt(
    model: type[BaseModel], raw: Any, details: Sequence[ErrorDetails], also: tuple[str, ...]
) -> frozenset[Location]:
    """Return the places of missing keys that unknown keys beside them are likely to mean.

    Args:
        model: What the value should be.
        raw: The value.
        details: Its problems.
        also: Further keys that the table may have.
    """
    missing = {absent(raw, detail) for detail in details if detail["type"] == "missing"}
    if not missing:
        return frozenset()
    tables = {place[:-1] for place in missing}
    unknown = [
        existing(raw, detail["loc"], keep_last=False)[0]
        for detail in details
        if detail["type"] == "extra_forbidden"
    ]
    meant = {
        (*inner[:-1], nearest(str(inner[-1]), _allowed(model, inner, also)))
        for inner in unknown
        if inner[:-1] in tables
    }
    return frozenset(place for place in missing if place in meant)


def _missing(
    document: Document, where: Location, model: type[BaseModel], inner: Location, key: str
) -> Finding:
    fix = f"add `{key} = ...` to this table"
    if word_of(annotations_at(model, (*inner, key))) == "a table":
        fix = f"add a table `[{dotted((*where, key))}]`"
    return document.finding("SY105", f"missing key `{key}`", where, at_key=True, fix=fix)


def _bad_date(document: Document, where: Location, kind: str, value: object) -> Finding:
    word, example = "a date", "2026-01-31"
    if kind.startswith("time_"):
        word, example = "a time", "07:30:00"
    elif kind.startswith(("datetime_", "timezone_")):
        word, example = "a date with time", "2026-01-31T07:30:00Z"
    if isinstance(value, str | dt.date | dt.time):
        message = f"must be {word} such as {example}"
        return document.finding("SY107", message, where, fix=f"write {example}, without quotes")
    return wrong_type(document, where, word, value)


def _refused(document: Document, where: Location, error: ValueError) -> Finding:
    """Return the finding for what a validator raised, in its own words."""
    text = str(getattr(error, "message", error))
    message = text[:1].lower() + text[1:].rstrip(".")
    code, column = getattr(error, "code", "SY107"), getattr(error, "column", None)
    return document.finding(
        code if isinstance(code, str) else "SY107",
        "the value is not allowed" if looks_like_credential(message) else message,
        where,
        offset=column if isinstance(column, int) else None,
        fix=str(getattr(error, "fix", "")) or "change the value",
    )


def existing(raw: Any, loc: tuple[int | str, ...], *, keep_last: bool) -> tuple[Location, Any]:
    """Return the part of pydantic's location that the document has, and the value there.

    Pydantic puts names of union members and ``[key]`` into a location; they end it here.
    """
    parts = loc[:-1] if keep_last else loc
    found: list[str | int] = []
    value = raw
    for part in parts:
        if not _has(value, part):
            continue
        value = value[part]
        found.append(part)
    return tuple(found), value


def _has(value: Any, part: int | str) -> bool:
    if isinstance(value, list):
        return isinstance(part, int) and part < len(value)
    return isinstance(value, dict) and part in value


def wrong_type(document: Document, where: Location, wanted: str, value: object) -> Finding:
    """Return the finding for a value of another type than the wanted one."""
    return document.finding(
        "SY106", f"must be {wanted}, not {_toml_type(value)}", where, fix=f"write {wanted}"
    )


def _not_allowed(
    document: Document, where: Location, value: object, allowed: tuple[str, ...]
) -> Finding:
    text = value if isinstance(value, str) else str(value).lower()
    fix = suggestion(text, allowed, "use one of these")
    if len(allowed) == 1:
        fix = f"write {allowed[0]}"
    return document.finding(
        "SY107",
        f"`{shown(text)}` is not a value of this key",
        where,
        notes=(f"allowed: {', '.join(allowed)}",),
        fix=fix,
    )


def _literals(expected: str) -> tuple[str, ...]:
    """Return the allowed words of pydantic's text ``'a', 'b' or 'c'``."""
    words = expected.replace(" or ", ", ").split(", ")
    return tuple(word.strip("'") for word in words)


def _range_message(kind: str, context: Mapping[str, Any], message: str) -> str:
    bounds = {
        "greater_than_equal": ("ge", "must be at least {}"),
        "less_than_equal": ("le", "must be at most {}"),
        "greater_than": ("gt", "must be more than {}"),
        "less_than": ("lt", "must be less than {}"),
        "string_too_long": ("max_length", "must have at most {} character"),
        "string_too_short": ("min_length", "must have at least {} character"),
        "too_short": ("min_length", "must have at least {} entry"),
        "too_long": ("max_length", "must have at most {} entry"),
        "string_pattern_mismatch": ("pattern", "must match `{}`"),
    }
    if kind in bounds:
        key, text = bounds[kind]
        return _counted(text, context.get(key))
    if kind == "finite_number":
        return "must be a finite number"
    plain = message.removeprefix("Value error, ").removeprefix("Assertion failed, ")
    return plain[:1].lower() + plain[1:].rstrip(".")


def _counted(text: str, bound: Any) -> str:
    """Fill in a bound: ``2 entries``, ``1 entry``, and ``0`` for ``0.0``."""
    if isinstance(bound, float) and bound.is_integer():
        bound = int(bound)
    if bound != 1:
        text = text.replace("character", "characters").replace("entry", "entries")
    return text.format(bound)


def _toml_type(value: object) -> str:
    names: tuple[tuple[type, str], ...] = (
        (bool, "true or false"),
        (str, "a string"),
        (int, "an integer"),
        (float, "a number with a decimal point"),
        (list, "an array"),
        (dict, "a table"),
    )
    return next((word for kind, word in names if isinstance(value, kind)), "a date or time")
