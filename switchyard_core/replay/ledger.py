"""What happened to recordings in one run: how often a call came, what was used."""

from __future__ import annotations

from pathlib import Path

__all__ = ["Ledger"]


class Ledger:
    """Counts the calls of one run.

    Args:
        refresh: Whether the first answer to a call takes the place of those from before the run.
    """

    def __init__(self, *, refresh: bool) -> None:
        self._refresh = refresh
        self._counts: dict[str, int] = {}
        self._written: set[str] = set()
        #: Files that calls were answered from or recorded to.
        self.used: set[Path] = set()

    def count(self, key: str) -> int:
        """Note that a call came; return how often it did, this time included."""
        self._counts[key] = self.seen(key) + 1
        return self._counts[key]

    def uncount(self, key: str) -> None:
        """Take a call back: who tries again after a failure asks for the same answer."""
        self._counts[key] -= 1

    def seen(self, key: str) -> int:
        """Return how often a call came."""
        return self._counts.get(key, 0)

    def stored(self, key: str, file: Path) -> None:
        """Note that an answer was recorded."""
        self.used.add(file)
        self._written.add(key)

    def replaces(self, key: str) -> bool:
        """Return whether the next answer to a call takes the place of those before."""
        return self._refresh and key not in self._written
