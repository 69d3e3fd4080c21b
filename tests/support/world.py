"""One policy, asked through the library or over HTTP: every scenario must be the same in both."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import httpx

import switchyard_demo_catalog
import switchyard_demo_routers
import switchyard_plan_execute
import switchyard_planner_executor
from switchyard_core import Outgoing, Request, RequestError, WireFormat
from switchyard_core.server.app import SwitchyardApp
from switchyard_core.testing import FakeUpstream, Harness
from switchyard_core.wire import format_of

PLANNER, EXECUTOR = "provider/capable-model", "provider/efficient-model"
ROUTE = "switchyard/plan-execute"
PLANNING_PROMPT = "PLAN FIRST."
#: What the policies of these tests need; nothing else is loaded, whatever is installed.
PLUGINS = (
    switchyard_plan_execute,
    switchyard_planner_executor,
    switchyard_demo_routers,
    switchyard_demo_catalog,
)


def policy(
    wire_format: WireFormat,
    *,
    options: str = "",
    planner: str = "",
    executor: str = "",
    top: str = "",
    other_origin: bool = False,
) -> str:
    """Return a plan_execute policy for one wire format."""
    client = "other" if other_origin else "provider"
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

[targets.planner]
id = "{PLANNER}"
llm_client = "provider"
{planner}

[targets.executor]
id = "{EXECUTOR}"
llm_client = "{client}"
{executor}

[routes.plan_execute]
id = "{ROUTE}"
type = "plan_execute"
capable_target = "planner"
efficient_target = "executor"
planning_prompt = "{PLANNING_PROMPT}"
{options}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """What a request came to, seen from outside."""

    status: int
    target: str = ""
    phase: str = ""
    reason: str = ""
    warnings: tuple[str, ...] = ()
    code: str = ""
    message: str = ""
    sent: tuple[Outgoing, ...] = ()
    headers: tuple[tuple[str, str], ...] = ()

    @property
    def body(self) -> dict[str, Any]:
        """The body that was sent last, as a tree."""
        tree: dict[str, Any] = json.loads(self.sent[-1].body)
        return tree

    @property
    def raw(self) -> bytes:
        """The bytes that were sent last."""
        return self.sent[-1].body


class World:
    """A policy with a fake provider behind it and one of two doors in front."""

    def __init__(self, wire_format: WireFormat, door: str, **settings: Any) -> None:
        upstream = settings.pop("upstream", None) or FakeUpstream(*settings.pop("replies", ()))
        self.wire_format = wire_format
        self.door = door
        self.upstream = upstream
        plugins = settings.pop("plugins", PLUGINS)
        self.harness = Harness(policy(wire_format, **settings), plugins=plugins, upstream=upstream)
        self.store = self.harness.engine.runtimes["plan_execute"].store
        app = SwitchyardApp(self.harness.engine)
        self._client = httpx.AsyncClient(
            transport=httpx.ASGITransport(app=app), base_url="http://switchyard.test"
        )

    async def ask(self, request: Request) -> Served:
        """Send a request through the door."""
        before = len(self.upstream.requests)
        if self.door == "library":
            served = await self._by_library(request)
        else:
            served = await self._by_http(request)
        return Served(**{**served, "sent": tuple(self.upstream.requests[before:])})

    async def _by_library(self, request: Request) -> dict[str, Any]:
        try:
            routed = await self.harness.run(request)
        except RequestError as error:
            return {
                "status": error.status,
                "code": error.code,
                "message": error.message,
                "headers": tuple(error.headers.items()),
            }
        decision = routed.decision
        return {
            "status": routed.status,
            "target": decision.target,
            "phase": decision.phase,
            "reason": decision.reason.code,
            "warnings": tuple(warning.code for warning in decision.warnings),
        }

    async def _by_http(self, request: Request) -> dict[str, Any]:
        path = "/v1" + format_of(request.wire_format).paths[request.endpoint]
        response = await self._client.post(
            path,
            content=request.body,
            headers=[("content-type", "application/json"), *request.headers.items_],
        )
        headers = response.headers
        served: dict[str, Any] = {
            "status": response.status_code,
            "headers": tuple(headers.items()),
            "target": headers.get("x-switchyard-target", ""),
            "phase": headers.get("x-switchyard-phase", ""),
            "reason": headers.get("x-switchyard-reason", ""),
            "warnings": tuple(
                word.strip() for word in headers.get("x-switchyard-warning", "").split(",") if word
            ),
        }
        if response.is_error and not served["target"]:
            error = response.json()["error"]
            served["code"] = error.get("code") or error["message"].rpartition("(")[2].rstrip(")")
            served["message"] = error["message"]
        return served

    async def latched(self) -> int:
        """Return how many identities are latched."""
        assert self.store is not None
        return await self.store.count()
