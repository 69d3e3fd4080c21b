"""Validates one table of a policy against its model, and lets no date pass as text."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails, to_json

from switchyard_core.errors import Finding
from switchyard_core.policy.document import Document
from switchyard_core.policy.positions import Location
from switchyard_core.policy.secrets import one_line
from switchyard_core.policy.shapes import annotations_at, takes_dates, word_of
from switchyard_core.policy.wording import absent, existing, misspelt, problem, wrong_type

__all__ = ["MOST_FINDINGS", "Salvaged", "salvage", "validate"]

#: Findings that one check reports; what is wrong beyond that is not even looked at.
MOST_FINDINGS = 200

ModelT = TypeVar("ModelT", bound=BaseModel)


def validate(
    document: Document,
    location: Location,
    model: type[ModelT],
    raw: object,
    also: tuple[str, ...] = (),
) -> tuple[ModelT | None, list[Finding]]:
    """Validate a value of the document.

    The value goes through JSON, so that arrays fit tuples and sets as a plugin author expects,
    while nothing else is coerced. JSON has no dates: those that the model does not want are
    replaced by something that no type takes, so that they never pass as text.

    Args:
        document: The document it stands in.
        location: Where it stands.
        model: What it must be.
        raw: The value, as tomli gave it.
        also: Further keys that the table may have, to be named beside the model's own.

    Returns:
        The instance, or ``None`` and one finding per problem, of the first ones if there are
        very many.
    """
    if not isinstance(raw, dict):
        return None, [wrong_type(document, location, "a table", raw)]
    dates = _misplaced_dates(model, raw)
    findings = [
        _misplaced_date(document, (*location, *inner), word) for inner, word in dates.items()
    ]
    try:
        instance, details = _parsed(model, raw, dates)
    except Exception as error:  # noqa: BLE001 - a validator of a plugin may raise anything
        return None, [*findings, _crashed(document, location, model, error)]
    # One more than are reported, so that it shows that there are more.
    details = details[: MOST_FINDINGS + 1]
    meant = misspelt(model, raw, details, also)
    findings += [
        problem(document, location, model, raw, detail, also)
        for detail in details
        if _place(raw, detail) not in dates
        # The misspelt key is there; that its right spelling is missing says the same again.
        and not (detail["type"] == "missing" and absent(raw, detail) in meant)
    ]
    if instance is not None and not findings:
        return instance, []
    return None, list({(f.path, f.message): f for f in findings}.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Salvaged(Generic[ModelT]):
    """What remains of a table when everything is left out that is wrong in itself.

    It can be checked further, so that one wrong value does not hide other problems.

    Args:
        model: The rest.
        left_out: Places of the wrong parts, in the table as it was.
        indexes: Per array with such parts, the original index of each element that is left.
    """

    model: ModelT
    left_out: tuple[Location, ...]
    indexes: Mapping[Location, tuple[int, ...]]

    def original(self, location: Location) -> Location:
        """Return where a place of the rest is in the table as it was."""
        found: Location = ()
        for part in location:
            kept = self.indexes.get(found)
            found = (*found, kept[part] if kept is not None and isinstance(part, int) else part)
        return found


def salvage(model: type[ModelT], raw: object) -> Salvaged[ModelT] | None:
    """Return what remains of a table without its wrong parts, ``None`` when nothing does."""
    if not isinstance(raw, dict):
        return None
    dates = _misplaced_dates(model, raw)
    _, details = _parsed(model, raw, dates)
    wrong = {*dates, *(_place(raw, detail) for detail in details)}
    indexes: dict[Location, tuple[int, ...]] = {}
    rest, details = _parsed(model, _pruned(raw, (), wrong, indexes), {})
    if rest is None:
        return None
    return Salvaged(model=rest, left_out=tuple(wrong), indexes=indexes)


def _pruned(
    value: Any,
    location: Location,
    wrong: AbstractSet[Location],
    indexes: dict[Location, tuple[int, ...]],
) -> Any:
    if isinstance(value, dict):
        places = {key: (*location, key) for key in value}
        return {
            key: _pruned(value[key], place, wrong, indexes)
            for key, place in places.items()
            if place not in wrong
        }
    if isinstance(value, list):
        kept = tuple(i for i in range(len(value)) if (*location, i) not in wrong)
        if len(kept) < len(value):
            indexes[location] = kept
        return [_pruned(value[i], (*location, i), wrong, indexes) for i in kept]
    return value


def _parsed(
    model: type[ModelT], raw: Mapping[str, Any], dates: Mapping[Location, str]
) -> tuple[ModelT | None, list[ErrorDetails]]:
    try:
        return model.model_validate_json(to_json(_without(raw, (), dates))), []
    except ValidationError as error:
        return None, error.errors(include_url=False, include_context=True)


def _place(raw: Any, detail: ErrorDetails) -> Location:
    return existing(raw, detail["loc"], keep_last=detail["type"] == "missing")[0]


def _misplaced_dates(model: type[BaseModel], raw: Mapping[str, Any]) -> dict[Location, str]:
    """Return the place of every date that its model does not want, and what it wants there."""
    found: dict[Location, str] = {}
    for inner in _dates(raw, ()):
        annotations = annotations_at(model, inner)
        if not takes_dates(annotations):
            found[inner] = word_of(annotations)
    return found


def _dates(value: Any, location: Location) -> Iterator[Location]:
    """Yield the place of every date and time in a value."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _dates(item, (*location, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _dates(item, (*location, index))
    elif isinstance(value, dt.date | dt.time):
        yield location


def _without(value: Any, location: Location, misplaced: Mapping[Location, str]) -> Any:
    """Return a value with a table in place of each misplaced date."""
    if location in misplaced:
        return {"": {}}
    if isinstance(value, dict):
        return {key: _without(item, (*location, key), misplaced) for key, item in value.items()}
    if isinstance(value, list):
        return [_without(item, (*location, i), misplaced) for i, item in enumerate(value)]
    return value


def _misplaced_date(document: Document, where: Location, wanted: str) -> Finding:
    if wanted:
        fix = "put it in quotes" if wanted == "a string" else f"write {wanted}"
        message = f"must be {wanted}, not a date or time"
    else:
        message, fix = "must not be a date or time", "write it as a string, in quotes"
    return document.finding("SY106", message, where, fix=fix)


def _crashed(
    document: Document, location: Location, model: type[BaseModel], error: Exception
) -> Finding:
    return document.finding(
        "SY505",
        f"the options model `{model.__name__}` failed: {one_line(error)}",
        location,
        at_key=True,
        fix="report this to the author of the plugin",
    )
