"""An answer as OpenAI Chat Completions sends it: whole, and as a stream of chunks.

Source: shapes of the public API reference; ``reasoning_content`` is the field that
OpenAI-compatible providers use for readable reasoning.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from switchyard_core.scripted.answer import Answer, Event, compact, pieces

__all__ = ["chat_completion", "chat_events"]

_STOPS = {"stop": "stop", "calls": "tool_calls", "length": "length", "filter": "content_filter"}


def chat_completion(answer: Answer) -> dict[str, Any]:
    """Return the whole ``chat.completion`` object."""
    message: dict[str, Any] = {"role": "assistant", "content": answer.text or None, "refusal": None}
    if answer.reasoning:
        message["reasoning_content"] = answer.reasoning
    if answer.calls:
        message["tool_calls"] = [
            {
                "id": call.id_with("call_"),
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in answer.calls
        ]
    message["annotations"] = []
    return {
        "id": f"chatcmpl-{answer.key[:29]}",
        "object": "chat.completion",
        "created": answer.created,
        "model": answer.model,
        "choices": [
            {
                "index": 0,
                "message": message,
                "logprobs": None,
                "finish_reason": _finish_reason(answer),
            }
        ],
        "usage": _usage(answer),
        "service_tier": "default",
        "system_fingerprint": "fp_scripted",
    }


def chat_events(answer: Answer, *, include_usage: bool) -> Iterator[Event]:
    """Yield the stream of an answer, ``[DONE]`` included.

    Args:
        answer: What to send.
        include_usage: Whether the request has ``stream_options.include_usage``: then every
            chunk has a ``usage``, which is null until a last one without choices.
    """

    def chunk(delta: dict[str, Any], finish: str | None = None) -> Event:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return _chunk(answer, [choice], {"usage": None} if include_usage else {})

    only_calls = bool(answer.calls) and not answer.text
    yield chunk({"role": "assistant", "content": None if only_calls else "", "refusal": None})
    for piece in pieces(answer.reasoning):
        yield chunk({"reasoning_content": piece})
    for piece in pieces(answer.text):
        yield chunk({"content": piece})
    for index, call in enumerate(answer.calls):
        head = {
            "index": index,
            "id": call.id_with("call_"),
            "type": "function",
            "function": {"name": call.name, "arguments": ""},
        }
        yield chunk({"tool_calls": [head]})
        for piece in pieces(call.arguments):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield chunk({}, _finish_reason(answer))
    if include_usage:
        yield _chunk(answer, [], {"usage": _usage(answer)})
    yield Event(data="[DONE]")


def _chunk(answer: Answer, choices: list[dict[str, Any]], more: dict[str, Any]) -> Event:
    body = {
        "id": f"chatcmpl-{answer.key[:29]}",
        "object": "chat.completion.chunk",
        "created": answer.created,
        "model": answer.model,
        "service_tier": "default",
        "system_fingerprint": "fp_scripted",
        "choices": choices,
        **more,
    }
    return Event(data=compact(body))


def _finish_reason(answer: Answer) -> str:
    return _STOPS.get(answer.stop, answer.stop)


def _usage(answer: Answer) -> dict[str, Any]:
    return {
        "prompt_tokens": answer.input_tokens,
        "completion_tokens": answer.output_tokens,
        "total_tokens": answer.input_tokens + answer.output_tokens,
        "prompt_tokens_details": {"cached_tokens": answer.cached_tokens, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": answer.reasoning_tokens,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }
