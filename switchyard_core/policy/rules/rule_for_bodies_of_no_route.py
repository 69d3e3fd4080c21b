"""A rule is for bodies of a wire format that no route speaks.

## What it finds

A rule with `document = "body"` whose `format` is the wire format of no route.

## Why it matters

It can never match.

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
document = "body"
format = "openai_responses"
path = "$.input[*].name"
match = ["cms_publish"]
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
document = "body"
format = "openai_chat"
path = "$.messages[*].tool_calls[*].function.name"
match = ["cms_publish"]
```

## Options

None.

## Exceptions

Nothing is said while the wire format of any route is unknown.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from switchyard_core.errors import Finding, Severity
from switchyard_core.policy.model import Policy
from switchyard_core.policy.rules.base import Rule
from switchyard_core.policy.rules.reading import tables

__all__ = ["RuleForBodiesOfNoRoute"]


class RuleForBodiesOfNoRoute(Rule):
    """A rule is for bodies of a wire format that no route speaks."""

    code: ClassVar[str] = "SY420"
    name: ClassVar[str] = "rule-for-bodies-of-no-route"
    since: ClassVar[str] = "0.1.0"
    status: ClassVar[str] = "stable"
    severity: ClassVar[Severity] = "warning"
    needs: ClassVar[frozenset[str]] = frozenset({"SY200", "SY201", "SY202", "SY301", "SY303"})

    def check(self, policy: Policy) -> Iterator[Finding]:
        """Yield the findings of one policy."""
        spoken = {route.wire_format for route in policy.routes.values()} - {None}
        if not spoken:
            return
        for name in tables(policy, "mutation_rules"):
            rules = policy.rule_sets[name].rules if name in policy.rule_sets else []
            for index, rule in enumerate(rules):
                if rule.document == "body" and rule.format not in spoken:
                    yield policy.finding(
                        self.code,
                        f"this rule is for bodies of {rule.format}, which no route speaks",
                        ("mutation_rules", name, "rules", index, "format"),
                        notes=(f"wire formats of routes: {', '.join(sorted(map(str, spoken)))}",),
                        fix="change `format`, or remove the rule",
                    )
