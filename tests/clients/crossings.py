"""The same clients with planners and executors that speak other formats than they do."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace

from tests.clients.agents import PROMPT, Agent
from tests.clients.installs import STAGES, expand
from tests.clients.roster import AGENTS
from tests.clients.shipped import Shipped, shipped

AGAIN = "Say once more what you did."
#: A provider of each format, with a planner and an executor.
_PROVIDERS = {
    "chat": ("openai_chat", "https://api.deepseek.com", "deepseek-v4-pro", "deepseek-flash"),
    "responses": ("openai_responses", "https://api.openai.com/v1", "gpt-5.5", "gpt-5.4-nano"),
    "messages": (
        "anthropic_messages",
        "https://api.anthropic.com",
        "claude-opus-5-5",
        "claude-sonnet-5-5",
    ),
}
_ROUTE = """\
schema_version = 1
default_route = "main"

[routes.main]
id = "switchyard/plan-execute"
aliases = ["plan-execute", "gpt-5.5"]
type = "plan_execute"
capable_target = "planner"
efficient_target = "executor"
mutation_rules = ["text_edits", "coding_agents"]
"""
_TARGET = """
[llm_clients.{role}]
format = "{format}"
base_url = "{url}"
api_key_env = "{role}_KEY"

[targets.{role}]
id = "{model}"
llm_client = "{role}"
context_window = 1000000
on_overflow = "stay"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossing:
    """A client on a policy whose targets speak different formats.

    Args:
        agent: The client.
        policy: Name of a shipped policy, or ``<planner>-<executor>`` for two providers.
        stage: The stage of ``.ci/run`` that drives it.
    """

    agent: Agent
    policy: str
    stage: str

    @property
    def id(self) -> str:
        """Name of the case."""
        return f"{self.agent.id}-on-{self.policy}"

    @property
    def served(self) -> Shipped:
        """The policy."""
        planner, _, executor = self.policy.partition("-")
        if {planner, executor} <= set(_PROVIDERS):
            return Shipped(name=self.policy, text=_mixed(planner, executor))
        return shipped(self.policy)

    @property
    def resumed(self) -> Agent | None:
        """The same client as it continues its session, ``None`` if it cannot."""
        again = tuple(AGAIN if word == PROMPT else word for word in self.agent.arguments)
        way = {
            "claude": ("-c", *again),
            "pi": ("-c", *again),
            "codex": (*again[:-1], "resume", "--last", AGAIN),
            "opencode": (again[0], "-c", *again[1:]),
            "pydantic-ai": again,
        }.get(self.agent.client.removesuffix("-newest"))
        return None if way is None else replace(self.agent, arguments=way)


def narrow(policy: Shipped) -> Shipped:
    """Return the policy with an executor whose window holds no request: the planner stays."""
    window = re.compile(r"(\[targets\.executor\][^\[]*context_window = )\d+")
    return replace(policy, text=window.sub(r"\g<1>10", policy.text))


def _mixed(*names: str) -> str:
    tables = []
    for role, name in zip(("planner", "executor"), names, strict=True):
        wire_format, url, *models = _PROVIDERS[name]
        model = models[role == "executor"]
        tables.append(_TARGET.format(role=role, format=wire_format, url=url, model=model))
    return _ROUTE + "".join(tables)


def _crossings() -> list[Crossing]:
    agents = {agent.id: agent for agent in AGENTS}
    return [
        Crossing(agent=agents[name], policy=policy, stage=stage)
        for stage, pairs in _PAIRS.items()
        for name, policy in pairs
    ]


_PAIRS = {
    "clients": (
        ("claude-messages", "claude-code-chat"),
        ("codex-patch", "codex-claude"),
        ("pi-chat", "messages-responses"),
        ("pydantic-ai-responses", "chat-messages"),
    ),
    "clients-all": (
        ("claude-messages", "messages-responses"),
        ("claude-messages", "chat-responses"),
        ("claude-newest-messages", "claude-code-chat"),
        ("codex-patch", "responses-chat"),
        ("codex-patch", "messages-chat"),
        ("codex-shell", "chat-messages"),
        ("codex-javascript", "codex-claude"),
        ("opencode-chat", "messages-responses"),
        ("opencode-responses", "messages-chat"),
        ("opencode-messages", "responses-chat"),
        ("pi-responses", "chat-messages"),
        ("pi-messages", "responses-chat"),
        ("pi-newest-chat", "responses-messages"),
        ("pi-newest-responses", "messages-chat"),
        ("pi-newest-messages", "chat-responses"),
        ("qwen-chat", "messages-responses"),
        ("qwen-newest-chat", "responses-messages"),
        ("cline-chat", "messages-responses"),
        ("aider-chat", "messages-responses"),
        ("mini-chat", "messages-responses"),
        ("openai-chat", "messages-responses"),
        ("openai-responses", "chat-messages"),
        ("anthropic-messages", "responses-chat"),
        ("openai-agents-chat", "responses-messages"),
        ("openai-agents-responses", "messages-chat"),
        ("pydantic-ai-chat", "messages-responses"),
        ("pydantic-ai-messages", "responses-chat"),
        ("langgraph-chat", "responses-messages"),
        ("langgraph-responses", "messages-chat"),
        ("langgraph-messages", "chat-responses"),
    ),
}
CROSSINGS = _crossings()


def wanted() -> list[Crossing]:
    """Return those of the clients or the stage in ``SWITCHYARD_CLIENTS``, else all."""
    names = os.environ.get("SWITCHYARD_CLIENTS", STAGES[-1]).split()
    few = names == [STAGES[0]]
    return [
        crossing
        for crossing in CROSSINGS
        if crossing.agent.client in expand(names) and (crossing.stage == STAGES[0] or not few)
    ]
