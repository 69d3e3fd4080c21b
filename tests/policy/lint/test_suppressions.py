"""Comments that allow a finding: where they may stand, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from switchyard_core.declarations import LintRule
from switchyard_core.errors import Finding
from switchyard_core.hookspecs import hookimpl
from switchyard_core.plugins import PluginRegistry
from switchyard_core.policy import CheckResult, Policy, check_policy_text
from switchyard_core.policy.lint.suppressions import suppressions

Check = Callable[..., CheckResult]
Places = Callable[[CheckResult], list[str]]

SPARE = '[targets.spare]{}\nid = "s"\nllm_client = "provider"\n'
ALLOW = "# switchyard: allow unused-target -- the canary comes next week"


def test_comment_behind_the_line_suppresses_its_finding(check: Check, spec: str) -> None:
    assert check(spec + SPARE.format(f" {ALLOW}")).findings == ()


def test_comment_above_the_line_suppresses_its_finding(check: Check, spec: str) -> None:
    assert check(spec + f"{ALLOW}\n" + SPARE.format("")).findings == ()


def test_comments_above_the_line_may_be_several(check: Check, spec: str) -> None:
    text = spec.replace(
        'base_url = "https://example.com/v1"',
        "# switchyard: allow key-over-plain-http -- a tunnel\n# A word in between.\n"
        "  # switchyard: allow endpoint-in-url -- a proxy wants it\n"
        'base_url = "http://example.com/v1/responses"',
    )
    assert check(text).findings == ()


@pytest.mark.parametrize("line_end", ["\n", "\r\n"], ids=["lf", "crlf"])
def test_comment_suppresses_with_any_line_end_and_a_byte_order_mark(
    line_end: str, check: Check, spec: str
) -> None:
    text = "\ufeff" + spec + SPARE.format(f"\t{ALLOW}")
    assert check(text.replace("\n", line_end).encode()).findings == ()


@pytest.mark.parametrize(
    ("comment", "expected"),
    [
        pytest.param(
            "# switchyard: allow unused-target",
            ["21:10 SY220 targets.spare", "21:17 SY191"],
            id="no_reason",
        ),
        pytest.param(
            "# switchyard: allow unused-target --  ",
            ["21:10 SY220 targets.spare", "21:17 SY191"],
            id="blank_reason",
        ),
        pytest.param(
            "# switchyard: ignore unused-target -- x",
            ["21:10 SY220 targets.spare", "21:17 SY191"],
            id="another_word",
        ),
        pytest.param(
            "# switchyard: allow -- x",
            ["21:10 SY220 targets.spare", "21:17 SY191"],
            id="no_name",
        ),
        pytest.param(
            "# switchyard: allow unused-targt -- x",
            ["21:10 SY220 targets.spare", "21:17 SY192"],
            id="unknown_name",
        ),
        pytest.param(
            "# switchyard: allow unused-client -- x",
            ["21:10 SY220 targets.spare", "21:17 SY193"],
            id="another_rule",
        ),
        pytest.param("# a word about switchyard", ["21:10 SY220 targets.spare"], id="no_comment"),
    ],
)
def test_comment_that_allows_nothing_is_a_finding_and_the_other_stays(
    comment: str, expected: list[str], check: Check, places: Places, spec: str
) -> None:
    result = check(spec + SPARE.format(f" {comment}"))
    assert places(result) == expected
    assert {finding.severity for finding in result.findings} == {"warning"}


@pytest.mark.parametrize(
    ("name", "fix"),
    [
        ("unused-targt", "did you mean `unused-target`?"),
        ("SY220", "write its name, `unused-target`"),
        ("zzz", "use one of these"),
    ],
    ids=["misspelt", "code", "nothing_like_it"],
)
def test_unknown_name_gets_the_nearest_one(name: str, fix: str, check: Check, spec: str) -> None:
    (finding,) = check(spec + f"# switchyard: allow {name} -- x\n").findings
    assert (finding.code, finding.fix) == ("SY192", fix)
    assert "unused-client, unused-target" in finding.notes[0]


def test_comment_covers_the_next_line_only(check: Check, places: Places, spec: str) -> None:
    assert places(check(spec + f"{ALLOW}\n\n" + SPARE.format(""))) == [
        "21:1 SY193",
        "23:10 SY220 targets.spare",
    ]


def test_comment_cannot_allow_an_error(check: Check, places: Places, spec: str) -> None:
    comment = " # switchyard: allow SY201 -- x"
    result = check(spec.replace('"planner"\n', f'"planer"{comment}\n'))
    assert places(result) == ["19:18 SY201 routes.plan_execute.capable_target", "19:27 SY192"]


def test_comment_for_a_rule_that_could_not_run_is_not_called_unused(
    check: Check, places: Places, spec: str
) -> None:
    text = spec.replace('llm_client = "provider"\n\n[targets.e', 'llm_client = "x"\n\n[targets.e')
    comment = "# switchyard: allow unused-client -- x\n"
    assert places(check(text + comment)) == ["10:14 SY202 targets.planner.llm_client"]


def test_hash_in_a_string_begins_no_comment(check: Check, spec: str) -> None:
    texts = (
        '"# switchyard: allow x"',
        "'# switchyard: allow x'",
        '"""\n\\"""# switchyard: allow x"""',
        "'''a'\n# switchyard: allow x'''",
    )
    for text in texts:
        keys = f"extra_body = {{ a = {text} }}\n[targets.executor]"
        assert check(spec.replace("[targets.executor]", keys)).findings == ()


def test_suppressions_of_a_text_are_read_with_place_and_reason() -> None:
    text = 'a = "#"  # switchyard:  allow  b-c  --  why -- really \n#switchyard:allow d--e\n\n'
    first, second = suppressions(text)
    assert (first.line, first.column, first.covers) == (1, 10, 1)
    assert (first.name, first.reason) == ("b-c", "why -- really")
    assert (second.line, second.covers, second.name, second.reason) == (2, 0, "d--e", "")


def _named(policy: Policy) -> Iterator[Finding]:
    for name in policy.targets:
        yield policy.finding("ABC001", "has a target", ("targets", name))


class Lints:
    @hookimpl
    def switchyard_lint_rules(self) -> list[LintRule]:
        return [LintRule(code="ABC001", name="has-a-target", check=_named, summary="")]


def test_rule_of_a_plugin_is_allowed_like_any_other() -> None:
    text = (
        'schema_version = 1\n[llm_clients.c]\nformat = "openai_chat"\nbase_url = "https://a.com"\n'
        "# switchyard: allow has-a-target -- it must\n# switchyard: allow unused-target -- so\n"
        '[targets.t]\nid = "m"\nllm_client = "c"\n[routes]\n'
    )
    registry = PluginRegistry([("lints", Lints())])
    assert check_policy_text(text, "p.toml", registry).findings == ()
