"""How lint rules read a policy, of which some parts may be wrong or missing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from switchyard_core.mutation import RuleModel
from switchyard_core.policy.model import Policy

__all__ = ["own_rules", "tables", "text_at"]


def tables(policy: Policy, name: str) -> Mapping[str, Any]:
    """Return a top-level table as it is written, empty when it is absent or no table."""
    value = policy.document.values.get(name)
    return value if isinstance(value, dict) else {}


def text_at(raw: object, key: str) -> str | None:
    """Return a text of a table, ``None`` when it is absent or no text."""
    value = raw.get(key) if isinstance(raw, dict) else None
    return value if isinstance(value, str) else None


def own_rules(policy: Policy) -> Iterator[tuple[str, int, RuleModel]]:
    """Yield the mutation rules that the policy itself writes: rule set, place in it, rule."""
    for name in tables(policy, "mutation_rules"):
        if name in policy.rule_sets:
            for index, rule in enumerate(policy.rule_sets[name].rules):
                yield name, index, rule
