from __future__ import annotations

import pytest
from pydantic import BaseModel, ConfigDict

import switchyard_planner_executor
from switchyard_core import Finding, PluginRegistry, Tool, hookimpl
from switchyard_core.plugins import builtins as core
from switchyard_core.policy import check_policy_text


class Nothing(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Tools:
    """A plugin with a tool that only reads and one that pays."""

    @hookimpl
    def switchyard_tools(self) -> list[Tool]:
        return [
            Tool(name="look", description="looks", parameters=Nothing, function=repr),
            Tool(
                name="pay",
                description="pays",
                parameters=Nothing,
                function=repr,
                side_effects=True,
            ),
        ]


REGISTRY = PluginRegistry(
    [("core", core), ("tools", Tools()), ("planner_executor", switchyard_planner_executor)]
)
HEAD = """\
schema_version = 1

[llm_clients.provider]
format = "openai_responses"
base_url = "https://example.com/v1"
api_key_env = "PROVIDER_KEY"

[targets.planner]
id = "provider/large"
llm_client = "provider"

[targets.executor]
id = "provider/small"
llm_client = "provider"

"""
ROUTE = """\
[routes.shop]
id = "switchyard/shop"
type = "planner_executor"
planner_target = "planner"
executor_target = "executor"
"""
PRICE = """
[prices."provider/small"]
as_of = 2026-01-31
input = 0.25
output = 1
"""
FIRST_LINE = (HEAD + ROUTE).count("\n") + 1


def found(text: str = "", head: str = HEAD) -> tuple[Finding, ...]:
    """Return what a check says about a route with some more keys."""
    return check_policy_text(head + ROUTE + text, "policy.toml", REGISTRY).findings


def test_route_with_the_required_keys_alone_has_no_finding() -> None:
    assert found() == ()


def test_r12_one_target_or_one_model_in_both_roles_has_no_finding() -> None:
    one_model = HEAD.replace("provider/large", "provider/small")
    one_target = check_policy_text(
        HEAD.partition("[targets.executor]")[0] + ROUTE.replace('"executor"\n', '"planner"\n'),
        "policy.toml",
        REGISTRY,
    )

    assert found(head=one_model) == ()
    assert one_target.findings == ()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('tools = ["look", "pay"]', 'with `approval = "none"`'),
        (
            'tools = ["look", "pay"]\napproval = "over_cost"\napproval_over_usd = 1' + PRICE,
            'with `approval = "over_cost"`',
        ),
        ('tools = ["look", "pay"]\nmode = "replan"\napproval = "always"', '`mode = "replan"`'),
    ],
    ids=["no approval", "approval of dear plans", "replan"],
)
def test_tool_with_side_effects_without_a_fixed_approved_plan_is_a_warning(
    text: str, why: str
) -> None:
    (finding,) = found(text)

    assert (finding.code, finding.severity) == ("PLEX001", "warning")
    assert (finding.line, finding.path) == (FIRST_LINE, "routes.shop.tools[1]")
    assert finding.message.startswith("the tool `pay` has side effects")
    assert why in finding.message


def test_tool_with_side_effects_behind_approval_has_no_finding() -> None:
    assert found('tools = ["look", "pay"]\napproval = "always"') == ()
    assert found('tools = ["look"]\nmode = "replan"') == ()


def test_warning_is_switched_off_by_a_comment() -> None:
    text = 'tools = ["pay"] # switchyard: allow unguarded-side-effects -- it is a test shop'

    assert found(text) == ()


@pytest.mark.parametrize(
    ("text", "key", "needs"),
    [
        ("max_replans = 1", "max_replans", '`mode = "replan"`'),
        ('replan_approval = "inherit"', "replan_approval", '`mode = "replan"`'),
        ('replan_approval = "again"\nmode = "replan"', "replan_approval", "an `approval`"),
        ("allow_caller_plans = true", "allow_caller_plans", '`approval = "always"`'),
    ],
)
def test_key_without_effect_is_a_warning(text: str, key: str, needs: str) -> None:
    (finding,) = found(text)

    assert (finding.code, finding.severity) == ("PLEX002", "warning")
    assert (finding.line, finding.path) == (FIRST_LINE, f"routes.shop.{key}")
    assert needs in finding.message


def test_key_with_effect_has_no_finding() -> None:
    assert found('max_replans = 1\nmode = "replan"') == ()
    assert (
        found(
            'replan_approval = "again"\nmode = "replan"\napproval = "always"\n'
            "allow_caller_plans = true"
        )
        == ()
    )


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('approval = "over_cost"\napproval_over_usd = 1', "approval"),
        ("max_cost_usd = 1", "max_cost_usd"),
    ],
)
def test_limit_of_costs_needs_the_price_of_the_executor(text: str, key: str) -> None:
    (finding,) = found(text)

    assert (finding.code, finding.severity) == ("SY316", "error")
    assert (finding.line, finding.path) == (FIRST_LINE - 1, "routes.shop.executor_target")
    assert f"`{key}` compares costs, and the target `executor` has no price" in finding.message
    assert '`[prices."provider/small"]`' in finding.fix
    assert found(text + PRICE) == ()


def test_error_about_a_price_cannot_be_switched_off() -> None:
    comment = "# switchyard: allow unpriced-target -- it is cheap\n"
    text = HEAD + ROUTE.replace("executor_target", f"{comment}executor_target") + "max_cost_usd = 1"

    result = check_policy_text(text, "policy.toml", REGISTRY)

    assert result.policy is None
    assert "SY316" in [finding.code for finding in result.findings]


def test_r22_magentic_stops_a_policy_with_its_own_code() -> None:
    (finding,) = found('mode = "magentic"')

    assert (finding.code, finding.severity, finding.line) == ("SY315", "error", FIRST_LINE)
