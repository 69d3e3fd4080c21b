"""The answer on the wire: every format, both doors, whole and as a stream, and the SDKs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import anthropic
import openai
import pytest

from switchyard_core.testing import FakeReply
from switchyard_core.wire import WIRE_FORMATS
from tests.planner_executor.shop import (
    EXECUTOR,
    GOAL,
    PLAN,
    PLANNED,
    REFUSED,
    RESULTS,
    ROUTE,
    TASK,
    TURNS,
    Shop,
    about,
    calls,
    either_way,
    every_caller,
    every_target,
    scripted,
)
from tests.planner_executor.test_bodies import recorded
from tests.sdk.stand import Watched
from tests.support.listening import Port, listening

ACTIONS = [step["action"] for step in PLAN["steps"]]
ALWAYS = 'approval = "always"'


def in_order(text: str, words: list[str]) -> bool:
    """Return whether some words are in a text, first mentioned in this order."""
    places = [text.find(word) for word in words]
    return -1 not in places and places == sorted(places)


# --- both doors ------------------------------------------------------------------------------

#: What the executor says, and what is told after the plan.
SCENES = {
    "completed": (RESULTS, ["RESULT-ONE", "RESULT-TWO", "RESULT-THREE"]),
    "failed": (["RESULT-ONE", REFUSED], ["RESULT-ONE", "This step failed: ", "Not run: step 3."]),
}


@every_target
@every_caller
async def test_goal_and_every_action_come_before_any_result_through_both_doors(target, caller):
    for status, (executor, told) in SCENES.items():
        for stream in (False, True):
            shops = [
                Shop(caller=caller, target=target, door=door, executor=executor)
                for door in ("library", "http")
            ]

            library, http = [await shop.ask(stream=stream) for shop in shops]

            assert (library.status, http.status) == (200, 200)
            text = http.raw.decode()
            assert in_order(text, [GOAL, *ACTIONS, *told]), (status, stream)
            assert f'"status":"{status}"' in text
            if not stream:
                assert library.text == http.text
                assert library.extension | {"steps": []} == http.extension | {"steps": []}


@every_caller
@either_way
async def test_headers_say_where_the_plan_stands(caller, stream):
    shop = Shop(ALWAYS, caller=caller, door="http", planner=[PLAN] * 2)
    waits, other = await shop.ask(), await shop.ask(stream=stream)
    done = await shop.ask(headers=about("approve", waits), stream=stream)
    word = f"reject {other.headers['x-switchyard-plan-id']}"
    gone = await shop.ask(headers={"x-switchyard-plan": word}, stream=stream)

    assert (other.phase, gone.phase) == ("planned", "rejected")
    # The headers of a stream leave before the end.
    assert done.phase == ("running" if stream else "completed")
    assert done.headers.get("x-switchyard-steps") == (None if stream else "3/3")
    for answer in (other, done, gone):
        # It is the same plan each time.
        assert answer.headers["x-switchyard-plan-digest"] == waits.extension["plan_digest"]
    for answer, status in ((other, "planned"), (done, "completed"), (gone, "rejected")):
        assert f'"status":"{status}"' in answer.raw.decode()


@pytest.mark.parametrize("caller", WIRE_FORMATS)
async def test_what_is_said_about_plans_reaches_the_router_over_http(caller):
    shop = Shop(ALWAYS, caller=caller, door="http")

    for words, status, told in (
        (f"approve plan_of_nobody {'ab' * 32}", 404, "plan_of_nobody"),
        ("yes, go", 400, "x-switchyard-plan: approve <plan_id> <plan_digest>"),
    ):
        answer = await shop.ask(headers={"X-Switchyard-Plan": words})
        assert (answer.status, answer.headers["x-should-retry"]) == (status, "false")
        assert told in answer.message

    assert shop.sent() == []


# --- streams ---------------------------------------------------------------------------------


async def opened(shop: Shop, seen: bytes) -> tuple[bytes, bytes, Any]:
    """Read a stream whose executor is held back until the stream holds some text.

    Returns:
        What was read before the executor was let go, what came after, and the decision.
    """
    gate = asyncio.Event()

    async def hold(call):
        if call.role == "executor":
            await gate.wait()

    shop.models.before = hold
    before = b""
    request = shop.request(stream=True)
    async with await shop.harness.engine.handle(request) as response:
        chunks = aiter(response.chunks)
        async with asyncio.timeout(10):
            while seen not in before:
                before += await anext(chunks)
        gate.set()
        return before, b"".join([chunk async for chunk in chunks]), response.decision


@every_caller
async def test_stream_begins_with_the_plan_and_has_signs_of_life(caller):
    shop = Shop("keepalive_s = 0.005", caller=caller, executor=RESULTS)

    before, after, _ = await opened(shop, b"\n: ")

    # None while the planner works: nothing is sent then, not even headers.
    assert before.index(ACTIONS[2].encode()) < before.index(b"\n: ")
    assert b"RESULT" not in before
    assert in_order(after.decode(), ["RESULT-ONE", "RESULT-TWO", "RESULT-THREE"])


@every_caller
async def test_step_is_asked_for_only_when_the_caller_has_taken_the_plan(caller):
    shop = Shop(caller=caller)
    seen = b""

    request = shop.request(stream=True)
    async with await shop.harness.engine.handle(request) as response:
        chunks = aiter(response.chunks)
        while ACTIONS[2].encode() not in seen:
            seen += await anext(chunks)
            assert shop.roles == ["planner"]
        async for _ in chunks:
            pass

    assert len(shop.bodies("executor")) == 3


@every_caller
async def test_stream_of_the_last_step_begins_when_there_is_a_plan_too(caller):
    options = 'keepalive_s = 0.005\nanswer = "last_step"'
    shop = Shop(options, caller=caller, executor=["one", "two", "THREE"])

    before, after, decision = await opened(shop, b": ")

    assert ACTIONS[0].encode() not in before
    assert b"THREE" in after
    assert decision.phase == "running"


@every_caller
async def test_progress_is_told_in_comments_alone(caller):
    loud, quiet = [
        await Shop(options, caller=caller, executor=[calls("look")]).ask(stream=True)
        for options in ("progress_events = true", "")
    ]

    comments = [line[1:] for line in loud.stream.splitlines() if line.startswith(":")]
    events = [json.loads(line)["event"] for line in comments]
    assert events[:2] == ["plan_created", "step_started"]
    assert events[-1] == "run_finished"
    assert {"tool_called", "tool_returned", "step_text", "step_finished"} <= set(events)
    lines = [line for line in loud.stream.splitlines() if line and not line.startswith(":")]
    # All but the milliseconds of the tool, which are measured.
    assert len(lines) == len([line for line in quiet.stream.splitlines() if line])


# --- official SDKs, with their own number of retries -----------------------------------------


@pytest.fixture(scope="module")
def port() -> Iterator[Port]:
    with listening() as front:
        yield front


@dataclass
class Sdk:
    """The official SDK of a wire format, and a shop behind it.

    Args:
        shop: The shop; its caller says which SDK.
        port: Where it is served.
        asked: The requests that the shop got.
    """

    shop: Shop
    port: Port
    asked: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.port.app = Watched(self.shop.harness.app, self.asked)
        self.module = anthropic if self.shop.caller == "anthropic_messages" else openai

    def client(self, *, blocking: bool = True) -> Any:
        name = "Anthropic" if self.module is anthropic else "OpenAI"
        kind = getattr(self.module, name if blocking else f"Async{name}")
        path = "" if self.module is anthropic else "/v1"
        client = kind(base_url=self.port.url + path, api_key="callers-key")
        assert client.max_retries == 2
        return client

    def arguments(self) -> dict[str, Any]:
        said = [{"role": "user", "content": TASK}]
        if self.shop.caller == "openai_responses":
            return {"model": ROUTE, "input": said}
        limit = {"max_tokens": 2000} if self.module is anthropic else {}
        return {"model": ROUTE, "messages": said, **limit}

    def ask(self, *, stream: bool = False, **more: Any) -> Any:
        """Ask, and return the answer, or the machine-readable part of a stream."""
        with self.client() as client:
            resource = {
                "openai_chat": lambda: client.chat.completions,
                "openai_responses": lambda: client.responses,
                "anthropic_messages": lambda: client.messages,
            }[self.shop.caller]()
            if not stream:
                return resource.create(**self.arguments(), **more).model_extra["switchyard"]
            events = list(resource.create(**self.arguments(), stream=True, **more))
        extras = [(getattr(e, "response", None) or e).model_extra or {} for e in events]
        return next(extra["switchyard"] for extra in extras if "switchyard" in extra)

    def helper(self, client: Any) -> Any:
        """Return the SDK's stream helper for a request."""
        if self.shop.caller == "openai_chat":
            usage = {"include_usage": True}
            return client.chat.completions.stream(**self.arguments(), stream_options=usage)
        resource = client.messages if self.module is anthropic else client.responses
        return resource.stream(**self.arguments())


@dataclass
class Seen:
    """What the events of a stream helper came to so far."""

    caller: str
    text: str = ""
    extension: dict[str, Any] | None = None
    final: Any = None

    def see(self, event: Any) -> None:
        if event.type in ("content.delta", "response.output_text.delta"):
            self.text += event.delta
        elif event.type == "text":
            self.text += event.text
        holder = {"chunk": "chunk", "response.completed": "response"}.get(event.type)
        found = getattr(event, holder) if holder else event
        extra = getattr(found, "model_extra", None) or {}
        self.extension = extra.get("switchyard", self.extension)

    def final_text(self) -> str:
        if self.caller == "openai_chat":
            return str(self.final.choices[0].message.content)
        if self.caller == "openai_responses":
            return str(self.final.output_text)
        return "".join(block.text for block in self.final.content)


FINAL = {
    "openai_chat": "get_final_completion",
    "openai_responses": "get_final_response",
    "anthropic_messages": "get_final_message",
}


class Gate:
    """Holds the executor's calls back, in the loop of a server, until it is opened."""

    def __init__(self) -> None:
        self.asked = 0
        self._open = asyncio.Event()

    async def hold(self, call: Any) -> None:
        if call.role == "executor":
            self.asked += 1
            await self._open.wait()

    def open(self, port: Port) -> None:
        async def set_it() -> None:
            self._open.set()

        port.run(set_it())


@every_caller
@pytest.mark.parametrize("blocking", [True, False], ids=["blocking", "async"])
async def test_plan_reaches_a_streaming_client_before_the_first_step_runs(port, caller, blocking):
    gate, seen = Gate(), Seen(caller)
    shop = Shop(caller=caller, executor=RESULTS)
    shop.models.before = gate.hold
    sdk = Sdk(shop, port)

    def see(event):
        seen.see(event)
        if ACTIONS[2] in seen.text and not gate._open.is_set():
            assert "RESULT" not in seen.text
            gate.open(port)

    # Would wait for ever, and time out, if the plan came only with the first result.
    client = sdk.client(blocking=blocking)
    if blocking:
        with client, sdk.helper(client) as stream:
            for event in stream:
                see(event)
            seen.final = getattr(stream, FINAL[caller])()
    else:
        async with client, sdk.helper(client) as stream:
            async for event in stream:
                see(event)
            seen.final = await getattr(stream, FINAL[caller])()

    assert gate.asked == len(RESULTS)
    assert seen.text == seen.final_text()
    assert seen.extension["status"] == "completed"
    assert seen.extension["plan"] == PLAN
    assert seen.final.model == ROUTE


async def test_whole_text_reads_well_and_alike_in_every_format(port, snapshot):
    price = f'[prices."{EXECUTOR}"]\nas_of = 2026-11-01\ninput = 0.25\noutput = 1.0'
    for caller in WIRE_FORMATS:
        shop = recorded("estimate_output_tokens = 80", caller=caller, more=price)
        sdk, seen = Sdk(shop, port), Seen(caller)
        with sdk.client() as client, sdk.helper(client) as stream:
            for event in stream:
                seen.see(event)
            seen.final = getattr(stream, FINAL[caller])()

        assert seen.final_text() == snapshot(name="text")
        assert seen.text == seen.final_text()


@every_caller
async def test_usage_is_the_sum_of_all_calls(port, caller):
    sdk = Sdk(Shop(caller=caller, upstream=scripted([PLANNED], TURNS)), port)

    with sdk.client() as client, sdk.helper(client) as stream:
        seen = Seen(caller)
        for event in stream:
            seen.see(event)
        usage = getattr(stream, FINAL[caller])().usage

    if caller == "openai_chat":
        told = (usage.prompt_tokens, usage.completion_tokens)
        assert usage.total_tokens == sum(told)
        assert usage.prompt_tokens_details.cached_tokens == 50
    elif caller == "openai_responses":
        told = (usage.input_tokens, usage.output_tokens)
        assert usage.total_tokens == sum(told)
        assert usage.input_tokens_details.cached_tokens == 50
    else:
        assert usage.cache_read_input_tokens == 50
        told = (usage.input_tokens + 50, usage.output_tokens)
    assert told == (50 + 1000, 5 + 100)
    extension = seen.extension
    halves = [extension["usage"][role]["input_tokens"] for role in ("planner", "executor")]
    assert halves == [50, 1000]
    assert sum(step["usage"]["output_tokens"] for step in extension["steps"]) == 100


PROBLEMS = {
    "plan_capacity": (400, "BadRequestError"),
    "plan_unknown": (404, "NotFoundError"),
    "plan_changed": (412, "APIStatusError"),
    "plan_not_pending": (422, "UnprocessableEntityError"),
    "plan_expired": (410, "APIStatusError"),
    "plan_unusable": (502, "InternalServerError"),
}


@every_caller
def test_sdks_raise_their_own_error_and_do_not_ask_again(port, caller):
    options = f"{ALWAYS}\nplan_capacity = 1"
    for code, (status, name) in PROBLEMS.items():
        shop = Shop(options, caller=caller, plan="no plan" if code == "plan_unusable" else PLAN)
        sdk, headers = Sdk(shop, port), {}
        if code != "plan_unusable":
            found = sdk.ask()
            plan_id = "plan_no" if code == "plan_unknown" else found["plan_id"]
            digest = "0" * 64 if code == "plan_changed" else found["plan_digest"]
            if code != "plan_capacity":
                headers = {"x-switchyard-plan": f"approve {plan_id} {digest}"}
            shop.harness.now += 4000 * (code == "plan_expired")
            if code == "plan_not_pending":
                sdk.ask(extra_headers={"x-switchyard-plan": f"reject {plan_id}"})
        del sdk.asked[:]

        with pytest.raises(getattr(sdk.module, name)) as raised:
            sdk.ask(extra_headers=headers)

        assert raised.value.status_code == status, code
        assert code in json.dumps(raised.value.body)
        assert len(sdk.asked) == 1


@every_caller
@either_way
def test_sdks_read_and_approve_a_plan(port, caller, stream):
    sdk = Sdk(Shop(ALWAYS, caller=caller), port)

    plan = sdk.ask(stream=stream)
    keys = {key: plan[key] for key in ("plan_id", "plan_digest")}
    done = sdk.ask(stream=stream, extra_body={"switchyard": {"approve": keys}})

    assert (plan["status"], done["status"]) == ("planned", "completed")


@every_caller
@either_way
def test_sdks_do_not_run_a_failed_step_again(port, caller, stream):
    for fault in ({"kind": "drop"}, {"status": 429}, {"status": 500}):
        upstream = scripted([PLANNED], TURNS, [{"turn": 2, **fault}])
        shop = Shop(caller=caller, upstream=upstream)
        sdk = Sdk(shop, port)

        extension = sdk.ask(stream=stream)

        assert extension["status"] == "failed"
        assert extension["steps"][0]["result"] == TURNS[1]["text"]
        assert len(sdk.asked) == 1
        assert shop.roles == ["planner", *["executor"] * 3]


def test_sdk_does_ask_again_when_the_planner_was_overloaded(port):
    replies = [FakeReply(status=503)]

    async def instead(_out):
        return replies.pop() if replies else None

    shop = Shop(upstream=scripted([PLANNED], TURNS, before=instead))
    sdk = Sdk(shop, port)

    # Nothing had run, so this is what the retries of an SDK are for.
    assert sdk.ask()["status"] == "completed"
    assert len(sdk.asked) == 2
    assert shop.roles == ["planner", "planner", *["executor"] * 4]
