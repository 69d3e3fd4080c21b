"""Lint rules: warnings about a policy that works but may not do what its author meant."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable

from switchyard_core.declarations import LintRule
from switchyard_core.errors import Finding
from switchyard_core.policy.lint import mutation, shadows, tables
from switchyard_core.policy.lint.base import Rule
from switchyard_core.policy.lint.suppressions import without_suppressed
from switchyard_core.policy.models import Policy
from switchyard_core.policy.secrets import one_line

__all__ = ["RULES", "Rule", "lint"]

#: Every lint rule of switchyard, by code.
RULES: tuple[Rule, ...] = tuple(
    sorted((*tables.RULES, *mutation.RULES, *shadows.RULES), key=lambda rule: rule.code)
)

_LOG = logging.getLogger(__name__)

_OURS = "report this to the authors of switchyard"
_THEIRS = "report this to the author of the plugin"


def lint(
    policy: Policy,
    plugin_rules: Iterable[LintRule],
    problems: Collection[Finding],
    rules: Iterable[Rule] = RULES,
) -> list[Finding]:
    """Return the warnings of the lint rules that no comment of the policy suppresses.

    A policy with errors has only its resolved parts; then the rules whose answer could depend
    on the other parts, and the rules of plugins, are left out.
    """
    codes = {problem.code for problem in problems}
    own, theirs = tuple(rules), tuple(plugin_rules)
    ran = [rule for rule in own if codes.isdisjoint(rule.needs)]
    names = {rule.name for rule in ran}
    found: list[Finding] = []
    for rule in ran:
        found += _guarded(rule.check, policy, f"lint rule `{rule.name}`", _OURS)
    for other in () if problems else theirs:
        names.add(other.name)
        found += _guarded(other.check, policy, f"lint rule `{other.code}`", _THEIRS)
    return without_suppressed(policy.document, found, (*own, *theirs), names)


def _guarded(
    check: Callable[[Policy], Iterable[Finding]], policy: Policy, name: str, fix: str
) -> list[Finding]:
    """Run a check; an exception becomes one finding."""
    try:
        found = list(check(policy))
    except Exception as error:  # noqa: BLE001 - a rule may raise anything
        _LOG.debug("%s failed", name, exc_info=True)
        message = f"{name} failed: {one_line(error)}"
        return [
            Finding(code="SY901", message=message, file=policy.name, severity="warning", fix=fix)
        ]
    return [finding for finding in found if isinstance(finding, Finding)]
