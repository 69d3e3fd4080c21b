"""Routes: types, options, wire formats."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from switchyard_core.declarations import RouteType
from switchyard_core.hookspecs import hookimpl
from switchyard_core.plugins import PluginRegistry
from switchyard_core.policy import CheckResult, check_policy_text

Check = Callable[..., CheckResult]
Places = Callable[[CheckResult], list[str]]

TARGETS = """\
schema_version = 1
[llm_clients.chat]
format = "openai_chat"
base_url = "https://a.com"
[llm_clients.messages]
format = "anthropic_messages"
base_url = "https://b.com"
[targets.one]
id = "m1"
llm_client = "chat"
[targets.two]
id = "m2"
llm_client = "chat"
[targets.other]
id = "m3"
llm_client = "messages"
[routes.r]
id = "r"
"""


def test_route_keeps_its_keys_and_validated_options(check: Check) -> None:
    text = TARGETS + (
        'type = "plan_execute"\naliases = ["a1", "a2"]\ncapable_target = "one"\n'
        'efficient_target = "two"\nworkspace = ["/tmp/repo"]\nunmatched = "file_edit"\n'
        "context_window = 10\ntool_calling = true\nreasoning = false\nlatch_capacity = 2\n"
    )
    policy = check(text).policy
    assert policy is not None
    route = policy.routes["r"]
    assert (route.id, route.aliases, route.type.name) == ("r", ("a1", "a2"), "plan_execute")
    assert route.options.model_dump()["latch_capacity"] == 2
    assert (route.targets, route.rule_sets) == (("one", "two"), ("coding_agents",))
    assert (route.wire_format, route.workspace, route.unmatched) == (
        "openai_chat",
        ("/tmp/repo",),
        "file_edit",
    )
    assert (route.context_window, route.tool_calling, route.reasoning) == (10, True, False)


def test_route_without_targets_has_no_wire_format(check: Check) -> None:
    policy = check(TARGETS + 'type = "open"\n').policy
    assert policy is not None
    assert (policy.routes["r"].wire_format, policy.routes["r"].targets) == (None, ())


def test_wire_format_of_a_scripted_target_is_what_it_speaks(check: Check, tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text("{}")
    text = (
        'schema_version = 1\n[llm_clients.c]\nformat = "scripted"\nscript = "s.json"\n'
        'speaks = "anthropic_messages"\n[targets.t]\nid = "m"\nllm_client = "c"\n'
        '[routes.r]\nid = "r"\ntype = "spread"\nfallback = "t"\n'
    )
    policy = check(text, base_dir=tmp_path).policy
    assert policy is not None
    assert policy.routes["r"].wire_format == "anthropic_messages"


def test_targets_of_different_wire_formats_are_refused_at_the_second(check: Check) -> None:
    text = TARGETS + 'type = "plan_execute"\ncapable_target = "one"\nefficient_target = "other"\n'
    (finding,) = check(text).errors
    assert (finding.code, finding.line, finding.path) == (
        "SY303",
        21,
        "routes.r.efficient_target",
    )
    assert finding.notes == (
        "target `one` speaks openai_chat",
        "target `other` speaks anthropic_messages",
    )


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        pytest.param(
            'choices = [{ target = "one" }, { weight = 2, target = "oen" }]',
            ["20:55 SY201 routes.r.choices[1].target"],
            id="list_of_tables",
        ),
        pytest.param(
            "weights = { one = 1, tow = 2 }", ["20:22 SY201 routes.r.weights.tow"], id="table_keys"
        ),
        pytest.param('fallback = "three"', ["20:12 SY201 routes.r.fallback"], id="optional"),
        pytest.param(
            'either = { target = "three" }',
            ["20:21 SY201 routes.r.either.target"],
            id="union_model",
        ),
        pytest.param(
            'either = { a = "three" }', ["20:16 SY201 routes.r.either.a"], id="union_table"
        ),
        pytest.param(
            'choices = [{ target = "one", wieght = 2 }]',
            ["20:30 SY104 routes.r.choices[0].wieght"],
            id="unknown_nested_key",
        ),
        pytest.param(
            'choices = [{ target = 3 }, "x"]',
            ["20:23 SY106 routes.r.choices[0].target", "20:28 SY106 routes.r.choices[1]"],
            id="wrong_nested_types",
        ),
        pytest.param(
            'fallback = "thee"\nchoices = 3',
            ["20:12 SY201 routes.r.fallback", "21:11 SY106 routes.r.choices"],
            id="reference_beside_a_wrong_type",
        ),
    ],
)
def test_references_in_any_shape_of_options_are_checked(
    keys: str, expected: list[str], check: Check, places: Places
) -> None:
    result = check(f'{TARGETS}type = "spread"\n{keys}\n')
    errors = CheckResult(policy=None, findings=result.errors)
    assert places(errors) == expected


def test_targets_in_any_shape_of_options_are_listed_in_order(check: Check) -> None:
    text = TARGETS + (
        'type = "spread"\nchoices = [{ target = "two" }]\nweights = { one = 1, two = 2 }\n'
    )
    policy = check(text).policy
    assert policy is not None
    assert policy.routes["r"].targets == ("two", "one")


def test_unknown_nested_key_offers_the_keys_of_its_own_table(check: Check) -> None:
    text = f'{TARGETS}type = "spread"\nchoices = [{{ target = "one", wieght = 2 }}]\n'
    (finding,) = check(text).errors
    assert finding.notes == ("allowed keys: target, weight",)
    assert finding.fix == "did you mean `weight`?"


def test_unknown_key_of_a_route_offers_common_keys_and_options(check: Check) -> None:
    (finding,) = check(f'{TARGETS}type = "open"\nworkspaces = []\n').errors
    assert finding.notes == (
        (
            "allowed keys: aliases, context_window, id, reasoning, subagents, text, "
            "tool_calling, type, unmatched, workspace"
        ),
    )
    assert finding.fix == "did you mean `workspace`?"


def test_route_type_that_answers_is_not_yet_available(check: Check, places: Places) -> None:
    result = check(f'{TARGETS}type = "talker"\n')
    assert places(result) == ["19:8 SY200 routes.r.type"]


class Missing:
    """A plugin that cannot be used, under the name of its route type."""

    @hookimpl
    def switchyard_route_types(self) -> list[RouteType]:
        raise RuntimeError("no database")


def test_unknown_route_type_names_the_broken_plugin(registry: PluginRegistry) -> None:
    assert "open" in registry.route_types
    broken = PluginRegistry([("smart", Missing())])
    result = check_policy_text(TARGETS + 'type = "smart"\n', "p.toml", broken)
    (finding,) = result.findings
    assert finding.code == "SY301"
    assert finding.notes == (
        "installed route types: none",
        "plugin `smart` failed in `switchyard_route_types`: RuntimeError: no database",
    )
    assert finding.fix == "repair or remove the broken plugin; see `switchyard plugins`"


def test_route_type_that_two_plugins_give_is_refused_naming_both(registry: PluginRegistry) -> None:
    declared = registry.route_types["open"]

    class Gives:
        @hookimpl
        def switchyard_route_types(self) -> list[RouteType]:
            return [declared]

    twice = PluginRegistry([("first", Gives()), ("second", Gives())])
    (finding,) = check_policy_text(TARGETS + 'type = "open"\n', "p.toml", twice).findings
    assert finding.code == "SY503"
    assert "`first` and by `second`" in finding.message


DELEGATING = """\
schema_version = 1
[llm_clients.c]
format = "openai_chat"
base_url = "https://example.com"
[llm_clients.m]
format = "anthropic_messages"
base_url = "https://example.com"
[targets.t]
id = "a"
llm_client = "c"
[targets.u]
id = "b"
llm_client = "m"
[routes.r]
id = "r"
type = "noop"
target = "t"
subagents = "%s"
[routes.s]
id = "s"
type = "noop"
target = "t"
[routes.chain]
id = "chain"
type = "noop"
target = "t"
subagents = "s"
[routes.other]
id = "other"
type = "noop"
target = "u"
"""


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("s", []),
        ("x", ["18:13 SY306 routes.r.subagents"]),
        ("r", ["18:13 SY307 routes.r.subagents"]),
        ("chain", ["18:13 SY307 routes.r.subagents"]),
        ("other", ["18:13 SY303 routes.r.subagents"]),
    ],
)
def test_route_for_subagents_must_be_able_to_take_over(name: str, expected: list[str]) -> None:
    registry = PluginRegistry.from_entry_points()

    result = check_policy_text(DELEGATING % name, "p.toml", registry)

    assert [f"{f.line}:{f.column} {f.code} {f.path}" for f in result.errors] == expected


def test_reserved_route_type_is_not_yet_available(check: Check, places: Places, spec: str) -> None:
    result = check(spec.replace('type = "plan_execute"', 'type = "planner_executor"'))
    assert places(result) == ["18:8 SY200 routes.plan_execute.type"]
    assert result.findings[0].message.endswith("is not yet available in this version")


def test_blank_names_are_called_blank(check: Check, spec: str) -> None:
    text = spec.replace('id = "switchyard/plan-execute"', 'id = ""').replace('"planner"\n', '""\n')
    text += '[routes.other]\nid = ""\ntype = ""\n'
    assert [(finding.code, finding.message) for finding in check(text).findings] == [
        ("SY108", "must not be blank"),
        ("SY201", "the name of the target is blank"),
        ("SY108", "must not be blank"),
        ("SY301", "the name of the route type is blank"),
    ]
