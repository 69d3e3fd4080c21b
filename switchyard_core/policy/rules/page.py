"""The page of a lint rule, read from the docstring of its module."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from switchyard_core.policy.rules.base import Rule

__all__ = ["HEADINGS", "RulePage", "page_of"]

#: What every page explains, in this order.
HEADINGS = (
    "What it finds",
    "Why it matters",
    "Example",
    "Use instead",
    "Options",
    "Exceptions",
)
_HEADING = re.compile(r"^## (.+)\n+", re.MULTILINE)
_TOML = re.compile(r"^```toml\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class RulePage:
    """A lint rule explained.

    Args:
        rule: The rule.
        summary: One sentence.
        sections: Markdown by heading, in order.
    """

    rule: Rule
    summary: str
    sections: Mapping[str, str]

    @property
    def example(self) -> str:
        """A policy in which the rule finds something, and no other rule does."""
        return self._toml("Example")

    @property
    def instead(self) -> str:
        """The same policy without the mistake."""
        return self._toml("Use instead")

    def _toml(self, heading: str) -> str:
        found = _TOML.search(self.sections[heading])
        return found[1] if found else ""

    def markdown(self) -> str:
        """Return the whole page."""
        rule = self.rule
        parts = [f"# {rule.code} {rule.name} ({rule.severity})", self.summary]
        parts += [
            f"## {heading}\n\n{_marked(heading, text)}" for heading, text in self.sections.items()
        ]
        parts.append(
            f"## Suppress it\n\n`# switchyard: allow {rule.name} -- <reason>`, at the end of the "
            f"line or alone above it.\n\nSince {rule.since}, {rule.status}."
        )
        return "\n\n".join(parts) + "\n"


def _marked(heading: str, text: str) -> str:
    """Say in the policy itself that it has the mistake."""
    if heading != "Example":
        return text
    return text.replace("```toml\n", "```toml\n# a policy with this finding\n", 1)


def page_of(rule: Rule) -> RulePage:
    """Return the page of a lint rule."""
    module = sys.modules[type(rule).__module__]
    summary, *parts = _HEADING.split(inspect.cleandoc(module.__doc__ or ""))
    sections = {
        heading: text.strip() for heading, text in zip(parts[::2], parts[1::2], strict=True)
    }
    return RulePage(rule=rule, summary=summary.strip(), sections=sections)
