"""Acceptance: a step that fails is told with all that was done, and no SDK runs it again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import anthropic
import openai
import pytest

from switchyard_core import WIRE_FORMATS
from switchyard_core.testing import FakeReply
from tests.planner_executor.rows_world import (
    REQUEST,
    STEPS,
    TURNS,
    Shop,
    body_of,
    history_of,
    plan_json,
    planned,
)
from tests.sdk.stand import Port, Watched, listening

every_target = pytest.mark.parametrize("target", WIRE_FORMATS)
every_caller = pytest.mark.parametrize("caller", WIRE_FORMATS)

SEARCH = {"name": "search_products", "arguments": {"query": "tripod"}, "id": "call_9"}
#: Step 2 begins with this turn of the executor.
SECOND = 2

#: An answer in each format that waits for what no tool is, and the word for it.
UNFAMILIAR = {
    "openai_chat": (
        "function_call",
        {
            "choices": [
                {
                    "message": {
                        "role": "assistant",
                        "content": "Look:",
                        "function_call": {"name": "search_products", "arguments": "{}"},
                    },
                    "finish_reason": "function_call",
                }
            ]
        },
    ),
    "openai_responses": (
        "custom_tool_call",
        {
            "status": "completed",
            "output": [
                {"type": "custom_tool_call", "call_id": "c", "name": "patch", "input": "x"},
                {
                    "type": "function_call",
                    "call_id": "d",
                    "name": "search_products",
                    "arguments": "{}",
                },
            ],
        },
    ),
    "anthropic_messages": (
        "pause_turn",
        {"content": [{"type": "text", "text": "Searching"}], "stop_reason": "pause_turn"},
    ),
}


def failing(case: str, target: str) -> Shop:
    """Return a shop whose second step fails in one of the ways in which steps do."""
    if case in ("timeout", "run_timeout"):

        async def hold(outgoing):
            if b"ACTION-TWO" in outgoing.body:
                await asyncio.Event().wait()

        # The first step uses no tool, so nothing in it waits and no limit can end it.
        plan = plan_json([(action, None) for action, _ in STEPS])
        key = {"timeout": "step_timeout_s", "run_timeout": "run_timeout_s"}[case]
        return Shop(
            target,
            plans=[planned(plan)],
            turns=TURNS[1:],
            before=hold,
            options=f"{key} = 0.05",
        )
    if case == "refused":
        refusal = {"text": "I will not do this.", "stop": "refusal"}
        return Shop(target, turns=[*TURNS[:SECOND], refusal, TURNS[3]])
    if case == "tool_rounds":
        turns = [*TURNS[:SECOND], *[{"calls": [SEARCH]}] * 3]
        return Shop(target, turns=turns, options="max_tool_rounds = 2")
    if case == "truncated":
        return Shop(target, turns=[*TURNS[:SECOND], {"text": "", "stop": "length"}])
    if case == "nonsense":
        return Shop(
            target,
            instead=lambda out: FakeReply(body=b"{}") if b"ACTION-TWO" in out.body else None,
        )
    if case == "unfamiliar_call":
        unfamiliar = FakeReply(body=UNFAMILIAR[target][1])
        return Shop(
            target,
            instead=lambda out: unfamiliar if b"ACTION-TWO" in out.body else None,
            options="progress_events = true",
        )
    fault = {"drop": {"kind": "drop"}, "cut": {"kind": "cut"}}.get(case)
    return Shop(target, faults=[{"turn": SECOND, **(fault or {"status": int(case)})}])


#: What is told of each case, and how many executor calls it takes.
CASES = {
    "400": ("gave status 400", 3),
    "401": ("gave status 401", 3),
    "429": ("gave status 429", 3),
    "500": ("gave status 500", 3),
    "529": ("gave status 529", 3),
    "drop": ("failed", 3),
    "cut": ("failed", 3),
    "nonsense": ("not an answer", 3),
    "timeout": ("it took longer than 0.05 s", 2),
    "run_timeout": ("the run took longer than 0.05 s", 2),
    "refused": ("the executor refused", 3),
    "tool_rounds": ("more than 2 times", 5),
    "truncated": ("cut before it said anything", 3),
    "unfamiliar_call": ("the executor waits for `", 3),
}


@every_target
@pytest.mark.parametrize("case", CASES)
async def test_failed_step_gives_what_was_done(case, target):
    told, calls = CASES[case]
    for stream in (False, True):
        for caller, door in zip(WIRE_FORMATS, ("library", "http", "library"), strict=True):
            shop = failing(case, target)

            answer = await shop.ask(caller, door=door, stream=stream)

            assert answer.status == 200
            extension = answer.extension
            assert extension["status"] == "failed"
            states = [step["status"] for step in extension["steps"]]
            assert states == ["completed", "failed", "not_run"]
            assert extension["steps"][0]["result"] == TURNS[1]["text"]
            assert told in extension["steps"][1]["error"]
            text = answer.text
            assert TURNS[1]["text"] in text
            assert "## Step 2: ACTION-TWO name the best one\n\nThis step failed: " in text
            assert told in text
            assert "Not run: step 3." in text
            assert "ACTION-THREE" not in "".join(shop.raw)
            assert len(shop.executor_bodies) == calls
            assert extension["estimate"]["actual"]["calls"] == calls
            if not stream:
                assert answer.headers["x-switchyard-phase"] == "failed"
                assert answer.headers["x-switchyard-steps"] == "1/3"


@every_target
async def test_step_that_waits_for_what_no_tool_is_calls_none_and_says_the_word(target):
    word, _ = UNFAMILIAR[target]
    shop = failing("unfamiliar_call", target)

    answer = await shop.ask(target, stream=True)

    second = answer.extension["steps"][1]
    assert f"`{word}`" in second["error"]
    assert second["tool_calls"] == []
    (failed,) = [line for line in answer.comments if '"event":"step_failed"' in line]
    assert '"code":"unfamiliar_call"' in failed


@every_caller
@pytest.mark.parametrize("stream", [False, True])
async def test_first_step_that_fails_is_a_200_too(caller, stream):
    shop = Shop(caller, faults=[{"turn": 0, "status": 500}])

    answer = await shop.ask(caller, door="http", stream=stream)

    assert answer.status == 200
    states = [step["status"] for step in answer.extension["steps"]]
    assert states == ["failed", "not_run", "not_run"]
    assert "Not run: steps 2, 3." in answer.text


@every_target
async def test_rest_runs_after_a_failed_step_where_the_policy_says_so(target):
    # The failed step left no turn of the executor: step 3 asks for turn 2 once more.
    shop = Shop(
        target, faults=[{"turn": SECOND, "status": 500}], options='on_step_error = "continue"'
    )

    answer = await shop.ask()

    states = [step["status"] for step in answer.extension["steps"]]
    assert states == ["completed", "failed", "completed"]
    assert answer.extension["status"] == "failed"
    assert "Not run" not in answer.text
    last = history_of(shop.executor_bodies[-1])
    assert "ACTION-THREE" in last[-1]["content"]


@every_target
async def test_tokens_of_a_failed_step_are_counted(target):
    refusal = {"text": "No.", "stop": "refusal", "usage": {"input": 7, "output": 3}}
    shop = Shop(target, turns=[*TURNS[:SECOND], refusal])

    answer = await shop.ask()

    assert answer.extension["steps"][1]["usage"]["input_tokens"] == 7
    assert answer.usage == (50 + 300 + 7, 5 + 30 + 3)


@every_caller
@pytest.mark.parametrize("stream", [False, True])
async def test_missing_key_of_the_executor_is_a_failed_step(caller, stream):
    shop = Shop(environ={"PLANNING_KEY": "k"})

    answer = await shop.ask(caller, door="http", stream=stream)

    assert answer.status == 200
    assert answer.extension["status"] == "failed"
    assert "EXECUTING_KEY" in answer.extension["steps"][0]["error"]


@every_caller
async def test_planner_that_is_too_slow_to_plan_again_ends_the_run(caller):
    async def hold(outgoing):
        if outgoing.role == "planner" and b"ACTION-TWO" in outgoing.body:
            await asyncio.Event().wait()

    shop = Shop(
        before=hold,
        faults=[{"turn": SECOND, "status": 500}],
        options='mode = "replan"\nplanner_timeout_s = 0.05',
    )

    answer = await shop.ask(caller, door="http")

    assert answer.status == 200
    assert (answer.extension["status"], answer.extension["reason"]) == ("failed", "planner_failed")
    states = [step["status"] for step in answer.extension["steps"]]
    assert states == ["completed", "failed", "not_run"]
    assert "no plan within 0.05 s" in answer.extension["steps"][1]["error"]


async def test_caller_that_goes_away_stops_the_run():
    begun, ended = asyncio.Event(), asyncio.Event()

    async def hold(outgoing):
        if outgoing.role == "executor":
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

    shop = Shop(before=hold)
    task = asyncio.ensure_future(shop.ask())
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert ended.is_set()
    assert len(shop.executor_bodies) == 1


# --- the official SDKs, with their own number of retries ---------------------------------


@pytest.fixture(scope="module")
def port() -> Iterator[Port]:
    with listening() as front:
        yield front


def client_of(caller: str, port: Port, *, blocking: bool) -> Any:
    if caller == "anthropic_messages":
        kind: Any = anthropic.Anthropic if blocking else anthropic.AsyncAnthropic
        client = kind(base_url=port.url, api_key="callers-key")
    else:
        kind = openai.OpenAI if blocking else openai.AsyncOpenAI
        client = kind(base_url=f"{port.url}/v1", api_key="callers-key")
    assert client.max_retries == 2
    return client


def endpoint_of(caller: str, client: Any) -> Any:
    if caller == "openai_chat":
        return client.chat.completions
    return client.responses if caller == "openai_responses" else client.messages


async def asked(caller, client, *, blocking, stream):
    """Ask through a client; return the machine-readable part of the answer."""
    body = body_of(caller, REQUEST)
    made = endpoint_of(caller, client).create(**body, **({"stream": True} if stream else {}))
    answer = made if blocking else await made
    if not stream:
        return answer.model_extra["switchyard"]
    events = list(answer) if blocking else [event async for event in answer]
    for event in reversed(events):
        holder = getattr(event, "response", None) or event
        if "switchyard" in (holder.model_extra or {}):
            return holder.model_extra["switchyard"]
    raise AssertionError(events)


@every_caller
@pytest.mark.parametrize("blocking", [True, False], ids=["blocking", "async"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("case", ["429", "500", "529", "drop", "tool_rounds", "refused"])
async def test_sdk_does_not_run_a_failed_step_again(port, caller, blocking, stream, case):
    shop, requests = failing(case, "anthropic_messages"), []
    port.app = Watched(shop.app, requests)
    client = client_of(caller, port, blocking=blocking)

    extension = await asked(caller, client, blocking=blocking, stream=stream)

    assert extension["status"] == "failed"
    assert extension["steps"][0]["result"] == TURNS[1]["text"]
    assert len(requests) == 1
    assert len(shop.planner_bodies) == 1
    assert len(shop.executor_bodies) == CASES[case][1]
    await _closed(client)


@every_caller
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_sdk_does_not_ask_again_for_a_plan_that_is_unusable(port, caller, stream):
    shop, requests = Shop(plans=[{"text": "no plan"}]), []
    port.app = Watched(shop.app, requests)
    client = client_of(caller, port, blocking=True)
    sdk = anthropic if caller == "anthropic_messages" else openai

    with pytest.raises(sdk.InternalServerError) as caught:
        await asked(caller, client, blocking=True, stream=stream)

    body = caught.value.body
    error = body.get("error", body)
    assert (error["reason"], error["raw_text"]) == ("not_json", "no plan")
    assert len(requests) == len(shop.provider.sent) == 1
    await _closed(client)


async def test_sdk_does_ask_again_when_the_planner_was_overloaded(port):
    replies = [FakeReply(status=503, headers=(("content-type", "application/json"),))]
    shop = Shop(instead=lambda _: replies.pop() if replies else None)
    requests: list[str] = []
    port.app = Watched(shop.app, requests)
    client = openai.OpenAI(base_url=f"{port.url}/v1", api_key="callers-key", max_retries=1)

    extension = await asked("openai_chat", client, blocking=True, stream=False)

    # Nothing had run, so this is what the retries of an SDK are for.
    assert extension["status"] == "completed"
    assert len(requests) == 2
    assert (len(shop.planner_bodies), len(shop.executor_bodies)) == (2, 4)
    client.close()


async def _closed(client: Any) -> None:
    closing = client.close()
    if closing is not None:
        await closing
