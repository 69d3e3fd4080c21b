"""Errors as a caller sees them: the shape of its wire format, whole or inside a stream."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from dataclasses import replace

from switchyard_core.declarations import WireFormat
from switchyard_core.errors import PluginError, RequestError, UpstreamError
from switchyard_core.models.phrases import meaning_of
from switchyard_core.server.exchange import Exchange
from switchyard_core.wire import format_of

__all__ = ["error_event", "fail", "log_fault", "problem_of"]

#: Refusals that the same request may escape a moment later.
_WORTH_A_RETRY = frozenset({408, 409, 425, 429})

#: What providers report inside of an answer, and the code and status that say it to a caller.
_REPORTED = (
    (re.compile(r"overloaded|slow_down"), "overloaded_error", 529),
    (re.compile(r"rate.?limit", re.IGNORECASE), "rate_limit_exceeded", 429),
)

#: Status of a request that does not fit the model's window.
_REFUSED = 400

_LOG = logging.getLogger("switchyard")


def problem_of(error: BaseException, request_id: str) -> RequestError:
    """Return an error as one with a status and a code, fit for a caller's eyes.

    Of a fault of ours the caller learns the request id, and of a plugin's which plugin it was:
    the text of either may hold anything, a part of the body or a key, and is for the log alone.
    """
    if isinstance(error, RequestError):
        return _told_once(error)
    final = {"x-should-retry": "false"} if getattr(error, "final", False) else {}
    if isinstance(error, UpstreamError):
        if error.kind == "failed" and meaning_of(error.message, _REFUSED) == "overflow":
            # Clients compact their history on it.
            message = f"prompt is too long: {error.message}"
            return RequestError(message, "context_length_exceeded", _REFUSED, headers=final)
        for told, code, status in _REPORTED if error.kind == "failed" else ():
            if told.search(error.message):
                return RequestError(error.message, code, status, headers=final)
        return RequestError(error.message, f"upstream_{error.kind}", error.status, headers=final)
    if isinstance(error, PluginError):
        return RequestError(
            f"{_plugin(error)} failed; the log of switchyard has the details under {request_id}",
            "plugin_error",
            500,
            headers=final,
        )
    return RequestError(
        f"internal error of switchyard; its log has the details under {request_id}",
        "internal_error",
        500,
    )


def _told_once(error: RequestError) -> RequestError:
    """Return a refusal with the word that keeps clients from sending the same request again."""
    if not 400 <= error.status < 500 or error.status in _WORTH_A_RETRY:  # HTTP
        return error
    return replace(error, headers={"x-should-retry": "false", **error.headers})


def _plugin(error: PluginError) -> str:
    if not error.plugin:
        return "a plugin"
    source = f" of {error.distribution} {error.version}".rstrip() if error.distribution else ""
    return f"the plugin `{error.plugin}`{source}"


def error_event(
    wire_format: WireFormat, error: RequestError, request_id: str, last: bytes
) -> bytes:
    """Return the error event for a broken stream; an event that ``last`` leaves open is ended."""
    opening = b"" if not last or last.endswith((b"\n\n", b"\r\n\r\n")) else b"\n\n"
    return opening + format_of(wire_format).error_event(error, request_id, last)


def log_fault(exchange: Exchange, error: BaseException) -> None:
    """Log a fault of ours or of a plugin with its traceback; others need none."""
    if not isinstance(error, (RequestError, UpstreamError)):
        _LOG.error("request=%s failed", exchange.request_id, exc_info=error)


async def fail(
    exchange: Exchange,
    error: BaseException,
    wire_format: WireFormat,
    about: Sequence[tuple[str, str]] = (),
    *,
    drain: bool = False,
) -> None:
    """Answer with an error in the shape of a wire format; a fault of ours goes to the log."""
    problem = problem_of(error, exchange.request_id)
    if problem.code == _REPORTED[0][1]:
        problem = replace(problem, status=format_of(wire_format).overloaded)
    log_fault(exchange, error)
    names = dict.fromkeys(("x-request-id", format_of(wire_format).request_id_header))
    headers = [*about, *problem.headers.items(), *((n, exchange.request_id) for n in names)]
    body = format_of(wire_format).error_body(problem, exchange.request_id)
    await exchange.respond(problem.status, body, headers=headers, drain=drain)
