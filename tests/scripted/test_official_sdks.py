"""The official SDKs are the judges: whatever the scripted provider sends, they accept."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import anthropic
import openai
import pytest
from pydantic import BaseModel

from switchyard_core.scripted import Script
from tests.upstream.loopback import Provider, script_of

Provide = Callable[[Script], Provider]

PATCH = "*** Begin Patch\n*** Update File: a.py\n@@\n-1\n+2\n*** End Patch\n"
FULL: dict[str, Any] = {
    "reasoning": "First look at the file, then change it.",
    "encrypted": "b3BhcXVl",
    "text": "I will look at the file and — with care — change it ✓.",
    "calls": [
        {"name": "read", "arguments": {"path": "a.py", "line": 1}},
        {"name": "noop", "arguments": {}},
    ],
    "usage": {"input": 100, "output": 20, "cached": 60, "reasoning": 7},
}
CHAT_TOOLS: Any = [
    {"type": "function", "function": {"name": n, "parameters": {"type": "object"}}}
    for n in ("read", "noop")
]
RESPONSES_TOOLS: Any = [
    {"type": "function", "name": "read", "parameters": {"type": "object"}, "strict": False},
    {"type": "custom", "name": "apply_patch"},
]
MESSAGES_TOOLS: Any = [{"name": n, "input_schema": {"type": "object"}} for n in ("read", "noop")]
USER: Any = [{"role": "user", "content": "go"}]


@pytest.fixture
def openai_to(provide: Provide) -> Iterator[Callable[..., tuple[openai.OpenAI, Provider]]]:
    clients = []

    def make(*turns: dict[str, Any], **more: Any) -> tuple[openai.OpenAI, Provider]:
        provider = provide(script_of(*turns, **more))
        client = openai.OpenAI(base_url=f"{provider.url}/v1", api_key="k", max_retries=0)
        clients.append(client)
        return client, provider

    yield make
    for client in clients:
        client.close()


@pytest.fixture
def anthropic_to(provide: Provide) -> Iterator[Callable[..., tuple[anthropic.Anthropic, Provider]]]:
    clients = []

    def make(*turns: dict[str, Any], **more: Any) -> tuple[anthropic.Anthropic, Provider]:
        provider = provide(script_of(*turns, **more))
        client = anthropic.Anthropic(base_url=provider.url, api_key="k", max_retries=0)
        clients.append(client)
        return client, provider

    yield make
    for client in clients:
        client.close()


def valid(value: BaseModel) -> None:
    """Hold an SDK object against its own type: the SDKs build theirs without validation."""
    type(value).model_validate(value.model_dump(mode="json", by_alias=True, warnings="none"))


def test_chat_whole_answer(openai_to: Any) -> None:
    client, _ = openai_to(FULL)

    answer = client.chat.completions.create(model="m", messages=USER, tools=CHAT_TOOLS)

    valid(answer)
    choice = answer.choices[0]
    assert choice.finish_reason == "tool_calls"
    assert choice.message.content == FULL["text"]
    assert choice.message.reasoning_content == FULL["reasoning"]
    assert [c.function.arguments for c in choice.message.tool_calls] == [
        '{"path":"a.py","line":1}', "{}",
    ]  # fmt: skip
    assert answer.usage.total_tokens == 120
    assert answer.usage.prompt_tokens_details.cached_tokens == 60
    assert answer.usage.completion_tokens_details.reasoning_tokens == 7


def test_chat_stream_helper_builds_the_same_answer(openai_to: Any) -> None:
    client, _ = openai_to(FULL)
    whole = client.chat.completions.create(model="m", messages=USER, tools=CHAT_TOOLS)

    with client.chat.completions.stream(
        model="m", messages=USER, tools=CHAT_TOOLS, stream_options={"include_usage": True}
    ) as stream:
        events = [event.type for event in stream]
        final = stream.get_final_completion()

    valid(final)
    assert "tool_calls.function.arguments.done" in events
    assert final.usage == whole.usage
    assert final.choices[0].finish_reason == "tool_calls"
    assert final.choices[0].message.content == whole.choices[0].message.content
    assert [c.function.arguments for c in final.choices[0].message.tool_calls] == [
        c.function.arguments for c in whole.choices[0].message.tool_calls
    ]


def test_chat_stream_has_usage_only_when_asked(openai_to: Any) -> None:
    client, _ = openai_to({"text": "hi"})

    plain = list(client.chat.completions.create(model="m", messages=USER, stream=True))
    asked = list(
        client.chat.completions.create(
            model="m", messages=USER, stream=True, stream_options={"include_usage": True}
        )
    )

    for chunk in plain + asked:
        valid(chunk)
    assert [chunk.usage for chunk in plain] == [None] * len(plain)
    assert all("usage" not in chunk.model_fields_set for chunk in plain)
    assert asked[-1].choices == []
    assert asked[-1].usage.prompt_tokens > 0
    assert all("usage" in chunk.model_fields_set for chunk in asked)


def test_chat_tool_loop_moves_to_the_next_turn(openai_to: Any) -> None:
    client, provider = openai_to(FULL, {"text": "done"})
    first = client.chat.completions.create(model="m", messages=USER, tools=CHAT_TOOLS)
    message = first.choices[0].message
    history = [
        *USER,
        message.model_dump(exclude_none=True),
        *({"role": "tool", "tool_call_id": c.id, "content": "1"} for c in message.tool_calls),
    ]

    second = client.chat.completions.create(model="m", messages=history, tools=CHAT_TOOLS)

    assert second.choices[0].message.content == "done"
    assert second.choices[0].finish_reason == "stop"
    assert [record.turn for record in provider.app.requests] == [0, 1]
    assert second.id != first.id


def test_responses_whole_answer(openai_to: Any) -> None:
    client, _ = openai_to(
        {**FULL, "calls": [*FULL["calls"], {"name": "apply_patch", "input": PATCH},
                           {"name": "x", "namespace": "mcp__a", "arguments": {}}]}
    )  # fmt: skip

    answer = client.responses.create(
        model="m",
        input="go",
        tools=RESPONSES_TOOLS,
        instructions="be kind",
        metadata={"a": "b"},
    )

    valid(answer)
    assert answer.status == "completed"
    assert answer.output_text == FULL["text"]
    assert [item.type for item in answer.output] == [
        "reasoning", "message", "function_call", "function_call", "custom_tool_call",
        "function_call",
    ]  # fmt: skip
    assert answer.output[0].summary[0].text == FULL["reasoning"]
    assert answer.output[0].encrypted_content == "b3BhcXVl"
    assert answer.output[4].input == PATCH
    assert answer.output[5].namespace == "mcp__a"
    assert answer.usage.input_tokens_details.cached_tokens == 60
    assert (answer.instructions, answer.metadata) == ("be kind", {"a": "b"})
    assert [tool.name for tool in answer.tools] == ["read", "apply_patch"]


def test_responses_stream_helper_builds_the_same_answer(openai_to: Any) -> None:
    calls = [*FULL["calls"], {"name": "apply_patch", "input": PATCH}]
    client, _ = openai_to({**FULL, "calls": calls})

    with client.responses.stream(model="m", input="go", tools=RESPONSES_TOOLS) as stream:
        events = list(stream)
        final = stream.get_final_response()

    for event in events:
        valid(event)
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert events[0].type == "response.created"
    assert events[-1].type == "response.completed"
    assert final.output_text == FULL["text"]
    assert final.output[2].arguments == '{"path":"a.py","line":1}'
    assert final.output[4].input == PATCH
    assert final.usage.total_tokens == 120
    pieces = "".join(e.delta for e in events if e.type == "response.reasoning_summary_text.delta")
    assert pieces == FULL["reasoning"]


def test_responses_tool_loop_moves_to_the_next_turn(openai_to: Any) -> None:
    client, provider = openai_to(FULL, {"text": "done"})
    first = client.responses.create(model="m", input="go", tools=RESPONSES_TOOLS, store=False)
    history: Any = [
        {"role": "user", "content": "go"},
        *(item.model_dump(exclude_none=True) for item in first.output),
        *(
            {"type": "function_call_output", "call_id": item.call_id, "output": "1"}
            for item in first.output
            if item.type == "function_call"
        ),
    ]

    second = client.responses.create(model="m", input=history, tools=RESPONSES_TOOLS)

    assert second.output_text == "done"
    assert [record.turn for record in provider.app.requests] == [0, 1]


def test_responses_with_calls_only_has_no_message(openai_to: Any) -> None:
    client, _ = openai_to({"calls": [{"name": "read"}]})

    answer = client.responses.create(model="m", input="go", tools=RESPONSES_TOOLS)

    assert [item.type for item in answer.output] == ["function_call"]


def test_responses_length_stop_is_incomplete(openai_to: Any) -> None:
    client, _ = openai_to({"text": "cut sho", "stop": "max_tokens"})

    answer = client.responses.create(model="m", input="go")
    with client.responses.stream(model="m", input="go") as stream:
        last = list(stream)[-1]

    valid(answer)
    assert answer.status == "incomplete"
    assert answer.incomplete_details.reason == "max_output_tokens"
    assert last.type == "response.incomplete"


def test_responses_encrypted_reasoning_is_made_up_when_it_is_asked_for(openai_to: Any) -> None:
    client, _ = openai_to({"reasoning": "hm", "text": "x"})

    plain = client.responses.create(model="m", input="go")
    asked = client.responses.create(model="m", input="go", include=["reasoning.encrypted_content"])

    assert plain.output[0].encrypted_content is None
    assert asked.output[0].encrypted_content


def test_responses_counts_and_compacts(openai_to: Any) -> None:
    client, provider = openai_to({"text": "x"})
    history: Any = [
        {"role": "user", "content": "keep me"},
        {"role": "assistant", "content": "drop me"},
    ]

    count = client.responses.input_tokens.count(model="m", input="go")
    compacted = client.responses.compact(model="m", input=history)

    valid(count)
    assert count.input_tokens > 0
    assert compacted.object == "response.compaction"
    assert [item.type for item in compacted.output if item.type] == ["compaction"]
    assert compacted.output[-1].encrypted_content
    assert [record.turn for record in provider.app.requests] == [None, 1]


def test_messages_whole_answer(anthropic_to: Any) -> None:
    client, _ = anthropic_to(FULL)

    answer = client.messages.create(model="m", max_tokens=99, messages=USER, tools=MESSAGES_TOOLS)

    valid(answer)
    assert [block.type for block in answer.content] == [
        "thinking", "text", "tool_use", "tool_use",
    ]  # fmt: skip
    assert (answer.content[0].thinking, answer.content[0].signature) == (
        FULL["reasoning"], "b3BhcXVl",
    )  # fmt: skip
    assert answer.content[2].input == {"path": "a.py", "line": 1}
    assert answer.stop_reason == "tool_use"
    assert (answer.usage.input_tokens, answer.usage.cache_read_input_tokens) == (40, 60)


def test_messages_stream_helper_builds_the_same_answer(anthropic_to: Any) -> None:
    client, _ = anthropic_to(FULL)
    whole = client.messages.create(model="m", max_tokens=99, messages=USER, tools=MESSAGES_TOOLS)

    with client.messages.stream(
        model="m", max_tokens=99, messages=USER, tools=MESSAGES_TOOLS
    ) as stream:
        events = list(stream)
        final = stream.get_final_message()

    for event in events:
        valid(event)
    valid(final)
    whole_body, final_body = whole.model_dump(), final.model_dump()
    for body in (whole_body, final_body):
        body.pop("id")
        for block in body["content"]:
            block.pop("id", None)
    assert final_body == whole_body
    assert {"thinking", "signature", "text", "input_json"} <= {event.type for event in events}


def test_messages_tool_loop_moves_to_the_next_turn(anthropic_to: Any) -> None:
    client, provider = anthropic_to(FULL, {"text": "done"})
    first = client.messages.create(model="m", max_tokens=99, messages=USER, tools=MESSAGES_TOOLS)
    results = [
        {"type": "tool_result", "tool_use_id": block.id, "content": "1"}
        for block in first.content
        if block.type == "tool_use"
    ]
    history: Any = [
        *USER,
        {"role": "assistant", "content": [block.model_dump() for block in first.content]},
        {"role": "user", "content": results},
    ]

    second = client.messages.create(model="m", max_tokens=99, messages=history)

    assert second.content[0].text == "done"
    assert second.stop_reason == "end_turn"
    assert [record.turn for record in provider.app.requests] == [0, 1]


def test_messages_count_tokens(anthropic_to: Any) -> None:
    client, _ = anthropic_to({"text": "x"})

    count = client.messages.count_tokens(model="m", messages=USER)

    assert count.input_tokens > 0


def test_models_are_listed_for_both_sdks(openai_to: Any, anthropic_to: Any) -> None:
    client, _ = openai_to({"text": "x"})
    other, _ = anthropic_to({"text": "x"})

    assert [model.id for model in client.models.list()] == ["scripted-model"]
    assert [model.id for model in other.models.list(limit=1000)] == ["scripted-model"]
    assert client.models.retrieve("scripted-model").id == "scripted-model"
    assert other.models.retrieve("scripted-model").display_name == "scripted-model"
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("other")


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, openai.BadRequestError),
        (401, openai.AuthenticationError),
        (429, openai.RateLimitError),
        (503, openai.InternalServerError),
    ],
)
@pytest.mark.parametrize("wire", ["chat", "responses"])
def test_openai_errors_are_parsed(
    openai_to: Any, wire: str, status: int, error: type[openai.APIStatusError]
) -> None:
    client, _ = openai_to(
        {"text": "x"}, faults=[{"status": status, "message": "no", "headers": {"Retry-After": "3"}}]
    )

    def ask() -> Any:
        if wire == "chat":
            return client.chat.completions.create(model="m", messages=USER)
        return client.responses.create(model="m", input="go")

    with pytest.raises(error) as caught:
        ask()

    body: Any = caught.value.body
    assert body["message"] == "no"
    assert caught.value.response.headers["retry-after"] == "3"
    assert caught.value.request_id == "req_failed"


@pytest.mark.parametrize(
    ("status", "error", "kind"),
    [
        (400, anthropic.BadRequestError, "invalid_request_error"),
        (429, anthropic.RateLimitError, "rate_limit_error"),
        (500, anthropic.InternalServerError, "api_error"),
        (529, anthropic.APIStatusError, "overloaded_error"),
    ],
)
def test_anthropic_errors_are_parsed(
    anthropic_to: Any, status: int, error: type[anthropic.APIStatusError], kind: str
) -> None:
    client, _ = anthropic_to({"text": "x"}, faults=[{"status": status}])

    with pytest.raises(error) as caught:
        client.messages.create(model="m", max_tokens=9, messages=USER)

    assert caught.value.status_code == status
    body: Any = caught.value.body
    assert body["error"]["type"] == kind
    assert caught.value.request_id == "req_failed"


def test_error_inside_a_stream_is_parsed(openai_to: Any, anthropic_to: Any) -> None:
    fault = {"kind": "error_event", "message": "broke", "times": 2}
    client, _ = openai_to({"text": "long text " * 9}, faults=[fault])
    other, _ = anthropic_to({"text": "long text " * 9}, faults=[fault])

    with pytest.raises(openai.APIError, match="broke"):
        list(client.chat.completions.create(model="m", messages=USER, stream=True))
    last = list(client.responses.create(model="m", input="go", stream=True))[-1]
    with pytest.raises(anthropic.APIStatusError, match="broke"):
        list(other.messages.create(model="m", max_tokens=9, messages=USER, stream=True))

    assert last.type == "response.failed"
    assert last.response.error.message == "broke"


def test_error_event_without_a_stream_is_an_overloaded_answer(
    openai_to: Any, anthropic_to: Any
) -> None:
    client, _ = openai_to({"text": "x"}, faults=[{"kind": "error_event"}])
    other, _ = anthropic_to({"text": "x"}, faults=[{"kind": "error_event"}])

    with pytest.raises(openai.APIStatusError) as first:
        client.chat.completions.create(model="m", messages=USER)
    with pytest.raises(anthropic.APIStatusError) as second:
        other.messages.create(model="m", max_tokens=9, messages=USER)

    assert (first.value.status_code, second.value.status_code) == (503, 529)
