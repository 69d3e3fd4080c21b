"""The folder of recordings: one file per call, found by the key in its name."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from tempfile import NamedTemporaryFile

from switchyard_core.errors import Finding, RecordingError, ReplayError
from switchyard_core.replay.recording import Recording

__all__ = ["Folder", "file_name", "holds_recordings", "recording_files", "recording_findings"]

_NAME = re.compile(r"[0-9a-f]{16}(?:-.*)?\.json")
_UNSAFE = re.compile(r"[^A-Za-z0-9._]+")
_LONGEST = 60


def recording_files(directory: Path) -> list[Path]:
    """Return the files that count as recordings, sorted: all JSON files that are not hidden."""
    if not directory.is_dir():
        return []
    return sorted(
        path
        for path in directory.iterdir()
        if path.suffix == ".json" and not path.name.startswith(".")
    )


def holds_recordings(directory: Path) -> bool:
    """Return whether something is a folder with a file in it that is named as a recording."""
    return any(_NAME.fullmatch(file.name) for file in recording_files(directory))


def recording_findings(directory: Path) -> tuple[Finding, ...]:
    """Return all that is wrong with a folder of recordings."""
    try:
        Folder(directory)
    except ReplayError as error:
        return error.findings
    return ()


def file_name(key: str, route: str, role: str) -> str:
    """Return the name of a recording's file."""
    parts = (_UNSAFE.sub("_", part).strip("._")[:_LONGEST] for part in (route, role))
    return "-".join((key, *(part or "call" for part in parts))) + ".json"


class Folder:
    """The recordings of a folder; a ReplayError carries all findings of all its files."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._recordings: dict[str, Recording] = {}
        if directory.exists() and not directory.is_dir():
            raise ReplayError(
                f"`{directory}` is a file, not a folder of recordings", path=str(directory)
            )
        findings = [each for file in recording_files(directory) for each in self._read(file)]
        if findings:
            told = "\n".join(finding.render() for finding in findings)
            raise ReplayError(
                f"the folder of recordings `{directory}` cannot be used:\n{told}",
                path=findings[0].file,
                findings=findings,
            )

    def _read(self, file: Path) -> Iterator[Finding]:
        """Take a file in; what is wrong with it is yielded."""
        if not _NAME.fullmatch(file.name):
            yield _misnamed(
                file,
                f"`{file.name}` is not named `<key>-<route>-<role>.json`, as recordings are",
                "move it: the folder of recordings must not contain other JSON files",
            )
            return
        recording, findings = Recording.read(file)
        yield from findings
        if recording is None:
            return
        other = self._recordings.setdefault(recording.key, recording)
        if other is not recording:
            names = f"`{other.file.name}` and `{file.name}`"
            yield _misnamed(file, f"{names} record the same call", "remove one of them")

    def __iter__(self) -> Iterator[Recording]:
        yield from self._recordings.values()

    def __len__(self) -> int:
        return len(self._recordings)

    def get(self, key: str) -> Recording | None:
        """Return the recording of a call, ``None`` without one."""
        return self._recordings.get(key)

    def write(self, recording: Recording) -> None:
        """Replace the recording of a call; a reader sees the old text or the new, never a part."""
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


def _misnamed(file: Path, message: str, fix: str) -> Finding:
    return Finding(code="SY252", message=message, file=str(file), fix=fix)


def _umask() -> int:
    """Return the process's mask of permissions; it can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
