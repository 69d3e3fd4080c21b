"""Copies the pages of lint rules to docs/rules/, with an index, and docs/errors.md to the package.

`switchyard rule` reads the pages in the package, wherever it is installed. Tests fail when a copy
differs.

python scripts/write_rule_pages.py
"""

from __future__ import annotations

from pathlib import Path

from switchyard_core.policy.lint import RULES

ROOT = Path(__file__).parents[1]
CORE = ROOT / "switchyard_core"
INDEX = """# Lint rules

Warnings that `switchyard check` gives about a policy that works but may not do what its author
meant. `switchyard rule NAME` prints a page. A comment with a reason suppresses a rule for one
line, at its end or above it:

```toml
[targets.spare] # switchyard: allow unused-target -- the next canary uses it
```

A comment without a reason (SY191), for a rule that there is not (SY192), or that nothing needs
(SY193) is a finding itself.

## The policy of the examples

A table of an example replaces the table of the same name in this policy, or is added to it.

```toml
{policy}```

## Rules

| code | name | finds |
|---|---|---|
"""


def pages() -> dict[Path, str]:
    """Return the text of every page that this script writes."""
    folder = ROOT / "docs" / "rules"
    found = {folder / f"{rule.name}.md": rule.page for rule in RULES}
    policy = CORE.joinpath("policy", "lint", "pages", "policy.toml").read_text(encoding="utf-8")
    index = INDEX.replace("{policy}", policy)
    for rule in RULES:
        summary = rule.page.split("\n\n")[1]
        index += f"| {rule.code} | [{rule.name}]({rule.name}.md) | {summary} |\n"
    found[folder / "README.md"] = index
    errors = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    found[CORE / "cli" / "errors.md"] = errors
    return found


def main() -> None:
    """Write the pages, and remove those of rules that are gone."""
    found = pages()
    (ROOT / "docs" / "rules").mkdir(exist_ok=True)
    for path in (ROOT / "docs" / "rules").glob("*.md"):
        if path not in found:
            path.unlink()
    for path, text in found.items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
