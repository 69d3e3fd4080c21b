"""Reading a script from a file, with every problem at once."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from switchyard_core.errors import Finding, PolicyError
from switchyard_core.upstream.scripted.positions import locate
from switchyard_core.upstream.scripted.script import (
    Call,
    Fault,
    Script,
    Scripted,
    Turn,
    UsageCount,
    When,
)

__all__ = ["check_script", "load_script"]

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
    """Read a script from a JSON file.

    Args:
        path: The file.
        variables: ``{{name}}`` in any string of the file becomes the value of ``name``;
            other braces stay as they are.

    Raises:
        PolicyError: The file cannot be read or has problems; it carries all of them.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = "is not UTF-8" if isinstance(error, UnicodeDecodeError) else error.strerror
        finding = Finding(
            code="SY240",
            message=f"the script cannot be read: {reason}",
            file=str(path),
            fix="give the path of a script file, relative to the policy",
        )
        raise PolicyError([finding]) from error
    script, findings = check_script(text, str(path), variables)
    if script is None:
        raise PolicyError(findings)
    return script


def check_script(
    text: str, file: str = "", variables: Mapping[str, str] | None = None
) -> tuple[Script | None, tuple[Finding, ...]]:
    """Return the script of a JSON text, or ``None`` and every problem in order of position.

    Args:
        text: The JSON text.
        file: Its path, for the findings.
        variables: See :func:`load_script`.
    """
    try:
        tree = json.loads(text)
    except json.JSONDecodeError as error:
        return None, (_not_json(f": {error.msg.lower()}", file, error.lineno, error.colno),)
    except (ValueError, RecursionError):
        return None, (_not_json("", file, 0, 0),)
    try:
        # As JSON, because strict models take a list for a tuple only there.
        return Script.model_validate_json(json.dumps(_filled(tree, variables or {}))), ()
    except ValidationError as error:
        found = [_finding(text, file, dict(problem)) for problem in error.errors()]
        return None, tuple(sorted(found, key=lambda finding: (finding.line, finding.column)))


def _not_json(reason: str, file: str, line: int, column: int) -> Finding:
    return Finding(
        code="SY240",
        message=f"the script is not JSON{reason}",
        file=file,
        line=line,
        column=column,
        fix="a script is one JSON object, see docs/scripted_provider.md",
    )


def _filled(value: Any, variables: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return re.sub(r"\{\{(\w+)\}\}", lambda match: variables.get(match[1], match[0]), value)
    if isinstance(value, list):
        return [_filled(item, variables) for item in value]
    if isinstance(value, dict):
        return {key: _filled(item, variables) for key, item in value.items()}
    return value


def _finding(text: str, file: str, problem: dict[str, Any]) -> Finding:
    # pydantic's own words name Python types and its version; these are for the author.
    steps: list[str | int] = list(problem["loc"])
    line, column = locate(text, steps)
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
    kind = problem["type"]
    context = problem.get("ctx", {})
    last = steps[-1] if steps else None
    name = "the script" if last is None else "the item" if isinstance(last, int) else f"`{last}`"
    code, fix = "SY242", ""
    notes: tuple[str, ...] = ()
    if kind == "extra_forbidden":
        code = "SY241"
        allowed = sorted(_keys_at(steps[:-1]))
        near = difflib.get_close_matches(str(last), allowed, 1)
        message = f"unknown key {name}"
        notes = (f"allowed keys: {', '.join(allowed)}",)
        fix = f"did you mean `{near[0]}`?" if near else "remove it"
    elif kind == "missing":
        message, fix = f"{name} is missing", "add it, see docs/scripted_provider.md"
    elif kind == "value_error":
        message, fix = str(context["error"]), "change it, see docs/scripted_provider.md"
        message = f"{name} {message}" if message.startswith(("is ", "must ")) else message
    else:
        bounds = {key: int(b) if isinstance(b, float) else b for key, b in context.items()}
        wanted = _EXPECTED.get(kind, "another value").format(**bounds)
        message, fix = f"{name} must be {wanted}", f"write {wanted}"
    return Finding(
        code=code,
        message=message,
        file=file,
        line=line,
        column=column,
        path=path.lstrip("."),
        notes=notes,
        fix=fix,
    )


def _keys_at(steps: list[str | int]) -> list[str]:
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
