"""The policy that is shipped, and its cases."""

from __future__ import annotations

from pathlib import Path

from switchyard_core import Switchyard
from switchyard_core.policy import check_policy, load_policy_text
from switchyard_core.testing import registry_of

from switchyard_budget import BudgetPlugin

REGISTRY = registry_of([BudgetPlugin()])


def test_policy_has_no_finding(policy: Path) -> None:
    result = check_policy(policy, REGISTRY)

    assert [finding.render() for finding in result.findings] == []


async def test_cases_of_the_policy_pass(policy: Path) -> None:
    yard = Switchyard.from_policy(policy, registry=REGISTRY)

    results = await yard.test(policy.with_name("policy.test.toml"))

    assert [(case.name, case.story) for case in results if case.state != "PASS"] == []
    assert len(results) == 4


def test_target_without_a_price_is_found(policy: Path) -> None:
    text = policy.read_text(encoding="utf-8").replace('[prices."provider/small"]', '[prices."x"]')

    found = {finding.code: finding for finding in load_policy_text(text, "p", REGISTRY).findings}

    assert found["BUDGET01"].path == "routes.budget.cheap"
    assert found["BUDGET01"].fix == 'add `[prices."provider/small"]`'
