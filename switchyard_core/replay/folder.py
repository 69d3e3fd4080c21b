"""The folder of recordings: one file per call, found by the key in its name."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from tempfile import NamedTemporaryFile

from switchyard_core.errors import RecordingError, ReplayError
from switchyard_core.replay.recording import Recording

__all__ = ["Folder", "file_name", "recording_files"]

_NAME = re.compile(r"[0-9a-f]{16}(?:-.*)?\.json")
_UNSAFE = re.compile(r"[^A-Za-z0-9._]+")
_LONGEST = 60


def recording_files(directory: Path) -> list[Path]:
    """Return the files that count as recordings, sorted: all JSON files that are not hidden.

    Args:
        directory: The folder; one that is not there has none.
    """
    if not directory.is_dir():
        return []
    return sorted(
        path
        for path in directory.iterdir()
        if path.suffix == ".json" and not path.name.startswith(".")
    )


def file_name(key: str, route: str, role: str) -> str:
    """Return the name of a recording's file.

    Args:
        key: Key of the call.
        route: Name of its route; what no file name may hold is replaced.
        role: What the call is for, likewise.
    """
    parts = (_UNSAFE.sub("_", part).strip("._")[:_LONGEST] for part in (route, role))
    return "-".join((key, *(part or "call" for part in parts))) + ".json"


class Folder:
    """The recordings of a folder; all of them are read at once.

    Args:
        directory: The folder; it is made when the first recording is written.

    Raises:
        ReplayError: It is no folder, or a file in it is no recording, or two are of one call.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._recordings: dict[str, Recording] = {}
        if directory.exists() and not directory.is_dir():
            raise ReplayError(
                f"`{directory}` is a file, and recordings need a folder", path=str(directory)
            )
        for file in recording_files(directory):
            if not _NAME.fullmatch(file.name):
                raise ReplayError(
                    f"`{file}` is not named as a recording is, `<key>-<route>-<role>.json`; the "
                    "folder of recordings holds no other JSON files",
                    path=str(file),
                )
            recording = Recording.read(file)
            other = self._recordings.setdefault(recording.key, recording)
            if other is not recording:
                raise ReplayError(
                    f"`{other.file}` and `{file}` record the same call; remove one of them",
                    path=str(file),
                )

    def __iter__(self) -> Iterator[Recording]:
        yield from self._recordings.values()

    def __len__(self) -> int:
        return len(self._recordings)

    def get(self, key: str) -> Recording | None:
        """Return the recording of a call, ``None`` without one."""
        return self._recordings.get(key)

    def write(self, recording: Recording) -> None:
        """Write a recording, in place of the one of the same call.

        Guarantees:
            Whoever reads the file meanwhile sees the old text or the new one, never a part.

        Raises:
            RecordingError: It cannot be written; the old one is still there.
        """
        before = self._recordings.get(recording.key)
        temporary = ""
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            with NamedTemporaryFile(
                "w",
                encoding="utf-8",
                newline="\n",
                dir=self.directory,
                prefix=".",
                suffix=".tmp",
                delete=False,
            ) as file:
                temporary = file.name
                file.write(recording.dumped())
            # A temporary file is for its owner alone; a recording is an ordinary file.
            Path(temporary).chmod(0o666 & ~_umask())
            Path(temporary).replace(recording.file)
            if before is not None and before.file != recording.file:
                before.file.unlink(missing_ok=True)
        except OSError as error:
            if temporary:
                with contextlib.suppress(OSError):
                    Path(temporary).unlink(missing_ok=True)
            raise RecordingError(
                f"`{recording.file}` cannot be written: {error.strerror}", path=str(recording.file)
            ) from error
        self._recordings[recording.key] = recording


def _umask() -> int:
    """Return the process's mask of permissions; it can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
