"""Loading as a whole: files, texts, rule sets, and any TOML at all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from switchyard_core.declarations import MutationPack, RouteType
from switchyard_core.errors import PolicyError
from switchyard_core.hookspecs import hookimpl
from switchyard_core.plugins import PluginRegistry
from switchyard_core.policy import (
    CheckResult,
    check_policy,
    check_policy_text,
    load_policy,
    load_policy_text,
)

Check = Callable[..., CheckResult]
Places = Callable[[CheckResult], list[str]]


def test_load_policy_gives_the_policy_of_the_specification(
    tmp_path: Path, registry: PluginRegistry, spec: str
) -> None:
    path = tmp_path / "plan.toml"
    path.write_bytes(spec.replace("\n", "\r\n").encode())
    policy = load_policy(path, registry)
    assert (policy.name, policy.path) == (str(path), path)
    assert policy.text == spec
    assert policy.digest == load_policy_text(spec, "other.toml", registry).digest
    assert list(policy.routes) == ["plan_execute"]
    assert policy.routes["plan_execute"].options.model_dump() == {
        "capable_target": "planner",
        "efficient_target": "executor",
        "planning_prompt": None,
        "handoff_on": ("file_edit",),
        "mutation_rules": ["coding_agents"],
        "latch_store": "memory",
        "latch_capacity": 4096,
        "on_missing_history": "warn",
    }
    assert set(policy.rule_sets) == {"coding_agents"}
    assert (policy.default_route, policy.fallback_client) == (None, None)


def test_load_policy_with_errors_raises_all_findings(registry: PluginRegistry, spec: str) -> None:
    text = spec.replace('"planner"\n', '"a"\n').replace('"executor"\n', '"b"\n')
    with pytest.raises(PolicyError) as caught:
        load_policy_text(text, "p.toml", registry)
    assert [finding.code for finding in caught.value.findings] == ["SY201", "SY201"]
    assert str(caught.value).count("p.toml:") == 2


def test_check_policy_of_a_missing_file_gives_one_finding(
    tmp_path: Path, registry: PluginRegistry
) -> None:
    result = check_policy(tmp_path / "none.toml", registry)
    assert result.policy is None
    assert [finding.code for finding in result.errors] == ["SY100"]


def test_check_without_an_environment_never_reads_it(
    check: Check, spec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert check(spec).findings == ()


def test_default_route_and_required_distributions_are_kept(check: Check, spec: str) -> None:
    text = 'default_route = "plan_execute"\nrequires = ["pluggy"]\n' + spec
    policy = check(text).policy
    assert policy is not None
    assert policy.default_route == "plan_execute"


def test_required_distribution_with_a_version_is_refused(check: Check, spec: str) -> None:
    (finding,) = check('requires = ["pluggy>=1"]\n' + spec).findings
    assert (finding.code, finding.column) == ("SY507", 13)
    assert finding.fix == "write the name alone, without a version"


OWN = '[[mutation_rules.%s.rules]]\nlabel = "%s"\nmatch = ["x"]\n'


def test_own_rule_set_is_added_to_the_packs(check: Check, spec: str) -> None:
    text = spec.replace('type = "plan', 'mutation_rules = ["own"]\ntype = "plan')
    policy = check(text + OWN % ("own", "file_edit")).policy
    assert policy is not None
    assert set(policy.rule_sets) == {"coding_agents", "own"}
    assert policy.routes["plan_execute"].rule_sets == ("own",)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            OWN % ("own", "file_edits"),
            ["22:9 SY410 mutation_rules.own.rules[0].label"],
            id="label",
        ),
        pytest.param(
            OWN % ("coding_agents", "file_edit"),
            ["21:18 SY407 mutation_rules.coding_agents"],
            id="named_like_a_pack",
        ),
        pytest.param(
            '[mutation_rules.a]\nextends = ["b"]\n[mutation_rules.b]\nextends = 3\n',
            ["24:11 SY106 mutation_rules.b.extends"],
            id="broken_parent_is_not_called_unknown",
        ),
        pytest.param(
            OWN.replace('["x"]', '["a", "re:a(b"]') % ("own", "file_edit"),
            ["23:15 SY402 mutation_rules.own.rules[0].match[1]"],
            id="regular_expression",
        ),
    ],
)
def test_own_rule_set_that_is_wrong_is_reported_at_its_place(
    text: str, expected: list[str], check: Check, places: Places, spec: str
) -> None:
    result = check(spec + text)
    assert [place.split(":")[0] for place in places(result)] == [
        place.split(":")[0] for place in expected
    ]
    assert [place.split(" ", 1)[1] for place in places(result)] == [
        place.split(" ", 1)[1] for place in expected
    ]


def test_pack_that_is_wrong_is_reported_only_when_a_route_uses_it(
    registry: PluginRegistry, spec: str
) -> None:
    class Packs:
        @hookimpl
        def switchyard_route_types(self) -> list[RouteType]:
            return list(registry.route_types.values())

        @hookimpl
        def switchyard_mutation_packs(self) -> list[MutationPack]:
            return [
                MutationPack(name="coding_agents", text='extends = ["bad"]'),
                MutationPack(name="bad", text='[[rules]]\nlabel = "nope"\nmatch = ["x"]'),
            ]

        @hookimpl
        def switchyard_latch_stores(self) -> list[Any]:
            return list(registry.latch_stores.values())

    packs = PluginRegistry([("packs", Packs())])
    (finding,) = check_policy_text(spec, "p.toml", packs).findings
    assert finding.code == "SY508"
    assert "invalid mutation pack `bad` of a plugin" in finding.message
    unused = "schema_version = 1\n[targets]\n[routes]\n"
    assert check_policy_text(unused, "p.toml", packs).findings == ()


# --- whatever the TOML says, there are findings or a policy -----------------------------------

WORDS = st.sampled_from(
    [
        "schema_version",
        "targets",
        "routes",
        "llm_clients",
        "mutation_rules",
        "identity",
        "prices",
        "housekeeping",
        "id",
        "type",
        "llm_client",
        "format",
        "base_url",
        "api_key_env",
        "aliases",
        "capable_target",
        "plan_execute",
        "openai_chat",
        "rules",
        "match",
        "session",
        "extends",
        "requires",
        "choices",
        "weights",
        "spread",
        "header:x",
        "body:$.[",
        "re:(",
        "script",
        "in",
        "extra_headers",
        "forward_auth",
        "rewrites",
        "extra_body",
        "path",
        "where",
    ]
)
SCALARS = st.one_of(
    WORDS, st.integers(-1, 2), st.booleans(), st.text(max_size=3), st.floats(width=16)
)
TREES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(WORDS, inner, max_size=4)),
    max_leaves=20,
)


def _written(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ",".join(f"{_written(k)}={_written(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_written, value)) + "]"
    if isinstance(value, str):
        return '"' + "".join(f"\\u{min(ord(c), 0xD7FF):04x}" for c in value) + '"'
    return str(value).lower() if isinstance(value, bool) else repr(value)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    tree=st.dictionaries(
        WORDS, st.one_of(TREES, st.dictionaries(WORDS, st.dictionaries(WORDS, TREES)))
    )
)
def test_any_toml_gives_findings_with_a_place_or_a_policy(
    tree: dict[str, Any], registry: PluginRegistry
) -> None:
    text = "".join(f"{_written(key)} = {_written(value)}\n" for key, value in tree.items())
    result = check_policy_text(text, "p.toml", registry, environ={})
    assert (result.policy is None) == bool(result.errors)
    lines = text.split("\n")
    for finding in result.findings:
        assert 1 <= finding.line <= len(lines)
        assert 1 <= finding.column <= len(lines[finding.line - 1]) + 1
        assert finding.fix


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_cut_of_a_policy_gives_findings_or_a_policy(
    data: st.DataObject, registry: PluginRegistry, spec: str
) -> None:
    start = data.draw(st.integers(0, len(spec)))
    end = data.draw(st.integers(start, len(spec)))
    result = check_policy_text(spec[:start] + spec[end:], "p.toml", registry, environ={})
    assert (result.policy is None) == bool(result.errors)
