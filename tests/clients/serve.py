"""Start ``switchyard serve`` as a process of its own, on a policy for one wire format."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
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


@contextmanager
def serving(text: str, folder: Path) -> Iterator[str]:
    """Yield the base URL of a server on this policy; end it by SIGTERM and wait for it.

    Raises:
        AssertionError: It was not ready in 10 s, or did not end within 10 s; the log is told.
    """
    config, log = folder / "policy.toml", folder / "serve.log"
    config.write_text(text)
    command = [sys.executable, "-c", "from switchyard_core.cli import main; main()"]
    with log.open("w") as output:
        process = subprocess.Popen(
            [*command, "serve", "--config", str(config), "--port", "0"],
            env=os.environ | {"PRETEND_PROVIDER_KEY": PROVIDER_KEY},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        yield _wait_until_ready(process, log)
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
