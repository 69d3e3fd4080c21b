"""A price has the name of no target's model.

## What it finds

A table under `[prices]` whose name is the `id` of no target.

## Why it matters

It is never used, and the model that it was meant for has no price.

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

[prices."planner"]
as_of = 2026-01-31
input = 1.25
output = 10
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

[prices."provider/capable-model"]
as_of = 2026-01-31
input = 1.25
output = 10
```

## Options

None.

## Exceptions

None: prices go by the `id` of a target, never by its name.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from switchyard_core.errors import Finding, Severity
from switchyard_core.policy.model import Policy
from switchyard_core.policy.rules.base import Rule
from switchyard_core.policy.rules.reading import tables, text_at
from switchyard_core.policy.secrets import shown

__all__ = ["PriceOfNoTarget"]


class PriceOfNoTarget(Rule):
    """A price has the name of no target's model."""

    code: ClassVar[str] = "SY223"
    name: ClassVar[str] = "price-of-no-target"
    since: ClassVar[str] = "0.1.0"
    status: ClassVar[str] = "stable"
    severity: ClassVar[Severity] = "warning"

    def check(self, policy: Policy) -> Iterator[Finding]:
        """Yield the findings of one policy."""
        targets = tables(policy, "targets").values()
        ids = {text for target in targets if (text := text_at(target, "id")) is not None}
        for model_id in policy.prices:
            if model_id not in ids:
                yield policy.finding(
                    self.code,
                    "no target has the id that this price is for",
                    ("prices", model_id),
                    notes=(f"ids of targets: {', '.join(map(shown, sorted(ids))) or 'none'}",),
                    fix="use the `id` of a target",
                )
