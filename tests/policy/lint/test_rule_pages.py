"""Every lint rule: its page is whole, its example fires it alone, its replacement nothing."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

import pytest

from switchyard_core.plugins import PluginRegistry
from switchyard_core.policy import check_policy_text
from switchyard_core.policy.lint import RULES
from tests.policy.lint.pages import POLICY, example, sections

ROOT = Path(__file__).parents[3]
HEADINGS = [
    "What it finds",
    "Why it matters",
    "Example",
    "Use instead",
    "Exceptions",
    "Suppress it",
]


#: The day of the check, for rules about time.
DAYS = {"old-profile": date(2030, 1, 1)}


def found(text: str, registry: PluginRegistry, rule: str = "") -> list[str]:
    day = DAYS.get(rule, date(2026, 12, 1))
    result = check_policy_text(text, "p.toml", registry, today=day)
    return [finding.code for finding in result.findings]


def test_policy_of_the_examples_has_no_finding(installed: PluginRegistry) -> None:
    assert found(POLICY, installed) == []


def test_example_of_each_rule_has_its_finding_alone_and_its_replacement_none(
    installed: PluginRegistry,
) -> None:
    expected = {rule.name: ([rule.code], []) for rule in RULES}

    assert expected == {
        rule.name: (
            found(example(rule.name), installed, rule.name),
            found(example(rule.name, "Use instead"), installed, rule.name),
        )
        for rule in RULES
    }


def test_example_of_each_rule_is_a_warning_with_a_place_that_a_comment_allows(
    installed: PluginRegistry,
) -> None:
    left = {}
    for rule in RULES:
        text = example(rule.name)
        day = DAYS.get(rule.name, date(2026, 12, 1))
        (finding,) = check_policy_text(text, "p.toml", installed, today=day).findings
        assert (finding.severity, finding.line > 0, finding.fix != "") == ("warning", True, True)
        lines = text.splitlines()
        lines[finding.line - 1] += f" # switchyard: allow {rule.name} -- shown on purpose"
        if codes := found("\n".join(lines), installed, rule.name):
            left[rule.name] = codes

    assert left == {}


def test_page_of_each_rule_explains_everything() -> None:
    for rule in RULES:
        title, summary = rule.page.split("\n\n")[:2]
        assert title == f"# {rule.code} {rule.name} (warning)"
        assert summary.endswith("."), rule.name
        assert "\n" not in summary, rule.name
        assert list(sections(rule.page)) == HEADINGS, rule.name
        assert all(sections(rule.page).values()), rule.name
        assert f"`# switchyard: allow {rule.name} -- <reason>`" in rule.page


def test_rules_have_codes_and_names_of_their_own_in_order() -> None:
    codes = [rule.code for rule in RULES]
    assert codes == sorted(set(codes))
    assert len({rule.name for rule in RULES}) == len(RULES)
    assert [rule.name for rule in RULES if not re.fullmatch(r"[a-z]+(-[a-z]+)+", rule.name)] == []


def test_list_of_codes_leads_to_the_page_of_each_rule() -> None:
    text = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    entries = {rule: text.split(f"### {rule.code} ")[1].split("\n#")[0] for rule in RULES}

    assert [
        rule.name
        for rule, entry in entries.items()
        if f"- Page: [{rule.name}](rules/{rule.name}.md)" not in entry
    ] == []


def test_pages_in_the_docs_are_those_of_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
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
