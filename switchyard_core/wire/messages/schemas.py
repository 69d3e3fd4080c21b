"""JSON schemas that Messages holds a model to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from switchyard_core.jsonio.tree import encode, loads
from switchyard_core.wire.neutral import Told
from switchyard_core.wire.replies import table

__all__ = ["closed", "fits_strict"]

#: Keys whose members are schemas, and those that are one or some.
_BY_NAME = ("properties", "$defs", "definitions", "patternProperties")
_INNER = ("items", "prefixItems", "anyOf", "oneOf", "allOf", "not", "additionalProperties")
#: What the API refuses where it holds a model to a schema (build-with-claude/structured-outputs).
_UNCHECKED = frozenset(
    {
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
        *("minLength", "maxLength", "maxItems", "uniqueItems", "contains"),
        *("minProperties", "maxProperties", "patternProperties", "propertyNames"),
    }
)


def closed(raw: bytes, told: Told) -> bytes:
    """Return a schema that the API can hold an answer to.

    Its objects have no further members; a constraint that is not checked is told in a description.
    """
    if fits_strict(raw):
        return raw
    tree = loads(raw)
    for schema in list(_schemas(tree)):
        if _is_open(schema):
            schema["additionalProperties"] = False
            told.changed.append("closed the schema of the answer to further members")
        if "oneOf" in schema:
            schema["anyOf"] = [*_listed(schema.get("anyOf")), *_listed(schema.pop("oneOf"))]
        gone = {key: schema.pop(key) for key in list(schema) if key in _UNCHECKED}
        if gone:
            about = encode(gone).decode("utf-8", "replace")
            told.changed.append("told constraints of the answer's schema in descriptions")
            said = schema.get("description")
            schema["description"] = f"{said}\n\n{about}" if isinstance(said, str) else about
    return encode(tree)


def fits_strict(raw: bytes) -> bool:
    """Return whether the API can hold a model to a schema as it is."""
    found = _schemas(loads(raw))
    return not any(_is_open(each) or _UNCHECKED & each.keys() or "oneOf" in each for each in found)


def _is_open(schema: Mapping[str, Any]) -> bool:
    kind = schema.get("type")
    is_object = kind == "object" or "object" in _listed(kind)
    return is_object and schema.get("additionalProperties") is not False


def _schemas(tree: Any) -> Iterator[dict[str, Any]]:
    """Yield a schema and all within it."""
    waiting: list[Any] = [tree]
    while waiting:
        schema = waiting.pop()
        if isinstance(schema, list):
            waiting += schema
        elif isinstance(schema, dict):
            yield schema
            for key in _BY_NAME:
                waiting += table(schema.get(key)).values()
            waiting += [schema[key] for key in _INNER if key in schema]


def _listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else ()
