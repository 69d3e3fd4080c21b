"""Rule sets: one wrong value hides nothing else, and what follows from it is not reported."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from switchyard_core.policy import CheckResult

Check = Callable[..., CheckResult]
Places = Callable[[CheckResult], list[str]]

HEAD = "schema_version = 1\n[targets]\n[routes]\n"


def test_every_problem_of_a_rule_set_is_reported_though_its_shape_is_wrong(
    check: Check, places: Places
) -> None:
    rules = """[mutation_rules.own]
bogus = 1
unmatched = "nope"
extends = ["nowhere"]
scratch_paths = ["ok", 3, "[a"]
[[mutation_rules.own.rules]]
name = 3
label = "zzz"
match = ["re:("]
[[mutation_rules.own.rules]]
label = "file_edit"
match = ["a", 1, "glob["]
where = [{ matches = "x" }, { path = "$.[", exists = "y" }, { path = "$.a", matches = "(" }]
"""
    assert places(check(HEAD + rules)) == [
        "5:1 SY104 mutation_rules.own.bogus",
        "6:13 SY410 mutation_rules.own.unmatched",
        "7:12 SY404 mutation_rules.own.extends[0]",
        "8:24 SY106 mutation_rules.own.scratch_paths[1]",
        "8:28 SY403 mutation_rules.own.scratch_paths[2]",
        "10:8 SY106 mutation_rules.own.rules[0].name",
        "11:9 SY410 mutation_rules.own.rules[0].label",
        "12:14 SY402 mutation_rules.own.rules[0].match[0]",
        "15:15 SY106 mutation_rules.own.rules[1].match[1]",
        "15:23 SY403 mutation_rules.own.rules[1].match[2]",
        "16:10 SY105 mutation_rules.own.rules[1].where[0]",
        "16:42 SY401 mutation_rules.own.rules[1].where[1].path",
        "16:54 SY106 mutation_rules.own.rules[1].where[1].exists",
        "16:88 SY402 mutation_rules.own.rules[1].where[2].matches",
    ]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        pytest.param("label = 3, match = ['a']", "SY106", id="label"),
        pytest.param("lable = 'file_edit', match = ['a']", "SY104", id="misspelt_label"),
        pytest.param("label = 'file_edit', match = [3]", "SY106", id="match"),
        pytest.param("label = 'file_edit', math = ['a']", "SY104", id="misspelt_match"),
        pytest.param("reader = 'shell', match = ['a'], command = 3", "SY106", id="command"),
        pytest.param(
            "label = 'file_edit', match = ['a'], document = 'body', path = '$.a', format = 3",
            "SY106",
            id="format",
        ),
        pytest.param(
            "label = 'file_edit', match = ['a'], where = [{ path = '$.a', exist = true }]",
            "SY104",
            id="test_of_a_condition",
        ),
    ],
)
def test_problem_that_only_follows_from_a_wrong_key_is_not_reported(
    rule: str, expected: str, check: Check
) -> None:
    result = check(f"{HEAD}[mutation_rules.own]\nrules = [{{ {rule} }}]\n")
    assert [finding.code for finding in result.findings] == [expected]


def test_wrong_key_of_one_rule_does_not_excuse_another(check: Check, places: Places) -> None:
    rules = "rules = [{ label = 3, match = ['a'] }, { match = ['b'] }]"
    assert places(check(f"{HEAD}[mutation_rules.own]\n{rules}\n")) == [
        "5:20 SY106 mutation_rules.own.rules[0].label",
        "5:40 SY406 mutation_rules.own.rules[1]",
    ]


def test_circle_of_rule_sets_is_reported_once(check: Check, places: Places) -> None:
    text = (
        HEAD + '[mutation_rules.a]\nextends = ["b"]\n[mutation_rules.b]\nextends = ["a", "c"]\n'
        '[mutation_rules.c]\nextends = ["b"]\n[mutation_rules.d]\nextends = ["d"]\n'
    )
    assert places(check(text)) == [
        "5:12 SY405 mutation_rules.a.extends[0]",
        "7:17 SY405 mutation_rules.b.extends[1]",
        "11:12 SY405 mutation_rules.d.extends[0]",
    ]


def test_open_bracket_of_a_glob_is_pointed_at_and_not_counted(check: Check) -> None:
    (finding,) = check(HEAD + "[mutation_rules.own]\nplan_paths = ['docs/[a']\n").findings
    assert (finding.code, finding.column) == ("SY403", 21)
    assert "column" not in finding.message


def test_rule_set_that_is_no_table_is_one_finding(check: Check, places: Places) -> None:
    assert places(check(HEAD + "[mutation_rules]\nown = 3\n")) == ["5:7 SY106 mutation_rules.own"]
