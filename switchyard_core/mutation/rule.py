"""A rule with everything in it compiled: names, conditions, paths."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from switchyard_core.conversation import ToolCall
from switchyard_core.jsonio.path import Path, compile_path
from switchyard_core.mutation.labels import Verdict
from switchyard_core.mutation.names import fold_name, pattern_spellings
from switchyard_core.mutation.schema import DEFAULT_PATH, ConditionModel, RuleModel
from switchyard_core.patterns import compile_pattern, name_glob

__all__ = [
    "NO_RULE",
    "CallView",
    "CompiledRule",
    "Condition",
    "compile_rule",
    "is_glob",
]

#: The verdict on a call that no rule decides, without its label.
NO_RULE = Verdict(
    label="", rule_set="", rule="", jsonpath=DEFAULT_PATH, tool="", call_path="", message=0
)


class CallView:
    """A tool call as rules read it; the document is built at most once."""

    __slots__ = ("_document", "arguments", "broken", "call")

    def __init__(self, call: ToolCall) -> None:
        self.call = call
        self.arguments: Any = call.arguments
        #: Whether the arguments are text that is not JSON.
        arguments = self.arguments
        self.broken = isinstance(arguments, dict) and len(arguments) == 1 and "_raw" in arguments
        self._document: dict[str, Any] | None = None

    @property
    def document(self) -> dict[str, Any]:
        """The call as part of the conversation document."""
        if self._document is None:
            self._document = self.call.as_document()
        return self._document

    def values(self, path: Path) -> list[Any]:
        """Return what a path finds in the call's document."""
        head = path.head
        if not head or head[0] != "arguments":
            return path.values(self.document)
        # Most paths are plain members of the arguments and do not need the document.
        value = self.arguments
        for name in head[1:]:
            if not isinstance(value, dict) or name not in value:
                return []
            value = value[name]
        return [value]


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A compiled condition."""

    path: Path  # relative to the tool call
    test: Callable[[list[Any]], bool]  # gets the values that the path found

    @property
    def reads_arguments(self) -> bool:
        """Whether it needs arguments that could be parsed."""
        return self.path.head is None or self.path.head[:1] == ("arguments",)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledRule:
    """One rule, ready to run."""

    index: int  # place in the whole order of rules
    rule_set: str  # name of its rule set
    name: str  # its name or place, for verdicts
    verdict: Verdict  # for its calls, without label and place
    model: RuleModel  # the rule as written; what is needed for every call is copied from it
    label: str | None  # the label of calls, or of an edit that the reader finds
    reader: str | None  # what reads the arguments
    fold: bool  # whether names match in any spelling
    literals: frozenset[str]  # whole names, folded when ``fold``
    patterns: tuple[Callable[[str], bool], ...]  # globs and regular expressions on names
    path: Path | None  # where the names are, ``None`` for the default
    conditions: tuple[Condition, ...]  # must all hold
    target: Path | None  # where the written files are
    command: Path | None  # where the text for the reader is
    reads_arguments: bool  # whether a condition needs arguments that could be parsed
    #: An argument without which it never applies, ``None`` if there is none.
    needs: str | None = None

    @property
    def fixed(self) -> bool:
        """Whether it applies to every call with its name, and always with the same result."""
        return not self.conditions and self.reader is None and self.target is None

    @property
    def uses_id(self) -> bool:
        """Whether a path may look at the id of the call, not at its tool and arguments alone."""
        paths = [self.target, self.command, *(condition.path for condition in self.conditions)]
        return any(p is not None and (not p.head or p.head[0] == "id") for p in paths)

    def applies(self, view: CallView) -> bool:
        """Return whether all conditions hold for a call."""
        # A generator for each rule would cost more than the conditions do.
        for condition in self.conditions:  # noqa: SIM110
            if not condition.test(view.values(condition.path)):
                return False
        return True

    def key(self, name: str) -> str:
        """Return a name in the spelling of :attr:`literals`."""
        return fold_name(name) if self.fold else name.casefold()

    def names(self, name: str) -> bool:
        """Return whether ``match`` has this name; an empty one has every name."""
        if not self.literals and not self.patterns:
            return True
        if self.key(name) in self.literals:
            return True
        spellings = pattern_spellings(name) if self.fold else {name}
        return any(test(spelling) for test in self.patterns for spelling in spellings)


def is_glob(entry: str) -> bool:
    """Return whether an entry of ``match`` is a glob or ``re:`` pattern."""
    return "*" in entry or "?" in entry or "[" in entry or entry.startswith("re:")


def compile_rule(
    model: RuleModel, *, index: int, rule_set: str, place: int, fold: bool
) -> CompiledRule:
    """Compile a rule.

    ``index`` is its place among all rules, ``place`` its place in its rule set; ``fold`` says
    whether names match in any spelling. Raises PathError or PatternError.
    """
    name = model.name or f"rules[{place}]"
    plain = [entry for entry in model.match if not is_glob(entry)]
    conditions = tuple(map(_condition, model.where))
    return CompiledRule(
        index=index,
        rule_set=rule_set,
        name=name,
        verdict=msgspec.structs.replace(NO_RULE, rule_set=rule_set, rule=name, jsonpath=model.path),
        model=model,
        label=model.label,
        reader=model.reader,
        fold=fold,
        literals=frozenset(fold_name(e) if fold else e.casefold() for e in plain),
        patterns=tuple(_name_pattern(entry) for entry in model.match if is_glob(entry)),
        path=None
        if model.path == DEFAULT_PATH and model.document == "conversation"
        else compile_path(model.path),
        conditions=conditions,
        reads_arguments=any(condition.reads_arguments for condition in conditions),
        needs=next(filter(None, map(_needed, model.where, conditions)), None),
        target=compile_path(model.target) if model.target is not None else None,
        command=compile_path(model.command) if model.command is not None else None,
    )


def _needed(model: ConditionModel, condition: Condition) -> str | None:
    """Return the argument without which a condition never holds, if there is one."""
    head = condition.path.head
    lenient = model.not_ or model.exists is False or model.not_in is not None
    if lenient or head is None or len(head) < 2:
        return None
    return head[1] if head[0] == "arguments" else None


def _name_pattern(entry: str) -> Callable[[str], bool]:
    if entry.startswith("re:"):
        return compile_pattern(entry[3:], ignore_case=True, dot_all=True)
    return name_glob(entry)


def _condition(model: ConditionModel) -> Condition:
    test = _condition_test(model)
    inverse = (lambda values: not test(values)) if model.not_ else test
    return Condition(path=compile_path(model.path), test=inverse)


def _condition_test(model: ConditionModel) -> Callable[[list[Any]], bool]:
    if model.exists is not None:
        wanted = model.exists
        return lambda values: any(value is not None for value in values) is wanted
    if model.matches is not None:
        found = compile_pattern(model.matches, dot_all=True)
        return lambda values: any(isinstance(v, str) and found(v) for v in values)
    if model.not_in is not None:
        refused = list(map(_folded, model.not_in))
        return lambda values: not any(_among(value, refused) for value in values)
    options = list(map(_folded, [model.equals] if model.in_ is None else model.in_))
    return lambda values: any(_among(value, options) for value in values)


def _among(value: Any, options: list[Any]) -> bool:
    """Compare as JSON: a boolean is never equal to a number."""
    value = _folded(value)
    return any(
        bool(value == option) and isinstance(value, bool) is isinstance(option, bool)
        for option in options
    )


def _folded(value: Any) -> Any:
    """Return text without case and blanks around it; models write ``VIEW`` and ``"view "``."""
    return value.strip().casefold() if isinstance(value, str) else value
