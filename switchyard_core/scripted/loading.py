"""Reading a script from a file, with every problem at once."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from switchyard_core.errors import Finding, PolicyError, nearest
from switchyard_core.scripted.script import (
    Call,
    Fault,
    Script,
    Scripted,
    Turn,
    UsageCount,
    When,
)
from switchyard_core.upstream.played import (
    Problem,
    UnreadableError,
    findings_of,
    parsed,
    printable,
    read_played,
)

__all__ = ["check_script", "load_script"]

_VARIABLE = re.compile(r"\{\{(\w+)\}\}")

#: What a value should have been, by pydantic's type of error.
_EXPECTED = {
    "bool_type": "true or false",
    "dict_type": "an object",
    "finite_number": "a finite number",
    "float_type": "a number",
    "greater_than_equal": "{ge} or more",
    "int_from_float": "a whole number",
    "int_type": "a whole number",
    "less_than_equal": "{le} or less",
    "literal_error": "{expected}",
    "model_type": "an object",
    "string_type": "a string",
    "tuple_type": "a list",
}


def load_script(path: str | Path, variables: Mapping[str, str] | None = None) -> Script:
    """Read a script from a JSON file; its problems are one :class:`PolicyError`.

    ``{{name}}`` in any string of the file becomes ``variables["name"]``; other braces stay.
    """
    try:
        text = read_played(path)
    except UnreadableError as error:
        raise PolicyError([_unusable(error, str(path))]) from error
    script, findings = check_script(text, str(path), variables)
    if script is None:
        raise PolicyError(findings)
    return script


def check_script(
    text: str, file: str = "", variables: Mapping[str, str] | None = None
) -> tuple[Script | None, tuple[Finding, ...]]:
    """Return the script of a JSON text, or ``None`` and every problem in order of position."""
    try:
        tree = parsed(text)
    except UnreadableError as error:
        return None, (_unusable(error, file),)
    halves: list[Problem] = []
    # As JSON, because strict models take a list for a tuple only there.
    data = json.dumps(_filled(tree, variables or {}, (), halves))
    try:
        script = Script.model_validate_json(data)
    except ValidationError as error:
        details = error.errors(include_input=False, include_url=False)
        return None, findings_of(text, file, [*halves, *map(_problem, details)])
    return (None, findings_of(text, file, halves)) if halves else (script, ())


def _unusable(error: UnreadableError, file: str) -> Finding:
    return Finding(
        code="SY240",
        message=f"the script {error.message}",
        file=file,
        line=error.line,
        column=error.column,
        fix="a script is a file with one JSON object, see docs/scripted_provider.md",
    )


def _filled(
    value: Any, variables: Mapping[str, str], path: tuple[str | int, ...], halves: list[Problem]
) -> Any:
    """Return a tree with its variables filled in; lone surrogates are replaced and noted."""
    if isinstance(value, str):
        plain = value.encode("utf-8", "replace").decode()
        if plain != value:
            halves.append(_half(path))
        return _VARIABLE.sub(lambda match: variables.get(match[1], match[0]), plain)
    if isinstance(value, list):
        return [_filled(item, variables, (*path, at), halves) for at, item in enumerate(value)]
    if isinstance(value, dict):
        found = {}
        for key, item in value.items():
            plain = key.encode("utf-8", "replace").decode()
            if plain != key:
                halves.append(_half((*path, key)))
            found[plain] = _filled(item, variables, (*path, key), halves)
        return found
    return value


def _half(path: tuple[str | int, ...]) -> Problem:
    return Problem(
        path,
        "the text has half of a surrogate pair, which no provider can send",
        "write both halves, or the character itself",
        "SY242",
    )


def _problem(detail: Mapping[str, Any]) -> Problem:
    # pydantic's own words name Python types and its version; these are for the author.
    key = detail["loc"][-1:] == ("[key]",)
    path: tuple[str | int, ...] = detail["loc"][:-1] if key else detail["loc"]
    kind, context = detail["type"], detail.get("ctx", {})
    last = path[-1] if path else None
    shown = printable(str(last))
    name = "the script" if last is None else "the item" if isinstance(last, int) else f"`{shown}`"
    see = ", see docs/scripted_provider.md"
    if kind == "extra_forbidden":
        allowed = sorted(_keys_at(path[:-1]))
        near = nearest(shown, allowed)
        fix = f"did you mean `{near}`?" if near else "remove it"
        notes = (f"allowed keys: {', '.join(allowed)}",)
        return Problem(path, f"unknown key {name}", fix, "SY241", notes)
    if kind == "missing":
        return Problem(path, f"{name} is missing", f"add it{see}", "SY242")
    if kind == "value_error":
        message = str(context["error"])
        message = f"{name} {message}" if message.startswith(("is ", "must ", "has ")) else message
        return Problem(path, message, f"change it{see}", "SY242")
    bounds = {key: int(b) if isinstance(b, float) else b for key, b in context.items()}
    wanted = _EXPECTED.get(kind, "another value").format(**bounds)
    return Problem(path, f"{name} must be {wanted}", f"write {wanted}", "SY242")


def _keys_at(steps: Sequence[str | int]) -> list[str]:
    """Return the keys that the object at a path may have."""
    names = [step for step in steps if isinstance(step, str)]
    parts: dict[str, type[BaseModel]] = {
        "scripts": Scripted,
        "when": When,
        "turns": Turn,
        "usage": UsageCount,
        "calls": Call,
        "any_of": Call,
        "faults": Fault,
    }
    return list((parts[names[-1]] if names else Script).model_fields)
