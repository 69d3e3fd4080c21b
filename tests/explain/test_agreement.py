"""`explain`, `/v1/decision` and the server that calls a provider decide the same."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner

import switchyard_core.cli.demo
from switchyard_core import Switchyard
from switchyard_core.cli import cli
from switchyard_core.cli.demo.performance import Performance
from switchyard_core.explain import read_requests
from switchyard_core.plugins import PluginRegistry
from switchyard_core.upstream.base import UpstreamResponse
from switchyard_core.wire import WIRE_FORMATS, format_of
from switchyard_core.world import World
from tests.server.servers import KEY, policy

CAPTURES = sorted((Path(__file__).parents[1] / "data" / "captures").glob("*.json"))


#: Read once: the plugins do not change.
REGISTRY = PluginRegistry.from_entry_points()


async def explain(config, file, *options):
    arguments = ["explain", str(config), str(file), "--output", "json", *options]
    # The command has a loop of its own.
    return await asyncio.to_thread(CliRunner().invoke, cli, arguments, obj=REGISTRY)


class Provider:
    """Answers every request with ``{}`` and remembers it."""

    def __init__(self):
        self.seen = []

    async def send(self, outgoing):
        self.seen.append(outgoing)

        async def chunks():
            yield b"{}"

        async def close():
            pass

        return UpstreamResponse(200, (("content-type", "application/json"),), chunks(), close)

    async def aclose(self):
        pass


async def answers(tmp_path, text, content, provider):
    """Return the explanation of the command, of the page, and the answer of a fresh server."""
    config, file = tmp_path / "policy.toml", tmp_path / "request.json"
    config.write_text(text)
    file.write_bytes(content)
    run = await explain(config, file)
    (request,) = read_requests(content)
    asked = b'{"input_format": "%s", "headers": %s, "request": %s}' % (
        request.wire_format.encode(),
        json.dumps(dict(request.headers)).encode(),
        request.body,
    )
    app = Switchyard.from_policy(
        config,
        registry=REGISTRY,
        connect=lambda _client: provider,
        world=World(environ={"UPSTREAM_KEY": KEY}),
    ).asgi()
    transport = httpx.ASGITransport(app)
    path = "/v1" + format_of(request.wire_format).paths[request.endpoint]
    headers = {
        name: value
        for name, value in request.headers.items()
        if name not in ("host", "content-length", "transfer-encoding", "connection")
    }
    async with httpx.AsyncClient(transport=transport, base_url="http://server") as client:
        kind = {"content-type": "application/json"}
        page = await client.post("/v1/decision", content=asked, headers=kind)
        store = app.engine.runtimes["coding"].store
        assert await store.count() == 0
        answer = await client.post(path, content=request.body, headers=headers)
    return run, page, answer


def headers_of(explained):
    """Return the headers that a server adds for an explained decision."""
    return {
        "x-switchyard-route": explained["route"],
        "x-switchyard-target": explained["target"],
        "x-switchyard-phase": explained["phase"],
        "x-switchyard-reason": explained["reason"]["code"],
        "x-model-router-selected-model": explained["model"],
    }


@pytest.mark.parametrize("path", [pytest.param(p, id=p.stem) for p in CAPTURES])
async def test_explain_of_a_capture_says_what_the_server_does(tmp_path, path):
    content = path.read_bytes()
    (request,) = read_requests(content)
    provider = Provider()
    text = policy(request.wire_format, "http://127.0.0.1:1", top='default_route = "coding"')
    run, page, answer = await answers(tmp_path, text, content, provider)
    explained = json.loads(run.stdout)
    assert (run.exit_code, page.status_code, answer.status_code) == (0, 200, 200)
    assert explained == page.json()
    told = headers_of(explained)
    assert {name: answer.headers[name] for name in told} == told
    assert provider.seen[-1].path == explained["path"]
    assert provider.seen[-1].body == explained["body"].encode()


@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
async def test_timeline_of_a_whole_story_says_what_the_server_does(tmp_path, wire_format):
    performance = Performance(registry=REGISTRY)
    scenes = [scene async for _, scene in performance.play(wire_format)]
    recorded = []
    for scene in scenes:
        headers = {"x-switchyard-session-id": scene.step.session}
        if scene.step.final:
            headers["x-switchyard-session-final"] = "true"
        path = "/v1" + format_of(wire_format).paths["create"]
        about = {"path": path, "headers": headers, "body": json.loads(scene.body)}
        recorded.append({"request": about})
    file = tmp_path / "story.json"
    file.write_text(json.dumps(recorded))
    config = Path(switchyard_core.cli.demo.__file__).with_name("demo.toml")
    run = await explain(config, file, "--timeline")
    entries = json.loads(run.stdout)["timeline"]["requests"]
    served_as, explained_as = [], []
    for scene, entry in zip(scenes, entries, strict=True):
        refused = scene.step.expect.code if not scene.sent else ""
        keys = ("phase", "target", "reason")
        served_as.append(refused or [scene.headers[f"x-switchyard-{key}"] for key in keys])
        explained_as.append(entry["reason"] if refused else [entry[key] for key in keys])
    assert explained_as == served_as
    assert run.exit_code == 1  # one of the requests finds no room, as told
    assert "latch_capacity" in served_as
