"""Policies with one mistake each, and one with many: code, place and fix of every finding."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from switchyard_core.policy import CheckResult, Client, Route, Target

Check = Callable[..., CheckResult]
Places = Callable[[CheckResult], list[str]]


@dataclass(frozen=True, kw_only=True)
class Broken:
    """The policy of the specification with one piece of text replaced."""

    old: str
    new: str
    expected: list[str]
    fix: str


CASES = {
    "unknown_key_at_the_top": Broken(
        old="schema_version = 1\n",
        new='schema_version = 1\ndefault_rout = "x"\n',
        expected=["2:1 SY104 default_rout"],
        fix="did you mean `default_route`?",
    ),
    "unknown_key_of_a_client": Broken(
        old='base_url = "https://example.com/v1"\n',
        new='base_url = "https://example.com/v1"\n  time_out_ms = 3\n',
        expected=["6:3 SY104 llm_clients.provider.time_out_ms"],
        fix="did you mean `timeout_ms`?",
    ),
    "unknown_key_of_a_target": Broken(
        old='id = "provider/capable-model"\n',
        new='id = "provider/capable-model"\ncontext_windows = 3\n',
        expected=["10:1 SY104 targets.planner.context_windows"],
        fix="did you mean `context_window`?",
    ),
    "unknown_key_of_a_route": Broken(
        old='capable_target = "planner"\n',
        new='capable_target = "planner"\nefficient_targets = "executor"\n',
        expected=["20:1 SY104 routes.plan_execute.efficient_targets"],
        fix="did you mean `efficient_target`?",
    ),
    "unknown_key_inside_a_rule": Broken(
        old="[targets.planner]",
        new='[mutation_rules.own]\nrules = [{ label = "file_edit", math = ["x"], match = ["y"] }]\n'
        "[targets.planner]",
        expected=["9:33 SY104 mutation_rules.own.rules[0].math"],
        fix="did you mean `match`?",
    ),
    "wrong_type": Broken(
        old='id = "provider/efficient-model"',
        new="id = 3",
        expected=["13:6 SY106 targets.executor.id"],
        fix='write `"3"`',
    ),
    "unknown_target": Broken(
        old='"planner"\n',
        new='"planer"\n',
        expected=["19:18 SY201 routes.plan_execute.capable_target"],
        fix="did you mean `planner`?",
    ),
    "unknown_client": Broken(
        old='llm_client = "provider"\n\n[targets.executor]',
        new='llm_client = "providers"\n\n[targets.executor]',
        expected=["10:14 SY202 targets.planner.llm_client"],
        fix="did you mean `provider`?",
    ),
    "unknown_route_type": Broken(
        old='type = "plan_execute"',
        new='type = "plan_exec"',
        expected=["18:8 SY301 routes.plan_execute.type"],
        fix="did you mean `plan_execute`?",
    ),
    "unknown_rule_set": Broken(
        old='type = "plan_execute"',
        new='type = "plan_execute"\nmutation_rules = ["coding_agents", "coding_agent"]',
        expected=["19:36 SY404 routes.plan_execute.mutation_rules[1]"],
        fix="did you mean `coding_agents`?",
    ),
    "duplicate_route_id": Broken(
        old="[routes.plan_execute]",
        new='[routes.other]\nid = "x"\naliases = ["switchyard/plan-execute"]\ntype = "open"\n'
        "[routes.plan_execute]",
        expected=["21:6 SY302 routes.plan_execute.id"],
        fix="give each route its own ids and aliases",
    ),
    "blank_prompt": Broken(
        old='type = "plan_execute"',
        new='type = "plan_execute"\nplanning_prompt = " \\n "',
        expected=["19:19 SY108 routes.plan_execute.planning_prompt"],
        fix="write the text, or remove the key",
    ),
    "bad_jsonpath": Broken(
        old="[targets.planner]",
        new="[mutation_rules.own]\n"
        'rules = [{ label = "file_edit", path = "$.messages[", match = ["y"] }]\n'
        "[targets.planner]",
        expected=["9:52 SY401 mutation_rules.own.rules[0].path"],
        fix="",
    ),
    "missing_variable": Broken(
        old="OPENAI_API_KEY",
        new="UNSET_API_KEY",
        expected=["6:15 SY204 llm_clients.provider.api_key_env"],
        fix="export UNSET_API_KEY=...; `check --offline` and `serve --dry-run` need none",
    ),
    "not_toml": Broken(
        old="schema_version = 1",
        new="schema_version: 1",
        expected=["1:15 SY103"],
        fix="write `schema_version = 1`",
    ),
}


@pytest.mark.parametrize("case", [pytest.param(case, id=name) for name, case in CASES.items()])
def test_policy_with_one_mistake_gives_that_finding_and_no_other(
    case: Broken, check: Check, places: Places, spec: str
) -> None:
    assert case.old in spec
    text = spec.replace(case.old, case.new, 1)
    result = check(text, {"OPENAI_API_KEY": "k"})
    assert result.policy is None
    assert places(result) == case.expected
    if case.fix:
        assert result.findings[0].fix == case.fix


def test_unknown_target_is_rendered_as_documented(check: Check, spec: str) -> None:
    result = check(spec.replace('"planner"\n', '"planer"\n'))
    assert result.findings[0].render() == (
        "p.toml:19:18: SY201 unknown target `planer` at routes.plan_execute.capable_target\n"
        "  declared targets: executor, planner\n"
        "  fix: did you mean `planner`?            (more: switchyard rule SY201)"
    )


def test_duplicate_route_id_names_both_places(check: Check) -> None:
    text = 'schema_version = 1\n[targets]\n[routes.a]\nid = "x"\ntype = "open"\naliases = ["x"]\n'
    (finding,) = check(text).findings
    assert (finding.code, finding.line, finding.column) == ("SY302", 6, 12)
    assert finding.notes == ("first used at p.toml:4:6",)


MANY = """\
schema_version = 2
requires = ["no-such-distribution-xyz"]
housekeping = 3
default_route = "nope"

[llm_clients.a]
fromat = "openai_chat"
base_url = "example.com"
forward_auth = true
api_key_env = "NOT_SET"
max_retries = 11

[targets.one]
id = "m"
llm_client = "b"
rewrites = { remap_tool_id = false, set_model = false }

[routes.r]
id = "r"
type = "plan_execute"
capable_target = "two"
planning_prompt = ""
latch_store = "memry"
latch_capacity = 0
handoff_on = ["file_edit", "file_edits"]
on_missing_history = "warm"

[mutation_rules.own]
extends = ["coding_agent"]
"""


def test_policy_with_many_mistakes_reports_all_of_them_in_order(
    check: Check, places: Places
) -> None:
    assert places(check(MANY, {})) == [
        "1:18 SY107 schema_version",
        "2:13 SY507 requires[0]",
        "3:1 SY104 housekeping",
        "4:17 SY306 default_route",
        "7:1 SY104 llm_clients.a.fromat",
        "8:12 SY203 llm_clients.a.base_url",
        "9:1 SY205 llm_clients.a.forward_auth",
        "10:15 SY204 llm_clients.a.api_key_env",
        "11:15 SY107 llm_clients.a.max_retries",
        "15:14 SY202 targets.one.llm_client",
        "16:14 SY207 targets.one.rewrites.remap_tool_id",
        "16:37 SY208 targets.one.rewrites.set_model",
        "18:9 SY105 routes.r",
        "21:18 SY201 routes.r.capable_target",
        "22:19 SY108 routes.r.planning_prompt",
        "23:15 SY304 routes.r.latch_store",
        "24:18 SY107 routes.r.latch_capacity",
        "25:28 SY305 routes.r.handoff_on[1]",
        "26:22 SY107 routes.r.on_missing_history",
        "29:12 SY404 mutation_rules.own.extends[0]",
    ]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param("capable_target", "capable_targt", ["SY104"], id="the_missing_key"),
        pytest.param("capable_target", "zzz", ["SY104", "SY105"], id="no_key_that_is_near"),
        pytest.param("llm_client =", "llm_cleint =", ["SY104"], id="of_a_target"),
    ],
)
def test_misspelt_key_that_is_required_is_one_finding(
    check: Check, spec: str, old: str, new: str, expected: list[str]
) -> None:
    findings = check(spec.replace(old, new, 1)).findings

    assert sorted(finding.code for finding in findings) == expected
    if len(expected) == 1:
        assert findings[0].fix == f"did you mean `{old.removesuffix(' =')}`?"


@pytest.mark.parametrize(
    ("head", "entry"),
    [
        pytest.param("", "key_{0} = {0}\n", id="keys_of_one_table"),
        pytest.param("", '[targets.t{0}]\nmodl = "x{0}"\n', id="tables"),
        pytest.param(
            "[mutation_rules.m]\n", '[[mutation_rules.m.rules]]\nlabl = "x{0}"\n', id="rules"
        ),
        pytest.param("", '[mutation_rules.m{0}]\nextends = ["codin_agents{0}"]\n', id="names"),
    ],
)
def test_policy_of_nothing_but_mistakes_is_checked_only_so_far(
    check: Check, head: str, entry: str
) -> None:
    count = 250_000 // len(entry.format(99999))
    entries = "".join(entry.format(number) for number in range(count))
    began = time.process_time()
    findings = check(f"schema_version = 1\n{head}{entries}").findings

    # Some tenths of a second; all findings of the last one took nine.
    # Coverage doubles the time.
    assert time.process_time() - began < (5 if sys.gettrace() is None else 15)
    assert len(findings) == 201
    assert (findings[-1].code, findings[-1].message) == (
        "SY115",
        "more than 200 findings; the rest of the policy was not checked",
    )
    lines = [finding.line for finding in findings[:-1]]
    assert lines == sorted(lines)


def test_policy_with_as_many_findings_as_are_reported_is_checked_whole(
    check: Check, spec: str
) -> None:
    for count, codes in ((200, {"SY104"}), (201, {"SY104", "SY115"})):
        keys = "".join(f"zzz_{number} = 1\n" for number in range(count))
        findings = check(f"{keys}{spec}").findings
        assert {finding.code for finding in findings} == codes


def test_policy_with_many_mistakes_is_the_same_without_the_environment_but_for_sy204(
    check: Check, places: Places
) -> None:
    online, offline = places(check(MANY, {})), places(check(MANY))
    assert [place for place in online if "SY204" not in place] == offline


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", ["1:1 SY105", "1:1 SY105", "1:1 SY105"], id="empty_file"),
        pytest.param(
            "schema_version = 1\ntargets = 3\nroutes = []\n",
            ["2:11 SY106 targets", "3:10 SY106 routes"],
            id="tables_of_another_type",
        ),
        pytest.param(
            "schema_version = 1\n[targets]\na = 1\n[routes]\nb = 2\n[llm_clients]\nc = []\n",
            ["3:5 SY106 targets.a", "5:5 SY106 routes.b", "7:5 SY106 llm_clients.c"],
            id="entries_of_another_type",
        ),
        pytest.param(
            "schema_version = true\ninclude = [1]\n[targets]\n[routes]\n",
            ["1:18 SY106 schema_version", "2:12 SY106 include[0]"],
            id="keys_of_another_type_at_the_top",
        ),
        pytest.param(
            "schema_version = 1\nidentity = 3\nhousekeeping = 4\nprices = 5\n"
            "mutation_rules = 6\n[targets]\n[routes]\n",
            [
                "2:12 SY106 identity",
                "3:16 SY106 housekeeping",
                "4:10 SY106 prices",
                "5:18 SY106 mutation_rules",
            ],
            id="optional_tables_of_another_type",
        ),
        pytest.param(
            'schema_version = 1\n[targets.t]\nid = "x"\nllm_client = "none"\n'
            "structured_output = 1\n"
            '[routes.r]\nid = "r"\ntype = "open"\nsubagents = 1\n',
            [
                "4:14 SY202 targets.t.llm_client",
                "5:21 SY107 targets.t.structured_output",
                "9:13 SY106 routes.r.subagents",
            ],
            id="values_of_another_type_in_tables",
        ),
        pytest.param(
            "schema_version = 1\nx = " + "[" * 300 + "]" * 300 + "\n[targets]\n[routes]\n",
            ["2:69 SY101"],
            id="nested_300_deep",
        ),
    ],
)
def test_policy_of_the_wrong_shape_is_reported_where_it_is_wrong(
    text: str, expected: list[str], check: Check, places: Places
) -> None:
    assert places(check(text)) == expected


def test_what_the_check_fills_in_is_not_a_key(check: Check, places: Places, spec: str) -> None:
    found = {}
    for table, model in (
        ("llm_clients.provider", Client),
        ("targets.planner", Target),
        ("routes.plan_execute", Route),
    ):
        keys = "".join(f"{name} = 1\n" for name in sorted(model.given()))
        result = check(spec.replace(f"[{table}]\n", f"[{table}]\n{keys}", 1))
        assert {finding.code for finding in result.errors} == {"SY104"}
        found[table] = [finding.path.rpartition(".")[2] for finding in result.errors]

    assert found == {
        "llm_clients.provider": ["name"],
        "targets.planner": ["accepts", "name", "price"],
        "routes.plan_execute": [
            *("name", "options", "rule_sets", "targets", "tools", "wire_formats"),
        ],
    }


def test_no_finding_repeats_a_credential(check: Check) -> None:
    canary = "sk-proj-CANARYabcdefgh12345678"
    text = f"""
schema_version = 1
"{canary}" = 1
default_route = "{canary}"
[llm_clients.a]
format = "openai_chat"
base_url = "https://u:{canary}@example.com?k={canary}"
api_key_env = "{canary}"
extra_headers = {{ authorization = "Bearer {canary}", "{canary} x" = "a" }}
[targets."{canary}"]
id = "{canary} x"
llm_client = "{canary}"
rewrites = {{ "{canary}" = false }}
on_overflow = "{canary}"
[routes.r]
id = "r"
type = "{canary}"
[identity]
session = ["{canary}"]
[[housekeeping]]
header = "{canary} x"
"""
    findings = check(text, {}).findings
    assert len(findings) > 15
    assert canary not in "\n".join(finding.render() for finding in findings)


def test_nothing_of_a_policy_is_accepted_silently(check: Check, spec: str) -> None:
    """Each table refuses a key that it does not know."""
    tables: dict[str, Any] = {
        "llm_clients.provider": "SY104",
        "targets.planner": "SY104",
        "routes.plan_execute": "SY104",
    }
    for table, code in tables.items():
        result = check(spec.replace(f"[{table}]", f"[{table}]\nzzz = 1"))
        assert [finding.code for finding in result.findings] == [code]
    for extra in ("[identity]\nzzz = 1\n", '[[housekeeping]]\nheader = "x"\nzzz = 1\n'):
        result = check(spec + extra)
        assert [finding.code for finding in result.findings] == ["SY104"]
    price = (
        '[prices."provider/capable-model"]\nas_of = 2026-01-01\ninput = 1\noutput = 2\nzzz = 1\n'
    )
    assert [finding.code for finding in check(spec + price).findings] == ["SY104"]
