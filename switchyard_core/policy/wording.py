"""Turns validation errors into findings in the user's words."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from switchyard_core.declarations import ReferenceKind
from switchyard_core.errors import Finding, nearest
from switchyard_core.policy.document import Document, dotted
from switchyard_core.policy.literals import (
    choices_at,
    default_at,
    for_missing,
    for_type,
    range_at,
    reference_at,
)
from switchyard_core.policy.places import Location
from switchyard_core.policy.secrets import looks_like_credential, shown
from switchyard_core.policy.shapes import keys_at, word_at

__all__ = ["is_date", "misspelt", "place_of", "problem", "suggestion", "unknown_key", "unquoted"]

#: pydantic's error types that mean "another type of value", and the word for the right one.
_TYPES: Mapping[str, str] = {
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
#: Prefixes of its error types for values that are not a date or time, the word for one, and one.
_DATES: Mapping[str, tuple[str, str]] = {
    "date_": ("a date", "2026-01-31"),
    "time_": ("a time", "07:30:00"),
    "datetime_": ("a date with time", "2026-01-31T07:30:00Z"),
    "timezone_": ("a date with time", "2026-01-31T07:30:00Z"),
}
#: Its error types for bounds: the key of the bound, and the message.
_BOUNDS: Mapping[str, tuple[str, str]] = {
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


def suggestion(name: str, known: Iterable[str], otherwise: str) -> str:
    """Return a fix: the nearest known name, or another way out when none is near."""
    near = nearest(name, known)
    return f"did you mean `{near}`?" if near is not None else otherwise


def unknown_key(
    document: Document, location: Location, allowed: Iterable[str], note: str = ""
) -> Finding:
    """Return the finding for a key that its table does not have."""
    key, names = str(location[-1]), sorted(allowed)
    notes = [f"allowed keys: {', '.join(names)}"] if names else []
    otherwise = "remove the key, or set the `type` that has it" if note else "remove the key"
    return document.finding(
        "SY104",
        f"unknown key `{shown(key)}`" if key.strip() else "a key has no name",
        location,
        at_key=True,
        notes=(*notes, note) if note else tuple(notes),
        fix=unquoted(document, location) or suggestion(key, names, otherwise),
    )


def unquoted(document: Document, location: Location) -> str:
    """Return what to write for a name with a point, such as ``[targets.gpt-5.1]``."""
    places = document.positions
    if len(location) != 3 or not places.is_header(location) or places.is_header(location[:2]):
        return ""
    return f"write `[{dotted((location[0], '.'.join(map(str, location[1:]))))}]`, in quotes"


def is_date(value: object) -> bool:
    """Return whether a value of a document is a date or time."""
    return isinstance(value, dt.date | dt.time)


def place_of(raw: Any, detail: ErrorDetails) -> Location:
    """Return where a table has the value that a problem is about; a missing key has no value."""
    return _existing(raw, detail)[0]


def misspelt(
    model: type[BaseModel], raw: Any, details: Sequence[ErrorDetails], also: tuple[str, ...]
) -> list[ErrorDetails]:
    """Return problems without the missing keys that an unknown key beside them likely means."""
    unknown = [place_of(raw, each) for each in details if each["type"] == "extra_forbidden"]
    tables = {_absent(raw, each)[:-1] for each in details if each["type"] == "missing"}
    meant = {
        (*inner[:-1], nearest(str(inner[-1]), _allowed(model, inner, also)))
        for inner in unknown
        if inner[:-1] in tables
    }
    return [
        each for each in details if each["type"] != "missing" or _absent(raw, each) not in meant
    ]


def problem(
    document: Document,
    location: Location,
    model: type[BaseModel],
    raw: Any,
    detail: ErrorDetails,
    also: Iterable[str] = (),
    note: Callable[[str], str] = lambda _key: "",
    names: Callable[[ReferenceKind], str] = lambda _kind: "",
) -> Finding:
    """Return the finding for one of pydantic's errors; see ``validate``."""
    kind, context = detail["type"], detail.get("ctx", {})
    inner, value = _existing(raw, detail)
    where = (*location, *inner)
    if kind == "extra_forbidden":
        more = note(str(inner[-1])) if len(inner) == 1 else ""
        return unknown_key(document, where, _allowed(model, inner, also), more)
    if kind == "missing":
        return _missing(document, where, model, (*inner, str(detail["loc"][-1])), names)
    wanted = _TYPES.get(kind)
    for word, example in (words for prefix, words in _DATES.items() if kind.startswith(prefix)):
        wanted = word
        if isinstance(value, str) or is_date(value):
            message, fix = f"must be {word} such as {example}", f"write {example}, without quotes"
            return document.finding("SY107", message, where, fix=fix)
    if is_date(value):
        wanted = word_at(model, inner)
    if wanted is not None:
        return _wrong_type(document, where, wanted, value)
    if kind in {"literal_error", "enum"}:
        return _not_allowed(document, where, value, _literals(context.get("expected", "")))
    raised = context.get("error")
    if isinstance(raised, ValueError):
        return _refused(document, where, raised, at_key=detail["loc"][-1:] == ("[key]",))
    return _out_of_bounds(document, where, model, inner, value, detail)


def _missing(
    document: Document,
    where: Location,
    model: type[BaseModel],
    inner: Location,
    names: Callable[[ReferenceKind], str],
) -> Finding:
    """Return the finding for a key that a table must have; ``inner`` ends with it."""
    choices, kind = choices_at(model, inner), reference_at(model, inner)
    listed = names(kind) if kind is not None else ""
    if len(choices) > 1:
        listed = "allowed: " + ", ".join(choice.strip('"') for choice in choices)
    return document.finding(
        "SY105",
        f"missing key `{inner[-1]}`",
        where,
        at_key=True,
        notes=(listed,) if listed else (),
        fix=for_missing(where, model, inner),
    )


def _out_of_bounds(
    document: Document,
    where: Location,
    model: type[BaseModel],
    inner: Location,
    value: object,
    detail: ErrorDetails,
) -> Finding:
    kind, context = detail["type"], detail.get("ctx", {})
    message, fix = _bound(kind, context) or _plain(detail["msg"]), "change the value"
    span = range_at(model, inner)
    if span and isinstance(value, int | float) and kind != "finite_number":
        message, fix = f"must be {span}, not {value}", f"write a number, {span}"
        default = default_at(model, inner)
        fix += f", or remove the key for the default, {default}" * (default is not None)
    return document.finding("SY107", message, where, fix=fix)


def _allowed(model: type[BaseModel], inner: Location, also: Iterable[str]) -> tuple[str, ...]:
    return (*keys_at(model, inner[:-1]), *(also if len(inner) == 1 else ()))


def _existing(raw: Any, detail: ErrorDetails) -> tuple[Location, Any]:
    """Return the part of pydantic's location that the document has, and the value there."""
    loc = detail["loc"][:-1] if detail["type"] == "missing" else detail["loc"]
    found: list[str | int] = []
    value = raw
    for part in loc:
        if _has(value, part):
            value = value[part]
            found.append(part)
    return tuple(found), value


def _has(value: Any, part: int | str) -> bool:
    if isinstance(value, list):
        return isinstance(part, int) and part < len(value)
    return isinstance(value, dict) and part in value


def _absent(raw: Any, detail: ErrorDetails) -> Location:
    return (*place_of(raw, detail), str(detail["loc"][-1]))


def _refused(document: Document, where: Location, error: ValueError, *, at_key: bool) -> Finding:
    message = _plain(str(getattr(error, "message", error)))
    code, column = getattr(error, "code", "SY107"), getattr(error, "column", None)
    return document.finding(
        code if isinstance(code, str) else "SY107",
        "the value is not allowed" if looks_like_credential(message) else message,
        where,
        at_key=at_key,
        offset=column if isinstance(column, int) else None,
        fix=str(getattr(error, "fix", "")) or "change the value",
    )


def _wrong_type(document: Document, where: Location, wanted: str, value: object) -> Finding:
    found, fix = _toml_type(value), f"write {wanted}"
    if is_date(value):
        fix = "put it in quotes" if wanted == "a string" else fix
    elif wanted:
        fix = for_type(document, where, wanted, value)
    message = f"must be {wanted}, not {found}"
    if not wanted:
        message, fix = f"must not be {found}", "write it as a string, in quotes"
    return document.finding("SY106", message, where, fix=fix)


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
    """Return the words of pydantic's text ``'a', 'b' or 'c'``."""
    words = expected.replace(" or ", ", ").split(", ")
    return tuple(word.strip("'") for word in words)


def _bound(kind: str, context: Mapping[str, Any]) -> str:
    if kind == "finite_number":
        return "must be a finite number"
    if kind not in _BOUNDS:
        return ""
    key, text = _BOUNDS[kind]
    bound = context.get(key)
    if isinstance(bound, float) and bound.is_integer():
        bound = int(bound)
    if bound != 1:
        text = text.replace("character", "characters").replace("entry", "entries")
    return text.format(bound)


def _plain(message: str) -> str:
    plain = message.removeprefix("Value error, ").removeprefix("Assertion failed, ")
    return plain[:1].lower() + plain[1:].rstrip(".")


def _toml_type(value: object) -> str:
    names: tuple[tuple[type, str], ...] = (
        (bool, "true or false"),
        (str, "a string"),
        (int, "an integer"),
        (float, "a number with a decimal point"),
        (list, "an array"),
        (dict, "a table"),
    )
    if isinstance(value, float) and not math.isfinite(value):
        return f"`{value}`"
    return next((word for kind, word in names if isinstance(value, kind)), "a date or time")
