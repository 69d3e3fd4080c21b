"""``switchyard rule``: a page for every code, the nearest one for an unknown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from switchyard_core.cli import cli
from switchyard_core.declarations import LintRule
from switchyard_core.errors import Finding
from switchyard_core.hookspecs import hookimpl
from switchyard_core.plugins import PluginRegistry
from switchyard_core.policy import Policy
from switchyard_core.policy.lint import RULES
from tests.support.cases import each_of

ERRORS = Path(__file__).parents[2] / "docs" / "errors.md"
CODES = re.findall(r"^### (SY\d{3}) ", ERRORS.read_text(encoding="utf-8"), re.MULTILINE)


def _nothing(_policy: Policy) -> Iterator[Finding]:
    """Never finds anything, whatever the policy."""
    yield from ()


class Lints:
    @hookimpl
    def switchyard_lint_rules(self) -> list[LintRule]:
        return [LintRule(code="OURS001", name="never-found", check=_nothing, summary="Is quiet.")]


def run(*arguments: str) -> Result:
    registry = PluginRegistry([("lints", Lints())])
    return CliRunner().invoke(cli, ["rule", *arguments], obj=registry)


@each_of("code", CODES)
def test_rule_prints_the_page_of_every_code(code: str) -> None:
    result = run(code)
    assert result.exit_code == 0
    head, _, body = result.output.partition("\n\n")
    assert re.fullmatch(rf"# {code} \S.*", head)
    assert len(body) > 80
    assert "\n### SY" not in body
    assert "](" not in body.replace("](docs", "")


def test_rule_prints_an_entry_of_the_list_without_what_follows_it() -> None:
    assert run("SY202").output == (
        "# SY202 unknown client\n\n"
        "- What: `llm_client` or `fallback_client` names a client that is not declared.\n"
        "- Why: There would be no connection.\n"
        "- Fix: Correct the name, or declare `[llm_clients.<name>]`.\n"
    )


@each_of("rule", [pytest.param(rule, id=rule.name) for rule in RULES])
def test_rule_takes_the_name_of_a_lint_rule_in_any_case(rule) -> None:
    by_name = run(rule.name.upper())
    assert by_name.output == run(rule.code.lower()).output
    assert by_name.output.startswith(f"# {rule.code} {rule.name} (warning)\n")
    assert "## Use instead" in by_name.output


def test_rule_explains_the_lint_rules_of_plugins() -> None:
    expected = (
        "# OURS001 never-found (warning)\n\nIs quiet.\n\n"
        "Never finds anything, whatever the policy.\n"
    )
    assert run("OURS001").output == run("never-found").output == expected


@pytest.mark.parametrize(
    ("word", "fix"),
    [
        ("SY2O1", "did you mean `SY2"),
        ("unused-targt", "did you mean `unused-target`?"),
        ("\x1b[31m", "run `switchyard rule` for a list"),
    ],
    ids=["code", "name", "nothing_like_it"],
)
def test_unknown_code_gets_the_nearest_one_and_exits_2(word: str, fix: str) -> None:
    result = run(word)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert f"fix: {fix}" in result.stderr
    assert "\x1b" not in result.stderr


def test_rule_without_a_code_lists_all_of_them() -> None:
    lines = run().output.splitlines()
    assert [line.split()[0] for line in lines] == [*CODES, "OURS001"]
    assert "SY220 unused-target (warning)" in lines
