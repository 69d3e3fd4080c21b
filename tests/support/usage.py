"""What providers say that an answer took, in each wire format, and streams that say it."""

from __future__ import annotations

import json

from switchyard_core.answering import ModelUsage

__all__ = ["EXPECTED", "USAGE", "event", "stream"]

USAGE = {
    "openai_chat": {
        "prompt_tokens": 100,
        "completion_tokens": 20,
        "prompt_tokens_details": {"cached_tokens": 70, "cache_write_tokens": 10},
        "completion_tokens_details": {"reasoning_tokens": 5},
    },
    "openai_responses": {
        "input_tokens": 100,
        "output_tokens": 20,
        "input_tokens_details": {"cached_tokens": 70, "cache_write_tokens": 10},
        "output_tokens_details": {"reasoning_tokens": 5},
    },
    "anthropic_messages": {
        "input_tokens": 20,
        "cache_creation_input_tokens": 10,
        "cache_read_input_tokens": 70,
        "output_tokens": 20,
        "output_tokens_details": {"thinking_tokens": 5},
    },
}
EXPECTED = ModelUsage(
    input_tokens=100,
    cached_tokens=70,
    cache_write_tokens=10,
    output_tokens=20,
    reasoning_tokens=5,
)


def event(name, data):
    return f"event: {name}\ndata: {json.dumps(data)}\n\n".encode()


def stream(wire_format, filler=b""):
    """Return a whole stream with its usage where its provider puts it."""
    usage = USAGE[wire_format]
    if wire_format == "openai_chat":
        return (
            b'data: {"choices":[{"delta":{"content":"h"}}],"usage":null}\n\n'
            + filler
            + b'data: {"choices":[{"finish_reason":"stop"}],"usage":null}\n\n'
            + b"data: "
            + json.dumps({"choices": [], "usage": usage}).encode()
            + b"\n\ndata: [DONE]\n\n"
        )
    if wire_format == "openai_responses":
        response = {"instructions": "x" * 40_000, "usage": usage, "metadata": {}}
        return (
            event("response.created", {"response": {"usage": None}})
            + filler
            + event("response.completed", {"type": "response.completed", "response": response})
        )
    start = {**usage, "output_tokens": 1}
    return (
        event("message_start", {"message": {"usage": start}})
        + filler
        + event("message_delta", {"delta": {}, "usage": {"output_tokens": 20}})
        + event("message_stop", {"type": "message_stop"})
    )
