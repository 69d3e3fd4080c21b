"""JSON schemas as the API takes them."""

from __future__ import annotations

import json
from typing import Any

from switchyard_core.wire.messages.schemas import closed, fits_strict, input_schema
from switchyard_core.wire.neutral import Told

STRING, NUMBER = {"type": "string"}, {"type": "number"}
A = {"type": "object", "properties": {"kind": {"const": "a"}, "x": STRING}, "required": ["kind"]}
B = {"type": "object", "properties": {"kind": {"const": "b"}, "x": STRING}, "required": ["kind"]}
KINDS = {"anyOf": [{"const": "a"}, {"const": "b"}]}


def asked(schema: Any) -> tuple[Any, bool]:
    """Return the schema of a tool's arguments, and whether something was told."""
    told = Told()
    raw = schema if isinstance(schema, bytes) else json.dumps(schema).encode()
    return json.loads(input_schema(raw, "read", told)), bool(told.lines)


#: A schema, the one that is written, and whether that is told.
TABLE: list[tuple[Any, Any, bool]] = [
    (b"", {"type": "object", "properties": {}}, False),
    ({}, {"type": "object", "properties": {}}, False),
    ({"type": "object"}, {"type": "object"}, False),
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
    assert input_schema(raw, "read", Told()) == raw
    assert closed(b'{"type": "string"}', Told()) == b'{"type": "string"}'


def test_schema_that_refers_to_itself_is_followed_to_an_end() -> None:
    found, _ = asked({"anyOf": [{"$ref": "#"}, A]})
    assert found["properties"]["x"] == STRING


def test_schema_of_an_answer_is_closed_and_its_constraints_are_described() -> None:
    schema = {
        "type": "object",
        "properties": {
            "n": {"type": "integer", "minimum": 1, "description": "How many."},
            "more": {"type": "array", "maxItems": 2, "items": {"type": "object", "properties": {}}},
            "either": {"oneOf": [STRING, NUMBER]},
            "minimum": STRING,
        },
        "$defs": {"free": {"type": "object", "additionalProperties": STRING}},
    }
    told = Told()
    found = json.loads(closed(json.dumps(schema).encode(), told))
    assert found["additionalProperties"] is False
    assert found["properties"]["n"] == {
        "type": "integer",
        "description": 'How many.\n\n{"minimum":1}',
    }
    assert found["properties"]["more"]["description"] == '{"maxItems":2}'
    assert found["properties"]["more"]["items"]["additionalProperties"] is False
    assert found["properties"]["either"] == {"anyOf": [STRING, NUMBER]}
    assert found["properties"]["minimum"] == STRING
    assert found["$defs"]["free"]["additionalProperties"] is False
    assert fits_strict(json.dumps(found).encode())
    assert told.lines == [
        "closed the schema of the answer to further members",
        "told constraints of the answer's schema in descriptions",
    ]
