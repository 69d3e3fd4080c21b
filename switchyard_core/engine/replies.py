"""What came of a call: the reply that a router gets, and what a failed answer tells."""

from __future__ import annotations

from dataclasses import replace

from switchyard_core.answering import AskError, ModelCall, ModelReply
from switchyard_core.decision import Failure
from switchyard_core.engine.response import succeeded
from switchyard_core.errors import ReplayError, UpstreamError
from switchyard_core.models.phrases import meaning_of
from switchyard_core.policy.models import Target
from switchyard_core.upstream.base import UpstreamResponse
from switchyard_core.upstream.encoding import EncodingError, content_encoding, decoded
from switchyard_core.wire import FORMATS
from switchyard_core.wire.passing import usage_of
from switchyard_core.wire.replies import error_code

__all__ = ["FAILURE_BYTES", "failure_of", "not_answered", "read_reply"]

#: Maximum size in bytes of an answer to a router's call, with its content encoding and without.
ANSWER_BYTES = 16 * 1024 * 1024
#: Maximum size in bytes of a failed answer that a router sees.
FAILURE_BYTES = 65536
#: Headers by which a provider says whether, and when, to try again.
_RETRY = frozenset({"retry-after", "retry-after-ms", "x-should-retry"})


def not_answered(target: Target, error: UpstreamError) -> AskError:
    """Return the error for a call that got no answer."""
    failure = Failure(kind="transport", status=0, code=error.kind, body=b"")
    return AskError(f"asking `{target.name}` failed: {error.message}", failure)


async def read_reply(target: Target, call: ModelCall, answer: UpstreamResponse) -> ModelReply:
    """Return the reply in an answer; an :class:`AskError` without one."""
    try:
        body = await answer.read(ANSWER_BYTES)
    except ReplayError:
        raise
    except UpstreamError as error:
        raise not_answered(target, error) from error
    unreadable: EncodingError | None = None
    try:
        body = b"".join(decoded(content_encoding(answer.headers), (body,), ANSWER_BYTES))
    except EncodingError as error:
        body, unreadable = b"", error
    kind = "content" if succeeded(answer.status) else "status"
    retry = {name: value for name, value in answer.headers if name in _RETRY}
    failure = replace(failure_of(kind, answer.status, body), retry=retry)
    if not succeeded(answer.status):
        raise AskError(f"asking `{target.name}` gave status {answer.status}", failure)
    if unreadable is not None:
        msg = f"asking `{target.name}`: its answer cannot be read: {unreadable}"
        raise AskError(msg, failure) from unreadable
    wire_format = FORMATS[target.client.format]
    try:
        forced = call.schema is not None and target.structured_output == "forced_tool"
        structured = call.schema_name if forced else None
        return wire_format.read_reply(body, structured)
    except ValueError as error:
        usage = usage_of(wire_format, answer.header("content-type") or "", body)
        raise AskError(f"asking `{target.name}`: {error}", failure, usage) from error


def failure_of(kind: str, status: int, body: bytes) -> Failure:
    """Return the failure that the body of an answer tells."""
    body = body[:FAILURE_BYTES]
    return Failure(
        kind=kind,
        status=status,
        code=error_code(body),
        body=body,
        meaning=meaning_of(body, status),
    )
