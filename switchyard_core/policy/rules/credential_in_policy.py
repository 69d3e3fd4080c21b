"""A value in the policy looks like a credential.

## What it finds

A string anywhere in the file that has the shape of a key, a token, a password in a URL, or a long
random word. The message never repeats it.

## Why it matters

A policy is shared, committed and pasted into reports; a secret in it is public.

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
extra_body = { user = "sk-proj-abcdefghijkl1234" }

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
extra_body = { user = "coding-team" }

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

An id that only looks random may stay, with a reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from switchyard_core.errors import Finding, Severity
from switchyard_core.policy.model import Policy
from switchyard_core.policy.positions import Location
from switchyard_core.policy.rules.base import Rule
from switchyard_core.policy.secrets import looks_like_credential

__all__ = ["CredentialInPolicy"]


class CredentialInPolicy(Rule):
    """A value in the policy looks like a credential."""

    code: ClassVar[str] = "SY190"
    name: ClassVar[str] = "credential-in-policy"
    since: ClassVar[str] = "0.1.0"
    status: ClassVar[str] = "stable"
    severity: ClassVar[Severity] = "warning"

    def check(self, policy: Policy) -> Iterator[Finding]:
        """Yield the findings of one policy."""
        for location, text in _strings(policy.document.values, ()):
            if looks_like_credential(text):
                yield policy.finding(
                    self.code,
                    "this value looks like a credential",
                    location,
                    fix="name an environment variable with `api_key_env`, and revoke the key",
                )


def _strings(value: Any, location: Location) -> Iterator[tuple[Location, str]]:
    if isinstance(value, str):
        yield location, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _strings(item, (*location, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _strings(item, (*location, index))
