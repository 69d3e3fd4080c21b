"""JSON schemas that the API holds a model to."""

from __future__ import annotations

import json

from switchyard_core.wire.messages.schemas import closed, fits_strict
from switchyard_core.wire.neutral import Told

STRING, NUMBER = {"type": "string"}, {"type": "number"}


def test_plain_schema_keeps_its_bytes() -> None:
    assert closed(b'{"type": "string"}', Told()) == b'{"type": "string"}'


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
