"""Files in the usual arguments of a tool, and the hint that arguments give."""

from __future__ import annotations

import json
from typing import Any

import tomli

from switchyard_core.conversation import ToolCall
from switchyard_core.mutation import RuleSetModel, compile_rules, core_packs
from switchyard_core.mutation.arguments import files_in

AVAILABLE = {
    pack.name: RuleSetModel.model_validate(tomli.loads(pack.text)) for pack in core_packs()
}


def _label(
    name: str, arguments: Any, pack: str = "coding_agents", *, unmatched: str | None = None
) -> str:
    rules = compile_rules([pack], AVAILABLE, unmatched=unmatched)
    return rules.label(ToolCall(id="1", name=name, source=json.dumps(arguments))).label


FILES: list[tuple[Any, list[str]]] = [
    ("src/a.py", ["src/a.py"]),
    (["a.py", "b.py"], ["a.py", "b.py"]),
    ({"file_path": "a.py", "content": "b.py"}, ["a.py"]),
    ({"pathInProject": "a.py", "projectPath": "/repo"}, ["a.py"]),
    ({"RelativePath": "a.py"}, ["a.py"]),
    ({"uri": "file:///repo/my%20file.py"}, ["/repo/my file.py"]),
    ({"uri": "file:///C:/repo/a.py"}, ["C:/repo/a.py"]),
    ({"uri": "file://localhost/repo/a.py"}, ["/repo/a.py"]),
    ({"uri": "untitled:1"}, ["untitled:1"]),
    ({"files": [{"path": "a.py"}, {"path": "b.py", "patches": []}]}, ["a.py", "b.py"]),
    ({"edits": [{"filePath": "a.py", "newString": "x"}]}, ["a.py"]),
    ({"edits": "a.py"}, []),
    ({"request": {"file": "a.py", "text": "x"}}, ["a.py"]),
    ({"sourcePath": "a.py", "destinationPath": "b.py"}, ["a.py", "b.py"]),
    ({"textDocument": {"uri": "file:///a.py"}}, ["/a.py"]),
    ({"changes": {"file:///a.py": [{"newText": "x"}]}}, ["/a.py"]),
    ({"documentChanges": [{"textDocument": {"uri": "file:///a.py"}, "edits": []}]}, ["/a.py"]),
    ({"path": " ", "file": None, "files": 3}, []),
    ({"cell_index": 1, "source": "x"}, []),
    (None, []),
]


def test_usual_arguments_name_files() -> None:
    wrong = [(value, found) for value, want in FILES if (found := files_in(value, 99)) != want]

    assert wrong == []


def test_deep_arguments_name_no_more_files() -> None:
    value: Any = "a.py"
    for _ in range(50):
        value = {"files": [value]}

    assert files_in(value, 99) == []


FILE_KEYS = ["path", "file_path", "filePath", "filename", "uri", "pathInProject", "TargetFile"]
CONTENT_KEYS = [
    *("content", "new_string", "newText", "patch", "edits", "diff", "replacement", "new_source"),
    "code_edit",
]


def test_unknown_tool_with_file_and_content_is_never_silently_a_read() -> None:
    wrong = [
        (file, content)
        for file in FILE_KEYS
        for content in CONTENT_KEYS
        if _label("frobnicate", {file: "src/a.py", content: "x"}) != "unknown"
    ]

    assert wrong == []


def test_file_or_content_alone_is_no_hint() -> None:
    arguments = [
        *({key: "src/a.py"} for key in FILE_KEYS),
        *({key: "x"} for key in CONTENT_KEYS),
        {},
        {"path": "src", "pattern": "x", "limit": 3},
        {"filepaths": ["a.py"], "query": "x"},
    ]

    assert [given for given in arguments if _label("frobnicate", given) != "read_only"] == []


#: Tools that no rule knows: their label with a file and content, and with a file alone.
NAMES = {
    "hyper_edit": ("file_edit", "file_edit"),
    "mcp__x__rewriteJsonDocument": ("file_edit", "file_edit"),
    "AcmeWrite": ("file_edit", "file_edit"),
    "create_component": ("file_edit", "unknown"),
    "mcp__x__apply_llm_output": ("file_edit", "unknown"),
    "preview_hyper_edit": ("unknown", "read_only"),
    "mcp__acme__suggest_edit": ("unknown", "read_only"),
    "lsp_prepare_rewrite": ("unknown", "read_only"),
    "acme_upload": ("unknown", "read_only"),
    "mcp__wiki__update_page": ("unknown", "read_only"),
    "create_gist": ("unknown", "read_only"),
    "mcp__basic__write_note": ("unknown", "read_only"),
    "delete_breakpoint": ("unknown", "read_only"),
    "editorial": ("unknown", "read_only"),
    "find_usages": ("unknown", "read_only"),
}


def test_verb_of_an_unknown_name_makes_the_hint_an_edit() -> None:
    file, both = {"path": "src/a.py"}, {"path": "src/a.py", "content": "x"}

    assert {name: (_label(name, both), _label(name, file)) for name in NAMES} == NAMES


#: Tools whose argument is no file, or that do something else than edit it: never an edit.
NO_EDITS: list[tuple[str, Any]] = [
    ("update_document", {"uri": "https://docs/x.md", "content": "y"}),
    ("remove_tab", {"uri": "http://x/a.html"}),
    ("delete_document", {"uri": "kb://1.md"}),
    ("delete_thing", {"uris": ["s3://bucket/a.py", "gs://bucket/b.py"]}),
    ("hyper_edit", {"path": "untitled:a.py", "content": "x"}),
    ("reply_to_comment", {"path": "src/a.py", "content": "x"}),
    ("comment_on_file", {"path": "src/a.py", "content": "x"}),
    ("update_comment", {"path": "src/a.py", "content": "x"}),
    ("post_inline_comment", {"path": "src/a.py", "content": "x"}),
    ("post_inline_finding", {"path": "src/a.py", "content": "x"}),
    ("delete_user", {"path": "/users/1"}),
    ("delete_gizmo", {"path": "/gizmos/1"}),
    ("rewrite_gizmo", {"path": "/v1.2/gizmos", "content": "x"}),
    ("http_delete", {"path": "/v1/x"}),
    ("http_patch", {"path": "/v1/x.json"}),
    ("delete_secret", {"path": "secret/x"}),
    ("consul_delete", {"path": "config/app.yaml"}),
    ("modify_vpc", {"file": "vpc.json"}),
    ("update_dashboard", {"file": "dash.json", "content": "x"}),
    ("delete_pod", {"filename": "pod.yaml"}),
    ("update_embedding", {"file": "a.md"}),
    ("detect_rename", {"path": "src/a.py"}),
    ("analyze_patch", {"path": "src/a.py"}),
    ("add_gizmo", {"file": "a.png", "data": "x"}),
]


def test_what_is_no_file_or_no_edit_of_it_never_ends_planning() -> None:
    labels = {name: _label(name, given) for name, given in NO_EDITS}

    assert {n: label for n, label in labels.items() if label not in {"unknown", "read_only"}} == {}


def test_file_without_a_suffix_is_known_by_its_name() -> None:
    paths = ["Makefile", "docker/Dockerfile", ".env", "src/a.py:12", "C:\\repo\\a.py", "res://a.gd"]

    assert [p for p in paths if _label("hyper_edit", {"path": p}) != "file_edit"] == []


def test_payload_and_edits_of_a_language_server_are_content() -> None:
    given: list[Any] = [
        {"filepath": "a.py", "body": "x"},
        {"dest": "a.py", "data": "x"},
        {"changes": {"file:///a.py": [{"newText": "x"}]}},
        {"edit": {"documentChanges": [{"textDocument": {"uri": "file:///a.py"}, "edits": []}]}},
    ]

    assert [each for each in given if _label("frobnicate", each) != "unknown"] == []


SED = "sed -i s/a/b/ src/a.py"
WRITES = "open('src/a.py', 'w').write('x')"
#: Tools that no rule knows, with something to run.
RUNS: list[tuple[str, Any, str]] = [
    ("run_in_sandbox", {"command": SED}, "file_edit"),
    ("sandbox_exec", {"command": ["bash", "-lc", SED]}, "file_edit"),
    ("ssh_execute", {"cmd": SED}, "file_edit"),
    ("ssh_execute", {"command": "git status"}, "read_only"),
    ("ssh_execute", {"command": "mystery-program --all"}, "unknown"),
    ("devbox_shell", {"shell_command": SED}, "file_edit"),
    ("e2b_run", {"commands": ["ls", SED]}, "file_edit"),
    ("e2b_run", {"input": {"command": SED}}, "file_edit"),
    ("e2b_run", {"command": "echo x > a.py", "cwd": "/tmp/x"}, "scratch_write"),
    ("run_thing", {"command": "make"}, "file_write_other"),
    ("mcp__iterm__write_to_terminal", {"command": SED}, "file_edit"),
    ("interactive_bash", {"tmux_command": f"send-keys -t x '{SED}' Enter"}, "file_edit"),
    ("interactive_bash", {"tmux_command": "list-sessions"}, "read_only"),
    ("execute_python", {"code": WRITES}, "file_edit"),
    ("execute_python", {"code": "print(1)"}, "unknown"),
    ("execute_thing", {"language": "bash", "code": SED}, "file_edit"),
    ("mcp__x__run_script", {"script": WRITES}, "file_edit"),
    ("mcp__x__run_script", {"script": SED}, "unknown"),
    ("mcp__x__run_shell_script", {"script": SED}, "file_edit"),
    ("mystery", {"command": SED}, "unknown"),
    ("mystery", {"script": SED}, "unknown"),
    ("mystery", {"code": WRITES}, "unknown"),
    ("mystery", {"command": "git status"}, "read_only"),
    ("mystery", {"code": "print(1)"}, "read_only"),
    ("mystery", {"command": 3, "code": None, "commands": [None]}, "read_only"),
    *(("mystery", {"command": word, "path": "a.py"}, "read_only") for word in ("view", "create")),
    ("run_thing", {"command": "start"}, "read_only"),
    ("explain_command", {"command": SED}, "read_only"),
    ("explain_shell_command", {"command": SED}, "unknown"),
    ("execute_sql", {"command": "SELECT a > b FROM t"}, "unknown"),
    ("run_linter", {"code": WRITES}, "unknown"),
    ("run_code_review", {"code": WRITES}, "unknown"),
    ("render_diagram", {"code": "graph TD; A-->B"}, "read_only"),
]


def test_what_an_unknown_tool_runs_counts() -> None:
    wrong = [
        (name, given, label, want)
        for name, given, want in RUNS
        if (label := _label(name, given)) != want
    ]

    assert wrong == []


def test_unreadable_arguments_of_any_unknown_tool_are_unknown() -> None:
    rules = compile_rules(["coding_agents"], AVAILABLE)
    names = ["mystery", "edit_thing", "frobnicate", "run_thing"]
    calls = [ToolCall(id="1", name=name, source='{"path": "a.py", "con') for name in names]

    assert [rules.label(call).label for call in calls] == ["unknown"] * len(names)


def test_unknown_tool_with_more_commands_than_are_read_is_unknown() -> None:
    given = {"commands": [f"ls {number}" for number in range(3000)]}

    assert _label("mystery", given) == "unknown"


def test_edit_tool_with_too_many_files_edits_whatever_they_are() -> None:
    rules = compile_rules(["coding_agents"], AVAILABLE)
    edits = [{"file_path": f"dist/{number}.js"} for number in range(1001)]
    told = [
        rules.label(ToolCall(id="1", name="MultiEdit", source=json.dumps({"edits": listed})))
        for listed in (edits[:1000], edits)
    ]

    assert [(verdict.label, verdict.detail) for verdict in told] == [
        ("file_write_other", "writes dist/0.js"),
        ("file_edit", "names too many files"),
    ]


def test_verb_alone_is_no_hint() -> None:
    assert [n for n in NAMES if _label(n, {"id": "1", "content": "x"}) != "read_only"] == []


def test_hinted_edit_of_a_plan_document_is_lowered() -> None:
    given = {"path": ".claude/plans/a.md", "content": "x"}

    assert _label("hyper_edit", given) == "file_write_other"


def test_hint_says_what_it_has_seen() -> None:
    rules = compile_rules(["coding_agents"], AVAILABLE)
    call = ToolCall(id="1", name="frobnicate", source='{"newText": "x", "filePath": "a.py"}')

    verdict = rules.label(call)

    assert (verdict.rule_set, verdict.rule) == ("", "")
    assert verdict.detail == (
        "no rule knows it; it has a file (`filePath`) and content (`newText`)"
    )


def test_hint_never_weakens_the_label_of_unmatched_calls() -> None:
    given = {"path": "src/a.py", "content": "x"}
    labels = [_label("frobnicate", given, unmatched=label) for label in ("file_edit", "unknown")]

    assert labels == ["file_edit", "unknown"]
    assert _label("frobnicate", given, "strict") == "file_edit"
    assert _label("frobnicate", given, "reference_compatible") == "read_only"


def test_rule_decides_before_the_hint() -> None:
    assert _label("TodoWrite", {"path": "a.py", "content": "x"}) == "read_only"
    assert _label("Artifact", {"file_path": "a.html", "content": "x"}) == "read_only"
    assert _label("StructuredOutput", {"path": "a.py", "content": "x"}) == "read_only"


def test_own_set_can_switch_the_hint_off() -> None:
    own = RuleSetModel.model_validate({"extends": ["coding_agents"], "argument_hint": False})
    rules = compile_rules(["own"], {**AVAILABLE, "own": own})
    call = ToolCall(id="1", name="frobnicate", source='{"path": "a.py", "content": "x"}')

    assert rules.label(call).label == "read_only"
