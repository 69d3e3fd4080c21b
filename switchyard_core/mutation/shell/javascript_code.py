"""Finds the calls in JavaScript that write files or run commands, by its syntax tree."""

from __future__ import annotations

from typing import Any

from switchyard_core.mutation.javascript import Call, calls_of
from switchyard_core.mutation.shell.session import NO_INPUT, Session
from switchyard_core.mutation.shell.special import run_text
from switchyard_core.mutation.tables import load_table

__all__ = ["scan_javascript"]


def scan_javascript(text: str, session: Session, word: str) -> None:
    """Record what JavaScript (or TypeScript without much typing) writes."""
    table = load_table("languages")["javascript"]
    # Most scripts only read: without the name of a call that writes there is nothing to parse.
    if not any(name in text for key in ("functions", "commands") for name in table[key]):
        return
    for call in calls_of(text, session.budget):
        name = call.name
        if name in table["functions"]:
            entry = table["functions"][name]
            if entry.get("files_only") and not _is_file_system(call.owner, table["owners"]):
                continue
            for place in entry["paths"]:
                value = call.arguments[place] if place < len(call.arguments) else None
                session.write(value if isinstance(value, str) else "", word, cap=entry.get("cap"))
        elif name in table["commands"] and _runs_commands(call.owner, table["runners"]):
            _command(call, session, word)
    session.spend(0)


def _is_file_system(owner: str, owners: list[str]) -> bool:
    return any(part in owner for part in owners)


def _runs_commands(owner: str, runners: list[str]) -> bool:
    return not owner or any(part in owner for part in runners)


def _command(call: Call, session: Session, word: str) -> None:
    # The walker of programs calls this module: one of the two imports has to wait.
    from switchyard_core.mutation.shell.programs import run_program  # noqa: PLC0415

    first = call.arguments[0] if call.arguments else None
    second: Any = call.arguments[1] if len(call.arguments) > 1 else None
    if not isinstance(first, str) or not first:
        session.add("unknown", word, "runs a command that cannot be seen")
    elif isinstance(second, list):
        words = [first, *(item if isinstance(item, str) else "{}" for item in second)]
        run_program(words, session.inner(), NO_INPUT)
    else:
        run_text(first, session.inner())
