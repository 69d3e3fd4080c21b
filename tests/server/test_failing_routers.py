"""What a client sees when a router that writes the answer fails in the middle of it."""

from __future__ import annotations

import asyncio
import json
import logging

import anthropic
import httpx
import openai
import pytest

from switchyard_core.answering import Finished, Progress, SectionStarted, TextDelta
from switchyard_core.server import SwitchyardApp
from switchyard_core.testing import Harness
from switchyard_core.wire import WIRE_FORMATS
from switchyard_core.wire.answers import Sections
from tests.server.servers import PATHS, served
from tests.support.telling import POLICY, Teller, section

JSON = {"content-type": "application/json"}
SECRET = "sk-what-only-the-log-may-say"


async def _breaks(context):
    for event in section("half of it"):
        yield event
    # Comments at the end of what was said must not hide how far the events were counted.
    for number in range(3):
        yield Progress({"number": number})
    raise LookupError(SECRET)


async def _ends_early(context):
    for event in section("half of it"):
        yield event


async def _cancels(context):
    for event in section("half of it"):
        yield event
    raise asyncio.CancelledError


async def _says_nonsense(context):
    for event in section("half of it"):
        yield event
    yield TextDelta("outside of a section")


async def _says_no_text(context):
    for event in section("half of it"):
        yield event
    yield SectionStarted(kind="part")
    yield TextDelta(3)


FAULTS = [_breaks, _ends_early, _cancels, _says_nonsense, _says_no_text]


async def _tells(context):
    for text in ("half of it", "the other"):
        for event in section(text):
            yield event
    yield Finished("completed")


def asked(wire_format):
    key = "input" if wire_format == "openai_responses" else "messages"
    limit = {"max_tokens": 9} if wire_format == "anthropic_messages" else {}
    return {"model": "main", key: [{"role": "user", "content": "go"}], "stream": True, **limit}


async def answered(wire_format, tell):
    """Return what a client gets, and the server."""
    app = SwitchyardApp(Harness(POLICY, plugins=[Teller(tell)]).engine)
    async with served(app) as url, httpx.AsyncClient() as client:
        path = url + PATHS[wire_format]
        return await client.post(path, json=asked(wire_format)), app


def last_event(answer):
    assert answer.content.endswith(b"\n\n")
    *_, last = answer.text.removesuffix("\n\n").split("\n\n")
    return json.loads(last.partition("data: ")[2])


def code_of(wire_format, event):
    if wire_format == "anthropic_messages":
        assert event["type"] == "error"
        return event["error"]["type"]
    return event["error"]["code"]


@pytest.mark.parametrize("tell", FAULTS)
@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
async def test_router_that_fails_in_a_stream_ends_it_with_an_error_event(wire_format, tell, caplog):
    answer, app = await answered(wire_format, tell)

    assert answer.status_code == 200
    assert "half of it" in answer.text
    event = last_event(answer)
    wanted = "api_error" if wire_format == "anthropic_messages" else "plugin_error"
    assert code_of(wire_format, event) == wanted
    assert "the plugin `Teller` failed" in answer.text
    assert SECRET not in answer.text
    assert app.metrics.errors == {("main", "plugin_error"): 1}
    (record,) = [r for r in caplog.records if r.levelno >= logging.ERROR]
    assert answer.headers["x-switchyard-request-id"] in record.getMessage()
    assert record.exc_info is not None


async def test_events_are_counted_on_behind_comments():
    answer, _ = await answered("openai_responses", _breaks)

    numbers = [
        json.loads(line.removeprefix("data: "))["sequence_number"]
        for line in answer.text.splitlines()
        if line.startswith("data: ")
    ]
    assert answer.text.count('\n: {"number":') == 3
    assert numbers == list(range(len(numbers)))


@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
async def test_fault_of_ours_in_a_stream_ends_it_with_an_error_event(
    wire_format, caplog, monkeypatch
):
    close = Sections._close

    def broken(self):
        if self.texts:
            raise KeyError(SECRET)
        return close(self)

    monkeypatch.setattr(Sections, "_close", broken)
    answer, app = await answered(wire_format, _tells)

    assert "half of it" in answer.text
    event = last_event(answer)
    wanted = "api_error" if wire_format == "anthropic_messages" else "internal_error"
    assert code_of(wire_format, event) == wanted
    assert "internal error of switchyard" in answer.text
    assert SECRET not in answer.text
    assert app.metrics.errors == {("main", "internal_error"): 1}
    assert len([r for r in caplog.records if r.levelno >= logging.ERROR]) == 1


async def _read_chat(url, body):
    async with openai.AsyncOpenAI(base_url=url + "/v1", api_key="x", max_retries=0) as client:
        async for chunk in await client.chat.completions.create(**body):
            yield chunk.choices[0].delta.content if chunk.choices else ""


async def _read_responses(url, body):
    async with openai.AsyncOpenAI(base_url=url + "/v1", api_key="x", max_retries=0) as client:
        async for event in await client.responses.create(**body):
            yield event.delta if event.type == "response.output_text.delta" else ""


async def _read_messages(url, body):
    async with anthropic.AsyncAnthropic(base_url=url, api_key="x", max_retries=0) as client:
        async for event in await client.messages.create(**body):
            yield event.delta.text if event.type == "content_block_delta" else ""


@pytest.mark.parametrize(
    ("wire_format", "read", "error"),
    [
        ("openai_chat", _read_chat, openai.APIError),
        ("openai_responses", _read_responses, openai.APIError),
        ("anthropic_messages", _read_messages, anthropic.APIError),
    ],
)
async def test_official_sdk_raises_and_does_not_end_quietly(wire_format, read, error):
    app = SwitchyardApp(Harness(POLICY, plugins=[Teller(_breaks)]).engine)
    said = []

    async def follow(url):
        async for text in read(url, asked(wire_format)):
            said.append(text or "")  # noqa: PERF401 - what came before the error is kept

    async with served(app) as url:
        with pytest.raises(error, match="the plugin `Teller` failed"):
            await follow(url)

    assert "half of it" in "".join(said)
    assert len(app.metrics.requests) == 1
