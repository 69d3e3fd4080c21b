"""What real clients do when something fails, with switchyard and without it.

``python -m tests.clients.offline python -m tests.clients.faults claude-messages codex-patch`` plays
each fault at the second request of a session and prints a table: the requests that the client sent,
those that reached the provider, and how the session ended. ``... faults across`` does so with a
planner that speaks another format than the client.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from switchyard_core.scripted import ScriptedProviderApp
from switchyard_core.testing import conversation
from tests.clients import agents
from tests.clients.agents import KEY, Agent, Workplace
from tests.clients.calls import BROKEN, FIXED
from tests.clients.crossings import CROSSINGS
from tests.clients.roster import AGENTS
from tests.clients.scenario import FINISHED, alone
from tests.clients.serve import Served, started
from tests.clients.shipped import Shipped, shipped
from tests.clients.tap import Tap
from tests.server.servers import PATHS
from tests.support.listening import listening

CLIENTS = ("claude-messages", "codex-patch", "opencode-chat", "pi-chat", "pi-messages")
#: Clients on planners of another format.
ACROSS = (
    "claude-messages-on-chat-responses",
    "codex-patch-on-codex-claude",
    "opencode-chat-on-messages-responses",
    "pi-chat-on-messages-responses",
    "pi-messages-on-responses-chat",
)
_LASTING = 1000
_TOO_LONG = (
    "prompt is too long: your input exceeds the context window, 300000 tokens > 200000 maximum"
)
#: Faults of the provider by name; each replaces the second answer of the session.
PROVIDER_FAULTS: dict[str, dict[str, Any]] = {
    "429 once": {"status": 429, "headers": {"retry-after": "1"}},
    "529 once": {"status": 529},
    "529 for ever": {"status": 529, "times": _LASTING},
    "400": {"status": 400, "times": _LASTING},
    "400 too long": {"status": 400, "times": _LASTING, "message": _TOO_LONG},
    "401": {"status": 401, "times": _LASTING},
    "cut once": {"kind": "cut"},
    "cut for ever": {"kind": "cut", "times": _LASTING},
    "error event once": {"kind": "error_event"},
    "dropped once": {"kind": "drop"},
    "dropped for ever": {"kind": "drop", "times": _LASTING},
}
#: Faults of switchyard itself.
OWN_FAULTS = ("killed and restarted", "no capacity", "wrong server key")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How one session went."""

    asked: int  # calls that the client sent
    reached: int  # calls that the provider got
    exit_code: int | None  # none when it had to be stopped
    seconds: float
    finished: bool  # the file is right and the client says so
    said: str  # the last of its output

    def __str__(self) -> str:
        if self.finished:
            how = "finishes"
        elif self.exit_code is None:
            how = "still trying"
        else:
            how = f"ends with {self.exit_code}"
        return f"{self.asked}/{self.reached}, {how}, {self.seconds:.0f} s"


def _play(agent: Agent, url: str, provider: ScriptedProviderApp, folder: Path) -> Ending:
    repo, home = folder / "repo", folder / "home"
    begun = time.monotonic()
    with Tap(url) as tap:
        try:
            done = agent.run(tap.url, Workplace(repo=repo, home=home))
            code, output = done.returncode, done.stdout
        except subprocess.TimeoutExpired as error:
            text = error.stdout or b""
            code, output = None, text.decode() if isinstance(text, bytes) else text
    fixed = (repo / "calc.py").read_text() == FIXED
    return Ending(
        asked=tap.calls,
        reached=sum(r.wire_format is not None for r in provider.requests),
        exit_code=code,
        seconds=time.monotonic() - begun,
        finished=code == 0 and fixed and FINISHED in output,
        said=" ".join(output.split())[-300:],
    )


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "repo").mkdir()
        (folder / "home").mkdir()
        (folder / "repo" / "calc.py").write_text(BROKEN)
        subprocess.run(["git", "init", "-q"], cwd=folder / "repo", check=True)
        yield folder


def _directly(agent: Agent, fault: dict[str, Any]) -> Ending:
    with _folder() as folder:
        provider = alone(agent, folder / "repo", faults=({"turn": 1, **fault},))
        with listening(provider) as port:
            return _play(agent, port.url, provider, folder)


def _through(agent: Agent, fault: dict[str, Any], policy: Shipped) -> Ending:
    with _folder() as folder:
        provider = alone(agent, folder / "repo", faults=({"turn": 1, **fault},))
        with listening(provider) as port, _serving(policy, port.url, folder) as server:
            return _play(agent, server.url, provider, folder)


def _serving(
    policy: Shipped, url: str, folder: Path, *more: str, change: Callable[[str], str] = str
) -> contextlib.AbstractContextManager[Served]:
    return started(
        change(policy.at(url)),
        folder,
        environment=policy.environment | {"SWITCHYARD_KEY": "another-key"},
        arguments=("--port", "0", *more),
    )


def _wrong_server_key(agent: Agent) -> Ending:
    with _folder() as folder:
        provider = alone(agent, folder / "repo")
        key = ("--api-key-env", "SWITCHYARD_KEY")
        with (
            listening(provider) as port,
            _serving(shipped(agent.policy), port.url, folder, *key) as server,
        ):
            return _play(agent, server.url, provider, folder)


def _no_capacity(agent: Agent) -> Ending:
    with _folder() as folder:
        provider = alone(agent, folder / "repo")
        policy = shipped(agent.policy)
        small = "efficient_target = "
        with (
            listening(provider) as port,
            _serving(
                policy,
                port.url,
                folder,
                change=lambda text: text.replace(small, f"latch_capacity = 1\n{small}"),
            ) as server,
        ):
            _latch_another_session(server.url, policy)
            return _play(agent, server.url, provider, folder)


def _latch_another_session(url: str, policy: Shipped) -> None:
    edited = conversation(policy.wire_format).user("x").edits("edit_file", path="a.py")
    answer = httpx.post(
        f"{url}{PATHS[policy.wire_format]}",
        content=edited.body(),
        headers={
            "content-type": "application/json",
            "x-switchyard-session-id": "another",
            "x-api-key": KEY,
        },
        timeout=30,
    )
    assert answer.headers["x-switchyard-phase"] == "executing", answer.text


def _restarted(agent: Agent) -> Ending:
    """Kill the server while the second answer of the session runs; start it again."""
    policy = shipped(agent.policy)
    with _folder() as folder, contextlib.ExitStack() as servers, socket.socket() as reserved:
        provider = alone(agent, folder / "repo")
        reserved.bind(("127.0.0.1", 0))
        number = reserved.getsockname()[1]
        reserved.close()
        with listening(_Slow(provider)) as port:
            text = policy.at(port.url)

            def start() -> Served:
                where = ("--port", str(number))
                served = started(text, folder, environment=policy.environment, arguments=where)
                return servers.enter_context(served)

            first = start()

            def restart() -> None:
                while sum(r.wire_format is not None for r in provider.requests) < _SECOND:
                    time.sleep(0.02)
                os.kill(first.pid, signal.SIGKILL)
                time.sleep(0.5)
                start()

            restarts = threading.Thread(target=restart, daemon=True)
            restarts.start()
            ending = _play(agent, first.url, provider, folder)
            restarts.join(30)
            servers.close()
            return ending


_SECOND = 2


class _Slow:
    """The provider, half a second late, so that a request is running when the server dies."""

    def __init__(self, app: ScriptedProviderApp) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async def late(message: Any) -> None:
            if message["type"] == "http.response.start":
                await asyncio.sleep(0.5)
            await send(message)

        await self.app(scope, receive, late)


def main(names: list[str]) -> None:
    """Print a table per client."""
    agents.PATIENCE_S = 45.0
    if names[:1] == ["across"]:
        for crossing in CROSSINGS:
            if crossing.id in (names[1:] or ACROSS):
                _compare(crossing.id, crossing.agent, crossing.served)
        return
    own = {
        "killed and restarted": _restarted,
        "no capacity": _no_capacity,
        "wrong server key": _wrong_server_key,
    }
    for agent in AGENTS:
        if agent.id not in CLIENTS or (names and agent.id not in names):
            continue
        _compare(agent.id, agent, shipped(agent.policy))
        for name in OWN_FAULTS:
            ending = own[name](agent)
            print(f"| {name} | | {ending} |", flush=True)
            _explain(ending)


def _compare(title: str, agent: Agent, policy: Shipped) -> None:
    print(f"\n| {title} | directly | through switchyard |\n|---|---|---|", flush=True)
    for name, fault in PROVIDER_FAULTS.items():
        direct, through = _directly(agent, fault), _through(agent, fault, policy)
        print(f"| {name} | {direct} | {through} |", flush=True)
        _explain(direct, through)


def _explain(*endings: Ending) -> None:
    for ending in endings:
        if not ending.finished:
            print(f"    {ending.said}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
