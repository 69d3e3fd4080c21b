"""Run a command where only loopback exists: ``python -m tests.clients.offline COMMAND...``.

A network namespace of its own proves that neither a client nor the server needs, or reaches,
anything but the pretend provider. Where the system allows no namespace, the command runs
without one and this says so.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import struct
import subprocess
import sys

_SET_FLAGS = 0x8914  # SIOCSIFFLAGS of Linux
_UP_AND_RUNNING = 0x41  # IFF_UP | IFF_RUNNING
_INSIDE = "SWITCHYARD_OFFLINE"


def namespace_command() -> list[str] | None:
    """Return the command prefix that opens a network namespace here, or ``None``."""
    unshare = shutil.which("unshare")
    for options in (["--net"], ["--map-root-user", "--net"]) if unshare else ():
        prefix = [str(unshare), *options]
        if subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode == 0:
            return prefix
    return None


def raise_loopback() -> None:
    """Switch on the loopback device of the namespace this process is in."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, _SET_FLAGS, struct.pack("16sH14x", b"lo", _UP_AND_RUNNING))


def main(command: list[str]) -> None:
    """Replace this process by the command, in a namespace if one can be had."""
    if os.environ.get(_INSIDE):
        raise_loopback()
        os.execvp(command[0], command)
    prefix = namespace_command()
    if prefix is None:
        print("no network namespace here: contacts elsewhere would go unnoticed", file=sys.stderr)
        os.execvp(command[0], command)
    os.environ[_INSIDE] = "1"
    again = [*prefix, sys.executable, "-m", "tests.clients.offline", *command]
    os.execvp(again[0], again)


if __name__ == "__main__":
    main(sys.argv[1:])
