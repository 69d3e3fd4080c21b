"""Warnings: each has a policy that fires it and none of them stops a policy."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from switchyard_core.declarations import LintRule
from switchyard_core.errors import Finding
from switchyard_core.hookspecs import hookimpl
from switchyard_core.plugins import PluginRegistry
from switchyard_core.policy import CheckResult, Policy, check_policy_text
from switchyard_core.policy.lint import Rule, lint

Check = Callable[..., CheckResult]
Places = Callable[[CheckResult], list[str]]


def test_policy_of_the_specification_has_no_warning(check: Check, spec: str) -> None:
    result = check(spec)
    assert result.findings == ()
    assert result.policy is not None


URL, EXECUTOR = "https://example.com/v1", "[targets.executor]"
SPARE_CLIENT = '[llm_clients.x]\nformat = "openai_chat"\nbase_url = "https://a.com"\n'
BODY_RULE = (
    '[mutation_rules.own]\nrules = [{ label = "file_edit", match = ["x"], document = "body", '
    'path = "%s", format = "%s" }]\n'
)
#: What is replaced in the policy of the specification, by what, and the one warning after that.
DOUBTFUL = {
    "unused_target": (
        "[routes.plan_execute]",
        '[targets.spare]\nid = "s"\nllm_client = "provider"\n[routes.plan_execute]',
        "16:10 SY220 targets.spare",
    ),
    "unused_client": (
        "[targets.planner]",
        f"{SPARE_CLIENT}[targets.planner]",
        "8:14 SY221 llm_clients.x",
    ),
    "key_over_plain_http": (
        URL,
        "http://example.com/v1",
        "5:12 SY222 llm_clients.provider.base_url",
    ),
    "key_over_plain_http_to_an_address": (
        URL,
        "http://10.0.0.1/v1",
        "5:12 SY222 llm_clients.provider.base_url",
    ),
    "same_model_on_both_sides": (
        "provider/efficient-model",
        "provider/capable-model",
        "20:20 SY320 routes.plan_execute.efficient_target",
    ),
    "price_of_no_target": (
        'efficient_target = "executor"',
        (
            'efficient_target = "executor"\n[prices.other]\nas_of = 2026-01-01\ninput = 1\n'
            "output = 2.5"
        ),
        "21:9 SY223 prices.other",
    ),
    "overflow_without_a_window": (
        EXECUTOR,
        f'on_overflow = "reject"\n{EXECUTOR}',
        "12:15 SY224 targets.planner.on_overflow",
    ),
    "endpoint_in_the_url": (
        URL,
        f"{URL}/responses/",
        "5:12 SY225 llm_clients.provider.base_url",
    ),
    "endpoint_of_another_format_in_the_url": (
        URL,
        f"{URL}/Chat/Completions",
        "5:12 SY225 llm_clients.provider.base_url",
    ),
    "placeholder_in_the_url": (
        URL,
        "https://<resource>.example.com/v1",
        "5:12 SY228 llm_clients.provider.base_url",
    ),
    "placeholder_in_a_model_id": (
        "provider/efficient-model",
        "accounts/{account}/models/x",
        "13:6 SY228 targets.executor.id",
    ),
    "placeholder_in_an_alias": (
        'efficient_target = "executor"',
        'efficient_target = "executor"\naliases = ["a", "${MODEL}"]',
        "21:17 SY228 routes.plan_execute.aliases[1]",
    ),
    "placeholder_in_a_header": (
        f'base_url = "{URL}"',
        f'base_url = "{URL}"\nextra_headers = {{ x-org = "%ORG_ID%" }}',
        "6:27 SY228 llm_clients.provider.extra_headers.x-org",
    ),
    "credential": (
        EXECUTOR,
        f'extra_body = {{ k = "sk-proj-abcdefghijkl1234" }}\n{EXECUTOR}',
        "12:20 SY190 targets.planner.extra_body.k",
    ),
}


def test_doubtful_policy_is_used_with_a_warning(check: Check, places: Places, spec: str) -> None:
    found = {}
    for name, (old, new, _) in DOUBTFUL.items():
        assert old in spec, name
        result = check(spec.replace(old, new, 1))
        assert result.policy is not None, name
        assert result.policy.findings == result.findings
        assert {finding.severity for finding in result.findings} == {"warning"}, name
        found[name] = places(result)

    assert found == {name: [expected] for name, (_, _, expected) in DOUBTFUL.items()}


def test_policy_that_only_looks_doubtful_has_no_warning(
    check: Check, places: Places, spec: str
) -> None:
    head, _, _ = spec.partition("[routes.")
    policies = {
        f"key_over_plain_http_to_{host}": spec.replace("https://example.com", f"http://{host}")
        for host in ("127.0.0.1:99", "localhost", "[::1]:80", "a.localhost")
    } | {
        "plain_http_without_a_key": spec.replace("https://", "http://").replace(
            'api_key_env = "OPENAI_API_KEY"\n', ""
        ),
        "fallback_client": f'fallback_client = "x"\n{spec}{SPARE_CLIENT}',
        "one_of_a_list_named_again_as_the_default": f'{head}[routes.any]\nid = "any"\n'
        'type = "spread"\nfallback = "executor"\n'
        'choices = [{ target = "planner" }, { target = "executor" }]\n',
        "overflow_with_a_window": spec.replace(
            EXECUTOR, f'on_overflow = "reject"\ncontext_window = 1000\n{EXECUTOR}'
        ),
        "stay_without_a_window": spec.replace(EXECUTOR, f'on_overflow = "stay"\n{EXECUTOR}'),
        "rule_for_bodies_of_a_route": spec + BODY_RULE % ("$.input", "openai_responses"),
    }

    assert {
        name: places(found) for name, text in policies.items() if (found := check(text)).findings
    } == {}


def test_fallback_client_of_another_type_crashes_no_rule(check: Check, spec: str) -> None:
    for value in ("[]", "{ a = 1 }"):
        codes = [finding.code for finding in check(f"fallback_client = {value}\n{spec}").findings]
        assert codes == ["SY106"], value


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


def test_policy_with_errors_still_gets_the_warnings_that_hold_anyway(
    check: Check, places: Places, spec: str
) -> None:
    text = (
        spec.replace("https://example.com/v1", "http://example.com/v1/responses")
        .replace('"provider/efficient-model"', '"provider/efficient-model"\non_overflow = "reject"')
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
    crashing = Rule(code="SY299", name="crashing-rule", check=_raises)
    (finding,) = lint(policy, (), (), rules=(crashing,))
    assert (finding.code, finding.severity) == ("SY901", "warning")
    assert finding.message == "lint rule `crashing-rule` failed: RuntimeError: boom"
    assert "authors of switchyard" in finding.fix


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
