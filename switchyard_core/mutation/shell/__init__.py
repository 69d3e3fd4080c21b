"""The ``shell`` reader: what a command line writes."""

from __future__ import annotations

from switchyard_core.mutation.shell.command import read_argv, read_command

__all__ = ["read_argv", "read_command"]
