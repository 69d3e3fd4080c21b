"""In which order mutation rules are tried, and which of them come too late."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice

from switchyard_core.mutation.rule import CompiledRule, compile_rule, is_glob
from switchyard_core.policy.model import Policy
from switchyard_core.policy.rules.reading import tables

__all__ = ["Earlier", "shadowed"]

#: Earlier rules that one rule is compared with, and orders that are looked at: a check of any
#: policy ends soon, and no policy that a person wrote has so many.
_MOST_COMPARED = 100
_MOST_ORDERS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """A rule that decides every call which a later one is about.

    Args:
        rule_set: Its rule set.
        place: Its place there.
        name: Its name, or its place as text.
    """

    rule_set: str
    place: int
    name: str


#: A rule by its rule set and its place there.
_Key = tuple[str, int]


def shadowed(policy: Policy) -> dict[_Key, Earlier]:
    """Return each own rule that decides nothing on any route, and the rule that it comes after.

    A rule set that no route uses is looked at as if it were used alone.
    """
    own = [name for name in tables(policy, "mutation_rules") if name in policy.rule_sets]
    used = dict.fromkeys(tuple(route.rule_sets) for route in policy.routes.values())
    orders = [_flattened(policy, names) for names in islice(used, _MOST_ORDERS)]
    in_use = set(chain.from_iterable(orders))
    if len(used) <= _MOST_ORDERS:
        orders += [_flattened(policy, (n,)) for n in islice(own, _MOST_ORDERS) if n not in in_use]
    compiled: dict[str, list[CompiledRule]] = {}
    found: dict[_Key, Earlier | None] = {}
    for order in orders:
        for name in order:
            if name not in compiled:
                compiled[name] = list(_compiled(policy, name))
        for key, earlier in _late(order, compiled):
            # A rule that decides something on one route is needed there.
            found[key] = earlier if found.get(key, earlier) is not None else None
    return {key: earlier for key, earlier in found.items() if earlier and key[0] in own}


def _flattened(policy: Policy, names: Sequence[str]) -> list[str]:
    """Return rule sets in the order in which they are tried, those that they extend included."""
    order: dict[str, None] = {}
    waiting = list(reversed(names))
    while waiting:
        name = waiting.pop()
        if name not in order and name in policy.rule_sets:
            order[name] = None
            waiting += reversed(policy.rule_sets[name].extends)
    return list(order)


def _compiled(policy: Policy, name: str) -> Iterator[CompiledRule]:
    model = policy.rule_sets[name]
    for place, rule in enumerate(model.rules):
        yield compile_rule(rule, index=place, rule_set=name, place=place, fold=model.fold)


def _late(
    order: Sequence[str], compiled: Mapping[str, Sequence[CompiledRule]]
) -> Iterator[tuple[_Key, Earlier | None]]:
    """Yield each rule of an order, with the first rule before it that leaves it nothing."""
    by_name: dict[Hashable, list[CompiledRule]] = {}
    by_pattern: dict[Hashable, list[CompiledRule]] = {}
    for name in order:
        for rule in compiled[name]:
            reads = (rule.fold, rule.model.path, rule.model.document, rule.model.format)
            named = by_name.get((reads, min(rule.literals)), ()) if rule.literals else ()
            candidates = islice(chain(named, by_pattern.get(reads, ())), _MOST_COMPARED)
            yield (name, rule.index), _cover(rule, candidates)
            if rule.conditions:
                continue
            for literal in rule.literals:
                by_name.setdefault((reads, literal), []).append(rule)
            if rule.patterns or not rule.literals:
                by_pattern.setdefault(reads, []).append(rule)


def _cover(later: CompiledRule, candidates: Iterable[CompiledRule]) -> Earlier | None:
    for rule in candidates:
        if not rule.model.match or (later.model.match and _has_all(rule, later)):
            return Earlier(rule_set=rule.rule_set, place=rule.index, name=rule.name)
    return None


def _has_all(rule: CompiledRule, later: CompiledRule) -> bool:
    # Without patterns the sets of names decide, which is quick.
    if not rule.patterns:
        return not later.patterns and later.literals <= rule.literals
    return all(_has(rule, entry) for entry in later.model.match)


def _has(rule: CompiledRule, entry: str) -> bool:
    if is_glob(entry):
        return entry in rule.model.match or "*" in rule.model.match
    return rule.names(entry)
