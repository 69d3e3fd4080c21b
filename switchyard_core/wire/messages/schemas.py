"""JSON schemas as Messages takes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from switchyard_core.jsonio.tree import JsonTextError, ObjectText, encode, loads
from switchyard_core.wire.neutral import Told
from switchyard_core.wire.replies import table

__all__ = ["EMPTY", "closed", "input_schema", "is_open"]

EMPTY = b'{"type":"object","properties":{}}'
#: What the API refuses at the top of a tool's schema.
_COMBINED = ("allOf", "anyOf", "oneOf")
#: Keys whose members are schemas, and those that are one or some.
_BY_NAME = ("properties", "$defs", "definitions", "patternProperties")
_INNER = ("items", "prefixItems", "anyOf", "oneOf", "allOf", "not", "additionalProperties")


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
    tree = table(loads(raw))
    if tree.get("type") not in (None, "object") and "object" not in _listed(tree.get("type")):
        told.changed.append(f"put the arguments of the tool `{name}` under the key `input`")
        return encode({"type": "object", "properties": {"input": tree}, "required": ["input"]})
    if any(key in tree for key in _COMBINED):
        told.changed.append(f"made one object of the schemas of the tool `{name}`")
    return encode(_flat(tree))


def _flat(tree: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema with the properties of all that it combines."""
    rest = {key: value for key, value in tree.items() if key not in (*_COMBINED, "type")}
    properties = dict(table(tree.get("properties")))
    required = _texts(tree.get("required"))
    for key in _COMBINED:
        branches = [_flat(_resolved(each, tree)) for each in _listed(tree.get(key))]
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


def _resolved(branch: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a schema, or the one of the same document that it refers to."""
    found: Any = branch
    reference = table(branch).get("$ref")
    if isinstance(reference, str) and reference.startswith("#/"):
        found = root
        for step in reference[2:].split("/"):
            found = table(found).get(step.replace("~1", "/").replace("~0", "~"))
    # A schema that refers to itself has nothing to add.
    return {} if found is root else table(found)


def closed(raw: bytes, told: Told) -> bytes:
    """Return a schema of an answer: its objects have no further members, as the API demands."""
    if not is_open(raw):
        return raw
    told.changed.append("closed the schema of the answer to further members")
    tree = loads(raw)
    for schema in _schemas(tree):
        if _is_open(schema):
            schema["additionalProperties"] = False
    return encode(tree)


def is_open(raw: bytes) -> bool:
    """Return whether a schema has an object that may have further members."""
    return any(_is_open(schema) for schema in _schemas(loads(raw)))


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
