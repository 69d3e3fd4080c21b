"""The profile of a target: what it is made from, what it fills in, and what is wrong with one."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date

import pytest

from switchyard_core.plugins import PluginRegistry
from switchyard_core.policy import CheckResult, Target, check_policy_text
from switchyard_core.testing.harness import registry_of

POLICY = """
schema_version = 1

[llm_clients.c]
format = "{format}"
base_url = "{url}"

[targets.t]
id = "{id}"
llm_client = "c"
{keys}

[routes]
"""
Checked = Callable[..., CheckResult]


@pytest.fixture(scope="module")
def core() -> PluginRegistry:
    return registry_of()


@pytest.fixture
def checked(core: PluginRegistry) -> Checked:
    def run(
        model: str = "claude-haiku-4-5",
        keys: str = "",
        form: str = "anthropic_messages",
        url: str = "https://api.anthropic.com",
    ) -> CheckResult:
        text = POLICY.format(id=model, keys=keys, format=form, url=url)
        return check_policy_text(text, "p.toml", core, today=date(2026, 12, 1))

    return run


def target(result: CheckResult) -> Target:
    assert result.policy is not None, [finding.render() for finding in result.findings]
    return result.policy.targets["t"]


def test_facts_of_the_profile_are_the_defaults_of_the_target(checked: Checked) -> None:
    found = target(checked())

    assert (found.context_window, found.max_output) == (200000, 64000)
    assert "claude-haiku-4-5" in found.accepts.entries


def test_what_the_policy_says_stands(checked: Checked) -> None:
    keys = "context_window = 5\nmax_output = 7\naccepts_prefill = true\n"
    found = target(checked("claude-opus-5-5", keys))

    assert (found.context_window, found.max_output, found.accepts_prefill) == (5, 7, True)
    assert target(checked("claude-opus-5-5")).accepts_prefill is False
    assert found.accepts.prefix_bound is True


def test_tool_id_style_comes_from_the_profile(checked: Checked) -> None:
    found = target(checked("devstral-2", form="openai_chat", url="https://api.mistral.ai"))

    assert (found.tool_id_style, found.accepts_prefill) == ("alphanumeric_9", False)


def test_unknown_model_has_nothing(checked: Checked) -> None:
    found = target(checked("own-model"))

    assert (found.accepts.entries, found.accepts.rules, found.context_window) == ((), (), None)


@pytest.mark.parametrize(
    ("keys", "entry"),
    [
        ('profile = "claude-haiku-4-5"', "claude-haiku-4-5"),
        ('profile = "claude-opus-5-5-20261001"', "claude-opus-5-5"),
    ],
    ids=["entry", "model"],
)
def test_profile_may_be_named_by_entry_or_by_model(checked: Checked, keys: str, entry: str) -> None:
    found = target(checked("own-model", keys))

    assert entry in found.accepts.entries
    assert "claude" in found.accepts.entries


def test_profile_may_be_switched_off(checked: Checked) -> None:
    found = target(checked(keys="profile = false"))

    assert (found.accepts.entries, found.context_window) == ((), None)


def test_host_of_the_client_selects_what_belongs_to_an_endpoint(checked: Checked) -> None:
    url = "https://europe-west1-aiplatform.googleapis.com/v1"

    assert "claude-at-google" in target(checked(url=url)).accepts.entries
    assert "claude-at-google" not in target(checked()).accepts.entries


def test_rules_of_the_policy_come_last(checked: Checked) -> None:
    keys = '[[targets.t.fit]]\npath = "metadata"\ndo = "drop"\nwhen = { "a.b" = { gt = 1 } }\n'

    assert target(checked(keys=keys)).accepts.rules[-1][0] == "fit"
    assert target(checked("own-model", keys)).accepts.rules[0][1].path == "metadata"


def test_unknown_profile_is_a_finding_with_the_nearest_name(checked: Checked) -> None:
    (finding,) = checked("own-model", 'profile = "claude-haiku-45"').errors

    assert (finding.code, finding.path) == ("SY212", "targets.t.profile")
    assert finding.fix == "did you mean `claude-haiku-4-5`?"


def test_profile_for_another_wire_format_is_a_finding(checked: Checked) -> None:
    (finding,) = checked("own", 'profile = "claude-haiku-4-5"', form="openai_chat").errors

    assert (finding.code, finding.path) == ("SY212", "targets.t.profile")
    assert "knows nothing of `openai_chat`" in finding.message


def _header(name: str, value: str = "v") -> str:
    return f'[[targets.t.fit]]\ndo = "add_header"\nheader = "{name}"\nvalue = "{value}"'


@pytest.mark.parametrize(
    ("keys", "code", "path", "part"),
    [
        ("profile = true", "SY107", "targets.t.profile", "names no profile"),
        ("max_output = 0", "SY107", "targets.t.max_output", "1"),
        (_header("authorization"), "SY210", "targets.t.fit", "cannot be set by a policy"),
        (_header("x-session-id"), "SY210", "targets.t.fit", "whose request it is"),
        (_header("x-a", "a\\r\\nb"), "SY210", "targets.t.fit", "printable ASCII"),
        ('[[targets.t.fit]]\npath = "x"\ndo = "dorp"', "SY107", "targets.t.fit[0].do", "drop"),
        ('[[targets.t.fit]]\npath = "x"\nd = "drop"', "SY104", "targets.t.fit[0].d", "unknown"),
        ('[[targets.t.fit]]\ndo = "drop"', "SY107", "targets.t.fit[0]", "needs `path`"),
    ],
    ids=[
        "true",
        "zero",
        "header_of_a_credential",
        "header_of_a_session",
        "header_with_a_line_end",
        "verb",
        "key",
        "path",
    ],
)
def test_wrong_rule_is_a_finding_at_its_place(
    checked: Checked, keys: str, code: str, path: str, part: str
) -> None:
    errors = checked(keys=keys).errors

    assert [code, path] in [[finding.code, finding.path] for finding in errors]
    assert part in " ".join(finding.message + finding.fix for finding in errors)
