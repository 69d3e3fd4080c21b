"""JSON schemas as Messages takes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from switchyard_core.jsonio.tree import JsonTextError, ObjectText, encode, loads
from switchyard_core.wire.neutral import Told
from switchyard_core.wire.replies import table

__all__ = ["EMPTY", "closed", "fits_strict", "input_schema"]

EMPTY = b'{"type":"object","properties":{}}'
#: What the API refuses at the top of a tool's schema.
_COMBINED = ("allOf", "anyOf", "oneOf")
#: How deep combined schemas are followed; one may refer to itself.
_DEEPEST = 8
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


def input_schema(raw: bytes, name: str, told: Told) -> bytes:
    """Return the schema of a tool's arguments: an object that combines nothing at its top."""
    try:
        node = ObjectText(raw) if raw else None
    except JsonTextError:
        node = None
        told.changed.append(f"gave the tool `{name}` a schema, for its own is not an object")
    if node is None or not len(node):
        return EMPTY
    if node.text("type") == "object" and not any(key in node for key in _COMBINED):
        return raw
    tree = _resolved(loads(raw))
    if tree.get("type") not in (None, "object") and "object" not in _listed(tree.get("type")):
        told.changed.append(f"put the arguments of the tool `{name}` under the key `input`")
        return encode({"type": "object", "properties": {"input": tree}, "required": ["input"]})
    if any(key in tree for key in _COMBINED):
        told.changed.append(f"made one object of the schemas of the tool `{name}`")
    return encode(_flat(tree, tree))


def _flat(tree: Mapping[str, Any], root: Mapping[str, Any], depth: int = 0) -> dict[str, Any]:
    """Return a schema with the properties of all that it combines."""
    rest = {key: value for key, value in tree.items() if key not in (*_COMBINED, "type")}
    properties = dict(table(tree.get("properties")))
    required = _texts(tree.get("required"))
    for key in _COMBINED:
        found = _listed(tree.get(key)) if depth < _DEEPEST else ()
        branches = [_flat(_resolved(each, root), root, depth + 1) for each in found]
        for branch in branches:
            for name, schema in table(branch.get("properties")).items():
                properties[name] = _either(properties.get(name, schema), schema)
        needed = [_texts(branch.get("required")) for branch in branches]
        if key == "allOf":
            required += [name for names in needed for name in names]
        elif needed:
            required += [name for name in needed[0] if all(name in names for names in needed)]
    flat: dict[str, Any] = {"type": "object", **rest, "properties": properties}
    if required:
        flat["required"] = list(dict.fromkeys(required))
    return flat


def _either(one: Any, other: Any) -> Any:
    if one == other:
        return one
    known = one["anyOf"] if isinstance(one, dict) and set(one) == {"anyOf"} else [one]
    return {"anyOf": known if other in known else [*known, other]}


def _resolved(branch: Any, root: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
    """Return a schema with the one of the same document that it refers to at its top."""
    schema = table(branch)
    reference = schema.get("$ref")
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return schema
    found: Any = schema if root is None else root
    for step in reference[2:].split("/"):
        found = table(found).get(step.replace("~1", "/").replace("~0", "~"))
    return {**table(found), **{key: value for key, value in schema.items() if key != "$ref"}}


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


def _texts(value: Any) -> list[str]:
    return [each for each in _listed(value) if isinstance(each, str)]
