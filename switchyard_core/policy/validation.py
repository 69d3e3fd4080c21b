"""Validates one table against its model, and does not accept dates as text."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails, to_json

from switchyard_core.declarations import ReferenceKind
from switchyard_core.errors import Finding
from switchyard_core.policy.document import Document, leaves
from switchyard_core.policy.places import Location
from switchyard_core.policy.secrets import one_line
from switchyard_core.policy.shapes import holds_dates, is_date_alone, takes_date
from switchyard_core.policy.wording import is_date, misspelt, place_of, problem

__all__ = ["MOST_FINDINGS", "UNRESOLVED", "Salvaged", "salvage", "validate"]

#: The most findings that one check reports.
MOST_FINDINGS = 200
#: How a date begins; another text has a finding already.
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
#: Type of an error that is not reported: another finding exists.
UNRESOLVED = "unresolved"

ModelT = TypeVar("ModelT", bound=BaseModel)


def validate(
    document: Document,
    location: Location,
    model: type[ModelT],
    raw: object,
    *,
    also: tuple[str, ...] = (),
    note: Callable[[str], str] = lambda _key: "",
    names: Callable[[ReferenceKind], str] = lambda _kind: "",
    context: object = None,
) -> tuple[ModelT | None, list[Finding]]:
    """Return a value as an instance of its model, and the findings about it.

    The value goes through JSON, so that arrays fit tuples and sets; nothing else is coerced.
    ``also`` are further allowed keys, ``note`` explains an unknown one, ``names`` lists the known
    names of a kind, ``context`` is ``info.context``.
    """
    if not isinstance(raw, dict):
        wrong = ErrorDetails(type="dict_type", loc=(), msg="", input=raw)
        return None, [problem(document, location, model, raw, wrong)]
    try:
        instance, details = _parsed(model, raw, context)
    except Exception as error:  # noqa: BLE001 - a validator of a plugin may raise anything
        return None, [_crashed(document, location, model, error)]
    # One more than is reported shows that there are more.
    details = details[: MOST_FINDINGS + 1]
    findings = [
        problem(document, location, model, raw, detail, also, note, names)
        for detail in misspelt(model, raw, details, also)
        if detail["type"] != UNRESOLVED
    ]
    return instance, list({(f.path, f.message): f for f in findings}.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Salvaged(Generic[ModelT]):
    """The valid rest of a table, checked further so that one error does not hide others."""

    model: ModelT  # the rest
    left_out: tuple[Location, ...]  # places of the wrong parts, in the table as it was
    #: The original index of each remaining element, per array.
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
    wrong = {place_of(raw, detail) for detail in _parsed(model, raw)[1]}
    indexes: dict[Location, tuple[int, ...]] = {}
    rest, _ = _parsed(model, _pruned(raw, (), wrong, indexes))
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
    model: type[ModelT], raw: Mapping[str, Any], context: object = None
) -> tuple[ModelT | None, list[ErrorDetails]]:
    """Return the instance, or all errors.

    JSON has no dates, and as text they would pass for any string: only a place whose schema asks
    for one takes it.
    """
    details: list[ErrorDetails] = []
    instance = None
    try:
        instance = model.model_validate_json(to_json(raw), context=context)
    except ValidationError as error:
        details = error.errors(include_url=False, include_context=True)
    stray = {place for place, it in leaves(raw) if is_date(it) and not takes_date(model, place)}
    details = [
        each for each in details if place_of(raw, each) not in stray or each["loc"][-1] == "[key]"
    ]
    wrong = {place_of(raw, each) for each in details if each["type"] != "missing"}
    texts = _date_texts(model, raw)
    details += [ErrorDetails(type="date_type", loc=place, msg="", input=None) for place in texts]
    details += [
        ErrorDetails(type="misplaced", loc=place, msg="", input=None)
        for place in sorted(stray, key=str)
        if not any(place[:length] in wrong for length in range(len(place)))
    ]
    return (None if details else instance), details


def _date_texts(model: type[BaseModel], raw: Mapping[str, Any]) -> list[Location]:
    """Return the places of dates that are written as strings and could be read as dates."""
    if not holds_dates(model):
        return []
    return [
        place
        for place, text in leaves(raw)
        if isinstance(text, str) and is_date_alone(model, place) and _DATE.match(text)
    ]


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
