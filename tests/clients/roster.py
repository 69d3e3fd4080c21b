"""Every client, in every way in which it is driven."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

from tests.clients.agents import KEY, PROMPT, Agent
from tests.clients.calls import CHECK
from tests.clients.installs import STAGES, expand

_PROGRAMS = Path(__file__).with_name("programs")
_ROUTE = "switchyard/plan-execute"

_QUIET_CLAUDE = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "DISABLE_TELEMETRY": "1",
}
_claude = partial(
    Agent,
    page="claude-code",
    policy="claude-code",
    style="claude",
    arguments=("-p", PROMPT, "--allowedTools", "Read,Edit,Bash"),
    environment=_QUIET_CLAUDE,
)
_codex = partial(Agent, client="codex", page="codex", policy="codex")
_exec = ("exec", "--skip-git-repo-check", "-s", "danger-full-access")
_opencode = partial(
    Agent,
    client="opencode",
    page="opencode",
    arguments=("run", PROMPT),
    environment={
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
    },
)
_pi = partial(
    Agent,
    page="pi",
    style="pi",
    arguments=("--provider", "switchyard", "--model", _ROUTE, "-p", PROMPT),
    environment={"PI_OFFLINE": "1", "PI_SKIP_VERSION_CHECK": "1", "PI_TELEMETRY": "0"},
)
_qwen = partial(
    Agent,
    page="qwen-code",
    policy="openai-compatible",
    style="qwen",
    arguments=("--auth-type", "openai", "--approval-mode", "yolo", "-p", PROMPT),
    environment={"QWEN_TELEMETRY_ENABLED": "false"},
)
_LITELLM = {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}
#: Section of the pages with three formats, and policy, by variant.
_FORMATS = {
    "chat": ("Chat Completions", "openai-compatible"),
    "responses": ("Responses", "codex"),
    "messages": ("Messages", "claude-code"),
}


def _pi_in_all(client: str) -> list[Agent]:
    return [
        _pi(client=client, variant=variant, section=section, policy=policy)
        for variant, (section, policy) in _FORMATS.items()
    ]


def _program(client: str, name: str, *variants: str) -> list[Agent]:
    """Return an SDK, driven by ``programs/<name>.py``, in these formats."""
    return [
        Agent(
            client=client,
            variant=variant,
            page="sdks",
            section=_FORMATS[variant][0],
            policy=_FORMATS[variant][1],
            style="sdk",
            arguments=(str(_PROGRAMS / f"{name}.py"), variant, PROMPT),
        )
        for variant in variants
    ]


AGENTS = (
    _claude(client="claude", variant="messages", section="Settings"),
    _claude(client="claude", variant="key", section="With a server key", server_key=True),
    _claude(
        client="claude",
        variant="login-key",
        section="With a login and a server key",
        server_key=True,
        # Stands for the login, which uses the same header.
        environment={**_QUIET_CLAUDE, "ANTHROPIC_AUTH_TOKEN": KEY},
    ),
    _claude(client="claude-newest", variant="messages", section="Settings"),
    _codex(variant="patch", section="Settings", style="codex", arguments=(*_exec, PROMPT)),
    _codex(
        variant="key",
        section="With a server key",
        style="codex",
        arguments=(*_exec, PROMPT),
        server_key=True,
    ),
    _codex(
        variant="shell",
        section="Settings",
        style="codex-shell",
        arguments=(*_exec, "-m", _ROUTE, PROMPT),
    ),
    _codex(
        variant="javascript",
        section="Settings",
        style="codex-javascript",
        arguments=(*_exec, "-m", "gpt-6-sol", PROMPT),
    ),
    _opencode(
        variant="chat", section="Chat Completions", policy="openai-compatible", style="opencode"
    ),
    _opencode(variant="responses", section="Responses", policy="codex", style="opencode-patch"),
    _opencode(variant="messages", section="Messages", policy="claude-code", style="opencode"),
    _opencode(
        variant="key",
        section="With a server key",
        policy="claude-code",
        style="opencode",
        server_key=True,
    ),
    *_pi_in_all("pi"),
    _pi(
        client="pi",
        variant="key",
        section="With a server key",
        policy="claude-code",
        server_key=True,
    ),
    *_pi_in_all("pi-newest"),
    _qwen(client="qwen", variant="chat", section="Settings", history_offset=-1),
    _qwen(client="qwen-newest", variant="chat", section="Settings"),
    Agent(
        client="cline",
        variant="chat",
        page="cline",
        section="Settings",
        policy="openai-compatible",
        style="cline",
        arguments=("-P", "openai-compatible", "-m", _ROUTE, PROMPT),
        environment={"CLINE_TELEMETRY_DISABLED": "1", "CLINE_NO_AUTO_UPDATE": "1"},
    ),
    Agent(
        client="aider",
        variant="chat",
        page="aider",
        section="Settings",
        policy="aider",
        style="aider",
        arguments=(
            *("--model", f"openai/{_ROUTE}", "--edit-format", "diff", "--yes-always"),
            *("--no-check-update", "--analytics-disable", "--no-show-model-warnings"),
            *("--no-gitignore", "--no-auto-commits", "--no-pretty", "calc.py"),
        ),
        environment=_LITELLM,
        prompts=(PROMPT, "Please do it.", "Please report."),
        stdin=f"{PROMPT}\nPlease do it.\n/run {CHECK}\nPlease report.\n/exit\n",
    ),
    Agent(
        client="mini",
        variant="chat",
        page="mini-swe-agent",
        section="Settings",
        policy="openai-compatible",
        style="mini",
        arguments=(
            *("-m", f"openai/{_ROUTE}", "-t", PROMPT),
            *("-y", "--exit-immediately", "-o", "trajectory.json"),
        ),
        environment=_LITELLM | {"MSWEA_CONFIGURED": "true"},
    ),
    *_program("openai", "openai_sdk", "chat", "responses"),
    *_program("anthropic", "anthropic_sdk", "messages"),
    *_program("openai-agents", "openai_agents", "chat", "responses"),
    *_program("pydantic-ai", "pydantic_agent", "chat", "responses", "messages"),
    *_program("langgraph", "langgraph_agent", "chat", "responses", "messages"),
)


def wanted() -> tuple[Agent, ...]:
    """Return the agents of the clients or the stage in ``SWITCHYARD_CLIENTS``, else all."""
    names = expand(os.environ.get("SWITCHYARD_CLIENTS", STAGES[-1]).split())
    return tuple(agent for agent in AGENTS if agent.client in names)
