"""Any policy behind the two doors of a :class:`World`, and answers of a judge."""

from __future__ import annotations

import json
from collections.abc import Sequence

import httpx

from switchyard_core import UpstreamError, WireFormat
from switchyard_core.server.app import SwitchyardApp
from switchyard_core.testing import FakeReply, FakeUpstream, Harness
from tests.support.world import PLUGINS, World

#: Two clients, so that the targets of a route may have two origins.
POLICY = """\
schema_version = 1

[llm_clients.near]
format = "{wire_format}"
base_url = "https://near.test/v1"
api_key_env = "NEAR_KEY"
max_retries = 0

[llm_clients.far]
format = "{wire_format}"
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


class RouteWorld(World):
    """One route of the policy above, asked through the library or over HTTP."""

    def __init__(
        self,
        wire_format: WireFormat,
        door: str,
        *,
        route: str,
        replies: Sequence[FakeReply | UpstreamError] = (),
        other_origin: bool = False,
        large: str = "",
        small: str = "",
    ) -> None:
        self.wire_format = wire_format
        self.door = door
        self.upstream = FakeUpstream(*replies)
        text = POLICY.format(
            wire_format=wire_format,
            route=route,
            large=large,
            small=small,
            small_client="far" if other_origin else "near",
        )
        self.harness = Harness(text, plugins=PLUGINS, upstream=self.upstream)
        self.store = self.harness.engine.runtimes["main"].store
        app = SwitchyardApp(self.harness.engine)
        self._client = httpx.AsyncClient(
            transport=httpx.ASGITransport(app=app), base_url="http://switchyard.test"
        )


def said(wire_format: WireFormat, text: str) -> FakeReply:
    """Return a whole answer of a wire format that says something."""
    if wire_format == "openai_chat":
        message = {"role": "assistant", "content": text}
        body: dict[str, object] = {"choices": [{"message": message, "finish_reason": "stop"}]}
    elif wire_format == "openai_responses":
        part = {"type": "output_text", "text": text}
        body = {"status": "completed", "output": [{"type": "message", "content": [part]}]}
    else:
        body = {"content": [{"type": "text", "text": text}], "stop_reason": "end_turn"}
    return FakeReply(body=body)


def verdict(wire_format: WireFormat, strong: object, why: str = "because") -> FakeReply:
    """Return a judge's answer."""
    return said(wire_format, json.dumps({"strong": strong, "why": why}))
