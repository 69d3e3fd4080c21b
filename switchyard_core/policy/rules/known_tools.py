"""The tool names of known agents, as the installed packs have them."""

from __future__ import annotations

from difflib import get_close_matches

from switchyard_core.mutation.names import fold_name
from switchyard_core.mutation.rule import CompiledRule, compile_rule, is_glob
from switchyard_core.policy.model import Policy
from switchyard_core.policy.rules.reading import tables

__all__ = ["KnownTools"]

#: How alike two names are that differ by a slip of the finger, 0 to 1. Lower values call the
#: user's own tools misspelt.
_ALIKE = 0.88
#: In shorter names one other letter makes another word.
_SHORTEST = 6
#: Names that are compared: a check of any policy ends soon.
_MOST_COMPARED = 200


class KnownTools:
    """Compares names with those of the packs that plugins give.

    Args:
        policy: Its own rule sets do not count: they are what is compared.
    """

    def __init__(self, policy: Policy) -> None:
        own = tables(policy, "mutation_rules")
        self._rules: list[CompiledRule] = []
        self._spelt: dict[str, str] = {}
        self._compared = 0
        for name, model in policy.rule_sets.items():
            if name in own:
                continue
            for place, rule in enumerate(model.rules):
                compiled = compile_rule(
                    rule, index=place, rule_set=name, place=place, fold=model.fold
                )
                if compiled.literals or compiled.patterns:
                    self._rules.append(compiled)
                for entry in rule.match:
                    if not is_glob(entry):
                        self._spelt.setdefault(fold_name(entry), entry)

    def meant_by(self, name: str) -> str | None:
        """Return the known name that a misspelt one most likely means.

        Returns:
            ``None`` when the name is known, a pattern, or like no known name, and after so many
            questions that no person wrote them.
        """
        folded = fold_name(name)
        if is_glob(name) or len(folded) < _SHORTEST or folded in self._spelt:
            return None
        if self._compared >= _MOST_COMPARED or any(rule.names(name) for rule in self._rules):
            return None
        self._compared += 1
        near = get_close_matches(folded[:200], list(self._spelt), n=1, cutoff=_ALIKE)
        return self._spelt[near[0]] if near else None
