"""Distributions built from the checkout, and fresh environments to install them into."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """A fresh virtual environment outside the checkout."""

    folder: Path

    def run(self, *command: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run a command of the environment, with nothing of this process's Python settings."""
        return subprocess.run(
            [self._program(command[0]), *command[1:]],
            cwd=cwd or self.folder,
            env=self.variables(),
            capture_output=True,
            text=True,
            check=False,
            timeout=380,
        )

    def install(self, *what: str) -> None:
        """Install distributions; options of pip may be among them."""
        done = self.run("python", "-m", "pip", "install", "--quiet", *what)
        assert done.returncode == 0, done.stderr

    def variables(self) -> dict[str, str]:
        """Return the variables of a person who works in this environment."""
        kept = {n: v for n, v in os.environ.items() if not n.startswith(("PYTHON", "COV", "VIRT"))}
        kept["PATH"] = f"{self.folder / 'bin'}{os.pathsep}{kept.get('PATH', os.defpath)}"
        return kept

    @contextmanager
    def serving(self, policy: Path) -> Iterator[str]:
        """Serve a policy on a free port of loopback; yield its URL."""
        process = subprocess.Popen(
            [self._program("switchyard"), "serve", str(policy), "--port", "0"],
            env=self.variables(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            url = re.search(r"http://127\.0\.0\.1:\d+", line)
            assert url is not None, f"the server did not start: {line}"
            yield url[0]
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=20)

    def _program(self, name: str) -> str:
        return str(self.folder / "bin" / name)


def new_environment(folder: Path) -> Environment:
    """Make an environment that holds pip and nothing else."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    return Environment(folder=folder)


def build(
    kind: str, source: Path, folder: Path, variables: Mapping[str, str] | None = None
) -> Path:
    """Build one distribution in an environment of its own and return its file."""
    done = subprocess.run(
        [sys.executable, "-m", "build", f"--{kind}", "--outdir", str(folder), str(source)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **(variables or {})},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = folder.iterdir()
    return built
