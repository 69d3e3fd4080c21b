"""The three tools that the programs of this folder give to a model."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

_STRING = {"type": "string"}


def read_file(path: str) -> str:
    """Return the text of a file."""
    return Path(path).read_text()


def edit_file(path: str, old: str, new: str) -> str:
    """Replace a text in a file."""
    file = Path(path)
    file.write_text(file.read_text().replace(old, new))
    return "done"


def run_command(command: str) -> str:
    """Run a shell command and return its output."""
    return subprocess.run(command, shell=True, capture_output=True, text=True, check=True).stdout


TOOLS = {tool.__name__: tool for tool in (read_file, edit_file, run_command)}
SCHEMAS = {
    name: {
        "type": "object",
        "properties": dict.fromkeys(arguments, _STRING),
        "required": arguments,
        "additionalProperties": False,
    }
    for name, arguments in {
        "read_file": ["path"],
        "edit_file": ["path", "old", "new"],
        "run_command": ["command"],
    }.items()
}


def call(name: str, arguments: str | dict[str, Any]) -> str:
    """Run one call of a model."""
    given = json.loads(arguments) if isinstance(arguments, str) else arguments
    return TOOLS[name](**given)
