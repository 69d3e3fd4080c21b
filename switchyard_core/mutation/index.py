"""Which rules are on a tool: names are looked up, patterns are tested in one search."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from switchyard_core.mutation.names import NameFolding, fold_name, pattern_spellings
from switchyard_core.mutation.rule import CompiledRule, is_glob
from switchyard_core.mutation.tables import load_table
from switchyard_core.patterns import name_set

__all__ = ["RuleIndex"]


class RuleIndex:
    """Finds the rules on a name; rules with their own path are not among them."""

    def __init__(self, rules: Sequence[CompiledRule]) -> None:
        self._by_fold: dict[str, list[int]] = {}
        self._by_case: dict[str, list[int]] = {}
        plain = [rule for rule in rules if rule.path is None]
        for rule in plain:
            table = self._by_fold if rule.fold else self._by_case
            for literal in rule.literals:
                table.setdefault(literal, []).append(rule.index)
        self._always = {r.index for r in plain if not r.patterns and not r.literals}
        self._folded = _Patterns(rule for rule in plain if rule.fold)
        self._exact = _Patterns(rule for rule in plain if not rule.fold)
        names = load_table("names")
        self._folding = NameFolding(
            servers=frozenset(names["servers"]), verbs=frozenset(names["verbs"])
        )

    def rules_on(self, name: str, qualifier: str) -> tuple[int, ...]:
        """Return the indices of the rules on a tool, in order; its server qualifies its name."""
        qualified = [f"{qualifier}__{name}"] if qualifier else []
        folded = [*qualified, *dict.fromkeys(self._folding.candidates(name))]
        indices = set(self._always)
        for candidate in (*qualified, name):
            indices.update(self._by_case.get(candidate.casefold(), ()))
            indices.update(self._exact.rules(candidate))
        for candidate in folded:
            # The fullest spelling that any rule knows is the tool: a rule on `todo_write`
            # must not lose to one on `write`.
            if hits := self._by_fold.get(fold_name(candidate)):
                indices.update(hits)
                break
        for spelling in set().union(*map(pattern_spellings, folded)):
            indices.update(self._folded.rules(spelling))
        return tuple(sorted(indices))

    def is_named(self, rule: CompiledRule, value: Any) -> bool:
        """Return whether a rule is on the name that its own path found."""
        if not isinstance(value, str):
            return not rule.model.match
        candidates = self._folding.candidates(value) if rule.fold else iter((value,))
        return any(rule.names(candidate) for candidate in candidates)


class _Patterns:
    """The globs and expressions of many rules."""

    def __init__(self, rules: Iterable[CompiledRule]) -> None:
        entries = [
            (entry, rule.index) for rule in rules for entry in rule.model.match if is_glob(entry)
        ]
        self._owners = [index for _, index in entries]
        self._found = name_set(entry for entry, _ in entries)

    def rules(self, name: str) -> set[int]:
        """Return the index of each rule with an entry that matches."""
        return {self._owners[place] for place in self._found(name)}
