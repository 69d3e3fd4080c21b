"""Faults of plugins and ours, the log, and that nothing secret is ever in it."""

from __future__ import annotations

import asyncio
import logging
import re
import stat

import httpx
import pytest

from switchyard_core import UpstreamError
from switchyard_core.wire import WIRE_FORMATS
from tests.server.servers import (
    ANSWER,
    KEY,
    PATHS,
    BytesProvider,
    Reply,
    body,
    running,
)

JSON = {"content-type": "application/json"}


class _Broken:
    def __init__(self, error):
        self._error = error

    async def route(self, request, context):
        raise self._error


class _Fault(BaseException):
    """What nobody expects."""


@pytest.mark.parametrize(
    "error",
    [RuntimeError, SystemExit, KeyboardInterrupt, asyncio.CancelledError, _Fault],
    ids=lambda error: error.__name__.lower(),
)
@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
async def test_fault_of_a_router_is_500_that_names_it_and_the_log_has_the_traceback(
    wire_format, error, caplog
):
    async with running(wire_format, BytesProvider()) as (url, app), httpx.AsyncClient() as client:
        app.engine.runtimes["coding"].router = _Broken(error("boom in the plugin"))
        answer = await client.post(
            url + PATHS[wire_format], content=body(wire_format), headers=JSON
        )
        assert (await client.get(url + "/health")).status_code == 200
    assert answer.status_code == 500
    assert "plugin_error" in answer.text
    assert "the plugin `plan_execute` of switchyard-core" in answer.text
    assert answer.headers["x-switchyard-request-id"] in answer.text
    assert "boom" not in answer.text
    assert "the router `plan_execute` (plugin `plan_execute`" in caplog.text
    assert f"failed: {error.__name__}: boom in the plugin" in caplog.text
    assert "Traceback" in caplog.text


async def test_answer_that_nobody_will_read_is_closed_when_the_router_fails_at_the_next_try():
    async def boom(*_):
        raise RuntimeError("boom")

    async def hang():
        await asyncio.sleep(30)

    # More than the engine reads of an error, so that the answer is not at its end.
    reply = Reply(status=400, chunks=(b"x" * 70_000, b"y"), between=hang)
    provider = BytesProvider(reply)
    async with running("openai_chat", provider) as (url, app), httpx.AsyncClient() as client:
        app.engine.runtimes["coding"].router.next = boom
        answer = await client.post(
            url + PATHS["openai_chat"], content=body("openai_chat"), headers=JSON
        )
        async with asyncio.timeout(5):
            await provider.seen[0].gone.wait()
    assert answer.status_code == 500


@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
async def test_fault_of_ours_tells_the_caller_the_request_id_only(wire_format, caplog, monkeypatch):
    async with running(wire_format, BytesProvider()) as (url, app), httpx.AsyncClient() as client:

        def fail(*_):
            raise ValueError("secret detail")

        monkeypatch.setattr(app.engine, "rewrite", fail)
        answer = await client.post(
            url + PATHS[wire_format], content=body(wire_format), headers=JSON
        )
    assert answer.status_code == 500
    assert "internal_error" in answer.text
    assert "secret detail" not in answer.text
    assert answer.headers["x-switchyard-request-id"] in answer.text
    assert answer.headers["x-switchyard-request-id"] in caplog.text
    assert "ValueError: secret detail" in caplog.text
    assert app.metrics.errors == {("coding", "internal_error"): 1}


async def test_rewrite_that_ends_programs_is_500_and_the_server_lives(monkeypatch):
    async with running("openai_chat", BytesProvider()) as (url, app), httpx.AsyncClient() as client:

        def leave(*_):
            raise SystemExit(3)

        monkeypatch.setattr(app.engine, "rewrite", leave)
        answer = await client.post(
            url + PATHS["openai_chat"], content=body("openai_chat"), headers=JSON
        )
        assert (await client.get(url + "/health")).status_code == 200
    assert (answer.status_code, answer.json()["error"]["code"]) == (500, "internal_error")


async def test_log_line_says_what_happened_and_nothing_private(caplog):
    caplog.set_level(logging.INFO, "switchyard")
    canary = "canary-8Qv3ZtLp"
    provider = BytesProvider(Reply(), Reply(status=500, chunks=(canary.encode(),)))
    content = body("openai_chat", edited=True).replace(b"fix", canary.encode())
    headers = {
        **JSON,
        "authorization": f"Bearer {canary}",
        "x-switchyard-session-id": canary,
        "cookie": canary,
    }
    environ = {"UPSTREAM_KEY": KEY, "OTHER": canary}
    async with (
        running("openai_chat", provider, environ=environ) as (url, _),
        httpx.AsyncClient() as client,
    ):
        target = url + PATHS["openai_chat"] + f"?key={canary}"
        answer = await client.post(target, content=content, headers=headers)
        await client.post(target, content=content, headers=headers)
        await client.post(target, content=b"{" + canary.encode(), headers=headers)
        await client.get(url + f"/{canary}?x={canary}", headers=headers)
        metrics = await client.get(url + "/metrics")
    lines = [r.getMessage() for r in caplog.records if r.name == "switchyard"]
    fields = dict(word.split("=", 1) for word in lines[0].split(" "))
    assert fields["request"] == answer.headers["x-switchyard-request-id"]
    assert (fields["route"], fields["target"]) == ("coding", "executor")
    assert (fields["phase"], fields["reason"]) == ("executing", "mutation_in_history")
    assert len(fields["identity"]) == 12
    assert (fields["status"], fields["in"], fields["out"]) == (
        "200",
        str(len(content)),
        str(len(ANSWER)),
    )
    assert float(fields["ms"]) >= float(fields["own_ms"]) > 0
    assert "error" not in fields
    assert "reason=latched" in lines[1]
    assert "status=500" in lines[1]
    assert "error=invalid_json" in lines[2]
    assert "status=404" in lines[3]
    assert "error=not_found" in lines[3]
    assert len(lines) == 4
    everything = caplog.text + metrics.text
    assert canary not in everything
    assert KEY not in everything
    assert canary not in str([(seen.headers) for seen in provider.seen])


async def test_warning_of_a_decision_reaches_header_and_log(caplog):
    caplog.set_level(logging.INFO, "switchyard")
    content = b'{"model":"coder","input":"go on","previous_response_id":"resp_1"}'
    async with (
        running("openai_responses", BytesProvider()) as (url, _),
        httpx.AsyncClient() as client,
    ):
        answer = await client.post(url + PATHS["openai_responses"], content=content, headers=JSON)
    assert answer.headers["x-switchyard-warning"] == "history_missing"
    assert "warning=history_missing" in caplog.text


async def test_log_bodies_keeps_bodies_as_private_files(tmp_path):
    provider = BytesProvider()
    folder = tmp_path / "bodies"
    content = body("openai_chat")
    for run in (1, 2):
        async with (
            running("openai_chat", provider, options={"log_bodies": folder}) as (url, _),
            httpx.AsyncClient() as client,
        ):
            await client.post(url + PATHS["openai_chat"], content=content, headers=JSON)
        assert (folder / f"{run}-in.json").read_bytes() == content
        assert (folder / f"{run}-out.json").read_bytes() == provider.seen[run - 1].body
    assert sorted(path.name for path in folder.iterdir()) == [
        "1-in.json",
        "1-out.json",
        "2-in.json",
        "2-out.json",
    ]
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}


async def test_log_line_holds_the_number_of_the_files_of_its_bodies(tmp_path, caplog):
    caplog.set_level(logging.INFO, "switchyard")
    async with (
        running("openai_chat", BytesProvider(), options={"log_bodies": tmp_path}) as (url, _),
        httpx.AsyncClient() as client,
    ):
        for content in (body("openai_chat"), b"{"):
            await client.post(url + PATHS["openai_chat"], content=content, headers=JSON)
    lines = [r.getMessage() for r in caplog.records if "request=" in r.getMessage()]
    assert [re.search(r" bodies=(\d+)( |$)", line)[1] for line in lines] == ["1", "2"]


@pytest.mark.parametrize(
    ("options", "more"),
    [
        ({}, {"environ": {}}),
        ({}, {"client": "forward_auth = true"}),
        ({}, {"closed": True}),
        ({"dry_run": True}, {}),
    ],
    ids=["no_key", "no_credential", "no_connection", "dry_run"],
)
async def test_log_bodies_keeps_no_outgoing_body_that_was_not_sent(tmp_path, options, more):
    more = dict(more)
    closed = more.pop("closed", False)
    async with (
        running(
            "openai_chat", BytesProvider(), options={"log_bodies": tmp_path, **options}, **more
        ) as (url, app),
        httpx.AsyncClient() as client,
    ):
        if closed:
            refuse(app)
        await client.post(url + PATHS["openai_chat"], content=body("openai_chat"), headers=JSON)
    assert [path.name for path in tmp_path.iterdir()] == ["1-in.json"]


def refuse(app):
    """Make every connection of an application fail."""

    async def send(_):
        raise UpstreamError("cannot connect to a provider", kind="connect")

    upstream = app.engine.upstreams.of(app.engine.policy.clients["provider"])
    upstream.send = send


async def test_second_try_of_a_request_is_kept_and_told(tmp_path):
    refused = Reply(status=400, chunks=(b'{"error":{"code":"invalid_encrypted_content"}}',))
    provider = BytesProvider(refused, Reply())
    content = body("openai_responses", edited=True).replace(
        b',{"type":"function_call"',
        b',{"type":"reasoning","id":"r","summary":[],"encrypted_content":"xx"},'
        b'{"type":"function_call"',
    )
    async with (
        running("openai_responses", provider, options={"log_bodies": tmp_path}) as (url, _),
        httpx.AsyncClient() as client,
    ):
        answer = await client.post(url + PATHS["openai_responses"], content=content, headers=JSON)
    assert answer.status_code == 200
    assert answer.headers["x-switchyard-warning"] == "reasoning_dropped"
    assert b"encrypted_content" in (tmp_path / "1-out.json").read_bytes()
    assert (tmp_path / "1-out-2.json").read_bytes() == provider.seen[1].body
    assert b"encrypted_content" not in provider.seen[1].body


async def test_missing_variable_of_the_key_is_500_that_names_it():
    async with (
        running("openai_chat", BytesProvider(), environ={}) as (url, _),
        httpx.AsyncClient() as client,
    ):
        answer = await client.post(
            url + PATHS["openai_chat"], content=body("openai_chat"), headers=JSON
        )
    assert answer.status_code == 500
    assert "`UPSTREAM_KEY`" in answer.json()["error"]["message"]
