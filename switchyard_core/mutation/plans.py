"""What all calls of one tool have in common, worked out once.

Most calls of an edit tool differ in the file alone: which rule decides depends only on which
arguments are there. The rules say that once for each such set of arguments.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from switchyard_core.mutation.compiled import CompiledRule, Condition, member_of
from switchyard_core.mutation.labels import READ_ONLY
from switchyard_core.mutation.memory import Memo
from switchyard_core.mutation.outcome import Outcome, outcome_of

__all__ = ["Plan", "plan_of"]

#: Sets of arguments that one tool is remembered with.
_SHAPES = 64


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Plan:
    """What all calls of one tool have in common.

    Args:
        rules: The rules on its name, in order.
        indices: Their places in the whole order of rules.
        outcome: The outcome, when the name alone decides.
        shell: The rule that has a shell read the whole arguments, when that is the first one.
        reads: The outcome of a command that only reads, when there is such a rule.
        uses_id: Whether a rule may tell calls apart by their ids.
        members: Arguments that conditions are about.
    """

    rules: tuple[CompiledRule, ...]
    indices: tuple[int, ...]
    outcome: Outcome | None
    shell: CompiledRule | None
    reads: Outcome | None
    uses_id: bool
    members: frozenset[str]
    _shapes: Memo[tuple[str, ...], tuple[CompiledRule | None]] = field(
        default_factory=lambda: Memo(_SHAPES)
    )

    def settled(self, arguments: Mapping[str, Any]) -> CompiledRule | None:
        """Return the rule that decides by the names of the arguments alone, if one does.

        Its target, if it has one, is the value of an argument.

        Args:
            arguments: Of a call that gives a JSON object.
        """
        shape = tuple([name for name in arguments if name in self.members])
        found = self._shapes.get(shape)
        return (found or self._shapes.keep(shape, (self._decide(shape),)))[0]

    def _decide(self, shape: tuple[str, ...]) -> CompiledRule | None:
        for rule in self.rules:
            answers = [_answer(condition, shape) for condition in rule.conditions]
            if False in answers:
                continue
            plain = rule.target is None or member_of(rule.target) is not None
            settled = None not in answers and rule.model.reader is None and plain
            return rule if settled else None
        return None


def plan_of(rules: Sequence[CompiledRule], outcome: Outcome | None) -> Plan:
    """Return the plan of a tool.

    Args:
        rules: The rules on its name, in order.
        outcome: As for :class:`Plan`.
    """
    first = rules[0] if rules else None
    shell = first if first is not None and first.whole_command else None
    return Plan(
        rules=tuple(rules),
        indices=tuple(rule.index for rule in rules),
        outcome=outcome,
        shell=shell,
        reads=outcome_of(shell, READ_ONLY) if shell is not None else None,
        uses_id=any(rule.uses_id for rule in rules),
        members=frozenset(_members(rules)),
    )


def _members(rules: Iterable[CompiledRule]) -> Iterable[str]:
    for rule in rules:
        for condition in rule.conditions:
            if condition.member is not None:
                yield condition.member


def _answer(condition: Condition, shape: tuple[str, ...]) -> bool | None:
    """Return what a condition says of any call with these arguments, ``None`` when it depends."""
    if condition.member is None:
        return None
    if condition.member not in shape:
        return condition.test([])
    # Whether there is a value does not depend on what it is.
    return condition.test([None]) if condition.existence else None
