"""Validates one table of a policy against its model, in the user's words."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails, to_json

from switchyard_core.errors import Finding
from switchyard_core.policy.document import Document
from switchyard_core.policy.positions import Location
from switchyard_core.policy.secrets import shown

__all__ = ["allowed_keys", "nearest", "suggestion", "unknown_key", "validate"]

ModelT = TypeVar("ModelT", bound=BaseModel)

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


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that a misspelt one most likely meant, if any is near."""
    by_folded = {candidate.casefold(): candidate for candidate in sorted(known, reverse=True)}
    found = get_close_matches(name.casefold()[:200], list(by_folded), n=1, cutoff=0.6)
    return by_folded[found[0]] if found else None


def suggestion(name: str, known: Iterable[str], otherwise: str) -> str:
    """Return a fix: the nearest known name, or another way out when none is near."""
    near = nearest(name, known)
    return f"did you mean `{near}`?" if near is not None else otherwise


def allowed_keys(model: type[BaseModel]) -> tuple[str, ...]:
    """Return the keys that a model takes, as a policy writes them."""
    return tuple(field.alias or name for name, field in model.model_fields.items())


def unknown_key(document: Document, location: Location, allowed: Iterable[str]) -> Finding:
    """Return the finding for a key that its table does not have."""
    key = str(location[-1])
    names = sorted(allowed)
    return document.finding(
        "SY104",
        f"unknown key `{shown(key)}`",
        location,
        at_key=True,
        notes=(f"allowed keys: {', '.join(names)}",) if names else (),
        fix=suggestion(key, names, "remove the key"),
    )


def validate(
    document: Document,
    location: Location,
    model: type[ModelT],
    raw: object,
    also: tuple[str, ...] = (),
) -> tuple[ModelT | None, list[Finding]]:
    """Validate a value of the document.

    The value goes through JSON, so that arrays fit tuples and sets as a plugin author expects,
    while nothing else is coerced.

    Args:
        document: The document it stands in.
        location: Where it stands.
        model: What it must be.
        raw: The value, as tomli gave it.
        also: Further keys that the table may have, to be named beside the model's own.

    Returns:
        The instance, or ``None`` and one finding per problem.
    """
    if not isinstance(raw, dict):
        return None, [_wrong_type(document, location, "a table", raw)]
    try:
        return model.model_validate_json(to_json(raw)), []
    except ValidationError as error:
        details = error.errors(include_url=False, include_context=True)
    findings = [_finding(document, location, model, raw, detail, also) for detail in details]
    return None, list({(f.path, f.message): f for f in findings}.values())


def _finding(
    document: Document,
    location: Location,
    model: type[BaseModel],
    raw: Any,
    detail: ErrorDetails,
    also: tuple[str, ...],
) -> Finding:
    kind = detail["type"]
    inner, value = _existing(raw, detail["loc"], keep_last=kind == "missing")
    where = (*location, *inner)
    context = detail.get("ctx", {})
    if kind == "extra_forbidden":
        more = also if len(inner) == 1 else ()
        return unknown_key(document, where, (*_keys_at(model, inner[:-1]), *more))
    if kind == "missing":
        key = str(detail["loc"][-1])
        return document.finding(
            "SY105",
            f"missing key `{key}`",
            where,
            at_key=True,
            fix=f"add `{key} = ...` to this table",
        )
    if kind in _TYPES:
        return _wrong_type(document, where, _TYPES[kind], value)
    if kind in {"literal_error", "enum"}:
        return _not_allowed(document, where, value, _literals(context.get("expected", "")))
    if kind == "value_error" and str(context.get("error")) == "must not be blank":
        return document.finding(
            "SY108", "must not be blank", where, fix="write the text, or remove the key"
        )
    return document.finding(
        "SY107", _range_message(kind, context, detail["msg"]), where, fix="change the value"
    )


def _existing(raw: Any, loc: tuple[int | str, ...], *, keep_last: bool) -> tuple[Location, Any]:
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


def _keys_at(model: type[BaseModel], inner: Location) -> tuple[str, ...]:
    """Return the keys that are allowed in a nested table of a model, as far as it is clear."""
    annotations: list[Any] = [model]
    for part in inner:
        annotations = [found for annotation in annotations for found in _members(annotation, part)]
    models = [found for annotation in annotations for found in _models(annotation)]
    return tuple(dict.fromkeys(key for found in models for key in allowed_keys(found)))


def _models(annotation: Any) -> list[type[BaseModel]]:
    """Return the models that an annotation allows directly, not those inside of containers."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    arguments = typing.get_args(annotation)
    if typing.get_origin(annotation) is typing.Annotated:
        return _models(arguments[0])
    if typing.get_origin(annotation) in {typing.Union, types.UnionType}:
        return [found for argument in arguments for found in _models(argument)]
    return []


def _members(annotation: Any, part: str | int) -> list[Any]:
    """Return the annotations of what a key or an index of a value leads to."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return _members(arguments[0], part)
    if origin in {typing.Union, types.UnionType}:
        return [found for argument in arguments for found in _members(argument, part)]
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        fields = {field.alias or name: field for name, field in annotation.model_fields.items()}
        return [fields[part].annotation] if part in fields else []
    if isinstance(part, int) and arguments and origin is not dict:
        return [arguments[0]]
    return [arguments[1]] if origin is dict and isinstance(part, str) else []


def _wrong_type(document: Document, where: Location, wanted: str, value: object) -> Finding:
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
        "string_too_long": ("max_length", "must have at most {} characters"),
        "string_too_short": ("min_length", "must have at least {} characters"),
        "too_short": ("min_length", "must have at least {} entries"),
        "too_long": ("max_length", "must have at most {} entries"),
        "string_pattern_mismatch": ("pattern", "must match `{}`"),
    }
    if kind in bounds:
        key, text = bounds[kind]
        return text.format(context.get(key))
    if kind == "finite_number":
        return "must be a finite number"
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
    return next((word for kind, word in names if isinstance(value, kind)), "a date or time")
