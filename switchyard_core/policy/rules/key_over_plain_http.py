"""A key is sent over plain http to another machine.

## What it finds

A client with `api_key_env` or `forward_auth` whose `base_url` begins with `http:` and does not
name this machine.

## Why it matters

Everybody on the way can read the key and the source code in the requests.

## Example

```toml
schema_version = 1

[llm_clients.provider]
format = "openai_chat"
base_url = "http://example.com/v1"
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

`localhost`, names under it, and loopback addresses are fine. A client without a key is not
reported.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import ClassVar
from urllib.parse import urlsplit

from switchyard_core.errors import Finding, Severity
from switchyard_core.policy.model import Client, Policy
from switchyard_core.policy.rules.base import Rule

__all__ = ["KeyOverPlainHttp"]


class KeyOverPlainHttp(Rule):
    """A key is sent over plain http to another machine."""

    code: ClassVar[str] = "SY222"
    name: ClassVar[str] = "key-over-plain-http"
    since: ClassVar[str] = "0.1.0"
    status: ClassVar[str] = "stable"
    severity: ClassVar[Severity] = "warning"

    def check(self, policy: Policy) -> Iterator[Finding]:
        """Yield the findings of one policy."""
        for name, client in policy.clients.items():
            if (client.api_key_env or client.forward_auth) and _is_insecure(client):
                yield policy.finding(
                    self.code,
                    "a key is sent over plain http to another host",
                    ("llm_clients", name, "base_url"),
                    fix="use https",
                )


def _is_insecure(client: Client) -> bool:
    parts = urlsplit(client.base_url)
    if parts.scheme.lower() != "http":
        return False
    host = parts.hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return False
    try:
        return not ipaddress.ip_address(host).is_loopback
    except ValueError:
        return True
