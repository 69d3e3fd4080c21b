"""Acceptance over a socket: what the official SDKs' stream helpers see, and when."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import anthropic
import openai
import pytest

from switchyard_core import WIRE_FORMATS, Outgoing
from tests.planner_executor.rows_world import REQUEST, ROUTE, STEPS, TURNS, Shop, planned, recorded
from tests.sdk.stand import Port, listening

every_caller = pytest.mark.parametrize("caller", WIRE_FORMATS)
either_client = pytest.mark.parametrize("blocking", [True, False], ids=["blocking", "async"])


class Gate:
    """Holds the executor's calls back until it is opened."""

    def __init__(self) -> None:
        self.asked = 0
        self._open = asyncio.Event()

    async def hold(self, outgoing: Outgoing) -> None:
        if outgoing.role == "executor":
            self.asked += 1
            await self._open.wait()

    def open(self, port: Port) -> None:
        async def set_it() -> None:
            self._open.set()

        port.run(set_it())


@pytest.fixture(scope="module")
def port() -> Iterator[Port]:
    with listening() as front:
        yield front


def client_of(caller: str, port: Port, *, blocking: bool, **options: Any) -> Any:
    """Return a client of the caller's SDK, with the SDK's own retries unless told otherwise."""
    if caller == "anthropic_messages":
        kind: Any = anthropic.Anthropic if blocking else anthropic.AsyncAnthropic
        return kind(base_url=port.url, api_key="callers-key", **options)
    kind = openai.OpenAI if blocking else openai.AsyncOpenAI
    return kind(base_url=f"{port.url}/v1", api_key="callers-key", **options)


def helper_of(caller: str, client: Any, text: str = REQUEST) -> Any:
    """Return the SDK's stream helper for a request."""
    said = [{"role": "user", "content": text}]
    if caller == "openai_chat":
        usage = {"include_usage": True}
        return client.chat.completions.stream(model=ROUTE, messages=said, stream_options=usage)
    if caller == "openai_responses":
        return client.responses.stream(model=ROUTE, input=said)
    return client.messages.stream(model=ROUTE, messages=said, max_tokens=2000)


class Seen:
    """What a helper's events came to so far."""

    def __init__(self, caller: str) -> None:
        self.caller = caller
        self.text = ""
        self.extension: dict[str, Any] | None = None
        self.final: Any = None

    def see(self, event: Any) -> None:
        kind = event.type
        if kind in ("content.delta", "response.output_text.delta"):
            self.text += event.delta
        elif kind == "text":
            self.text += event.text
        holder = {
            "chunk": lambda: event.chunk,
            "response.completed": lambda: event.response,
            "message_delta": lambda: event,
        }.get(kind, lambda: None)()
        extra = None if holder is None else holder.model_extra
        self.extension = (extra or {}).get("switchyard", self.extension)

    def final_text(self) -> str:
        if self.caller == "openai_chat":
            return str(self.final.choices[0].message.content)
        if self.caller == "openai_responses":
            return str(self.final.output_text)
        return "".join(block.text for block in self.final.content)

    def usage(self) -> tuple[int, int]:
        usage = self.final.usage
        if self.caller == "openai_chat":
            return usage.prompt_tokens, usage.completion_tokens
        cached = usage.cache_read_input_tokens if self.caller == "anthropic_messages" else 0
        return usage.input_tokens + cached, usage.output_tokens


FINAL = {
    "openai_chat": "get_final_completion",
    "openai_responses": "get_final_response",
    "anthropic_messages": "get_final_message",
}
LAST_OF_PLAN = f"3. {STEPS[2][0]}"


async def streamed(caller, port, gate, *, blocking, until=LAST_OF_PLAN):
    """Read a stream through the helper; open the gate when the plan was read."""
    seen = Seen(caller)
    client = client_of(caller, port, blocking=blocking)
    opened = False

    def see(event):
        nonlocal opened
        seen.see(event)
        if until in seen.text and not opened:
            assert "RESULT" not in seen.text
            opened = True
            gate.open(port)

    if blocking:
        with client, helper_of(caller, client) as stream:
            for event in stream:
                see(event)
            seen.final = getattr(stream, FINAL[caller])()
        return seen
    async with client, helper_of(caller, client) as stream:
        async for event in stream:
            see(event)
        seen.final = await getattr(stream, FINAL[caller])()
    return seen


@every_caller
@either_client
async def test_r17_plan_reaches_a_streaming_client_before_the_first_step_runs(
    port, caller, blocking
):
    gate = Gate()
    shop = Shop(before=gate.hold)
    port.app = shop.app

    # Would wait for ever, and time out, if the plan came only with the first result.
    seen = await streamed(caller, port, gate, blocking=blocking)

    assert gate.asked == len(TURNS)
    assert seen.text == seen.final_text()
    extension = seen.extension
    assert extension is not None
    assert extension["status"] == "completed"
    assert [step["status"] for step in extension["steps"]] == ["completed"] * 3
    assert extension["plan"]["steps"][2]["action"] == STEPS[2][0]
    assert seen.usage() == (50 + 1000, 5 + 100)
    assert seen.final.model == ROUTE


@every_caller
async def test_usage_is_the_sum_of_all_calls(port, caller):
    shop = Shop()
    port.app = shop.app
    with client_of(caller, port, blocking=True) as client:
        said = [{"role": "user", "content": REQUEST}]
        if caller == "openai_chat":
            answer = client.chat.completions.create(model=ROUTE, messages=said)
            usage = answer.usage
            told = (usage.prompt_tokens, usage.completion_tokens)
            assert usage.total_tokens == sum(told)
            assert usage.prompt_tokens_details.cached_tokens == 50
        elif caller == "openai_responses":
            answer = client.responses.create(model=ROUTE, input=said)
            usage = answer.usage
            told = (usage.input_tokens, usage.output_tokens)
            assert usage.total_tokens == sum(told)
            assert usage.input_tokens_details.cached_tokens == 50
        else:
            answer = client.messages.create(model=ROUTE, messages=said, max_tokens=2000)
            usage = answer.usage
            assert usage.cache_read_input_tokens == 50
            told = (usage.input_tokens + 50, usage.output_tokens)

    assert told == (1050, 105)
    extension = answer.model_extra["switchyard"]
    halves = extension["usage"]
    assert (halves["planner"]["input_tokens"], halves["executor"]["input_tokens"]) == (50, 1000)
    assert sum(step["usage"]["output_tokens"] for step in extension["steps"]) == 100


async def test_whole_text_reads_well_and_alike_in_every_format(port, snapshot):
    port.app = recorded().app
    for caller in WIRE_FORMATS:
        seen = Seen(caller)
        with client_of(caller, port, blocking=True) as client, helper_of(caller, client) as stream:
            for event in stream:
                seen.see(event)
            seen.final = getattr(stream, FINAL[caller])()

        assert seen.final_text() == snapshot(name="text")
        assert seen.text == seen.final_text()


@every_caller
async def test_last_step_alone_is_the_text_where_the_policy_says_so(port, caller):
    gate = Gate()
    shop = Shop(options='answer = "last_step"', before=gate.hold)
    port.app = shop.app
    client = client_of(caller, port, blocking=True)
    seen = Seen(caller)

    # The stream begins with the plan though it shows none: nobody takes it for dead.
    with client, helper_of(caller, client) as stream:
        gate.open(port)
        for event in stream:
            seen.see(event)

    assert seen.text == f"{TURNS[3]['text']}\n\n"
    assert seen.extension["plan"]["steps"][0]["action"] == STEPS[0][0]


@every_caller
@either_client
async def test_unusable_plan_is_asked_for_once_by_an_sdk_that_retries(port, caller, blocking):
    shop = Shop(plans=[planned("1. Search. 2. Buy.")])
    port.app = shop.app
    sdk = anthropic if caller == "anthropic_messages" else openai
    gate = Gate()

    with pytest.raises(sdk.APIStatusError) as caught:
        await streamed(caller, port, gate, blocking=blocking)

    assert caught.value.status_code == 502
    assert "1. Search. 2. Buy." in caught.value.response.text
    assert [out.role for out in shop.provider.sent] == ["planner"]
