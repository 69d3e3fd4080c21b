"""The nearest of several names."""

from __future__ import annotations

import pytest

from switchyard_core.errors import nearest


@pytest.mark.parametrize(
    ("name", "known", "meant"),
    [
        ("plannr", ["planner", "executor"], "planner"),
        ("swithcyard.toml", ["switchyard.toml"], "switchyard.toml"),
        ("openai", ["openai_chat", "anthropic_messages"], "openai_chat"),
        ("api-key_env", ["api_key_env"], "api_key_env"),
        ("key_api_env", ["api_key_env"], "api_key_env"),
        ("Routes", ["routes"], "routes"),
        ("a.toml", ["rand.toml"], None),
        ("lint", ["init", "check"], None),
        ("targets", ["subagents", "type"], None),
        ("x", ["y"], None),
        ("", ["a"], None),
    ],
)
def test_nearest_is_a_name_that_a_slip_explains(name, known, meant):
    assert nearest(name, known) == meant
