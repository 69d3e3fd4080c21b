"""Passing a provider's answer on: its headers, and its body chunk by chunk, untouched."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Protocol, Self

from switchyard_core.declarations import WireFormat
from switchyard_core.server.exchange import Exchange, header_value
from switchyard_core.server.problems import error_event, log_fault, problem_of

__all__ = ["Answer", "relay"]

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


class Answer(Protocol):
    """An answer of a provider: the engine's, or the raw one of an upstream."""

    status: int
    headers: tuple[tuple[str, str], ...]

    @property
    def chunks(self) -> AsyncIterator[bytes]:
        """The body as it arrives."""
        ...

    async def __aenter__(self) -> Self:
        """Return the answer."""
        ...

    async def __aexit__(self, *exc_info: object) -> None:
        """End the call."""
        ...


async def relay(
    exchange: Exchange,
    answer: Answer,
    ours: Sequence[tuple[str, str]],
    wire_format: WireFormat,
    note: Callable[[bytes], None] | None = None,
) -> Exception | None:
    """Pass an answer on, each chunk when it arrives and the client can take it.

    Args:
        exchange: Where it goes.
        answer: What the provider sends.
        ours: Headers that we add.
        wire_format: Of the caller.
        note: Gets each chunk after it was passed on.

    Returns:
        Why the answer has no end, if it has none and the caller has been told so by an error
        event: a provider broke off, or the router that writes it failed.

    Raises:
        Exception: The same where the format has no place to say so: the connection must be
            broken off, so that the answer never looks complete.
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
                if not _takes_events(answer):
                    raise
                log_fault(exchange, error)
                problem = problem_of(error, exchange.request_id)
                tail = before + last
                await exchange.end(error_event(wire_format, problem, exchange.request_id, tail))
                return error
            await exchange.write(chunk)
            if not _is_comment(chunk, last):
                before, last = last, chunk
            if note is not None:
                note(chunk)
        await exchange.end()
    return None


def _headers(
    exchange: Exchange, answer: Answer, ours: Sequence[tuple[str, str]]
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
    """Return whether a chunk is no more than a comment, which counts for no event."""
    whole = chunk.startswith(b":") and chunk.find(b"\n\n") == len(chunk) - 2
    return whole and last.endswith(b"\n\n")


def _takes_events(answer: Answer) -> bool:
    """Return whether an event of ours can be added to the body of an answer."""
    headers = dict(answer.headers)
    return (
        headers.get("content-type", "").lower().startswith(_EVENT_STREAM)
        and headers.get("content-encoding", "identity") == "identity"
        and "content-length" not in headers
    )
