"""Lint rules about mutation rules that come too late: an earlier one decides all or some calls."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import chain, islice

from switchyard_core.errors import Finding
from switchyard_core.mutation.rule import CompiledRule, compile_rule, is_glob
from switchyard_core.policy.lint.base import Rule
from switchyard_core.policy.models import Policy
from switchyard_core.policy.secrets import shown

__all__ = ["RULES", "compiled"]

#: Errors with which rule sets or routes are missing.
_RULE_SET_ERRORS = frozenset(
    {"SY104", "SY105", "SY106", "SY107", "SY301", "SY508"}
    | {f"SY{number}" for number in range(401, 417)}
)
# Limits that keep every check short; no hand-written policy reaches them.
#: Earlier rules that one name is compared with.
_MOST_EARLIER = 100
#: Names of one rule that are compared.
_MOST_ENTRIES = 200
#: Orders of rule sets that are compared.
_MOST_ORDERS = 50

#: A rule by its rule set and its place there.
_Key = tuple[str, int]
#: The entries of ``match`` of a rule, each with the earlier rule that decides its calls, if any.
_Covered = dict[str, CompiledRule | None]


def compiled(policy: Policy, name: str) -> list[CompiledRule]:
    """Return the rules of a rule set, ready to run."""
    model = policy.rule_sets[name]
    return [
        compile_rule(rule, index=place, rule_set=name, place=place, fold=model.fold)
        for place, rule in enumerate(model.rules)
    ]


def _shadowed_rule(policy: Policy) -> Iterator[Finding]:
    for (name, index), covered in _all_covered(policy).items():
        if None not in covered.values():
            one = len({id(rule) for rule in covered.values()}) == 1
            message = "an earlier rule decides every call that this rule matches"
            if not one:
                message = "earlier rules decide every call that this rule matches"
            yield policy.finding(
                "SY421",
                message,
                ("mutation_rules", name, "rules", index),
                notes=_notes(policy, name, covered),
                fix="move this rule before the earlier one, or remove it"
                if one
                else "move this rule before them, or remove it",
            )


def _half_shadowed_rule(policy: Policy) -> Iterator[Finding]:
    for (name, index), covered in _all_covered(policy).items():
        late = [entry for entry, rule in covered.items() if rule is not None]
        if not late or len(late) == len(covered):
            continue
        listed = ", ".join(f"`{shown(entry)}`" for entry in late)
        rules = ("mutation_rules", name, "rules", index)
        place = policy.rule_sets[name].rules[index].match.index(late[0])
        yield policy.finding(
            "SY424",
            f"calls of {listed} never reach this rule: an earlier one decides them",
            (*rules, "match", place),
            notes=_notes(policy, name, covered),
            fix="move this rule before the earlier one, or remove these names here",
        )


def _notes(policy: Policy, name: str, covered: _Covered) -> tuple[str, ...]:
    """Return a note for each earlier rule, with its place if it is in the same rule set."""
    notes = []
    for rule in covered.values():
        if rule is not None:
            note = f"the earlier rule: {shown(rule.name)} of {shown(rule.rule_set)}"
            if rule.rule_set == name:
                place = ("mutation_rules", name, "rules", rule.index)
                note += f", at {policy.document.where(place)}"
            notes.append(note)
    return tuple(dict.fromkeys(notes))


def _all_covered(policy: Policy) -> dict[_Key, _Covered]:
    """Return what earlier rules decide of each own rule, on every route.

    A rule set that no route uses is checked alone.
    """
    own = [name for name in policy.document.tables("mutation_rules") if name in policy.rule_sets]
    if not own:  # the rest is costly
        return {}
    used = dict.fromkeys(tuple(route.rule_sets) for route in policy.routes.values())
    orders = [_flattened(policy, names) for names in islice(used, _MOST_ORDERS)]
    in_use = set(chain.from_iterable(orders))
    if len(used) <= _MOST_ORDERS:
        orders += [_flattened(policy, (n,)) for n in islice(own, _MOST_ORDERS) if n not in in_use]
    rules = {name: compiled(policy, name) for name in dict.fromkeys(chain(*orders))}
    found: dict[_Key, _Covered] = {}
    for order in orders:
        for key, covered in _covered(order, rules, frozenset(own)):
            before = found.setdefault(key, covered)
            # A name that reaches the rule on one route is needed.
            found[key] = {
                entry: rule if covered[entry] is not None else None
                for entry, rule in before.items()
            }
    return found


def _flattened(policy: Policy, names: Sequence[str]) -> list[str]:
    """Return rule sets in the order in which they are tried, with those that they extend."""
    order: dict[str, None] = {}
    waiting = list(reversed(names))
    while waiting:
        name = waiting.pop()
        if name not in order and name in policy.rule_sets:
            order[name] = None
            waiting += reversed(policy.rule_sets[name].extends)
    return list(order)


def _covered(
    order: Sequence[str], rules: Mapping[str, Sequence[CompiledRule]], own: frozenset[str]
) -> Iterator[tuple[_Key, _Covered]]:
    """Yield each own rule of an order with what earlier ones decide of it."""
    by_name: dict[Hashable, list[CompiledRule]] = {}
    by_pattern: dict[Hashable, list[CompiledRule]] = {}
    for rule in chain.from_iterable(rules[name] for name in order):
        reads = (rule.fold, rule.model.path, rule.model.document, rule.model.format)
        if rule.rule_set in own:
            yield (
                (rule.rule_set, rule.index),
                {
                    entry: _cover(
                        entry, by_name.get((reads, rule.key(entry)), ()), by_pattern.get(reads, ())
                    )
                    # A rule without names has all of them.
                    for entry in rule.model.match[:_MOST_ENTRIES] or ("",)
                },
            )
        if rule.conditions:
            continue
        for literal in rule.literals:
            by_name.setdefault((reads, literal), []).append(rule)
        if rule.patterns or not rule.literals:
            by_pattern.setdefault(reads, []).append(rule)


def _cover(
    entry: str, named: Sequence[CompiledRule], patterns: Sequence[CompiledRule]
) -> CompiledRule | None:
    """Return the first earlier rule that decides all calls of a name or pattern."""
    for rule in islice(chain(named, patterns), _MOST_EARLIER):
        if not rule.model.match or (entry and _has(rule, entry)):
            return rule
    return None


def _has(rule: CompiledRule, entry: str) -> bool:
    if is_glob(entry):
        return entry in rule.model.match or "*" in rule.model.match
    return rule.names(entry)


RULES = (
    Rule(code="SY421", name="shadowed-rule", check=_shadowed_rule, needs=_RULE_SET_ERRORS),
    Rule(
        code="SY424", name="half-shadowed-rule", check=_half_shadowed_rule, needs=_RULE_SET_ERRORS
    ),
)
