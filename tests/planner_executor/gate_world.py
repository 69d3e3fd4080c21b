"""A route with a planner and an executor that say what a test wants, behind two doors.

The two models are asked in one wire format, the caller speaks another. Clock and ids are
injected, so that what is sent and what is answered are the same whenever a test runs.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import pytest

import switchyard_planner_executor
from switchyard_core import (
    WIRE_FORMATS,
    Options,
    Outgoing,
    Request,
    RequestError,
    Switchyard,
    Tool,
    UpstreamError,
    WireFormat,
    hookimpl,
)
from switchyard_core.engine.calling import Upstreams
from switchyard_core.policy import load_policy_text
from switchyard_core.switchyard import Switchyard
from switchyard_core.testing import FakeReply, registry_of
from switchyard_core.upstream.base import UpstreamResponse
from switchyard_core.wire import format_of

NOW = 1_700_000_000.0
ROUTE = "team/shop"
TASK = "TASKWORD: a gift"
GOAL = "GOALWORD"

Reply = FakeReply | UpstreamError


class Words(Options):
    """Parameters of the tools."""

    words: str = ""


async def _look(arguments: Words) -> str:
    return f"found {arguments.words}: Tripod $45.00"


def tool(name: str, function: Callable[[Words], object] = _look, **more: Any) -> Tool:
    """Return a tool that takes some words."""
    return Tool(name=name, description=f"does {name}", parameters=Words, function=function, **more)


LOOK = tool("look")


class Shelf:
    """A plugin with tools."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._tools = tuple(tools)

    @hookimpl
    def switchyard_tools(self) -> Iterable[Tool]:
        return self._tools


def plan_of(*actions: str | tuple[str, str], first: int = 1, goal: str = GOAL) -> dict[str, Any]:
    """Return a plan; a pair is an action with its query."""
    steps = []
    for number, action in enumerate(actions, first):
        text, query = action if isinstance(action, tuple) else (action, None)
        steps.append({"step": number, "action": text, "query": query})
    return {"goal": goal, "steps": steps}


#: Three steps, a search first.
PLAN = plan_of(("find tripods", "tripod"), "choose one", "write a card")


@dataclass(frozen=True)
class Say:
    """What a model answers, in no wire format yet.

    Args:
        text: Its text; a plan is written as JSON.
        calls: Name and arguments of tool calls; arguments as a tree or as text.
        stop: ``end``, or ``cut`` at a limit of tokens.
        refusal: Why it refuses.
        tokens: Input and output.
    """

    text: str | Mapping[str, Any] = ""
    calls: tuple[tuple[str, Any], ...] = ()
    stop: str = "end"
    refusal: str = ""
    tokens: tuple[int, int] = (100, 10)

    def in_format(self, wire_format: WireFormat, ids: Iterable[int]) -> FakeReply:
        """Return the reply as a provider of a wire format sends it."""
        text = self.text if isinstance(self.text, str) else json.dumps(self.text)
        made = [
            (f"call_{number}", name, given if isinstance(given, str) else json.dumps(given))
            for (name, given), number in zip(self.calls, ids, strict=False)
        ]
        return FakeReply(body=_WRITERS[wire_format](self, text, made))


def calls(*names: str | tuple[str, Any]) -> Say:
    """Return a reply that asks for tools."""
    return Say(calls=tuple((n, {"words": "tripod"}) if isinstance(n, str) else n for n in names))


def _chat(say: Say, text: str, made: list[tuple[str, str, str]]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": text or None}
    if say.refusal:
        message["refusal"] = say.refusal
    if made:
        message["tool_calls"] = [
            {"id": id_, "type": "function", "function": {"name": name, "arguments": given}}
            for id_, name, given in made
        ]
    stop = "length" if say.stop == "cut" else "tool_calls" if made else "stop"
    put, out = say.tokens
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "choices": [{"index": 0, "message": message, "finish_reason": stop}],
        "usage": {"prompt_tokens": put, "completion_tokens": out, "total_tokens": put + out},
    }


def _responses(say: Say, text: str, made: list[tuple[str, str, str]]) -> dict[str, Any]:
    output: list[dict[str, Any]] = []
    parts: list[dict[str, Any]] = []
    if text:
        parts.append({"type": "output_text", "text": text, "annotations": []})
    if say.refusal:
        parts.append({"type": "refusal", "refusal": say.refusal})
    if parts:
        output.append({"type": "message", "id": "msg_1", "role": "assistant", "content": parts})
    output += [
        {"type": "function_call", "id": f"fc_{id_}", "call_id": id_, "name": n, "arguments": a}
        for id_, n, a in made
    ]
    put, out = say.tokens
    cut = say.stop == "cut"
    return {
        "id": "resp_1",
        "object": "response",
        "status": "incomplete" if cut else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
        "output": output,
        "usage": {"input_tokens": put, "output_tokens": out, "total_tokens": put + out},
    }


def _messages(say: Say, text: str, made: list[tuple[str, str, str]]) -> dict[str, Any]:
    content: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
    content += [
        {"type": "tool_use", "id": id_, "name": name, "input": json.loads(given)}
        for id_, name, given in made
    ]
    stop = "max_tokens" if say.stop == "cut" else "tool_use" if made else "end_turn"
    if say.refusal:
        stop, content = "refusal", [{"type": "text", "text": say.refusal}]
    put, out = say.tokens
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "content": content,
        "stop_reason": stop,
        "usage": {"input_tokens": put, "output_tokens": out},
    }


_WRITERS: dict[WireFormat, Callable[[Say, str, list[tuple[str, str, str]]], dict[str, Any]]] = {
    "openai_chat": _chat,
    "openai_responses": _responses,
    "anthropic_messages": _messages,
}


class Models:
    """The provider of both models; each answers in the order of what it was given.

    Args:
        wire_format: What it speaks.
        planner: What the planner says.
        executor: What the executor says; when nothing is left, ``done``.
    """

    def __init__(
        self,
        wire_format: WireFormat,
        planner: Iterable[Say | Reply] = (),
        executor: Iterable[Say | Reply] = (),
    ) -> None:
        self.wire_format = wire_format
        self.sent: list[Outgoing] = []
        self.ended: list[Outgoing] = []
        self.says = {"planner": list(planner), "executor": list(executor)}
        #: Awaited with each call before it is answered.
        self.before: Callable[[Outgoing], Awaitable[None]] | None = None
        self._ids = count(1)

    def asked(self, role: str) -> list[dict[str, Any]]:
        """Return the bodies of the calls to one model."""
        return [json.loads(each.body) for each in self.sent if each.role == role]

    async def send(self, outgoing: Outgoing) -> UpstreamResponse:
        """Answer one call."""
        self.sent.append(outgoing)
        if self.before is not None:
            await self.before(outgoing)
        queue = self.says[outgoing.role]
        reply = queue.pop(0) if queue else Say(text="done")
        self.ended.append(outgoing)
        if isinstance(reply, Say):
            reply = reply.in_format(self.wire_format, self._ids)
        if isinstance(reply, UpstreamError):
            raise reply
        return UpstreamResponse(reply.status, reply.headers, _body(reply.pieces()))

    async def aclose(self) -> None:
        """Do nothing."""


async def _body(pieces: tuple[bytes, ...]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What a caller got.

    Args:
        status: HTTP status.
        headers: By name in lower case; of an answer through the library those of the response.
        body: The body as a tree.
        caller: The caller's wire format.
    """

    status: int
    headers: Mapping[str, str]
    body: Mapping[str, Any]
    caller: WireFormat

    @property
    def extension(self) -> dict[str, Any]:
        """The machine-readable part."""
        assert self.status == 200, self.body
        found: dict[str, Any] = self.body["switchyard"]
        return found

    @property
    def error(self) -> dict[str, Any]:
        """The error object."""
        found: dict[str, Any] = self.body["error"]
        return found

    @property
    def code(self) -> str:
        """Code of the error."""
        error = self.error
        return str(error.get("code") or error["message"].rpartition("(")[2].rstrip(")"))

    @property
    def text(self) -> str:
        """All visible text."""
        if self.caller == "openai_chat":
            return str(self.body["choices"][0]["message"]["content"])
        if self.caller == "openai_responses":
            return "".join(i["content"][0]["text"] for i in self.body["output"])
        return "".join(block["text"] for block in self.body["content"])

    @property
    def tokens(self) -> tuple[int, int]:
        """Input and output tokens as the wire format states them."""
        usage = self.body["usage"]
        if self.caller == "openai_chat":
            return usage["prompt_tokens"], usage["completion_tokens"]
        return usage["input_tokens"], usage["output_tokens"]

    @property
    def statuses(self) -> list[str]:
        """Status of each step."""
        return [step["status"] for step in self.extension["steps"]]

    @property
    def warnings(self) -> list[str]:
        """Codes of the warnings."""
        return [warning["code"] for warning in self.extension["warnings"]]


def policy_text(  # one per part that a reload may change
    wire_format: WireFormat,
    options: str,
    tools: Iterable[str],
    *,
    prices: str = "",
    model: str = "executor-model",
    executor: str = "executor",
) -> str:
    """Return the policy of the shop."""
    listed = ", ".join(f'"{name}"' for name in tools)
    return f"""
schema_version = 1

[llm_clients.provider]
format = "{wire_format}"
base_url = "https://provider.test/v1"
api_key_env = "PROVIDER_KEY"
max_retries = 0

[targets.planner]
id = "planner-model"
llm_client = "provider"

[targets.executor]
id = "{model}"
llm_client = "provider"

[routes.shop]
id = "{ROUTE}"
type = "planner_executor"
planner_target = "planner"
executor_target = "{executor}"
tools = [{listed}]
{options}

{prices}
"""


PRICES = """
[prices."planner-model"]
as_of = 2026-01-01
input = 2.0
output = 8.0

[prices."executor-model"]
as_of = 2026-01-01
input = 1.0
output = 4.0
"""

Lane = tuple[WireFormat, WireFormat, str]
#: Caller, target and door: each caller and each target through each door, in six lanes.
LANES: tuple[Lane, ...] = tuple(
    (WIRE_FORMATS[number], WIRE_FORMATS[(number + shift) % 3], door)
    for shift, door in enumerate(("library", "http"))
    for number in range(3)
)


lanes = pytest.mark.parametrize("lane", LANES, ids="-".join)


class Shop:
    """One ``planner_executor`` route.

    Args:
        lane: Wire format of the caller and of the targets, and the door.
        options: Further lines of the route.
        plan: What the planner says first.
        planner: All that the planner says, in place of ``plan``.
        executor: What the executor says.
        tools: Tools of the route.
        prices: The tables of prices.
    """

    def __init__(
        self,
        lane: Lane = LANES[0],
        options: str = "",
        *,
        plan: Mapping[str, Any] = PLAN,
        planner: Iterable[Say | Reply] | None = None,
        executor: Iterable[Say | Reply] = (),
        tools: Iterable[Tool] = (LOOK,),
        prices: str = "",
    ) -> None:
        self.caller, self.target, self.door = lane
        self.now = NOW
        self.tools = tuple(tools)
        self.prices = prices
        self.registry = registry_of([switchyard_planner_executor, Shelf(self.tools)])
        self.models = Models(self.target, [Say(plan)] if planner is None else planner, executor)
        policy = self._policy(options, [each.name for each in self.tools])
        numbers = count(1)
        engine = Switchyard(
            policy,
            self.registry,
            upstreams=Upstreams(policy.clients, lambda _client: self.models),
            environ={"PROVIDER_KEY": "key"},
            clock=lambda: self.now,
            monotonic=lambda: 0.0,
            new_id=lambda prefix: f"{prefix}_{next(numbers):04d}",
        )
        self.yard = Switchyard(engine)
        self.app = self.yard.asgi()
        self.client = httpx.AsyncClient(
            transport=httpx.ASGITransport(app=self.app), base_url="http://switchyard.test"
        )

    def _policy(self, options: str, tools: Iterable[str], **more: Any) -> Any:
        text = policy_text(self.target, options, tools, prices=self.prices, **more)
        return load_policy_text(text, "policy", self.registry, base_dir=Path())

    async def reload(
        self,
        options: str = "",
        *,
        tools: Iterable[str] | None = None,
        target: WireFormat | None = None,
        **more: Any,
    ) -> None:
        """Serve another policy of the same route from now on; see :func:`policy_text`."""
        self.target = target or self.target
        names = [each.name for each in self.tools] if tools is None else tools
        engine = self.yard.successor(self._policy(options, names, **more))
        self.yard = Switchyard(engine)
        await self.app.replace(engine)

    @property
    def store(self) -> Any:
        """The plan store of the route."""
        store = self.yard.runtimes["shop"].plans
        assert store is not None
        return store

    async def state(self, plan_id: str) -> str:
        """Return where a plan stands, ``""`` for none."""
        record = await self.store.get(plan_id)
        return record.state if record is not None else ""

    def request(
        self,
        text: str = TASK,
        *,
        headers: Mapping[str, str] | None = None,
        messages: list[dict[str, Any]] | None = None,
        **more: Any,
    ) -> Request:
        """Return a request of the caller."""
        said = messages if messages is not None else [{"role": "user", "content": text}]
        key = "input" if self.caller == "openai_responses" else "messages"
        body: dict[str, Any] = {"model": ROUTE, key: said, **more}
        if self.caller == "anthropic_messages":
            body.setdefault("max_tokens", 500)
        return Request(
            wire_format=self.caller, body=json.dumps(body).encode(), headers=dict(headers or {})
        )

    async def ask(self, text: str = TASK, **more: Any) -> Answered:
        """Send a request through the door; see :meth:`request`."""
        request = self.request(text, **more)
        if self.door == "library":
            return await self._by_library(request)
        return await self._by_http(request)

    async def go_on(self, word: str, plan: Answered, **more: Any) -> Answered:
        """Say a word about a plan that waits, in the header."""
        names = [word, plan.extension["plan_id"]]
        if word == "approve":
            names.append(plan.extension["plan_digest"])
        headers = {"x-switchyard-plan": " ".join(names), **more.pop("headers", {})}
        return await self.ask(**{"text": "go on", **more}, headers=headers)

    async def _by_library(self, request: Request) -> Answered:
        try:
            async with await self.yard.handle(request) as response:
                body = await response.read()
        except RequestError as error:
            written = format_of(self.caller).error_body(error, "req_1")
            return Answered(
                status=error.status,
                headers=error.headers,
                body=json.loads(written),
                caller=self.caller,
            )
        headers = {**dict(response.headers), "x-switchyard-phase": response.decision.phase}
        return Answered(
            status=response.status, headers=headers, body=_tree(body), caller=self.caller
        )

    async def _by_http(self, request: Request) -> Answered:
        path = "/v1" + format_of(self.caller).paths["create"]
        headers = [("content-type", "application/json"), *request.headers.items_]
        response = await self.client.post(path, content=request.body, headers=headers)
        return Answered(
            status=response.status_code,
            headers=dict(response.headers),
            body=_tree(response.content),
            caller=self.caller,
        )

    async def metrics(self) -> str:
        """Return what ``/metrics`` says."""
        return (await self.client.get("/metrics")).text


def _tree(body: bytes) -> dict[str, Any]:
    if body.startswith((b"data:", b"event:", b":")):
        return {"stream": body.decode()}
    tree: dict[str, Any] = json.loads(body)
    return tree


class Caller:
    """An HTTP client that can go away: it drives the application by hand.

    Args:
        app: The application.
        request: What is asked.
    """

    def __init__(self, app: Any, request: Request) -> None:
        self._app = app
        self._request = request
        self._gone = asyncio.Event()
        self.messages: list[dict[str, Any]] = []
        self.task = asyncio.create_task(self._serve())

    async def _serve(self) -> None:
        request = self._request
        told = False

        async def receive() -> dict[str, Any]:
            nonlocal told
            if not told:
                told = True
                return {"type": "http.request", "body": request.body, "more_body": False}
            await self._gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: dict[str, Any]) -> None:
            self.messages.append(message)

        headers = [(n.encode(), v.encode()) for n, v in request.headers.items_]
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "POST",
            "scheme": "http",
            "path": "/v1" + format_of(request.wire_format).paths["create"],
            "raw_path": b"",
            "query_string": b"",
            "headers": [(b"content-type", b"application/json"), *headers],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 2),
        }
        await self._app(scope, receive, send)

    async def leave(self) -> None:
        """Close the connection and wait until the server is done with it."""
        self._gone.set()
        await asyncio.wait_for(self.task, 5)
