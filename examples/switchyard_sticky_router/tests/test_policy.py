"""A policy that uses ``type = "sticky"``: it is accepted, and its mistakes are found."""

from __future__ import annotations

from pathlib import Path

import pytest
from switchyard_core import PluginRegistry, PolicyError
from switchyard_core.policy import check_policy, load_policy_text

import switchyard_sticky

REGISTRY = PluginRegistry([("sticky", switchyard_sticky)])


def test_policy_has_no_finding(policy: Path) -> None:
    result = check_policy(policy, REGISTRY)

    assert [finding.render() for finding in result.findings] == []


def test_policy_with_a_misspelt_option_names_the_right_one(policy: Path) -> None:
    text = policy.read_text(encoding="utf-8").replace("default =", "defualt =")

    with pytest.raises(PolicyError) as caught:
        load_policy_text(text, "policy.toml", REGISTRY)

    (finding,) = caught.value.findings
    assert text.splitlines()[finding.line - 1].startswith("defualt")
    assert "did you mean `default`?" in finding.fix
