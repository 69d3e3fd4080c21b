"""Warnings: each has a policy that fires it and none of them stops a policy."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from switchyard_core.declarations import LintRule
from switchyard_core.errors import Finding
from switchyard_core.hookspecs import hookimpl
from switchyard_core.plugins import PluginRegistry
from switchyard_core.policy import CheckResult, Policy, check_policy_text
from switchyard_core.policy.lint import lint
from switchyard_core.policy.rules.base import Rule

Check = Callable[..., CheckResult]
Places = Callable[[CheckResult], list[str]]


def test_policy_of_the_specification_has_no_warning(check: Check, spec: str) -> None:
    result = check(spec)
    assert result.findings == ()
    assert result.policy is not None


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(
            "[routes.plan_execute]",
            '[targets.spare]\nid = "s"\nllm_client = "provider"\n[routes.plan_execute]',
            "16:10 SY220 targets.spare",
            id="unused_target",
        ),
        pytest.param(
            "[targets.planner]",
            '[llm_clients.x]\nformat = "openai_chat"\nbase_url = "https://a.com"\n'
            "[targets.planner]",
            "8:14 SY221 llm_clients.x",
            id="unused_client",
        ),
        pytest.param(
            "https://example.com/v1",
            "http://example.com/v1",
            "5:12 SY222 llm_clients.provider.base_url",
            id="key_over_plain_http",
        ),
        pytest.param(
            "https://example.com/v1",
            "http://10.0.0.1/v1",
            "5:12 SY222 llm_clients.provider.base_url",
            id="key_over_plain_http_to_an_address",
        ),
        pytest.param(
            "provider/efficient-model",
            "provider/capable-model",
            "20:20 SY320 routes.plan_execute.efficient_target",
            id="same_model_on_both_sides",
        ),
        pytest.param(
            'efficient_target = "executor"',
            'efficient_target = "executor"\n[prices.other]\nas_of = 2026-01-01\n'
            "input = 1\noutput = 2.5",
            "21:9 SY223 prices.other",
            id="price_of_no_target",
        ),
        pytest.param(
            "[targets.executor]",
            'on_overflow = "stay"\n[targets.executor]',
            "12:15 SY224 targets.planner.on_overflow",
            id="overflow_without_a_window",
        ),
        pytest.param(
            "https://example.com/v1",
            "https://example.com/v1/responses/",
            "5:12 SY225 llm_clients.provider.base_url",
            id="endpoint_in_the_url",
        ),
        pytest.param(
            "https://example.com/v1",
            "https://example.com/v1/Chat/Completions",
            "5:12 SY225 llm_clients.provider.base_url",
            id="endpoint_of_another_format_in_the_url",
        ),
        pytest.param(
            "[targets.executor]",
            '[mutation_rules.own]\nrules = [{ label = "file_edit", match = ["x"], '
            'document = "body", path = "$.messages", format = "openai_chat" }]\n[targets.executor]',
            "13:97 SY420 mutation_rules.own.rules[0].format",
            id="rule_for_bodies_of_no_route",
        ),
        pytest.param(
            'llm_client = "provider"\n\n[targets.executor]',
            'llm_client = "provider"\nextra_body = { k = "sk-proj-abcdefghijkl1234" }\n\n'
            "[targets.executor]",
            "11:20 SY190 targets.planner.extra_body.k",
            id="credential",
        ),
    ],
)
def test_doubtful_policy_is_used_with_a_warning(
    old: str, new: str, expected: str, check: Check, places: Places, spec: str
) -> None:
    assert old in spec
    result = check(spec.replace(old, new, 1))
    assert places(result) == [expected]
    assert result.findings[0].severity == "warning"
    assert result.policy is not None
    assert result.policy.findings == result.findings


@pytest.mark.parametrize("host", ["127.0.0.1:99", "localhost", "[::1]:80", "a.localhost"])
def test_key_over_plain_http_to_this_machine_is_fine(host: str, check: Check, spec: str) -> None:
    assert check(spec.replace("https://example.com", f"http://{host}")).findings == ()


def test_plain_http_without_a_key_is_fine(check: Check, spec: str) -> None:
    text = spec.replace("https://", "http://").replace('api_key_env = "OPENAI_API_KEY"\n', "")
    assert check(text).findings == ()


def test_fallback_client_counts_as_used(check: Check, spec: str) -> None:
    client = '[llm_clients.x]\nformat = "openai_chat"\nbase_url = "https://a.com"\n'
    assert check('fallback_client = "x"\n' + spec + client).findings == ()


def test_one_of_a_list_may_be_named_again_as_its_default(check: Check, spec: str) -> None:
    head, _, _ = spec.partition("[routes.")
    route = '[routes.any]\nid = "any"\ntype = "spread"\nfallback = "executor"\n'
    route += 'choices = [{ target = "planner" }, { target = "executor" }]\n'
    assert check(head + route).findings == ()


def test_price_of_a_target_is_kept(check: Check, spec: str) -> None:
    price = (
        '[prices."provider/capable-model"]\nas_of = 2026-01-01\ninput = 1\noutput = 2.5\n'
        "cached_input = 0.1\n"
    )
    policy = check(spec + price).policy
    assert policy is not None
    made = policy.prices["provider/capable-model"]
    assert (made.as_of.isoformat(), made.input, made.output) == ("2026-01-01", 1.0, 2.5)
    assert (made.cached_input, made.cache_write) == (0.1, None)


def test_overflow_with_a_window_is_fine(check: Check, spec: str) -> None:
    keys = 'on_overflow = "stay"\ncontext_window = 1000\n[targets.executor]'
    assert check(spec.replace("[targets.executor]", keys)).findings == ()


def test_rule_for_bodies_of_a_route_is_fine(check: Check, spec: str) -> None:
    rule = (
        '[mutation_rules.own]\nrules = [{ label = "file_edit", match = ["x"], '
        'document = "body", path = "$.input", format = "openai_responses" }]\n'
    )
    assert check(spec + rule).findings == ()


def test_policy_with_errors_still_gets_the_warnings_that_hold_anyway(
    check: Check, places: Places, spec: str
) -> None:
    text = (
        spec.replace("https://example.com/v1", "http://example.com/v1/responses")
        .replace('"provider/efficient-model"', '"provider/efficient-model"\non_overflow = "stay"')
        .replace('"planner"\n', '"planer"\n')
        + "[prices.x]\nas_of = 2026-01-01\ninput = 1\noutput = 1\n"
        + '[llm_clients.spare]\nformat = "openai_chat"\nbase_url = "https://a.com"\n'
    )
    # `planner` is not called unused: the misspelt name may well mean it.
    assert places(check(text)) == [
        "5:12 SY222 llm_clients.provider.base_url",
        "5:12 SY225 llm_clients.provider.base_url",
        "14:15 SY224 targets.executor.on_overflow",
        "20:18 SY201 routes.plan_execute.capable_target",
        "22:9 SY223 prices.x",
        "26:14 SY221 llm_clients.spare",
    ]


def test_misspelt_client_does_not_make_the_right_one_unused(
    check: Check, places: Places, spec: str
) -> None:
    text = spec.replace('llm_client = "provider"', 'llm_client = "provder"')
    assert places(check(text)) == [
        "10:14 SY202 targets.planner.llm_client",
        "14:14 SY202 targets.executor.llm_client",
    ]


def test_rule_of_our_own_that_crashes_is_one_finding(check: Check, spec: str) -> None:
    policy = check(spec).policy
    assert policy is not None
    (finding,) = lint(policy, (), (), rules=(Crashing(),))
    assert (finding.code, finding.severity) == ("SY901", "warning")
    assert finding.message == "lint rule `crashing-rule` failed: RuntimeError: boom"
    assert "authors of switchyard" in finding.fix


class Crashing(Rule):
    code = "SY299"
    name = "crashing-rule"
    since = "0.1.0"
    status = "stable"
    severity = "warning"

    def check(self, policy: Policy) -> Iterator[Finding]:
        return _raises(policy)


def test_lint_rules_of_plugins_never_see_a_policy_with_errors() -> None:
    registry = PluginRegistry([("lints", Lints())])
    result = check_policy_text("schema_version = 2\n[targets]\n[routes]\n", "p", registry)
    assert [finding.code for finding in result.findings] == ["SY107"]


def _named(policy: Policy) -> Iterator[Finding]:
    for name in policy.targets:
        yield policy.finding("ABC001", "has a target", ("targets", name), notes=("n",), fix="f")


def _raises(_policy: Policy) -> Iterator[Finding]:
    raise RuntimeError("boom")


class Lints:
    @hookimpl
    def switchyard_lint_rules(self) -> list[LintRule]:
        return [
            LintRule(code="ABC001", name="has-a-target", check=_named, summary=""),
            LintRule(code="ABC002", name="raises", check=_raises, summary=""),
        ]


def test_lint_rule_of_a_plugin_adds_findings_and_a_crash_is_one_finding() -> None:
    registry = PluginRegistry([("lints", Lints())])
    text = (
        'schema_version = 1\n[llm_clients.c]\nformat = "openai_chat"\nbase_url = "https://a.com"\n'
        '[targets.t]\nid = "m"\nllm_client = "c"\n[routes]\n'
    )
    result = check_policy_text(text, "p.toml", registry)
    assert [(finding.code, finding.line) for finding in result.findings] == [
        ("SY901", 0),
        ("ABC001", 5),
        ("SY220", 5),
    ]
    assert "`ABC002` failed: RuntimeError: boom" in result.findings[0].message
    assert result.policy is not None
