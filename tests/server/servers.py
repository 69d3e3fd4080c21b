"""Servers on loopback, in the test's own loop, and small policies and requests for them."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import uvicorn

from switchyard_core import Switchyard, WireFormat
from switchyard_core.server import Limits, SwitchyardApp
from switchyard_core.server.connections import Parser
from switchyard_core.server.run import configured
from switchyard_core.world import World

#: Path of the call that each wire format makes.
PATHS: Mapping[WireFormat, str] = {
    "openai_chat": "/v1/chat/completions",
    "openai_responses": "/v1/responses",
    "anthropic_messages": "/v1/messages",
}
KEY = "upstream-key-9hXk2LmQ"
#: A whole answer in each of the wire formats.
ANSWER = b'{"ok": true, "choices": [{}], "output": [], "content": []}'


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield  # the loop is the test's: its signals are not the server's


@contextlib.asynccontextmanager
async def served(app: Any, *, parser: Parser = "auto") -> AsyncIterator[str]:
    """Yield the URL of an application that runs in this loop, behind one of the HTTP parsers."""
    config = configured(app, getattr(app, "limits", Limits()), parser)
    config.host, config.port, config.lifespan = "127.0.0.1", 0, "auto"
    config.timeout_graceful_shutdown = 3
    server = _Server(config)
    task = asyncio.create_task(server.serve())
    while not server.started:
        assert not task.done(), task
        await asyncio.sleep(0.005)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        await task


@dataclass
class Seen:
    """One request as the provider got it."""

    method: str
    path: str
    query: str
    headers: dict[str, str]
    body: bytes
    gone: asyncio.Event = field(default_factory=asyncio.Event)

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Reply:
    """What the provider answers: these bytes, one message per chunk."""

    status: int = 200
    headers: tuple[tuple[str, str], ...] = (("content-type", "application/json"),)
    chunks: tuple[bytes, ...] = (ANSWER,)
    before: Callable[[], Awaitable[Any]] | None = None
    between: Callable[[], Awaitable[Any]] | None = None
    cut: bool = False


class BytesProvider:
    """An ASGI application that plays bytes and records what it was asked."""

    def __init__(self, *replies: Reply) -> None:
        self.replies = replies or (Reply(),)
        self.seen: list[Seen] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            while True:
                message = await receive()
                await send({"type": message["type"] + ".complete"})
                if message["type"] == "lifespan.shutdown":
                    return
        parts = []
        while True:
            message = await receive()
            parts.append(message.get("body", b""))
            if not message.get("more_body"):
                break
        headers = {n.decode("latin-1"): v.decode("latin-1") for n, v in scope["headers"]}
        seen = Seen(
            method=scope["method"],
            path=scope["path"],
            query=scope["query_string"].decode(),
            headers=headers,
            body=b"".join(parts),
        )
        self.seen.append(seen)
        reply = self.replies[min(len(self.seen), len(self.replies)) - 1]
        work = asyncio.create_task(self._answer(reply, send))
        leaving = asyncio.create_task(receive())
        try:
            await asyncio.wait({work, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if leaving.done():  # a sender that was blocked may end at the same time
                seen.gone.set()
                return
            work.result()
            if reply.cut:
                send.__self__.transport.close()
                await leaving
        finally:
            work.cancel()
            leaving.cancel()
            await asyncio.gather(work, leaving, return_exceptions=True)

    async def _answer(self, reply: Reply, send: Any) -> None:
        if reply.before is not None:
            await reply.before()
        headers = [(n.encode("latin-1"), v.encode("latin-1")) for n, v in reply.headers]
        await send({"type": "http.response.start", "status": reply.status, "headers": headers})
        for number, chunk in enumerate(reply.chunks):
            if number and reply.between is not None:
                await reply.between()
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        if not reply.cut:
            await send({"type": "http.response.body", "body": b"", "more_body": False})


def policy(
    wire_format: WireFormat,
    url: str,
    *,
    top: str = "",
    client: str = 'api_key_env = "UPSTREAM_KEY"',
    route: str = "",
    retries: int = 0,
) -> str:
    """Return a plan_execute policy on one provider."""
    return f"""
schema_version = 1
{top}
[llm_clients.provider]
format = "{wire_format}"
base_url = "{url}"
max_retries = {retries}
{client}

[targets.planner]
id = "big-model"
llm_client = "provider"

[targets.executor]
id = "small-model"
llm_client = "provider"

[routes.coding]
id = "coder"
aliases = ["team/coder"]
type = "plan_execute"
capable_target = "planner"
efficient_target = "executor"
planning_prompt = "Plan first."
{route}
"""


@contextlib.asynccontextmanager
async def running(
    wire_format: WireFormat,
    provider: BytesProvider,
    *,
    options: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
    **more: Any,
) -> AsyncIterator[tuple[str, SwitchyardApp]]:
    """Yield the URL and the application of a server on a provider."""
    async with served(provider) as upstream:
        yard = Switchyard.from_policy_text(
            policy(wire_format, upstream, **more),
            world=World(environ={"UPSTREAM_KEY": KEY} if environ is None else environ),
        )
        app = yard.asgi(**(options or {}))
        async with served(app) as url:
            yield url, app
            await no_call_holds_a_connection(app)


async def no_call_holds_a_connection(app: SwitchyardApp) -> None:
    """Check that every connection was given back, a moment after the last caller has left."""
    upstreams = app.engine.upstreams
    for _ in range(200):
        active = sum(count for _, state, count in upstreams.connections() if state == "active")
        if not active:
            return
        await asyncio.sleep(0.01)
    raise AssertionError(f"{active} connections are still active")


@contextlib.asynccontextmanager
async def connected(
    url: str, *parts: bytes
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Yield both ends of a connection to a server, after some bytes were sent."""
    host, port = url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        for part in parts:
            writer.write(part)
            await writer.drain()
        yield reader, writer
    finally:
        writer.transport.abort()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def all_of(reader: asyncio.StreamReader) -> bytes:
    """Return all that a server says until it closes the connection."""
    found = b""
    with contextlib.suppress(ConnectionError):
        while part := await reader.read(65536):
            found += part
    return found


async def answer_to(url: str, *parts: bytes) -> bytes:
    """Return all that a server says to some bytes until it closes the connection."""
    async with connected(url, *parts) as (reader, _):
        return await all_of(reader)


def body(wire_format: WireFormat, *, stream: bool = False, edited: bool = False) -> bytes:
    """Return a small request whose bytes no encoder would write; ``edited`` has an edit in it."""
    streams = '"stream":true,' if stream else ""
    call = json.dumps({"file_path": "a.py", "old_string": "a", "new_string": "b"})
    text = json.dumps(call)
    if wire_format == "openai_chat":
        history = '{"role":"user","content":"fix \\u00e4"}'
        if edited:
            history += (
                ',{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function",'
                f'"function":{{"name":"Edit","arguments":{text}}}}}]}}'
                ',{"role":"tool","tool_call_id":"c1","content":"done"}'
            )
        rest = f'"messages" : [{history}]'
    elif wire_format == "openai_responses":
        history = '{"role":"user","content":"fix \\u00e4"}'
        if edited:
            history += (
                f',{{"type":"function_call","call_id":"c1","name":"Edit","arguments":{text}}}'
                ',{"type":"function_call_output","call_id":"c1","output":"done"}'
            )
        rest = f'"input" : [{history}]'
    else:
        history = '{"role":"user","content":"fix \\u00e4"}'
        if edited:
            history += (
                ',{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"Edit",'
                f'"input":{call}}}]}}'
                ',{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1",'
                '"content":"done"}]}'
            )
        rest = f'"max_tokens":10,"messages" : [{history}]'
    text = f'{{ "x":1.10, "big":{"7" * 70},{streams}"model" : "coder",{rest}, "z":{{"d":1,"d":2}}}}'
    return text.encode()


EVENTS: Mapping[WireFormat, tuple[bytes, ...]] = {
    "openai_chat": (
        b'data: {"choices":[{"delta":{"content":"h"}}]}\n\ndata: {"id":"a","x":"h\xc3',
        b'\xa4"}\n\ndata: {"id" : "a"}\n\n',
        b"data: [DONE]\n\n",
    ),
    "openai_responses": (
        b'event: response.output_item.added\ndata: {"type":"x","sequence_number":0}\n\n',
        b'event: response.in_progress\ndata: {"type":"x","sequence_number":1}\n\n',
    ),
    "anthropic_messages": (
        b"event: content_block_start\ndata: {}\n\n",
        b'event: ping\ndata: {"type": "ping"}\n\n: comment\r\n\r\n',
    ),
}
EVENT_STREAM = (("content-type", "text/event-stream; charset=utf-8"),)
