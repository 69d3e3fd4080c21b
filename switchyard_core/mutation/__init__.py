"""Which tool calls change the workspace: rule sets, packs and the readers of arguments."""

from __future__ import annotations

from switchyard_core.mutation.packs import core_packs
from switchyard_core.mutation.rules import (
    LABELS,
    MutationRules,
    RuleProblem,
    Verdict,
    check_rule_set,
    compile_rules,
)
from switchyard_core.mutation.schema import ConditionModel, RuleModel, RuleSetModel

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
