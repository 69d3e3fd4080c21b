"""Which rule decides by the names of the arguments alone, and that it says what all rules say."""

from __future__ import annotations

import json
from typing import Any

import pytest
import tomli
from hypothesis import given
from hypothesis import strategies as st

from switchyard_core.conversation import ToolCall
from switchyard_core.mutation import MutationRules, RuleSetModel, compile_rules, core_packs
from switchyard_core.mutation.compiled import CallView
from switchyard_core.mutation.outcome import verdict_of
from switchyard_core.mutation.verdict import Verdict

SETS = {pack.name: RuleSetModel.model_validate(tomli.loads(pack.text)) for pack in core_packs()}
RULES = compile_rules(["coding_agents"], SETS, workspace=["/tmp/w"])
PACK = SETS["coding_agents"]
NAMES = sorted({name for rule in PACK.rules for name in rule.match if "*" not in name})
MEMBERS = sorted(
    {
        path.removeprefix("$.arguments.").split("[")[0]
        for rule in PACK.rules
        for path in [rule.target, *(condition.path for condition in rule.where)]
        if path is not None
    }
    | {"_raw", "restart", "cmd", "input", "other"}
)
VALUES: list[Any] = [
    *("src/a.py", "/tmp/x", "out.log", "", " ", "view", "read", "ls -la", "rm a.py", "é", "C:/x"),
    *(True, False, None, 0, 1, {}, [], ["a.py"], ["bash", "-lc", "ls"], {"path": "a.py"}, [["b"]]),
]


def by_all_rules(rules: MutationRules, call: ToolCall) -> Verdict:
    indices = rules._rules_for(call)
    return verdict_of(call, rules._outcome(CallView(call), indices))


calls = st.builds(
    lambda name, arguments, as_bytes, kind: ToolCall(
        id="1",
        name=name,
        source=json.dumps(arguments).encode() if as_bytes else json.dumps(arguments),
        kind=kind,
    ),
    st.sampled_from(NAMES),
    st.dictionaries(st.sampled_from(MEMBERS), st.sampled_from(VALUES), max_size=4),
    st.booleans(),
    st.sampled_from(["function", "function", "builtin", "mcp", "custom"]),
)


@given(calls)
def test_calls_get_the_verdict_that_all_rules_in_turn_give(call: ToolCall) -> None:
    assert RULES.label(call) == by_all_rules(RULES, call)


@pytest.mark.parametrize("name", NAMES)
def test_every_tool_gets_the_verdict_that_all_rules_in_turn_give(name: str) -> None:
    for member in MEMBERS:
        for value in ("src/a.py", "view", True, None, ["a.py"]):
            call = ToolCall(id="1", name=name, source=json.dumps({member: value}))
            assert RULES.label(call) == by_all_rules(RULES, call), call.source


@pytest.mark.parametrize(
    "source", ["", "{", "[]", '"a"', "null", '{"path": "a.py", "path": "/tmp/b"}', '{"_raw": "a"}']
)
@pytest.mark.parametrize("name", ["edit", "bash", "shell", "str_replace_editor", "create"])
def test_odd_arguments_get_the_verdict_that_all_rules_in_turn_give(name: str, source: str) -> None:
    call = ToolCall(id="1", name=name, source=source)

    assert RULES.label(call) == by_all_rules(RULES, call)


def rules_of(*tables: dict[str, Any]) -> MutationRules:
    model = RuleSetModel.model_validate({"rules": list(tables)})
    return compile_rules(["own"], {"own": model})


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        ({"path": "a"}, "path"),
        ({"path": "a", "file": "b"}, "path"),
        ({"file": "b"}, "file"),
        ({"path": "a", "dry": True}, None),
        ({"path": "a", "dry": False}, None),
        ({}, None),
        ({"other": 1}, None),
    ],
)
def test_names_of_the_arguments_settle_unless_a_value_matters(
    arguments: dict[str, Any], rule: str | None
) -> None:
    rules = rules_of(
        {
            "name": "dry",
            "match": ["w"],
            "label": "read_only",
            "where": [{"path": "$.arguments.dry", "equals": True}],
        },
        {
            "name": "path",
            "match": ["w"],
            "target": "$.arguments.path",
            "where": [{"path": "$.arguments.path", "exists": True}],
        },
        {
            "name": "file",
            "match": ["w"],
            "target": "$.arguments.file",
            "where": [{"path": "$.arguments.file", "exists": True}],
        },
        {"name": "many", "match": ["w"], "target": "$.arguments.edits[*].path"},
    )
    plan = rules._plan(ToolCall(id="1", name="w", source="{}"))
    settled = plan.settled(arguments)

    assert (settled.name if settled is not None else None) == rule


def test_condition_on_the_id_is_never_settled() -> None:
    rules = rules_of(
        {"match": ["w"], "label": "unknown", "where": [{"path": "$.id", "exists": True}]}
    )
    call = ToolCall(id="1", name="w", source='{"a": 1}')

    assert rules._plan(call).settled({"a": 1}) is None
    assert rules.label(call).label == "unknown"
