"""The ``code`` reader: JavaScript that calls tools, as Codex's code mode writes it, and Python."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from switchyard_core.mutation.budget import TOO_MUCH, Budget
from switchyard_core.mutation.javascript import UNREADABLE, calls_of
from switchyard_core.mutation.labels import Reading, strongest
from switchyard_core.mutation.paths import PathClasses
from switchyard_core.mutation.shell.bash import run_bash
from switchyard_core.mutation.shell.command import MAX_COMMAND
from switchyard_core.mutation.shell.javascript_code import scan_javascript
from switchyard_core.mutation.shell.python_code import scan_python
from switchyard_core.mutation.shell.session import Decided, Session
from switchyard_core.mutation.tables import load_table

__all__ = ["read_code"]


def read_code(
    text: str,
    recurse: Callable[[str, Any], Reading],
    classes: PathClasses,
    budget: Budget | None = None,
) -> Reading:
    """Return the strongest effect of a script.

    Args:
        text: JavaScript, or Python of a notebook cell; strings and comments do not count.
        recurse: Labels a tool call by name and arguments.
        classes: What written paths mean.
        budget: Pays for what is read; each of two ways to read it may take as much.

    Returns:
        ``unknown`` when neither a tool call nor a write can be read out of the script.
    """
    text = text[:MAX_COMMAND]
    budget = budget or Budget()
    readings = _tool_calls(text, recurse, budget)
    if readings:
        return strongest(readings)
    session = Session(classes=classes)
    with suppress(Decided):
        _effects(text, session, parsed=not budget.spent)
    unseen = Reading(label="unknown", word="code", detail="no tool call or write can be seen")
    return strongest([*session.readings, unseen])


def _effects(text: str, session: Session, *, parsed: bool) -> None:
    """Record what the lines and calls of a notebook cell do.

    Args:
        text: The cell.
        session: Gets the effects.
        parsed: Whether all of it could be parsed as JavaScript.
    """
    for line in text.splitlines():
        # Notebook cells run shell lines behind `!`.
        if line.startswith("!"):
            run_bash(line[1:], session)
    if match := re.match(r"\s*%%(?:bash|sh|script bash)[^\n]*\n", text):
        run_bash(text[match.end() :], session)
    else:
        # Short scripts may be valid in both languages; what one finds the other does not undo.
        scan_python(text, session, "code")
        if parsed:
            scan_javascript(text, session, "code")


def _tool_calls(text: str, recurse: Callable[[str, Any], Reading], budget: Budget) -> list[Reading]:
    owners = set(load_table("arguments")["code_owners"])
    readings: list[Reading] = []
    for call in calls_of(text, budget):
        if call.owner.removeprefix("globalThis.") not in owners:
            continue
        if not call.name:
            readings.append(
                Reading(label="unknown", word="tools[…]", detail="a computed tool name")
            )
            continue
        readings.append(_read_call(call.name, call.arguments, recurse))
        if readings[-1].label == "file_edit":
            break
    if readings and budget.spent:
        readings.append(Reading(label="unknown", word="code", detail=TOO_MUCH))
    return readings


def _read_call(
    name: str, arguments: tuple[Any, ...], recurse: Callable[[str, Any], Reading]
) -> Reading:
    value = arguments[0] if arguments else {}
    if value is UNREADABLE:
        return _softened(recurse(name, {}), name)
    if isinstance(value, dict):
        readable = {key: item for key, item in value.items() if item is not UNREADABLE}
        reading = recurse(name, readable)
        return reading if len(readable) == len(value) else _softened(reading, name)
    return recurse(name, value)


def _softened(reading: Reading, name: str) -> Reading:
    """Take a call whose arguments cannot all be read for unknown, unless its name decides."""
    if reading.label != "read_only":
        return reading
    keys = load_table("arguments")["code_commands"]
    return Reading(label="unknown", word=name) if name in keys else reading
