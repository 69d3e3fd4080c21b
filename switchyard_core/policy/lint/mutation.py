"""Lint rules about the mutation rules that a policy itself writes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from itertools import chain

from switchyard_core.errors import Finding
from switchyard_core.mutation import RuleModel
from switchyard_core.mutation.names import fold_name, pattern_spellings
from switchyard_core.mutation.rule import is_glob
from switchyard_core.patterns import name_set
from switchyard_core.policy.lint.base import Rule
from switchyard_core.policy.lint.shadows import compiled
from switchyard_core.policy.models import Policy
from switchyard_core.policy.places import Location
from switchyard_core.policy.secrets import shown

__all__ = ["RULES"]

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


def _own_rules(policy: Policy) -> Iterator[tuple[Location, RuleModel]]:
    for name in policy.document.tables("mutation_rules"):
        if name in policy.rule_sets:
            for index, rule in enumerate(policy.rule_sets[name].rules):
                yield ("mutation_rules", name, "rules", index), rule


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
        packs = [compiled(policy, name) for name in policy.rule_sets if name not in own]
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


RULES = (
    Rule(code="SY422", name="misspelt-tool", check=_misspelt_tool),
    # An invalid path is not checked.
    Rule(
        code="SY423",
        name="path-that-never-matches",
        check=_path_that_never_matches,
        needs=frozenset({"SY401"}),
    ),
)
