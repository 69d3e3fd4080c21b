"""Install real coding agents by npm, pinned: ``python -m tests.clients.installs pi codex``.

Each goes into a folder of its own per version, so a second run finds it. Exit 77, with a loud
line, where this machine has no suitable Node or cannot reach the registry: that is no fault
of the project. Any other failure, such as a version that is not there, exits 1.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

NOT_RUN = 77
_TABLE = Path(__file__).with_name("clients.txt")
_OUT_OF_REACH = re.compile(
    r"ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|EIDLETIMEOUT"
    r"|ERR_SOCKET_TIMEOUT"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """One pinned client of ``clients.txt``."""

    name: str
    package: str
    version: str
    smallest_node: tuple[int, ...]

    @property
    def folder(self) -> Path:
        cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        root = Path(os.environ.get("SWITCHYARD_CLIENTS_CACHE") or Path(cache, "switchyard-clients"))
        return root / f"{self.name}-{self.version}"

    @property
    def command(self) -> Path:
        return self.folder / "node_modules" / ".bin" / self.name

    @property
    def is_installed(self) -> bool:
        return self.command.exists()


class UnreachableError(Exception):
    """This machine cannot install clients; the text says why."""


def clients() -> dict[str, Client]:
    """Return the pinned clients by name."""
    rows = [line.split() for line in _TABLE.read_text().splitlines() if line[:1] not in ("#", "")]
    return {
        name: Client(
            name=name, package=package, version=version, smallest_node=_numbers(smallest_node)
        )
        for name, package, version, smallest_node in rows
    }


def install(client: Client) -> None:
    """Install one client unless it is there.

    Raises:
        UnreachableError: No Node, one that is too old, or no registry.
        subprocess.CalledProcessError: npm failed for another reason; its text was printed.
    """
    if client.is_installed:
        return
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        raise UnreachableError("there is no node and npm on this machine")
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout
    if _numbers(version.strip().lstrip("v")) < client.smallest_node:
        wanted = ".".join(map(str, client.smallest_node))
        raise UnreachableError(f"{client.name} needs Node {wanted}, this is {version.strip()}")
    # npm builds in place: only a finished folder gets the name that later runs look for.
    scratch = client.folder.with_name(f"{client.folder.name}.{os.getpid()}.part")
    scratch.mkdir(parents=True)
    command = [npm, "install", "--prefix", str(scratch), "--no-audit", "--no-fund"]
    command += ["--loglevel=error", "--fetch-retries=1", "--fetch-timeout=60000"]
    try:
        done = subprocess.run(
            [*command, f"{client.package}@{client.version}"],
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
            timeout=400,
        )
        if done.returncode != 0:
            print(done.stdout + done.stderr, file=sys.stderr)
            if _OUT_OF_REACH.search(done.stderr):
                raise UnreachableError("the npm registry cannot be reached")
            done.check_returncode()
        shutil.rmtree(client.folder, ignore_errors=True)
        scratch.rename(client.folder)
    except subprocess.TimeoutExpired as error:
        raise UnreachableError("npm did not finish in 400 s") from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def main(names: list[str]) -> int:
    """Install the named clients and return the exit code."""
    known = clients()
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        print(f"unknown clients {unknown}; known: {', '.join(known)}", file=sys.stderr)
        return 2
    for name in names:
        try:
            install(known[name])
        except UnreachableError as error:
            bar = "!" * 72
            print(f"{bar}\n!! real clients NOT RUN: {error}\n{bar}", file=sys.stderr)
            return NOT_RUN
        except subprocess.CalledProcessError as error:
            print(f"npm could not install {name} (exit {error.returncode})", file=sys.stderr)
            return 1
        print(f"{name} {known[name].version}: {known[name].command}")
    return 0


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
