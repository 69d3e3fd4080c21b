"""What a lint rule is: facts about it as class attributes, and a check of one policy."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import ClassVar

from switchyard_core.errors import Finding, Severity
from switchyard_core.policy.model import Policy

__all__ = ["RULE_SET_ERRORS", "Rule"]

#: Errors after which not every rule set or route is known.
RULE_SET_ERRORS = frozenset(
    {"SY104", "SY105", "SY106", "SY107", "SY301", "SY508"}
    | {f"SY{number}" for number in range(401, 417)}
)


class Rule(ABC):
    """A warning about a policy that works but may not do what its author meant.

    The docstring of its module is its page. A policy with errors has only the parts that could be
    resolved; a rule whose answer could depend on the others says so with ``needs``.
    """

    #: ``SY`` and three digits.
    code: ClassVar[str]
    #: Named for the bad pattern, in kebab-case; suppressions use it.
    name: ClassVar[str]
    #: Version that brought it.
    since: ClassVar[str]
    #: ``stable``, ``preview`` or ``deprecated``.
    status: ClassVar[str]
    severity: ClassVar[Severity]
    #: Codes of errors after which its answer would mislead, so that it is not run.
    needs: ClassVar[frozenset[str]] = frozenset()

    @abstractmethod
    def check(self, policy: Policy) -> Iterator[Finding]:
        """Yield the findings of one policy, made by ``policy.finding``."""
