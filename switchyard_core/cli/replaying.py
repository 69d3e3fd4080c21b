"""The options ``--record`` and ``--replay``, for every command that calls models."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from switchyard_core.replay import Replay

__all__ = ["replay_options", "unused_note"]

_FOLDER = click.Path(file_okay=False, path_type=Path)


def replay_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command ``--record DIR`` and ``--replay DIR``, and a keyword argument ``replay``.

    Commands of plugins may use it too. ``replay`` is a :class:`~switchyard_core.Replay` for
    ``Switchyard.from_policy``, or ``None`` without either option. Both options, or an unusable
    folder, end the command with exit code 2.
    """

    @click.option(
        "--replay",
        "replay_folder",
        type=_FOLDER,
        metavar="DIR",
        help="Answer calls to models from recordings alone.",
    )
    @click.option(
        "--record",
        "record_folder",
        type=_FOLDER,
        metavar="DIR",
        help="Record calls to models; recorded ones are not sent.",
    )
    @functools.wraps(command)
    def with_replay(
        *arguments: Any, record_folder: Path | None, replay_folder: Path | None, **named: Any
    ) -> Any:
        return command(*arguments, replay=_replay(record_folder, replay_folder), **named)

    return with_replay


def unused_note(replay: Replay | None) -> str:
    """Return a note about recordings that were not used, ``""`` if all were."""
    unused = replay.unused() if replay is not None else ()
    if not unused:
        return ""
    word = "recording was" if len(unused) == 1 else "recordings were"
    return "\n".join([f"{len(unused)} {word} not used:", *(f"  {path}" for path in unused)])


def _replay(record: Path | None, replay: Path | None) -> Replay | None:
    from switchyard_core.errors import ReplayError  # noqa: PLC0415  # fast --help
    from switchyard_core.replay import Replay  # noqa: PLC0415  # fast --help

    if record is not None and replay is not None:
        raise click.UsageError("--record and --replay exclude each other: give one of them")
    folder = record if record is not None else replay
    if folder is None:
        return None
    advice = f"record it by running this with `--record {folder}`"
    try:
        return Replay(folder, "replay" if record is None else "record", advice=advice)
    except ReplayError as error:
        raise click.UsageError(error.message) from error
