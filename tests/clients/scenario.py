"""The story that every client plays: read, edit, read again, finish."""

from __future__ import annotations

from pathlib import Path

from tests.clients.fake_answers import Call, Turn

PLANNER = "provider/capable-model"
EXECUTOR = "provider/efficient-model"
INSTRUCTION = "PLANNING-INSTRUCTION: find out what is wrong before you change anything."
FINISHED = "Fixed add: it adds now."
_PATCH = (
    "*** Begin Patch\n*** Update File: calc.py\n@@\n"
    "-    return a - b\n+    return a + b\n*** End Patch\n"
)


def turns(client: str, repo: Path) -> tuple[Turn, Turn, Turn, Turn]:
    """Return the four answers; the client's own tool of each kind is picked when asked."""
    calc = str(repo / "calc.py")
    read = (
        Call(name="read", arguments={"path": "calc.py"}),
        Call(name="Read", arguments={"file_path": calc}),
        Call(name="read_file", arguments={"file_path": calc}),
        Call(name="exec_command", arguments={"cmd": "cat calc.py"}),
    )
    before, after = "return a - b", "return a + b"
    edit_arguments = {"file_path": calc, "old_string": before, "new_string": after}
    pi_arguments = {"path": "calc.py", "edits": [{"oldText": before, "newText": after}]}
    edit = (
        Call(name="Edit", arguments=edit_arguments),
        Call(name="apply_patch", text=_PATCH),
        # Two clients call their tool `edit`, and pi refuses keys that it does not know.
        Call(name="edit", arguments=pi_arguments if client == "pi" else edit_arguments),
    )
    return (
        Turn(reasoning="Look first.", text="I will look.", calls=read),
        Turn(reasoning="The sign is wrong.", calls=edit),
        Turn(text="Now I check it.", calls=read),
        Turn(text=FINISHED),
    )


def split(client: str, repo: Path) -> dict[str, tuple[Turn, ...]]:
    """Return the story told by two models: the planner until the edit, the executor after.

    A model that is asked at the wrong time ends the story at once, and the file stays broken
    or the client's output says who was asked.
    """
    read, edit, check, finish = turns(client, repo)
    planner_late = Turn(text="WRONG: the planner was asked after the edit")
    executor_early = Turn(text="WRONG: the executor was asked before the edit")
    return {
        PLANNER: (read, edit, planner_late),
        EXECUTOR: (executor_early, executor_early, check, finish),
    }
