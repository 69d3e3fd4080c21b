"""Readers: how the arguments of a call decide its label."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec

from switchyard_core.conversation import ToolCall, parse_json
from switchyard_core.mutation.budget import STEPS, TOO_MUCH, Budget
from switchyard_core.mutation.labels import READ_ONLY, Reading, strongest
from switchyard_core.mutation.names import fold_name
from switchyard_core.mutation.patch import read_patch
from switchyard_core.mutation.paths import PathClasses
from switchyard_core.mutation.script import read_code
from switchyard_core.mutation.shell import read_argv, read_command
from switchyard_core.mutation.shell.quick import may_be_windows, only_reads
from switchyard_core.mutation.tables import load_table

__all__ = [
    "Cost",
    "ReaderContext",
    "command_cost",
    "only_command",
    "plain_arguments",
    "read",
    "reads_only",
]

#: How deep wrappers and nested argument objects are followed.
_DEPTH = 6
#: Steps that it takes to come to a command, and to a call or value inside a wrapper.
_COMMAND = 12
_WRAPPED = 8
#: A reading and the steps that it took.
Cost: TypeAlias = tuple[Reading, int]

_UNAFFORDED = Reading(label="unknown", word="shell", detail=TOO_MUCH)
# A union would be built for every look.
_TEXTS = (str, bytes)
_object = msgspec.json.Decoder(dict[str, Any]).decode
_SHELLS = ("bash", "sh", "/bin/bash", "/bin/sh")
_SHELL_FLAGS = ("-lc", "-c")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderContext:
    """What a reader may use.

    Args:
        classes: What written paths mean.
        dialect: How a command is read.
        tool: Name of the tool.
        broken: Whether the arguments are text that is no JSON.
        read_command: Reads a command in a dialect, or remembers what that gave.
        budget: What all commands of the call may take together, not to read ever more of them.
        recurse: Labels a call that is inside this one, by name, arguments and, if the wrapper
            names one, the tool's server.
    """

    classes: PathClasses
    dialect: str
    tool: str
    broken: bool
    read_command: Callable[[str, str], Cost]
    budget: Budget
    recurse: Callable[..., Reading]


def read(reader: str, value: Any, context: ReaderContext) -> Reading:
    """Return what a reader finds in a value; never raises.

    Args:
        reader: ``shell``, ``recurse``, ``code`` or ``patch``.
        value: What the rule's ``command`` path found, or the call's whole arguments.
        context: Path classes and the way back into the rules.
    """
    if reader == "patch":
        return read_patch(value, context.classes.target_label)
    if context.broken:
        return Reading(label="unknown", detail="the arguments are no JSON")
    if reader == "shell":
        return _read_shell(value, context)
    if reader == "recurse":
        return _read_wrapper(value, context, 0)
    return _read_code(value, context)


def plain_arguments(call: ToolCall) -> dict[str, Any] | None:
    """Return the arguments of a call when they are a JSON object, as nearly all are.

    Returns:
        ``None`` says nothing: then :attr:`ToolCall.arguments` tells what they are.
    """
    source = call.source
    if call.kind == "custom" or not isinstance(source, _TEXTS):
        return None
    try:
        return _object(source)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


def only_command(arguments: Mapping[str, Any]) -> Any:
    """Return what the shell reader takes for the command in a call's arguments, if anything."""
    for key in load_table("arguments")["command"]:
        if key in arguments:
            return arguments[key]
    return None


def reads_only(command: Any, dialect: str) -> bool:
    """Tell at a glance whether a shell call is one of those that certainly change nothing.

    Args:
        command: As :func:`only_command` returns it.
        dialect: As the rule gives it.

    Returns:
        ``False`` says nothing: then the call has to be read.
    """
    if isinstance(command, list):
        # The argv of a shell, as in `["bash", "-lc", "ls"]`.
        if len(command) != 3 or command[0] not in _SHELLS or command[1] not in _SHELL_FLAGS:
            return False
        command, dialect = command[2], "bash"
    if not isinstance(command, str) or dialect not in {"auto", "bash"}:
        return False
    return only_reads(command) and (dialect == "bash" or not may_be_windows(command))


def _read_shell(value: Any, context: ReaderContext) -> Reading:
    if _holds_no_command(value):
        return Reading(label="unknown", detail="holds no command")
    if isinstance(value, list) and fold_name(context.tool) in load_table("arguments")["list_tools"]:
        return strongest(_all_readings(value, context, 1))
    return strongest(_shell_readings(value, context, 0))


def _holds_no_command(value: Any) -> bool:
    """Whether a shell call cannot be read; asking for a restart runs nothing."""
    if isinstance(value, Mapping):
        commands = [value[key] for key in load_table("arguments")["command"] if key in value]
        return value.get("restart") is not True and all(_holds_no_command(c) for c in commands)
    return not isinstance(value, str | list)


def _shell_readings(value: Any, context: ReaderContext, depth: int) -> Iterator[Reading]:
    """Yield the reading of every command in a value.

    A text is a command, a list of texts an argv or a list of commands, an object holds the
    command under one of the usual keys.
    """
    if depth > _DEPTH:
        yield Reading(label="unknown", detail="nested too deeply")
    elif isinstance(value, str):
        yield _remembered(value, context)
    elif isinstance(value, Mapping):
        for key in load_table("arguments")["command"]:
            if key in value:
                inner = value[key]
                # Only `commands` holds several; a list under another key is an argv.
                several = key == "commands" and isinstance(inner, list)
                yield from _all_readings(inner if several else [inner], context, depth + 1)
                return
    elif isinstance(value, list):
        words = [item for item in value if isinstance(item, str)]
        if len(words) == len(value) and words and not _is_list_of_commands(words):
            yield _argv_reading(words, context)
            return
        yield from _all_readings(value, context, depth + 1)


def _all_readings(values: list[Any], context: ReaderContext, depth: int) -> Iterator[Reading]:
    for item in values:
        if context.budget.spent:
            yield _UNAFFORDED
            return
        yield from _shell_readings(item, context, depth)


def _is_list_of_commands(words: list[str]) -> bool:
    """Tell a list of whole commands from an argv: a program's name holds no blank."""
    return " " in words[0].strip() and not words[0].startswith("/")


def _remembered(command: str, context: ReaderContext) -> Reading:
    """Read one command of a call, unless those before it took too much.

    A command has the same reading in any call: it is read within a budget of its own.
    """
    if not context.budget.spend(_COMMAND):
        return _UNAFFORDED
    reading, steps = context.read_command(command, context.dialect)
    context.budget.spend(steps)
    return reading


def command_cost(command: str, classes: PathClasses, dialect: str, *, looked: bool = False) -> Cost:
    """Read one command within a budget of its own; return what was found and the steps.

    Args:
        command: The text.
        classes: What written paths mean.
        dialect: How it is read.
        looked: Whether :func:`reads_only` said no.
    """
    budget = Budget()
    reading = read_command(command, classes, dialect=dialect, budget=budget, looked=looked)
    return reading, STEPS - budget.left


def _argv_reading(words: list[str], context: ReaderContext) -> Reading:
    if not context.budget.spend(_COMMAND):
        return _UNAFFORDED
    budget = Budget()
    reading = read_argv(words, context.classes, dialect=context.dialect, budget=budget)
    context.budget.spend(STEPS - budget.left)
    return reading


def _read_wrapper(value: Any, context: ReaderContext, depth: int) -> Reading:
    """Label the calls inside a wrapper's arguments."""
    keys = load_table("arguments")
    if depth > _DEPTH:
        return Reading(label="unknown", detail="nested too deeply")
    if not context.budget.spend(_WRAPPED):
        return Reading(label="unknown", detail=TOO_MUCH)
    if isinstance(value, list):
        return strongest(_read_wrapper(item, context, depth + 1) for item in value)
    if isinstance(value, str) and value.strip():
        # Some models write the inner calls as JSON text.
        try:
            return _read_wrapper(parse_json(value), context, depth + 1)
        except ValueError:
            return Reading(label="unknown", detail="the inner calls are no JSON")
    if not isinstance(value, Mapping):
        return READ_ONLY
    for key in keys["inner_name"]:
        name = value.get(key)
        if isinstance(name, str) and name:
            arguments: Any = next((value[k] for k in keys["inner_arguments"] if k in value), {})
            server = next((value[k] for k in keys["inner_server"] if k in value), None)
            return context.recurse(name, arguments, server if isinstance(server, str) else None)
    inner = [value[key] for key in keys["inner_list"] if key in value]
    return strongest(_read_wrapper(item, context, depth + 1) for item in inner)


def _read_code(value: Any, context: ReaderContext) -> Reading:
    text = value
    if isinstance(value, Mapping):
        text = next((value[key] for key in load_table("arguments")["code"] if key in value), "")
    if not isinstance(text, str):
        return Reading(label="unknown", detail="holds no code")
    return read_code(text, context.recurse, context.classes, context.budget)
