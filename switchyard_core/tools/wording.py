"""What models are told: of a tool, and of a call that gives no result."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from switchyard_core.answering import ToolSpec
from switchyard_core.declarations import Tool
from switchyard_core.errors import nearest

__all__ = ["cut", "failed", "invalid", "late", "no_text", "spec_of", "unknown"]

#: Keys of a schema whose values are not schemas.
_VALUES = frozenset({"const", "default", "enum", "examples", "required"})
#: Keys of a schema that hold schemas by name.
_BY_NAME = frozenset({"properties", "patternProperties"})
_REFERENCE = "#/$defs/"


def spec_of(tool: Tool) -> ToolSpec:
    """Return a tool as models are told of it; equal for equal tools.

    The schema has no references and no generated titles: some providers follow no ``$ref``. A
    ValueError continues a sentence that begins with the parameters.
    """
    try:
        schema = tool.parameters.model_json_schema()
    except Exception as error:
        raise ValueError(f"cannot be described as JSON Schema: {type(error).__name__}") from error
    plain = _plain(schema, schema.get("$defs", {}), ())
    if plain.get("type") != "object":
        raise ValueError("are not an object")
    plain.setdefault("properties", {})
    return ToolSpec(name=tool.name, description=tool.description, parameters=plain)


def _plain(schema: Any, known: Mapping[str, Any], open_names: tuple[str, ...]) -> Any:
    """Return a schema with what it refers to in place."""
    if isinstance(schema, list):
        return [_plain(item, known, open_names) for item in schema]
    if not isinstance(schema, dict):
        return schema
    reference = schema.get("$ref")
    if isinstance(reference, str):
        name = reference.removeprefix(_REFERENCE)
        if name in open_names:
            raise ValueError(f"hold `{name}` within itself, which some providers cannot describe")
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        merged: dict[str, Any] = _plain(known[name], known, (*open_names, name))
        return merged | _plain(beside, known, open_names)
    if "properties" in schema and schema.get("additionalProperties") is not False:
        where = f" in `{open_names[-1]}`" if open_names else ""
        raise ValueError(f"accept unknown keys{where}; inherit `switchyard_core.Options`")
    plain: dict[str, Any] = {}
    for key, value in schema.items():
        if key in _BY_NAME:
            plain[key] = {name: _plain(item, known, open_names) for name, item in value.items()}
        elif key in _VALUES:
            plain[key] = value
        elif key not in {"$defs", "title", "discriminator"}:
            plain[key] = _plain(value, known, open_names)
    return plain


#: Most problems of one call's arguments that are named.
_MOST = 4
#: Most characters of a line, and of a name that a model made up.
_LINE, _NAME = 200, 64


def invalid(name: str, model: type[BaseModel], error: ValidationError) -> str:
    """Return what is wrong with the arguments of a call, a line for each field."""
    details = error.errors(include_url=False, include_context=False, include_input=False)
    fields = [info.alias or field for field, info in model.model_fields.items()]
    # Of a union pydantic names every member; one line for each is enough.
    lines = list(dict.fromkeys(_line(detail, fields) for detail in details))
    more = len(lines) - _MOST
    if more > 0:
        lines[_MOST:] = [f"and {more} more"]
    return "\n".join([f"error: the arguments of `{name}` are not valid", *lines])


def _line(detail: ErrorDetails, fields: Collection[str]) -> str:
    where = ".".join(str(part) for part in detail["loc"])
    kind, text = detail["type"], detail["msg"]
    if kind == "extra_forbidden":
        known = f" (arguments: {', '.join(fields) or 'none'})" if len(detail["loc"]) == 1 else ""
        text = f"there is no such argument{known}"
    elif kind == "missing":
        text = "is required"
    elif kind == "json_invalid":
        text = f"not JSON: {text.removeprefix('Invalid JSON: ')}"
    elif kind in {"model_type", "model_attributes_type"} and not where:
        text = "must be a JSON object"
    return _one_line(f"{where}: {text}" if where else text)


def unknown(name: str, tools: Iterable[str]) -> str:
    """Return that no tool has this name, with the nearest name and the list of all."""
    names = list(tools)
    near = nearest(name[:_NAME], names)
    hint = f"; did you mean `{near}`?" if near else ""
    listed = ", ".join(names) or "none"
    return f"error: there is no tool `{_one_line(name, _NAME)}`{hint} (tools: {listed})"


def failed(name: str, error: BaseException) -> str:
    """Return that a tool raised; its message may hold what is not meant for a model."""
    return f"error: the tool `{name}` failed: {type(error).__name__}"


def no_text(name: str, value: object) -> str:
    """Return that a tool's result can be turned neither into text nor into JSON."""
    return f"error: the tool `{name}` returned a `{type(value).__name__}`, which is not JSON"


def late(name: str, seconds: float, *, goes_on: bool) -> str:
    """Return that a tool took too long, and whether it is still at work."""
    rest = "; it was not stopped and may still take effect" if goes_on else ""
    return f"error: the tool `{name}` gave no result within {seconds:g} s{rest}"


def cut(text: str, most: int) -> str:
    """Return a text of at most so many characters, and behind it how many are missing."""
    missing = len(text) - most
    if missing <= 0:
        return text
    return f"{text[:most]}\n[cut: {missing} of {len(text)} characters are missing]"


def _one_line(text: str, most: int = _LINE) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else line[:most] + "…"
