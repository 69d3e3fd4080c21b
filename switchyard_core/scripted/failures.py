"""Errors as the three providers send them: an answer with a status, or an event in a stream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from switchyard_core.declarations import WireFormat
from switchyard_core.scripted.answer import Event, compact

__all__ = ["OVERLOADED", "error_body", "error_event"]

#: Status of a provider that is overloaded, by wire format.
OVERLOADED: Mapping[WireFormat, int] = {
    "openai_chat": 503,
    "openai_responses": 503,
    "anthropic_messages": 529,
}

_ANTHROPIC_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


def error_body(
    wire_format: WireFormat, status: int, message: str = "", *, request_id: str = "req_scripted"
) -> dict[str, Any]:
    """Return the body of an error answer.

    Args:
        wire_format: Whose shape to use.
        status: HTTP status; the type follows from it.
        message: For the reader; says that the failure is scripted when empty.
        request_id: Id that Messages repeats in the body.
    """
    message = message or f"scripted failure {status}"
    if wire_format == "anthropic_messages":
        kind = _ANTHROPIC_TYPES.get(status, "api_error")
        error = {"type": kind, "message": message}
        return {"type": "error", "error": error, "request_id": request_id}
    if status == 429:
        kind, code = "rate_limit_error", "rate_limit_exceeded"
    elif status >= 500:
        kind, code = "server_error", None
    else:
        kind, code = "invalid_request_error", None
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def error_event(wire_format: WireFormat, status: int, message: str, number: int) -> Event:
    """Return the event that ends a stream with an error.

    Args:
        wire_format: Whose shape to use.
        status: The HTTP status that the error would have as an answer.
        message: As for :func:`error_body`.
        number: Sequence number of the event on Responses.
    """
    body = error_body(wire_format, status, message)
    if wire_format == "anthropic_messages":
        return Event(name="error", data=compact(body))
    if wire_format == "openai_chat":
        return Event(data=compact(body))
    failure = {
        "id": "resp_failed",
        "object": "response",
        "created_at": 0,
        "status": "failed",
        "model": "scripted",
        "output": [],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "error": {"code": "server_error", "message": body["error"]["message"]},
    }
    event = {"type": "response.failed", "sequence_number": number, "response": failure}
    return Event(name="response.failed", data=compact(event))
