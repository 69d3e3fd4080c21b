"""Install real coding agents, pinned: ``python -m tests.clients.installs pi codex`` or a stage.

An npm package has a folder of its own per version; packages of PyPI that name the same virtual
environment share it. A second run finds both. Exit 77, with a loud line per client, where this
machine has no suitable Node or cannot reach a registry: that is no fault of the project. Any
other failure, such as a version that is not there, exits 1.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

NOT_RUN = 77
#: The stages of ``.ci/run``; the second one has all clients of the first.
STAGES = ("clients", "clients-all")
_TABLE = Path(__file__).with_name("clients.txt")
#: Where Node of this machine is too old, this one is installed like a client.
_NODE = "22.23.3"
_OUT_OF_REACH = re.compile(
    r"ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|EIDLETIMEOUT"
    r"|ERR_SOCKET_TIMEOUT|NewConnectionError|ConnectTimeoutError|NameResolutionError"
)


class UnreachableError(Exception):
    """This machine cannot install clients; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """One pinned client of ``clients.txt``."""

    name: str
    stage: str
    registry: str
    package: str
    version: str
    needs: str
    command_name: str

    @property
    def folder(self) -> Path:
        """Where it is installed; a virtual environment is named after all that it contains."""
        if self.registry == "npm":
            return _cache() / f"{self.name}-{self.version}"
        pins = " ".join(sorted(self.pins))
        return _cache() / f"{self.needs}-{hashlib.sha256(pins.encode()).hexdigest()[:8]}"

    @property
    def pins(self) -> list[str]:
        """What the registry's client installs there."""
        if self.registry == "npm":
            return [f"{self.package}@{self.version}"]
        shared = [c for c in clients().values() if (c.registry, c.needs) == ("pypi", self.needs)]
        return [f"{c.package}=={c.version}" for c in shared]

    @property
    def command(self) -> Path:
        inside = "node_modules/.bin" if self.registry == "npm" else "bin"
        return self.folder / inside / self.command_name

    @property
    def is_installed(self) -> bool:
        return self.command.exists()

    @property
    def path(self) -> str:
        """``PATH`` for a run: with the Node that it needs first."""
        own = [str(_own_node())] if self.registry == "npm" and not _node_suffices(self) else []
        return os.pathsep.join([*own, os.environ["PATH"]])


def clients() -> dict[str, Client]:
    """Return the pinned clients by name."""
    names = ("name", "stage", "registry", "package", "version", "needs", "command_name")
    rows = [line.split() for line in _TABLE.read_text().splitlines() if line[:1] not in ("#", "")]
    return {row[0]: Client(**dict(zip(names, row, strict=True))) for row in rows}


def expand(words: list[str]) -> list[str]:
    """Return names of clients, with those of a stage in place of its name."""
    names = []
    for word in words:
        within = STAGES[: STAGES.index(word) + 1] if word in STAGES else ()
        names += [c.name for c in clients().values() if c.stage in within] or [word]
    return names


def install(client: Client) -> None:
    """Install one client unless it is there.

    Raises:
        UnreachableError: No Node, one that is too old, or no registry.
        subprocess.CalledProcessError: npm or pip failed for another reason; its text was printed.
    """
    if client.is_installed:
        return
    # npm builds in place: only a finished folder gets the name that later runs look for.
    if client.registry == "npm":
        if not _node_suffices(client) and not (_own_node() / "node").exists():
            _fill(_cache() / f"node-{_NODE}", [f"node@{_NODE}"])
        _fill(client.folder, client.pins)
        return
    # Commands of a virtual environment name its folder, so it cannot be renamed.
    try:
        _run([sys.executable, "-m", "venv", "--clear", str(client.folder)], 120)
        _run([str(client.folder / "bin" / "pip"), "install", "-q", *client.pins], 900)
    except BaseException:
        shutil.rmtree(client.folder, ignore_errors=True)
        raise


def _fill(folder: Path, pins: list[str]) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise UnreachableError("there is no npm on this machine")
    scratch = folder.with_name(f"{folder.name}.{os.getpid()}.part")
    scratch.mkdir(parents=True)
    command = [npm, "install", "--prefix", str(scratch), "--no-audit", "--no-fund"]
    command += ["--loglevel=error", "--fetch-retries=1", "--fetch-timeout=60000", *pins]
    try:
        _run(command, 400)
        shutil.rmtree(folder, ignore_errors=True)
        scratch.rename(folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _run(command: list[str], seconds: float) -> None:
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
            timeout=seconds,
        )
    except subprocess.TimeoutExpired as error:
        raise UnreachableError(f"{command[0]} did not finish in {seconds:.0f} s") from error
    if done.returncode != 0:
        print(done.stdout + done.stderr, file=sys.stderr)
        if _OUT_OF_REACH.search(done.stderr):
            raise UnreachableError("the registry cannot be reached")
        done.check_returncode()


def _cache() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("SWITCHYARD_CLIENTS_CACHE") or Path(cache, "switchyard-clients"))


def _own_node() -> Path:
    return _cache() / f"node-{_NODE}" / "node_modules" / "node" / "bin"


def _node_suffices(client: Client) -> bool:
    node = shutil.which("node")
    if node is None:
        return False
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout
    return _numbers(version) >= _numbers(client.needs)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))


def main(names: list[str]) -> int:
    """Install the named clients, or those of a stage, and return the exit code."""
    known = clients()
    wanted = expand(names)
    unknown = [name for name in wanted if name not in known]
    if unknown or not wanted:
        print(f"unknown clients {unknown}; known: {', '.join(known)}", file=sys.stderr)
        return 2
    results = [_report(known[name]) for name in wanted]
    if left := [name for name in known if name not in wanted]:
        print(f"not asked for: {', '.join(left)}")
    return 1 if 1 in results else max(results)


def _report(client: Client) -> int:
    try:
        install(client)
    except UnreachableError as error:
        bar = "!" * 72
        print(f"{bar}\n!! {client.name} NOT RUN: {error}\n{bar}", file=sys.stderr)
        return NOT_RUN
    except subprocess.CalledProcessError as error:
        print(f"{client.name} could not be installed (exit {error.returncode})", file=sys.stderr)
        return 1
    print(f"{client.name} {client.version}: {client.command}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
