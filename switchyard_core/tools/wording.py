"""What a model is told when a call of a tool gives no result: one or a few short lines."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from difflib import get_close_matches

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

__all__ = ["cut", "failed", "invalid", "late", "no_text", "unknown"]

#: Most problems of one call's arguments that are named.
_MOST = 4
#: Most characters of a line, and of a name that a model made up.
_LINE, _NAME = 200, 64


def invalid(name: str, model: type[BaseModel], error: ValidationError) -> str:
    """Return what is wrong with the arguments of a call, a line for each field.

    Args:
        name: Name of the tool.
        model: Its parameters.
        error: What pydantic says of them.
    """
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
    """Return that there is no tool of a name, with the nearest one and the list of all."""
    names = list(tools)
    near = get_close_matches(name[:_NAME], names, n=1)
    hint = f"; did you mean `{near[0]}`?" if near else ""
    listed = ", ".join(names) or "none"
    return f"error: there is no tool `{_one_line(name, _NAME)}`{hint} (tools: {listed})"


def failed(name: str, error: BaseException) -> str:
    """Return that a tool raised; its message may hold what is not meant for a model."""
    return f"error: the tool `{name}` failed: {type(error).__name__}"


def no_text(name: str, value: object) -> str:
    """Return that a tool's result can be turned neither into text nor into JSON."""
    return f"error: the tool `{name}` returned a `{type(value).__name__}`, which is no JSON"


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
