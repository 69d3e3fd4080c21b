"""Mutation rules: which tool calls change files, decided by the policy's rule sets.

The rules of all sets form one order; the first that matches a call decides its label. Names are
looked up in one dictionary whatever the number of rules, and a shell command is read once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from glob import escape
from typing import Any

from switchyard_core.conversation import Conversation, ToolCall
from switchyard_core.jsonio.path import Path
from switchyard_core.jsonio.path_steps import Match
from switchyard_core.mutation.budget import TOO_MUCH, Budget
from switchyard_core.mutation.check import check_rule_set
from switchyard_core.mutation.compiled import CallView, CompiledRule, compile_rule, member_of
from switchyard_core.mutation.labels import LABELS, Reading, strongest
from switchyard_core.mutation.memory import Memo, Outcomes, brief
from switchyard_core.mutation.names import NameFolding, fold_name
from switchyard_core.mutation.outcome import Outcome, outcome_of, verdict_of
from switchyard_core.mutation.paths import PathClasses
from switchyard_core.mutation.places import conversation_places, owner_of, wire_location
from switchyard_core.mutation.plans import Plan, plan_of
from switchyard_core.mutation.readers import (
    Cost,
    ReaderContext,
    command_cost,
    only_command,
    plain_arguments,
    read,
    reads_only,
)
from switchyard_core.mutation.schema import RuleSetModel
from switchyard_core.mutation.tables import load_table
from switchyard_core.mutation.verdict import RuleProblem, Verdict

__all__ = [
    "LABELS",
    "MutationRules",
    "RuleProblem",
    "Verdict",
    "check_rule_set",
    "compile_rules",
]

#: Distinct tool names and shell commands that one rule set remembers.
_MEMO = 4096
#: Wrappers inside wrappers that are followed.
_DEPTH = 5
#: Steps that it takes to find the rules on a call inside a wrapper.
_INNER = 12


def compile_rules(
    names: Sequence[str],
    available: Mapping[str, RuleSetModel],
    *,
    unmatched: str | None = None,
    workspace: Sequence[str] = (),
) -> MutationRules:
    """Compile rule sets into one ordered list of rules.

    Args:
        names: Rule sets in the order in which they are tried.
        available: Every pack and rule set by name; :func:`check_rule_set` found nothing in them.
        unmatched: Label of a call that no rule decides; ``None`` takes the first set's own.
        workspace: Directories that count as workspace although they lie under a scratch path.

    Raises:
        KeyError: A name is not available.
    """
    order = _flattened(names, available)
    rules: list[CompiledRule] = []
    for name in order:
        model = available[name]
        for place, rule in enumerate(model.rules):
            rules.append(
                compile_rule(rule, index=len(rules), rule_set=name, place=place, fold=model.fold)
            )
    sets = [available[name] for name in order]
    declared = [model.unmatched for model in sets if model.unmatched is not None]
    return MutationRules(
        rules,
        classes=PathClasses(
            scratch=tuple(glob for model in sets for glob in model.scratch_paths),
            artifact=tuple(glob for model in sets for glob in model.artifact_paths),
            plan=tuple(glob for model in sets for glob in model.plan_paths),
            # Directories, not globs: a name may hold brackets.
            workspace=tuple(escape(path.rstrip("/") or "/") for path in workspace),
        ),
        unmatched=unmatched or (declared[0] if declared else "read_only"),
    )


def _flattened(names: Sequence[str], available: Mapping[str, RuleSetModel]) -> list[str]:
    order: list[str] = []

    def add(name: str, trail: tuple[str, ...]) -> None:
        if name in order or name in trail:
            return
        order.append(name)
        for parent in available[name].extends:
            add(parent, (*trail, name))

    for name in names:
        add(name, ())
    return order


class MutationRules:
    """A compiled list of rules; safe to share between threads.

    Args:
        rules: In the order in which they are tried.
        classes: What written paths mean.
        unmatched: Label of a call that no rule decides.
    """

    def __init__(
        self, rules: Sequence[CompiledRule], *, classes: PathClasses, unmatched: str
    ) -> None:
        self._rules = tuple(rules)
        self._classes = classes
        self._unmatched = unmatched
        self._by_fold: dict[str, list[int]] = {}
        self._by_case: dict[str, list[int]] = {}
        self._patterned: list[CompiledRule] = []
        self._custom = [rule for rule in self._rules if rule.path is not None]
        for rule in self._rules:
            if rule.path is None:
                self._index(rule)
        table = load_table("names")
        self._folding = NameFolding(
            servers=frozenset(table["servers"]), verbs=frozenset(table["verbs"])
        )
        self._names: Memo[str, tuple[int, ...]] = Memo(_MEMO)
        self._shell: Memo[tuple[str, str | bytes], Cost] = Memo(_MEMO)
        self._plans: Memo[tuple[str, str | None, str | None, str], Plan] = Memo(_MEMO)
        self._outcomes = Outcomes()

    def _index(self, rule: CompiledRule) -> None:
        table = self._by_fold if rule.fold else self._by_case
        for literal in rule.literals:
            table.setdefault(literal, []).append(rule.index)
        if rule.patterns or not rule.literals:
            self._patterned.append(rule)

    def label(self, call: ToolCall) -> Verdict:
        """Return the verdict on one call, from the rules on its name.

        Rules with a ``path`` of their own need the whole conversation: see :meth:`scan`.
        """
        return self._known(call)

    def scan(
        self,
        conversation: Conversation,
        *,
        body: Callable[[], Any] | None = None,
        wire_format: str | None = None,
    ) -> tuple[Verdict, ...]:
        """Return one verdict per call of ``conversation.calls``; see :meth:`iterate`."""
        return tuple(self.iterate(conversation, body=body, wire_format=wire_format))

    def iterate(
        self,
        conversation: Conversation,
        *,
        body: Callable[[], Any] | None = None,
        wire_format: str | None = None,
    ) -> Iterator[Verdict]:
        """Yield one verdict per call of ``conversation.calls``, in order, as they are asked for.

        Args:
            conversation: The history; its document is built only for rules with their own path.
            body: Gives the raw body tree for rules with ``document = "body"``; called at most
                once, and only when there are such rules for the wire format.
            wire_format: Wire format of the body.
        """
        calls = conversation.calls
        if not self._custom or not calls:
            yield from map(self._known, calls)
            return
        found: list[set[int]] = [set() for _ in calls]
        self._find_custom(conversation, body, wire_format, found)
        for call, extra in zip(calls, found, strict=True):
            if extra:
                indices = sorted({*self._rules_for(call), *extra})
                yield verdict_of(call, self._outcome(CallView(call), indices))
            else:
                yield self._known(call)

    def _known(self, call: ToolCall) -> Verdict:
        """Return the verdict by name and arguments, which are read once."""
        key = (call.name, call.namespace, call.server, call.kind)
        plan = self._plans.get(key) or self._plans.keep(key, self._plan(call))
        outcome = plan.outcome or self._outcomes.get(call, plan, self._read, uses_id=plan.uses_id)
        return verdict_of(call, outcome)

    def _plan(self, call: ToolCall) -> Plan:
        """Return what all calls of a tool have in common."""
        indices = self._rules_for(call)
        rules = [self._rules[index] for index in indices]
        fixed = not rules or rules[0].fixed
        return plan_of(rules, self._outcome(CallView(call), indices) if fixed else None)

    def _read(self, plan: Plan, call: ToolCall) -> Outcome:
        """Read a call that was not seen yet."""
        arguments = plain_arguments(call)
        if arguments is not None and "_raw" not in arguments:
            if plan.shell is not None:
                command = only_command(arguments)
                dialect = plan.shell.model.dialect or "auto"
                if plan.reads is not None and reads_only(command, dialect):
                    return plan.reads
                if isinstance(command, str):
                    reading, _steps = self._command(command, dialect, looked=dialect == "bash")
                    return outcome_of(plan.shell, _relabelled(reading, plan.shell.model.label))
            elif (rule := plan.settled(arguments)) is not None:
                return outcome_of(rule, self._settled(rule, arguments))
        return self._outcome(CallView(call), plan.indices)

    def _find_custom(
        self,
        conversation: Conversation,
        body: Callable[[], Any] | None,
        wire_format: str | None,
        found: list[set[int]],
    ) -> None:
        tree: Any = None
        for rule in self._custom:
            if rule.model.document == "conversation":
                places = conversation_places(conversation)
                document: Any = conversation.document()
            elif body is not None and rule.model.format == wire_format:
                places = {wire_location(call.path): n for n, call in enumerate(conversation.calls)}
                tree = body() if tree is None else tree
                document = tree
            else:
                continue
            longest = max(map(len, places), default=0)
            for location, value in _matches(rule.path, document):
                number = owner_of(location, places, longest)
                if number is not None and self._named(rule, value):
                    found[number].add(rule.index)

    def _named(self, rule: CompiledRule, value: Any) -> bool:
        if not isinstance(value, str):
            return not rule.model.match
        candidates = self._folding.candidates(value) if rule.fold else iter((value,))
        return any(rule.names(candidate) for candidate in candidates)

    def _rules_for(self, call: ToolCall) -> tuple[int, ...]:
        """Return the rules that name the call's tool, in order."""
        qualifier = call.server or call.namespace or ""
        key = f"{qualifier}\n{call.name}"
        known = self._names.get(key)
        if known is None:
            known = self._names.keep(key, self._lookup(call.name, qualifier))
        return known

    def _lookup(self, name: str, qualifier: str) -> tuple[int, ...]:
        qualified = [f"{qualifier}__{name}"] if qualifier else []
        exact = [*qualified, name]
        folded = [*qualified, *dict.fromkeys(self._folding.candidates(name))]
        indices: set[int] = set()
        for candidate in exact:
            indices.update(self._by_case.get(candidate.casefold(), ()))
        for candidate in folded:
            # The fullest spelling that any rule knows is the tool: a rule on `todo_write`
            # must not lose to one on `write`.
            if hits := self._by_fold.get(fold_name(candidate)):
                indices.update(hits)
                break
        for rule in self._patterned:
            spellings = folded if rule.fold else exact
            if any(rule.names(candidate) for candidate in spellings):
                indices.add(rule.index)
        return tuple(sorted(indices))

    def _outcome(
        self,
        view: CallView,
        indices: Sequence[int],
        *,
        depth: int = 0,
        budget: Budget | None = None,
    ) -> Outcome:
        budget = budget or Budget()
        unreadable: CompiledRule | None = None
        broken = view.broken
        given = view.arguments if isinstance(view.arguments, Mapping) else {}
        for index in indices:
            rule = self._rules[index]
            if broken and rule.reads_arguments:
                unreadable = unreadable or rule
                continue
            # An edit tool has a rule for each name that its path may have: most are not there.
            if rule.needs is not None and rule.needs not in given:
                continue
            if rule.applies(view):
                return outcome_of(rule, self._reading(view, rule, depth, budget))
        if unreadable is not None:
            reading = Reading(label="unknown", detail="the arguments are no JSON")
            return outcome_of(unreadable, reading)
        return outcome_of(None, Reading(label=self._unmatched))

    def _reading(self, view: CallView, rule: CompiledRule, depth: int, budget: Budget) -> Reading:
        if rule.model.reader is not None:
            values = [view.arguments]
            if rule.command is not None:
                values = view.values(rule.command)
            context = ReaderContext(
                classes=self._classes,
                dialect=rule.model.dialect or "auto",
                tool=view.call.name,
                broken=view.broken,
                read_command=self._command,
                budget=budget,
                recurse=lambda name, arguments, server=None: self._inner(
                    name, arguments, server, depth + 1, budget
                ),
            )
            # A path may find nothing; the reader still says what that means.
            readings = [read(rule.model.reader, value, context) for value in values or [None]]
            return _relabelled(strongest(readings), rule.model.label)
        if rule.target is not None:
            return self._target(rule, view.values(rule.target))
        return Reading(label=rule.model.label or "file_edit")

    def _settled(self, rule: CompiledRule, arguments: Mapping[str, Any]) -> Reading:
        """Return what a rule says whose target, if it has one, is the value of an argument."""
        name = member_of(rule.target) if rule.target is not None else None
        if name is None:
            return Reading(label=rule.model.label or "file_edit")
        return self._target(rule, [arguments[name]] if name in arguments else [])

    def _target(self, rule: CompiledRule, values: list[Any]) -> Reading:
        label = rule.model.label or "file_edit"
        if len(values) == 1 and isinstance(values[0], str) and values[0].strip():
            path = values[0]
            return _relabelled(
                self._classes.target_label(path, scratch=rule.model.scratch), rule.model.label
            )
        paths = [path for value in values for path in _paths(value)]
        if not paths:
            return Reading(label=label, detail="names no file")
        readings = [self._classes.target_label(path, scratch=rule.model.scratch) for path in paths]
        return _relabelled(strongest(readings), label)

    def _inner(
        self, name: str, arguments: Any, server: str | None, depth: int, budget: Budget
    ) -> Reading:
        """Label a call that a wrapper holds."""
        if depth > _DEPTH:
            return Reading(label="unknown", word=name, detail="wrapped too deeply")
        if not budget.spend(_INNER):
            return Reading(label="unknown", word=name, detail=TOO_MUCH)
        source = arguments if isinstance(arguments, Mapping | str) else {"input": arguments}
        kind: Any = (
            "custom"
            if isinstance(source, str) and not source.lstrip().startswith("{")
            else "function"
        )
        call = ToolCall(id="", name=name, source=source, kind=kind, server=server)
        outcome = self._outcome(CallView(call), self._rules_for(call), depth=depth, budget=budget)
        detail = f"{name}: {outcome.detail}" if outcome.detail else name
        return Reading(label=outcome.label, word=outcome.word or name, detail=detail)

    def _command(self, command: str, dialect: str, *, looked: bool = False) -> Cost:
        """Return the reading of a command and what it took, computed once."""
        key = (dialect, brief(command))
        found = self._shell.get(key)
        if found is not None:
            return found
        cost = command_cost(command, self._classes, dialect, looked=looked)
        return self._shell.keep(key, cost)


def _relabelled(reading: Reading, label: str | None) -> Reading:
    """Return a reading in which an edit is called what the rule calls it."""
    if label is None or reading.label != "file_edit":
        return reading
    return Reading(label=label, word=reading.word, detail=reading.detail)


def _paths(value: Any) -> list[str]:
    """Return the paths in a target's value: a text, a list, or objects that hold a path."""
    found: list[str] = []
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, list):
            waiting += reversed(item)
        elif isinstance(item, str) and item.strip():
            found.append(item)
    return found


def _matches(path: Path | None, document: Any) -> Iterable[Match]:
    return path.matches(document) if path is not None else ()
