"""`base_url` ends in a path that is added to it anyway.

## What it finds

A `base_url` that ends in `/chat/completions`, `/responses` or `/messages`.

## Why it matters

The endpoint's path is added for each request, so it would be there twice and every request
would get 404.

## Example

```toml
schema_version = 1

[llm_clients.provider]
format = "openai_chat"
base_url = "https://example.com/v1/chat/completions"
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

A final `/v1` may stay.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from switchyard_core.errors import Finding, Severity
from switchyard_core.policy.model import Policy
from switchyard_core.policy.rules.base import Rule

__all__ = ["EndpointInUrl"]

#: What the three wire formats append to a base URL.
_ENDPOINTS = ("/chat/completions", "/responses", "/messages")


class EndpointInUrl(Rule):
    """`base_url` ends in a path that is added to it anyway."""

    code: ClassVar[str] = "SY225"
    name: ClassVar[str] = "endpoint-in-url"
    since: ClassVar[str] = "0.1.0"
    status: ClassVar[str] = "stable"
    severity: ClassVar[Severity] = "warning"

    def check(self, policy: Policy) -> Iterator[Finding]:
        """Yield the findings of one policy."""
        for name, client in policy.clients.items():
            path = client.base_url.lower().rstrip("/")
            for endpoint in _ENDPOINTS:
                if path.endswith(endpoint):
                    yield policy.finding(
                        self.code,
                        f"the URL ends in `{endpoint}`, which is added to it for each request",
                        ("llm_clients", name, "base_url"),
                        fix=f"remove `{endpoint}` from its end",
                    )
                    break
