"""An answer as Anthropic Messages sends it: whole, and as a stream of named events.

Source: shapes of the public API reference.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

from switchyard_core.scripted.answer import Answer, Event, compact, pieces

__all__ = ["message", "message_events"]

_STOPS = {"stop": "end_turn", "calls": "tool_use", "length": "max_tokens", "filter": "refusal"}


def message(answer: Answer) -> dict[str, Any]:
    """Return the whole ``message`` object."""
    return _message(answer, _blocks(answer), _stop_reason(answer), answer.output_tokens)


def message_events(answer: Answer) -> Iterator[Event]:
    """Yield the stream of an answer, from ``message_start`` to ``message_stop``."""
    yield _event("message_start", message=_message(answer, [], None, 1))
    yield _event("ping")
    for index, block in enumerate(_blocks(answer)):
        kind = block["type"]
        if kind == "thinking":
            start = {"type": kind, "thinking": "", "signature": ""}
            deltas = [{"type": "thinking_delta", "thinking": p} for p in pieces(block["thinking"])]
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
        elif kind == "text":
            start = {"type": kind, "text": ""}
            deltas = [{"type": "text_delta", "text": piece} for piece in pieces(block["text"])]
        else:
            start = {**block, "input": {}}
            # The API itself begins with an empty piece; an empty object has no further one.
            text = compact(block["input"]) if block["input"] else ""
            deltas = [
                {"type": "input_json_delta", "partial_json": piece} for piece in ("", *pieces(text))
            ]
        yield _event("content_block_start", index=index, content_block=start)
        for delta in deltas:
            yield _event("content_block_delta", index=index, delta=delta)
        yield _event("content_block_stop", index=index)
    yield _event(
        "message_delta",
        delta={"stop_reason": _stop_reason(answer), "stop_sequence": None},
        usage=_usage(answer, answer.output_tokens),
    )
    yield _event("message_stop")


def _message(
    answer: Answer, content: list[dict[str, Any]], stop_reason: str | None, output_tokens: int
) -> dict[str, Any]:
    return {
        "model": answer.model,
        "id": f"msg_01{answer.key[:22]}",
        "type": "message",
        "role": "assistant",
        "content": content,
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": _usage(answer, output_tokens),
    }


def _blocks(answer: Answer) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    if answer.reasoning or answer.encrypted:
        # A thinking block always has a signature; clients send it back as it came.
        signature = answer.encrypted or base64.b64encode(answer.key.encode()).decode()
        blocks.append({"type": "thinking", "thinking": answer.reasoning, "signature": signature})
    if answer.text:
        blocks.append({"type": "text", "text": answer.text})
    blocks.extend(
        {
            "type": "tool_use",
            "id": call.id_with("toolu_01"),
            "name": call.name,
            "input": _object(call.arguments),
        }
        for call in answer.calls
    )
    return blocks


def _object(arguments: str) -> dict[str, Any]:
    """Return arguments as the object that Messages demands."""
    try:
        value = json.loads(arguments)
    except ValueError:
        value = None
    return value if isinstance(value, dict) else {"input": arguments}


def _stop_reason(answer: Answer) -> str:
    return _STOPS.get(answer.stop, answer.stop)


def _usage(answer: Answer, output_tokens: int) -> dict[str, Any]:
    return {
        "input_tokens": max(0, answer.input_tokens - answer.cached_tokens),
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": answer.cached_tokens,
        "output_tokens": output_tokens,
        "service_tier": "standard",
    }


def _event(name: str, **fields: Any) -> Event:
    return Event(name=name, data=compact({"type": name, **fields}))
