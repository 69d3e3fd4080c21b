"""The official SDKs, pointed at the server as at their provider."""

from __future__ import annotations

import json

import anthropic
import openai
import pytest
from httpx import AsyncClient

from switchyard_core import Switchyard
from switchyard_core.scripted import ScriptedProviderApp, check_script
from switchyard_core.world import World
from tests.server.servers import policy, served

EDIT = {"file_path": "a.py", "old_string": "a", "new_string": "b"}
SCRIPT = {
    "version": 1,
    "scripts": [
        {
            "turns": [
                {"text": "Editing.", "calls": [{"name": "Edit", "arguments": EDIT}]},
                {"text": "Done."},
            ]
        }
    ],
}
SESSION = {"x-switchyard-session-id": "sdk"}


@pytest.fixture
async def provider():
    script, findings = check_script(json.dumps(SCRIPT))
    assert script is not None, findings
    return ScriptedProviderApp(script)


async def _server(wire_format, provider, work):
    """Run the work on a server's URL; return its result."""
    async with served(provider) as upstream:
        yard = Switchyard.from_policy_text(
            policy(wire_format, upstream), world=World(environ={"UPSTREAM_KEY": "k"})
        )
        async with served(yard.asgi()) as url:
            return await work(url)


def _models(provider):
    return [request.model for request in provider.requests]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_openai_chat_tool_loop_goes_from_planner_to_executor(provider, stream):
    async def work(url):
        async with openai.AsyncOpenAI(
            base_url=url + "/v1", api_key="x", default_headers=SESSION, max_retries=0
        ) as client:
            messages = [{"role": "user", "content": "fix a.py"}]
            if stream:
                async with client.chat.completions.stream(
                    model="coder", messages=messages
                ) as events:
                    first = await events.get_final_completion()
            else:
                first = await client.chat.completions.create(model="coder", messages=messages)
            message = first.choices[0].message
            call = message.tool_calls[0]
            messages += [
                message.model_dump(exclude_none=True, exclude={"parsed"}),
                {"role": "tool", "tool_call_id": call.id, "content": "ok"},
            ]
            second = await client.chat.completions.create(model="coder", messages=messages)
            return json.loads(call.function.arguments), second.choices[0].message.content

    assert await _server("openai_chat", provider, work) == (EDIT, "Done.")
    assert _models(provider) == ["big-model", "small-model"]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_openai_responses_tool_loop_goes_from_planner_to_executor(provider, stream):
    async def work(url):
        async with openai.AsyncOpenAI(
            base_url=url + "/v1", api_key="x", default_headers=SESSION, max_retries=0
        ) as client:
            items = [{"role": "user", "content": "fix a.py"}]
            if stream:
                async with client.responses.stream(model="coder", input=items) as events:
                    first = await events.get_final_response()
            else:
                first = await client.responses.create(model="coder", input=items)
            call = next(item for item in first.output if item.type == "function_call")
            items += [
                {
                    "type": "function_call",
                    "call_id": call.call_id,
                    "name": call.name,
                    "arguments": call.arguments,
                },
                {"type": "function_call_output", "call_id": call.call_id, "output": "ok"},
            ]
            second = await client.responses.create(model="coder", input=items)
            return json.loads(call.arguments), second.output_text

    assert await _server("openai_responses", provider, work) == (EDIT, "Done.")
    assert _models(provider) == ["big-model", "small-model"]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_anthropic_tool_loop_goes_from_planner_to_executor(provider, stream):
    async def work(url):
        async with anthropic.AsyncAnthropic(
            base_url=url, api_key="x", default_headers=SESSION, max_retries=0
        ) as client:
            messages = [{"role": "user", "content": "fix a.py"}]
            if stream:
                async with client.messages.stream(
                    model="coder", max_tokens=99, messages=messages
                ) as events:
                    first = await events.get_final_message()
            else:
                first = await client.messages.create(
                    model="coder", max_tokens=99, messages=messages
                )
            call = next(block for block in first.content if block.type == "tool_use")
            messages += [
                {
                    "role": "assistant",
                    "content": [block.model_dump(exclude_none=True) for block in first.content],
                },
                {
                    "role": "user",
                    "content": [{"type": "tool_result", "tool_use_id": call.id, "content": "ok"}],
                },
            ]
            second = await client.messages.create(model="coder", max_tokens=99, messages=messages)
            count = await client.messages.count_tokens(model="coder", messages=messages)
            return call.input, second.content[0].text, count.input_tokens > 0

    assert await _server("anthropic_messages", provider, work) == (EDIT, "Done.", True)
    assert _models(provider) == ["big-model", "small-model", "small-model"]


async def test_sdks_read_our_errors_and_model_lists(provider):
    async def work(url):
        async with (
            openai.AsyncOpenAI(base_url=url + "/v1", api_key="x", max_retries=0) as one,
            anthropic.AsyncAnthropic(base_url=url, api_key="x", max_retries=0) as two,
        ):
            with pytest.raises(openai.NotFoundError) as unknown:
                await one.chat.completions.create(model="nope", messages=[])
            assert unknown.value.code == "model_not_found"
            assert unknown.value.request_id.startswith("req_")
            with pytest.raises(openai.BadRequestError) as wrong:
                await one.chat.completions.create(model="coder", messages=7)
            assert wrong.value.param == "messages"
            with pytest.raises(anthropic.NotFoundError) as missing:
                await two.messages.create(model="nope", max_tokens=1, messages=[])
            assert missing.value.body["error"]["type"] == "not_found_error"
            assert missing.value.request_id == missing.value.body["request_id"]
            names = [model.id async for model in one.models.list()]
            page = await two.models.list(limit=1)
            rest = [model.id async for model in page]
            assert names == rest == ["coder", "team/coder"]
            assert (await one.models.retrieve("team/coder")).owned_by == "switchyard"
            assert (await two.models.retrieve("coder")).display_name == "coder"

    await _server("openai_chat", provider, work)
    assert provider.requests == []


async def test_cut_streams_are_errors_to_the_sdks(provider):
    fault = {"version": 1, "scripts": [{"turns": [{"text": "a long answer " * 20}], "faults": [
        {"turn": 0, "times": 9, "kind": "cut"}]}]}  # fmt: skip
    script, findings = check_script(json.dumps(fault))
    assert script is not None, findings

    async def chat(url):
        async with openai.AsyncOpenAI(base_url=url + "/v1", api_key="x", max_retries=0) as client:
            stream = await client.chat.completions.create(
                model="coder", messages=[{"role": "user", "content": "x"}], stream=True
            )
            with pytest.raises((openai.APIError, json.JSONDecodeError)):
                async for _ in stream:
                    pass

    async def messages(url):
        async with anthropic.AsyncAnthropic(base_url=url, api_key="x", max_retries=0) as client:
            with pytest.raises((anthropic.APIError, json.JSONDecodeError)):  # noqa: PT012 - a loop
                async with client.messages.stream(
                    model="coder", max_tokens=9, messages=[{"role": "user", "content": "x"}]
                ) as stream:
                    async for _ in stream:
                        pass

    async def responses(url):
        content = {"model": "coder", "input": "x", "stream": True}
        async with AsyncClient() as client:
            text = (await client.post(url + "/v1/responses", json=content)).text
        assert '"type":"error","code":"upstream_cut"' in text

    await _server("openai_chat", ScriptedProviderApp(script), chat)
    await _server("anthropic_messages", ScriptedProviderApp(script), messages)
    await _server("openai_responses", ScriptedProviderApp(script), responses)
