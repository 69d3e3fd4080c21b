"""The id of a route is the model id of a target.

## What it finds

A route whose `id` is the `id` of a declared target.

## Why it matters

Callers that ask for that very model get the route instead, and logs and prices cannot tell the
two apart.

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
id = "provider/capable-model"
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

`aliases` may be names of models: some agents choose their tools by the model id that they are
given. A route that names only the target with that id passes the model on under its own name,
which is fine.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from switchyard_core.errors import Finding, Severity
from switchyard_core.policy.model import Policy
from switchyard_core.policy.rules.base import Rule
from switchyard_core.policy.secrets import shown

__all__ = ["RouteNamedLikeAModel"]


class RouteNamedLikeAModel(Rule):
    """The id of a route is the model id of a target."""

    code: ClassVar[str] = "SY321"
    name: ClassVar[str] = "route-named-like-a-model"
    since: ClassVar[str] = "0.1.0"
    status: ClassVar[str] = "stable"
    severity: ClassVar[Severity] = "warning"

    def check(self, policy: Policy) -> Iterator[Finding]:
        """Yield the findings of one policy."""
        targets = {target.id: name for name, target in policy.targets.items()}
        for name, route in policy.routes.items():
            target = targets.get(route.id)
            if target is not None and set(route.targets) != {target}:
                yield policy.finding(
                    self.code,
                    f"the route's id is also the model id of target `{shown(target)}`",
                    ("routes", name, "id"),
                    fix="give the route an id of its own; "
                    "keep the model's name in `aliases` if an agent needs it",
                )
