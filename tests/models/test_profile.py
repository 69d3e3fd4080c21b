"""What one target accepts, put together from the entries that match it."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from switchyard_core.models import Entry, ModelProfiles, Rule, is_known, profile_of, read_profiles

TEXT = """
[[profile]]
id = "family"
match = ["m-*"]
context_window = 100
max_output = 10
accepts_prefill = false
reasoning = { default = "on", key = "thoughts" }
source = "example.com"
as_of = 2026-01-01
sure = "doc"
rules = [{ path = "a", do = "drop" }]

[[profile]]
id = "one"
match = ["m-1"]
wire_format = ["openai_chat"]
max_output = 20
prefix_bound = true
reads = ["m-*"]
reasoning = { off = true }
source = "example.com"
as_of = 2026-01-02
sure = "report"
rules = [{ path = "b", do = "drop" }]

[[profile]]
id = "endpoint"
match = ["*"]
host = ["*.example.com"]
source = "example.com"
as_of = 2026-01-03
sure = "code"
rules = [{ path = "c", do = "drop" }]
"""


@pytest.fixture(scope="module")
def entries() -> tuple[Entry, ...]:
    return read_profiles(ModelProfiles(text=TEXT))


def of(entries: tuple[Entry, ...], **changes: Any) -> Any:
    given: dict[str, Any] = {"model": "m-1", "wire_format": "openai_chat", "host": "x"}
    return profile_of(entries, **{**given, **changes})


def test_later_entries_refine_earlier_ones(entries: tuple[Entry, ...]) -> None:
    profile = of(entries)

    assert profile.entries == ("family", "one")
    assert [(who, rule.path) for who, rule in profile.rules] == [("family", "a"), ("one", "b")]
    assert (profile.context_window, profile.max_output) == (100, 20)
    assert (profile.accepts_prefill, profile.prefix_bound) == (False, True)
    told = profile.reasoning
    assert (told.default, told.key, told.off, told.echo) == ("on", "thoughts", True, None)
    assert [entry.as_of for entry in profile.facts] == [date(2026, 1, 1), date(2026, 1, 2)]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"model": "x"}, ()),
        ({"wire_format": "anthropic_messages"}, ("family",)),
        ({"host": "api.example.com"}, ("family", "one", "endpoint")),
        ({"host": "api.example.com", "model": "x"}, ("endpoint",)),
        ({"host": ""}, ("family", "one")),
        ({"name": False}, ()),
        ({"name": "endpoint", "model": "x"}, ("endpoint",)),
        ({"name": "m-7", "model": "x"}, ("family",)),
        ({"name": "m-7"}, ("family",)),
    ],
    ids=["other", "format", "host", "host_alone", "scripted", "off", "id", "model", "in_place"],
)
def test_entries_apply_by_model_format_host_and_name(
    entries: tuple[Entry, ...], changes: dict[str, Any], expected: tuple[str, ...]
) -> None:
    assert of(entries, **changes).entries == expected


def test_rules_of_the_policy_come_last_and_stand_without_a_profile(
    entries: tuple[Entry, ...],
) -> None:
    rule = Rule(do="drop", path="z")

    assert [who for who, _ in of(entries, fit=[rule]).rules] == ["family", "one", "fit"]
    assert of(entries, fit=[rule], name=False).rules == (("fit", rule),)


def test_unknown_model_has_no_facts(entries: tuple[Entry, ...]) -> None:
    profile = of(entries, model="x")

    assert (profile.rules, profile.context_window, profile.prefix_bound) == ((), None, False)
    assert not profile.reads_from("m-1")


def test_models_whose_thinking_is_read(entries: tuple[Entry, ...]) -> None:
    assert (of(entries).reads_from("m-2"), of(entries).reads_from("n")) == (True, False)


def test_name_is_known_by_id_or_by_a_model_with_its_version(entries: tuple[Entry, ...]) -> None:
    assert [is_known(entries, name) for name in ("one", "m-1", "m-5", "x")] == [
        True,
        True,
        False,
        False,
    ]
