"""Which names look like a slip, and which like the user's own tool."""

from __future__ import annotations

import pytest

from switchyard_core.plugins import PluginRegistry
from switchyard_core.policy import check_policy_text
from tests.policy.lint.pages import example

EXAMPLE = example("misspelt-tool")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("apply_pach", "apply_patch"),
        ("ApplyPatsh", "apply_patch"),
        ("str_replace_editr", "str_replace_editor"),
        ("write-flie", "write_file"),
    ],
    ids=["letter_missing", "other_letter", "long_name", "letters_swapped"],
)
def test_name_that_is_nearly_a_known_one_is_found_with_it(
    name: str, meant: str, installed: PluginRegistry
) -> None:
    (finding,) = check_policy_text(
        EXAMPLE.replace("apply_pach", name), "p.toml", installed
    ).findings
    assert finding.code == "SY422"
    assert finding.path == "mutation_rules.own.rules[0].match[0]"
    assert finding.fix == f"did you mean `{meant}`?"


@pytest.mark.parametrize(
    "name",
    [
        "cms_publish",
        "applyPatch",
        "mcp__cms__publish",
        "apply_pa*",
        "re:apply_pach",
        "edi",
        "deploy",
    ],
    ids=["own", "spelling", "server", "glob", "regular_expression", "short", "own_word"],
)
def test_own_and_known_names_and_patterns_are_not_found(
    name: str, installed: PluginRegistry
) -> None:
    result = check_policy_text(EXAMPLE.replace("apply_pach", name), "p.toml", installed)
    assert [finding.render() for finding in result.findings] == []
