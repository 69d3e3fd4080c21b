"""Every mistake in a rule set is found, with its place."""

from __future__ import annotations

from typing import Any

import pytest
import tomli
from pydantic import ValidationError

from switchyard_core.mutation import RuleSetModel, check_rule_set, core_packs

PACKS = {pack.name: RuleSetModel.model_validate(tomli.loads(pack.text)) for pack in core_packs()}
GOOD: dict[str, Any] = {"label": "file_edit", "match": ["x"]}


def _check(table: dict[str, Any], name: str = "own") -> list[tuple[str, tuple[str | int, ...]]]:
    model = RuleSetModel.model_validate(table)
    problems = check_rule_set(name, model, {**PACKS, name: model}, reserved=PACKS)
    for problem in problems:
        assert problem.message
        assert problem.fix
        assert not problem.message.endswith(".")
    return [(problem.code, problem.location) for problem in problems]


def _rule(**keys: Any) -> list[tuple[str, tuple[str | int, ...]]]:
    return _check({"rules": [{**GOOD, **keys}]})


@pytest.mark.parametrize("name", PACKS)
def test_shipped_pack_has_no_problem(name: str) -> None:
    assert check_rule_set(name, PACKS[name], PACKS) == []


def test_good_rule_set_has_no_problem() -> None:
    assert (
        _check(
            {
                "description": "d",
                "extends": ["coding_agents"],
                "unmatched": "unknown",
                "scratch_paths": ["/scratch/**"],
                "rules": [
                    GOOD,
                    {"match": ["re:^a", "b*"], "target": "$.arguments.path", "scratch": True},
                    {
                        "match": ["sh"],
                        "reader": "shell",
                        "command": "$.arguments",
                        "dialect": "cmd",
                    },
                    {
                        "label": "unknown",
                        "document": "body",
                        "format": "openai_chat",
                        "path": "$.x",
                        "match": ["y"],
                    },
                ],
            }
        )
        == []
    )


BAD: list[tuple[dict[str, Any], str, tuple[str | int, ...]]] = [
    ({"path": "$.a["}, "SY401", ("path",)),
    ({"target": "$..["}, "SY401", ("target",)),
    ({"reader": "shell", "command": "%"}, "SY401", ("command",)),
    ({"where": [{"path": "$[", "exists": True}]}, "SY401", ("where", 0, "path")),
    ({"match": ["ok", "re:(a"]}, "SY402", ("match", 1)),
    ({"match": ["re:(?=a)"]}, "SY402", ("match", 0)),
    ({"where": [{"path": "$.a", "matches": "["}]}, "SY402", ("where", 0, "matches")),
    ({"match": ["a["]}, "SY403", ("match", 0)),
    ({"match": ["a", " "]}, "SY413", ("match", 1)),
    ({"match": []}, "SY413", ("match",)),
    ({"label": "edit"}, "SY410", ("label",)),
    ({"label": None}, "SY406", ()),
    ({"reader": "shel", "command": "$.a"}, "SY408", ("reader",)),
    ({"reader": "shell"}, "SY411", ("reader",)),
    ({"reader": "shell", "command": "$.a", "dialect": "zsh"}, "SY409", ("dialect",)),
    ({"command": "$.a"}, "SY416", ("command",)),
    ({"reader": "patch", "dialect": "bash"}, "SY416", ("dialect",)),
    ({"document": "bodi"}, "SY415", ("document",)),
    ({"document": "body", "path": "$.a"}, "SY412", ("document",)),
    ({"document": "body", "path": "$.a", "format": "x"}, "SY412", ("format",)),
    ({"document": "body", "format": "openai_chat"}, "SY412", ("document",)),
    ({"format": "openai_chat"}, "SY416", ("format",)),
    ({"where": [{"path": "$.a"}]}, "SY414", ("where", 0)),
    ({"where": [{"path": "$.a", "exists": True, "equals": 1}]}, "SY414", ("where", 0)),
]


def test_bad_rule_is_found_at_its_place() -> None:
    got = [(keys, _rule(**keys)) for keys, _, _ in BAD]

    assert got == [(keys, [(code, ("rules", 0, *place))]) for keys, code, place in BAD]


def test_rule_without_names_on_the_default_path_is_found() -> None:
    assert _check({"rules": [{"label": "unknown"}]}) == [("SY413", ("rules", 0))]


@pytest.mark.parametrize("key", ["scratch_paths", "artifact_paths", "plan_paths"])
def test_bad_path_glob_is_found(key: str) -> None:
    assert _check({key: ["ok/**", "a["]}) == [("SY403", (key, 1))]


def test_unknown_unmatched_label_is_found_with_the_nearest_name() -> None:
    model = RuleSetModel.model_validate({"unmatched": "file_edits"})
    (problem,) = check_rule_set("own", model, {})

    assert (problem.code, problem.location, problem.fix) == (
        "SY410",
        ("unmatched",),
        "did you mean `file_edit`?",
    )


def test_unknown_extends_is_found_with_the_nearest_name() -> None:
    model = RuleSetModel.model_validate({"extends": ["coding_agent"]})
    (problem,) = check_rule_set("own", model, PACKS)

    assert problem.code == "SY404"
    assert problem.location == ("extends", 0)
    assert problem.fix == "did you mean `coding_agents`?"
    assert "strict" in problem.notes[0]


@pytest.mark.parametrize("parent", ["own", "other", "far"])
def test_cycle_of_extends_is_found_with_its_way(parent: str) -> None:
    model = RuleSetModel.model_validate({"extends": [parent]})
    available = {
        "own": model,
        "other": RuleSetModel.model_validate({"extends": ["own"]}),
        "far": RuleSetModel.model_validate({"extends": ["gone", "other", "coding_agents"]}),
        **PACKS,
    }
    (problem,) = check_rule_set("own", model, available)

    assert (problem.code, problem.location) == ("SY405", ("extends", 0))
    assert problem.message.endswith("own")


def test_cycle_among_others_is_not_this_sets_problem() -> None:
    model = RuleSetModel.model_validate({"extends": ["a"]})
    loop = {name: RuleSetModel.model_validate({"extends": [to]}) for name, to in ("ab", "ba")}

    assert check_rule_set("own", model, {**loop, "own": model}) == []


def test_set_named_like_a_pack_is_found() -> None:
    assert _check({}, name="strict") == [("SY407", ())]


def test_set_named_like_another_available_set_is_found() -> None:
    (problem,) = check_rule_set("strict", RuleSetModel(), PACKS)

    assert problem.code == "SY407"


def test_problem_of_an_expression_has_the_column_inside_it() -> None:
    model = RuleSetModel.model_validate({"rules": [{**GOOD, "path": "$.a b"}]})
    (problem,) = check_rule_set("own", model, {})

    assert (problem.column, problem.message) == (4, "bad JSONPath: unexpected `b`")


def test_every_problem_is_reported_in_document_order() -> None:
    codes = _check(
        {
            "extends": ["x"],
            "plan_paths": ["["],
            "rules": [{"match": ["re:("]}, {**GOOD, "label": "z"}],
        }
    )

    assert [code for code, _ in codes] == ["SY404", "SY403", "SY402", "SY406", "SY410"]


def test_unknown_key_or_wrong_type_is_refused() -> None:
    tables: list[dict[str, Any]] = [
        {"rule": []},
        {"rules": [{"name": "x", "labels": "y"}]},
        {"rules": [{"match": "x"}]},
        {"rules": [{"scratch": "yes"}]},
        {"rules": [{"where": [{"path": "$", "inn": []}]}]},
        {"fold": 1},
        {"extends": "x"},
    ]
    for table in tables:
        with pytest.raises(ValidationError):
            RuleSetModel.model_validate(table)


TEXT: dict[str, Any] = {"reader": "whole_file"}


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ({"reader": "search_replce"}, ("SY408", ("text", 0, "reader"))),
        ({"reader": "shell"}, ("SY408", ("text", 0, "reader"))),
        ({"label": "edit"}, ("SY410", ("text", 0, "label"))),
        ({"instructions": "(?=a)"}, ("SY402", ("text", 0, "instructions"))),
    ],
)
def test_mistake_in_a_text_rule_is_found(
    keys: dict[str, Any], problem: tuple[str, tuple[str | int, ...]]
) -> None:
    assert _check({"text": [{**TEXT, **keys}]}) == [problem]


def test_text_rules_and_ends_of_examples_without_mistakes_are_fine() -> None:
    rule = {**TEXT, "name": "n", "label": "unknown", "scratch": True, "instructions": "a+"}

    assert _check({"text": [rule, TEXT], "examples_end": ["^Now"]}) == []


def test_bad_pattern_for_the_end_of_examples_is_found() -> None:
    assert _check({"examples_end": ["ok", "("]}) == [("SY402", ("examples_end", 1))]


def test_text_rule_needs_a_reader() -> None:
    with pytest.raises(ValidationError, match="reader"):
        RuleSetModel.model_validate({"text": [{"label": "unknown"}]})
