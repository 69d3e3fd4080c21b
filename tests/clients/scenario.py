"""The story that every client plays: read, edit, run, finish."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from switchyard_core.scripted import ScriptedProviderApp, check_script
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
    style: str, repo: Path, offset: int = 0, *, faults: tuple[dict[str, Any], ...] = ()
) -> ScriptedProviderApp:
    """Return a provider whose every model tells the whole story.

    Args:
        style: How the client writes its calls.
        repo: Where it works.
        offset: -1 when it opens with an assistant message of its own.
        faults: What goes wrong.
    """
    told = {"turns": turns(style, repo), "offset": offset, "faults": list(faults)}
    return _provider(style, [told])


def split(
    style: str, repo: Path, shipped: Shipped, offset: int = 0, *, strict: str | None = None
) -> ScriptedProviderApp:
    """Return a provider whose planner tells the story until the edit, the executor after it.

    A model that is asked at the wrong time ends the story at once, and the file stays broken
    or the client's output says who was asked.

    Args:
        style: How the client writes its calls.
        repo: Where it works.
        shipped: The policy that names the two models.
        offset: -1 when the client opens with an assistant message of its own.
        strict: The provider whose refusals it repeats.
    """
    plan, edit, *rest = turns(style, repo)
    planner_late = {"text": "WRONG: the planner was asked after the edit"}
    executor_early = {"text": "WRONG: the executor was asked before the edit"}
    stories = {
        shipped.planner: [plan, edit, planner_late],
        shipped.executor: [executor_early, executor_early, *rest],
    }
    told = [
        {"when": {"model": f"^{model}$"}, "turns": turns_of_model, "offset": offset}
        for model, turns_of_model in stories.items()
    ]
    return _provider(style, told, strict)


def _provider(
    style: str, scripts: list[dict[str, Any]], strict: str | None = None
) -> ScriptedProviderApp:
    title = {"when": {"has_tools": False}, "turns": [{"text": "Scratch title"}]}
    # aider offers no tools at all, so nothing tells its other requests apart.
    first = [] if style == "aider" else [title]
    content: dict[str, Any] = {"version": 1, "scripts": [*first, *scripts]}
    if strict is not None:
        content["strict"] = strict
    script, findings = check_script(json.dumps(content))
    assert script is not None, [finding.render() for finding in findings]
    return ScriptedProviderApp(script)
