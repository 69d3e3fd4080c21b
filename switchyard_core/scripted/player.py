"""Plays a script: one request in, the whole reply out, without input or output."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal
from urllib.parse import unquote

from switchyard_core.declarations import Endpoint, WireFormat
from switchyard_core.scripted.answer import Answer, as_bytes, make_answer
from switchyard_core.scripted.script import Fault, Script
from switchyard_core.scripted.select import Asked, Choice, Selector
from switchyard_core.scripted.strict.provider import strict_provider
from switchyard_core.scripted.strict.rules import Refusal
from switchyard_core.wire import FORMATS, Format
from switchyard_core.wire.answers import Event

__all__ = ["Ending", "Player", "Reply"]

#: ``whole``: to the end; ``cut``: closed after the last chunk; ``drop``: closed before any byte.
Ending = Literal["whole", "cut", "drop"]

_JSON = ("content-type", "application/json")
_SSE = (("content-type", "text/event-stream; charset=utf-8"), ("cache-control", "no-cache"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The provider's answer to one request."""

    status: int
    headers: tuple[tuple[str, str], ...]  # names in lower case and values
    chunks: tuple[bytes, ...]  # the body; one chunk per event of a stream
    ending: Ending = "whole"
    delay_s: float = 0.0
    event_delay_s: float = 0.0
    wire_format: WireFormat | None = None  # format of the endpoint, `None` for those that have none
    choice: Choice | None = None
    model: str = ""
    stream: bool = False


class Player:
    """A scripted provider without a connection.

    Answers depend on the request alone, except for faults, which are counted.
    """

    def __init__(
        self,
        script: Script,
        now: Callable[[], float] = time.time,
        strict: str | None = None,  # name of a strict provider, in place of the script's own
    ) -> None:
        self._script = script
        self._selector = Selector(script)
        self._now = now
        name = strict or script.strict
        self._strict = strict_provider(name) if name is not None else None

    def play(
        self,
        method: str,
        path: str,
        headers: Iterable[tuple[str, str]],
        body: bytes,
        speaks: WireFormat | None = None,
    ) -> Reply:
        """Return the reply to a request; only the end of the path counts.

        ``speaks`` limits the provider to one wire format.
        """
        path = path.rstrip("/")
        known = FORMATS.values() if speaks is None else (FORMATS[speaks],)
        first = next(iter(known))
        if method in ("GET", "HEAD"):
            return self._read(method, path, first)
        found = _endpoint(path, known) if method == "POST" else None
        if found is None:
            return _refused(first, 404, f"no such endpoint: {method} {path}")
        wire_format, endpoint = found
        try:
            tree = json.loads(body)
        except (ValueError, RecursionError):
            tree = None
        if not isinstance(tree, dict):
            return _refused(wire_format, 400, "the body is not a JSON object")
        asked = Asked(
            format=wire_format,
            body=tree,
            raw=body,
            headers={name.lower(): value for name, value in headers},
        )
        try:
            return self._answer(asked, path, endpoint)
        except RecursionError:
            return _refused(wire_format, 400, "the body is nested too deeply")

    def _answer(self, asked: Asked, path: str, endpoint: Endpoint) -> Reply:
        strict = self._strict
        sent = strict.sent(asked, path, endpoint) if strict is not None else None
        if strict is not None and sent is not None and (refusal := strict.refusal(sent)):
            return _refused_strictly(asked, refusal)
        if endpoint in ("count_tokens", "input_tokens"):
            return _count(asked)
        choice = self._selector.choose(asked)
        if choice is None:
            message_text = f"no script answers this request for model `{asked.model}`"
            return _refused(asked.format, 400, message_text)
        answer = make_answer(choice.turn, asked, int(self._now()))
        if strict is not None and sent is not None:
            answer = strict.dressed(sent, answer)
        return _reply(asked, choice, answer, compacts=endpoint == "compact")

    def _read(self, method: str, path: str, wire_format: Format) -> Reply:
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
            return Reply(status=200, headers=(_JSON,), chunks=(_json(2, listing),))
        for row in rows:
            if unquote(name) == f"/{row['id']}":
                return Reply(status=200, headers=(_JSON,), chunks=(_json(2, row),))
        return _refused(wire_format, 404, f"no such endpoint: {method} {path}")


def _endpoint(path: str, known: Iterable[Format]) -> tuple[Format, Endpoint] | None:
    for wire_format in known:
        for endpoint, end in wire_format.paths.items():
            if path.endswith(end):
                return wire_format, endpoint
    return None


def _reply(asked: Asked, choice: Choice, answer: Answer, *, compacts: bool) -> Reply:
    stream = asked.stream and not compacts
    base = Reply(
        status=200,
        headers=(),
        chunks=(),
        delay_s=choice.turn.delay_s,
        event_delay_s=choice.turn.event_delay_s,
        wire_format=asked.format.name,
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
            return _failed(base, asked.format, fault)
    request_id = (asked.format.request_id_header, f"req_{answer.key[:24]}")
    if stream:
        return _streamed(replace(base, headers=(*_SSE, request_id)), asked, answer, fault)
    data = _json(asked.format.indent, (answer.compaction if compacts else answer.whole)(asked))
    base = replace(base, headers=(_JSON, ("content-length", str(len(data))), request_id))
    if fault is not None:
        return replace(base, chunks=(data[: len(data) // 2],), ending="cut")
    return replace(base, chunks=(data,))


def _streamed(base: Reply, asked: Asked, answer: Answer, fault: Fault | None) -> Reply:
    events = list(answer.events(asked))
    if fault is not None:
        events = events[: max(1, len(events) // 2)]
        if fault.kind == "error_event":
            status = fault.status or asked.format.overloaded
            told = _told(status, fault.message)
            events.append(asked.format.provider_error_event(status, told, len(events)))
    return replace(
        base,
        chunks=tuple(map(_event, events)),
        ending="cut" if fault is not None and fault.kind == "cut" else "whole",
    )


def _failed(base: Reply, wire_format: Format, fault: Fault) -> Reply:
    status, request_id = fault.status or wire_format.overloaded, "req_failed"
    body = wire_format.provider_error(status, _told(status, fault.message), request_id)
    more = tuple((name.lower(), value) for name, value in fault.headers.items())
    headers = (_JSON, (wire_format.request_id_header, request_id), *more)
    return replace(base, status=status, headers=headers, chunks=(_json(wire_format.indent, body),))


def _refused(wire_format: Format, status: int, message: str) -> Reply:
    body = wire_format.provider_error(status, _told(status, message), "req_scripted")
    chunks = (_json(wire_format.indent, body),)
    return Reply(status=status, headers=(_JSON,), chunks=chunks, wire_format=wire_format.name)


def _refused_strictly(asked: Asked, refusal: Refusal) -> Reply:
    return Reply(
        status=refusal.status,
        headers=(_JSON, (asked.format.request_id_header, "req_scripted")),
        chunks=(_json(asked.format.indent, refusal.body),),
        wire_format=asked.format.name,
        model=asked.model,
        stream=asked.stream,
    )


def _told(status: int, message: str) -> str:
    return message or f"scripted failure {status}"


def _count(asked: Asked) -> Reply:
    count = asked.format.token_count(max(1, len(asked.raw) // 4))
    chunks = (_json(asked.format.indent, count),)
    return Reply(
        status=200,
        headers=(_JSON,),
        chunks=chunks,
        wire_format=asked.format.name,
        model=asked.model,
    )


def _json(indent: int | None, tree: Any) -> bytes:
    """Return JSON as the providers write it: OpenAI indents whole answers, Anthropic does not."""
    if indent is None:
        return as_bytes(tree)
    return as_bytes(json.dumps(tree, ensure_ascii=False, indent=indent) + "\n")


def _event(event: Event) -> bytes:
    head = f"event: {event.name}\n".encode() if event.name else b""
    return head + b"data: " + as_bytes(event.data) + b"\n\n"


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
