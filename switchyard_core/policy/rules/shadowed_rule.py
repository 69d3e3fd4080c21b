"""An earlier rule decides every call that this rule is about.

## What it finds

A rule of `[mutation_rules]` all of whose names are names of one earlier rule that has no
conditions: in its own rule set, or in a rule set that every route which uses it tries before.

## Why it matters

The first rule that applies decides, so this one never does. The usual cause is a general rule
above a special one, or `mutation_rules = ["coding_agents", "own"]` where `own` was meant to
overrule the pack.

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
rules = [
  { label = "file_edit", match = ["cms_*"] },
  { label = "read_only", match = ["cms_preview"] },
]
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
rules = [
  { label = "read_only", match = ["cms_preview"] },
  { label = "file_edit", match = ["cms_*"] },
]
```

## Options

None.

## Exceptions

Only names are compared: rules whose conditions exclude each other are not found. Rules of packs
are not reported, since own rules are meant to come before them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from switchyard_core.errors import Finding, Severity
from switchyard_core.policy.model import Policy
from switchyard_core.policy.rules.base import RULE_SET_ERRORS, Rule
from switchyard_core.policy.rules.ordering import shadowed
from switchyard_core.policy.secrets import shown

__all__ = ["ShadowedRule"]


class ShadowedRule(Rule):
    """An earlier rule decides every call that this rule is about."""

    code: ClassVar[str] = "SY421"
    name: ClassVar[str] = "shadowed-rule"
    since: ClassVar[str] = "0.1.0"
    status: ClassVar[str] = "stable"
    severity: ClassVar[Severity] = "warning"
    needs: ClassVar[frozenset[str]] = RULE_SET_ERRORS

    def check(self, policy: Policy) -> Iterator[Finding]:
        """Yield the findings of one policy."""
        for (name, index), earlier in shadowed(policy).items():
            note = f"the earlier rule: {shown(earlier.name)} of {shown(earlier.rule_set)}"
            if earlier.rule_set == name:
                place = ("mutation_rules", name, "rules", earlier.place)
                note += f", at {policy.document.where(place)}"
            yield policy.finding(
                self.code,
                "an earlier rule decides every call that this rule is about",
                ("mutation_rules", name, "rules", index),
                notes=(note,),
                fix="move this rule before the earlier one, or remove it",
            )
