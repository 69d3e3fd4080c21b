"""The keys, value types and names at each place in a model's table.

Read from the model's JSON Schema, which knows aliases, unions, defaults and nested models.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue, JsonSchemaWarningKind
from pydantic_core import core_schema, to_jsonable_python

from switchyard_core.declarations import ReferenceKind
from switchyard_core.policy.places import Location

__all__ = [
    "Named",
    "TolerantSchema",
    "allowed_keys",
    "holds_dates",
    "is_date_alone",
    "keys_at",
    "references",
    "schemas_at",
    "takes_date",
    "word_at",
]

#: The word for each JSON Schema type.
_WORDS: Mapping[str, str] = {
    "boolean": "true or false",
    "integer": "an integer",
    "number": "a number",
    "string": "a string",
    "object": "a table",
    "array": "an array",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A name in a table."""

    kind: ReferenceKind
    name: str
    location: Location  # where it is; for a default the key that would hold it
    is_key: bool = False  # whether it is the key of a table


def allowed_keys(model: type[BaseModel]) -> tuple[str, ...]:
    """Return the keys that a model takes, as a policy writes them."""
    return tuple(_schema(model).get("properties", {}))


def keys_at(model: type[BaseModel], inner: Location) -> tuple[str, ...]:
    """Return the allowed keys of a table inside a model's, if known."""
    found = [key for place in schemas_at(model, inner) for key in place.get("properties", {})]
    return tuple(dict.fromkeys(found))


def word_at(model: type[BaseModel], inner: Location) -> str:
    """Return what is expected at a place, such as ``a string``; ``""`` when several things are."""
    places = [place for place in schemas_at(model, inner) if place.get("type") != "null"]
    words = {_WORDS.get(str(place.get("type", "")), "") for place in places}
    return words.pop() if len(words) == 1 else ""


def takes_date(model: type[BaseModel], inner: Location) -> bool:
    """Return whether a place, or one that does not exist, may hold a date or time."""
    places = schemas_at(model, inner)
    return not places or any(p.get("format", "").startswith(("date", "time")) for p in places)


def is_date_alone(model: type[BaseModel], inner: Location) -> bool:
    """Return whether a place holds a date or time and nothing else but null."""
    places = [place for place in schemas_at(model, inner) if place.get("type") != "null"]
    return bool(places) and all(p.get("format", "").startswith("date") for p in places)


@lru_cache(maxsize=256)
def holds_dates(model: type[BaseModel]) -> bool:
    """Return whether a model has a place for a date."""
    return '"format": "date' in json.dumps(_schema(model), default=str)


def references(
    model: type[BaseModel], raw: Mapping[str, Any], location: Location
) -> Iterator[Named]:
    """Yield every name in a table and in the defaults of its model; wrong types are skipped."""
    whole = _schema(model)
    return _in_table(whole, whole, raw, location)


class TolerantSchema(GenerateJsonSchema):
    """Leaves out what no JSON Schema can say; a plugin's model may hold anything."""

    ignored_warning_kinds: set[JsonSchemaWarningKind] = {  # noqa: RUF012 - as its base has it
        "skipped-choice",
        "non-serializable-default",
    }

    def handle_invalid_for_json_schema(self, _schema: Any, _error_info: str) -> JsonSchemaValue:
        """Say nothing about a value instead of raising."""
        return {}


class _WithDefaults(TolerantSchema):
    """Includes the defaults that factories make."""

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        found = super().default_schema(schema)
        factory: Any = schema.get("default_factory")
        if factory is not None and not schema.get("default_factory_takes_data"):
            found["default"] = to_jsonable_python(factory(), fallback=lambda _value: None)
        return found


@lru_cache(maxsize=256)
def _schema(model: type[BaseModel]) -> Mapping[str, Any]:
    return model.model_json_schema(schema_generator=_WithDefaults)


def schemas_at(model: type[BaseModel], inner: Location) -> list[Mapping[str, Any]]:
    """Return the schemas of the value at a location, several for a union."""
    whole = _schema(model)
    found = list(_alternatives(whole, whole))
    for part in inner:
        found = [
            alternative
            for place in found
            if (member := _member(place, part)) is not None
            for alternative in _alternatives(whole, member)
        ]
    return found


def _alternatives(
    whole: Mapping[str, Any], schema: Mapping[str, Any]
) -> Iterator[Mapping[str, Any]]:
    """Yield the members of a union or the target of a reference, with inherited marks."""
    mark = {"x-reference": schema["x-reference"]} if "x-reference" in schema else {}
    if "$ref" in schema:
        members = [whole["$defs"][schema["$ref"].rpartition("/")[2]]]
    else:
        members = [each for key in ("anyOf", "oneOf", "allOf") for each in schema.get(key, ())]
    if not members:
        yield schema
    for member in members:
        yield from _alternatives(whole, {**member, **mark})


def _member(place: Mapping[str, Any], part: str | int) -> Mapping[str, Any] | None:
    if isinstance(part, str):
        more = place.get("additionalProperties", "type" not in place)
        found = place.get("properties", {}).get(part, more)
    else:
        fixed = place.get("prefixItems", ())
        found = fixed[part] if part < len(fixed) else place.get("items", "type" not in place)
    if isinstance(found, bool):
        return {} if found else None
    member: Mapping[str, Any] = found
    return member


def _in_value(
    whole: Mapping[str, Any], schema: Mapping[str, Any], value: Any, location: Location
) -> Iterator[Named]:
    alternatives = list(_alternatives(whole, schema))
    if isinstance(value, str):
        texts = [place for place in alternatives if place.get("type") == "string"]
        marks = {place.get("x-reference") for place in texts}
        if len(marks) == 1 and None not in marks:
            yield Named(kind=texts[0]["x-reference"], name=value, location=location)
    elif isinstance(value, dict):
        tables = [place for place in alternatives if place.get("type") == "object"]
        fitting = [t for t in tables if all(_member(t, key) is not None for key in value)]
        for table in (fitting or tables)[:1]:
            yield from _in_table(whole, table, value, location)
    elif isinstance(value, list):
        arrays = [place for place in alternatives if place.get("type") == "array"]
        for index, item in enumerate(value if arrays else ()):
            member = _member(arrays[0], index)
            if member is not None:
                yield from _in_value(whole, member, item, (*location, index))


def _in_table(
    whole: Mapping[str, Any], table: Mapping[str, Any], raw: Mapping[str, Any], location: Location
) -> Iterator[Named]:
    known = table.get("properties", {})
    mark = table.get("propertyNames", {}).get("x-reference")
    for key in dict.fromkeys((*known, *raw)):
        where = (*location, key)
        if mark is not None:
            yield Named(kind=mark, name=key, location=where, is_key=True)
        member = _member(table, key)
        if member is not None:
            value = raw[key] if key in raw else member.get("default")
            yield from _in_value(whole, member, value, where)
