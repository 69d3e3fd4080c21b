"""The story that every client plays: read, edit, read again, finish."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from switchyard_core.scripted import ScriptedProviderApp, check_script

PLANNER = "provider/capable-model"
EXECUTOR = "provider/efficient-model"
INSTRUCTION = "PLANNING-INSTRUCTION: find out what is wrong before you change anything."
FINISHED = "Fixed add: it adds now."
_PATCH = (
    "*** Begin Patch\n*** Update File: calc.py\n@@\n"
    "-    return a - b\n+    return a + b\n*** End Patch\n"
)


Turn = dict[str, Any]


def turns(client: str, repo: Path) -> list[Turn]:
    """Return the four answers; the client's own tool of each kind is picked when asked."""
    calc = str(repo / "calc.py")
    read = [
        {"name": "read", "arguments": {"path": "calc.py"}},
        {"name": "Read", "arguments": {"file_path": calc}},
        {"name": "read_file", "arguments": {"file_path": calc}},
        {"name": "exec_command", "arguments": {"cmd": "cat calc.py"}},
    ]
    before, after = "return a - b", "return a + b"
    edit_arguments = {"file_path": calc, "old_string": before, "new_string": after}
    pi_arguments = {"path": "calc.py", "edits": [{"oldText": before, "newText": after}]}
    edit = [
        {"name": "Edit", "arguments": edit_arguments},
        {"name": "apply_patch", "input": _PATCH},
        # Two clients call their tool `edit`, and pi refuses keys that it does not know.
        {"name": "edit", "arguments": pi_arguments if client == "pi" else edit_arguments},
    ]
    thought = {"encrypted": "b3BhcXVl"}
    return [
        {
            "reasoning": "Look first.",
            **thought,
            "text": "I will look.",
            "calls": [{"any_of": read}],
        },
        {"reasoning": "The sign is wrong.", **thought, "calls": [{"any_of": edit}]},
        {"text": "Now I check it.", "calls": [{"any_of": read}]},
        {"text": FINISHED},
    ]


def alone(client: str, repo: Path, offset: int) -> ScriptedProviderApp:
    """Return a provider whose one model tells the whole story."""
    return _provider([{"turns": turns(client, repo), "offset": offset}])


def split(client: str, repo: Path, offset: int) -> ScriptedProviderApp:
    """Return a provider whose planner tells the story until the edit, the executor after it.

    A model that is asked at the wrong time ends the story at once, and the file stays broken
    or the client's output says who was asked.
    """
    read, edit, check, finish = turns(client, repo)
    planner_late = {"text": "WRONG: the planner was asked after the edit"}
    executor_early = {"text": "WRONG: the executor was asked before the edit"}
    stories = {
        PLANNER: [read, edit, planner_late],
        EXECUTOR: [executor_early, executor_early, check, finish],
    }
    return _provider(
        [
            {"when": {"model": f"^{model}$"}, "turns": story, "offset": offset}
            for model, story in stories.items()
        ]
    )


def _provider(scripts: list[dict[str, Any]]) -> ScriptedProviderApp:
    title = {"when": {"has_tools": False}, "turns": [{"text": "Scratch title"}]}
    script, findings = check_script(json.dumps({"version": 1, "scripts": [title, *scripts]}))
    assert script is not None, [finding.render() for finding in findings]
    return ScriptedProviderApp(script)
