"""One ``planner_executor`` route in the kit's harness, with models that say what a test wants.

The models' replies are in no wire format (:class:`ModelReply`); the bodies that they would get
are in :attr:`Shop.sent`. Where the provider's own bytes matter, :func:`scripted` plays a script.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any, Literal

import pytest

import switchyard_demo_catalog
import switchyard_planner_executor
from switchyard_core import (
    Failure,
    Options,
    Outgoing,
    PlanStoreType,
    Price,
    Request,
    Tool,
    WireFormat,
    hookimpl,
)
from switchyard_core.answering import (
    AnswerEvent,
    AskError,
    ModelCall,
    ModelReply,
    ModelUsage,
    RequestedCall,
)
from switchyard_core.models import Profile
from switchyard_core.policy import load_policy_text
from switchyard_core.stores import MemoryPlanStore
from switchyard_core.testing import FakeUpstream, Harness, conversation
from switchyard_core.wire import WIRE_FORMATS

ROOT = Path(__file__).parents[2]
PLUGINS = (switchyard_planner_executor, switchyard_demo_catalog)
ROUTE = "team/shop"
TASK = "TASK-WORD a gift"
GOAL = "GOAL-WORD"
PLANNER, EXECUTOR = "provider/planner-model", "provider/executor-model"
RECORDED_TASK = "help me put together a birthday gift for someone who likes photography under $200"

every_target = pytest.mark.parametrize("target", WIRE_FORMATS)
every_caller = pytest.mark.parametrize("caller", WIRE_FORMATS)
either_way = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])


# --- plans and tools -------------------------------------------------------------------------


def plan_of(*actions: str | tuple[str, str], first: int = 1, goal: str = GOAL) -> dict[str, Any]:
    """Return a plan; a pair is an action with its query."""
    steps = []
    for number, action in enumerate(actions, first):
        text, query = action if isinstance(action, tuple) else (action, None)
        steps.append({"step": number, "action": text, "query": query})
    return {"goal": goal, "steps": steps}


#: Its words are nowhere else, so that a body that has one shows where it came from.
PLAN = plan_of(
    ("ACTION-ONE find tripods", "tripod"), "ACTION-TWO choose one", "ACTION-THREE write a card"
)
OTHER = plan_of("ANOTHER action")


class Words(Options):
    """Parameters of the tools."""

    words: str = ""


async def _look(arguments: Words) -> str:
    return f"FOUND {arguments.words}: Tripod $45.00"


def tool(name: str, function: Callable[[Words], object] = _look, **more: Any) -> Tool:
    """Return a tool that takes some words."""
    return Tool(name=name, description=f"does {name}", parameters=Words, function=function, **more)


LOOK = tool("look")


class Shelf:
    """A plugin with tools, and with a plan store that a test can look into."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._tools = tuple(tools)
        self.store: MemoryPlanStore

    @hookimpl
    def switchyard_tools(self) -> Iterable[Tool]:
        return self._tools

    @hookimpl
    def switchyard_plan_stores(self) -> Iterable[PlanStoreType]:
        return [PlanStoreType(name="open", factory=self._make, summary="can be looked into")]

    def _make(self, capacity: int, ttl_s: float, clock: Callable[[], float]) -> MemoryPlanStore:
        self.store = MemoryPlanStore(capacity, ttl_s, clock)
        return self.store


# --- what models say -------------------------------------------------------------------------


def said(text: str | Mapping[str, Any], *, tokens: tuple[int, int] = (100, 10)) -> ModelReply:
    """Return a reply with a text; a plan is written as JSON."""
    text = text if isinstance(text, str) else json.dumps(text)
    return ModelReply(text=text, usage=ModelUsage(input_tokens=tokens[0], output_tokens=tokens[1]))


def calls(*names: str | tuple[str, Any]) -> ModelReply:
    """Return a reply that asks for tools, by name, with arguments as a tree or as text."""
    found = []
    for name in names:
        word, given = name if isinstance(name, tuple) else (name, {"words": "tripod"})
        arguments = given if isinstance(given, str) else json.dumps(given)
        found.append(RequestedCall(id="", name=word, arguments=arguments))
    return replace(said(""), calls=tuple(found))


REFUSED = ModelReply(refusal="I will not")
BLOCKED = calls(("report_blocked", {"reason": "WHY-WORD sold out"}))


def failed(status: int, target: str = "planner") -> AskError:
    """Return the error of a model whose provider answers with a status, or of one that is gone."""
    kind, code = ("status", "") if status else ("transport", "connect")
    failure = Failure(kind=kind, status=status, code=code, body=b"")
    return AskError(f"asking `{target}` gave status {status}", failure)


Says = ModelReply | AskError | str | Mapping[str, Any]


class Models:
    """Both models: each says in order what it was given; the executor goes on with ``done``.

    Args:
        planner: What the planner says.
        executor: What the executor says.
    """

    def __init__(self, planner: Iterable[Says], executor: Iterable[Says]) -> None:
        self.says = {"planner": list(planner), "executor": list(executor)}
        #: Awaited with each call before it is answered.
        self.before: Callable[[ModelCall], Awaitable[None]] | None = None
        self._ids = count(1)

    async def __call__(self, target: str, call: ModelCall) -> ModelReply | AskError:
        """Answer a call."""
        if self.before is not None:
            await self.before(call)
        queue = self.says[call.role]
        reply = queue.pop(0) if queue else "done"
        if isinstance(reply, AskError):
            return reply
        if not isinstance(reply, ModelReply):
            reply = said(reply)
        named = (replace(each, id=f"call_{next(self._ids)}") for each in reply.calls)
        return replace(reply, calls=tuple(named))


def scripted(
    planner: Sequence[Mapping[str, Any]],
    executor: Sequence[Mapping[str, Any]],
    faults: Sequence[Mapping[str, Any]] = (),
    **more: Any,
) -> FakeUpstream:
    """Return a provider that plays turns of both models; the faults are the executor's."""
    rows = [
        {"when": {"body": "You plan[.]"}, "turns": planner},
        {"turns": executor, "faults": faults},
    ]
    return FakeUpstream(script={"version": 1, "scripts": rows}, **more)


#: What the executor does with PLAN: a search in the first step, and reasoning in all.
TURNS: tuple[dict[str, Any], ...] = (
    {
        "reasoning": "REASON-ONE a search first.",
        "encrypted": "b3BhcXVlLW9uZQ==",
        "calls": [{"name": "look", "arguments": {"words": "tripod"}, "id": "call_1"}],
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
PLANNED = {"text": json.dumps(PLAN), "usage": {"input": 50, "output": 5}}
#: The same in no wire format.
RESULTS: tuple[Says, ...] = (calls("look"), "RESULT-ONE", "RESULT-TWO", "RESULT-THREE")


# --- the route -------------------------------------------------------------------------------

PRICES = f"""
[prices."{PLANNER}"]
as_of = 2026-01-01
input = 2.0
output = 8.0

[prices."{EXECUTOR}"]
as_of = 2026-01-01
input = 1.0
output = 4.0
"""


def policy_text(
    options: str = "",
    *,
    target: WireFormat = "openai_responses",
    planner_format: WireFormat | None = None,
    tools: Iterable[str] = ("look",),
    executor: str = "executor",
    model: str = EXECUTOR,
    target_options: str = "",
    more: str = "",
) -> str:
    """Return a policy with one route; ``target_options`` are lines of both targets."""
    listed = ", ".join(f'"{name}"' for name in tools)
    return f"""
schema_version = 1

[llm_clients.planning]
format = "{planner_format or target}"
base_url = "https://planning.test/v1"
api_key_env = "PLANNING_KEY"
max_retries = 0

[llm_clients.executing]
format = "{target}"
base_url = "https://executing.test/v1"
api_key_env = "EXECUTING_KEY"
max_retries = 0

[targets.planner]
id = "{PLANNER}"
llm_client = "planning"
{target_options}

[targets.executor]
id = "{model}"
llm_client = "executing"
{target_options}

[routes.shop]
id = "{ROUTE}"
type = "planner_executor"
planner_target = "planner"
executor_target = "{executor}"
tools = [{listed}]
{options}

{more}
"""


@dataclass(frozen=True, kw_only=True)
class View:
    """A target as a router sees it, without a policy."""

    name: str
    id: str
    wire_format: WireFormat = "openai_responses"
    origin: str = ""
    accepts: Profile = field(default_factory=Profile)
    context_window: int | None = None
    on_overflow: Literal["send", "stay", "reject"] = "send"
    price: Price | None = None
    structured_output: Literal["json_schema", "forced_tool", "prompt"] = "json_schema"

    def fits(self, _request: Request) -> bool:
        return True


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a caller got; ``headers`` of an answer through the library are those of an error."""

    caller: WireFormat
    status: int
    headers: Mapping[str, str]
    code: str
    message: str
    phase: str
    warnings: tuple[str, ...]
    raw: bytes

    @property
    def body(self) -> dict[str, Any]:
        tree: dict[str, Any] = json.loads(self.raw)
        return tree

    @property
    def stream(self) -> str:
        """The text of a stream."""
        return self.raw.decode()

    @property
    def error(self) -> dict[str, Any]:
        found: dict[str, Any] = self.body["error"]
        return found

    @property
    def extension(self) -> dict[str, Any]:
        """The machine-readable part."""
        assert self.status == 200, self.raw
        found: dict[str, Any] = self.body["switchyard"]
        return found

    @property
    def statuses(self) -> list[str]:
        """Status of each step."""
        return [step["status"] for step in self.extension["steps"]]

    @property
    def results(self) -> list[str]:
        """Result of each step."""
        return [step["result"] for step in self.extension["steps"]]

    @property
    def text(self) -> str:
        """All visible text."""
        if self.caller == "openai_chat":
            return str(self.body["choices"][0]["message"]["content"])
        if self.caller == "openai_responses":
            return "".join(item["content"][0]["text"] for item in self.body["output"])
        return "".join(block["text"] for block in self.body["content"])

    @property
    def tokens(self) -> tuple[int, ...]:
        """Input and output tokens as the wire format states them."""
        names = ("input_tokens", "output_tokens")
        if self.caller == "openai_chat":
            names = ("prompt_tokens", "completion_tokens")
        return tuple(self.body["usage"][name] for name in names)

    def refused(self, status: int, code: str) -> None:
        """Assert that the request was refused in a way that no SDK asks again."""
        assert (self.status, self.code) == (status, code), self.raw
        assert self.headers["x-should-retry"] == "false"


class Shop:
    """The route and its models.

    Args:
        options: Further lines of the route.
        caller: Wire format of the caller.
        target: Wire format of the targets.
        door: How it is asked: ``library`` or ``http``.
        plan: What the planner says first.
        planner: All that the planner says, in place of ``plan``.
        executor: What the executor says.
        tools: Tools of the route; of further plugins their names.
        plugins: Further plugins.
        upstream: The provider, in place of the models.
        harness: Further arguments of the harness.
        parts: Further arguments of :func:`policy_text`.
    """

    def __init__(
        self,
        options: str = "",
        *,
        caller: WireFormat = "openai_chat",
        target: WireFormat = "openai_responses",
        door: Any = "library",
        plan: Says = PLAN,
        planner: Iterable[Says] | None = None,
        executor: Iterable[Says] = (),
        tools: Iterable[Tool | str] = (LOOK,),
        plugins: Sequence[object] = (),
        upstream: FakeUpstream | None = None,
        harness: Mapping[str, Any] | None = None,
        **parts: Any,
    ) -> None:
        self.caller, self.target = caller, target
        self.models = Models([plan] if planner is None else planner, executor)
        self._shelf = Shelf(each for each in tools if isinstance(each, Tool))
        names = [each if isinstance(each, str) else each.name for each in tools]
        self._parts = {"tools": names, "target": target, **parts}
        self.harness = Harness(
            self._policy(options),
            plugins=[switchyard_planner_executor, self._shelf, *plugins],
            answers=self.models if upstream is None else None,
            upstream=upstream,
            door=door,
            **(harness or {}),
        )

    def _policy(self, options: str, **changes: Any) -> str:
        return policy_text(f'plan_store = "open"\n{options}', **{**self._parts, **changes})

    def reload(self, options: str = "", **changes: Any) -> None:
        """Serve another policy of the same route from now on; see :func:`policy_text`."""
        engine = self.harness.engine
        policy = load_policy_text(self._policy(options, **changes), "policy", engine.registry)
        self.harness.engine = engine.successor(policy)

    @property
    def store(self) -> MemoryPlanStore:
        """The plan store of the route."""
        return self._shelf.store

    async def state(self, plan: Answer) -> str:
        """Return the state of a plan in the store, ``""`` when it is not there."""
        record = await self.store.get(plan.extension["plan_id"])
        return record.state if record is not None else ""

    def request(self, text: Any = TASK, **more: Any) -> Request:
        """Return a request of the caller; see ``request`` of a conversation."""
        return conversation(self.caller).user(text).request(ROUTE, **more)

    async def ask(self, text: Any = TASK, *, request: Request | None = None, **more: Any) -> Answer:
        """Send a request through the door and return what the caller gets."""
        served = await self.harness.ask(request or self.request(text, **more))
        return Answer(
            caller=self.caller,
            status=served.status,
            headers=served.headers,
            code=served.code,
            message=served.message,
            phase=served.phase,
            warnings=served.warnings,
            raw=served.answer,
        )

    def events(self, **request: Any) -> AsyncGenerator[AnswerEvent]:
        """Return the events of an answer, in no wire format."""
        return self.harness.engine.answer(self.request(**request))

    async def tell(self, word: str, plan: Answer, text: str = "go on", **more: Any) -> Answer:
        """Say a word about a plan that waits, in the header."""
        return await self.ask(text, headers=about(word, plan), **more)

    def sent(self, role: str = "") -> list[Outgoing]:
        """Return what was sent to one model, or to both."""
        return [out for out in self.harness.upstream.requests if role in ("", out.role)]

    def bodies(self, role: str) -> list[dict[str, Any]]:
        """Return the bodies of the calls to one model."""
        return [json.loads(out.body) for out in self.sent(role)]

    def raw(self, role: str = "") -> str:
        """Return the text of everything that was sent to one model, or to both."""
        return "\n".join(out.body.decode() for out in self.sent(role))

    @property
    def roles(self) -> list[str]:
        """The role of each call."""
        return [out.role for out in self.sent()]


def readable(request: Request) -> Request:
    """Return a request as a router gets it: with what reads its wire format."""
    return request


def about(word: str, plan: Answer) -> dict[str, str]:
    """Return the header that says a word about a plan."""
    names = [word, plan.extension["plan_id"]]
    if word == "approve":
        names.append(plan.extension["plan_digest"])
    return {"x-switchyard-plan": " ".join(names)}


def history_of(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the conversation of a body that went out, without its instructions."""
    items: list[dict[str, Any]] = body["input"] if "input" in body else body["messages"]
    return [item for item in items if item.get("role") not in ("system", "developer")]


def instructions_of(body: Mapping[str, Any]) -> str:
    """Return the instructions of a body that went out."""
    for key in ("instructions", "system"):
        if key in body:
            return str(body[key])
    return str(body["messages"][0]["content"])
