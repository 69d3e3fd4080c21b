"""Two options of a route name the same model.

## What it finds

A route with two options that name targets with the same client and the same model id.

## Why it matters

The route then changes nothing but the prompts, at the price of a handoff.

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
id = "provider/capable-model"
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

Targets in a list may repeat: one of them is often named again as the default. A route that
answers by itself may give one model several parts to play.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from switchyard_core.errors import Finding, Severity
from switchyard_core.policy.model import Policy
from switchyard_core.policy.references import references
from switchyard_core.policy.rules.base import Rule

__all__ = ["SameModelOnBothSides"]


class SameModelOnBothSides(Rule):
    """Two options of a route name the same model."""

    code: ClassVar[str] = "SY320"
    name: ClassVar[str] = "same-model-on-both-sides"
    since: ClassVar[str] = "0.1.0"
    status: ClassVar[str] = "stable"
    severity: ClassVar[Severity] = "warning"

    def check(self, policy: Policy) -> Iterator[Finding]:
        """Yield the findings of one policy."""
        for name, route in policy.routes.items():
            if route.type.kind == "answers":
                continue
            seen: dict[tuple[str, str], str] = {}
            raw = policy.document.values["routes"][name]
            for named in references(route.type.options, raw, ("routes", name)):
                # One of a list may well be named again, as its default.
                if named.kind != "target" or len(named.location) != 3:
                    continue
                target = policy.targets.get(named.name)
                if target is None:
                    continue
                key = str(named.location[-1])
                first = seen.setdefault((target.client.name, target.id), key)
                if first != key:
                    yield policy.finding(
                        self.code,
                        f"`{first}` and `{key}` are the same model",
                        named.location,
                        fix="name targets with different models, "
                        "or use the `passthrough` route type",
                    )
