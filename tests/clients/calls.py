"""How each kind of agent writes the three calls of the story: read, edit, run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Turn = dict[str, Any]

BEFORE, AFTER = "return a - b", "return a + b"
BROKEN = f"def add(a, b):\n    {BEFORE}\n"
FIXED = f"def add(a, b):\n    {AFTER}\n"
#: What the agent runs; its output says that the edit is there.
CHECK = 'python3 -c "import calc; print(calc.add(19, 23))"'
_PATCH = (
    f"*** Begin Patch\n*** Update File: calc.py\n@@\n-    {BEFORE}\n+    {AFTER}\n*** End Patch\n"
)
_SNAKE = {"old_string": BEFORE, "new_string": AFTER}
_CAMEL = {"oldString": BEFORE, "newString": AFTER}


def story(style: str, repo: Path) -> list[Turn]:
    """Return the turns read, edit and run in the tools of one kind of agent."""
    calc = str(repo / "calc.py")
    styles: dict[str, list[Turn]] = {
        "claude": [
            _call("Read", file_path=calc),
            _call("Edit", file_path=calc, **_SNAKE),
            _call("Bash", command=CHECK, description="Check the sum"),
        ],
        "pi": [
            _call("read", path="calc.py"),
            _call("edit", path="calc.py", edits=[{"oldText": BEFORE, "newText": AFTER}]),
            _call("bash", command=CHECK),
        ],
        "qwen": [
            _call("read_file", file_path=calc),
            _call("edit", file_path=calc, **_SNAKE),
            _call("run_shell_command", command=CHECK, is_background=False),
        ],
        "opencode": [
            _call("read", filePath=calc),
            _call("edit", filePath=calc, **_CAMEL),
            _call("bash", command=CHECK, description="Check the sum"),
        ],
        # opencode offers this one to models of OpenAI.
        "opencode-patch": [
            _call("read", filePath=calc),
            _call("apply_patch", patchText=_PATCH),
            _call("bash", command=CHECK, description="Check the sum"),
        ],
        "codex": [
            _call("exec_command", cmd="cat calc.py"),
            _calls({"name": "apply_patch", "input": _PATCH}),
            _call("exec_command", cmd=CHECK),
        ],
        "codex-shell": [
            _call("exec_command", cmd="cat calc.py"),
            _call("exec_command", cmd=f"apply_patch <<'EOF'\n{_PATCH}EOF"),
            _call("exec_command", cmd=CHECK),
        ],
        "codex-javascript": [
            _javascript("exec_command", {"cmd": "cat calc.py"}),
            _javascript("apply_patch", _PATCH),
            _javascript("exec_command", {"cmd": CHECK}),
        ],
        "cline": [
            _call("read_files", files=[{"path": calc}]),
            _call("editor", path=calc, old_text=BEFORE, new_text=AFTER),
            _call("run_commands", commands=[CHECK]),
        ],
        "mini": [
            _call("bash", command="cat calc.py"),
            _call("bash", command=f"sed -i 's/{BEFORE}/{AFTER}/' calc.py"),
            _call("bash", command=CHECK),
        ],
        # aider reads files into its prompt and runs commands itself, on the user's word.
        "aider": [
            {"text": "I will turn the sign round. Nothing is changed yet."},
            {
                "text": f"calc.py\n```python\n<<<<<<< SEARCH\n    {BEFORE}\n=======\n"
                f"    {AFTER}\n>>>>>>> REPLACE\n```\n"
            },
        ],
        # The programs in `programs/` bring these tools themselves.
        "sdk": [
            _call("read_file", path="calc.py"),
            _call("edit_file", path="calc.py", old=BEFORE, new=AFTER),
            _call("run_command", command=CHECK),
        ],
    }
    return styles[style]


def finish(style: str, text: str) -> Turn:
    """Return the last turn."""
    if style == "mini":
        done = f"echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && echo '{text}'"
        return _call("bash", command=done)
    return {"text": text}


def _call(name: str, **arguments: Any) -> Turn:
    return _calls({"name": name, "arguments": arguments})


def _calls(call: dict[str, Any]) -> Turn:
    return {"calls": [call]}


def _javascript(tool: str, argument: Any) -> Turn:
    source = f"const r = await tools.{tool}({json.dumps(argument)});\ntext(JSON.stringify(r));\n"
    # Where a format has no namespaces, the name says it.
    flat = {"name": "functions__exec", "input": source}
    return _calls({"any_of": [flat, {"name": "exec", "namespace": "functions", "input": source}]})
