"""Readers: how the arguments of a call decide its label."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Any, TypeAlias

import msgspec

from switchyard_core.conversation import parse_json
from switchyard_core.mutation.labels import READ_ONLY, Reading, strongest
from switchyard_core.mutation.names import fold_name
from switchyard_core.mutation.patch import read_patch
from switchyard_core.mutation.paths import PathClasses
from switchyard_core.mutation.shell import MAX_COMMAND, new_session, read_argv, read_command
from switchyard_core.mutation.shell.javascript import UNREADABLE, calls_of, scan_javascript
from switchyard_core.mutation.shell.python import scan_python
from switchyard_core.mutation.shell.session import STEPS, TOO_DEEP, TOO_MUCH, Budget, Decided
from switchyard_core.mutation.tables import load_table

__all__ = ["NOT_JSON", "READERS", "CallReader", "Cost", "read_whole"]

#: Maximum depth of wrappers and nested argument objects.
_DEPTH = 6
#: Steps to reach a command, and a call or value inside a wrapper.
_COMMAND = 12
_WRAPPED = 8
# Tuples are the fastest for `isinstance`, with the dictionary first.
_OBJECTS = (dict, Mapping)
_COMMANDS = (str, list, *_OBJECTS)
_NO_COMMAND = Reading(label="unknown", detail="holds no command")
#: What is known of a call whose arguments cannot be read.
NOT_JSON = Reading(label="unknown", detail="the arguments are not JSON")
#: A reading and the steps that it took.
Cost: TypeAlias = tuple[Reading, int]


def read_whole(command: str | list[str], classes: PathClasses, dialect: str) -> Cost:
    """Read a command line or argv within its own budget: it has the same reading in any call."""
    budget = Budget()
    if isinstance(command, str):
        reading = read_command(command, classes, dialect=dialect, budget=budget)
    else:
        reading = read_argv(command, classes, dialect=dialect, budget=budget)
    return reading, STEPS - budget.left


class CallReader(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Reads what the arguments of one call hold."""

    classes: PathClasses  # what written paths mean
    dialect: str  # how a command is read
    tool: str  # name of the tool
    broken: bool  # whether the arguments are text that is not JSON
    #: Reads a command in a dialect, with a memo.
    read_command: Callable[[str, str, PathClasses], Cost]
    budget: Budget  # shared by all commands of the call
    #: Labels a call that is inside this one, by name, arguments and, if the wrapper names one, the
    #: tool's server.
    label_inner: Callable[..., Reading]

    def read(self, reader: str, value: Any) -> Reading:
        """Return what one of :data:`READERS` finds in a value; never raises."""
        if self.broken and reader != "patch":
            return NOT_JSON
        return READERS[reader](self, value)

    def shell(self, value: Any, *, depth: int = 0, several: bool = False) -> Reading:
        """Read the commands in a value.

        A text is a command, a list of texts an argv or (``several``) a list of commands, an object
        holds the command under one of the usual keys.
        """
        if isinstance(value, str):
            return self._command(value)
        keys = load_table("arguments")
        if depth > _DEPTH:
            return Reading(label="unknown", detail=TOO_DEEP)
        if isinstance(value, _OBJECTS):
            for key in keys["command"]:
                command = value.get(key)
                if isinstance(command, str):
                    return self._command(command)
                if command is not None:
                    # Only `commands` holds several; a list under another key is an argv.
                    return self.shell(command, depth=depth + 1, several=key == "commands")
            # Asking for a restart runs nothing.
            return READ_ONLY if value.get("restart") is True else _NO_COMMAND
        if not isinstance(value, list):
            return _NO_COMMAND
        several = several or (not depth and fold_name(self.tool) in keys["list_tools"])
        words = [item for item in value if isinstance(item, str)]
        if len(words) == len(value) and words and not several and _is_program(words[0]):
            return self._command(words)
        return strongest(
            self.shell(item, depth=depth + 1) for item in value if isinstance(item, _COMMANDS)
        )

    def _command(self, command: str | list[str]) -> Reading:
        if not self.budget.spend(_COMMAND):
            return Reading(label="unknown", word="shell", detail=TOO_MUCH)
        if isinstance(command, str):
            reading, steps = self.read_command(command, self.dialect, self.classes)
        else:
            reading, steps = read_whole(command, self.classes, self.dialect)
        self.budget.spend(steps)
        return reading

    def recurse(self, value: Any, depth: int = 0) -> Reading:
        """Label the calls inside a wrapper's arguments."""
        keys = load_table("arguments")
        if depth > _DEPTH:
            return Reading(label="unknown", detail=TOO_DEEP)
        if not self.budget.spend(_WRAPPED):
            return Reading(label="unknown", detail=TOO_MUCH)
        if isinstance(value, list):
            return strongest(self.recurse(item, depth + 1) for item in value)
        if isinstance(value, str) and value.strip():
            # Some models write the inner calls as JSON text.
            try:
                return self.recurse(parse_json(value), depth + 1)
            except ValueError:
                return Reading(label="unknown", detail="the inner calls are not JSON")
        if not isinstance(value, Mapping):
            return READ_ONLY
        for key in keys["inner_name"]:
            name = value.get(key)
            if isinstance(name, str) and name:
                server = _first(value, keys["inner_server"])
                arguments = _first(value, keys["inner_arguments"], {})
                return self.label_inner(
                    name, arguments, server if isinstance(server, str) else None
                )
        inner = [value[key] for key in keys["inner_list"] if key in value]
        return strongest(self.recurse(item, depth + 1) for item in inner)

    def code(self, value: Any) -> Reading:
        """Read JavaScript that calls tools, as Codex's code mode writes it, or a notebook cell.

        It is ``unknown`` when neither a tool call nor a write can be found, unless it only shows
        values.
        """
        text = value
        if isinstance(value, Mapping):
            text = _first(value, load_table("arguments")["code"], "")
        if not isinstance(text, str):
            return Reading(label="unknown", detail="holds no code")
        text = text[:MAX_COMMAND]
        if readings := self._tool_calls(text):
            return strongest(readings)
        if _only_shows(text):
            return READ_ONLY
        session = new_session(self.classes)
        session.word = "code"
        with suppress(Decided):
            # Notebook cells run shell lines behind `!`.
            for line in re.split(r"\r\n?|\n", text):
                if line.startswith("!"):
                    session.read(line[1:], "bash")
            if match := re.match(r"\s*%%(?:bash|sh|script bash)[^\n]*\n", text):
                session.read(text[match.end() :], "bash")
            else:
                # A short script may be valid in both languages; the findings add up.
                scan_python(text, session)
                if not self.budget.spent:
                    scan_javascript(text, session)
        unseen = Reading(label="unknown", word="code", detail="no tool call or write can be seen")
        return strongest([*session.readings, unseen])

    def _tool_calls(self, text: str) -> list[Reading]:
        """Return the labels of the tools that a script calls, up to the first edit."""
        keys = load_table("arguments")
        readings: list[Reading] = []
        for owner, name, arguments, _ in calls_of(text, self.budget):
            if owner.removeprefix("globalThis.") not in keys["code_owners"]:
                continue
            if not name:
                detail = "a computed tool name"
                readings.append(Reading(label="unknown", word="tools[…]", detail=detail))
                continue
            value, known = _readable(arguments[0] if arguments else {})
            reading = self.label_inner(name, value)
            weak = reading.label == "read_only" or reading.detail.endswith(_NO_COMMAND.detail)
            if not known and weak and name in keys["code_commands"]:
                # A command that cannot be read completely is unknown.
                detail = "runs a command that cannot be read whole"
                reading = Reading(label="unknown", word=name, detail=detail)
            readings.append(reading)
            if reading.label == "file_edit":
                break
        if readings and self.budget.spent:
            readings.append(Reading(label="unknown", word="code", detail=TOO_MUCH))
        return readings

    def patch(self, value: Any) -> Reading:
        """Read the files that a patch names."""
        return read_patch(value, self.classes.target_label)


#: What ``reader`` of a rule can name.
READERS: Mapping[str, Callable[[CallReader, Any], Reading]] = MappingProxyType(
    {
        "shell": CallReader.shell,
        "recurse": CallReader.recurse,
        "code": CallReader.code,
        "patch": CallReader.patch,
    }
)


def _first(value: Mapping[str, Any], keys: list[str], default: Any = None) -> Any:
    return next((value[key] for key in keys if key in value), default)


def _is_program(word: str) -> bool:
    """Return whether a word is the first of an argv, not a whole command."""
    return word.startswith("/") or " " not in word.strip()


def _readable(value: Any) -> tuple[Any, bool]:
    """Return the literal arguments of a tool call, and whether all are literal."""
    if value is UNREADABLE:
        return {}, False
    if isinstance(value, dict):
        readable = {key: item for key, item in value.items() if item is not UNREADABLE}
        return readable, len(readable) == len(value)
    return value, True


def _only_shows(text: str) -> bool:
    """Return whether a script calls nothing but functions that show or keep values."""
    outputs = load_table("arguments")["code_outputs"]
    if not any(f"{name}(" in text for name in outputs):
        return False
    budget = Budget()
    calls = list(calls_of(text, budget))
    shown = [owner.partition(".")[0] or name for owner, name, *_ in calls]
    return bool(calls) and not budget.spent and all(name in outputs for name in shown)
