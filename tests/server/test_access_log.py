"""Every request leaves exactly one line, and is counted where an operator looks for it."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from pathlib import Path

import httpx
import pytest

from switchyard_core import Switchyard
from switchyard_core.wire import WIRE_FORMATS
from switchyard_core.world import World
from tests.server.servers import (
    EVENT_STREAM,
    KEY,
    PATHS,
    BytesProvider,
    Reply,
    body,
    policy,
    running,
)

JSON = {"content-type": "application/json"}
CHAT = PATHS["openai_chat"]
FALLBACK = 'fallback_client = "provider"'


@pytest.fixture
def lines(caplog):
    """Return a function that reads the lines so far, each as its fields."""
    caplog.set_level(logging.DEBUG, "switchyard")

    def read():
        found = []
        for record in caplog.records:
            text = record.getMessage()
            if record.name == "switchyard" and " call=" in text:
                pairs = re.findall(r'(\w+)=("(?:[^"\\]|\\.)*"|\S+)', text)
                found.append({"level": record.levelname, **dict(pairs)})
        return found

    return read


REFUSED = {
    "too_large": (
        "POST",
        CHAT,
        {"content": b" " * 5000, "headers": JSON},
        413,
        "body_too_large",
        "create",
    ),
    "no_json": (
        "POST",
        CHAT,
        {"content": b"x", "headers": {"content-type": "text/plain"}},
        415,
        "unsupported_media_type",
        "create",
    ),
    "compressed": (
        "POST",
        CHAT,
        {"content": b"x", "headers": {**JSON, "content-encoding": "lz4"}},
        415,
        "unsupported_encoding",
        "create",
    ),
    "method": ("GET", CHAT, {}, 405, "method_not_allowed", "create"),
    "page_method": ("DELETE", "/v1/models", {}, 405, "method_not_allowed", "models"),
    "path": ("POST", "/v1/embeddings", {"content": b"{}"}, 404, "not_found", "unknown"),
    "model_page": ("GET", "/v1/models/nope", {}, 404, "model_not_found", "models"),
    "decision": (
        "POST",
        "/v1/decision",
        {"content": b"{}", "headers": JSON},
        400,
        "invalid_type",
        "decision",
    ),
}


@pytest.mark.parametrize("case", list(REFUSED))
async def test_refused_request_leaves_one_line_and_is_counted(case, lines):
    method, path, sent, status, code, call = REFUSED[case]
    async with (
        running("openai_chat", BytesProvider(), options={"max_body": 4096}) as (url, app),
        httpx.AsyncClient() as client,
    ):
        answer = await client.request(method, url + path, **sent)
    (line,) = lines()
    assert answer.status_code == status
    assert line["request"] == answer.headers["x-switchyard-request-id"]
    assert (line["status"], line["error"], line["call"]) == (str(status), code, call)
    assert (line["level"], float(line["ms"]) >= 0) == ("INFO", True)
    assert app.metrics.errors == {("", code): 1}
    routed = method == "POST" and call == "create"
    assert (app.metrics.requests.total(), app.metrics.other_requests.total()) == (
        routed,
        not routed,
    )


async def test_wrong_server_key_leaves_one_line_and_is_counted(lines):
    options = {"server_key": "server-key"}
    async with (
        running("openai_chat", BytesProvider(), options=options) as (url, app),
        httpx.AsyncClient() as client,
    ):
        for path in (CHAT, "/v1/decision"):
            answer = await client.post(
                url + path, content=body("openai_chat"), headers={**JSON, "x-api-key": "guess"}
            )
            assert answer.status_code == 401
    assert [(line["status"], line["error"]) for line in lines()] == [("401", "invalid_api_key")] * 2
    assert "guess" not in str(lines())
    assert app.metrics.errors == {("", "invalid_api_key"): 2}


async def test_fallback_call_leaves_one_line_with_the_clients_name(lines):
    provider = BytesProvider(Reply(status=404), Reply(), Reply(chunks=(), cut=True))
    async with (
        running("openai_chat", provider, top=FALLBACK) as (url, app),
        httpx.AsyncClient() as client,
    ):
        for _ in range(3):
            answer = await client.post(url + "/v1/embeddings?secret=1", content=b"{}")
            line = lines()[-1]
            assert line["request"] == answer.headers["x-switchyard-request-id"]
            assert (line["call"], line["client"], line["method"]) == (
                "fallback", "provider", "POST",
            )  # fmt: skip
    assert [(line["status"], line.get("error")) for line in lines()] == [
        ("404", "provider_404"),
        ("200", None),
        ("502", "upstream_closed"),
    ]
    assert "secret" not in str(lines())
    assert "embeddings" not in str(lines())
    assert app.metrics.other_requests == {
        ("fallback", "provider", status): 1 for status in ("404", "200", "502")
    }


async def test_stream_of_the_fallback_that_is_cut_counts_as_failed(lines):
    provider = BytesProvider(Reply(headers=EVENT_STREAM, chunks=(b"data: 1\n\n",), cut=True))
    async with (
        running("openai_chat", provider, top=FALLBACK) as (url, app),
        httpx.AsyncClient() as client,
    ):
        await client.get(url + "/v1/threads/t/events")
    (line,) = lines()
    assert (line["status"], line["error"]) == ("200", "upstream_cut")
    assert app.metrics.errors == {("", "upstream_cut"): 1}


async def test_probes_are_counted_and_quiet_unless_they_fail(lines):
    async with (
        running("openai_chat", BytesProvider()) as (url, app),
        httpx.AsyncClient() as client,
    ):
        await client.head(url + "/")
        for path in ("/", "/health", "/metrics", "/v1/stats"):
            await client.get(url + path)
        await client.put(url + "/health")
        await client.get(url + "/v1/models")
    levels = [line["level"] for line in lines()]
    assert levels == ["DEBUG"] * 5 + ["INFO"] * 2
    assert app.metrics.other_requests.total() == 7
    assert app.metrics.requests == {}


def _small(model="coder", **more):
    return json.dumps({"model": model, "messages": [{"role": "user", "content": "hi"}], **more})


async def test_full_route_is_seen_in_line_and_metrics(lines):
    headers = {**JSON, "x-switchyard-session-id": "s-2"}
    async with (
        running("openai_chat", BytesProvider(), route="latch_capacity = 1") as (url, app),
        httpx.AsyncClient() as client,
    ):
        for session in ("s-1", "s-2"):
            headers["x-switchyard-session-id"] = session
            await client.post(url + CHAT, content=body("openai_chat", edited=True), headers=headers)
        text = (await client.get(url + "/metrics")).text
    line = lines()[1]
    assert (line["route"], line["model"], line["error"]) == ("coding", "coder", "latch_capacity")
    assert re.fullmatch("[0-9a-f]{12}", line["identity"])
    assert 'switchyard_errors_total{code="latch_capacity",route="coding"} 1.0' in text
    assert app.metrics.requests["coding", "", "", "400"] == 1


async def test_refusals_name_the_route_that_is_known_and_the_model_that_was_asked(lines):
    long = "caf\u00e9 \n" + "x" * 500
    async with (
        running("openai_chat", BytesProvider()) as (url, app),
        httpx.AsyncClient() as client,
    ):

        async def post(path, content):
            await client.post(url + path, content=content, headers=JSON)

        await post(CHAT, _small("nope"))
        await post(CHAT, _small(long))
        await post(CHAT, b'{"model":"coder","messages":5}')
        await post(CHAT, b"{")
    found = [(line["error"], line.get("route"), line.get("model")) for line in lines()]
    assert found[0] == ("model_not_found", None, "nope")
    assert found[1][:2] == ("model_not_found", None)
    assert found[1][2].startswith('"caf\\u00e9 \\nxxx')
    assert len(found[1][2]) < 100
    assert found[2] == ("invalid_type", "coding", "coder")
    assert found[3] == ("invalid_json", None, None)
    assert set(app.metrics.errors) == {
        ("", "model_not_found"),
        ("coding", "invalid_type"),
        ("", "invalid_json"),
    }


async def test_missing_history_is_refused_under_the_name_of_its_route(lines):
    content = b'{"model":"coder","input":"go on","previous_response_id":"resp_1"}'
    route = 'on_missing_history = "reject"'
    async with (
        running("openai_responses", BytesProvider(), route=route) as (url, app),
        httpx.AsyncClient() as client,
    ):
        await client.post(url + PATHS["openai_responses"], content=content, headers=JSON)
    (line,) = lines()
    assert (line["route"], line["error"]) == ("coding", "history_required")
    assert app.metrics.errors == {("coding", "history_required"): 1}


ENDS = {
    "openai_chat": (
        b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n',
        b'data: {"error":{"message":"overloaded"}}\n\n',
    ),
    "openai_responses": (
        b'event: response.completed\ndata: {"type":"response.completed"}\n\n',
        b'event: response.failed\ndata: {"type":"response.failed"}\n\n',
    ),
    "anthropic_messages": (
        b'event: message_stop\ndata: {"type":"message_stop"}\n\n',
        b'event: error\ndata: {"type":"error"}\n\n',
    ),
}


@pytest.mark.parametrize("final", [False, True], ids=["running", "final"])
@pytest.mark.parametrize("end", ["whole", "error_event", "no_end"])
@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
async def test_stream_without_a_good_end_counts_as_failed(wire_format, end, final, lines):
    good, bad = ENDS[wire_format]
    tail = {"whole": good, "error_event": bad, "no_end": b": ping\n\n"}[end]
    provider = BytesProvider(Reply(headers=EVENT_STREAM, chunks=(b": hi\n\n", tail)))
    headers = {**JSON, "x-switchyard-session-id": "s"}
    if final:
        headers["x-switchyard-session-final"] = "true"
    async with running(wire_format, provider) as (url, app), httpx.AsyncClient() as client:
        content = body(wire_format, stream=True)
        answer = await client.post(url + PATHS[wire_format], content=content, headers=headers)
    (line,) = lines()
    assert answer.content == b": hi\n\n" + tail
    assert line["status"] == "200"
    assert line.get("error") == (None if end == "whole" else "stream_failed")
    assert app.metrics.errors == ({} if end == "whole" else {("coding", "stream_failed"): 1})


async def test_redirect_of_a_provider_is_an_error_that_names_the_base_url_and_leads_nowhere(lines):
    provider = BytesProvider(Reply(status=307, headers=(("location", "/elsewhere"),)))
    async with running("openai_chat", provider) as (url, app), httpx.AsyncClient() as client:
        answer = await client.post(url + CHAT, content=_small(), headers=JSON)
    (line,) = lines()
    assert (answer.status_code, line["status"]) == (502, "502")
    assert "location" not in answer.headers
    assert "elsewhere" not in answer.text
    assert "`base_url`" in answer.json()["error"]["message"]
    assert answer.headers["x-should-retry"] == "false"
    assert line["error"] == "upstream_redirect"
    assert app.metrics.errors == {("coding", "upstream_redirect"): 1}
    assert len(provider.seen) == 1


@pytest.mark.parametrize(
    ("status", "message", "suggested"),
    [
        (400, "Unsupported parameter: 'logprobs'.", True),
        (400, "prompt is too long", False),
        (404, "Unsupported parameter: 'logprobs'.", False),
    ],
)
async def test_refused_parameter_leaves_a_line_with_the_rule_to_paste(
    status, message, suggested, caplog
):
    caplog.set_level(logging.INFO, "switchyard")
    refusal = json.dumps({"error": {"message": message}}).encode()
    provider = BytesProvider(Reply(status=status, chunks=(refusal,)))
    async with running("openai_chat", provider) as (url, _), httpx.AsyncClient() as client:
        answer = await client.post(url + CHAT, content=_small(), headers=JSON)

    found = [r.getMessage() for r in caplog.records if "refuses a parameter" in r.getMessage()]
    rule = 'for `[targets.planner]`: fit = [{ path = "logprobs", do = "drop" }]'
    assert answer.content == refusal
    assert [line.endswith(rule) for line in found] == ([True] if suggested else [])


async def test_tokens_are_counted_by_target_and_stand_in_the_line(lines):
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 20,
        "prompt_tokens_details": {"cached_tokens": 70},
    }
    provider = BytesProvider(
        Reply(chunks=(json.dumps({"usage": usage, "choices": [{}]}).encode(),))
    )
    async with (
        running("openai_chat", provider) as (url, app),
        httpx.AsyncClient() as client,
    ):
        for _ in range(2):
            await client.post(url + CHAT, content=_small(), headers=JSON)
        text = (await client.get(url + "/metrics")).text
    line = lines()[0]
    found = [line[f"{kind}_tokens"] for kind in ("input", "cached", "output")]
    assert found == ["100", "70", "20"]
    assert 'switchyard_tokens_total{kind="cached",target="planner"} 140.0' in text
    assert app.metrics.tokens["planner", "output"] == 40


async def test_request_over_the_window_is_refused_under_the_name_of_its_route(lines):
    text = policy("openai_chat", "http://127.0.0.1:1").replace(
        'id = "big-model"', 'id = "big-model"\ncontext_window = 5\non_overflow = "reject"'
    )
    app = Switchyard.from_policy_text(text, world=World(environ={"UPSTREAM_KEY": KEY})).asgi()
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        await client.post(CHAT, content=_small(), headers=JSON)
    (line,) = lines()
    assert (line["route"], line["error"]) == ("coding", "context_length_exceeded")
    assert app.metrics.errors == {("coding", "context_length_exceeded"): 1}


async def test_request_that_is_broken_off_at_the_end_of_the_drain_leaves_its_line(lines):
    text = policy("openai_chat", "http://127.0.0.1:1")
    app = Switchyard.from_policy_text(text, world=World(environ={"UPSTREAM_KEY": KEY})).asgi()

    async def hang(*_, **__):
        await asyncio.sleep(30)

    app.engine.handle = hang
    sent = []

    async def receive():
        if not sent:
            sent.append("body")
            return {"type": "http.request", "body": b'{"model":"x"}'}
        return await asyncio.sleep(30, {"type": "http.disconnect"})

    scope = {
        "type": "http",
        "method": "POST",
        "path": CHAT,
        "headers": [(b"content-type", b"application/json")],
    }
    task = asyncio.create_task(app(scope, receive, None))
    async with asyncio.timeout(5):
        while not app.metrics.active:  # noqa: ASYNC110 - counters have no event
            await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    (line,) = lines()
    assert (line["status"], line["error"]) == ("500", "broken_off")


async def test_sample_line_of_the_docs_has_the_fields_that_are_printed(caplog, tmp_path):
    caplog.set_level(logging.INFO, "switchyard")
    usage = {"prompt_tokens": 1, "completion_tokens": 1}
    provider = BytesProvider(
        Reply(chunks=(json.dumps({"usage": usage, "choices": [{}]}).encode(),))
    )
    async with (
        running("openai_chat", provider, options={"log_bodies": tmp_path}) as (url, _),
        httpx.AsyncClient() as client,
    ):
        headers = {**JSON, "x-switchyard-session-id": "s"}
        for _ in range(2):
            await client.post(url + CHAT, content=body("openai_chat", edited=True), headers=headers)
        await client.post(url + CHAT, content=_small("nope"), headers=JSON)
    docs = Path(__file__).parents[2] / "docs" / "server.md"
    shown = re.findall(
        r"^\d{4}-\S+ \S+ INFO switchyard (request=.+)$", docs.read_text(), re.MULTILINE
    )
    printed = [r.getMessage() for r in caplog.records if "request=" in r.getMessage()][1:]
    names = [[word.split("=")[0] for word in line.split(" ")] for line in (*shown, *printed)]
    assert names[:2] == names[2:]
    assert KEY not in caplog.text
