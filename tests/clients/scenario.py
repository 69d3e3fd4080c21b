"""The story that every client plays: read, edit, run, finish."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from switchyard_core.scripted import ScriptedProviderApp, check_script
from tests.clients.agents import Agent
from tests.clients.calls import Turn, finish, story
from tests.clients.shipped import Shipped

FINISHED = "Fixed add: it adds now."


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
    return told_by(agent, {"": turns(agent.style, repo)}, faults=faults)


def split(
    agent: Agent, repo: Path, shipped: Shipped, *, strict: str | None = None
) -> ScriptedProviderApp:
    """Return a provider whose planner tells the story until the edit, the executor after it.

    A model that is asked at the wrong time ends the story at once, and the file stays broken
    or the client's output says who was asked. ``strict`` names the provider whose refusals it
    repeats.
    """
    plan, edit, *rest = turns(agent.style, repo)
    planner_late = {"text": "WRONG: the planner was asked after the edit"}
    executor_early = {"text": "WRONG: the executor was asked before the edit"}
    stories = {
        f"^{shipped.planner}$": [plan, edit, planner_late],
        f"^{shipped.executor}$": [executor_early, executor_early, *rest],
    }
    return told_by(agent, stories, strict=strict)


def told_by(
    agent: Agent,
    stories: dict[str, list[Turn]],
    *,
    strict: str | None = None,
    faults: tuple[dict[str, Any], ...] = (),
) -> ScriptedProviderApp:
    """Return a provider whose models tell these stories, by patterns of their ids."""
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
    content: dict[str, Any] = {"version": 1, "scripts": scripts}
    if strict is not None:
        content["strict"] = strict
    script, findings = check_script(json.dumps(content))
    assert script is not None, [finding.render() for finding in findings]
    return ScriptedProviderApp(script)
