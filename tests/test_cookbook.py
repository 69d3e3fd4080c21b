"""The cookbook: every policy is clean and tested, and every mistake has the message shown."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

from switchyard_core.cases import run_file
from switchyard_core.cli import cli
from switchyard_core.plugins import PluginRegistry
from switchyard_core.switchyard import Switchyard
from tests.support.cases import each_of

DOCS = Path(__file__).parents[1] / "docs"
PAGE = (DOCS / "cookbook.md").read_text("utf-8")
_SECTION = re.compile(
    r"^## (?P<title>.+?)\n.*?```toml\n(?P<excerpt>.*?)```\n\n"
    r"Whole: \[(?P<name>\w+)\.toml\]\(cookbook/(?P=name)\.toml\), "
    r"\[(?P=name)\.test\.toml\]\(cookbook/(?P=name)\.test\.toml\)\.\n\n"
    r"With `(?P<new>.+?)` instead of `(?P<old>.+?)`:\n\n```text\n(?P<said>.*?)```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """One section of the page."""

    title: str
    excerpt: str
    name: str
    new: str
    old: str
    said: str

    @property
    def policy(self) -> Path:
        return DOCS / "cookbook" / f"{self.name}.toml"


RECIPES = [Recipe(**match.groupdict()) for match in _SECTION.finditer(PAGE)]
EACH = each_of("recipe", [pytest.param(r, id=r.name) for r in RECIPES])


def test_cookbook_has_a_section_for_each_policy_of_its_folder():
    names = sorted(path.name for path in (DOCS / "cookbook").iterdir())

    assert len(RECIPES) == PAGE.count("\n## ") == 13
    assert names == sorted(f"{r.name}{end}" for r in RECIPES for end in (".toml", ".test.toml"))


@EACH
def test_policy_of_the_cookbook_has_no_findings(recipe):
    result = CliRunner().invoke(cli, ["check", "--offline", "--strict", str(recipe.policy)])

    assert result.exit_code == 0, result.output


@EACH
def test_policy_of_the_cookbook_passes_its_test_and_all_of_it_is_exercised(recipe):
    tests = recipe.policy.with_suffix(".test.toml")

    result = run_file(tests, PluginRegistry.from_entry_points(), Switchyard)

    assert result.findings == ()
    assert [(case.name, case.mismatches, case.error) for case in result.cases] == [
        (case.name, (), "") for case in result.cases
    ]
    assert len(result.cases) > 1
    assert result.coverage.uncovered == ()


@EACH
def test_excerpt_of_the_cookbook_is_in_its_policy(recipe):
    assert recipe.excerpt in recipe.policy.read_text("utf-8")


@EACH
def test_mistake_of_the_cookbook_has_the_message_shown(recipe, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = recipe.policy.read_text("utf-8")
    assert recipe.old in text
    Path(recipe.policy.name).write_text(text.replace(recipe.old, recipe.new, 1), "utf-8")

    result = CliRunner().invoke(cli, ["check", "--offline", recipe.policy.name])

    assert result.exit_code == 1
    assert result.output == f"{recipe.said}1 file checked: 1 error, 0 warnings\n"
