"""The three calls of the official SDKs behind one face, blocking and asynchronous clients alike.

A test awaits :func:`settled` whatever a client returns, so it is written once for both.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import anthropic
import openai

from switchyard_core import WireFormat
from tests.sdk.stand import Stand, route_id

TOOLS: Mapping[str, tuple[str, ...]] = {
    "read_file": ("path",),
    "edit_file": ("path", "old_text", "new_text"),
}

#: A session of a coding agent, as the provider plays it: read, edit, finish.
TURNS: tuple[dict[str, Any], ...] = (
    {
        "reasoning": "First the file, then the change.",
        "encrypted": "b3BhcXVl",
        "text": "I will look at it — carefully ✓.",
        "calls": [{"name": "read_file", "arguments": {"path": "calc.py"}}],
        "usage": {"input": 100, "output": 20, "cached": 60, "reasoning": 7},
    },
    {
        "text": "Now the change.",
        "calls": [
            {
                "name": "edit_file",
                "arguments": {"path": "calc.py", "old_text": "a - b", "new_text": "a + b"},
            }
        ],
    },
    {"text": "Done: the sum is right."},
)
RESULTS: Mapping[str, str] = {"read_file": "return a - b", "edit_file": "edited"}


@dataclass(frozen=True, slots=True)
class Called:
    """A tool call that the model made."""

    id: str
    name: str
    arguments: dict[str, Any]


class Api(Protocol):
    """One way to ask a model through an official SDK."""

    wire_format: WireFormat
    #: Errors of the SDK live here.
    sdk: Any

    def client(self, stand: Stand, *, blocking: bool, **options: Any) -> Any: ...

    def ask(self, history: list[Any], **more: Any) -> dict[str, Any]:
        """Return the arguments of a call with this history."""
        ...

    def endpoint(self, client: Any) -> Any:
        """Return the resource whose ``create`` asks the model."""
        ...

    def helper(self, client: Any, arguments: dict[str, Any]) -> Any:
        """Return the SDK's own stream helper."""
        ...

    def final(self, stream: Any) -> Any:
        """Return what the stream helper made of the whole stream."""
        ...

    def text(self, answer: Any) -> str: ...

    def calls(self, answer: Any) -> list[Called]: ...

    def grown(self, history: list[Any], answer: Any) -> list[Any]:
        """Return a history with an answer and the results of its calls."""
        ...


async def settled(value: Any) -> Any:
    """Return what a client's method returned, waiting for it if the client is asynchronous."""
    return await value if inspect.isawaitable(value) else value


async def items(stream: Any, seen: list[Any] | None = None) -> list[Any]:
    """Return everything in a stream of either kind of client; ``seen`` keeps it if one breaks."""
    seen = [] if seen is None else seen
    stream = await settled(stream)
    if hasattr(stream, "__aiter__"):
        async with stream:
            async for item in stream:
                seen.append(item)  # kept when the stream raises
    else:
        with stream:
            seen.extend(stream)
    return seen


async def through_helper(manager: Any, final: Callable[[Any], Any]) -> tuple[list[Any], Any]:
    """Return the events of a stream helper and what it made of them."""
    if hasattr(manager, "__aenter__"):
        async with manager as stream:
            events = [event async for event in stream]
            return events, await settled(final(stream))
    with manager as stream:
        return list(stream), final(stream)


async def closed(client: Any) -> None:
    """Close a client of either kind."""
    await settled(client.close())


def parameters(names: tuple[str, ...]) -> dict[str, Any]:
    """Return a JSON schema of required texts."""
    return {
        "type": "object",
        "properties": {name: {"type": "string"} for name in names},
        "required": list(names),
        "additionalProperties": False,
    }


def openai_client(stand: Stand, *, blocking: bool, **options: Any) -> Any:
    kind: Any = openai.OpenAI if blocking else openai.AsyncOpenAI
    settings = {"api_key": "callers-key", "max_retries": 0, "_strict_response_validation": True}
    return kind(base_url=f"{stand.url}/v1", **(settings | options))


class Chat:
    wire_format: WireFormat = "openai_chat"
    sdk: Any = openai

    def client(self, stand: Stand, *, blocking: bool, **options: Any) -> Any:
        return openai_client(stand, blocking=blocking, **options)

    def ask(self, history: list[Any], **more: Any) -> dict[str, Any]:
        tools = [
            {"type": "function", "function": {"name": name, "parameters": parameters(names)}}
            for name, names in TOOLS.items()
        ]
        model = route_id(self.wire_format)
        return {"model": model, "messages": history, "tools": tools} | more

    def endpoint(self, client: Any) -> Any:
        return client.chat.completions

    def helper(self, client: Any, arguments: dict[str, Any]) -> Any:
        options = {"include_usage": True}
        return client.chat.completions.stream(**{"stream_options": options} | arguments)

    def final(self, stream: Any) -> Any:
        return stream.get_final_completion()

    def text(self, answer: Any) -> str:
        return str(answer.choices[0].message.content or "")

    def calls(self, answer: Any) -> list[Called]:
        return [
            Called(call.id, call.function.name, json.loads(call.function.arguments))
            for call in answer.choices[0].message.tool_calls or ()
        ]

    def grown(self, history: list[Any], answer: Any) -> list[Any]:
        results = [
            {"role": "tool", "tool_call_id": call.id, "content": RESULTS[call.name]}
            for call in self.calls(answer)
        ]
        return [*history, answer.choices[0].message.to_dict(mode="json"), *results]


class Responses:
    wire_format: WireFormat = "openai_responses"
    sdk: Any = openai

    def client(self, stand: Stand, *, blocking: bool, **options: Any) -> Any:
        return openai_client(stand, blocking=blocking, **options)

    def ask(self, history: list[Any], **more: Any) -> dict[str, Any]:
        tools = [
            {"type": "function", "name": name, "parameters": parameters(names), "strict": True}
            for name, names in TOOLS.items()
        ]
        model = route_id(self.wire_format)
        return {"model": model, "input": history, "tools": tools, "store": False} | more

    def endpoint(self, client: Any) -> Any:
        return client.responses

    def helper(self, client: Any, arguments: dict[str, Any]) -> Any:
        return client.responses.stream(**arguments)

    def final(self, stream: Any) -> Any:
        return stream.get_final_response()

    def text(self, answer: Any) -> str:
        return str(answer.output_text)

    def calls(self, answer: Any) -> list[Called]:
        return [
            Called(item.call_id, item.name, json.loads(item.arguments))
            for item in answer.output
            if item.type == "function_call"
        ]

    def grown(self, history: list[Any], answer: Any) -> list[Any]:
        results = [
            {"type": "function_call_output", "call_id": call.id, "output": RESULTS[call.name]}
            for call in self.calls(answer)
        ]
        return [*history, *(item.to_dict(mode="json") for item in answer.output), *results]


class Messages:
    wire_format: WireFormat = "anthropic_messages"
    sdk: Any = anthropic

    def client(self, stand: Stand, *, blocking: bool, **options: Any) -> Any:
        kind: Any = anthropic.Anthropic if blocking else anthropic.AsyncAnthropic
        settings = {"api_key": "callers-key", "max_retries": 0, "_strict_response_validation": True}
        return kind(base_url=stand.url, **(settings | options))

    def ask(self, history: list[Any], **more: Any) -> dict[str, Any]:
        tools = [{"name": name, "input_schema": parameters(names)} for name, names in TOOLS.items()]
        model = route_id(self.wire_format)
        return {"model": model, "messages": history, "tools": tools, "max_tokens": 99} | more

    def endpoint(self, client: Any) -> Any:
        return client.messages

    def helper(self, client: Any, arguments: dict[str, Any]) -> Any:
        return client.messages.stream(**arguments)

    def final(self, stream: Any) -> Any:
        return stream.get_final_message()

    def text(self, answer: Any) -> str:
        return "".join(block.text for block in answer.content if block.type == "text")

    def calls(self, answer: Any) -> list[Called]:
        return [
            Called(block.id, block.name, block.input)
            for block in answer.content
            if block.type == "tool_use"
        ]

    def grown(self, history: list[Any], answer: Any) -> list[Any]:
        said = [block.to_dict(mode="json") for block in answer.content]
        results = [
            {"type": "tool_result", "tool_use_id": call.id, "content": RESULTS[call.name]}
            for call in self.calls(answer)
        ]
        more = [{"role": "user", "content": results}] if results else []
        return [*history, {"role": "assistant", "content": said}, *more]


APIS: tuple[Api, ...] = (Chat(), Responses(), Messages())
USER = [{"role": "user", "content": "fix the sum in calc.py"}]


async def edited(api: Api, client: Any, **more: Any) -> list[Any]:
    """Return the history of a session that has just edited; the first two turns made it."""
    history: list[Any] = USER
    for _ in TURNS[:2]:
        answer = await settled(api.endpoint(client).create(**api.ask(history, **more)))
        history = api.grown(history, answer)
    return history
