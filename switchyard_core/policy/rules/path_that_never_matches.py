"""A JSONPath begins where its document has nothing.

## What it finds

A `path` of a rule or of a condition, a `target` or a `command` whose first member does not exist
in the document that it runs on.

## Why it matters

A path that can find nothing makes a rule that never applies, or one that never sees the file or
the command.

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

[[mutation_rules.own.rules]]
label = "file_edit"
match = ["cms_save"]
where = [{ path = "$.input.draft", equals = false }]
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

[[mutation_rules.own.rules]]
label = "file_edit"
match = ["cms_save"]
where = [{ path = "$.arguments.draft", equals = false }]
```

## Options

None.

## Exceptions

Only the first member is known; what follows depends on the tool. A path that begins with
anything but a plain member is not looked at, and a condition `exists = false` may name what is
never there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import ClassVar

from switchyard_core.errors import Finding, Severity
from switchyard_core.mutation import RuleModel
from switchyard_core.policy.model import Policy
from switchyard_core.policy.positions import Location
from switchyard_core.policy.rules.base import Rule
from switchyard_core.policy.rules.reading import own_rules
from switchyard_core.policy.secrets import shown

__all__ = ["PathThatNeverMatches"]

#: Members of a tool call, which conditions, targets and commands start from.
_CALL = ("type", "id", "name", "namespace", "server", "kind", "arguments")
#: Where a body of each wire format keeps its tool calls.
_HISTORY: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "openai_chat": ("messages",),
        "openai_responses": ("input",),
        "anthropic_messages": ("messages",),
    }
)
_FIRST = re.compile(r"""\$(?:\.(\w+)|\[['"](\w+)['"]\])(?=[.\[]|$)""")


class PathThatNeverMatches(Rule):
    """A JSONPath begins where its document has nothing."""

    code: ClassVar[str] = "SY423"
    name: ClassVar[str] = "path-that-never-matches"
    since: ClassVar[str] = "0.1.0"
    status: ClassVar[str] = "stable"
    severity: ClassVar[Severity] = "warning"
    # What is no path at all is not looked at.
    needs: ClassVar[frozenset[str]] = frozenset({"SY401"})

    def check(self, policy: Policy) -> Iterator[Finding]:
        """Yield the findings of one policy."""
        for name, index, rule in own_rules(policy):
            for location, path, members in _paths(rule):
                first = _first_member(path)
                if first is not None and first not in members:
                    yield policy.finding(
                        self.code,
                        f"this path can find nothing: there is no `{shown(first)}`",
                        ("mutation_rules", name, "rules", index, *location),
                        notes=(f"it may begin with: {', '.join(members)}",),
                        fix="begin it with one of these",
                    )


def _paths(rule: RuleModel) -> Iterator[tuple[Location, str, tuple[str, ...]]]:
    """Yield each path of a rule, with the members that its document can have at the top."""
    # In a body the calls, which the path must reach, are in the history.
    yield ("path",), rule.path, _HISTORY.get(rule.format or "", ("messages",))
    for index, condition in enumerate(rule.where):
        if condition.exists is not False:
            yield ("where", index, "path"), condition.path, _CALL
    if rule.target is not None:
        yield ("target",), rule.target, _CALL
    if rule.command is not None:
        yield ("command",), rule.command, _CALL


def _first_member(path: str) -> str | None:
    """Return the member that a path begins with, ``None`` when it begins in another way."""
    begin = _FIRST.match(path)
    return None if begin is None else begin[1] or begin[2]
