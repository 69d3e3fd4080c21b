"""How each real coding agent is pointed at a provider, isolated, started and ended."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.clients.installs import Client, clients
from tests.clients.pages import settings

PROMPT = "The add function in calc.py subtracts. Read the file, fix it, run it, say what you did."
#: What every page tells the user to put where the key goes.
KEY = "sk-my-own-key"
SERVER_KEY = "my-server-key"
#: A client that has not ended after this time is ended.
PATIENCE_S = 100.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Workplace:
    """A scratch repository and a fresh home for one run."""

    repo: Path
    home: Path

    @property
    def calc(self) -> str:
        return (self.repo / "calc.py").read_text()


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """One client in one of the ways in which it can be used.

    Args:
        client: Its name in ``clients.txt``.
        variant: What distinguishes this way.
        page: The page in ``docs/clients`` whose settings it gets.
        section: The section of that page.
        policy: The shipped policy that serves it.
        style: How it writes its calls; see ``calls.py``.
        arguments: Of its command.
        environment: Further variables, such as those that switch off updates.
        stdin: What is typed into it, if the prompt is not an argument.
        prompts: The prompts in it, each answered by a turn of the story.
        history_offset: -1 when it opens with an assistant message of its own.
        server_key: Whether the section names a key of the server.
    """

    client: str
    variant: str
    page: str
    section: str
    policy: str
    style: str
    arguments: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    stdin: str = ""
    prompts: tuple[str, ...] = ()
    history_offset: int = 0
    server_key: bool = False

    @property
    def id(self) -> str:
        return f"{self.client}-{self.variant}"

    @property
    def install(self) -> Client:
        return clients()[self.client]

    def run(self, base_url: str, place: Workplace) -> subprocess.CompletedProcess[str]:
        """Run the client on :data:`PROMPT` until it ends by itself.

        Raises:
            FileNotFoundError: The client is not installed; the text says how.
            subprocess.TimeoutExpired: It did not end; all that it started was ended.
        """
        client = self.install
        if not client.is_installed:
            raise FileNotFoundError(
                f"{client.command}: run `python -m tests.clients.installs {client.name}`"
            )
        told = settings(self.page, self.section, base_url)
        told.write(place.home, place.repo)
        environment = {
            "PATH": f"{client.command.parent}{os.pathsep}{client.path}",
            "HOME": str(place.home),
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            **self.environment,
        }
        command = ["bash", "-ec", f'{told.shell}exec "$0" "$@"', client.command_name]
        try:
            return _run([*command, *self.arguments], environment, place.repo, self.stdin)
        finally:
            end_left_behind(place.home)


def _run(
    command: list[str], environment: dict[str, str], folder: Path, stdin: str
) -> subprocess.CompletedProcess[str]:
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(stdin, timeout=PATIENCE_S)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    return subprocess.CompletedProcess(process.args, process.returncode, output)


def end_left_behind(home: Path) -> None:
    """End the processes, each by its number, that have this home: Cline leaves a daemon."""
    mark = f"HOME={home}\0".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            ours = mark in (folder / "environ").read_bytes() + b"\0"
            if ours:
                os.kill(int(folder.name), signal.SIGKILL)
        except OSError:
            continue
