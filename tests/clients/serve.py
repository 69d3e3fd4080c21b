"""Start ``switchyard serve`` as a process of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_READY = re.compile(r"\bready on (https?://\S+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A server that runs as a process: its base URL, its number and its log."""

    url: str
    pid: int
    log: Path


@contextmanager
def started(
    text: str,
    folder: Path,
    *,
    before: str = "pass",
    environment: Mapping[str, str] = {},
    arguments: tuple[str, ...] = ("--port", "0"),
) -> Iterator[Served]:
    """Yield a server on this policy; end it by SIGTERM and wait for it.

    Args:
        text: The policy.
        folder: For the policy and the log.
        before: Python statement that its process runs first.
        environment: Further variables, such as keys.
        arguments: Of ``switchyard serve``, besides the policy.

    Raises:
        AssertionError: It was not ready in 60 s, or did not end within 10 s; the log is told.
    """
    config, log = folder / "policy.toml", folder / "serve.log"
    config.write_text(text)
    command = [sys.executable, "-c", f"{before}; from switchyard_core.cli import main; main()"]
    with log.open("w") as output:
        process = subprocess.Popen(
            [*command, "serve", str(config), *arguments],
            env=os.environ | environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        yield Served(url=_wait_until_ready(process, log), pid=process.pid, log=log)
    finally:
        process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise AssertionError(f"serve did not end on SIGTERM:\n{log.read_text()}") from None


def _wait_until_ready(process: subprocess.Popen[bytes], log: Path) -> str:
    end = time.monotonic() + 60
    while time.monotonic() < end and process.poll() is None:
        if found := _READY.search(log.read_text()):
            return found[1].rstrip("/.,)")
        time.sleep(0.02)
    raise AssertionError(f"serve is not ready (exit {process.poll()}):\n{log.read_text()}")
