"""Which routes and mutation rules of a policy its test cases exercised."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal, Self

from switchyard_core.plugins import PluginRegistry
from switchyard_core.policy import Policy

__all__ = ["Coverage", "Uncovered"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Uncovered:
    """A part of a policy that no case exercised.

    Args:
        kind: ``route`` or ``rule``.
        name: Name of the route; rule set and rule with a slash between.
        where: ``file:line:column`` of it.
    """

    kind: Literal["route", "rule"]
    name: str
    where: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """What the cases of one policy exercised.

    A route counts when a request led to it, a rule when it decided the label of a call. Rules
    of packs are not counted: their own tests are elsewhere.

    Args:
        routes: How many routes the policy has.
        rules: How many mutation rules of its own it has.
        uncovered: Those that no case exercised, in the order of the policy.
    """

    routes: int
    rules: int
    uncovered: tuple[Uncovered, ...]

    @classmethod
    def of(
        cls,
        policy: Policy,
        registry: PluginRegistry,
        *,
        routes: Collection[str],
        rules: Collection[tuple[str, str]],
    ) -> Self:
        """Return the coverage of a policy.

        Args:
            policy: The policy.
            registry: The plugins that it was checked with; their packs are left out.
            routes: Names of the routes that requests led to.
            rules: Rule set and name of each rule that decided.
        """
        uncovered = []
        for name in policy.routes:
            if name not in routes:
                where = policy.document.where(("routes", name), at_key=True)
                uncovered.append(Uncovered(kind="route", name=name, where=where))
        count = 0
        for name, model in policy.rule_sets.items():
            if name in registry.rule_sets:
                continue
            for place, rule in enumerate(model.rules):
                count += 1
                label = rule.name or f"rules[{place}]"
                if (name, label) in rules:
                    continue
                location = ("mutation_rules", name, "rules", place)
                where = policy.document.where(location, at_key=True)
                uncovered.append(Uncovered(kind="rule", name=f"{name}/{label}", where=where))
        return cls(routes=len(policy.routes), rules=count, uncovered=tuple(uncovered))

    def missing(self, kind: Literal["route", "rule"]) -> int:
        """Return how many of a kind no case exercised."""
        return sum(part.kind == kind for part in self.uncovered)
