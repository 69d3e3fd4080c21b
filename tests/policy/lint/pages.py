"""The pages of lint rules, and the policies that their examples make."""

from __future__ import annotations

import re
from importlib.resources import files

from switchyard_core.policy.lint import RULES

_FOLDER = files("switchyard_core.policy.lint") / "pages"
#: The policy of the examples: a table of an example replaces the one of that name, or is added.
POLICY = (_FOLDER / "policy.toml").read_text("utf-8")
_SECTION = re.compile(r"^## (.+)\n\n((?:.+\n|\n(?!## ))*)", re.MULTILINE)
_TOML = re.compile(r"^```toml\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def sections(page: str) -> dict[str, str]:
    """The text under each heading of a page."""
    return {heading: text.strip() for heading, text in _SECTION.findall(page)}


def example(name: str, heading: str = "Example") -> str:
    """The whole policy that an example of a rule's page stands for."""
    page = next(rule.page for rule in RULES if rule.name == name)
    (text,) = _TOML.findall(sections(page)[heading])
    tables = {table.partition("\n")[0]: table for table in POLICY.rstrip().split("\n\n")}
    tables |= {table.partition("\n")[0]: table for table in text.rstrip().split("\n\n")}
    return "\n\n".join(tables.values()) + "\n"
