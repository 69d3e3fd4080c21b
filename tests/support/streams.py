"""What a stream of each wire format is by its grammar, and what the official SDKs make of one."""

from __future__ import annotations

import json
from typing import Any

import anthropic
import httpx
import httpx2
import openai

from switchyard_core.wire.events import EventCutter

__all__ = ["accumulated", "check_stream", "parsed", "valid"]

Told = list[tuple[str, Any]]


def valid(value: Any) -> None:
    """Hold an SDK object against its own type: the SDKs build theirs without validation."""
    type(value).model_validate(value.model_dump(mode="json", by_alias=True, warnings="none"))


def told(stream: bytes) -> Told:
    """Return name and data of each event; comments are left out."""
    cutter = EventCutter()
    sent = [event for event in [*cutter.feed(stream), *cutter.end()] if event.data]
    return [
        (each.name, each.data.decode() if each.data[:1] == b"[" else json.loads(each.data))
        for each in sent
    ]


def check_stream(name: str, stream: bytes, *, complete: bool = True) -> None:
    """Assert that a stream has the grammar of its format; one that is not complete has no end."""
    {
        "openai_chat": _check_chat,
        "openai_responses": _check_responses,
        "anthropic_messages": _check_messages,
    }[name](told(stream), complete)


def _check_chat(events: Told, complete: bool) -> None:
    assert not any(name for name, _ in events)
    objects = [data for _, data in events]
    assert ("[DONE]" in objects) == complete
    if complete:
        assert objects.pop() == "[DONE]"
    assert len({(data["id"], data["created"], data["model"]) for data in objects}) <= 1
    choices = [data["choices"][0] for data in objects if data["choices"]]
    assert all(data["choices"] for data in objects[:-1])
    if choices:
        assert choices[0]["delta"]["role"] == "assistant"
        assert not any("role" in choice["delta"] for choice in choices[1:])
    finished = [choice["finish_reason"] is not None for choice in choices]
    assert finished == [False] * (len(finished) - complete) + [True] * complete
    number = -1
    for choice in choices:
        for call in choice["delta"].get("tool_calls", ()):
            if "id" in call:
                number += 1
                assert call["function"]["name"]
            assert call["index"] == number


def _check_responses(events: Told, complete: bool) -> None:
    objects = [data for _, data in events]
    assert [name for name, _ in events] == [data["type"] for data in objects]
    assert [data["sequence_number"] for data in objects] == list(range(len(objects)))
    kinds = [data["type"] for data in objects]
    assert kinds[:2] == ["response.created", "response.in_progress"][: len(kinds)]
    ended = bool(kinds) and kinds[-1] in ("response.completed", "response.incomplete")
    assert ended == complete
    items: list[Any] = []
    for data in objects[2 : len(objects) - complete]:
        items = _item_event(data, items)
    if complete:
        assert objects[-1]["response"]["output"] == items
        assert not items or "open" not in items[-1]


def _item_event(data: dict[str, Any], items: list[Any]) -> list[Any]:
    kind = data["type"].removeprefix("response.")
    if kind == "output_item.added":
        assert data["output_index"] == len(items)
        assert not items or "open" not in items[-1]
        return [*items, {"open": data["item"], "text": "", "part": False}]
    assert data["output_index"] == len(items) - 1
    now = items[-1]
    item = now["open"]
    if kind == "output_item.done":
        assert not now["part"]
        assert (data["item"]["id"], data["item"]["type"]) == (item["id"], item["type"])
        assert _text_of(data["item"]) == now["text"]
        return [*items[:-1], data["item"]]
    assert data["item_id"] == item["id"]
    if kind.endswith("part.added"):
        assert not now["part"]
        now["part"] = True
    elif kind.endswith("part.done"):
        assert now["part"]
        now["part"] = False
    elif kind.endswith(".delta"):
        assert now["part"] == (item["type"] in ("message", "reasoning"))
        now["text"] += data["delta"]
    else:
        assert kind.endswith(".done")
        key = next(key for key in ("text", "refusal", "arguments", "input") if key in data)
        assert data[key] == now["text"]
    return items


def _text_of(item: dict[str, Any]) -> str:
    parts = item.get("content") or item.get("summary") or [item]
    keys = ("text", "refusal", "arguments", "input")
    return "".join(part[key] for part in parts for key in keys if key in part)


_DELTAS = {
    "text": {"text_delta"},
    "thinking": {"thinking_delta", "signature_delta"},
    "tool_use": {"input_json_delta"},
}


def _check_messages(events: Told, complete: bool) -> None:
    objects = [data for name, data in events if name != "ping"]
    assert [name for name, _ in events if name != "ping"] == [data["type"] for data in objects]
    kinds = [data["type"] for data in objects]
    assert kinds[:1] == ["message_start"][: len(kinds)]
    assert (kinds[-2:] == ["message_delta", "message_stop"]) == complete
    blocks, now = 0, None
    for data in objects[1 : -2 if complete else None]:
        assert data["index"] == (blocks if data["type"] == "content_block_start" else blocks - 1)
        if data["type"] == "content_block_start":
            assert now is None
            now, blocks = data["content_block"]["type"], blocks + 1
        elif data["type"] == "content_block_delta":
            assert data["delta"]["type"] in _DELTAS[now or ""]
        else:
            assert data["type"] == "content_block_stop"
            assert now is not None
            now = None
    assert now is None or not complete


# --- what the SDKs make of it --------------------------------------------------------------------


#: The library by which an SDK makes requests.
_LIBRARIES = {"anthropic_messages": httpx2}


def _client(body: bytes, content_type: str, library: Any = httpx) -> Any:
    def answer(request: Any) -> Any:
        del request
        return library.Response(200, headers={"content-type": content_type}, content=body)

    return library.Client(transport=library.MockTransport(answer))


def accumulated(name: str, stream: bytes) -> dict[str, Any]:
    """Return the answer that the stream helper of the official SDK builds; each event is valid."""
    client = _client(stream, "text/event-stream", _LIBRARIES.get(name, httpx))
    user: Any = [{"role": "user", "content": "go"}]
    if name == "anthropic_messages":
        api = anthropic.Anthropic(api_key="k", http_client=client, max_retries=0)
        with api.messages.stream(model="m", max_tokens=9, messages=user) as messages:
            for event in messages:
                valid(event)
            final: Any = messages.get_final_message()
    elif name == "openai_chat":
        chat_api = openai.OpenAI(api_key="k", http_client=client, max_retries=0)
        with chat_api.chat.completions.stream(model="m", messages=user) as chat:
            for event in chat:
                if event.type == "chunk":
                    valid(event.chunk)
            # Its own getter refuses an answer that was cut at a limit.
            final = chat.current_completion_snapshot
    else:
        responses_api = openai.OpenAI(api_key="k", http_client=client, max_retries=0)
        with responses_api.responses.stream(model="m", input="go") as responses:
            for last in responses:
                valid(last)
            final = last.response  # type: ignore[union-attr]
    valid(final)
    body: dict[str, Any] = final.model_dump(mode="json", warnings="none")
    return body


def parsed(name: str, body: bytes) -> dict[str, Any]:
    """Return a whole answer as the official SDK reads it."""
    client = _client(body, "application/json", _LIBRARIES.get(name, httpx))
    user: Any = [{"role": "user", "content": "go"}]
    if name == "anthropic_messages":
        api = anthropic.Anthropic(api_key="k", http_client=client, max_retries=0)
        answer: Any = api.messages.create(model="m", max_tokens=9, messages=user)
    elif name == "openai_chat":
        openai_api = openai.OpenAI(api_key="k", http_client=client, max_retries=0)
        answer = openai_api.chat.completions.create(model="m", messages=user)
    else:
        openai_api = openai.OpenAI(api_key="k", http_client=client, max_retries=0)
        answer = openai_api.responses.create(model="m", input="go")
    valid(answer)
    read: dict[str, Any] = answer.model_dump(mode="json", warnings="none")
    return read
