"""Reads one command line or argv in the dialect that its tool, program or words show."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress

from switchyard_core.mutation.budget import Budget
from switchyard_core.mutation.labels import READ_ONLY, Reading, label_rank, strongest
from switchyard_core.mutation.paths import PathClasses
from switchyard_core.mutation.shell.bash import run_bash
from switchyard_core.mutation.shell.powershell import is_powershell, run_powershell
from switchyard_core.mutation.shell.programs import run_program
from switchyard_core.mutation.shell.quick import may_be_windows, only_reads
from switchyard_core.mutation.shell.session import NO_INPUT, Decided, Session
from switchyard_core.mutation.shell.windows_cmd import is_cmd, run_cmd

__all__ = ["MAX_COMMAND", "read_argv", "read_command"]

#: Characters of a command that are read; the rest of a longer one is not.
MAX_COMMAND = 256 * 1024

_WRAPPED = re.compile(r"^\s*(?:\S*[\\/])?(?:cmd|powershell|pwsh)(?:\.exe)?\s", re.IGNORECASE)


def read_command(
    command: str,
    classes: PathClasses,
    *,
    dialect: str = "auto",
    budget: Budget | None = None,
    looked: bool = False,
) -> Reading:
    """Return the strongest effect of a command line; never raises.

    Args:
        command: The text.
        classes: What written paths mean.
        dialect: ``bash``, ``powershell``, ``cmd``, or ``auto`` to tell by the words.
        budget: Pays for the reading; tells the caller what it took.
        looked: Whether the caller knows already that it is no plain read.
    """
    text = command[:MAX_COMMAND]
    if dialect == "auto":
        dialect = _dialect(text)
    if dialect == "bash" and not looked and only_reads(text):
        return READ_ONLY
    session = Session(classes=classes, budget=budget or Budget())
    try:
        with suppress(Decided):
            if dialect == "powershell":
                run_powershell(text, session)
            elif dialect == "cmd":
                run_cmd(text, session)
            else:
                run_bash(text, session)
    except RecursionError:
        session.add("unknown", "shell", "nested too deeply")
    return _result(session, truncated=len(command) > MAX_COMMAND)


def read_argv(
    words: Sequence[str],
    classes: PathClasses,
    *,
    dialect: str = "auto",
    budget: Budget | None = None,
) -> Reading:
    """Return the strongest effect of a program and its arguments; never raises.

    Args:
        words: As given to the operating system, such as ``["bash", "-lc", SCRIPT]``.
        classes: What written paths mean.
        dialect: As for :func:`read_command`; a list of one word is a command line.
        budget: As for :func:`read_command`.
    """
    if len(words) == 1:
        return read_command(words[0], classes, dialect=dialect, budget=budget)
    session = Session(classes=classes, budget=budget or Budget())
    try:
        with suppress(Decided):
            if is_powershell(words[0]):
                run_powershell(" ".join(words), session)
            else:
                run_program(list(words), session, NO_INPUT)
    except RecursionError:
        session.add("unknown", "shell", "nested too deeply")
    return _result(session, truncated=False)


def _result(session: Session, *, truncated: bool) -> Reading:
    reading = strongest(session.readings)
    if not truncated:
        return reading
    note = f"only the first {MAX_COMMAND // 1024} KiB were read"
    if label_rank(reading.label) > label_rank("unknown"):
        return Reading(label="unknown", word=reading.word, detail=note)
    return Reading(label=reading.label, word=reading.word, detail=f"{reading.detail}; {note}")


def _dialect(text: str) -> str:
    if not may_be_windows(text):
        return "bash"
    if _WRAPPED.match(text):
        return "bash" if not re.match(r"\s*\S*cmd", text, re.IGNORECASE) else "cmd"
    if is_powershell(text):
        return "powershell"
    return "cmd" if is_cmd(text) else "bash"
