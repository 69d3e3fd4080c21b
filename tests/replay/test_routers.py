"""Replay under every router: plan_execute by both doors, and routers of others that ask."""

from __future__ import annotations

import httpx
import pytest

import switchyard_demo_routers
import switchyard_plan_execute
from switchyard_core import (
    Decision,
    Failure,
    Options,
    Reason,
    Replay,
    RequestError,
    RouteType,
    Switchyard,
    TargetName,
    hookimpl,
)
from switchyard_core.answering import ModelCall
from switchyard_core.errors import ReplayMiss
from switchyard_core.scripted import ScriptedUpstream
from switchyard_core.server.app import SwitchyardApp
from switchyard_core.testing import Harness, conversation, registry_of
from switchyard_core.wire import WIRE_FORMATS, format_of
from switchyard_core.world import World
from tests.replay.calls import files, never, script, tree
from tests.support.policies import plan_execute as policy

formats = pytest.mark.parametrize("wire_format", WIRE_FORMATS)
streams = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
PLUGINS = [switchyard_plan_execute, switchyard_demo_routers]


class AskOptions(Options):
    judge: TargetName
    target: TargetName
    swallow: bool = False


class AskRouter:
    """A router of somebody else: asks one target before it chooses another."""

    def __init__(self, options):
        self.options = options

    async def route(self, request, context):
        try:
            reply = await context.ask(self.options.judge, ModelCall(text="Which?", role="judging"))
        except Exception:
            if not self.options.swallow:
                raise
            return self.decision("gave up")
        return self.decision(reply.text)

    async def next(self, request, failed, failure: Failure, context):
        msg = "a router is asked for another try though there is none to make"
        raise AssertionError(msg)

    def decision(self, detail):
        return Decision(target=self.options.target, reason=Reason(code="asked", detail=detail))


class Stranger:
    @hookimpl
    def switchyard_route_types(self):
        return [RouteType(name="ask", options=AskOptions, router=AskRouter, summary="asks")]


ROUTE = """
[routes.ask]
id = "ask"
type = "ask"
judge = "planner"
target = "executor"
"""


def story(wire_format):
    """Return a session: planning, an edit, executing."""
    talk = conversation(wire_format).user("Fix the log.")
    edited = talk.edits("edit_file", path="a.py").says("Done.").user("Go on.")
    return [talk, edited]


def requests(wire_format, model="switchyard/plan-execute", *, stream=False):
    return [
        each.request(model, session="s", **({"stream": True} if stream else {}))
        for each in story(wire_format)
    ]


def yard(wire_format, replay, *, keys=True, connect=None, more="", plugins=PLUGINS):
    return Switchyard.from_policy_text(
        policy(wire_format) + more,
        registry=registry_of([*plugins, Stranger()]),
        connect=connect
        or (lambda client: ScriptedUpstream(script("one", "two"), client.format, now=lambda: 0.0)),
        world=World(environ={"PROVIDER_KEY": "k", "OTHER_KEY": "k"} if keys else {}),
        replay=replay,
    )


async def by_library(yard, sent):
    found = []
    for request in sent:
        async with await yard.handle(request) as response:
            found.append((response.status, await response.read()))
    return found


async def by_http(yard, sent):
    transport = httpx.ASGITransport(app=SwitchyardApp(yard))
    async with httpx.AsyncClient(transport=transport, base_url="http://s.test") as client:
        found = []
        for request in sent:
            path = "/v1" + format_of(request.wire_format).paths["create"]
            answer = await client.post(
                path,
                content=request.body,
                headers=[("content-type", "application/json"), *request.headers.items_],
            )
            found.append((answer.status_code, answer.content))
        return found


DOORS = {"library": by_library, "http": by_http}
doors = pytest.mark.parametrize("door", DOORS)


@formats
@doors
@streams
async def test_plan_execute_is_recorded_and_replayed_without_key_or_provider(
    tmp_path, wire_format, door, stream
):
    sent = requests(wire_format, stream=stream)
    live = await DOORS[door](yard(wire_format, Replay(tmp_path, "record")), sent)
    replay = Replay(tmp_path)

    played = await DOORS[door](
        yard(wire_format, replay, keys=False, connect=lambda _client: never()), sent
    )

    assert played == live
    assert [status for status, _ in played] == [200, 200]
    assert replay.unused() == ()
    assert sorted(name.split("-", 1)[1] for name in files(tmp_path)) == [
        "plan_execute-executing.json",
        "plan_execute-planning.json",
    ]


@formats
@doors
async def test_a_router_that_asks_is_recorded_with_its_question(tmp_path, wire_format, door):
    sent = requests(wire_format, "ask")[:1]
    live = await DOORS[door](yard(wire_format, Replay(tmp_path, "record"), more=ROUTE), sent)

    played = await DOORS[door](
        yard(
            wire_format, Replay(tmp_path), keys=False, connect=lambda _client: never(), more=ROUTE
        ),
        sent,
    )

    assert played == live
    assert sorted(name.split("-", 1)[1] for name in files(tmp_path)) == [
        "ask-executor.json",
        "ask-judging.json",
    ]


@formats
@pytest.mark.parametrize("swallow", ["false", "true"])
async def test_a_miss_of_a_router_that_asks_is_never_swallowed(tmp_path, wire_format, swallow):
    await by_library(yard(wire_format, Replay(tmp_path, "record")), requests(wire_format))
    route = ROUTE + f"swallow = {swallow}\n"

    with pytest.raises(ReplayMiss) as caught:
        await by_library(
            yard(wire_format, Replay(tmp_path), more=route), requests(wire_format, "ask")[:1]
        )

    assert caught.value.path.endswith("-ask-judging.json")


@formats
async def test_a_miss_is_no_failure_for_another_try(tmp_path, wire_format):
    """The question is recorded, the call that follows is not: `next` is not asked."""
    await by_library(
        yard(wire_format, Replay(tmp_path, "record"), more=ROUTE), requests(wire_format, "ask")[:1]
    )
    next(tmp_path.glob("*-ask-executor.json")).unlink()

    with pytest.raises(ReplayMiss) as caught:
        await by_library(
            yard(wire_format, Replay(tmp_path), more=ROUTE), requests(wire_format, "ask")[:1]
        )

    assert caught.value.path.endswith("-ask-executor.json")


@formats
async def test_a_miss_is_a_502_that_no_sdk_tries_again(tmp_path, wire_format):
    await by_library(yard(wire_format, Replay(tmp_path, "record")), requests(wire_format)[1:])
    app = SwitchyardApp(yard(wire_format, Replay(tmp_path)))
    request = requests(wire_format)[0]

    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app=app), base_url="http://s.test"
    ) as client:
        answer = await client.post(
            "/v1" + format_of(wire_format).paths["create"],
            content=request.body,
            headers={"content-type": "application/json"},
        )

    assert answer.status_code == 502
    assert answer.headers["x-should-retry"] == "false"
    message = answer.json()["error"]["message"]
    assert "wanted file" in message
    assert (answer.json()["error"].get("code") or message).endswith(
        ("upstream_replay_miss", "(upstream_replay_miss)")
    )


@formats
async def test_a_credential_in_a_request_is_a_502_that_shows_no_value(tmp_path, wire_format):
    key = "sk-proj-" + "Ab3dEf6hIj9kLm2n" * 3
    request = conversation(wire_format).user(f"use {key}").request()

    ((status, body),) = await by_http(yard(wire_format, Replay(tmp_path, "record")), [request])

    assert status == 502
    assert b"upstream_recording" in body
    assert key.encode() not in body
    assert files(tmp_path) == []


@formats
async def test_record_needs_a_key_only_for_what_is_not_recorded(tmp_path, wire_format):
    one, two = requests(wire_format)
    await by_library(yard(wire_format, Replay(tmp_path, "record")), [one])
    keyless = yard(wire_format, Replay(tmp_path, "record"), keys=False)

    await by_library(keyless, [one])
    with pytest.raises(RequestError) as caught:
        await by_library(keyless, [two])

    assert caught.value.code == "missing_api_key"
    store = keyless.runtimes["plan_execute"].store
    assert store is not None
    assert await store.count() == 0


async def test_replay_needs_no_credential_of_the_caller(tmp_path):
    own = policy("openai_chat").replace('api_key_env = "PROVIDER_KEY"', "forward_auth = true")
    request = requests("openai_chat")[0]
    for mode, headers in (("record", {"authorization": "Bearer mine"}), ("replay", {})):
        made = Switchyard.from_policy_text(
            own,
            registry=registry_of(PLUGINS),
            connect=lambda client: ScriptedUpstream(script(), client.format, now=lambda: 0.0),
            world=World(environ={}),
            replay=Replay(tmp_path, mode),
        )
        sent = conversation("openai_chat").user("Fix the log.").request(headers=headers)
        assert sent.body == request.body
        assert [status for status, _ in await by_library(made, [sent])] == [200]


async def test_the_key_fields_of_a_policy_are_used_and_stored(tmp_path):
    settings = '[replay]\nkey_fields = ["model"]\n'
    one, two = (conversation("openai_chat").user(text).request() for text in ("a", "b"))
    live = yard("openai_chat", Replay(tmp_path, "record"), more=settings)

    first = await by_library(live, [one])

    assert tree(tmp_path)["key_fields"] == ["model"]
    played = yard("openai_chat", Replay(tmp_path), more=settings, connect=lambda _client: never())
    assert await by_library(played, [two]) == first


async def test_a_reload_goes_on_with_the_same_recordings(tmp_path):
    before = yard("openai_chat", Replay(tmp_path, "record"))
    after = before.successor(before.policy)

    assert after.upstreams.replay is before.upstreams.replay


async def test_a_call_to_an_unknown_path_is_recorded_too(tmp_path):
    for mode in ("record", "replay"):
        made = Switchyard.from_policy_text(
            policy("openai_chat", top='fallback_client = "provider"'),
            registry=registry_of(PLUGINS),
            connect=lambda client: ScriptedUpstream(script(), client.format, now=lambda: 0.0),
            world=World(environ={"PROVIDER_KEY": "k"} if mode == "record" else {}),
            replay=Replay(tmp_path, mode),
        )
        transport = httpx.ASGITransport(app=SwitchyardApp(made))
        async with httpx.AsyncClient(transport=transport, base_url="http://s.test") as client:
            answer = await client.get("/v1/files")
        assert answer.status_code == 404
    assert files(tmp_path)[0].endswith("-fallback-provider.json")


@formats
@streams
async def test_each_scenario_run_twice_sends_the_same_bytes(wire_format, stream):
    """What recordings stand on: nothing random or dated goes into an outgoing body."""
    runs = []
    for _ in range(2):
        text = policy(wire_format) + ROUTE
        async with Harness(text, plugins=[*PLUGINS, Stranger()], installed=False) as harness:
            for model in ("switchyard/plan-execute", "ask"):
                for request in requests(wire_format, model, stream=stream):
                    await harness.run(request)
            runs.append(
                [
                    (each.path, each.body, each.route, each.role)
                    for each in harness.upstream.requests
                ]
            )

    assert len(runs[0]) == 6
    assert runs[0] == runs[1]
