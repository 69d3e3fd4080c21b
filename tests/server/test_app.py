from __future__ import annotations

import json

import httpx
import pytest

from switchyard_core import Identity, LatchRecord, Switchyard
from switchyard_core.wire import WIRE_FORMATS
from switchyard_core.world import World
from tests.server.servers import PATHS, BytesProvider, body, policy, running

JSON = {"content-type": "application/json"}


@pytest.fixture
def yard():
    return Switchyard.from_policy_text(
        policy("openai_chat", "http://127.0.0.1:1"), world=World(environ={"UPSTREAM_KEY": "k"})
    )


def in_process(app):
    transport = httpx.ASGITransport(app=app)
    return httpx.AsyncClient(transport=transport, base_url="http://test")


@pytest.mark.parametrize("path", ["/", "/prefix", "/v1/messages", "/a/b/"])
async def test_head_gives_200_without_a_body_under_any_prefix(yard, path):
    async with in_process(yard.asgi()) as client:
        answer = await client.head(path)
    assert (answer.status_code, answer.content) == (200, b"")


async def test_root_and_health_answer(yard):
    async with in_process(yard.asgi()) as client:
        assert (await client.get("/")).json()["name"] == "switchyard"
        assert (await client.get("/health")).json() == {"status": "ok"}


async def test_models_page_serves_both_shapes(yard):
    async with in_process(yard.asgi()) as client:
        page = (await client.get("/v1/models?limit=1000")).json()
        one = (await client.get("/models/coder")).json()
        slash = await client.get("/v1/models/team/coder")
        escaped = await client.get("/v1/models/team%2Fcoder")
        unknown = await client.get("/v1/models/gpt")
    assert [model["id"] for model in page["data"]] == ["coder", "team/coder"]
    assert (page["first_id"], page["last_id"], page["has_more"]) == ("coder", "team/coder", False)
    assert page["data"][0] == one
    assert {"object", "created", "owned_by", "type", "display_name", "created_at"} < set(one)
    assert slash.json() == escaped.json() == page["data"][1]
    assert unknown.status_code == 404
    assert "coder" in unknown.json()["error"]["message"]


async def test_decision_explains_and_changes_nothing(yard):
    app = yard.asgi()
    store = app.engine.runtimes["coding"].store
    asked = {
        "input_format": "openai_chat",
        "request": json.loads(body("openai_chat", edited=True)),
        "headers": {"X-Switchyard-Session-Id": "s"},
    }
    async with in_process(app) as client:
        answers = [await client.post("/v1/decision", json=asked) for _ in range(2)]
    assert await store.count() == 0
    assert answers[0].json() == answers[1].json()
    found = answers[0].json()
    assert (found["route"], found["target"], found["model"], found["phase"]) == (
        "coding", "executor", "small-model", "executing",
    )  # fmt: skip
    assert found["reason"]["code"] == "mutation_in_history"
    assert found["reason"]["facts"]["tool"] == "Edit"
    assert found["identity"]["session"] == "s"
    assert found["identity"]["source"] == "header:x-switchyard-session-id"
    assert found["warnings"] == []
    assert [rewrite["name"] for rewrite in found["rewrites"]][-1] == "set_model"
    assert found["trace"]["latched_after"] is True
    assert json.loads(found["body"])["model"] == "small-model"


async def test_decision_keeps_the_requests_own_bytes(yard):
    content = b'{"input_format":"openai_chat","request":' + body("openai_chat") + b"}"
    async with in_process(yard.asgi()) as client:
        found = (await client.post("/v1/decision", content=content, headers=JSON)).json()
    assert '"x":1.10, "big":' + "7" * 70 in found["body"]


async def test_decision_reports_a_full_store_as_a_warning():
    text = policy("openai_chat", "http://127.0.0.1:1", route="latch_capacity = 1")
    app = Switchyard.from_policy_text(text).asgi()
    asked = {"input_format": "openai_chat", "request": json.loads(body("openai_chat", edited=True))}
    async with in_process(app) as client:
        store = app.engine.runtimes["coding"].store
        for session, codes in (("a", []), ("b", ["latch_capacity"])):
            asked["headers"] = {"x-switchyard-session-id": session}
            found = (await client.post("/v1/decision", json=asked)).json()
            assert [warning["code"] for warning in found["warnings"]] == codes
            await _latch(store, "a")


async def _latch(store, session):
    await store.latch(Identity(session=session), LatchRecord())


@pytest.mark.parametrize(
    ("content", "param"),
    [
        ({"input_format": "x", "request": {}}, "input_format"),
        ({"request": {}}, "input_format"),
        ({"input_format": "openai_chat"}, "request"),
        ({"input_format": "openai_chat", "request": []}, "request"),
        ({"input_format": "openai_chat", "request": {}, "headers": {"a": 1}}, "headers"),
        ({"input_format": "openai_chat", "request": {}, "headers": []}, "headers"),
        ({"input_format": "openai_chat", "request": {}, "more": 1}, "more"),
        ({"input_format": "openai_chat", "request": {"model": 5}}, "model"),
    ],
)
async def test_decision_says_what_is_wrong_with_its_body(yard, content, param):
    async with in_process(yard.asgi()) as client:
        answer = await client.post("/v1/decision", json=content)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)


async def test_decision_headers_that_are_nested_too_deeply_give_400(yard):
    content = b'{"input_format":"openai_chat","request":{},"headers":{"a":'
    content += b"[" * 900 + b"]" * 900 + b"}}"
    async with in_process(yard.asgi()) as client:
        answer = await client.post("/v1/decision", content=content, headers=JSON)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "headers")


async def test_route_without_a_latch_store_has_no_gauges_of_one():
    text = policy("openai_chat", "http://127.0.0.1:1")
    text = text.replace('"plan_execute"', '"noop"').replace("capable_target", "target")
    text = text.replace('efficient_target = "executor"', "").replace(
        'planning_prompt = "Plan first."', ""
    )
    async with in_process(Switchyard.from_policy_text(text).asgi()) as client:
        metrics = (await client.get("/metrics")).text
    assert "switchyard_active_requests 0.0" in metrics
    assert "switchyard_latches" not in metrics


async def test_decision_body_that_is_not_json_gives_400(yard):
    async with in_process(yard.asgi()) as client:
        answer = await client.post("/v1/decision", content=b"{", headers=JSON)
    assert answer.json()["error"]["code"] == "invalid_json"


@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
async def test_dry_run_answers_with_the_explanation_and_calls_nobody(wire_format):
    provider = BytesProvider()
    async with (
        running(wire_format, provider, options={"dry_run": True}, environ={}) as (url, app),
        httpx.AsyncClient() as client,
    ):
        answer = await client.post(
            url + PATHS[wire_format],
            content=body(wire_format, edited=True),
            headers={**JSON, "x-switchyard-session-id": "s"},
        )
        assert await app.engine.runtimes["coding"].store.count() == 0
    assert answer.status_code == 200
    assert answer.headers["x-switchyard-target"] == answer.json()["target"] == "executor"
    assert provider.seen == []
    assert app.metrics.handoffs == {}


async def test_mounted_application_sees_the_path_below_its_mount(yard):
    sent = []

    async def send(message):
        sent.append(message)

    async def receive():
        return {"type": "http.request"}

    scope = {
        "type": "http", "method": "GET", "path": "/llm/v1/models/coder", "root_path": "/llm",
        "query_string": b"", "headers": [],
    }  # fmt: skip
    await yard.asgi()(scope, receive, send)
    assert sent[0]["status"] == 200
    assert json.loads(sent[1]["body"])["id"] == "coder"


async def test_websocket_is_refused(yard):
    sent = []

    async def send(message):
        sent.append(message)

    await yard.asgi()({"type": "websocket"}, None, send)
    assert sent == [{"type": "websocket.close"}]


async def test_end_of_the_lifespan_closes_the_engine(yard):
    closed = []

    async def close():
        closed.append(True)

    yard.aclose = close
    messages = iter([{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}])
    sent = []

    async def receive():
        return next(messages)

    async def send(message):
        sent.append(message["type"])

    await yard.asgi()({"type": "lifespan"}, receive, send)
    assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
    assert closed == [True]


async def test_metrics_and_stats_count_requests_without_identity():
    async with (
        running("openai_chat", BytesProvider()) as (url, _),
        httpx.AsyncClient() as client,
    ):
        await client.post(url + PATHS["openai_chat"], content=body("openai_chat"), headers=JSON)
        text = await client.get(url + "/metrics")
        stats = (await client.get(url + "/v1/stats")).json()
    assert text.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert (
        'requests_total{phase="planning",route="coding",status="200",target="planner"} 1.0'
        in text.text
    )
    assert 'switchyard_requests_without_identity{route="coding"} 1.0' in text.text
    assert 'switchyard_added_seconds_count{route="coding"} 1.0' in text.text
    assert stats["requests"][0]["status"] == 200
    assert stats["request_seconds"]["coding"]["count"] == 1
    assert {"name": "switchyard_latches", "route": "coding", "value": 0} in stats["gauges"]
