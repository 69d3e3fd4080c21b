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
    ({"path": " ", "file": None, "files": 3}, []),
    ({"cell_index": 1, "source": "x"}, []),
    (None, []),
]


def test_usual_arguments_name_files() -> None:
    wrong = [(value, found) for value, want in FILES if (found := list(files_in(value))) != want]

    assert wrong == []


def test_deep_arguments_name_no_more_files() -> None:
    value: Any = "a.py"
    for _ in range(50):
        value = {"files": [value]}

    assert list(files_in(value)) == []


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
