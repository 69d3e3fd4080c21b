"""Plays a script: one request in, the whole reply out, without any input or output of its own."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal
from urllib.parse import unquote

from switchyard_core.declarations import WireFormat
from switchyard_core.scripted.answer import Answer, Event, compact, make_answer
from switchyard_core.scripted.failures import OVERLOADED, error_body, error_event
from switchyard_core.scripted.render_chat import chat_completion, chat_events
from switchyard_core.scripted.render_messages import message, message_events
from switchyard_core.scripted.render_responses import (
    compaction,
    response,
    response_events,
)
from switchyard_core.scripted.script import Fault, Script
from switchyard_core.scripted.select import Asked, Choice, Selector

__all__ = ["Ending", "Player", "Reply"]

#: ``whole``: to the end; ``cut``: closed after the last chunk; ``drop``: closed before any byte.
Ending = Literal["whole", "cut", "drop"]

_Kind = Literal["answer", "count", "compact"]

# The ends of the paths, and what is asked for there.
_ENDPOINTS: tuple[tuple[str, WireFormat, _Kind], ...] = (
    ("/chat/completions", "openai_chat", "answer"),
    ("/responses", "openai_responses", "answer"),
    ("/responses/input_tokens", "openai_responses", "count"),
    ("/responses/compact", "openai_responses", "compact"),
    ("/messages", "anthropic_messages", "answer"),
    ("/messages/count_tokens", "anthropic_messages", "count"),
)
_JSON = ("content-type", "application/json")
_SSE = (("content-type", "text/event-stream; charset=utf-8"), ("cache-control", "no-cache"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What the provider sends back.

    Args:
        status: HTTP status.
        headers: Names in lower case and values.
        chunks: The body; one chunk per event of a stream.
        ending: How the connection ends.
        delay_s: Seconds before the answer.
        event_delay_s: Seconds between two chunks.
        wire_format: Format of the endpoint, ``None`` for those that have none.
        choice: What was chosen for a request to a model.
        model: Model id that was asked for.
        stream: Whether the body asked for a stream.
    """

    status: int
    headers: tuple[tuple[str, str], ...]
    chunks: tuple[bytes, ...]
    ending: Ending = "whole"
    delay_s: float = 0.0
    event_delay_s: float = 0.0
    wire_format: WireFormat | None = None
    choice: Choice | None = None
    model: str = ""
    stream: bool = False


class Player:
    """A scripted provider without a connection.

    Answers depend on the request alone, except for faults, which are counted.

    Args:
        script: What to play.
        now: Seconds since the epoch, for the times in answers.
    """

    def __init__(self, script: Script, now: Callable[[], float] = time.time) -> None:
        self._script = script
        self._selector = Selector(script)
        self._now = now

    def play(
        self,
        method: str,
        path: str,
        headers: Iterable[tuple[str, str]],
        body: bytes,
        speaks: WireFormat | None = None,
    ) -> Reply:
        """Return the reply to a request.

        Args:
            method: HTTP method, upper case.
            path: Path; only its end is looked at.
            headers: Names and values.
            body: The body's bytes.
            speaks: Only this wire format is known; all three when absent.
        """
        path = path.rstrip("/")
        if method in ("GET", "HEAD"):
            return self._read(method, path, speaks)
        endpoint = _endpoint(path, speaks) if method == "POST" else None
        if endpoint is None:
            return _refused(speaks or "openai_chat", 404, f"no such endpoint: {method} {path}")
        wire_format, kind = endpoint
        try:
            tree = json.loads(body)
        except (ValueError, RecursionError):
            tree = None
        if not isinstance(tree, dict):
            return _refused(wire_format, 400, "the body is not a JSON object")
        asked = Asked(
            wire_format=wire_format,
            body=tree,
            raw=body,
            headers={name.lower(): value for name, value in headers},
        )
        try:
            return self._answer(asked, kind)
        except RecursionError:
            return _refused(wire_format, 400, "the body is nested too deeply")

    def _answer(self, asked: Asked, kind: _Kind) -> Reply:
        if kind == "count":
            return _count(asked)
        choice = self._selector.choose(asked)
        if choice is None:
            message_text = f"no script answers this request for model `{asked.model}`"
            return _refused(asked.wire_format, 400, message_text)
        answer = make_answer(choice.turn, asked, int(self._now()))
        return _reply(asked, choice, answer, compacts=kind == "compact")

    def _read(self, method: str, path: str, speaks: WireFormat | None) -> Reply:
        if method == "HEAD" or not path:
            return Reply(status=200, headers=(_JSON,), chunks=(b"{}",) if method == "GET" else ())
        rows = [_model_row(name) for name in self._script.models]
        _, found, name = path.partition("/models")
        if found and not name:
            listing = {
                "object": "list",
                "data": rows,
                "has_more": False,
                "first_id": rows[0]["id"] if rows else None,
                "last_id": rows[-1]["id"] if rows else None,
            }
            return Reply(status=200, headers=(_JSON,), chunks=(_json(None, listing),))
        for row in rows:
            if unquote(name) == f"/{row['id']}":
                return Reply(status=200, headers=(_JSON,), chunks=(_json(None, row),))
        return _refused(speaks or "openai_chat", 404, f"no such endpoint: {method} {path}")


def _endpoint(path: str, speaks: WireFormat | None) -> tuple[WireFormat, _Kind] | None:
    for end, wire_format, kind in _ENDPOINTS:
        if path.endswith(end) and speaks in (None, wire_format):
            return wire_format, kind
    return None


def _reply(asked: Asked, choice: Choice, answer: Answer, *, compacts: bool) -> Reply:
    stream = asked.stream and not compacts
    base = Reply(
        status=200,
        headers=(),
        chunks=(),
        delay_s=choice.turn.delay_s,
        event_delay_s=choice.turn.event_delay_s,
        wire_format=asked.wire_format,
        choice=choice,
        model=asked.model,
        stream=stream,
    )
    fault = choice.fault
    if fault is not None:
        if fault.kind == "drop":
            return replace(base, ending="drop")
        if fault.kind == "garbage":
            page = b"<html><body>this is no answer of a model</body></html>"
            return replace(base, headers=(("content-type", "text/html"),), chunks=(page,))
        if fault.kind is None or (fault.kind == "error_event" and not stream):
            return _failed(base, asked.wire_format, fault)
    request_id = _request_id(asked.wire_format, answer.key[:24])
    if stream:
        return _streamed(replace(base, headers=(*_SSE, request_id)), asked, answer, fault)
    tree = compaction(answer, asked.body) if compacts else _tree(asked, answer)
    data = _json(asked.wire_format, tree)
    base = replace(base, headers=(_JSON, ("content-length", str(len(data))), request_id))
    if fault is not None:
        return replace(base, chunks=(data[: len(data) // 2],), ending="cut")
    return replace(base, chunks=(data,))


def _streamed(base: Reply, asked: Asked, answer: Answer, fault: Fault | None) -> Reply:
    events = list(_events(asked, answer))
    if fault is not None:
        events = events[: max(1, len(events) // 2)]
        if fault.kind == "error_event":
            status = fault.status or OVERLOADED[asked.wire_format]
            events.append(error_event(asked.wire_format, status, fault.message, len(events)))
    return replace(
        base,
        chunks=tuple(event.encode() for event in events),
        ending="cut" if fault is not None and fault.kind == "cut" else "whole",
    )


def _failed(base: Reply, wire_format: WireFormat, fault: Fault) -> Reply:
    status = fault.status or OVERLOADED[wire_format]
    request_id = _request_id(wire_format, "failed")
    body = error_body(wire_format, status, fault.message, request_id=request_id[1])
    more = tuple((name.lower(), value) for name, value in fault.headers.items())
    headers = (_JSON, request_id, *more)
    return replace(base, status=status, headers=headers, chunks=(_json(wire_format, body),))


def _refused(wire_format: WireFormat, status: int, message: str) -> Reply:
    base = Reply(status=status, headers=(_JSON,), chunks=(), wire_format=wire_format)
    return replace(base, chunks=(_json(wire_format, error_body(wire_format, status, message)),))


def _count(asked: Asked) -> Reply:
    count: dict[str, Any] = {"input_tokens": max(1, len(asked.raw) // 4)}
    if asked.wire_format == "openai_responses":
        count = {"object": "response.input_tokens", **count}
    chunks = (_json(asked.wire_format, count),)
    return Reply(
        status=200,
        headers=(_JSON,),
        chunks=chunks,
        wire_format=asked.wire_format,
        model=asked.model,
    )


def _tree(asked: Asked, answer: Answer) -> dict[str, Any]:
    if asked.wire_format == "openai_chat":
        return chat_completion(answer)
    if asked.wire_format == "openai_responses":
        return response(answer, asked.body)
    return message(answer)


def _events(asked: Asked, answer: Answer) -> Iterator[Event]:
    if asked.wire_format == "openai_chat":
        options = asked.body.get("stream_options")
        usage = isinstance(options, dict) and options.get("include_usage") is True
        return chat_events(answer, include_usage=usage)
    if asked.wire_format == "openai_responses":
        return response_events(answer, asked.body)
    return message_events(answer)


def _bytes(text: str) -> bytes:
    # A lone surrogate that a request echoes becomes its JSON escape.
    return text.encode("utf-8", "backslashreplace")


def _json(wire_format: WireFormat | None, tree: dict[str, Any]) -> bytes:
    """Return JSON as the providers write it: OpenAI indents whole answers, Anthropic does not."""
    if wire_format == "anthropic_messages":
        return _bytes(compact(tree))
    return _bytes(json.dumps(tree, ensure_ascii=False, indent=2) + "\n")


def _request_id(wire_format: WireFormat, key: str) -> tuple[str, str]:
    name = "request-id" if wire_format == "anthropic_messages" else "x-request-id"
    return name, f"req_{key}"


def _model_row(name: str) -> dict[str, Any]:
    # One row in the shape of both OpenAI and Anthropic.
    return {
        "id": name,
        "object": "model",
        "created": 0,
        "owned_by": "scripted",
        "type": "model",
        "display_name": name,
        "created_at": "1970-01-01T00:00:00Z",
    }
