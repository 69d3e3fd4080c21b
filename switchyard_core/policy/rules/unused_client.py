"""No target uses the client.

## What it finds

A table `[llm_clients.<name>]` that no target names and that is not the `fallback_client`.

## Why it matters

It may be left over, or a target goes to another provider than its author thinks.

## Example

```toml
schema_version = 1

[llm_clients.provider]
format = "openai_chat"
base_url = "https://example.com/v1"
api_key_env = "OPENAI_API_KEY"

[llm_clients.spare]
format = "openai_chat"
base_url = "https://spare.example.com/v1"

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
```

## Options

None.

## Exceptions

Nothing is said while a target names an unknown client: the misspelt name may mean this one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from switchyard_core.errors import Finding, Severity
from switchyard_core.policy.model import Policy
from switchyard_core.policy.rules.base import Rule
from switchyard_core.policy.rules.reading import tables, text_at
from switchyard_core.policy.secrets import shown

__all__ = ["UnusedClient"]


class UnusedClient(Rule):
    """No target uses the client."""

    code: ClassVar[str] = "SY221"
    name: ClassVar[str] = "unused-client"
    since: ClassVar[str] = "0.1.0"
    status: ClassVar[str] = "stable"
    severity: ClassVar[Severity] = "warning"
    needs: ClassVar[frozenset[str]] = frozenset({"SY202"})

    def check(self, policy: Policy) -> Iterator[Finding]:
        """Yield the findings of one policy."""
        if "targets" not in policy.document.values:
            return
        used = {text_at(target, "llm_client") for target in tables(policy, "targets").values()}
        used.add(policy.fallback_client)
        for name in policy.clients:
            if name not in used:
                yield policy.finding(
                    self.code,
                    f"no target uses client `{shown(name)}`",
                    ("llm_clients", name),
                    fix="remove it, or name it in a target",
                )
