"""Schemas of a tool's arguments as every provider takes them."""

from __future__ import annotations

import json
from typing import Any

from switchyard_core.wire.neutral import Told
from switchyard_core.wire.schemas import arguments_schema

STRING, NUMBER = {"type": "string"}, {"type": "number"}
A = {"type": "object", "properties": {"kind": {"const": "a"}, "x": STRING}, "required": ["kind"]}
B = {"type": "object", "properties": {"kind": {"const": "b"}, "x": STRING}, "required": ["kind"]}
KINDS = {"anyOf": [{"const": "a"}, {"const": "b"}]}


def asked(schema: Any) -> tuple[Any, bool]:
    """Return the schema of a tool's arguments, and whether something was told."""
    told = Told()
    raw = schema if isinstance(schema, bytes) else json.dumps(schema).encode()
    return json.loads(arguments_schema(raw, "read", told)), bool(told.lines)


#: A schema, the one that is written, and whether that is told.
TABLE: list[tuple[Any, Any, bool]] = [
    (b"", {"type": "object", "properties": {}}, False),
    ({}, {"type": "object", "properties": {}}, False),
    ({"type": "object"}, {"type": "object", "properties": {}}, False),
    (
        {"type": "object", "properties": None, "required": None},
        {"type": "object", "properties": {}},
        False,
    ),
    (
        {"type": "object", "properties": {"x": STRING}, "enum": [1], "not": {}},
        {"type": "object", "properties": {"x": STRING}},
        True,
    ),
    (A, A, False),
    (b"true", {"type": "object", "properties": {}}, True),
    (b"[1]", {"type": "object", "properties": {}}, True),
    ({"properties": {"x": STRING}}, {"type": "object", "properties": {"x": STRING}}, False),
    ({"type": ["object", "null"]}, {"type": "object", "properties": {}}, False),
    (STRING, {"type": "object", "properties": {"input": STRING}, "required": ["input"]}, True),
    (
        {"anyOf": [A, B]},
        {"type": "object", "properties": {"kind": KINDS, "x": STRING}, "required": ["kind"]},
        True,
    ),
    (
        {"type": "object", "oneOf": [{"required": ["x"]}, {}], "properties": {"x": STRING}},
        {"type": "object", "properties": {"x": STRING}},
        True,
    ),
    (
        {"allOf": [{"properties": {"x": STRING}, "required": ["x"]},
                   {"properties": {"y": NUMBER}, "required": ["y"]}]},
        {"type": "object", "properties": {"x": STRING, "y": NUMBER}, "required": ["x", "y"]},
        True,
    ),
    (
        {"$defs": {"a": A}, "anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/gone"}]},
        {"type": "object", "$defs": {"a": A}, "properties": A["properties"]},
        True,
    ),
    (
        {"$defs": {"a": A}, "$ref": "#/$defs/a"},
        {**A, "$defs": {"a": A}},
        False,
    ),
]  # fmt: skip


def test_arguments_are_an_object_that_combines_nothing_at_its_top() -> None:
    wrong = [
        (schema, found)
        for schema, *expected in TABLE
        if (found := asked(schema)) != (expected[0], expected[1])
    ]
    assert wrong == []


def test_plain_schemas_keep_their_bytes() -> None:
    raw = b'{"type": "object", "properties": {"n": {"maximum": 1.10}}}'
    assert arguments_schema(raw, "read", Told()) == raw


def test_schema_that_refers_to_itself_is_followed_to_an_end() -> None:
    found, _ = asked({"anyOf": [{"$ref": "#"}, A]})
    assert found["properties"]["x"] == STRING


def test_combined_schemas_keep_the_bytes_of_their_properties() -> None:
    raw = (
        b'{"anyOf":[{"properties":{"n":{"maximum":1.10}}},{"properties":{"m":{"default":1e400}}}]}'
    )
    found = arguments_schema(raw, "read", Told())
    assert b'{"maximum":1.10}' in found
    assert b'{"default":1e400}' in found


def test_schemas_that_refer_to_each_other_take_no_time() -> None:
    names = [f"s{n}" for n in range(12)]
    branches = [{"$ref": f"#/$defs/{name}"} for name in names]
    schema = {"$defs": {name: {"anyOf": branches} for name in names}, "anyOf": branches}
    assert asked(schema)[0]["type"] == "object"
