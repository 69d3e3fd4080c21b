"""An answer as OpenAI Responses sends it: whole, and as a stream of numbered events.

Source: shapes of the public API reference.
"""

from __future__ import annotations

import base64
import copy
from collections.abc import Iterator, Mapping
from typing import Any

from switchyard_core.scripted.answer import Answer, Event, compact, pieces

__all__ = ["compaction", "response", "response_events", "usage"]

# What the object repeats of the request, with the value for a request that has none.
_ECHOED: tuple[tuple[str, Any], ...] = (
    ("instructions", None),
    ("max_output_tokens", None),
    ("max_tool_calls", None),
    ("metadata", {}),
    ("parallel_tool_calls", True),
    ("previous_response_id", None),
    ("prompt_cache_key", None),
    ("reasoning", {"effort": None, "summary": None}),
    ("safety_identifier", None),
    ("service_tier", "default"),
    ("store", True),
    ("temperature", 1.0),
    ("text", {"format": {"type": "text"}, "verbosity": "medium"}),
    ("tool_choice", "auto"),
    ("tools", []),
    ("top_logprobs", 0),
    ("top_p", 1.0),
    ("truncation", "disabled"),
    ("user", None),
)
_INCOMPLETE = {"length": "max_output_tokens", "filter": "content_filter"}


def response(answer: Answer, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the whole ``response`` object.

    Args:
        answer: What to send.
        body: The request; the object repeats its settings.
    """
    return _response(answer, body, _status(answer), _items(answer, body))


def response_events(answer: Answer, body: Mapping[str, Any]) -> Iterator[Event]:
    """Yield the stream of an answer, ``response.created`` to ``response.completed``."""
    for number, event in enumerate(_events(answer, body)):
        kind = event.pop("type")
        yield Event(name=kind, data=compact({"type": kind, "sequence_number": number, **event}))


def compaction(answer: Answer, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer of ``/responses/compact``: the user's messages and an opaque item."""
    items = body.get("input")
    kept = [
        item
        for item in (items if isinstance(items, list) else ())
        if isinstance(item, Mapping) and item.get("role") == "user"
    ]
    summary = {
        "id": f"cmp_{answer.key[:48]}",
        "type": "compaction",
        "encrypted_content": answer.encrypted or _opaque(answer),
    }
    return {
        "id": f"resp_{answer.key[:48]}",
        "object": "response.compaction",
        "created_at": answer.created,
        "output": [*kept, summary],
        "usage": usage(answer),
    }


def usage(answer: Answer) -> dict[str, Any]:
    """Return the ``usage`` object."""
    return {
        "input_tokens": answer.input_tokens,
        "input_tokens_details": {"cached_tokens": answer.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": answer.output_tokens,
        "output_tokens_details": {"reasoning_tokens": answer.reasoning_tokens},
        "total_tokens": answer.input_tokens + answer.output_tokens,
    }


def _response(
    answer: Answer, body: Mapping[str, Any], status: str, output: list[dict[str, Any]]
) -> dict[str, Any]:
    running = status == "in_progress"
    reason = _INCOMPLETE.get(answer.stop)
    echoed = {
        key: copy.deepcopy(default) if body.get(key) is None else body[key]
        for key, default in _ECHOED
    }
    return {
        "id": f"resp_{answer.key[:48]}",
        "object": "response",
        "created_at": answer.created,
        "status": status,
        "background": False,
        "completed_at": answer.created if status == "completed" else None,
        "error": None,
        "incomplete_details": {"reason": reason} if status == "incomplete" else None,
        "model": answer.model,
        "output": output,
        "usage": None if running else usage(answer),
        **echoed,
    }


def _status(answer: Answer) -> str:
    return "incomplete" if answer.stop in _INCOMPLETE else "completed"


def _items(answer: Answer, body: Mapping[str, Any]) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    if answer.reasoning or answer.encrypted:
        summary = [{"type": "summary_text", "text": answer.reasoning}] if answer.reasoning else []
        item = {"id": f"rs_{answer.key[:48]}", "type": "reasoning", "summary": summary}
        include = body.get("include")
        if answer.encrypted:
            item["encrypted_content"] = answer.encrypted
        elif isinstance(include, list) and "reasoning.encrypted_content" in include:
            item["encrypted_content"] = _opaque(answer)
        items.append(item)
    if answer.text:
        part = {"type": "output_text", "annotations": [], "logprobs": [], "text": answer.text}
        items.append(
            {
                "id": f"msg_{answer.key[:48]}",
                "type": "message",
                "status": _status(answer),
                "content": [part],
                "role": "assistant",
            }
        )
    for number, call in enumerate(answer.calls):
        named = {"call_id": call.id_with("call_"), "name": call.name}
        if call.namespace:
            named["namespace"] = call.namespace
        suffix = f"{answer.key[:46]}{number:02d}"
        if call.input is not None:
            head = {"id": f"ctc_{suffix}", "type": "custom_tool_call", "status": "completed"}
            items.append({**head, **named, "input": call.input})
        else:
            head = {"id": f"fc_{suffix}", "type": "function_call", "status": "completed"}
            items.append({**head, **named, "arguments": call.arguments})
    return items


def _events(answer: Answer, body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    started = _response(answer, body, "in_progress", [])
    yield {"type": "response.created", "response": started}
    yield {"type": "response.in_progress", "response": started}
    items = _items(answer, body)
    for index, item in enumerate(items):
        at = {"item_id": item["id"], "output_index": index}
        parts = {"reasoning": _reasoning_events, "message": _message_events}
        inner = parts.get(item["type"], _call_events)(item, at)
        yield {
            "type": "response.output_item.added",
            "output_index": index,
            "item": _started(item),
        }
        yield from inner
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    status = _status(answer)
    yield {"type": f"response.{status}", "response": _response(answer, body, status, items)}


def _started(item: dict[str, Any]) -> dict[str, Any]:
    """Return an item as it is announced: nothing in it yet."""
    empty: dict[str, Any] = {"summary": [], "content": [], "arguments": "", "input": ""}
    begun = {key: empty.get(key, value) for key, value in item.items()}
    if "status" in begun:
        begun["status"] = "in_progress"
    return begun


def _reasoning_events(item: dict[str, Any], at: dict[str, Any]) -> Iterator[dict[str, Any]]:
    stem = "response.reasoning_summary"
    for index, part in enumerate(item["summary"]):
        at = {**at, "summary_index": index}
        yield {"type": f"{stem}_part.added", **at, "part": {**part, "text": ""}}
        for piece in pieces(part["text"]):
            yield {"type": f"{stem}_text.delta", **at, "delta": piece}
        yield {"type": f"{stem}_text.done", **at, "text": part["text"]}
        yield {"type": f"{stem}_part.done", **at, "part": part}


def _message_events(item: dict[str, Any], at: dict[str, Any]) -> Iterator[dict[str, Any]]:
    at = {**at, "content_index": 0}
    part = item["content"][0]
    yield {"type": "response.content_part.added", **at, "part": {**part, "text": ""}}
    for piece in pieces(part["text"]):
        yield {"type": "response.output_text.delta", **at, "delta": piece, "logprobs": []}
    yield {"type": "response.output_text.done", **at, "text": part["text"], "logprobs": []}
    yield {"type": "response.content_part.done", **at, "part": part}


def _call_events(item: dict[str, Any], at: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if item["type"] == "custom_tool_call":
        key, stem = "input", "response.custom_tool_call_input"
    else:
        key, stem = "arguments", "response.function_call_arguments"
    for piece in pieces(item[key]):
        yield {"type": f"{stem}.delta", **at, "delta": piece}
    yield {"type": f"{stem}.done", **at, key: item[key]}


def _opaque(answer: Answer) -> str:
    """Return what stands for encrypted content that a script does not give."""
    return base64.b64encode(answer.key.encode()).decode()
