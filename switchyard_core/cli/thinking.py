"""A sign of life on a terminal while a model works."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress

__all__ = ["Thinking", "thinking"]


class Thinking:
    """What :func:`thinking` gives: says what goes on, and stops before something is printed."""

    def __init__(self) -> None:
        self._progress: Progress | None = None

    def show(self, what: str) -> None:
        """Show a few words, such as ``planning``, with the seconds since then."""
        self.stop()
        if not sys.stderr.isatty():
            return
        from rich.console import Console  # noqa: PLC0415  # fast --help
        from rich.progress import Progress, SpinnerColumn, TimeElapsedColumn  # noqa: PLC0415  # as above

        self._progress = Progress(
            SpinnerColumn(),
            "{task.description}",
            TimeElapsedColumn(),
            console=Console(stderr=True),
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._progress.add_task(what, total=None)
        self._progress.start()

    def stop(self) -> None:
        """Remove the words."""
        if self._progress is not None:
            self._progress.stop()
        self._progress = None


@contextmanager
def thinking() -> Iterator[Thinking]:
    """Show what goes on and for how long, if standard error is a terminal; removed at the end.

    Commands of plugins may use it too.
    """
    shown = Thinking()
    try:
        yield shown
    finally:
        shown.stop()
