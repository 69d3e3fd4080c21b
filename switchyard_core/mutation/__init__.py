"""Which tool calls and texts change the workspace: rule sets, packs and the readers."""

from __future__ import annotations

from switchyard_core.mutation.check import RuleProblem, check_rule_set
from switchyard_core.mutation.labels import LABELS, Verdict
from switchyard_core.mutation.roots import Root
from switchyard_core.mutation.rules import MutationRules, compile_rules
from switchyard_core.mutation.schema import ConditionModel, RuleModel, RuleSetModel, TextRuleModel
from switchyard_core.mutation.tables import core_packs
from switchyard_core.mutation.text_rules import TextHistory

__all__ = [
    "LABELS",
    "ConditionModel",
    "MutationRules",
    "Root",
    "RuleModel",
    "RuleProblem",
    "RuleSetModel",
    "TextHistory",
    "TextRuleModel",
    "Verdict",
    "check_rule_set",
    "compile_rules",
    "core_packs",
]
