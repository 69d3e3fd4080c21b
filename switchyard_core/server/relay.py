"""Calls to providers: routed, or passed on to the `fallback_client`; their answers, untouched."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast
from urllib.parse import unquote

from switchyard_core.clients import gets_error_event
from switchyard_core.decision import Decision, Outgoing
from switchyard_core.declarations import Endpoint, WireFormat
from switchyard_core.engine.calling import forwarded_headers
from switchyard_core.engine.response import Response, succeeded
from switchyard_core.errors import RequestError
from switchyard_core.explain.explanation import Question, explain_or_ask
from switchyard_core.jsonio.tree import encode
from switchyard_core.request import Request
from switchyard_core.server.access_log import LogEntry
from switchyard_core.server.exchange import Exchange, header_value
from switchyard_core.server.metrics import Metrics
from switchyard_core.server.problems import error_event, log_fault, problem_of
from switchyard_core.upstream.base import UpstreamResponse

if TYPE_CHECKING:
    from switchyard_core.switchyard import Switchyard

__all__ = ["METHODS", "check_passable", "decision_headers", "pass_on", "relay", "serve_call"]

# They describe one connection, or speak for the provider's host: not for ours.
_LEFT_OUT = frozenset(
    {"alt-svc", "clear-site-data", "connection", "keep-alive", "nel", "origin-agent-cluster",
     "proxy-authenticate", "proxy-connection", "report-to", "reporting-endpoints",
     "service-worker-allowed", "set-cookie", "strict-transport-security", "te",
     "timing-allow-origin", "trailer", "transfer-encoding", "upgrade"}
)  # fmt: skip
# They tell browsers which pages may use an answer, which only this server may decide.
_FOR_PAGES = ("access-control-", "cross-origin-")
_EVENT_STREAM = "text/event-stream"

#: Methods that are passed on to a provider.
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")

# How often a path is decoded to see where it leads; a path that is still encoded is refused.
_DECODINGS = 4
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


async def relay(
    exchange: Exchange,
    answer: Response | UpstreamResponse,
    ours: Sequence[tuple[str, str]],
    wire_format: WireFormat,
) -> Exception | None:
    """Pass an answer on, each chunk when it arrives and the client can take it.

    Return why the answer has no end, if the caller was told so by an error event. Where there is no
    place for one, or the client wants none, the error is raised: the connection must be broken off,
    so that the answer never looks complete.
    """
    async with answer:
        await exchange.start(answer.status, _headers(exchange, answer, ours))
        before = last = b""
        chunks = answer.chunks
        while True:
            # Only what the answer fails with is told to the client; what sending fails with, such
            # as a client that left, is not.
            try:
                chunk = await anext(chunks)
            except StopAsyncIteration:
                break
            except Exception as error:
                agent = exchange.headers.get("user-agent", "")
                if not (_takes_events(answer) and gets_error_event(agent)):
                    raise
                log_fault(exchange, error)
                problem = problem_of(error, exchange.request_id)
                tail = before + last
                await exchange.end(error_event(wire_format, problem, exchange.request_id, tail))
                return error
            await exchange.write(chunk)
            if not _is_comment(chunk, last):
                before, last = last, chunk
        await exchange.end()
    return None


def _headers(
    exchange: Exchange, answer: Response | UpstreamResponse, ours: Sequence[tuple[str, str]]
) -> list[tuple[bytes, bytes]]:
    left_out = set(_LEFT_OUT)
    left_out.update(name for name, _ in ours)
    for name, value in answer.headers:
        if name == "connection":
            left_out.update(word.strip().lower() for word in value.split(","))
    pairs = [
        (name.encode("latin-1"), value.encode("latin-1"))
        for name, value in answer.headers
        if name not in left_out and not name.startswith(_FOR_PAGES)
    ]
    pairs += [(name.encode(), header_value(value)) for name, value in ours]
    pairs.append((b"x-switchyard-request-id", exchange.request_id.encode()))
    if not any(name == b"x-request-id" for name, _ in pairs):
        pairs.append((b"x-request-id", exchange.request_id.encode()))
    return pairs


def _is_comment(chunk: bytes, last: bytes) -> bool:
    """Return whether a chunk is only a comment, which is not an event."""
    whole = chunk.startswith(b":") and chunk.find(b"\n\n") == len(chunk) - 2
    return whole and last.endswith(b"\n\n")


def _is_stream(answer: Response | UpstreamResponse) -> bool:
    return dict(answer.headers).get("content-type", "").lower().startswith(_EVENT_STREAM)


def _takes_events(answer: Response | UpstreamResponse) -> bool:
    """Return whether an event of ours can be added to the body of an answer."""
    headers = dict(answer.headers)
    return (
        _is_stream(answer)
        and headers.get("content-encoding", "identity") == "identity"
        and "content-length" not in headers
    )


def check_passable(exchange: Exchange) -> None:
    """Refuse another method (405), and a path that could leave the base URL (404)."""
    if exchange.method not in METHODS:
        raise RequestError(
            f"`{exchange.method[:20]}` is not passed on to a provider",
            "method_not_allowed",
            405,
            headers={"allow": ", ".join(METHODS)},
        )
    if not _stays_below(exchange.raw_path):
        raise RequestError(
            "the path could leave the provider's base URL: it has dot segments, two "
            "slashes at its start, control characters, or no slash at its start",
            "not_found",
            404,
        )


def _stays_below(path: str) -> bool:
    """Return whether a path stays below a base URL, however often a server decodes it."""
    for _ in range(_DECODINGS):
        plain = path.replace("\\", "/")
        # Some servers drop the part of a segment after a semicolon, and spaces around it.
        parts = [part.partition(";")[0].strip() for part in plain.split("/")]
        if not plain.startswith("/") or plain.startswith("//") or not {".", ".."}.isdisjoint(parts):
            return False
        if _CONTROL.search(plain):
            return False
        try:
            decoded = unquote(path, errors="strict")
        except UnicodeDecodeError:
            return False
        if decoded == path:
            return True
        path = decoded
    return False


async def pass_on(
    exchange: Exchange,
    engine: Switchyard,
    name: str,
    body: bytes,
    wire_format: WireFormat,
    *,
    dry_run: bool = False,
) -> Exception | None:
    """Send a request on as it is and pass the answer back; return what :func:`relay` does."""
    client = engine.policy.clients[name]
    headers = forwarded_headers(exchange.headers, client)
    if not body and "content-type" not in exchange.headers:
        headers = tuple(pair for pair in headers if pair[0] != "content-type")
    outgoing = Outgoing(
        wire_format=client.format,
        path=exchange.raw_path,
        query=exchange.query,
        headers=headers,
        body=body,
        stream=False,
        target="",
        model="",
        method=exchange.method,
        route="fallback",
        role=name,
    )
    if dry_run:
        told = {
            "fallback_client": name,
            "method": outgoing.method,
            "path": outgoing.path,
            "query": outgoing.query,
            "body_bytes": len(body),
        }
        await exchange.respond(200, encode(told))
        return None
    answer = await engine.upstreams.call(client, outgoing, exchange.headers)
    return await relay(exchange, answer, (), wire_format)


async def serve_call(
    entry: LogEntry, engine: Switchyard, metrics: Metrics, body: bytes, *, dry_run: bool = False
) -> None:
    """Serve a call to a model whose body is there."""
    entry.begin(body)
    exchange = entry.exchange
    request = Request(
        wire_format=entry.wire_format,
        body=body,
        headers=exchange.headers,
        endpoint=cast("Endpoint", entry.call),
        query=exchange.query,
    )
    metrics.active += 1
    try:
        async with exchange.watched():
            if dry_run:
                await _explain(entry, engine, request)
            else:
                await _call(entry, engine, request)
    except BaseException:
        if entry.decision is None:
            entry.facts = engine.facts_of(request)
        raise
    finally:
        metrics.active -= 1


async def _call(entry: LogEntry, engine: Switchyard, request: Request) -> None:
    response = await engine.handle(request, sent=entry.sending)
    entry.answered(response)
    cut = await relay(
        entry.exchange,
        response,
        decision_headers(engine, response.decision),
        entry.wire_format,
    )
    if cut is not None:
        entry.failed(cut)
    elif succeeded(response.status) and not _is_ok(response):
        entry.error = "stream_failed" if _is_stream(response) else "answer_failed"


async def _explain(entry: LogEntry, engine: Switchyard, request: Request) -> None:
    found = await explain_or_ask(engine, request)
    # A question has no decision yet: the router would ask a model first.
    decision = None if isinstance(found, Question) else found.decision.with_(effects=())
    entry.decision = decision
    headers = decision_headers(engine, decision)
    await entry.exchange.respond(200, encode(found.as_json()), headers=headers)


def decision_headers(engine: Switchyard, decision: Decision | None) -> list[tuple[str, str]]:
    """Return the headers that tell a caller what was decided."""
    if decision is None:
        return []
    headers = [("x-switchyard-route", decision.route)]
    if not engine.runtimes[decision.route].answers:
        # Of an answer that a router wrote, no one target is the source.
        headers += [
            ("x-switchyard-target", decision.target),
            ("x-switchyard-reason", decision.reason.code),
            ("x-model-router-selected-model", engine.policy.targets[decision.target].id),
        ]
    if decision.phase:
        headers.append(("x-switchyard-phase", decision.phase))
    if decision.warnings:
        codes = dict.fromkeys(warning.code for warning in decision.warnings)
        headers.append(("x-switchyard-warning", ",".join(codes)))
    return headers


def _is_ok(response: Response) -> bool:
    return response.outcome is None or response.outcome.ok
