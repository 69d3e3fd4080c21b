"""Writes docs/rules/ from the docstrings of the lint rules, and the copy of docs/errors.md.

The copy is in the package, so that `switchyard rule` has it wherever it is installed. Tests fail
when a page differs.

python scripts/write_rule_pages.py
"""

from __future__ import annotations

from pathlib import Path

from switchyard_core.policy.rules import RULES
from switchyard_core.policy.rules.page import page_of

ROOT = Path(__file__).parents[1]
INDEX = """# Lint rules

Warnings that `switchyard check` gives about a policy that works but may not do what its author
meant. `switchyard rule NAME` prints a page. A comment with a reason suppresses a rule for one
line, at its end or above it:

```toml
[targets.spare] # switchyard: allow unused-target -- the next canary uses it
```

A comment without a reason (SY191), for a rule that there is not (SY192), or that nothing needs
(SY193) is a finding itself. These pages are written from the rules' docstrings by
`python scripts/write_rule_pages.py`.

| code | name | finds |
|---|---|---|
"""


def pages() -> dict[Path, str]:
    """Return the text of every page that this script writes."""
    folder = ROOT / "docs" / "rules"
    found = {folder / f"{rule.name}.md": page_of(rule).markdown() for rule in RULES}
    rows = [f"| {r.code} | [{r.name}]({r.name}.md) | {page_of(r).summary} |\n" for r in RULES]
    found[folder / "README.md"] = INDEX + "".join(rows)
    errors = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    found[ROOT / "switchyard_core" / "cli" / "errors.md"] = errors
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
