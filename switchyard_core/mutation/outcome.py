"""What rules say about a call, wherever in a history it stands."""

from __future__ import annotations

import msgspec

from switchyard_core.conversation import ToolCall
from switchyard_core.mutation.compiled import CompiledRule
from switchyard_core.mutation.labels import Reading
from switchyard_core.mutation.schema import DEFAULT_PATH
from switchyard_core.mutation.verdict import Verdict

__all__ = ["Outcome", "outcome_of", "verdict_of"]


class Outcome(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a verdict says that does not depend on where the call stands; see :class:`Verdict`."""

    label: str
    rule_set: str
    rule: str
    jsonpath: str
    word: str
    detail: str


def outcome_of(rule: CompiledRule | None, reading: Reading) -> Outcome:
    """Return what a rule and its reading say; without a rule, that no rule decided."""
    return Outcome(
        label=reading.label,
        rule_set=rule.rule_set if rule else "",
        rule=rule.name if rule else "",
        jsonpath=rule.model.path if rule else DEFAULT_PATH,
        word=reading.word,
        detail=reading.detail,
    )


def verdict_of(call: ToolCall, outcome: Outcome) -> Verdict:
    """Return the outcome of one call."""
    return Verdict(
        label=outcome.label,
        rule_set=outcome.rule_set,
        rule=outcome.rule,
        jsonpath=outcome.jsonpath,
        tool=call.name,
        call_path=call.path,
        message=call.message,
        word=outcome.word,
        detail=outcome.detail,
    )
