"""Start ``switchyard serve`` as a process of its own, on a policy for one wire format."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.clients.agents import ALIAS, ROUTE
from tests.clients.scenario import EXECUTOR, INSTRUCTION, PLANNER

PROVIDER_KEY = "provider-key-not-secret"
_READY = re.compile(r"\bready on (https?://\S+)")


def policy(wire_format: str, provider_url: str) -> str:
    """Return the policy: plan on one model of the provider, execute on another."""
    suffix = "" if wire_format == "anthropic_messages" else "/v1"
    return f"""
schema_version = 1

[llm_clients.provider]
format = "{wire_format}"
base_url = "{provider_url}{suffix}"
api_key_env = "PRETEND_PROVIDER_KEY"

[targets.planner]
id = "{PLANNER}"
llm_client = "provider"

[targets.executor]
id = "{EXECUTOR}"
llm_client = "provider"

[routes.plan_execute]
id = "{ROUTE}"
aliases = ["{ALIAS}"]
type = "plan_execute"
capable_target = "planner"
efficient_target = "executor"
planning_prompt = "{INSTRUCTION}"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A server that runs as a process: its base URL, its number and its log."""

    url: str
    pid: int
    log: Path


@contextmanager
def serving(text: str, folder: Path) -> Iterator[str]:
    """Yield the base URL of a server on this policy; see :func:`started`."""
    with started(text, folder) as server:
        yield server.url


@contextmanager
def started(text: str, folder: Path, *, before: str = "pass") -> Iterator[Served]:
    """Yield a server on this policy; end it by SIGTERM and wait for it.

    Args:
        text: The policy.
        folder: For the policy and the log.
        before: Python statement that its process runs first.

    Raises:
        AssertionError: It was not ready in 10 s, or did not end within 10 s; the log is told.
    """
    config, log = folder / "policy.toml", folder / "serve.log"
    config.write_text(text)
    command = [sys.executable, "-c", f"{before}; from switchyard_core.cli import main; main()"]
    with log.open("w") as output:
        process = subprocess.Popen(
            [*command, "serve", "--config", str(config), "--port", "0"],
            env=os.environ | {"PRETEND_PROVIDER_KEY": PROVIDER_KEY},
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
    end = time.monotonic() + 10
    while time.monotonic() < end and process.poll() is None:
        if found := _READY.search(log.read_text()):
            return found[1].rstrip("/.,)")
        time.sleep(0.02)
    raise AssertionError(f"serve is not ready (exit {process.poll()}):\n{log.read_text()}")
