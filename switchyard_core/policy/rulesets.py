"""Resolves ``[mutation_rules]``: the policy's own rule sets, and the packs that it uses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from switchyard_core.mutation import RuleProblem, check_rule_set
from switchyard_core.mutation.check import extends_cycle
from switchyard_core.mutation.schema import ConditionModel, RuleModel, RuleSetModel
from switchyard_core.policy.draft import Draft
from switchyard_core.policy.models import Route
from switchyard_core.policy.places import Location
from switchyard_core.policy.secrets import can_be_seen, shown
from switchyard_core.policy.shapes import allowed_keys
from switchyard_core.policy.validation import Salvaged, salvage

__all__ = ["check_used_packs", "resolve_rule_sets"]

#: Keys whose absence causes a problem, which is not reported when one of them is invalid.
_CAUSES: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "SY406": frozenset({"label", "target", "reader"}),
        "SY411": frozenset({"command"}),
        "SY412": frozenset({"format", "path"}),
        "SY413": frozenset({"match", "path"}),
        "SY414": frozenset({"equals", "in", "not_in", "matches", "exists"}),
        "SY416": frozenset({"reader", "document"}),
    }
)
_KNOWN_KEYS = frozenset(allowed_keys(RuleModel)) | frozenset(allowed_keys(ConditionModel))


def resolve_rule_sets(draft: Draft) -> dict[str, RuleSetModel]:
    """Return the policy's valid rule sets; one wrong key does not hide other problems."""
    raw_sets = draft.tables("mutation_rules")
    whole: dict[str, RuleSetModel] = {}
    usable: dict[str, Salvaged[RuleSetModel]] = {}
    for name, raw in raw_sets.items():
        model = draft.validated(("mutation_rules", name), RuleSetModel, raw)
        if model is not None:
            whole[name] = model
        _check_names(draft, name, raw)
        rest = salvage(RuleSetModel, raw)
        if rest is not None:
            usable[name] = rest
    _check(draft, usable)
    return whole


def _check_names(draft: Draft, name: str, raw: object) -> None:
    """Report rules whose names cannot be told apart; a rule without the key has none."""
    first: dict[str, Location] = {}
    for key in ("rules", "text") if isinstance(raw, dict) else ():
        rules = raw.get(key) if isinstance(raw, dict) else None
        for number, rule in enumerate(rules if isinstance(rules, list) else ()):
            own = rule.get("name") if isinstance(rule, dict) else None
            where = ("mutation_rules", name, key, number, "name")
            if not isinstance(own, str):
                continue
            if not can_be_seen(own):
                message = "the name of this rule is blank, padded, or holds an invisible character"
                fix = "write a name that can be told from others, or remove the key"
                draft.report("SY116", message, where, fix=fix)
            elif first.setdefault(own, where) != where:
                place = draft.document.where(first[own])
                message = f"two rules of this set have the name `{shown(own)}`"
                notes = (f"the first is at {place}",)
                draft.report("SY417", message, where, fix="rename one", notes=notes)


def _check(draft: Draft, usable: Mapping[str, Salvaged[RuleSetModel]]) -> None:
    raw_sets, packs = draft.tables("mutation_rules"), draft.registry.rule_sets
    available = {**packs, **{name: rest.model for name, rest in usable.items()}}
    seen_cycles: set[frozenset[str]] = set()
    for name, rest in usable.items():
        for problem in check_rule_set(name, rest.model, available, reserved=packs):
            parent = _parent(rest.model, problem)
            if parent in raw_sets and parent not in usable:
                # That rule set exists and has findings.
                continue
            if problem.code == "SY405":
                cycle = frozenset(extends_cycle(name, parent, available))
                if cycle in seen_cycles:
                    continue
                seen_cycles.add(cycle)
            if not _is_consequence(problem, rest):
                draft.report(
                    problem.code,
                    problem.message,
                    ("mutation_rules", name, *rest.original(problem.location)),
                    at_key=not problem.location,
                    offset=problem.column,
                    fix=problem.fix,
                    notes=problem.notes,
                )


def _parent(model: RuleSetModel, problem: RuleProblem) -> str:
    match problem.location:
        case ("extends", int(index)):
            return model.extends[index]
    return ""


def _is_consequence(problem: RuleProblem, rest: Salvaged[RuleSetModel]) -> bool:
    """Return whether a problem is only due to a wrong key that was left out."""
    causes = _CAUSES.get(problem.code)
    if causes is None:
        return False
    # A rule's problem is at the rule or at one of its keys, a condition's at the condition.
    table = rest.original(problem.location)[: 4 if problem.code == "SY414" else 2]
    end = len(table)
    keys = {str(p[end]) for p in rest.left_out if len(p) > end and p[:end] == table}
    # An unknown key may be the missing one, misspelt.
    return bool(keys - _KNOWN_KEYS or keys & causes)


def check_used_packs(
    draft: Draft, routes: Iterable[Route], own: Mapping[str, RuleSetModel]
) -> None:
    """Report invalid packs of plugins that a policy uses."""
    packs = draft.registry.rule_sets
    for name, location in _used(routes, {**packs, **own}):
        problems = check_rule_set(name, packs[name], packs) if name in packs else []
        if problems:
            draft.report(
                "SY508",
                f"invalid mutation pack `{name}` of a plugin: {problems[0].message}",
                location,
                at_key=True,
                fix="report this to the author of the plugin",
            )


def _used(
    routes: Iterable[Route], available: Mapping[str, RuleSetModel]
) -> Iterator[tuple[str, Location]]:
    waiting: list[tuple[str, Location]] = [
        (name, ("routes", route.name)) for route in routes for name in route.rule_sets
    ]
    seen: set[str] = set()
    while waiting:
        name, location = waiting.pop()
        if name not in seen and name in available:
            seen.add(name)
            waiting += [(parent, location) for parent in available[name].extends]
            yield name, location
