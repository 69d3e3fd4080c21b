from __future__ import annotations

import typing

import pytest

from switchyard_core import Finding
from switchyard_core.policy.document import parse_document
from switchyard_core.policy.shapes import references
from switchyard_core.policy.validation import validate
from switchyard_planner_executor import MODES, PlannerExecutorOptions

HEAD = """\
[routes.shop]
planner_target = "planner"
executor_target = "executor"
"""


def check(text: str) -> tuple[PlannerExecutorOptions | None, list[Finding]]:
    """Return what a policy check says about a route with some more keys."""
    document = parse_document(HEAD + text, "policy.toml")
    raw = document.values["routes"]["shop"]
    return validate(document, ("routes", "shop"), PlannerExecutorOptions, raw)


def options(text: str = "") -> PlannerExecutorOptions:
    found, findings = check(text)
    assert findings == []
    assert found is not None
    return found


def finding(text: str) -> Finding:
    found, findings = check(text)
    assert found is None
    (only,) = findings
    return only


def test_defaults_are_those_of_the_spec() -> None:
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
    for name in PlannerExecutorOptions.model_fields:
        assert f"\n        {name}: " in (PlannerExecutorOptions.__doc__ or "")


def test_modes_of_the_policy_are_those_of_the_library() -> None:
    mode = PlannerExecutorOptions.model_fields["mode"].annotation

    assert typing.get_args(mode) == MODES


def test_policy_can_resolve_targets_tools_and_store() -> None:
    raw = {
        "planner_target": "p",
        "executor_target": "e",
        "tools": ["a", "b"],
        "query_tool": "a",
    }
    named = [(n.kind, n.name) for n in references(PlannerExecutorOptions, raw, ())]

    assert named == [
        ("target", "p"),
        ("target", "e"),
        ("tool", "a"),
        ("tool", "b"),
        ("plan_store", "memory"),
    ]


def test_r12_one_target_may_play_both_roles() -> None:
    document = parse_document(HEAD.replace('"executor"\n', '"planner"\n'), "policy.toml")
    raw = document.values["routes"]["shop"]

    assert validate(document, ("routes", "shop"), PlannerExecutorOptions, raw)[1] == []


@pytest.mark.parametrize(
    ("text", "tool"),
    [
        ("", None),
        ('tools = ["a"]', "a"),
        ('tools = ["a", "b"]', None),
        ('tools = ["a", "b"]\nquery_tool = "b"', "b"),
    ],
)
def test_hinted_tool_is_the_named_or_the_only_one(text: str, tool: str | None) -> None:
    assert options(text).hinted_tool == tool


def test_r22_magentic_is_an_error_with_code_place_and_modes() -> None:
    found = finding('max_steps = 3\nmode = "magentic"')

    assert (found.code, found.severity) == ("SY315", "error")
    assert (found.line, found.column, found.path) == (5, 8, "routes.shop.mode")
    assert "reserved for orchestration with a task ledger" in found.message
    assert "plan_then_execute, replan" in found.message
    assert "replan" in found.fix


@pytest.mark.parametrize("mode", ["", "  "])
def test_r22_blank_mode_is_an_error_in_a_policy(mode: str) -> None:
    found = finding(f'mode = "{mode}"')

    assert (found.code, found.line) == ("SY108", 4)
    assert "must not be blank" in found.message


def test_misspelt_mode_is_told_the_nearest_and_all() -> None:
    found = finding('mode = "replann"')

    assert (found.code, found.line) == ("SY107", 4)
    assert found.fix == "did you mean `replan`?"
    assert found.notes == ("allowed: plan_then_execute, replan",)


def test_mode_of_another_type_is_an_error() -> None:
    assert finding("mode = 3").line == 4


@pytest.mark.parametrize("key", ["planner_prompt", "executor_prompt"])
def test_r09_blank_prompt_is_an_error(key: str) -> None:
    assert finding(f'{key} = " "').code == "SY108"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("max_steps = 0", "at least 1"),
        ("max_tool_rounds = 0", "at least 1"),
        ("max_tool_output_chars = 99", "at least 100"),
        ("planner_retries = 3", "at most 2"),
        ("planner_retries = -1", "at least 0"),
        ("max_replans = 0", "at least 1"),
        ("plan_capacity = 0", "at least 1"),
        ("plan_ttl_s = 0", "more than 0"),
        ("planner_timeout_s = 0", "more than 0"),
        ("step_timeout_s = -1", "more than 0"),
        ("run_timeout_s = 1e9", "at most 86400"),
        ("keepalive_s = inf", "finite"),
        ("estimate_output_tokens = 0", "at least 1"),
        ("planner_max_tokens = 0", "at least 1"),
        ("executor_max_tokens = 0", "at least 1"),
        ("max_cost_usd = 0", "more than 0"),
        ("max_cost_usd = nan", "finite"),
        ('approval = "over_cost"\napproval_over_usd = 0', "more than 0"),
        ('caller_tools = "allow"', "not a value"),
        ('tools = ["a", "a"]', "`a` is listed twice"),
        ('tools = ["a"]\nquery_tool = "b"', "`b` is not among the `tools`"),
        ('max_steps = "3"', "must be an integer"),
        ("maxsteps = 3", "unknown key"),
    ],
)
def test_value_out_of_range_is_an_error_at_its_line(text: str, said: str) -> None:
    found = finding(text)

    assert said in found.message
    assert found.line == 3 + len(text.splitlines())


def test_whole_numbers_do_for_seconds_and_dollars() -> None:
    found = options("step_timeout_s = 30\nmax_cost_usd = 2")

    assert (found.step_timeout_s, found.max_cost_usd) == (30.0, 2.0)


def test_approval_over_cost_needs_its_limit() -> None:
    found = finding('approval = "over_cost"')

    assert found.code == "SY105"
    assert "`approval_over_usd`" in found.message
    assert found.path == "routes.shop"
    assert options('approval_over_usd = 0.5\napproval = "over_cost"').approval_over_usd == 0.5


@pytest.mark.parametrize("approval", ["none", "always"])
def test_limit_without_approval_over_cost_is_an_error_at_the_limit(approval: str) -> None:
    found = finding(f'approval = "{approval}"\napproval_over_usd = 0.5')

    assert found.path == "routes.shop.approval_over_usd"
    assert (found.line, found.column) == (5, 21)
    assert f'`approval = "{approval}"`' in found.message


def test_wrong_approval_gives_no_second_finding_about_its_limit() -> None:
    assert finding('approval = "over"\napproval_over_usd = 0.5').path == "routes.shop.approval"
