"""What a lint rule is: a check of one policy, and a page in ``pages/`` that explains it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.resources import files

from switchyard_core.errors import Finding
from switchyard_core.policy.models import Policy

__all__ = ["Rule"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A warning about a policy that works but may not do what its author meant."""

    code: str  # ``SY`` and three digits
    name: str  # named for the bad pattern, in kebab-case; suppressions and its page use it
    #: Yields the findings of one policy; a policy with errors has only its valid parts.
    check: Callable[[Policy], Iterator[Finding]]
    #: Codes of errors with which the rule is not run, since it would mislead.
    needs: frozenset[str] = frozenset()

    @property
    def page(self) -> str:
        """What it finds, why that matters, an example and what to use instead, as Markdown."""
        page = files("switchyard_core.policy.lint") / "pages" / f"{self.name}.md"
        return page.read_text(encoding="utf-8")
