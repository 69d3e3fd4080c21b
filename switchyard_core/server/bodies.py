"""Keeping bodies as files, when the operator asks for it."""

from __future__ import annotations

import os
import re
from pathlib import Path

__all__ = ["BodyLog"]

_NAME = re.compile(r"(\d+)-(?:in|out).*\.json")


class BodyLog:
    """Writes each request's body as it came and as it was sent, readable by the owner only.

    Args:
        folder: Where ``<n>-in.json`` and ``<n>-out.json`` are written; made if it is not
            there. Numbers go on after those of an earlier run. A further try of one request is
            ``<n>-out-2.json``.

    Raises:
        OSError: The folder cannot be made or read.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = [match for path in folder.iterdir() if (match := _NAME.fullmatch(path.name))]
        self._folder = folder
        self._number = max((int(match[1]) for match in found), default=0)

    def incoming(self, body: bytes) -> int:
        """Write a caller's body and return the number of its request."""
        self._number += 1
        self._write(f"{self._number}-in.json", body)
        return self._number

    def outgoing(self, number: int, tries: int, body: bytes) -> None:
        """Write an outgoing body; ``tries`` counts from 1."""
        self._write(_out(number, tries), body)

    def unsent(self, number: int, tries: int) -> None:
        """Take an outgoing body back: the call failed before any of it was sent."""
        (self._folder / _out(number, tries)).unlink(missing_ok=True)

    def _write(self, name: str, body: bytes) -> None:
        # Created with its mode, so that nobody else can open it in between.
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        descriptor = os.open(self._folder / name, flags, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(body)


def _out(number: int, tries: int) -> str:
    return f"{number}-out.json" if tries == 1 else f"{number}-out-{tries}.json"
