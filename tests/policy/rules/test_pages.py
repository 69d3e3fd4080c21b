"""Every lint rule: its page is whole, its example fires it alone, its replacement nothing."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from switchyard_core.plugins import PluginRegistry
from switchyard_core.policy import check_policy_text
from switchyard_core.policy.rules import RULES
from switchyard_core.policy.rules.base import Rule
from switchyard_core.policy.rules.page import HEADINGS, page_of

ROOT = Path(__file__).parents[3]
each_rule = pytest.mark.parametrize("rule", [pytest.param(r, id=r.name) for r in RULES])


@pytest.fixture(scope="module")
def installed() -> PluginRegistry:
    return PluginRegistry.from_entry_points()


@each_rule
def test_example_of_a_rule_has_its_finding_and_no_other(
    rule: Rule, installed: PluginRegistry
) -> None:
    result = check_policy_text(page_of(rule).example, "example.toml", installed)
    assert [finding.code for finding in result.findings] == [rule.code]
    assert result.findings[0].severity == rule.severity
    assert result.findings[0].line > 0
    assert result.findings[0].fix


@each_rule
def test_replacement_of_a_rule_has_no_finding(rule: Rule, installed: PluginRegistry) -> None:
    page = page_of(rule)
    assert page.instead != page.example
    result = check_policy_text(page.instead, "instead.toml", installed)
    assert [finding.render() for finding in result.findings] == []
    assert result.policy is not None


@each_rule
def test_example_of_a_rule_is_clean_once_it_is_allowed(
    rule: Rule, installed: PluginRegistry
) -> None:
    example = page_of(rule).example
    (finding,) = check_policy_text(example, "example.toml", installed).findings
    lines = example.splitlines()
    lines[finding.line - 1] += f" # switchyard: allow {rule.name} -- shown on purpose"
    result = check_policy_text("\n".join(lines), "example.toml", installed)
    assert [finding.render() for finding in result.findings] == []


@each_rule
def test_page_of_a_rule_explains_everything(rule: Rule) -> None:
    page = page_of(rule)
    assert tuple(page.sections) == HEADINGS
    assert all(page.sections.values())
    assert page.summary.endswith(".")
    assert "\n" not in page.summary


@each_rule
def test_rule_is_named_like_its_module(rule: Rule) -> None:
    assert re.fullmatch(r"[a-z]+(-[a-z]+)+", rule.name)
    assert type(rule).__module__.rpartition(".")[2] == rule.name.replace("-", "_")
    assert type(rule).__doc__ == page_of(rule).summary
    assert sys.modules[type(rule).__module__].__doc__


def test_rules_have_codes_and_names_of_their_own_in_order() -> None:
    codes = [rule.code for rule in RULES]
    assert codes == sorted(set(codes))
    assert len({rule.name for rule in RULES}) == len(RULES)


@each_rule
def test_list_of_codes_leads_to_the_page_of_a_rule(rule: Rule) -> None:
    text = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    entry = text.split(f"### {rule.code} ")[1].split("\n#")[0]
    assert f"- Page: [{rule.name}](rules/{rule.name}.md)" in entry


def test_written_pages_are_those_of_the_docstrings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    from write_rule_pages import pages  # type: ignore[import-not-found]  # noqa: PLC0415

    differing = [
        path.name
        for path, text in pages().items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    assert differing == [], "run `python scripts/write_rule_pages.py`"
    present = {path.name for path in (ROOT / "docs" / "rules").glob("*.md")}
    assert present == {path.name for path in pages() if path.parent.name == "rules"}
