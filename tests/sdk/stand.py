"""A provider and switchyard in front of it, each on a port of its own on loopback."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx

from switchyard_core import Switchyard, WireFormat
from switchyard_core.scripted import RecordedRequest, ScriptedProviderApp, check_script
from switchyard_core.wire import WIRE_FORMATS
from switchyard_core.world import World
from tests.support.listening import Port

PLANNER, EXECUTOR = "provider/capable-model", "provider/efficient-model"
UPSTREAM_KEY = "upstream-key-4Tq8"
PLANNING_PROMPT = "PLAN FIRST."


def route_id(wire_format: WireFormat) -> str:
    """Return the model id that a caller of a wire format asks for; it has a slash in it."""
    return f"team/{wire_format}"


def policy(url: str, *, retries: int = 0, client: str = "", route: str = "") -> str:
    """Return a policy with one plan_execute route per wire format.

    Args:
        url: Base URL of the provider.
        retries: ``max_retries`` of each client.
        client: Further lines of each client; replaces the key.
        route: Further lines of each route.
    """
    lines = client or 'api_key_env = "UPSTREAM_KEY"'
    parts = (
        f"""
[llm_clients.{name}]
format = "{name}"
base_url = "{url}"
max_retries = {retries}
{lines}

[targets.{name}_planner]
id = "{PLANNER}"
llm_client = "{name}"

[targets.{name}_executor]
id = "{EXECUTOR}"
llm_client = "{name}"

[routes.{name}]
id = "{route_id(name)}"
type = "plan_execute"
capable_target = "{name}_planner"
efficient_target = "{name}_executor"
planning_prompt = "{PLANNING_PROMPT}"
{route}
"""
        for name in WIRE_FORMATS
    )
    return "\n".join(("schema_version = 1", *parts))


def provider_of(*turns: Mapping[str, Any], **more: Any) -> ScriptedProviderApp:
    """Return a provider that plays turns; ``more`` are further keys of its script."""
    script, findings = check_script(
        json.dumps({"version": 1, "scripts": [{"turns": turns, **more}]})
    )
    assert script is not None, [finding.render() for finding in findings]
    # A fixed time, so that the same request gets the same bytes whenever it comes.
    return ScriptedProviderApp(script, now=lambda: 1_700_000_000.0)


@dataclass
class Stand:
    """Switchyard and the provider behind it.

    Args:
        url: Where switchyard listens.
        provider_url: Where the provider listens.
        provider: The provider, with its record.
        yard: Switchyard.
        asked: Method and path of every request that switchyard got.
    """

    url: str
    provider_url: str
    provider: ScriptedProviderApp
    yard: Switchyard
    asked: list[str] = field(default_factory=list)

    @property
    def sent(self) -> list[RecordedRequest]:
        """What the provider got."""
        return self.provider.requests

    @property
    def models(self) -> list[str]:
        """The model ids that the provider was asked for, in order."""
        return [record.model for record in self.sent]

    def said(self, record: RecordedRequest) -> bytes:
        """Return what the provider answers to a recorded request when it is asked directly."""
        before = len(self.sent)
        answer = httpx.post(self.provider_url + record.path, content=record.body)
        del self.sent[before:]
        return answer.content

    async def latched(self, wire_format: WireFormat) -> int:
        """Return how many sessions are latched on the route of a wire format."""
        store = self.yard.runtimes[wire_format].store
        assert store is not None
        return await store.count()


class Watched:
    """An ASGI application that notes the requests it passes on."""

    def __init__(self, app: Any, asked: list[str]) -> None:
        self._app = app
        self._asked = asked

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            self._asked.append(f"{scope['method']} {scope['path']}")
        await self._app(scope, receive, send)


@contextlib.contextmanager
def standing(
    front: Port,
    back: Port,
    provider: ScriptedProviderApp,
    *,
    options: Mapping[str, Any] | None = None,
    **settings: Any,
) -> Iterator[Stand]:
    """Serve a provider and switchyard in front of it.

    Args:
        front: Where switchyard is served.
        back: Where the provider is served.
        provider: The provider.
        options: Options of the server.
        settings: Of :func:`policy`.
    """
    yard = Switchyard.from_policy_text(
        policy(back.url, **settings), world=World(environ={"UPSTREAM_KEY": UPSTREAM_KEY})
    )
    stand = Stand(url=front.url, provider_url=back.url, provider=provider, yard=yard)
    back.app = provider
    front.app = Watched(yard.asgi(**(options or {})), stand.asked)
    try:
        yield stand
    finally:
        front.run(yard.aclose())


def events_of(raw: bytes) -> list[dict[str, Any]]:
    """Return the data of the events in a stream, without pings and the end mark."""
    lines = [line for line in raw.decode().splitlines() if line.startswith("data:")]
    data = [line.removeprefix("data:").strip() for line in lines]
    trees = [json.loads(text) for text in data if text != "[DONE]"]
    return [tree for tree in trees if tree.get("type") != "ping"]
