"""Runs something again whenever files change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

__all__ = ["INTERVAL_S", "stamps", "watch"]

#: Seconds between two looks at the files.
INTERVAL_S = 0.5


def stamps(folders: Iterable[Path]) -> Mapping[str, tuple[int, int]]:
    """Return time of change and size of each TOML, JSON and JSONL file below some folders.

    A file that goes away meanwhile is left out.
    """
    found: dict[str, tuple[int, int]] = {}
    for folder in folders:
        for path in sorted(folder.rglob("*.*")):
            if path.suffix not in {".toml", ".json", ".jsonl"}:
                continue
            try:
                state = path.stat()
            except OSError:
                continue
            found[str(path)] = (state.st_mtime_ns, state.st_size)
    return found


def watch(
    run: Callable[[], int],
    look: Callable[[], Mapping[str, tuple[int, int]]],
    sleep: Callable[[float], object],
    *,
    looks: int | None = None,
) -> int:
    """Run, then run again after each change, until interrupted.

    Args:
        run: Does the work and returns an exit code.
        look: Returns the state of the files.
        sleep: Waits for some seconds.
        looks: Most looks at the files, ``None`` for no end.

    Returns:
        The exit code of the last run.
    """
    before = look()
    code = run()
    try:
        while looks is None or looks > 0:
            sleep(INTERVAL_S)
            looks = None if looks is None else looks - 1
            now = look()
            if now != before:
                # What changes while it runs is seen at the next look.
                before = now
                code = run()
    except KeyboardInterrupt:
        pass
    return code
