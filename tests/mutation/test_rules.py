"""Rule sets: order, conditions, targets, custom paths, bodies, unmatched calls."""

from __future__ import annotations

import json
import sys
import time
from itertools import product
from typing import Any

import pytest

from switchyard_core.conversation import Conversation, Message, Text, ToolCall, ToolResult
from switchyard_core.mutation import LABELS, MutationRules, RuleSetModel, Verdict, compile_rules

BASE = {
    "rules": [
        {"name": "edits", "label": "file_edit", "match": ["write_file", "edit"]},
        {
            "name": "view",
            "label": "read_only",
            "match": ["editor"],
            "where": [{"path": "$.arguments.command", "in": ["view"]}],
        },
        {
            "name": "change",
            "match": ["editor"],
            "where": [{"path": "$.arguments.command", "not_in": ["view"]}],
            "target": "$.arguments.path",
        },
        {"name": "sh", "match": ["bash"], "reader": "shell", "command": "$.arguments.command"},
    ]
}


def _rules(*sets: dict[str, Any], base: bool = True, **options: Any) -> MutationRules:
    available = {"base": RuleSetModel.model_validate(BASE)}
    names = []
    for number, table in enumerate(sets):
        available[f"own{number}"] = RuleSetModel.model_validate(table)
        names.append(f"own{number}")
    return compile_rules([*names, *(["base"] if base else [])], available, **options)


def _call(name: str, arguments: Any = None, **more: Any) -> ToolCall:
    source = arguments if isinstance(arguments, str) else json.dumps(arguments or {})
    return ToolCall(id="c1", name=name, source=source, **more)


def _conversation(*messages: tuple[str, list[Any]]) -> Conversation:
    return Conversation(
        messages=tuple(
            Message(role=role, content=tuple(parts), first=n, last=n)  # type: ignore[arg-type]
            for n, (role, parts) in enumerate(messages)
        )
    )


def test_verdict_says_set_rule_path_message_and_tool() -> None:
    verdict = _rules().label(_call("edit", path="$.input[3]", message=2))

    assert verdict == Verdict(
        label="file_edit",
        rule_set="base",
        rule="edits",
        jsonpath="$.messages[*].content[?(@.type == 'tool_call')].name",
        tool="edit",
        call_path="$.input[3]",
        message=2,
    )


def test_call_that_no_rule_knows_is_read_only_by_default() -> None:
    verdict = _rules().label(_call("query"))

    assert (verdict.label, verdict.rule_set, verdict.rule) == ("read_only", "", "")


def test_unmatched_comes_from_the_first_set_that_says_it() -> None:
    assert _rules({"unmatched": "file_edit"}).label(_call("query")).label == "file_edit"


def test_unmatched_option_of_the_route_wins() -> None:
    rules = _rules({"unmatched": "file_edit"}, unmatched="unknown")

    assert rules.label(_call("query")).label == "unknown"


def test_first_rule_decides_and_own_rules_come_before_extended_ones() -> None:
    own = {"extends": ["base"], "rules": [{"label": "read_only", "match": ["edit"]}]}

    verdict = _rules(own, base=False).label(_call("edit"))

    assert (verdict.label, verdict.rule_set, verdict.rule) == ("read_only", "own0", "rules[0]")


def test_set_that_is_reached_twice_is_tried_once() -> None:
    own = {"extends": ["base"]}

    assert _rules(own, own).label(_call("edit")).rule_set == "base"


def test_unknown_set_is_an_error() -> None:
    with pytest.raises(KeyError):
        compile_rules(["none"], {})


@pytest.mark.parametrize(
    ("entry", "name", "matches"),
    [
        ("cms_save", "cms_save", True),
        ("cms_save", "CMS_Save", True),
        ("cms_save", "cmsSave", True),
        ("cms_save", "cms_save_all", False),
        ("cms_save_*", "cms_save_all", True),
        ("cms_save_*", "xcms_save_all", False),
        ("cms_?", "cms_x", True),
        ("re:^cms_(put|patch)_", "cms_put_x", True),
        ("re:^cms_(put|patch)_", "acms_put_x", False),
        ("re:put", "cms_put_x", True),
        ("*", "anything", True),
    ],
)
def test_name_matches_whole_names_globs_and_patterns(entry: str, name: str, matches: bool) -> None:
    rules = _rules({"rules": [{"label": "unknown", "match": [entry]}]}, base=False)

    assert rules.label(_call(name)).label == ("unknown" if matches else "read_only")


def test_set_without_folding_takes_only_the_exact_name_in_any_case() -> None:
    rules = _rules(
        {"fold": False, "rules": [{"label": "unknown", "match": ["cms_save"]}]}, base=False
    )

    assert [rules.label(_call(n)).label for n in ("CMS_SAVE", "cmsSave", "mcp__a__cms_save")] == [
        "unknown",
        "read_only",
        "read_only",
    ]


def test_fullest_known_spelling_of_a_prefixed_name_decides() -> None:
    own = {"rules": [{"label": "read_only", "match": ["mcp__notes__write_file"]}]}

    assert _rules(own).label(_call("mcp__notes__write_file")).label == "read_only"
    assert _rules(own).label(_call("mcp__other__write_file")).label == "file_edit"


def test_catch_all_of_a_later_set_does_not_hide_a_prefixed_edit() -> None:
    catch_all = {"rules": [{"label": "unknown", "match": ["*"]}]}
    available = {
        "base": RuleSetModel.model_validate(BASE),
        "rest": RuleSetModel.model_validate(catch_all),
    }
    rules = compile_rules(["base", "rest"], available)

    assert rules.label(_call("mcp__fs__write_file")).label == "file_edit"
    assert rules.label(_call("query")).label == "unknown"


#: A condition, and the values that satisfy it and that do not.
CONDITIONS: list[tuple[dict[str, Any], list[Any], list[Any]]] = [
    (
        {"equals": "view"},
        ["view", "VIEW", "view ", "\tView\n"],
        ["", "views", "vi ew", 1, ["view"]],
    ),
    ({"equals": " View"}, ["view", "VIEW"], ["review"]),
    ({"equals": ""}, ["", "  "], ["x", 0, False, []]),
    ({"equals": 1}, [1, 1.0], [True, "1", [1]]),
    ({"equals": True}, [True], [1, "true", False]),
    ({"equals": {"a": 1}}, [{"a": 1}], [{"a": 2}, {}]),
    ({"in": ["view", "READ", 5]}, ["VIEW ", "read", "Read", 5], ["create", "5", True, {"view": 1}]),
    ({"not_in": ["view", 1]}, ["create", "", True, ["view"], 0], ["view", "VIEW ", 1]),
    ({"matches": "^a+$"}, ["a", "aaa"], ["aab", "A", "a ", 3, ["a"]]),
    ({"exists": True}, ["", 0, False, [], {}, "x"], []),
    ({"exists": False}, [], ["", 0, False, [], "x"]),
]
#: Whether a condition holds if there is no value, or null.
WITHOUT_VALUE = {"equals": False, "in": False, "not_in": True, "matches": False}


def _holds(condition: dict[str, Any], arguments: str) -> bool:
    where = [{"path": "$.arguments.x", **condition}]
    rule = {"label": "unknown", "match": ["t"], "where": where}
    return _rules({"rules": [rule]}, base=False).label(_call("t", arguments)).label == "unknown"


def test_condition_is_tested_on_the_arguments() -> None:
    wrong = []
    for condition, satisfying, others in CONDITIONS:
        (test,) = condition
        expected = [(json.dumps({"x": value}), True) for value in satisfying]
        expected.extend((json.dumps({"x": value}), False) for value in others)
        without = WITHOUT_VALUE.get(test, condition.get("exists") is False)
        expected.extend((text, without) for text in ("{}", '{"x": null}', '{"y": 1}', "[1]"))
        wrong.extend(
            (condition, reverse, arguments)
            for (arguments, holds), reverse in product(expected, (False, True))
            if _holds({**condition, "not": reverse}, arguments) is (holds is reverse)
        )

    assert wrong == []


#: Patterns that take exponential or square time in engines that go back, and what they choke on.
CATASTROPHES = [
    ("^(a+)+$", "a"),
    ("^(a|aa)+$", "a"),
    ("^(a|a)*$", "a"),
    ("^(a*)*$", "a"),
    ("(.*a){12}$", "a"),
    ("^(.*,){11}P", "1,"),
    ("(x+x+)+y", "x"),
    ("^([a-z0-9]+[-_]?)+@", "a"),
    (r"\\s+$", " "),
    ("^(([a-z])+.)+[A-Z]([a-z])+$", "a"),
    ("(?:a?){30}a{30}$", "a"),
]


@pytest.mark.parametrize(("pattern", "unit"), CATASTROPHES)
@pytest.mark.parametrize("place", ["matches", "match", "jsonpath"])
def test_pattern_cannot_hang_the_router(place: str, pattern: str, unit: str) -> None:
    text = (unit * 100_000)[:99_999] + "!"
    rule: dict[str, Any] = {"label": "unknown", "match": ["t"]}
    call = _call("t", {"x": text})
    if place == "matches":
        rule["where"] = [{"path": "$.arguments.x", "matches": pattern}]
    elif place == "jsonpath":
        escaped = pattern.replace("\\", "\\\\")
        rule["where"] = [{"path": f"$.arguments[?(@.x =~ '{escaped}')].x", "exists": True}]
    else:
        rule["match"] = [f"re:{pattern}"]
        call = _call(text)
    rules = _rules({"rules": [rule]}, base=False)
    began = time.process_time()
    verdict = rules.label(call)

    assert verdict.label == "read_only"
    # Coverage doubles the time.
    assert time.process_time() - began < (2 if sys.gettrace() is None else 6)


def test_condition_on_the_server_is_about_the_call() -> None:
    rule = {"label": "unknown", "match": ["t"], "where": [{"path": "$.server", "equals": "s"}]}
    rules = _rules({"rules": [rule]}, base=False)

    assert rules.label(_call("t", server="s")).label == "unknown"
    assert rules.label(_call("t", "{broken", server="s")).label == "unknown"
    assert rules.label(_call("t", server="z")).label == "read_only"


def test_broken_arguments_make_a_conditional_rule_unknown() -> None:
    verdict = _rules().label(_call("editor", "{broken"))

    assert (verdict.label, verdict.rule) == ("unknown", "view")


def test_broken_arguments_do_not_matter_to_a_rule_on_names() -> None:
    assert _rules().label(_call("edit", "{broken")).label == "file_edit"


TARGETS: list[tuple[Any, str]] = [
    ("src/app.py", "file_edit"),
    ("f", "file_edit"),
    ("/tmp/app.py", "file_edit"),
    ("dist/app.js", "file_write_other"),
    ("server.log", "file_write_other"),
    ("PLAN.md", "file_write_other"),
    ("/repo/.claude/plans/x.md", "file_write_other"),
    (None, "file_edit"),
    (3, "file_edit"),
    ("", "file_edit"),
    (["dist/a.js", "src/a.js"], "file_edit"),
    (["dist/a.js", "dist/b.js"], "file_write_other"),
]


def test_target_path_decides_the_label_of_an_edit_tool() -> None:
    wrong = []
    for path, label in TARGETS:
        arguments = {"command": "create", **({} if path is None else {"path": path})}
        if _rules().label(_call("editor", arguments)).label != label:
            wrong.append((path, label))

    assert wrong == []


def test_rule_opts_in_to_scratch_paths() -> None:
    rule = {"match": ["w"], "target": "$.arguments.path", "scratch": True}
    rules = _rules({"rules": [rule], "scratch_paths": ["/scratch/**"]}, workspace=["/tmp/repo"])

    labels = [
        rules.label(_call("w", {"path": path})).label
        for path in ("/tmp/x.py", "/scratch/x.py", "/tmp/repo/x.py", "src/x.py")
    ]

    assert labels == ["scratch_write", "scratch_write", "file_edit", "file_edit"]


def test_workspace_takes_its_paths_out_of_scratch_for_shells() -> None:
    rules = _rules(workspace=["/tmp/repo"])

    assert rules.label(_call("bash", {"command": "echo > /tmp/repo/a.py"})).label == "file_edit"
    assert (
        rules.label(_call("bash", {"command": "cd /tmp/repo && echo > a.py"})).label == "file_edit"
    )
    assert rules.label(_call("bash", {"command": "echo > /tmp/b.py"})).label == "scratch_write"


def test_sets_add_artifact_and_plan_paths_to_the_defaults() -> None:
    rules = _rules({"artifact_paths": ["gen/**"], "plan_paths": ["NOTES.md"]})

    labels = [
        rules.label(_call("editor", {"command": "create", "path": path})).label
        for path in ("gen/a.py", "NOTES.md", "dist/a.js", "src/a.py")
    ]

    assert labels == ["file_write_other", "file_write_other", "file_write_other", "file_edit"]


def test_label_of_a_reader_rule_says_what_an_edit_counts_for() -> None:
    rule = {
        "match": ["bash"],
        "reader": "shell",
        "command": "$.arguments.command",
        "label": "unknown",
    }
    rules = _rules({"rules": [rule]})

    assert rules.label(_call("bash", {"command": "rm a.py"})).label == "unknown"
    assert rules.label(_call("bash", {"command": "ls"})).label == "read_only"


def test_shell_verdict_carries_the_word_that_decided() -> None:
    verdict = _rules().label(_call("bash", {"command": "ls; sed -i s/a/b/ src/a.py"}))

    assert (verdict.word, verdict.detail) == ("sed", "sed writes src/a.py")


SHAPES: list[tuple[Any, str]] = [
    ({"command": ["bash", "-lc", "rm src/a.py"]}, "file_edit"),
    ({"command": ["git", "status"]}, "read_only"),
    ({"command": ["powershell.exe", "-Command", "Set-Content a.cs x"]}, "file_edit"),
    ({"command": ["cmd", "/c", "del a.c"]}, "file_edit"),
    ({"command": ["apply_patch", "*** Begin Patch\n*** Add File: a.py\n"]}, "file_edit"),
    ({"command": ["ls", 3]}, "read_only"),
    ({"command": {"cmd": "rm src/a.py"}}, "file_edit"),
    ({"command": None}, "unknown"),
    ({"command": []}, "read_only"),
    ({"command": 3}, "unknown"),
    ({}, "unknown"),
    ("{broken", "unknown"),
]


def test_shell_reader_takes_every_shape_of_a_command() -> None:
    got = [(arguments, _rules().label(_call("bash", arguments)).label) for arguments, _ in SHAPES]

    assert got == SHAPES


def test_scan_gives_a_verdict_per_assistant_call_in_order() -> None:
    rules = _rules()
    conversation = _conversation(
        ("user", [_call("edit")]),
        ("assistant", [Text(source=b'"write_file"'), _call("query"), _call("edit", message=1)]),
        ("tool", [ToolResult(call_id="c1", name="edit")]),
        ("assistant", [_call("bash", {"command": "ls"}), _call("edit", kind="hosted")]),
    )

    assert [v.label for v in rules.scan(conversation)] == ["read_only", "file_edit", "read_only"]


def test_scan_with_default_paths_never_builds_the_document() -> None:
    class Guarded(Conversation):
        def document(self) -> dict[str, Any]:
            raise AssertionError

    conversation = Guarded(messages=_conversation(("assistant", [_call("edit")])).messages)

    assert [v.label for v in _rules().scan(conversation)] == ["file_edit"]


def test_custom_path_runs_on_the_document_and_belongs_to_its_call() -> None:
    rule = {
        "label": "unknown",
        "path": "$.messages[?(@.role == 'assistant')].content[*].arguments.tool",
        "match": ["deep_*"],
    }
    conversation = _conversation(
        ("user", [_call("query", {"tool": "deep_x"})]),
        (
            "assistant",
            [
                _call("query", {"tool": "other"}),
                _call("query", {"tool": "deep_x"}),
                _call("query", {"tool": 3}),
            ],
        ),
    )

    verdicts = _rules({"rules": [rule]}).scan(conversation)

    assert [v.label for v in verdicts] == ["read_only", "unknown", "read_only"]
    assert verdicts[1].jsonpath == rule["path"]


def test_custom_path_without_names_takes_every_node() -> None:
    rule = {"label": "unknown", "path": "$.messages[*].content[*].arguments.danger"}
    conversation = _conversation(("assistant", [_call("query", {"danger": 1}), _call("query")]))

    verdicts = _rules({"rules": [rule]}).scan(conversation)

    assert [v.label for v in verdicts] == ["unknown", "read_only"]


def test_custom_path_keeps_its_place_in_the_order() -> None:
    rule = {"label": "read_only", "path": "$.messages[*].content[*].name", "match": ["edit"]}
    conversation = _conversation(("assistant", [_call("edit")]))

    assert [v.label for v in _rules({"rules": [rule]}).scan(conversation)] == ["read_only"]


BODY_RULE = {
    "label": "unknown",
    "document": "body",
    "format": "openai_responses",
    "path": "$.input[?(@.type == 'function_call')].name",
    "match": ["special"],
}


def test_body_rule_runs_on_the_body_and_belongs_to_the_call_at_its_path() -> None:
    body = {
        "input": [
            {"type": "message"},
            {"type": "function_call", "name": "special"},
            {"type": "function_call", "name": "query"},
        ]
    }
    conversation = _conversation(
        (
            "assistant",
            [_call("special", path="$.input[1]"), _call("query", path="$.input[2]")],
        )
    )
    rules = _rules({"rules": [BODY_RULE]})

    labels = [
        v.label for v in rules.scan(conversation, body=lambda: body, wire_format="openai_responses")
    ]

    assert labels == ["unknown", "read_only"]


def test_body_rule_of_another_format_never_asks_for_the_body() -> None:
    def body() -> Any:
        raise AssertionError

    conversation = _conversation(("assistant", [_call("special", path="$.messages[0]")]))
    rules = _rules({"rules": [BODY_RULE]})

    verdicts = rules.scan(conversation, body=body, wire_format="openai_chat")

    assert [v.label for v in verdicts] == ["read_only"]
    assert [v.label for v in rules.scan(conversation)] == ["read_only"]


def test_body_is_built_once_for_several_rules() -> None:
    built = []

    def body() -> Any:
        built.append(1)
        return {"input": [{"type": "function_call", "name": "special"}]}

    conversation = _conversation(("assistant", [_call("special", path="$.input[0]")]))
    rules = _rules({"rules": [BODY_RULE, {**BODY_RULE, "label": "file_edit"}]})

    rules.scan(conversation, body=body, wire_format="openai_responses")

    assert built == [1]


def test_wrapper_is_followed_only_so_deep() -> None:
    arguments: Any = {"tool": "edit", "parameters": {}}
    for _ in range(9):
        arguments = {"tool": "batch", "parameters": arguments}
    own = {"rules": [{"match": ["batch"], "reader": "recurse"}]}

    assert _rules(own).label(_call("batch", {"tool": "edit"})).label == "file_edit"
    assert _rules(own).label(_call("batch", arguments)).label == "unknown"
    assert _rules(own).label(_call("batch", {"x": 1})).label == "read_only"
    assert _rules(own).label(_call("batch", [1, {"tool_calls": [{"name": "edit"}]}])).label == (
        "file_edit"
    )


def test_many_names_and_commands_are_remembered_within_bounds() -> None:
    rules = _rules()
    for number in range(5000):
        rules.label(_call(f"tool_{number}"))
        rules.label(_call("bash", {"command": f"echo {number} > src/a.py"}))

    assert rules.label(_call("bash", {"command": "echo 1 > src/a.py"})).label == "file_edit"
    assert rules.label(_call("edit")).label == "file_edit"
    assert len(rules._commands) <= 4096
    assert len(rules._tools) <= 4096


def test_labels_are_listed_strongest_first() -> None:
    assert LABELS == ("file_edit", "file_write_other", "scratch_write", "unknown", "read_only")
