"""The policies of the tests: one plan_execute route, and one route of any type on three targets.

Each has a harness with all plugins of the repository; settings are those of the policy's text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import switchyard_demo_catalog
import switchyard_demo_routers
import switchyard_plan_execute
import switchyard_planner_executor
from switchyard_core import UpstreamError, WireFormat
from switchyard_core.models import Profile
from switchyard_core.testing import FakeReply, FakeUpstream, Harness

PLANNER, EXECUTOR = "provider/capable-model", "provider/efficient-model"
ROUTE = "switchyard/plan-execute"
PLANNING_PROMPT = "PLAN FIRST."
#: What these policies need; nothing else is loaded, whatever is installed.
PLUGINS = (
    switchyard_plan_execute,
    switchyard_planner_executor,
    switchyard_demo_routers,
    switchyard_demo_catalog,
)


def plan_execute(
    wire_format: WireFormat,
    *,
    options: str = "",
    planner: str = "",
    executor: str = "",
    top: str = "",
    other_origin: bool = False,
    formats: Mapping[str, WireFormat] | None = None,
    ids: Mapping[str, str] | None = None,
) -> str:
    """Return a plan_execute policy for one wire format; the texts are further lines of a table.

    ``formats`` has those of targets that speak another one, and ``ids`` those of other models, by
    the target's name.
    """
    clients = {"planner": "provider", "executor": "other" if other_origin else "provider"}
    foreign = ""
    for target, spoken in (formats or {}).items():
        host = clients[target]
        clients[target] = f"{host}_{target}"
        foreign += f"""
[llm_clients.{clients[target]}]
format = "{spoken}"
base_url = "https://{host}.test/v1"
api_key_env = "{host.upper()}_KEY"
"""
    model = {"planner": PLANNER, "executor": EXECUTOR, **(ids or {})}
    return f"""
schema_version = 1
{top}

[llm_clients.provider]
format = "{wire_format}"
base_url = "https://provider.test/v1"
api_key_env = "PROVIDER_KEY"

[llm_clients.other]
format = "{wire_format}"
base_url = "https://other.test/v1"
api_key_env = "OTHER_KEY"
{foreign}
[targets.planner]
id = "{model["planner"]}"
llm_client = "{clients["planner"]}"
{planner}

[targets.executor]
id = "{model["executor"]}"
llm_client = "{clients["executor"]}"
{executor}

[routes.plan_execute]
id = "{ROUTE}"
type = "plan_execute"
capable_target = "planner"
efficient_target = "executor"
planning_prompt = "{PLANNING_PROMPT}"
{options}
"""


def one_route(
    wire_format: WireFormat,
    route: str,
    *,
    large: str = "",
    small: str = "",
    other_origin: bool = False,
    far: WireFormat | None = None,
) -> str:
    """Return a policy with the route `main`; two clients, so that targets may have two origins.

    ``far`` is the wire format of the target `small`, in place of that of the others.
    """
    small_client = "far" if other_origin or far else "near"
    return f"""\
schema_version = 1

[llm_clients.near]
format = "{wire_format}"
base_url = "https://near.test/v1"
api_key_env = "NEAR_KEY"
max_retries = 0

[llm_clients.far]
format = "{far or wire_format}"
base_url = "https://far.test/v1"
api_key_env = "FAR_KEY"
max_retries = 0

[targets.large]
id = "provider/large"
llm_client = "near"
{large}

[targets.small]
id = "provider/small"
llm_client = "{small_client}"
{small}

[targets.judge]
id = "provider/judge"
llm_client = "near"

[routes.main]
id = "main"
{route}
"""


def plan_execute_harness(
    wire_format: WireFormat,
    door: Literal["library", "http"] = "library",
    *,
    replies: Sequence[FakeReply | UpstreamError] = (),
    upstream: FakeUpstream | None = None,
    plugins: Sequence[object] = PLUGINS,
    **settings: Any,
) -> Harness:
    text = plan_execute(wire_format, **settings)
    return Harness(text, plugins=plugins, replies=replies, upstream=upstream, door=door)


def one_route_harness(
    wire_format: WireFormat,
    door: Literal["library", "http"] = "library",
    *,
    route: str,
    replies: Sequence[FakeReply | UpstreamError] = (),
    **settings: Any,
) -> Harness:
    text = one_route(wire_format, route, **settings)
    return Harness(text, plugins=PLUGINS, replies=replies, door=door)


def accepts(harness: Harness, **profiles: Profile) -> Harness:
    """Let targets of a harness, by name, accept what some profiles say."""
    for name, profile in profiles.items():
        vars(harness.policy.targets[name])["accepts"] = profile
    return harness
