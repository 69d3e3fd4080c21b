"""What a caller says about a plan reaches the router through the server, on every path."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest

import switchyard_planner_executor
from switchyard_core import Request
from switchyard_core.server.app import SwitchyardApp
from switchyard_core.testing import FakeUpstream, Harness
from switchyard_core.wire import format_of

POLICY = """\
schema_version = 1

[llm_clients.provider]
format = "openai_responses"
base_url = "https://provider.test/v1"
api_key_env = "PROVIDER_KEY"

[targets.model]
id = "provider/model"
llm_client = "provider"

[routes.shop]
id = "switchyard/shop"
type = "planner_executor"
planner_target = "model"
executor_target = "model"
approval = "always"
"""


@pytest.fixture
def upstream() -> FakeUpstream:
    return FakeUpstream()


@pytest.fixture
async def client(upstream: FakeUpstream):
    harness = Harness(POLICY, plugins=[switchyard_planner_executor], upstream=upstream)
    transport = httpx.ASGITransport(app=SwitchyardApp(harness.engine))
    async with httpx.AsyncClient(transport=transport, base_url="http://switchyard.test") as made:
        yield made


@pytest.mark.parametrize(
    ("header", "status", "word"),
    [
        (f"approve plan_of_nobody {'ab' * 32}", 404, "plan_of_nobody"),
        ("reject plan_of_nobody", 404, "plan_of_nobody"),
        ("yes, go", 400, "x-switchyard-plan: approve <plan_id> <plan_digest>"),
    ],
)
async def test_header_reaches_the_router_and_nothing_is_asked(
    asked: Callable[..., Request],
    client: httpx.AsyncClient,
    upstream: FakeUpstream,
    header: str,
    status: int,
    word: str,
) -> None:
    request = asked()
    answer = await client.post(
        "/v1" + format_of(request.wire_format).paths["create"],
        content=request.body,
        headers={"content-type": "application/json", "X-Switchyard-Plan": header},
    )

    assert answer.status_code == status
    assert answer.headers["x-should-retry"] == "false"
    assert word in answer.json()["error"]["message"]
    assert upstream.requests == []
