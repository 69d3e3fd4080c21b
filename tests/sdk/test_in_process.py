"""The SDKs route in process: switchyard is their transport, no port is opened."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import anthropic
import httpx
import openai
import pytest

from switchyard_core import Switchyard
from switchyard_core.testing import FakeReply, FakeUpstream
from switchyard_core.world import World
from tests.sdk.apis import USER, Api, Messages, items, through_helper
from tests.sdk.stand import PLANNER, policy

# The package that the SDK makes its requests with; it is not the same in all versions.
SDK_HTTP = {
    sdk: getattr(sdk._base_client, "httpx2", None) or sdk._base_client.httpx
    for sdk in (openai, anthropic)
}


@pytest.fixture
async def inside(api: Api) -> AsyncIterator[Callable[..., tuple[Any, FakeUpstream]]]:
    """Make an asynchronous client whose transport is switchyard."""
    opened: list[Any] = []

    def make(*replies: FakeReply, http: Any = None, **options: Any) -> tuple[Any, FakeUpstream]:
        upstream = FakeUpstream(*replies)
        yard = Switchyard.from_policy_text(
            policy("https://provider.test/v1"),
            connect=lambda _client: upstream,
            world=World(environ={"UPSTREAM_KEY": "key"}),
        )
        http = http or SDK_HTTP[api.sdk]
        kind = openai.AsyncOpenAI if api.sdk is openai else anthropic.AsyncAnthropic
        prefix = "/v1" if api.sdk is openai else ""
        client = kind(
            base_url=f"http://switchyard.test{prefix}",
            api_key="callers-key",
            http_client=http.AsyncClient(transport=http.ASGITransport(app=yard.asgi())),
            _strict_response_validation=True,
            **({"max_retries": 0} | options),
        )
        opened.extend((client, yard))
        return client, upstream

    yield make
    for thing in opened:
        await (thing.aclose() if isinstance(thing, Switchyard) else thing.close())


async def test_create_is_routed(api, inside):
    client, upstream = inside()

    answer = await api.endpoint(client).create(**api.ask(USER))

    assert api.text(answer) == "ok"
    (sent,) = upstream.requests
    assert (sent.model, sent.target) == (PLANNER, f"{api.wire_format}_planner")
    assert json.loads(sent.body)["model"] == PLANNER
    assert not any("callers-key" in value for _, value in sent.headers)


async def test_streams_are_routed(api, inside):
    client, upstream = inside()

    events = await items(api.endpoint(client).create(**api.ask(USER, stream=True)))
    _, final = await through_helper(api.helper(client, api.ask(USER)), api.final)

    assert len(events) > 2
    assert api.text(final) == "ok"
    assert [sent.stream for sent in upstream.requests] == [True, True]


async def test_refusal_is_a_typed_error(api, inside):
    client, upstream = inside(max_retries=3)

    with pytest.raises(api.sdk.NotFoundError, match="team/other"):
        await api.endpoint(client).create(**api.ask(USER, model="team/other"))

    assert upstream.requests == []


async def test_failure_of_the_provider_is_a_typed_error(api, inside):
    reply = FakeReply(status=429, body={"error": {"message": "slow down", "type": "x"}})
    client, upstream = inside(reply)

    with pytest.raises(api.sdk.RateLimitError, match="slow down"):
        await api.endpoint(client).create(**api.ask(USER))

    assert len(upstream.requests) == 1


async def test_a_client_of_httpx_is_taken_where_the_sdk_takes_it(api, inside):
    if isinstance(api, Messages) and SDK_HTTP[anthropic] is not httpx:
        with pytest.raises(TypeError, match="httpx"):
            inside(http=httpx)
        return
    client, upstream = inside(http=httpx)

    answer = await api.endpoint(client).create(**api.ask(USER))

    assert api.text(answer) == "ok"
    assert len(upstream.requests) == 1
