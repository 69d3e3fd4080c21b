"""Which mutation rules come too late, and which only look so."""

from __future__ import annotations

import pytest

from switchyard_core.plugins import PluginRegistry
from switchyard_core.policy import check_policy_text
from tests.policy.lint.pages import example

HEAD = example("shadowed-rule").partition("\n[mutation_rules.own]")[0]


def found(rules: str, registry: PluginRegistry, head: str = HEAD) -> list[tuple[str, str]]:
    result = check_policy_text(f"{head}\n{rules}", "p.toml", registry)
    assert {finding.code for finding in result.findings} <= {"SY421", "SY424"}
    return [(f.path, f.notes[0]) for f in result.findings if f.code == "SY421"]


def half(rules: str, registry: PluginRegistry, head: str = HEAD) -> list[tuple[str, str]]:
    findings = check_policy_text(f"{head}\n{rules}", "p.toml", registry).findings
    return [(f.path, f.message.partition(" never")[0]) for f in findings if f.code == "SY424"]


def own(*rules: str, more: str = "") -> str:
    return f"[mutation_rules.own]\n{more}\nrules = [\n" + "".join(f"{r},\n" for r in rules) + "]\n"


EDIT = '{ label = "file_edit", match = ["cms_save", "cms_drop"] }'


@pytest.mark.parametrize(
    "later",
    [
        pytest.param('{ label = "read_only", match = ["cms_drop"] }', id="one_of_its_names"),
        pytest.param('{ label = "read_only", match = ["cmsSave"] }', id="another_spelling"),
        pytest.param(
            '{ label = "read_only", match = ["cms_save"], '
            'where = [{ path = "$.arguments.a", exists = true }] }',
            id="with_a_condition",
        ),
        pytest.param('{ target = "$.arguments.path", match = ["cms_save"] }', id="with_a_target"),
    ],
)
def test_rule_after_one_with_its_names_is_found(later: str, installed: PluginRegistry) -> None:
    ((path, note),) = found(own(EDIT, later), installed)
    assert path == "mutation_rules.own.rules[1]"
    assert note == "the earlier rule: rules[0] of own, at p.toml:26:1"


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        pytest.param(
            EDIT, '{ label = "read_only", match = ["cms_save", "cms_list"] }', id="one_name_more"
        ),
        pytest.param(EDIT, '{ label = "read_only", match = ["cms_*"] }', id="a_pattern"),
        pytest.param(
            '{ label = "file_edit", match = ["cms_save"], '
            'where = [{ path = "$.arguments.a", exists = true }] }',
            '{ label = "read_only", match = ["cms_save"] }',
            id="earlier_has_a_condition",
        ),
        pytest.param(
            '{ label = "file_edit", document = "body", format = "openai_chat", '
            'path = "$.messages[*].tool_calls[*].function.name", match = ["cms_save"] }',
            '{ label = "read_only", match = ["cms_save"] }',
            id="another_document",
        ),
    ],
)
def test_rule_that_still_decides_something_is_not_found(
    earlier: str, later: str, installed: PluginRegistry
) -> None:
    assert found(own(earlier, later), installed) == []


def test_names_that_match_in_one_spelling_only_do_not_shadow_another(
    installed: PluginRegistry,
) -> None:
    late = '{ label = "read_only", match = ["cmsSave"] }'
    assert found(own(EDIT, late, more="fold = false"), installed) == []


PACK_FIRST = HEAD.replace('["own"]', '["coding_agents", "own"]')
PLAN = '{ label = "file_edit", match = ["update_plan"] }'


def test_rule_set_after_a_pack_that_knows_its_tool_is_found(installed: PluginRegistry) -> None:
    ((path, note),) = found(own(PLAN), installed, PACK_FIRST)
    assert path == "mutation_rules.own.rules[0]"
    assert note == "the earlier rule: plans-and-todos of coding_agents"


def test_rule_set_before_the_pack_is_not_found(installed: PluginRegistry) -> None:
    assert found(own(PLAN, more='extends = ["coding_agents"]'), installed) == []


def test_rule_that_one_of_two_routes_needs_is_not_found(installed: PluginRegistry) -> None:
    route = HEAD[HEAD.index("[routes.coding]") :]
    second = route.replace("[routes.coding]", "[routes.b]").replace("switchyard/coding", "b")
    assert found(own(PLAN), installed, f"{PACK_FIRST}\n{second}") == []


def test_rule_set_that_no_route_uses_is_compared_with_itself(installed: PluginRegistry) -> None:
    late = '{ label = "read_only", match = ["cms_save"] }'
    unused = HEAD.replace('["own"]', '["coding_agents"]')
    assert [path for path, _ in found(own(EDIT, late), installed, unused)] == [
        "mutation_rules.own.rules[1]"
    ]


def test_rule_of_which_two_earlier_ones_have_all_names_is_found(installed: PluginRegistry) -> None:
    other = '{ label = "file_edit", match = ["cms_pub*"] }'
    late = '{ label = "read_only", match = ["cms_drop", "cms_publish"] }'
    result = check_policy_text(f"{HEAD}\n{own(EDIT, other, late)}", "p.toml", installed)
    (finding,) = result.findings
    assert (finding.code, finding.path) == ("SY421", "mutation_rules.own.rules[2]")
    assert finding.message == "earlier rules decide every call that this rule matches"
    assert [note.partition(",")[0] for note in finding.notes] == [
        "the earlier rule: rules[0] of own",
        "the earlier rule: rules[1] of own",
    ]


# --- some names of a rule ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("earlier", "later", "place", "names"),
    [
        pytest.param(
            EDIT,
            '{ label = "read_only", match = ["cms_list", "cms_save"] }',
            1,
            "`cms_save`",
            id="one_name",
        ),
        pytest.param(
            EDIT,
            '{ label = "read_only", match = ["cmsSave", "cms_list", "cms_drop"] }',
            0,
            "`cmsSave`, `cms_drop`",
            id="two_names_and_another_spelling",
        ),
        pytest.param(
            '{ label = "file_edit", match = ["cms_s*"] }',
            '{ label = "read_only", match = ["cms_list", "cms_save"] }',
            1,
            "`cms_save`",
            id="of_a_pattern",
        ),
        pytest.param(
            '{ label = "file_edit", match = ["cms_s*"] }',
            '{ label = "read_only", match = ["cms_s*", "cms_list"] }',
            0,
            "`cms_s*`",
            id="the_same_pattern",
        ),
    ],
)
def test_names_that_never_reach_a_rule_are_listed(
    earlier: str, later: str, place: int, names: str, installed: PluginRegistry
) -> None:
    assert half(own(earlier, later), installed) == [
        (f"mutation_rules.own.rules[1].match[{place}]", f"calls of {names}")
    ]


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        pytest.param(EDIT, '{ label = "read_only", match = ["cms_*"] }', id="special_one_first"),
        pytest.param(EDIT, '{ label = "read_only", match = ["cms_list"] }', id="other_names"),
        pytest.param(
            '{ label = "file_edit", match = ["cms_save"], '
            'where = [{ path = "$.arguments.a", exists = true }] }',
            '{ label = "read_only", match = ["cms_save", "cms_list"] }',
            id="earlier_has_a_condition",
        ),
        pytest.param(EDIT, '{ label = "read_only", match = ["cms_save"] }', id="all_names"),
    ],
)
def test_rule_that_gets_all_or_none_of_its_names_is_not_half_shadowed(
    earlier: str, later: str, installed: PluginRegistry
) -> None:
    assert half(own(earlier, later), installed) == []


def test_name_that_one_of_two_routes_needs_is_not_listed(installed: PluginRegistry) -> None:
    rules = own('{ label = "file_edit", match = ["update_plan", "cms_save"] }')
    assert half(rules, installed, PACK_FIRST) == [
        ("mutation_rules.own.rules[0].match[0]", "calls of `update_plan`")
    ]
    route = HEAD[HEAD.index("[routes.coding]") :]
    second = route.replace("[routes.coding]", "[routes.b]").replace("switchyard/coding", "b")
    assert half(rules, installed, f"{PACK_FIRST}\n{second}") == []
