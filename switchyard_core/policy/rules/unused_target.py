"""No route names the target.

## What it finds

A table `[targets.<name>]` that no option of any route names.

## Why it matters

It may be left over, or a route names another target by mistake.

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

[targets.spare]
id = "provider/spare-model"
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

Nothing is said while a route has errors of its own: it may have been meant to use the target.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from switchyard_core.errors import Finding, Severity
from switchyard_core.policy.model import Policy
from switchyard_core.policy.rules.base import Rule
from switchyard_core.policy.rules.reading import tables
from switchyard_core.policy.secrets import shown

__all__ = ["UnusedTarget"]


class UnusedTarget(Rule):
    """No route names the target."""

    code: ClassVar[str] = "SY220"
    name: ClassVar[str] = "unused-target"
    since: ClassVar[str] = "0.1.0"
    status: ClassVar[str] = "stable"
    severity: ClassVar[Severity] = "warning"

    def check(self, policy: Policy) -> Iterator[Finding]:
        """Yield the findings of one policy."""
        if policy.routes.keys() != tables(policy, "routes").keys():
            # A route with errors may have been meant to use any of them.
            return
        used = {target for route in policy.routes.values() for target in route.targets}
        for name in policy.targets:
            if name not in used:
                yield policy.finding(
                    self.code,
                    f"no route uses target `{shown(name)}`",
                    ("targets", name),
                    fix="remove it, or name it in a route",
                )
