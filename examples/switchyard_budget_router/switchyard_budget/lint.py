"""The lint rule ``BUDGET01``: a target of a budget has no price."""

from __future__ import annotations

from collections.abc import Iterator

from switchyard_core import Finding, LintRule, Policy

__all__ = ["UNPRICED_TARGET"]


def _check(policy: Policy) -> Iterator[Finding]:
    for name, route in policy.routes.items():
        if route.type.name != "budget":
            continue
        for key in ("target", "cheap"):
            target = policy.targets[getattr(route.options, key)]
            if target.price is None:
                yield policy.finding(
                    "BUDGET01",
                    f"the model of the target `{target.name}` has no price: it spends no budget",
                    ("routes", name, key),
                    fix=f'add `[prices."{target.id}"]`',
                )


UNPRICED_TARGET = LintRule(
    code="BUDGET01",
    name="unpriced-target",
    check=_check,
    summary="finds targets of a budget whose price is not known",
)
