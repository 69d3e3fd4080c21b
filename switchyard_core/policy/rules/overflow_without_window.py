"""`on_overflow` is set and the window is unknown.

## What it finds

A target with `on_overflow = "stay"` or `"reject"` and without `context_window`.

## Why it matters

Without the window nothing ever overflows, so the key does nothing.

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
on_overflow = "stay"

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
on_overflow = "stay"
context_window = 128_000

[routes.coding]
id = "switchyard/coding"
type = "plan_execute"
capable_target = "planner"
efficient_target = "executor"
```

## Options

None.

## Exceptions

None.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from switchyard_core.errors import Finding, Severity
from switchyard_core.policy.model import Policy
from switchyard_core.policy.rules.base import Rule
from switchyard_core.policy.secrets import shown

__all__ = ["OverflowWithoutWindow"]


class OverflowWithoutWindow(Rule):
    """`on_overflow` is set and the window is unknown."""

    code: ClassVar[str] = "SY224"
    name: ClassVar[str] = "overflow-without-window"
    since: ClassVar[str] = "0.1.0"
    status: ClassVar[str] = "stable"
    severity: ClassVar[Severity] = "warning"

    def check(self, policy: Policy) -> Iterator[Finding]:
        """Yield the findings of one policy."""
        for name, target in policy.targets.items():
            if target.on_overflow != "send" and target.context_window is None:
                yield policy.finding(
                    self.code,
                    f"`on_overflow` has no effect on target `{shown(name)}`, "
                    "whose window is unknown",
                    ("targets", name, "on_overflow"),
                    fix="add `context_window`, in tokens",
                )
