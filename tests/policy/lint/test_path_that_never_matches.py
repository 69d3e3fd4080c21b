"""Paths that begin where their document has nothing, and paths about which nothing is known."""

from __future__ import annotations

import pytest

from switchyard_core.plugins import PluginRegistry
from switchyard_core.policy import check_policy_text
from tests.policy.lint.pages import example

HEAD = example("path-that-never-matches").partition("[[mutation_rules.own.rules]]")[0]


BODY = "label = 'file_edit'\ndocument = 'body'\nformat = 'openai_chat'\n"


def paths(rule: str, registry: PluginRegistry) -> list[str]:
    text = f'{HEAD}[[mutation_rules.own.rules]]\nmatch = ["cms_save"]\n{rule}\n'
    result = check_policy_text(text, "p.toml", registry)
    assert {finding.code for finding in result.findings} <= {"SY423"}
    return [
        finding.path.removeprefix("mutation_rules.own.rules[0].") for finding in result.findings
    ]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("target = '$.input.path'", "target"),
        ("reader = 'shell'\ncommand = '$.args.command'", "command"),
        ("label = 'file_edit'\npath = '$.input[*].name'", "path"),
        ("label = 'file_edit'\npath = \"$['history'][*].name\"", "path"),
        (f"{BODY}path = '$.choices[*].name'", "path"),
        ("label = 'file_edit'\nwhere = [{ path = '$.command', equals = 'x' }]", "where[0].path"),
    ],
    ids=["target", "command", "conversation", "in_brackets", "body", "condition"],
)
def test_path_to_nothing_is_found(rule: str, expected: str, installed: PluginRegistry) -> None:
    assert paths(rule, installed) == [expected]


@pytest.mark.parametrize(
    "rule",
    [
        "target = '$.arguments.path'",
        "target = '$..path'",
        "target = '$.*.path'",
        "target = '$.arguments'",
        "label = 'file_edit'\nwhere = [{ path = '$.command', exists = false }]",
        "label = 'file_edit'\nwhere = [{ path = '$.server', equals = 'x' }]",
        "label = 'file_edit'\npath = '$.messages[-1:].content[*].name'",
    ],
    ids=["plain", "descent", "any", "whole", "absence", "server", "own_path"],
)
def test_path_that_may_find_something_is_not_found(rule: str, installed: PluginRegistry) -> None:
    assert paths(rule, installed) == []
