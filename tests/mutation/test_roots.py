"""Where the workspace is, and that a file has one label in it, however it is named."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
import tomli
from hypothesis import given
from hypothesis import strategies as st

from switchyard_core.conversation import ToolCall
from switchyard_core.declarations import WireFormat
from switchyard_core.mutation import MutationRules, RuleSetModel, compile_rules, core_packs
from switchyard_core.mutation.paths import NO_ROOT
from switchyard_core.request import Request
from switchyard_core.router import Mutations

PACKS = {pack.name: RuleSetModel.model_validate(tomli.loads(pack.text)) for pack in core_packs()}
RULES = compile_rules(["coding_agents"], PACKS)

#: Files of a workspace by what they are.
EDITS = [
    *("src/app.py", "README.md", "docs/specs.md", "docs/guide.txt", "package.json"),
    *("Makefile", ".gitignore", ".env.example", ".github/workflows/ci.yml"),
    *("tests/test_a.py", "CLAUDE.md", "AGENTS.md", "app/models/plan.rb"),
    *("openspec/project.md", "packages/a/src/x.js", "src/build.py", "src/dist/x.py"),
    *(".claude/settings.json", "x.py", "src/server.log.ts", "src/app.log.py", "catalog.log.ts"),
    *(".claude/commands/plan.md", ".claude/agents/plan.md", ".claude/skills/plans/SKILL.md"),
    *(".claude/skills/memory/SKILL.md", ".opencode/command/plan.md", ".codex/prompts/plan.md"),
    *("commands/plan.md", "docs/planning.md", "docs/pricing-plan.md", "docs/adr/0001-plan.md"),
    *("src/content/blog/plan.md", "build/Dockerfile", "build/ci/run.sh", "tests/fixtures/a.log"),
    *("tests/fixtures/a.patch", ".github/ISSUE_TEMPLATE/plan.md"),
]
OTHERS = [
    *("plans/x.md", "plan.md", "docs/plans/2026-x.md", "docs/superpowers/plans/x.md"),
    *("docs/superpowers/specs/y.md", ".claude/plans/a.md", ".claude/plan/a.md"),
    *(".opencode/plans/1-x.md", ".opencode/plan/x.md", ".windsurf/plans/x.md"),
    *(".agents/plans/x.md", "openspec/changes/add-x/proposal.md"),
    *(".serena/memories/x.md", "specs/001-login/spec.md", "build/app.js", "dist/x.js"),
    *("packages/a/dist/x.js", "coverage/lcov.info", "htmlcov/index.html", "tmp/x.txt"),
    *("out/a.js", "logs/run.log", "node_modules/a/index.js", ".git/config"),
    *("target/debug/x.rs", "app.log", "logs/app.log.1", "app.log.gz", "app.log.2026-01-01"),
    *("feature-plan.md", "planning.md", "docs/plan.md", ".agent/plan.md", ".unheard_of/x-plan.md"),
    *("tests/fixtures/node_modules/a.js", ".claude/commands/x.md.bak"),
]
#: For shells these are usually output.
BY_SHELL = ["report.txt", "data/x.csv", "data/config.py", "uv.lock"]
FILES = [*EDITS, *OTHERS, *BY_SHELL]
#: Roots, and how the same directory may be written in a call.
ROOTS = {
    "/repo": ["/repo", "/repo/src/..", "/./repo", "file:///repo"],
    "/home/dev/p": ["/home/dev/p", "~/p", "$HOME/p", "${HOME}/p", "~x/p"],
    "/Users/dev/p": ["/Users/dev/p", "~/p", "/USERS/DEV/P"],
    "C:\\Users\\dev\\p": [
        *("C:\\Users\\dev\\p", "c:/Users/dev/p", "/c/Users/dev/p", "/mnt/c/Users/dev/p", "~/p"),
        *(
            "%USERPROFILE%\\p",
            "$env:USERPROFILE\\p",
            "\\\\?\\C:\\Users\\dev\\p",
            "/c%3A/Users/dev/p",
        ),
    ],
    "~/p": [
        "~/p",
        "$HOME/p",
        "/home/dev/p",
        "/Users/dev/p",
        "/{}/p".format("root"),
        "/var/home/dev/p",
    ],
    "/tmp/w": ["/tmp/w", "/private/tmp/w"],
    "D:\\code": ["D:\\code", "d:/code", "/d/code"],
    "/workspaces/a/b": ["/workspaces/a/b"],
    "~/.codex/worktrees/1/p": ["/home/dev/.codex/worktrees/1/p"],
}
WRITERS: Mapping[str, tuple[str, Callable[[str], str]]] = {
    "edit tool": ("Write", lambda path: json.dumps({"file_path": path, "content": "x"})),
    "patch": ("apply_patch", lambda path: json.dumps({"input": _patch(path)})),
    "bash": ("bash", lambda path: json.dumps({"command": f"cat > {path} <<'EOF'\nx\nEOF"})),
    "tee": ("bash", lambda path: json.dumps({"command": f'echo x | tee "{path}"'})),
    "powershell": (
        "PowerShell",
        lambda path: json.dumps({"command": f'Set-Content -Path "{path}" -Value x'}),
    ),
    "cmd": ("bash", lambda path: json.dumps({"command": f'cmd.exe /c "echo x > {path}"'})),
}


def _patch(path: str) -> str:
    return f"*** Begin Patch\n*** Add File: {path}\n+x\n*** End Patch"


def _is_said(writer: str, directory: str) -> bool:
    """Whether a shell would understand the spelling."""
    if writer in {"bash", "tee"}:
        return not {"\\", "%"} & set(directory) and "$env" not in directory
    if writer == "cmd":
        return not set("$~?") & set(directory) and "file:" not in directory
    return True


def _below(directory: str, file: str) -> str:
    separator = "\\" if "\\" in directory else "/"
    return f"{directory}{separator}{file.replace('/', separator)}"


def label(writer: str, path: str, *workspace: str, rules: MutationRules = RULES) -> str:
    tool, arguments = WRITERS[writer]
    call = ToolCall(id="1", name=tool, source=arguments(path))
    return rules.label(call, workspace=workspace).label


def named_absolutely(writer: str) -> Iterator[tuple[str, str, str]]:
    """Each file, its absolute name, and the root."""
    for root, spellings in ROOTS.items():
        for directory in spellings:
            if _is_said(writer, directory):
                for file in FILES:
                    yield file, _below(directory, file), root


@pytest.mark.parametrize("writer", WRITERS)
def test_file_has_one_label_below_any_root_in_any_spelling(writer: str) -> None:
    relative = {file: label(writer, file) for file in FILES}
    wrong = [
        (path, root, got, relative[file])
        for file, path, root in named_absolutely(writer)
        if (got := label(writer, path, root)) != relative[file]
    ]

    assert wrong == []


@pytest.mark.parametrize("writer", WRITERS)
def test_edit_tools_and_shells_agree_on_edits_plans_and_builds(writer: str) -> None:
    wanted = dict.fromkeys(EDITS, "file_edit") | dict.fromkeys(OTHERS, "file_write_other")

    assert {file: label(writer, file) for file in wanted} == wanted


def _bodies(
    prompt: str,
) -> Iterator[tuple[WireFormat, dict[str, Any], Callable[[dict[str, Any]], Any]]]:
    """Yield requests with a prompt in each place that clients use, and how to add a call."""
    user = {"role": "user", "content": "go"}

    def chat(call: dict[str, Any]) -> list[Any]:
        function = {"name": call["name"], "arguments": json.dumps(call["input"])}
        calls = [{"id": "1", "type": "function", "function": function}]
        return [{"role": "assistant", "content": None, "tool_calls": calls}]

    def messages(call: dict[str, Any]) -> list[Any]:
        return [{"role": "assistant", "content": [{"type": "tool_use", "id": "1", **call}]}]

    def items(call: dict[str, Any]) -> list[Any]:
        name, arguments = call["name"], json.dumps(call["input"])
        return [{"type": "function_call", "call_id": "1", "name": name, "arguments": arguments}]

    told = {"role": "user", "content": [{"type": "text", "text": prompt}]}
    yield "openai_chat", {"messages": [{"role": "system", "content": prompt}, user]}, chat
    yield "openai_chat", {"messages": [told, user]}, chat
    yield (
        "anthropic_messages",
        {"system": [{"type": "text", "text": prompt}], "messages": [user]},
        messages,
    )
    yield "anthropic_messages", {"messages": [told, {"role": "system", "content": "x"}]}, messages
    yield "openai_responses", {"instructions": prompt, "input": [user]}, items
    text = {"type": "input_text", "text": prompt}
    yield "openai_responses", {"input": [{"role": "developer", "content": [text]}, user]}, items


def mutations(prompt: str, path: str, rules: MutationRules = RULES) -> Iterator[Mutations]:
    for wire_format, body, behind in _bodies(prompt):
        call = {"name": "Write", "input": {"file_path": path, "content": "x"}}
        key = "input" if "input" in body else "messages"
        whole = {"model": "m", **body, key: [*body[key], *behind(call)]}
        yield Mutations(Request(wire_format=wire_format, body=whole), rules)


PROMPTS = {
    "Claude Code": " - Primary working directory: {}\n  - Is a git repository: false",
    "Claude Code, earlier": "<env>\nWorking directory: {}\nIs directory a git repo: Yes\n</env>",
    "Claude Code, added": " - Additional working directories:\n  - /other\n  - {}\n - Platform: x",
    "Codex": "<environment_context>\n  <cwd>{}</cwd>\n  <shell>bash</shell>\n",
    "Codex, several": "<workspace_roots><root>/other</root><root>{}</root></workspace_roots>",
    "opencode": "<env>\n  Working directory: {}\n  Workspace root folder: /\n</env>",
    "pi": "Current date: 2026-11-30\nCurrent working directory: {}",
    "Qwen Code": "is: linux\nI'm currently working in the directory: {}\nHere is",
    "Gemini CLI": "- **Workspace Directories:**\n  - {}\n  - /home/dev/.gemini/tmp/p/plans\n- **D",
    "Cline": "<environment_details>\n# Current Working Directory ({}) Files\na.py\n",
    "Roo Code": "# Current Workspace Directory ({}) Files\na.py",
    "GitHub Copilot": "I am working in a workspace with the following folders:\n- {} \nI am",
    "Copilot CLI": "<environment_context>\n* Current working directory: {}\n* Git repository",
    "Cursor": "linux. The absolute path of the user's workspace is {}. The user's shell is zsh.",
    "Kimi Code CLI": "The current working directory is `{}`. This should be",
    "goose": "<info-msg>\nIt is currently 2026-11-30\nWorking directory: {}\n</info-msg>",
}


@pytest.mark.parametrize("client", PROMPTS)
def test_root_is_known_from_what_a_client_says(client: str) -> None:
    wrong = [
        (root, told.workspace, told.verdicts)
        for root in ("/repo/a", "/home/dev/p/a", "C:\\Users\\dev\\p\\a", "/tmp/w")
        for told in mutations(PROMPTS[client].format(root), f"{root}/packages/a/dist/x.js")
        if [verdict.label for verdict in told.verdicts] != ["file_write_other"]
        or (root, "prompt") not in told.workspace
    ]

    assert wrong == []


def test_prompt_that_names_no_directory_of_a_workspace_is_not_believed() -> None:
    prompts = ["Working directory: /", "Working directory: /tmp", "Working directory: src", "go"]
    prompts += ["- **Workspace Directories:**\n  - /home/dev/.gemini/tmp/p/plans\n"]

    found = {told.workspace for prompt in prompts for told in mutations(prompt, "/repo/a.py")}

    assert found == {()}


def test_prompt_is_searched_once_in_a_conversation(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[str] = []
    monkeypatch.setattr(
        "switchyard_core.mutation.roots.workspaces_in", lambda text: searched.append(text) or ()
    )
    rules = compile_rules(["coding_agents"], PACKS)
    counts = []
    for _ in range(3):
        for told in mutations("Working directory: /repo", "/repo/a.py", rules):
            assert told.verdicts
        counts.append(len(searched))

    assert counts == [counts[0]] * 3
    assert counts[0] > 0


def test_prompt_is_not_searched_for_calls_whose_names_decide(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr("switchyard_core.mutation.roots.workspaces_in")
    model = RuleSetModel.model_validate({"rules": [{"match": ["Write"], "label": "file_edit"}]})
    rules = compile_rules(["own"], {"own": model})

    for told in mutations("Working directory: /repo", "/repo/a.py", rules):
        assert [verdict.label for verdict in told.verdicts] == ["file_edit"]


KEYS = ["cwd", "workdir", "working_directory", "directory", "workingDirectory"]


def shell(command: str, rules: MutationRules = RULES, **arguments: str) -> str:
    source = json.dumps({"command": command, **arguments})
    return rules.label(ToolCall(id="1", name="bash", source=source)).label


@pytest.mark.parametrize("key", KEYS)
def test_command_starts_where_its_call_says(key: str) -> None:
    other, edit, scratch = "file_write_other", "file_edit", "scratch_write"
    wanted = [
        ("echo x > dist/x.js", "/code/web", other),
        ("echo x > /code/web/packages/a/dist/x.js", "/code/web", other),
        ("echo x > a.py", "/code/web", edit),
        ("echo x > a.py", "~/code", edit),
        ("echo x > a.py", "~/.config/tool", other),
        ("echo x > a.py", "/etc/tool", other),
        ("echo x > a.py", "/tmp/w", scratch),
        ("echo x > a.py", "packages/a", edit),
        ("echo x > dist/a.js", "packages/a", other),
        ("echo x > dist/a.js", ".", other),
        ("cd /tmp/w && cd - && echo x > a.py", "src", edit),
        ("cd /repo && echo x > a.py", "/tmp/w", edit),
    ]

    assert [(c, d, shell(c, **{key: d})) for c, d, _ in wanted] == wanted


def test_start_below_a_known_root_is_a_directory_of_the_workspace() -> None:
    rules = compile_rules(["coding_agents"], PACKS, workspace=["/tmp/repo"])

    assert shell("echo x > a.py", rules, cwd="/tmp/repo/src") == "file_edit"
    assert shell("echo x > dist/x.js", rules, cwd="/tmp/repo/src") == "file_edit"
    assert shell("echo x > ../dist/x.js", rules, cwd="/tmp/repo/src") == "file_write_other"
    assert shell("echo x > a.py", rules, cwd="/tmp/other") == "scratch_write"


HOME = [
    ("tee ~/code/app.py <<< x", "file_edit"),
    ("cd ~/proj && sed -i s/a/b/ x.py", "file_edit"),
    ("cd $HOME/proj && sed -i s/a/b/ x.py", "file_edit"),
    ('cd "${HOME}/proj" && echo x > src/x.py', "file_edit"),
    ("sed -i s/a/b/ ~x/proj/x.py", "file_edit"),
    ("cd && echo x > notes.md", "file_edit"),
    ("echo x > ~/x.py", "file_edit"),
    ("pwsh -c 'Set-Content $env:USERPROFILE/proj/a.py x'", "file_edit"),
    ("pwsh -c 'Push-Location ~/.config; Set-Content a.py x'", "file_write_other"),
    ("pwsh -c 'Push-Location ~/.config; Pop-Location; Set-Content a.py x'", "file_edit"),
    ('cmd /c "cd /d %USERPROFILE%\\proj && echo x > a.py"', "file_edit"),
    ('cmd /c "cd /d %USERPROFILE%\\.config && echo x > a.py"', "file_write_other"),
    ("echo x > ~/proj/dist/x.js", "file_write_other"),
    ("cd ~/.config && echo x > x.py", "file_write_other"),
    ("cd ~/.config/nvim && sed -i s/a/b/ init.lua", "file_write_other"),
    ("echo x >> ~/.bashrc", "file_write_other"),
    ("echo x >> $HOME/.zshrc", "file_write_other"),
    ("echo x >> /Users/dev/.zshrc", "file_write_other"),
    ("echo x > ~/Library/Preferences/x.plist", "file_write_other"),
    ("echo x > ~/.codex/worktrees/1/p/src/x.py", "file_edit"),
    ("echo x > /home/dev/.local/src/p/a.py", "file_edit"),
    ("echo x > ~/.local/share/a.py", "file_write_other"),
]


def test_only_dot_entries_of_a_home_are_outside_the_workspace() -> None:
    assert [(command, shell(command)) for command, _ in HOME] == HOME


def test_edit_tools_agree_on_dot_entries_of_a_home() -> None:
    paths = ["~/.bashrc", "/home/dev/.config/nvim/init.lua", "C:\\Users\\dev\\.claude\\jobs.json"]

    assert {label("edit tool", path) for path in paths} == {"file_write_other"}
    assert label("edit tool", "~/.config/nvim/init.lua", "~/.config/nvim") == "file_edit"
    assert label("edit tool", "~/.codex/worktrees/1/p/src/x.py") == "file_edit"
    assert label("edit tool", "/etc/hosts") == "file_edit"


def test_home_is_the_same_place_in_every_spelling() -> None:
    for root in ("~/proj", "$HOME/proj", "/home/dev/proj", "/Users/dev/proj", "C:\\Users\\d\\proj"):
        rules = compile_rules(["coding_agents"], PACKS, workspace=[root])
        for path in ("~/proj", "$HOME/proj", "/home/dev/proj", "/Users/dev/proj"):
            assert shell(f"echo x > {path}/packages/a/dist/x.js", rules) == "file_write_other"
            assert shell(f"cd {path} && echo x > packages/a/dist/x.js", rules) == "file_write_other"


def test_dot_entries_stay_outside_when_the_home_is_the_workspace() -> None:
    assert label("bash", "~/.bashrc", "~") == "file_write_other"
    assert label("bash", "~/src/x.py", "/home/dev") == "file_edit"


def test_verdict_says_that_no_root_is_known() -> None:
    def detail(writer: str, path: str, *workspace: str) -> str:
        tool, arguments = WRITERS[writer]
        call = ToolCall(id="1", name=tool, source=arguments(path))
        return RULES.label(call, workspace=workspace).detail

    for writer in ("edit tool", "bash", "powershell", "patch"):
        assert NO_ROOT in detail(writer, "/repo/src/a.py"), writer
        assert NO_ROOT in detail(writer, "C:/code/dist/a.js"), writer
        assert NO_ROOT not in detail(writer, "src/a.py"), writer
        assert NO_ROOT not in detail(writer, "/repo/src/a.py", "/repo"), writer
        assert NO_ROOT not in detail(writer, "/elsewhere/a.py", "/repo"), writer


UNKNOWN_ROOTS = [
    *("/repo", "/app", "/testbed", "/workspace", "/workspaces/p", "/mnt/data/p", "/usr/src/app"),
    *("~/p", "~/code/p", "~/Documents/GitHub/p", "/home/dev/projects/p", "/Users/me/p", "/opt/p"),
    *("C:\\code\\p", "D:\\p", "C:\\Users\\me\\p", "/Volumes/Data/p", "$REPO"),
]


@pytest.mark.parametrize("writer", ["edit tool", "patch", "bash", "powershell"])
def test_usual_places_are_taken_for_roots_when_nobody_names_one(writer: str) -> None:
    wrong = [
        (path, got, wanted)
        for root in UNKNOWN_ROOTS
        for file in FILES
        if _is_said(writer, root) and file != "src/dist/x.py"  # `/repo/src` may be a root, too
        for path, wanted in [(_below(root, file), label(writer, file))]
        if (got := label(writer, path)) != wanted
    ]

    assert wrong == []


PLANS = [
    *("~/.claude/plans/x.md", "~/.claude/projects/-repo/memory/MEMORY.md", "~/.codex/plans/x.md"),
    *("~/.codex/memories/x.md", "~/.local/share/opencode/plans/1-x.md", "~/.pi/plans/x.md"),
    *("~/.claude/agent-memory/x/MEMORY.md", "~/.gemini/tmp/1/plans/x.md", "~/.kimi/plans/x.md"),
    *("~/.gemini/antigravity/brain/1/task.md", "~/.copilot/session-state/1/plan.md"),
    *("~/.codeium/windsurf/memories/global_rules.md", "~/.factory/specs/x.md", "/memories/x.md"),
    *("/repo/.factory/docs/x.md", "/repo/.claude/agent-memory-local/x/notes.md"),
    *("/repo/memory-bank/progress.md", "/repo/.kiro/specs/login/design.md"),
    *("/repo/openspec/changes/x/specs/auth/spec.md", "/repo/.specify/memory/constitution.md"),
    *("/repo/.taskmaster/tasks/tasks.json", "/repo/thoughts/shared/plans/x.md"),
    "/private/tmp/claude-501/-repo/1/scratchpad/probe.py",
    *("/tmp/claude-1000/-repo/1/scratchpad/probe.py", "/repo/.unheard_of/plans/x.md"),
    "C:\\Users\\me\\.claude\\projects\\C--code\\memory\\MEMORY.md",
    "C:\\Users\\me\\AppData\\Local\\Temp\\claude\\C--code\\1\\scratchpad\\probe.py",
]


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("workspace", [(), ("/repo",)], ids=["no-root", "root"])
def test_plans_and_memories_are_no_edits(writer: str, workspace: tuple[str, ...]) -> None:
    edits = [
        path
        for path in PLANS
        if _is_said(writer, path) and label(writer, path, *workspace) == "file_edit"
    ]

    assert edits == []


@given(
    st.sampled_from([root for root in ROOTS if root != "~/.codex/worktrees/1/p"]),
    st.lists(
        st.one_of(
            st.sampled_from(["src", "dist", "plans", "packages", "a", ".claude", "docs", "tmp"]),
            st.sampled_from(["memory", "build", "x.md", "a.py", "x.csv", "out", "logs", ".git"]),
            st.from_regex(r"[a-z0-9_]{1,6}(\.[a-z]{1,3})?", fullmatch=True),
        ),
        min_size=1,
        max_size=5,
    ).map("/".join),
    st.sampled_from(["edit tool", "bash", "powershell"]),
)
def test_label_of_a_path_is_that_of_the_same_path_below_the_root(
    root: str, path: str, writer: str
) -> None:
    directory = root.replace("\\", "/")

    assert label(writer, f"{directory}/{path}", root) == label(writer, path, root)
    assert label(writer, path, root) == label(writer, path)
