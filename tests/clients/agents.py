"""How each real coding agent is pointed at a provider, isolated and started."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.clients.installs import clients

PROMPT = "The add function in calc.py subtracts. Read the file, fix it, and say what you did."
BROKEN = "def add(a, b):\n    return a - b\n"
FIXED = "def add(a, b):\n    return a + b\n"
KEY = "caller-key-not-secret"


@dataclass(frozen=True, slots=True, kw_only=True)
class Workplace:
    """A scratch repository and a fresh home for one run."""

    repo: Path
    home: Path

    @property
    def calc(self) -> str:
        return (self.repo / "calc.py").read_text()


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """What one run is started with, besides the isolation that all share."""

    arguments: tuple[str, ...]
    environment: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """One client speaking one wire format.

    Args:
        model: The model id that the client is told to use; it decides Codex's edit tool.
        history_offset: -1 when the client opens with an assistant message of its own.
    """

    client: str
    wire_format: str
    model: str
    prepare: Callable[[Agent, str, Workplace], Start]
    history_offset: int = 0

    @property
    def id(self) -> str:
        return f"{self.client}-{self.wire_format}"

    def run(self, base_url: str, place: Workplace) -> subprocess.CompletedProcess[str]:
        """Run the client on :data:`PROMPT` until it ends by itself, at most 90 s.

        Raises:
            FileNotFoundError: The client is not installed; the text says how.
            subprocess.TimeoutExpired: It did not end; its whole process group was ended.
        """
        client = clients()[self.client]
        if not client.is_installed:
            raise FileNotFoundError(
                f"{client.command}: run `python -m tests.clients.installs {client.name}`"
            )
        start = self.prepare(self, base_url, place)
        isolated = {
            "PATH": os.environ["PATH"],
            "HOME": str(place.home),
            "LANG": "C.UTF-8",
            "TERM": "dumb",
        }
        process = subprocess.Popen(
            [str(client.command), *start.arguments],
            cwd=place.repo,
            env=isolated | start.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=90)
        finally:
            # A client may leave helpers behind; the group is ours alone.
            _end_group(process.pid)
        return subprocess.CompletedProcess(process.args, process.returncode, output)


def _end_group(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return


def _pi(agent: Agent, base_url: str, place: Workplace) -> Start:
    api = {
        "openai_chat": "openai-completions",
        "openai_responses": "openai-responses",
        "anthropic_messages": "anthropic-messages",
    }[agent.wire_format]
    model = {"id": agent.model, "reasoning": True, "contextWindow": 128000, "maxTokens": 8000}
    provider = {
        "baseUrl": base_url + ("" if agent.wire_format == "anthropic_messages" else "/v1"),
        "api": api,
        "apiKey": KEY,
        "models": [model],
    }
    settings = place.home / ".pi" / "agent" / "models.json"
    settings.parent.mkdir(parents=True)
    settings.write_text(json.dumps({"providers": {"switchyard": provider}}))
    return Start(
        arguments=("--provider", "switchyard", "--model", agent.model, "-p", PROMPT),
        environment={"PI_OFFLINE": "1", "PI_SKIP_VERSION_CHECK": "1", "PI_TELEMETRY": "0"},
    )


def _codex(agent: Agent, base_url: str, place: Workplace) -> Start:
    folder = place.home / ".codex"
    folder.mkdir()
    (folder / "config.toml").write_text(
        f"""
model = "{agent.model}"
model_provider = "switchyard"
check_for_update_on_startup = false
[model_providers.switchyard]
name = "switchyard"
base_url = "{base_url}/v1"
env_key = "CALLER_KEY"
wire_api = "responses"
[analytics]
enabled = false
"""
    )
    return Start(
        arguments=("exec", "--skip-git-repo-check", "-s", "danger-full-access", PROMPT),
        environment={"CODEX_HOME": str(folder), "CALLER_KEY": KEY},
    )


def _claude(agent: Agent, base_url: str, place: Workplace) -> Start:
    return Start(
        arguments=("-p", PROMPT, "--allowedTools", "Read,Edit,Write"),
        environment={
            "ANTHROPIC_BASE_URL": base_url,
            "ANTHROPIC_API_KEY": KEY,
            "ANTHROPIC_MODEL": agent.model,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_ERROR_REPORTING": "1",
            "DISABLE_TELEMETRY": "1",
        },
    )


def _qwen(agent: Agent, base_url: str, place: Workplace) -> Start:
    return Start(
        arguments=("--auth-type", "openai", "--approval-mode", "yolo", "-p", PROMPT),
        environment={
            "OPENAI_API_KEY": KEY,
            "OPENAI_BASE_URL": f"{base_url}/v1",
            "OPENAI_MODEL": agent.model,
            "QWEN_TELEMETRY_ENABLED": "false",
        },
    )


ROUTE = "switchyard/plan-execute"
#: Codex offers its patch tool only for model ids of its own catalogue: an alias of the route.
ALIAS = "gpt-5.5"

AGENTS = (
    Agent(client="pi", wire_format="openai_chat", model=ROUTE, prepare=_pi),
    Agent(client="pi", wire_format="openai_responses", model=ROUTE, prepare=_pi),
    Agent(client="pi", wire_format="anthropic_messages", model=ROUTE, prepare=_pi),
    Agent(
        client="codex",
        wire_format="openai_responses",
        model=ALIAS,
        prepare=_codex,
    ),
    Agent(
        client="claude",
        wire_format="anthropic_messages",
        model=ROUTE,
        prepare=_claude,
    ),
    Agent(client="qwen", wire_format="openai_chat", model=ROUTE, prepare=_qwen, history_offset=-1),
)
