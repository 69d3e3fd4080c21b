"""Every row of the agent tool catalogue gets its label from the default pack."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import tomli

from switchyard_core.conversation import ToolCall
from switchyard_core.declarations import WIRE_FORMATS, WireFormat
from switchyard_core.jsonio.tree import ObjectText
from switchyard_core.mutation import MutationRules, RuleSetModel, compile_rules, core_packs
from switchyard_core.testing import conversation
from switchyard_core.wire import format_of

DATA = Path(__file__).parent.parent / "data" / "agent-tools.json"
ROWS: list[dict[str, Any]] = json.loads(DATA.read_text("utf-8"))

#: Rows that name no tool, only an envelope or a naming scheme: there is nothing to label.
UNDECIDABLE = {
    "mcp__<server>__<tool>": "a naming scheme, tested by the prefix tests",
    "mcp_<server>_<tool>": "a naming scheme, tested by the prefix tests",
    "<server>_<tool>": "a naming scheme, tested by the prefix tests",
    "mcp--<server>--<tool> or use_mcp_tool": "a naming scheme, tested by the prefix tests",
    "custom_tool_call": "an item type; the call has the name of its tool",
    "function_call": "an item type; the call has the name of its tool",
    "mcp_call": "an item type; the call has the name of its tool",
    "browser*": "a family of names, matched by a glob",
    "todo__*": "a family of names, matched by a glob",
}

#: Both sides of the rows that depend on their arguments: tool, arguments, label.
PATCH = "*** Begin Patch\n*** Update File: src/app.py\n@@\n-a\n+b\n*** End Patch\n"
DEPENDS: list[tuple[str, Any, str]] = [
    ("Agent", {"prompt": "edit src/app.py"}, "read_only"),
    ("Task", {"prompt": "edit src/app.py"}, "read_only"),
    ("EnterWorktree", {}, "file_write_other"),
    ("ExitWorktree", {}, "file_write_other"),
    ("write_stdin", {"session_id": 1, "chars": ""}, "read_only"),
    ("write_stdin", {"session_id": 1, "chars": "x\n"}, "unknown"),
    ("exec", f"await tools.apply_patch(`{PATCH}`)", "file_edit"),
    ("exec", 'await tools.exec_command({cmd: "cat src/app.py"})', "read_only"),
    ("exec", 'await tools.exec_command({cmd: "sed -i s/a/b/ src/app.py"})', "file_edit"),
    ("exec", "await tools.exec_command({cmd: command})", "unknown"),
    ("js_repl", "require('fs').writeFileSync('src/app.js', '1')", "file_edit"),
    ("js_repl", "1 + 1", "unknown"),
    ("spawn_agent", {"message": "x"}, "read_only"),
    ("send_input", {"message": "x"}, "read_only"),
    ("wait_agent", {}, "read_only"),
    ("close_agent", {}, "read_only"),
    ("computer_call", {"action": {"type": "click"}}, "unknown"),
    ("code_execution", {"code": "print(1)"}, "unknown"),
    ("str_replace_editor", {"command": "view", "path": "a.py"}, "read_only"),
    ("str_replace_editor", {"command": "create", "path": "a.py"}, "file_edit"),
    ("str_replace_editor", {"command": "undo_edit", "path": "a.py"}, "file_edit"),
    ("str_replace_based_edit_tool", {"command": "view", "path": "a.py"}, "read_only"),
    ("str_replace_based_edit_tool", {"command": "insert", "path": "a.py"}, "file_edit"),
    ("invoke_agent", {"prompt": "x"}, "read_only"),
    ("agent", {"prompt": "x"}, "read_only"),
    ("task", {"prompt": "x"}, "read_only"),
    ("use_subagents", {"prompt": "x"}, "read_only"),
    ("batch", {"tool_calls": [{"tool": "read", "parameters": {}}]}, "read_only"),
    (
        "batch",
        {"tool_calls": [{"tool": "edit", "parameters": {"filePath": "a.py"}}]},
        "file_edit",
    ),
    (
        "use_mcp_tool",
        {"server_name": "fs", "tool_name": "write_file", "arguments": '{"path": "a.py"}'},
        "file_edit",
    ),
    (
        "use_mcp_tool",
        {"server_name": "fs", "tool_name": "read_file", "arguments": '{"path": "a.py"}'},
        "read_only",
    ),
    (
        "multi_tool_use.parallel",
        {"tool_uses": [{"recipient_name": "functions.read_file", "parameters": {}}]},
        "read_only",
    ),
    (
        "parallel",
        {
            "tool_uses": [
                {"recipient_name": "functions.read_file", "parameters": {}},
                {"recipient_name": "functions.edit_file", "parameters": {"target_file": "a.py"}},
            ]
        },
        "file_edit",
    ),
    ("multi_replace_file_content", {"TargetFile": "a.py"}, "file_edit"),
    (
        "multi_replace_file_content",
        {"TargetFile": "p.md", "ArtifactMetadata": {}},
        "file_write_other",
    ),
    ("write_to_file", {"TargetFile": "a.py"}, "file_edit"),
    ("write_to_file", {"TargetFile": "p.md", "ArtifactMetadata": {}}, "file_write_other"),
    ("send_command_input", {"CommandId": "1", "Input": "x"}, "unknown"),
    ("create_and_run_task", {"task": {}}, "unknown"),
    ("run_notebook_cell", {}, "unknown"),
    ("runTests", {}, "unknown"),
    ("run_task", {}, "unknown"),
    ("run_vscode_command", {}, "unknown"),
    ("install_extension", {}, "unknown"),
    ("runSubagent", {}, "read_only"),
    ("execution_subagent", {}, "read_only"),
    ("search_subagent", {}, "read_only"),
    ("write_bash", {"sessionId": "1", "input": "y"}, "unknown"),
    ("file_editor", {"command": "view"}, "read_only"),
    ("file_editor", {"command": "str_replace", "path": "a.py"}, "file_edit"),
    ("planning_file_editor", {"command": "create", "path": "PLAN.md"}, "file_write_other"),
    ("planning_file_editor", {"command": "view", "path": "PLAN.md"}, "read_only"),
    ("execute_ipython_cell", {"code": "open('a.py', 'w').write('')"}, "file_edit"),
    ("execute_ipython_cell", {"code": "!sed -i s/a/b/ a.py"}, "file_edit"),
    ("execute_ipython_cell", {"code": "%%bash\nrm src/a.py"}, "file_edit"),
    ("execute_ipython_cell", {"code": "1 + 1"}, "unknown"),
    ("delegate", {"command": "rm x"}, "read_only"),
    ("developer__text_editor", {"command": "view", "path": "a.py"}, "read_only"),
    ("developer__text_editor", {"command": "write", "path": "a.py"}, "file_edit"),
    ("json_edit_tool", {"operation": "view", "file_path": "a.json"}, "read_only"),
    ("json_edit_tool", {"operation": "set", "file_path": "a.json"}, "file_edit"),
    ("write-process", {"terminal_id": 1, "input_text": "x"}, "unknown"),
    ("edit_file", {"path": "a.py", "edits": [], "dryRun": True}, "read_only"),
    ("edit_file", {"path": "a.py", "edits": [], "dryRun": False}, "file_edit"),
    ("interact_with_process", {"pid": 1, "input": "print(1)"}, "unknown"),
    ("interact_with_process", {"pid": 1, "input": "open('a.py','w').write('')"}, "file_edit"),
    ("replace_in_files", {"needle": "a", "repl": "b", "dry_run": True}, "read_only"),
    ("replace_in_files", {"needle": "a", "repl": "b"}, "file_edit"),
    ("execute_bash", {"command": "rm src/a.py", "is_input": "true"}, "unknown"),
    ("bash", {"restart": True}, "read_only"),
    ("REPL", {"code": "require('fs').writeFileSync('src/app.js', '1')"}, "file_edit"),
    ("REPL", {"code": "1 + 1"}, "unknown"),
    ("Monitor", {"command": "tail -f server.log"}, "read_only"),
    ("Monitor", {"command": "sed -i s/a/b/ src/app.py"}, "file_edit"),
    ("shell_write_to_process", {"id": "1", "input": "y"}, "unknown"),
    ("write_to_shell_process", {"id": "1", "content": "y"}, "unknown"),
    ("text_editor_20250728", {"command": "view", "path": "a.py"}, "read_only"),
    ("text_editor_20250728", {"command": "create", "path": "a.py"}, "file_edit"),
    ("git_apply", {"patch": PATCH}, "file_edit"),
    ("git_cherry_pick", {"commit": "a1"}, "file_edit"),
    ("git_stash", {"mode": "Pop"}, "file_edit"),
    ("git_stash", {"mode": "list"}, "read_only"),
    ("git_reset", {"mode": "hard"}, "file_edit"),
    ("git_reset", {"mode": "soft"}, "read_only"),
    ("runNotebookCell", {"cell_id": "1"}, "unknown"),
    ("create_file_or_folder", {"uri": "/repo/src/"}, "file_write_other"),
    ("create_file_or_folder", {"uri": "/repo/src/a.py"}, "file_edit"),
    ("run_configuration", {"configName": "tests"}, "unknown"),
    ("execute_run_configuration", {"configurationName": "tests"}, "unknown"),
    ("execute_action_by_id", {"actionId": "ReformatCode"}, "unknown"),
    ("build_project", {}, "unknown"),
    ("BuildProject", {}, "unknown"),
    ("RunAllTests", {}, "unknown"),
    ("RunSomeTests", {"tests": []}, "unknown"),
    ("ExecuteSnippet", {"codeSnippet": "print(1)"}, "unknown"),
    ("execute_cell", {"cell_index": 1}, "unknown"),
    ("execute_code", {"code": "open('src/a.py', 'w').write('')"}, "file_edit"),
    ("execute_code", {"code": "1 + 1"}, "unknown"),
    ("send_command", {"command": ":w"}, "unknown"),
    ("send_keys", {"keys": "dd"}, "unknown"),
    ("BashCommand", {"action_json": {"command": "git status"}}, "read_only"),
    ("BashCommand", {"action_json": {"command": "git apply x.patch"}}, "file_edit"),
    ("BashCommand", {"action_json": {"status_check": True}}, "unknown"),
    ("codemcp", {"command": "EditFile", "file_path": "src/a.py"}, "file_edit"),
    ("codemcp", {"command": "WriteFile", "file_path": ".claude/plans/a.md"}, "file_write_other"),
    ("codemcp", {"command": "ReadFile", "file_path": "src/a.py"}, "read_only"),
    ("serena_repl", {"code": "1 + 1"}, "unknown"),
    ("query_project", {"project_name": "a", "tool_name": "find_symbol"}, "unknown"),
    ("create_gist", {"filename": "a.py", "content": "x"}, "unknown"),
    ("update_gist", {"gist_id": "1", "filename": "a.py", "content": "x"}, "unknown"),
    ("manage_script", {"action": "read", "path": "Assets/A.cs"}, "read_only"),
    ("manage_script", {"action": "Create", "path": "Assets/A.cs"}, "file_edit"),
    ("manage_script", {"path": "Assets/A.cs"}, "unknown"),
    ("manage_shader", {"action": "update", "path": "Assets/"}, "file_edit"),
    ("manage_asset", {"action": "search", "path": "Assets"}, "read_only"),
    ("manage_asset", {"action": "delete", "path": "Assets/a.mat"}, "file_edit"),
    ("manage_scene", {"action": "get_hierarchy"}, "read_only"),
    ("manage_scene", {"action": "save"}, "unknown"),
    (
        "batch_execute",
        {"commands": [{"tool": "manage_script", "params": {"action": "read"}}]},
        "read_only",
    ),
    (
        "batch_execute",
        {"commands": [{"tool": "create_script", "params": {"path": "Assets/A.cs"}}]},
        "file_edit",
    ),
    ("execute_menu_item", {"menu_path": "File/Save"}, "unknown"),
    ("run_tests", {"mode": "EditMode"}, "unknown"),
    ("run_project", {"projectPath": "/repo"}, "unknown"),
    ("update_project_uids", {"projectPath": "/repo"}, "unknown"),
    ("export_mesh_library", {"scenePath": "a.tscn", "outputPath": "b.res"}, "unknown"),
    ("codex", {"prompt": "fix it", "cwd": "/repo"}, "unknown"),
    ("codex-reply", {"prompt": "fix it", "threadId": "1"}, "unknown"),
    ("claude_code", {"prompt": "fix it", "workFolder": "/repo"}, "unknown"),
    ("build_sim", {"scheme": "App"}, "unknown"),
    ("test_sim", {"scheme": "App"}, "unknown"),
    ("run-code", {"code": "1 + 1", "languageId": "javascript"}, "unknown"),
    ("execute_blender_code", {"code": "import bpy"}, "unknown"),
]

#: How agents write the name of a tool that another server or extension gives them.
PREFIXES = (
    "mcp__srv__{}",
    "mcp__claude_ai_srv__{}",
    "mcp_srv_{}",
    "mcp_my-server_{}",
    "mcp--srv--{}",
    "functions.{}",
    "ext__{}",
    "srv/{}",
    "srv:{}",
    "filesystem_{}",
)


@pytest.fixture(scope="module")
def rules() -> MutationRules:
    available = {
        pack.name: RuleSetModel.model_validate(tomli.loads(pack.text)) for pack in core_packs()
    }
    return compile_rules(["coding_agents"], available)


def _names(tool: str) -> list[str]:
    """Return the tool names that a row's free text gives."""
    spoken = re.sub(r"\b(older name|SDK class name also seen as|legacy|alias)\b:?", "", tool)
    return [name for name in re.split(r"[\s(),/]+", spoken) if re.fullmatch(r"[\w.\-]+", name)]


def _arguments(row: dict[str, Any]) -> Any:
    """Return arguments such as the tool takes, with a source file wherever a path is asked."""
    args = row["args"] if isinstance(row["args"], dict) else {}
    if set(args) == {"<input>"}:
        return PATCH
    values: dict[str, Any] = {}
    for name in args:
        lowered = name.lower()
        if lowered in {"input", "patch", "patchtext"}:
            values[name] = PATCH
        elif "path" in lowered or ("file" in lowered and "text" not in lowered):
            values[name] = ["src/app.py"] if lowered.endswith("s") else "src/app.py"
        elif name == "command":
            values[name] = "str_replace"
        else:
            values[name] = "x"
    return values


def _command_arguments(row: dict[str, Any], command: str) -> Any:
    args = list(row["args"]) if isinstance(row["args"], dict) else []
    for name in ("command", "cmd", "CommandLine", "commands", "action"):
        if name in args:
            break
    if name == "commands":
        return {name: [command]}
    if name == "action":
        if row["tool"] == "shell_call":
            return {"action": {"commands": [command]}}
        return {"action": {"type": "exec", "command": ["bash", "-lc", command]}}
    return {name: command}


def _call(name: str, arguments: Any, **more: Any) -> ToolCall:
    kind: Any = "custom" if isinstance(arguments, str) else "function"
    source = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return ToolCall(id="1", name=name, source=source, kind=kind, **more)


def _rows(*kinds: str) -> Iterator[tuple[dict[str, Any], str]]:
    for row in ROWS:
        counts = row["wire_kind"] != "text" and row["mutates"] in kinds
        if counts and row["tool"] not in UNDECIDABLE:
            yield from ((row, name) for name in _names(row["tool"]))


def test_conditional_rows_all_have_both_sides_or_a_reason() -> None:
    tested = {tool.rsplit(".", 1)[-1] for tool, _, _ in DEPENDS}
    missing = [
        row["tool"]
        for row in ROWS
        if row["mutates"] == "depends"
        and row["wire_kind"] != "text"
        and row["tool"] not in UNDECIDABLE
        and not tested & set(_names(row["tool"].replace("multi_tool_use.", "")))
    ]

    assert missing == []


def _every_call() -> Iterator[tuple[str, Any, str]]:
    """Yield name, arguments and label of every row of the catalogue, both sides of each choice."""
    for kind, more in (("always", "file_edit"), ("never", "read_only")):
        for row, name in _rows(kind):
            mark = "file_write_other" if kind == "always" else "(file_write_other)"
            expected = "file_write_other" if mark in row["condition"] else more
            yield name, _arguments(row), expected
    for row, name in _rows("shell"):
        yield name, _command_arguments(row, "git status"), "read_only"
        yield name, _command_arguments(row, "git apply x.patch"), "file_edit"
    yield from DEPENDS


@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
def test_every_row_has_its_label_in_every_wire_format(
    rules: MutationRules, wire_format: WireFormat
) -> None:
    wrong = []
    for name, arguments, expected in _every_call():
        called = conversation(wire_format).calls(name, arguments, custom=isinstance(arguments, str))
        history = format_of(wire_format).read(ObjectText(called.body()))
        (verdict,) = rules.scan(history)
        if verdict.label != expected:
            wrong.append((name, arguments, expected, verdict.label))

    assert wrong == []


def test_every_row_has_its_label_in_every_spelling(rules: MutationRules) -> None:
    wrong = [
        (prefix.format(name), arguments, expected, label)
        for prefix, (name, arguments, expected) in product(PREFIXES, list(_every_call()))
        if not name.startswith("mcp")
        and (label := rules.label(_call(prefix.format(name), arguments)).label) != expected
    ]

    assert wrong == []


def test_prefixed_name_is_labelled_like_the_bare_one(rules: MutationRules) -> None:
    expected: list[tuple[str, Any, str]] = [
        ("write_file", {"path": "src/app.py"}, "file_edit"),
        ("writeFile", {"path": "src/app.py"}, "file_edit"),
        ("edit-file", {"path": "src/app.py"}, "file_edit"),
        ("apply_patch", {"input": PATCH}, "file_edit"),
        ("str_replace_editor", {"command": "view", "path": "a.py"}, "read_only"),
        ("str_replace_editor", {"command": "create", "path": "a.py"}, "file_edit"),
        ("run_shell_command", {"command": "rm src/app.py"}, "file_edit"),
        ("run_shell_command", {"command": "ls"}, "read_only"),
        ("read_file", {"path": "src/app.py"}, "read_only"),
        ("todo_write", {"todos": []}, "read_only"),
        ("write_memory", {"content": "x"}, "read_only"),
        ("create_directory", {"path": "src"}, "file_write_other"),
    ]
    wrong = [
        (prefix.format(tool), label)
        for prefix, (tool, arguments, label) in product(PREFIXES, expected)
        if rules.label(_call(prefix.format(tool), arguments)).label != label
    ]

    assert wrong == []


def test_namespace_of_a_call_does_not_hide_its_tool(rules: MutationRules) -> None:
    places = [{"namespace": "functions"}, {"namespace": "mcp__fs"}, {"server": "filesystem"}]
    calls = [_call("write_file", {"path": "a.py"}, **place) for place in places]

    assert [call for call in calls if rules.label(call).label != "file_edit"] == []


def test_name_that_only_contains_an_edit_word_is_not_an_edit(rules: MutationRules) -> None:
    names = [
        *("TodoWrite", "write_stdin_info", "write_memory", "create_memory", "update_plan"),
        *("git_create_branch_name", "preview_edit_file", "todo_edit", "memory_write", "list_edit"),
        *("rewrite_history_info", "editor_state", "edits", "written", "get_write_file"),
        *("create_issue", "delete_issue_comment", "update_pull_request", "patch_notes"),
        "apply_filter",
    ]

    assert [
        name
        for name in names
        if rules.label(_call(name, {"path": "src/app.py"})).label == "file_edit"
    ] == []


#: Names of tools that no list has, as servers spell them: with a file or without, these edit …
EDIT_NAMES = (
    *(
        "edit_text_file_contents",
        "search_and_replace_file",
        "edit_file_by_replace",
        "write_code_file",
    ),
    *("createOrOverwriteFile", "FileWriteTool", "restore_file", "touch_file", "bulk_file_writer"),
    *("update_code", "rewrite_code_block", "apply_code_edits", "fix_lint", "organize_imports"),
    *("replace_lines", "insert_line_after", "delete_line_range", "replace_selected_text"),
    *("insert_text_at_line", "replace_string_in_files", "append_to_file", "insert_content"),
    *("str_replace_edit", "multi_apply_diff", "ast_grep_rewrite", "bulk_edit", "hashline_edit"),
    *("rename_variable", "extract_method", "replace_function", "rename_refactoring"),
    *(
        "delete_cell",
        "insertCell",
        "notebook_bulk_add_cells",
        "edit_notebook_cell",
        "set_cell_source",
    ),
    *("nvim_edit", "undo_last_edit", "apply_workspace_edit", "NotebookEditTool"),
)
#: … and these do not.
OTHER_NAMES = (
    *("update_page", "createIssue", "edit_comment", "update_pull_request", "merge_pull_request"),
    *("create_branch", "write_note", "delete_calendar_event", "update_record", "insert_row"),
    *("apply_migration", "send_message", "create_frame", "set_text_content", "move_node"),
    *("update_todo", "add_memory", "append_block_children", "update_block", "browser_fill_form"),
    *("create_function", "update_function_code", "put_object", "update_secret", "create_document"),
    *("update_order_lines", "edit_image", "create_snippet", "preview_edit", "suggest_edit"),
    *("validate_edit", "review_code", "generate_code", "create_file_search_index", "move_card"),
    *("update_file_permissions", "add_line", "delete_line_item", "insert_many", "apply_suggestion"),
    *("edit_text", "rename_field", "editJiraIssue", "update_workflow", "patch_resource"),
    *("apply_changes", "kubectl_patch", "add_comment_to_file", "rename_channel", "edit_profile"),
    *("createConfluencePage", "text_to_speech", "format_code", "run_query", "replace_variable"),
)


def test_unlisted_names_are_told_by_verb_and_object(rules: MutationRules) -> None:
    wrong = [
        (prefix.format(name), expected)
        for prefix in ("{}", *PREFIXES)
        for names, expected in ((EDIT_NAMES, True), (OTHER_NAMES, False))
        for name in names
        if (rules.label(_call(prefix.format(name), {"id": "1"})).label == "file_edit") != expected
    ]

    assert wrong == []


def test_documents_of_a_web_service_are_not_files(rules: MutationRules) -> None:
    calls = [
        ("update_cells", {"spreadsheet_id": "1", "data": []}),
        ("insert_rows", {"spreadsheetId": "1"}),
        ("replace_text", {"documentId": "1", "text": "x"}),
        ("insert_text", {"document_id": "1", "text": "x"}),
    ]

    assert [c for c in calls if rules.label(_call(*c)).label != "read_only"] == []
    assert rules.label(_call("mcp__gdrive__create_file", {"name": "a"})).label == "read_only"
    assert rules.label(_call("merge_cells", {"filepath": "a.xlsx"})).label == "file_edit"
    assert rules.label(_call("add_heading", {"filename": "a.docx"})).label == "file_edit"


def test_target_of_every_kind_of_edit_tool_is_read(rules: MutationRules) -> None:
    plan = ".claude/plans/a.md"
    calls: list[tuple[str, dict[str, Any]]] = [
        ("Edit", {"file_path": plan}),
        ("StrReplaceFile", {"path": plan, "edit": {"old": "a", "new": "b"}}),
        ("replace_text_in_file", {"pathInProject": plan, "projectPath": "/repo"}),
        ("XcodeWrite", {"filePath": plan, "content": "x"}),
        ("edit_text_file_contents", {"files": [{"path": plan, "patches": []}]}),
        ("multi_replace_string_in_file", {"replacements": [{"filePath": plan}]}),
        ("create_script", {"path": plan, "contents": "x"}),
        ("apply_text_edits", {"uri": f"file:///repo/{plan}", "edits": []}),
        ("lov-write", {"file_path": plan}),
        ("file_str_replace", {"file": plan}),
        ("str_replace_editor", {"command": "create", "path": plan}),
        ("rewrite_code", {"targetFile": plan}),
    ]

    assert [c for c in calls if rules.label(_call(*c)).label != "file_write_other"] == []


def test_dry_run_of_any_edit_is_a_read(rules: MutationRules) -> None:
    names = ["edit_file", "multi_edit_file", "ast_grep_replace", "renameSymbol", "delete_lines"]
    values = {True: "read_only", "true": "read_only", False: "file_edit", None: "file_edit"}
    wrong = [
        (name, key, value)
        for name, key, (value, label) in product(names, ("dryRun", "dry_run"), values.items())
        if rules.label(_call(name, {"path": "a.py", key: value})).label != label
    ]

    assert wrong == []


def test_folders_are_edits_where_files_in_them_change(rules: MutationRules) -> None:
    given = {"path": "src/old"}
    labels = {
        "create_folder": "file_write_other",
        "mcp__fs__createDirectory": "file_write_other",
        "delete_directory": "file_edit",
        "mcp__fs__delete_folder": "file_edit",
        "rename_directory": "file_edit",
        "list_folder": "read_only",
    }

    assert {name: rules.label(_call(name, given)).label for name in labels} == labels
    assert rules.label(_call("delete_folder", {"folderId": "1"})).label == "read_only"


def test_subcommand_is_read_in_any_case(rules: MutationRules) -> None:
    editors = ["str_replace_editor", "str_replace_based_edit_tool", "text_editor", "file_editor"]
    commands = {
        "view": "read_only",
        "VIEW": "read_only",
        " view\n": "read_only",
        "Read": "read_only",
        "create": "file_edit",
        "STR_REPLACE": "file_edit",
        "": "file_edit",
        None: "file_edit",
        5: "file_edit",
    }
    wrong = [
        (editor, command)
        for editor, (command, label) in product(editors, commands.items())
        if rules.label(_call(editor, {"command": command, "path": "a.py"})).label != label
    ]

    assert wrong == []
    assert {rules.label(_call(e, {"path": "a.py"})).label for e in editors} == {"file_edit"}
    assert rules.label(_call("edit_file", {"path": "a.py", "dryRun": "True"})).label == "read_only"
    assert rules.label(_call("write_stdin", {"chars": "\n"})).label == "unknown"
