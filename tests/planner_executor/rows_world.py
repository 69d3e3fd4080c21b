"""A shop with a scripted planner and executor, asked in three wire formats through two doors.

Clock and ids are injected, so that what is sent and what is answered is the same in every run.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import httpx

import switchyard_demo_catalog
import switchyard_planner_executor
from switchyard_core import (
    WIRE_FORMATS,
    Outgoing,
    Request,
    RequestError,
    Switchyard,
    UpstreamError,
    WireFormat,
)
from switchyard_core.engine.calling import Upstreams
from switchyard_core.plugins import PluginRegistry
from switchyard_core.policy import Client, load_policy_text
from switchyard_core.replay import Replay
from switchyard_core.scripted import Script, ScriptedUpstream
from switchyard_core.switchyard import Switchyard
from switchyard_core.testing import FakeReply, registry_of
from switchyard_core.upstream.base import UpstreamResponse
from switchyard_core.wire import format_of

NOW = 1_700_000_000.0
#: What the providers of the shipped policy say in its recordings: a plan of four steps.
SCRIPT = Path(__file__).parents[2] / "policies/recordings/planner_executor.script.json"
ASKED = "help me put together a birthday gift for someone who likes photography under $200"
ROUTE = "team/shop"
PLANNER, EXECUTOR = "provider/planner-model", "provider/executor-model"
PLUGINS = (switchyard_planner_executor, switchyard_demo_catalog)

REQUEST = "REQUEST-WORD a present for somebody who takes pictures"
GOAL = "GOAL-WORD find a present"
#: Its words stand nowhere else, so that a call that holds one shows where it came from.
STEPS: tuple[tuple[str, str | None], ...] = (
    ("ACTION-ONE look for tripods", "tripod"),
    ("ACTION-TWO name the best one", None),
    ("ACTION-THREE write a card", None),
)
#: What the executor does with these steps: a search in the first one, and reasoning in all.
TURNS: tuple[dict[str, Any], ...] = (
    {
        "reasoning": "REASON-ONE a search first.",
        "encrypted": "b3BhcXVlLW9uZQ==",
        "calls": [{"name": "search_products", "arguments": {"query": "tripod"}, "id": "call_1"}],
        "usage": {"input": 100, "output": 10},
    },
    {
        "reasoning": "REASON-TWO there is one.",
        "encrypted": "b3BhcXVlLXR3bw==",
        "text": "RESULT-ONE the Pocket Tripod, $45.00.",
        "usage": {"input": 200, "output": 20, "cached": 50},
    },
    {
        "reasoning": "REASON-THREE only one.",
        "encrypted": "b3BhcXVlLXRocmVl",
        "text": "RESULT-TWO the tripod.",
        "usage": {"input": 300, "output": 30},
    },
    {"text": "RESULT-THREE many happy returns.", "usage": {"input": 400, "output": 40}},
)
PLANNER_USAGE = {"input": 50, "output": 5}


def plan_json(steps: Sequence[tuple[str, str | None]] = STEPS, goal: str = GOAL) -> str:
    """Return a plan as a planner answers with it."""
    rows = [
        {"step": number, "action": action, "query": query}
        for number, (action, query) in enumerate(steps, 1)
    ]
    return json.dumps({"goal": goal, "steps": rows})


def planned(text: str | None = None, **turn: Any) -> dict[str, Any]:
    """Return the planner's turn: the plan above, or another text."""
    return {"text": plan_json() if text is None else text, "usage": PLANNER_USAGE, **turn}


def policy(
    executor: WireFormat,
    planner: WireFormat | None = None,
    *,
    options: str = "",
    client: str = "max_retries = 0",
    planner_options: str = "",
    executor_options: str = "",
    top: str = "",
    tools: str = '["search_products"]',
) -> str:
    """Return a policy with one route, whose targets speak the formats."""
    return f"""
schema_version = 1
{top}

[llm_clients.planning]
format = "{planner or executor}"
base_url = "https://planning.test/v1"
api_key_env = "PLANNING_KEY"
{client}

[llm_clients.executing]
format = "{executor}"
base_url = "https://executing.test/v1"
api_key_env = "EXECUTING_KEY"
{client}

[targets.planner]
id = "{PLANNER}"
llm_client = "planning"
{planner_options}

[targets.executor]
id = "{EXECUTOR}"
llm_client = "executing"
{executor_options}

[routes.shop]
id = "{ROUTE}"
type = "planner_executor"
planner_target = "planner"
executor_target = "executor"
tools = {tools}
{options}
"""


def script_of(
    planner: Sequence[Mapping[str, Any]],
    executor: Sequence[Mapping[str, Any]],
    faults: Sequence[Mapping[str, Any]] = (),
) -> Script:
    """Return a script for the two roles; only the executor is offered tools.

    The faults are the executor's.
    """
    rows = [
        {"when": {"model": f"^{EXECUTOR}$"}, "turns": executor, "faults": faults},
        {"when": {"has_tools": True, "body": "You carry out"}, "turns": executor},
        {"turns": planner},
    ]
    return Script.model_validate_json(json.dumps({"version": 1, "scripts": rows}))


@dataclass
class Provider:
    """Both providers: keep what is sent, and play a script.

    Args:
        script: What they play.
        before: Awaited with each call before it is answered.
        instead: Gives the answer to a call in place of the script, ``None`` leaves it to that.
        sent: Everything that was sent, in order.
    """

    script: Script
    before: Callable[[Outgoing], Awaitable[None]] | None = None
    instead: Callable[[Outgoing], FakeReply | UpstreamError | None] | None = None
    sent: list[Outgoing] = field(default_factory=list)

    def connect(self, client: Client) -> _Line:
        return _Line(self, client.format)

    def bodies(self, role: str) -> list[dict[str, Any]]:
        """Return the bodies of the calls in a role."""
        return [json.loads(out.body) for out in self.sent if out.role == role]


class _Line:
    def __init__(self, provider: Provider, wire_format: WireFormat) -> None:
        self._provider = provider
        self._scripted = ScriptedUpstream(provider.script, wire_format, now=lambda: NOW)

    async def send(self, outgoing: Outgoing) -> UpstreamResponse:
        provider = self._provider
        provider.sent.append(outgoing)
        if provider.before is not None:
            await provider.before(outgoing)
        reply = provider.instead(outgoing) if provider.instead is not None else None
        if reply is None:
            return await self._scripted.send(outgoing)
        if isinstance(reply, UpstreamError):
            raise reply
        return UpstreamResponse(reply.status, reply.headers, _pieces(reply))

    async def aclose(self) -> None:
        pass


async def _pieces(reply: FakeReply) -> AsyncIterator[bytes]:
    for piece in reply.pieces():
        yield piece


def body_of(wire_format: WireFormat, text: str = REQUEST, **more: Any) -> dict[str, Any]:
    """Return a caller's body."""
    key = "input" if wire_format == "openai_responses" else "messages"
    body: dict[str, Any] = {"model": ROUTE, key: [{"role": "user", "content": text}]}
    if wire_format == "anthropic_messages":
        body["max_tokens"] = 2000
    if more.get("stream") and wire_format == "openai_chat":
        body["stream_options"] = {"include_usage": True}
    return {**body, **more}


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a caller gets.

    Args:
        wire_format: The caller's.
        status: HTTP status.
        headers: Names in lower case.
        body: The bytes.
        refused: The refusal, through the library.
    """

    wire_format: WireFormat
    status: int
    headers: Mapping[str, str]
    body: bytes = b""
    refused: RequestError | UpstreamError | None = None

    @property
    def streamed(self) -> bool:
        return self.headers.get("content-type", "").startswith("text/event-stream")

    @property
    def events(self) -> list[dict[str, Any]]:
        """The data of a stream's events."""
        lines = [line for line in self.body.decode().splitlines() if line.startswith("data:")]
        data = [line.removeprefix("data:").strip() for line in lines]
        return [json.loads(text) for text in data if text != "[DONE]"]

    @property
    def comments(self) -> list[str]:
        """The comments of a stream."""
        return [line[1:].strip() for line in self.body.decode().splitlines() if line[:1] == ":"]

    @property
    def tree(self) -> dict[str, Any]:
        """The whole body; of a stream the object that it comes to."""
        if not self.streamed:
            tree: dict[str, Any] = json.loads(self.body)
            return tree
        last = self.events[-1]
        if self.wire_format == "openai_responses":
            assert last["type"] == "response.completed"
            return {**last["response"], **{k: last[k] for k in ("switchyard",) if k in last}}
        if self.wire_format == "openai_chat":
            pieces = [e["choices"][0]["delta"].get("content") or "" for e in self.events]
            choice = {**last["choices"][0], "message": {"content": "".join(pieces)}}
            return {**last, "choices": [choice]}
        assert last["type"] == "message_stop"
        blocks: dict[int, str] = {}
        for event in self.events:
            if event["type"] == "content_block_delta":
                index = event["index"]
                blocks[index] = blocks.get(index, "") + event["delta"]["text"]
        end = next(event for event in self.events if event["type"] == "message_delta")
        return {**end, "content": [{"type": "text", "text": text} for text in blocks.values()]}

    @property
    def texts(self) -> list[str]:
        """The texts of its parts; Chat has one part."""
        tree = self.tree
        if self.wire_format == "openai_chat":
            return [tree["choices"][0]["message"]["content"]]
        if self.wire_format == "openai_responses":
            return [item["content"][0]["text"] for item in tree["output"]]
        return [block["text"] for block in tree["content"]]

    @property
    def text(self) -> str:
        return "".join(self.texts)

    @property
    def extension(self) -> dict[str, Any]:
        found: dict[str, Any] = self.tree["switchyard"]
        return found

    @property
    def usage(self) -> tuple[int, int]:
        """Tokens in, those of a cache included, and out."""
        usage = self.tree["usage"]
        if self.wire_format == "openai_chat":
            return usage["prompt_tokens"], usage["completion_tokens"]
        cached = usage.get("cache_read_input_tokens", 0)
        return usage["input_tokens"] + cached, usage["output_tokens"]

    @property
    def error(self) -> dict[str, Any]:
        """The error, with its word under ``code`` in every format."""
        if isinstance(self.refused, UpstreamError):
            return {"code": f"upstream_{self.refused.kind}", "message": self.refused.message}
        if self.refused is not None:
            plain = {"code": self.refused.code, "message": self.refused.message}
            return {**self.refused.details, **plain}
        error: dict[str, Any] = json.loads(self.body)["error"]
        if self.wire_format == "anthropic_messages":
            error["code"] = error["message"].rpartition("(")[2].rstrip(")")
        return error


@cache
def _registry() -> PluginRegistry:
    return registry_of(PLUGINS)


class Shop:
    """The policy above with its providers.

    Args:
        executor: Wire format of the executor.
        planner: Of the planner, if it is another.
        plans: Turns of the planner.
        turns: Turns of the executor.
        faults: Faults of the executor.
        before: See :class:`Provider`.
        instead: See :class:`Provider`.
        plugins: Further plugins.
        environ: Where keys stand; two fake ones unless given.
        one_target: Whether the planner's target carries the steps out as well.
        replay: Recordings to answer from or to make.
        settings: Of :func:`policy`.
    """

    def __init__(
        self,
        executor: WireFormat = "openai_responses",
        planner: WireFormat | None = None,
        *,
        plans: Sequence[Mapping[str, Any]] = (planned(),),
        turns: Sequence[Mapping[str, Any]] = TURNS,
        faults: Sequence[Mapping[str, Any]] = (),
        before: Callable[[Outgoing], Awaitable[None]] | None = None,
        instead: Callable[[Outgoing], FakeReply | UpstreamError | None] | None = None,
        plugins: Sequence[object] = (),
        environ: Mapping[str, str] | None = None,
        one_target: bool = False,
        replay: Replay | None = None,
        **settings: Any,
    ) -> None:
        self.provider = Provider(script_of(plans, turns, faults), before, instead)
        registry = _registry() if not plugins else registry_of((*PLUGINS, *plugins))
        text = policy(executor, planner, **settings)
        if one_target:
            text = text.replace('executor_target = "executor"', 'executor_target = "planner"')
        loaded = load_policy_text(text, "policy", registry)
        numbers = count(1)
        keys = {"PLANNING_KEY": "planning-key", "EXECUTING_KEY": "executing-key"}
        self.yard = Switchyard(
            Switchyard(
                loaded,
                registry,
                upstreams=Upstreams(loaded.clients, self.provider.connect, replay=replay),
                environ=keys if environ is None else environ,
                clock=lambda: NOW,
                monotonic=lambda: 0.0,
                new_id=lambda prefix: f"{prefix}_{next(numbers)}",
            )
        )
        self.app = self.yard.asgi()

    @property
    def planner_bodies(self) -> list[dict[str, Any]]:
        return self.provider.bodies("planner")

    @property
    def executor_bodies(self) -> list[dict[str, Any]]:
        return self.provider.bodies("executor")

    @property
    def raw(self) -> list[str]:
        """The text of everything that the executor got."""
        return [out.body.decode() for out in self.provider.sent if out.role == "executor"]

    async def ask(
        self,
        caller: WireFormat = "openai_chat",
        text: str = REQUEST,
        *,
        door: str = "library",
        headers: Mapping[str, str] | None = None,
        **more: Any,
    ) -> Answer:
        """Ask the route and read all of its answer."""
        body = json.dumps(body_of(caller, text, **more)).encode()
        if door == "library":
            return await self._library(caller, body, headers or {})
        transport = httpx.ASGITransport(app=self.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://shop.test") as client:
            response = await client.post(
                "/v1" + format_of(caller).paths["create"],
                content=body,
                headers={"content-type": "application/json", **(headers or {})},
            )
        return Answer(
            wire_format=caller,
            status=response.status_code,
            headers=dict(response.headers),
            body=response.content,
        )

    async def _library(self, caller: WireFormat, body: bytes, headers: Mapping[str, str]) -> Answer:
        request = Request(wire_format=caller, body=body, headers=list(headers.items()))
        try:
            async with await self.yard.handle(request) as response:
                answer = await response.read()
        except RequestError as error:
            return Answer(
                wire_format=caller, status=error.status, headers=error.headers, refused=error
            )
        except UpstreamError as error:
            return Answer(wire_format=caller, status=error.status, headers={}, refused=error)
        found = dict(response.headers)
        found["x-switchyard-phase"] = response.decision.phase
        found["x-switchyard-warning"] = ",".join(w.code for w in response.decision.warnings)
        return Answer(wire_format=caller, status=response.status, headers=found, body=answer)


def recorded(target: WireFormat = "openai_responses", **settings: Any) -> Shop:
    """Return a shop that plays the replies behind the shipped recordings."""
    planner, executor = json.loads(SCRIPT.read_text("utf-8"))["scripts"]
    return Shop(
        target,
        plans=planner["turns"],
        turns=executor["turns"],
        options="estimate_output_tokens = 80",
        top='[prices."provider/executor-model"]\nas_of = 2026-11-01\ninput = 0.25\noutput = 1.0',
        **settings,
    )


def history_of(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the conversation of a body that went out, without its instructions."""
    items = body.get("input", body.get("messages"))
    assert isinstance(items, list)
    return [item for item in items if item.get("role") not in ("system", "developer")]


def instructions_of(body: Mapping[str, Any]) -> str:
    """Return the instructions of a body that went out."""
    if "instructions" in body:
        return str(body["instructions"])
    if "system" in body:
        return str(body["system"])
    return str(body["messages"][0]["content"])


__all__ = [
    "ASKED",
    "EXECUTOR",
    "GOAL",
    "NOW",
    "PLANNER",
    "PLANNER_USAGE",
    "PLUGINS",
    "REQUEST",
    "ROUTE",
    "STEPS",
    "TURNS",
    "WIRE_FORMATS",
    "Answer",
    "Provider",
    "Shop",
    "body_of",
    "history_of",
    "instructions_of",
    "plan_json",
    "planned",
    "policy",
    "recorded",
    "script_of",
]
