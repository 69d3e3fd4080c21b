"""What a model is told of a tool: the JSON schema of its arguments, plain enough for all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from switchyard_core.answering import ToolSpec
from switchyard_core.declarations import Tool

__all__ = ["spec_of"]

#: Keys of a schema whose values are no schemas.
_VALUES = frozenset({"const", "default", "enum", "examples", "required"})
#: Keys of a schema that hold schemas by name.
_BY_NAME = frozenset({"properties", "patternProperties"})
_REFERENCE = "#/$defs/"


def spec_of(tool: Tool) -> ToolSpec:
    """Return a tool as models are told of it; equal for equal tools.

    The schema holds no references and no generated titles: some providers follow no ``$ref``.

    Raises:
        ValueError: No such schema can be made of the parameters, or they accept unknown keys;
            the text continues a sentence that begins with the parameters.
    """
    try:
        schema = tool.parameters.model_json_schema()
    except Exception as error:
        msg = f"cannot be described as JSON Schema: {type(error).__name__}"
        raise ValueError(msg) from error
    plain = _plain(schema, schema.get("$defs", {}), ())
    if plain.get("type") != "object":
        msg = "are no object"
        raise ValueError(msg)
    plain.setdefault("properties", {})
    return ToolSpec(name=tool.name, description=tool.description, parameters=plain)


def _plain(schema: Any, known: Mapping[str, Any], open_names: tuple[str, ...]) -> Any:
    """Return a schema with what it refers to in place.

    Args:
        schema: A part of the schema.
        known: What references name.
        open_names: The references that this part stands in.
    """
    if isinstance(schema, list):
        return [_plain(item, known, open_names) for item in schema]
    if not isinstance(schema, dict):
        return schema
    reference = schema.get("$ref")
    if isinstance(reference, str):
        name = reference.removeprefix(_REFERENCE)
        if name in open_names:
            msg = f"hold `{name}` within itself, which some providers cannot describe"
            raise ValueError(msg)
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        merged: dict[str, Any] = _plain(known[name], known, (*open_names, name))
        return merged | _plain(beside, known, open_names)
    if "properties" in schema and schema.get("additionalProperties") is not False:
        where = f" in `{open_names[-1]}`" if open_names else ""
        msg = f"accept unknown keys{where}; inherit `switchyard_core.Options`"
        raise ValueError(msg)
    plain: dict[str, Any] = {}
    for key, value in schema.items():
        if key in _BY_NAME:
            plain[key] = {name: _plain(item, known, open_names) for name, item in value.items()}
        elif key in _VALUES:
            plain[key] = value
        elif key not in {"$defs", "title", "discriminator"}:
            plain[key] = _plain(value, known, open_names)
    return plain
