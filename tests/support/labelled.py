"""Commands under the label that they should get, and those that get another one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from switchyard_core.mutation.paths import PathClasses
from switchyard_core.mutation.shell import read_command


def mislabelled(
    table: Mapping[str, Iterable[str]], dialect: str = "auto"
) -> list[tuple[str, str, str]]:
    """Return command, expected label and label of every command that gets another label."""
    classes = PathClasses()
    return [
        (command, expected, got)
        for expected, commands in table.items()
        for command in commands
        if (got := read_command(command, classes, dialect=dialect).label) != expected
    ]
