"""The story that every client plays: read, edit, run, finish."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from switchyard_core import WireFormat
from switchyard_core.scripted import RecordedRequest, ScriptedProviderApp, check_script
from switchyard_core.scripted.script import Script
from switchyard_core.wire import endpoint_of
from tests.clients.agents import Agent
from tests.clients.calls import Turn, finish, story
from tests.clients.shipped import Shipped

FINISHED = "Fixed add: it adds now."


class Providers:
    """A provider for each wire format behind one address, each as strict as a real one.

    Args:
        script: What all of them play.
        strict: Name of the strict provider of each format; another format gets the first one,
            which has no such endpoint.
    """

    def __init__(self, script: Script, strict: Mapping[WireFormat, str]) -> None:
        self._apps = {
            wire_format: ScriptedProviderApp(script, strict=name)
            for wire_format, name in strict.items()
        }
        #: What all of them were asked, in order of arrival.
        self.requests: list[RecordedRequest] = []
        for app in self._apps.values():
            app.requests = self.requests

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Let the provider of the path's format answer."""
        found = endpoint_of(scope.get("path", ""))
        first = next(iter(self._apps.values()))
        app = first if found is None else self._apps.get(found[0], first)
        await app(scope, receive, send)


def turns(style: str, repo: Path) -> list[Turn]:
    """Return the answers of the whole story."""
    plan, *steps = story(style, repo)
    thought = {"reasoning": "Look first.", "encrypted": "b3BhcXVl"}
    looks = thought if style == "aider" else {**thought, "text": "I will look."}
    return [{**plan, **looks, **plan}, *steps, finish(style, FINISHED)]


def alone(
    agent: Agent, repo: Path, *, faults: tuple[dict[str, Any], ...] = ()
) -> ScriptedProviderApp:
    """Return a provider whose every model tells the whole story, or what the faults say."""
    return ScriptedProviderApp(_script(agent, {"": turns(agent.style, repo)}, faults))


def split(
    agent: Agent, repo: Path, policy: Shipped, *, faults: tuple[dict[str, Any], ...] = ()
) -> Providers:
    """Return providers whose planner tells the story until the edit, the executor after it.

    A model that is asked at the wrong time ends the story at once, and the file stays broken
    or the client's output says who was asked.
    """
    plan, edit, *rest = turns(agent.style, repo)
    planner_late = {"text": "WRONG: the planner was asked after the edit"}
    executor_early = {"text": "WRONG: the executor was asked before the edit"}
    stories = {
        f"^{policy.planner}$": [plan, edit, planner_late],
        f"^{policy.executor}$": [executor_early, executor_early, *rest],
    }
    return told_by(agent, stories, policy, faults=faults)


def told_by(
    agent: Agent,
    stories: dict[str, list[Turn]],
    policy: Shipped,
    *,
    faults: tuple[dict[str, Any], ...] = (),
) -> Providers:
    """Return the strict providers of a policy, whose models, by pattern, tell these stories."""
    return Providers(_script(agent, stories, faults), policy.strict)


def _script(
    agent: Agent, stories: dict[str, list[Turn]], faults: tuple[dict[str, Any], ...]
) -> Script:
    scripts: list[dict[str, Any]] = []
    if not agent.prompts:
        scripts.append({"when": {"has_tools": False}, "turns": [{"text": "Scratch title"}]})
    for model, told in stories.items():
        common = {"offset": agent.history_offset, "faults": list(faults)}
        if not agent.prompts:
            scripts.append({"when": {"model": model}, "turns": told, **common})
        # Who rebuilds its history each time cannot be answered by the number of its turns.
        for prompt, turn in reversed(list(zip(agent.prompts, told, strict=False))):
            when = {"model": model, "body": re.escape(prompt)}
            scripts.append({"when": when, "turns": [turn], **common})
    script, findings = check_script(json.dumps({"version": 1, "scripts": scripts}))
    assert script is not None, [finding.render() for finding in findings]
    return script
