"""``switchyard plan`` as a process of its own, with a provider that is held back."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from switchyard_core import WIRE_FORMATS
from switchyard_core.scripted import ScriptedProviderApp
from tests.planner_executor.rows_world import (
    GOAL,
    REQUEST,
    STEPS,
    TURNS,
    planned,
    policy,
    script_of,
)
from tests.sdk.stand import Port, listening

_MAIN = "from switchyard_core.cli import main; main()"

every_target = pytest.mark.parametrize("target", WIRE_FORMATS)


@pytest.fixture(scope="module")
def port() -> Iterator[Port]:
    with listening() as back:
        yield back


class Held:
    """A provider whose executor answers only once it is let go."""

    def __init__(self, provider: ScriptedProviderApp) -> None:
        self.asked = 0
        self._provider = provider
        self._go = asyncio.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        message = await receive()
        assert not message.get("more_body")
        if b"You carry out a plan" in message["body"]:
            self.asked += 1
            await self._go.wait()
        first = [message]

        async def again() -> Any:
            return first.pop() if first else await receive()

        await self._provider(scope, again, send)

    def go(self, port: Port) -> None:
        async def let_go() -> None:
            self._go.set()

        port.run(let_go())


def started(target: str, port: Port, folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """Start the command on a policy whose provider is the port."""
    text = policy(target)
    for name in ("planning", "executing"):
        text = text.replace(f"https://{name}.test/v1", f"{port.url}/v1")
    (folder / "policy.toml").write_text(text)
    return subprocess.Popen(
        [sys.executable, "-c", _MAIN, "plan", "policy.toml", REQUEST, *arguments],
        cwd=folder,
        env={**os.environ, "PLANNING_KEY": "k", "EXECUTING_KEY": "k"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@every_target
def test_r17_command_prints_the_plan_before_the_first_step_is_answered(target, port, tmp_path):
    provider = Held(ScriptedProviderApp(script_of([planned()], TURNS)))
    port.app = provider
    with started(target, port, tmp_path, "--yes") as process:
        assert process.stdout is not None
        seen = ""
        while STEPS[-1][0] not in seen:
            line = process.stdout.readline()
            assert line, process.stderr.read() if process.stderr else ""
            seen += line
        assert "RESULT" not in seen
        provider.go(port)
        rest, errors = process.communicate(timeout=20)

    assert process.returncode == 0, errors
    text = seen + rest
    places = [
        text.rindex(word) for word in (f"Plan: {GOAL}", "RESULT-ONE", "RESULT-TWO", "RESULT-THREE")
    ]
    assert places == sorted(places)
    assert provider.asked == len(TURNS)


def test_r18_command_prints_the_plan_and_what_was_done_though_a_step_fails(port, tmp_path):
    script = script_of([planned()], TURNS, [{"turn": 2, "status": 400, "message": "no"}])
    provider = Held(ScriptedProviderApp(script))
    port.app = provider
    provider.go(port)
    with started("openai_chat", port, tmp_path, "--yes") as process:
        text, errors = process.communicate(timeout=20)

    assert process.returncode == 1
    assert "Traceback" not in text + errors
    words = [f"Plan: {GOAL}", *(action for action, _ in STEPS)]
    places = [text.index(word) for word in words] + [text.index("RESULT-ONE")]
    assert places == sorted(places)
    assert "status 400" in text[places[-1] :]
    assert "RESULT-TWO" not in text
