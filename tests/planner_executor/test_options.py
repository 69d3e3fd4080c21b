"""The keys of a route, its modes, and what a policy check says about them."""

from __future__ import annotations

import inspect
import typing

import pytest
from pydantic import BaseModel, ConfigDict

import switchyard_planner_executor
from switchyard_core import Finding, SwitchyardError, Tool, hookimpl
from switchyard_core.policy import check_policy_text
from switchyard_core.testing import registry_of
from switchyard_planner_executor import (
    MODES,
    PlannerExecutorOptions,
    UnknownModeError,
    get_mode,
)


class Nothing(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Tools:
    """A plugin with tools that only read and one that pays."""

    @hookimpl
    def switchyard_tools(self) -> list[Tool]:
        def tool(name: str, **more: bool) -> Tool:
            return Tool(name=name, description=name, parameters=Nothing, function=repr, **more)

        return [tool("look"), tool("peek"), tool("pay", side_effects=True)]


REGISTRY = registry_of([Tools(), switchyard_planner_executor])
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


def found(text: str = "", head: str = HEAD, route: str = ROUTE) -> tuple[Finding, ...]:
    """Return what a check says about a route with some more keys."""
    return check_policy_text(head + route + text, "policy.toml", REGISTRY).findings


def finding(text: str) -> Finding:
    """Return the only finding about a route with some more keys."""
    (only,) = found(text)
    return only


def options(text: str = "") -> PlannerExecutorOptions:
    """Return the options of a route with some more keys."""
    result = check_policy_text(HEAD + ROUTE + text, "policy.toml", REGISTRY)
    assert result.policy is not None, result.findings
    made = result.policy.routes["shop"].options
    assert isinstance(made, PlannerExecutorOptions)
    return made


# --- keys ------------------------------------------------------------------------------------


def test_route_with_the_required_keys_alone_has_the_defaults_and_no_finding() -> None:
    assert found() == ()
    assert options().model_dump() == {
        "planner_target": "planner",
        "executor_target": "executor",
        "tools": [],
        "query_tool": None,
        "planner_prompt": None,
        "executor_prompt": None,
        "mode": "plan_then_execute",
        "planner_sees": "request",
        "planner_output": "strict",
        "planner_retries": 0,
        "planner_max_tokens": 4096,
        "executor_max_tokens": 4096,
        "caller_instructions": "drop",
        "caller_tools": "reject",
        "approval": "none",
        "approval_over_usd": None,
        "approval_by_text": False,
        "allow_caller_plans": False,
        "plan_store": "memory",
        "plan_capacity": 4096,
        "plan_ttl_s": 3600,
        "max_steps": 12,
        "max_tool_rounds": 8,
        "max_tool_output_chars": 20_000,
        "planner_timeout_s": 120,
        "step_timeout_s": 120,
        "run_timeout_s": 900,
        "on_step_error": "stop",
        "max_replans": 2,
        "replan_approval": "again",
        "answer": "steps",
        "progress_events": False,
        "keepalive_s": 10,
        "estimate_output_tokens": 300,
        "max_cost_usd": None,
    }


def test_every_key_is_described() -> None:
    # Python 3.13 takes the indentation out of docstrings, earlier ones do not.
    text = inspect.getdoc(PlannerExecutorOptions) or ""

    missing = [
        name for name in PlannerExecutorOptions.model_fields if f"\n    {name}: " not in text
    ]

    assert missing == []


def test_one_target_or_one_model_in_both_roles_has_no_finding() -> None:
    one_target = HEAD.partition("[targets.executor]")[0]

    assert found(head=HEAD.replace("provider/large", "provider/small")) == ()
    assert found(head=one_target, route=ROUTE.replace('"executor"\n', '"planner"\n')) == ()


def test_names_of_targets_tools_and_stores_are_resolved() -> None:
    for text, told in (
        ('tools = ["loock"]', "`loock`"),
        ('plan_store = "memry"', "`memry`"),
    ):
        assert told in finding(text).message
    assert "`executr`" in found(route=ROUTE.replace('"executor"\n', '"executr"\n'))[0].message


def test_hinted_tool_is_the_named_or_the_only_one() -> None:
    for text, tool in (
        ("", None),
        ('tools = ["look"]', "look"),
        ('tools = ["look", "peek"]', None),
        ('tools = ["look", "peek"]\nquery_tool = "peek"', "peek"),
    ):
        assert options(text).hinted_tool == tool, text


#: Lines of a route, and what is said about the last of them.
WRONG = (
    ("max_steps = 0", "from 1 to 1000, not 0"),
    ("max_tool_rounds = 0", "from 1 to 1000, not 0"),
    ("max_tool_output_chars = 99", "100 or more, not 99"),
    ("planner_retries = 3", "from 0 to 2, not 3"),
    ("planner_retries = -1", "from 0 to 2, not -1"),
    ("max_replans = 0", "from 1 to 100, not 0"),
    ("plan_capacity = 0", "1 or more, not 0"),
    ("plan_ttl_s = 0", "more than 0"),
    ("planner_timeout_s = 0", "more than 0"),
    ("step_timeout_s = -1", "more than 0"),
    ("run_timeout_s = 1e9", "at most 86400"),
    ("keepalive_s = inf", "finite"),
    ("estimate_output_tokens = 0", "1 or more, not 0"),
    ("planner_max_tokens = 0", "1 or more, not 0"),
    ("executor_max_tokens = 0", "1 or more, not 0"),
    ("max_cost_usd = 0", "more than 0"),
    ("max_cost_usd = nan", "finite"),
    ('approval = "over_cost"\napproval_over_usd = 0', "more than 0"),
    ('approval = "none"\napproval_over_usd = 0.5', '`approval = "none"`'),
    ('approval = "always"\napproval_over_usd = 0.5', '`approval = "always"`'),
    ('caller_tools = "allow"', "not a value"),
    ('tools = ["look", "look"]', "`look` is listed twice"),
    ('tools = ["look"]\nquery_tool = "pay"', "`pay` is not among the `tools`"),
    ('planner_prompt = " "', "must not be blank"),
    ('executor_prompt = ""', "must not be blank"),
    ("mode = 3", "not a value"),
    ('max_steps = "3"', "must be an integer"),
    ("maxsteps = 3", "unknown key"),
)


def test_wrong_value_is_an_error_at_its_line() -> None:
    for text, said in WRONG:
        only = finding(text)

        assert said in only.message, text
        assert only.severity == "error", text
        assert only.line == FIRST_LINE + text.count("\n"), text


def test_whole_numbers_do_for_seconds_and_dollars() -> None:
    made = options("step_timeout_s = 30\nmax_cost_usd = 2" + PRICE)

    assert (made.step_timeout_s, made.max_cost_usd) == (30.0, 2.0)


def test_approval_over_cost_needs_its_limit() -> None:
    only = finding('approval = "over_cost"')

    assert (only.code, only.path) == ("SY105", "routes.shop")
    assert "`approval_over_usd`" in only.message
    text = 'approval_over_usd = 0.5\napproval = "over_cost"'
    assert options(text + PRICE).approval_over_usd == 0.5


def test_wrong_approval_gives_no_second_finding_about_its_limit() -> None:
    assert finding('approval = "over"\napproval_over_usd = 0.5').path == "routes.shop.approval"


# --- modes -----------------------------------------------------------------------------------


def test_modes_of_the_policy_are_those_of_the_library() -> None:
    mode = PlannerExecutorOptions.model_fields["mode"].annotation

    assert typing.get_args(mode) == MODES
    assert [get_mode(name) for name in MODES] == list(MODES)
    assert [get_mode(name) for name in (None, "")] == [MODES[0]] * 2


def test_magentic_is_the_named_error_that_lists_the_modes() -> None:
    with pytest.raises(UnknownModeError) as caught:
        get_mode("magentic")

    error = caught.value
    assert isinstance(error, ValueError)
    assert isinstance(error, SwitchyardError)
    assert error.name == "magentic"
    for part in ("reserved for orchestration with a task ledger", "not implemented"):
        assert part in error.message
    assert "modes: plan_then_execute, replan" in str(error)


def test_unknown_mode_is_told_the_nearest_and_all() -> None:
    for name, near in (("replann", "replan"), ("Replan", "replan"), (" ", ""), ("a" * 1000, "")):
        with pytest.raises(UnknownModeError, match="modes: plan_then_execute, replan") as caught:
            get_mode(name)

        assert ("did you mean `replan`" in str(caught.value)) == bool(near), name
        assert len(str(caught.value)) < 400


def test_mode_of_a_policy_is_an_error_with_code_place_and_modes() -> None:
    magentic = finding('max_steps = 3\nmode = "magentic"')
    assert (magentic.code, magentic.severity) == ("SY315", "error")
    assert (magentic.line, magentic.column) == (FIRST_LINE + 1, 8)
    assert magentic.path == "routes.shop.mode"
    assert "reserved for orchestration with a task ledger" in magentic.message
    assert "plan_then_execute, replan" in magentic.message
    assert "replan" in magentic.fix

    for mode in ("", "  "):
        blank = finding(f'mode = "{mode}"')
        assert (blank.code, blank.line) == ("SY108", FIRST_LINE)
        assert "must not be blank" in blank.message
    misspelt = finding('mode = "replann"')
    assert (misspelt.code, misspelt.line) == ("SY107", FIRST_LINE)
    assert misspelt.fix == "did you mean `replan`?"
    assert misspelt.notes == ("allowed: plan_then_execute, replan",)


# --- the policy check ------------------------------------------------------------------------


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
    only = finding(text)

    assert (only.code, only.severity) == ("PLEX001", "warning")
    assert (only.line, only.path) == (FIRST_LINE, "routes.shop.tools[1]")
    assert only.message.startswith("the tool `pay` has side effects")
    assert why in only.message


def test_tool_with_side_effects_behind_approval_or_allowed_by_a_comment_has_no_finding() -> None:
    assert found('tools = ["look", "pay"]\napproval = "always"') == ()
    assert found('tools = ["look"]\nmode = "replan"') == ()
    allowed = "# switchyard: allow unguarded-side-effects -- it is a test shop"
    assert found(f'tools = ["pay"] {allowed}') == ()


def test_key_without_effect_is_a_warning() -> None:
    for text, key, needs in (
        ("max_replans = 1", "max_replans", '`mode = "replan"`'),
        ('replan_approval = "inherit"', "replan_approval", '`mode = "replan"`'),
        ('replan_approval = "again"\nmode = "replan"', "replan_approval", "an `approval`"),
        ("allow_caller_plans = true", "allow_caller_plans", '`approval = "always"`'),
    ):
        only = finding(text)

        assert (only.code, only.severity) == ("PLEX002", "warning")
        assert (only.line, only.path) == (FIRST_LINE, f"routes.shop.{key}")
        assert needs in only.message
    always = 'mode = "replan"\napproval = "always"'
    for text in ("max_replans = 1", 'replan_approval = "again"', "allow_caller_plans = true"):
        assert found(f"{text}\n{always}") == (), text


def test_limit_of_costs_needs_the_price_of_the_executor() -> None:
    for text, key in (
        ('approval = "over_cost"\napproval_over_usd = 1', "approval"),
        ("max_cost_usd = 1", "max_cost_usd"),
    ):
        only = finding(text)

        assert (only.code, only.severity) == ("SY316", "error")
        assert (only.line, only.path) == (FIRST_LINE - 1, "routes.shop.executor_target")
        assert f"`{key}` compares costs, and the target `executor` has no price" in only.message
        assert '`[prices."provider/small"]`' in only.fix
        assert found(text + PRICE) == ()


def test_error_about_a_price_cannot_be_switched_off() -> None:
    comment = "# switchyard: allow unpriced-target -- it is cheap\n"
    route = ROUTE.replace("executor_target", f"{comment}executor_target")

    codes = [each.code for each in found("max_cost_usd = 1", route=route)]

    assert "SY316" in codes
