"""What to write into a policy: the TOML of a value, a missing key, a wrong type or a range."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from switchyard_core.policy.document import Document, dotted
from switchyard_core.policy.places import Location
from switchyard_core.policy.secrets import looks_like_credential, shown
from switchyard_core.policy.shapes import schemas_at, word_at

__all__ = ["choices_at", "default_at", "for_missing", "for_type", "range_at", "reference_at"]

_TRUTHS = {"true": "true", "yes": "true", "on": "true", "1": "true"}
_TRUTHS |= {"false": "false", "no": "false", "off": "false", "0": "false"}
#: What stands for a value of a type in an example.
_EXAMPLES: Mapping[str, str] = {"a string": '"..."', "an array": "[...]"}
#: Keys of a JSON Schema that bound a number, in words.
_BOUNDS: Mapping[str, str] = {
    "minimum": "{} or more",
    "exclusiveMinimum": "more than {}",
    "maximum": "at most {}",
    "exclusiveMaximum": "less than {}",
}


def choices_at(model: type[BaseModel], inner: Location) -> tuple[str, ...]:
    """Return the TOML of each value that a place may have, if they can be listed."""
    found: list[str] = []
    for place in schemas_at(model, inner):
        values = [*place.get("enum", ()), *([place["const"]] if "const" in place else ())]
        found += map(json.dumps, values)
    return tuple(dict.fromkeys(found))


def reference_at(model: type[BaseModel], inner: Location) -> Any:
    """Return the kind of the name that a place holds, ``None`` for another value."""
    marks = {place.get("x-reference") for place in schemas_at(model, inner)} - {None}
    return marks.pop() if len(marks) == 1 else None


def range_at(model: type[BaseModel], inner: Location) -> str:
    """Return the range of the number at a place, such as ``from 0 to 10``; ``""`` without one."""
    places = [p for p in schemas_at(model, inner) if p.get("type") in {"integer", "number"}]
    if len(places) != 1:
        return ""
    bounds = {key: value for key, value in places[0].items() if key in _BOUNDS}
    if {"minimum", "maximum"} <= bounds.keys():
        return f"from {_whole(bounds['minimum'])} to {_whole(bounds['maximum'])}"
    return " and ".join(
        _BOUNDS[key].format(_whole(bounds[key])) for key in _BOUNDS if key in bounds
    )


def default_at(model: type[BaseModel], inner: Location) -> Any:
    """Return the value of a place when its key is absent, ``None`` without one."""
    return next((p["default"] for p in schemas_at(model, inner) if "default" in p), None)


def for_missing(where: Location, model: type[BaseModel], inner: Location) -> str:
    """Return what to add for a missing key; ``where`` is its table, ``inner`` ends with the key."""
    key, wanted, choices = str(inner[-1]), word_at(model, inner), choices_at(model, inner)
    if wanted == "a table":
        return f"add a table `[{dotted((*where, key))}]`"
    if len(choices) == 1:
        return f"add `{key} = {choices[0]}`"
    if choices or reference_at(model, inner) is not None:
        return f'add `{key} = "..."` with one of these'
    return f"add `{key} = {_EXAMPLES.get(wanted, '...')}` to this table"


def for_type(document: Document, where: Location, wanted: str, value: object) -> str:
    """Return what to write in place of a value of another type."""
    if isinstance(value, list) and wanted == "a table":
        return _single(where, value)
    if isinstance(value, dict):
        return _double(document, where) if wanted == "an array" else f"write {wanted}"
    meant = _converted(wanted, value)
    return f"write `{shown(meant)}`" if meant else f"write {wanted}"


def _single(where: Location, value: list[Any]) -> str:
    if value and all(isinstance(item, dict) for item in value):
        name = dotted(where) if len(where) > 1 else f"{dotted(where)}.NAME"
        return f"write `[{name}]`, in single brackets"
    return f"write a table, `[{dotted(where)}]`"


def _double(document: Document, where: Location) -> str:
    if document.positions.is_header(where):
        return f"write `[[{dotted(where)}]]`, in double brackets, once per entry"
    return "write an array, `[{ ... }]`"


def _converted(wanted: str, value: object) -> str:
    """Return the TOML of a value as another type, ``""`` when there is none."""
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    plain = text.strip()
    if looks_like_credential(text) or len(text) > 40:
        return ""
    if wanted == "an array":
        return f"[{json.dumps(value, ensure_ascii=False, default=str)}]"
    if wanted == "a string":
        alone = value[0] if isinstance(value, list) and len(value) == 1 else value
        is_text = isinstance(alone, str)
        if isinstance(alone, list | dict):
            return ""
        return json.dumps(alone if is_text else json.dumps(alone, default=str), ensure_ascii=False)
    if wanted == "true or false":
        return _TRUTHS.get(plain.casefold(), "")
    if wanted in {"an integer", "a number"}:
        return _number(plain, whole=wanted == "an integer")
    return ""


def _number(text: str, *, whole: bool) -> str:
    try:
        number = float(text)
    except ValueError:
        return ""
    if whole:
        return str(int(number)) if number.is_integer() else ""
    return f"{number:g}"


def _whole(number: float) -> str:
    return str(int(number)) if float(number).is_integer() else str(number)
