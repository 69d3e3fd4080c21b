"""Which tool calls change the workspace: rule sets, packs and the readers of arguments."""

from __future__ import annotations

from switchyard_core.mutation.check import RuleProblem, check_rule_set
from switchyard_core.mutation.labels import LABELS, Verdict
from switchyard_core.mutation.rules import MutationRules, compile_rules
from switchyard_core.mutation.schema import ConditionModel, RuleModel, RuleSetModel
from switchyard_core.mutation.tables import core_packs

__all__ = [
    "LABELS",
    "ConditionModel",
    "MutationRules",
    "RuleModel",
    "RuleProblem",
    "RuleSetModel",
    "Verdict",
    "check_rule_set",
    "compile_rules",
    "core_packs",
]
