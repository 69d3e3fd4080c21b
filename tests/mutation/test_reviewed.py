"""What reviewers of the rules found, each kind once."""

from __future__ import annotations

import json

import pytest

from switchyard_core.conversation import ToolCall
from switchyard_core.mutation import RuleSetModel, compile_rules, core_packs
from switchyard_core.plugins import PluginRegistry

PACKS = PluginRegistry.from_entry_points().rule_sets


def label(name: str, arguments: object, **settings: object) -> str:
    rules = compile_rules(["coding_agents"], PACKS, **settings)
    return rules.label(ToolCall(id="c", name=name, source=json.dumps(arguments))).label


def test_packs_are_the_shipped_ones():
    assert {pack.name for pack in core_packs()} <= PACKS.keys()


@pytest.mark.parametrize("name", ["out", "build", "dist", "logs", "target", "bin", "tmp", "f"])
def test_bare_file_name_of_no_known_kind_is_an_edit(name):
    assert label("Write", {"file_path": name, "content": ""}) == "file_edit"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("packages/log/index.ts", "file_edit"),
        ("src/logs/view.tsx", "file_edit"),
        ("plans/architecture.py", "file_edit"),
        ("plans/step-1.md", "file_write_other"),
        ("dist/a.js", "file_write_other"),
        ("C:/repo/dist/a.js", "file_write_other"),
        ("C:\\repo\\src\\a.js", "file_edit"),
    ],
)
def test_path_classes_tell_source_from_output(path, expected):
    assert label("Write", {"file_path": path, "content": ""}) == expected


WRAPPED: list[tuple[dict[str, str], str]] = [
    ({"server_name": "memory", "tool_name": "write", "arguments": "{}"}, "read_only"),
    (
        {"server_name": "fs", "tool_name": "write_file", "arguments": '{"path":"a.py"}'},
        "file_edit",
    ),
]


def test_wrapper_names_the_server_of_its_tool():
    got = [(arguments, label("use_mcp_tool", arguments)) for arguments, _ in WRAPPED]

    assert got == WRAPPED


@pytest.mark.parametrize(
    ("uses", "expected"),
    [
        ('[{"recipient_name":"functions.write_file","parameters":{"path":"a.py"}}]', "file_edit"),
        ('[{"recipient_name":"functions.read_file","parameters":{"path":"a.py"}}]', "read_only"),
        ("[{broken", "unknown"),
    ],
)
def test_wrapped_calls_may_be_json_text(uses, expected):
    assert label("multi_tool_use.parallel", {"tool_uses": uses}) == expected


WITHOUT: list[tuple[dict[str, object], str]] = [
    ({}, "unknown"),
    ({"command": 5}, "unknown"),
    ({"command": None}, "unknown"),
    ({"restart": True}, "read_only"),
]


def test_shell_call_without_a_command_cannot_be_read():
    got = [(arguments, label("bash", arguments)) for arguments, _ in WITHOUT]

    assert got == WITHOUT


@pytest.mark.parametrize("entry", ["cms_*", "re:^cms_pub"])
@pytest.mark.parametrize("name", ["cms_publish", "cms-publish", "cmsPublish", "srv__cmsPublish"])
def test_patterns_match_every_spelling(entry, name):
    model = RuleSetModel.model_validate(
        {"rules": [{"name": "x", "label": "file_edit", "match": [entry]}]}
    )

    assert (
        compile_rules(["m"], {"m": model}).label(ToolCall(id="c", name=name)).label == "file_edit"
    )


def test_workspace_is_a_directory_and_no_glob():
    arguments = {"command": "echo x > '/tmp/re[po]/x.py'"}

    assert label("bash", arguments, workspace=["/tmp/re[po]"]) == "file_edit"
    assert label("bash", arguments) == "scratch_write"
