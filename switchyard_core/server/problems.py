"""Errors as a caller sees them: the shape of its wire format, whole or inside a stream."""

from __future__ import annotations

import re
from collections.abc import Mapping

from switchyard_core.declarations import WireFormat
from switchyard_core.errors import PluginError, RequestError, UpstreamError
from switchyard_core.formats import format_of
from switchyard_core.jsontext import encode

__all__ = ["caller_format", "error_event", "problem_of"]

_SEQUENCE = re.compile(rb'"sequence_number"\s*:\s*(\d{1,12})')


def caller_format(plain_path: str, headers: Mapping[str, str]) -> WireFormat:
    """Return whose shape of an error a caller of an unknown path will understand.

    Args:
        plain_path: Path without version.
        headers: The request's headers.
    """
    if "anthropic-version" in headers or "/messages" in plain_path:
        return "anthropic_messages"
    if "/responses" in plain_path:
        return "openai_responses"
    return "openai_chat"


def problem_of(error: Exception, request_id: str) -> RequestError:
    """Return an error as one with a status and a code, fit for a caller's eyes.

    A fault of a plugin names the plugin; of any other fault the caller only learns the request
    id, because its text may hold anything.
    """
    if isinstance(error, RequestError):
        return error
    if isinstance(error, UpstreamError):
        return RequestError(
            message=error.message, code=f"upstream_{error.kind}", status=error.status
        )
    if isinstance(error, PluginError):
        return RequestError(message=str(error), code="plugin_error", status=500)
    return RequestError(
        message=f"internal error of switchyard; its log has the details under {request_id}",
        code="internal_error",
        status=500,
    )


def error_event(
    wire_format: WireFormat, error: RequestError, request_id: str, last: bytes
) -> bytes:
    """Return what to send when a stream breaks: an error event of the wire format.

    Args:
        wire_format: Of the stream.
        error: What happened.
        request_id: Ours.
        last: The last bytes that were passed on; an event that they leave open is ended, and
            on Responses the events are counted on from there.
    """
    body = format_of(wire_format).error_body(error, request_id)
    opening = b"" if not last or last.endswith((b"\n\n", b"\r\n\r\n")) else b"\n\n"
    if wire_format == "openai_chat":
        return opening + b"data: " + body + b"\n\n"
    if wire_format == "openai_responses":
        event: dict[str, object] = {
            "type": "error",
            "code": error.code,
            "message": error.message,
            "param": None,
            # The official SDK ends quietly unless the event has an `error` of its own.
            "error": {"type": "error", "code": error.code, "message": error.message, "param": None},
        }
        numbers = _SEQUENCE.findall(last)
        if numbers:
            event["sequence_number"] = int(numbers[-1]) + 1
        body = encode(event)
    return opening + b"event: error\ndata: " + body + b"\n\n"
