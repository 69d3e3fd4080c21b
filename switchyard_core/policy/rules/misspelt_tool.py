"""No known agent has this tool, and one has a tool of nearly this name.

## What it finds

A whole name in `match` that no pack knows and that differs in a letter or two from one that a
pack knows.

## Why it matters

A misspelt name matches no tool of any known agent, so the rule silently does nothing for it.

## Example

```toml
schema_version = 1

[llm_clients.provider]
format = "openai_chat"
base_url = "https://example.com/v1"
api_key_env = "OPENAI_API_KEY"

[targets.planner]
id = "provider/capable-model"
llm_client = "provider"

[targets.executor]
id = "provider/efficient-model"
llm_client = "provider"

[routes.coding]
id = "switchyard/coding"
type = "plan_execute"
capable_target = "planner"
efficient_target = "executor"
mutation_rules = ["own"]

[mutation_rules.own]
extends = ["coding_agents"]

[[mutation_rules.own.rules]]
label = "file_edit"
match = ["apply_pach"]
```

## Use instead

```toml
schema_version = 1

[llm_clients.provider]
format = "openai_chat"
base_url = "https://example.com/v1"
api_key_env = "OPENAI_API_KEY"

[targets.planner]
id = "provider/capable-model"
llm_client = "provider"

[targets.executor]
id = "provider/efficient-model"
llm_client = "provider"

[routes.coding]
id = "switchyard/coding"
type = "plan_execute"
capable_target = "planner"
efficient_target = "executor"
mutation_rules = ["own"]

[mutation_rules.own]
extends = ["coding_agents"]

[[mutation_rules.own.rules]]
label = "file_edit"
match = ["apply_patch"]
where = [{ path = "$.arguments.force", equals = true }]
```

## Options

None.

## Exceptions

Names that are like nothing known are taken for tools of your own. Globs and `re:` patterns are
not compared. For a tool of your own with a name so near, suppress the finding with a reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from switchyard_core.errors import Finding, Severity
from switchyard_core.policy.model import Policy
from switchyard_core.policy.rules.base import Rule
from switchyard_core.policy.rules.known_tools import KnownTools
from switchyard_core.policy.rules.reading import own_rules
from switchyard_core.policy.secrets import shown

__all__ = ["MisspeltTool"]


class MisspeltTool(Rule):
    """No known agent has this tool, and one has a tool of nearly this name."""

    code: ClassVar[str] = "SY422"
    name: ClassVar[str] = "misspelt-tool"
    since: ClassVar[str] = "0.1.0"
    status: ClassVar[str] = "stable"
    severity: ClassVar[Severity] = "warning"

    def check(self, policy: Policy) -> Iterator[Finding]:
        """Yield the findings of one policy."""
        known = KnownTools(policy)
        for name, index, rule in own_rules(policy):
            for place, entry in enumerate(rule.match):
                meant = known.meant_by(entry)
                if meant is not None:
                    yield policy.finding(
                        self.code,
                        f"no known agent has a tool `{shown(entry)}`",
                        ("mutation_rules", name, "rules", index, "match", place),
                        fix=f"did you mean `{meant}`?",
                    )
