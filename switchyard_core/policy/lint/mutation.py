"""Lint rules about the mutation rules that a policy itself writes."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from itertools import chain, islice

from switchyard_core.errors import Finding
from switchyard_core.mutation import RuleModel
from switchyard_core.mutation.names import fold_name, pattern_spellings
from switchyard_core.mutation.rule import CompiledRule, compile_rule, is_glob
from switchyard_core.patterns import name_set
from switchyard_core.policy.lint.base import Rule
from switchyard_core.policy.models import Policy
from switchyard_core.policy.places import Location
from switchyard_core.policy.secrets import shown

__all__ = ["RULES"]

#: Errors with which rule sets or routes are missing.
_RULE_SET_ERRORS = frozenset(
    {"SY104", "SY105", "SY106", "SY107", "SY301", "SY508"}
    | {f"SY{number}" for number in range(401, 417)}
)
# Limits that keep every check short; no hand-written policy reaches them.
#: Earlier rules that one rule is compared with.
_MOST_EARLIER = 100
#: Orders of rule sets that are compared.
_MOST_ORDERS = 50
#: Names that are compared with known ones.
_MOST_NAMES = 200

#: Similarity of a misspelt name, 0 to 1. Lower values report the user's own tools.
_ALIKE = 0.88
#: In a shorter name one letter makes another word.
_SHORTEST = 6

#: Members of a tool call, the root of conditions, targets and commands.
_CALL = ("type", "id", "name", "namespace", "server", "kind", "arguments")
#: Where a body of each wire format keeps its tool calls.
_HISTORY: Mapping[str, tuple[str, ...]] = {
    "openai_chat": ("messages",),
    "openai_responses": ("input",),
    "anthropic_messages": ("messages",),
}
_FIRST = re.compile(r"""\$(?:\.(\w+)|\[['"](\w+)['"]\])(?=[.\[]|$)""")

#: A rule by its rule set and its place there.
_Key = tuple[str, int]


def _own_rules(policy: Policy) -> Iterator[tuple[Location, RuleModel]]:
    for name in policy.document.tables("mutation_rules"):
        if name in policy.rule_sets:
            for index, rule in enumerate(policy.rule_sets[name].rules):
                yield ("mutation_rules", name, "rules", index), rule


def _compiled(policy: Policy, name: str) -> list[CompiledRule]:
    model = policy.rule_sets[name]
    return [
        compile_rule(rule, index=place, rule_set=name, place=place, fold=model.fold)
        for place, rule in enumerate(model.rules)
    ]


def _rule_for_bodies_of_no_route(policy: Policy) -> Iterator[Finding]:
    spoken = {route.wire_format for route in policy.routes.values()} - {None}
    for location, rule in _own_rules(policy) if spoken else ():
        if rule.document == "body" and rule.format not in spoken:
            message = f"this rule is for bodies of {rule.format}, which no route speaks"
            fix = "change `format`, or remove the rule"
            notes = (f"wire formats of routes: {', '.join(sorted(map(str, spoken)))}",)
            yield policy.finding("SY420", message, (*location, "format"), notes=notes, fix=fix)


def _path_that_never_matches(policy: Policy) -> Iterator[Finding]:
    for location, rule in _own_rules(policy):
        for inner, path, members in _paths(rule):
            begin = _FIRST.match(path)
            first = begin and (begin[1] or begin[2])
            if first and first not in members:
                message = f"this path never matches: there is no `{shown(first)}`"
                fix = "start with one of these"
                notes = (f"possible first members: {', '.join(members)}",)
                yield policy.finding("SY423", message, (*location, *inner), notes=notes, fix=fix)


def _paths(rule: RuleModel) -> Iterator[tuple[Location, str, tuple[str, ...]]]:
    """Yield each path of a rule with its document's top-level members."""
    # In a body the path must reach the history.
    yield ("path",), rule.path, _HISTORY.get(rule.format or "", ("messages",))
    for index, condition in enumerate(rule.where):
        if condition.exists is not False:
            yield ("where", index, "path"), condition.path, _CALL
    if rule.target is not None:
        yield ("target",), rule.target, _CALL
    if rule.command is not None:
        yield ("command",), rule.command, _CALL


# --- unknown names ------------------------------------------------------------------------------


def _misspelt_tool(policy: Policy) -> Iterator[Finding]:
    own = list(_own_rules(policy))
    if not own:  # the rest is costly
        return
    tools = _PackTools(policy)
    for location, rule in own:
        for place, entry in enumerate(rule.match):
            meant = tools.meant_by(entry)
            if meant is not None:
                message = f"no known agent has a tool `{shown(entry)}`"
                fix = f"did you mean `{meant}`?"
                yield policy.finding("SY422", message, (*location, "match", place), fix=fix)


class _PackTools:
    """The tool names in the packs of plugins."""

    def __init__(self, policy: Policy) -> None:
        own = policy.document.tables("mutation_rules")
        packs = [_compiled(policy, name) for name in policy.rule_sets if name not in own]
        rules = list(chain.from_iterable(packs))
        entries = list(chain.from_iterable(rule.model.match for rule in rules))
        self._spelt: dict[str, str] = {}
        for entry in entries:
            if not is_glob(entry):
                self._spelt.setdefault(fold_name(entry), entry)
        # An expression is for names that nobody has listed, so it makes none of them known.
        self._has = name_set(e for e in entries if is_glob(e) and not e.startswith("re:"))
        self._compared = 0

    def meant_by(self, name: str) -> str | None:
        """Return the known name that a misspelt one most likely means."""
        folded = fold_name(name)
        if is_glob(name) or len(folded) < _SHORTEST or folded in self._spelt:
            return None
        if self._compared >= _MOST_NAMES or any(map(self._has, pattern_spellings(name))):
            return None
        self._compared += 1
        near = get_close_matches(folded[:200], list(self._spelt), n=1, cutoff=_ALIKE)
        return self._spelt[near[0]] if near else None


# --- shadowed rules ---------------------------------------------------------------------------


def _shadowed_rule(policy: Policy) -> Iterator[Finding]:
    for (name, index), earlier in _shadowed(policy).items():
        note = f"the earlier rule: {shown(earlier.name)} of {shown(earlier.rule_set)}"
        if earlier.rule_set == name:
            place = ("mutation_rules", name, "rules", earlier.index)
            note += f", at {policy.document.where(place)}"
        message = "an earlier rule decides every call that this rule matches"
        fix = "move this rule before the earlier one, or remove it"
        notes = (note,)
        yield policy.finding(
            "SY421", message, ("mutation_rules", name, "rules", index), notes=notes, fix=fix
        )


def _shadowed(policy: Policy) -> dict[_Key, CompiledRule]:
    """Return each own rule that decides nothing on any route, and the rule that it comes after.

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
    compiled = {name: _compiled(policy, name) for name in dict.fromkeys(chain(*orders))}
    found: dict[_Key, CompiledRule | None] = {}
    for order in orders:
        for key, earlier in _late(order, compiled):
            # A rule that decides on one route is needed.
            found[key] = earlier if found.get(key, earlier) is not None else None
    return {key: earlier for key, earlier in found.items() if earlier and key[0] in own}


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


def _late(
    order: Sequence[str], compiled: Mapping[str, Sequence[CompiledRule]]
) -> Iterator[tuple[_Key, CompiledRule | None]]:
    """Yield each rule of an order with the first earlier rule that covers it."""
    by_name: dict[Hashable, list[CompiledRule]] = {}
    by_pattern: dict[Hashable, list[CompiledRule]] = {}
    for rule in chain.from_iterable(compiled[name] for name in order):
        reads = (rule.fold, rule.model.path, rule.model.document, rule.model.format)
        named = by_name.get((reads, min(rule.literals)), ()) if rule.literals else ()
        candidates = islice(chain(named, by_pattern.get(reads, ())), _MOST_EARLIER)
        yield (rule.rule_set, rule.index), _cover(rule, candidates)
        if rule.conditions:
            continue
        for literal in rule.literals:
            by_name.setdefault((reads, literal), []).append(rule)
        if rule.patterns or not rule.literals:
            by_pattern.setdefault(reads, []).append(rule)


def _cover(later: CompiledRule, candidates: Iterable[CompiledRule]) -> CompiledRule | None:
    for rule in candidates:
        if not rule.model.match or (later.model.match and _has_all(rule, later)):
            return rule
    return None


def _has_all(rule: CompiledRule, later: CompiledRule) -> bool:
    # Without patterns, comparing the sets of names is faster.
    if not rule.patterns:
        return not later.patterns and later.literals <= rule.literals
    return all(_has(rule, entry) for entry in later.model.match)


def _has(rule: CompiledRule, entry: str) -> bool:
    if is_glob(entry):
        return entry in rule.model.match or "*" in rule.model.match
    return rule.names(entry)


RULES = (
    Rule(
        code="SY420",
        name="rule-for-bodies-of-no-route",
        check=_rule_for_bodies_of_no_route,
        needs=frozenset({"SY201", "SY202", "SY301", "SY303"}),
    ),
    Rule(code="SY421", name="shadowed-rule", check=_shadowed_rule, needs=_RULE_SET_ERRORS),
    Rule(code="SY422", name="misspelt-tool", check=_misspelt_tool),
    # An invalid path is not checked.
    Rule(
        code="SY423",
        name="path-that-never-matches",
        check=_path_that_never_matches,
        needs=frozenset({"SY401"}),
    ),
)
