"""Requests from files: bare bodies, recorded requests, or one of them per line."""

from __future__ import annotations

from collections.abc import Sequence

from switchyard_core.declarations import Endpoint, WireFormat
from switchyard_core.errors import BodyError
from switchyard_core.identity import Headers
from switchyard_core.jsonio.tree import ArrayText, JsonTextError, ObjectText, loads
from switchyard_core.request import Request
from switchyard_core.wire import endpoint_of, guess_format

__all__ = ["read_requests"]


def read_requests(
    data: bytes,
    *,
    wire_format: WireFormat | None = None,
    headers: Sequence[tuple[str, str]] = (),
) -> list[Request]:
    """Return the requests of a file.

    Args:
        data: A body; or an object whose ``request`` holds ``body`` and perhaps ``headers``,
            ``path`` and ``query``, as recorders write it; or one of them per line, or an array
            of them.
        wire_format: Of all of them; ``None`` takes it from the path, else from the body.
        headers: Added to each request, before its own of the same name.

    Raises:
        BodyError: The file is not that, or a wire format cannot be told.

    Guarantees:
        The bytes of a body are those of the file.
    """
    whole = _object(data)
    if isinstance(whole, ObjectText):
        return [_request(whole, wire_format, headers)]
    items = _array(data)
    if items is not None:
        return [_item(items, number, wire_format, headers) for number in range(len(items))]
    lines = [(number, line) for number, line in enumerate(data.split(b"\n"), 1) if line.strip()]
    if len(lines) < 2 or isinstance(_object(lines[0][1]), JsonTextError):
        # Not one object per line either: the body itself is at fault, and decide says where.
        return [_made(data, wire_format or "openai_chat", headers)]
    requests = []
    for number, line in lines:
        found = _object(line)
        if isinstance(found, JsonTextError):
            message = f"line {number}: {found.message}"
            raise BodyError(message=message, code="invalid_json", param=f"line {number}")
        requests.append(_request(found, wire_format, headers))
    return requests


def _array(data: bytes) -> ArrayText | None:
    """Return an array with something in it, ``None`` when the data is none."""
    try:
        items = ArrayText(data) if data.lstrip()[:1] == b"[" else None
    except JsonTextError:
        return None
    return items if items is not None and len(items) else None


def _item(
    items: ArrayText,
    number: int,
    wire_format: WireFormat | None,
    headers: Sequence[tuple[str, str]],
) -> Request:
    outer = items.object(number)
    if outer is None:
        message = f"item {number + 1} of the array is no object"
        raise BodyError(message=message, code="invalid_json", param=f"item {number + 1}")
    return _request(outer, wire_format, headers)


def _object(data: bytes) -> ObjectText | JsonTextError:
    try:
        return ObjectText(data)
    except JsonTextError as error:
        return error


def _request(
    outer: ObjectText, wire_format: WireFormat | None, headers: Sequence[tuple[str, str]]
) -> Request:
    recorded = outer.object("request")
    body = recorded.raw("body") if recorded is not None else None
    if recorded is None or body is None:
        return _made(outer.dump(), wire_format, headers)
    if body[:1] == b'"':
        # Some recorders keep the body as a string, which may hold what is no JSON at all.
        body = (recorded.text("body") or "").encode("utf-8", "surrogatepass")
    found = endpoint_of((recorded.text("path") or "").partition("?")[0])
    endpoint: Endpoint = "create"
    if found is not None and wire_format in (None, found[0]):
        wire_format, endpoint = found
    pairs = [*headers, *_headers(recorded.raw("headers"))]
    return _made(body, wire_format, pairs, endpoint=endpoint, query=recorded.text("query") or "")


def _made(
    body: bytes,
    wire_format: WireFormat | None,
    headers: Sequence[tuple[str, str]],
    *,
    endpoint: Endpoint = "create",
    query: str = "",
) -> Request:
    if wire_format is None:
        fields = _object(body)
        if isinstance(fields, JsonTextError):
            wire_format = "openai_chat"
        else:
            wire_format = guess_format(fields, Headers(headers))
    if wire_format is None:
        raise BodyError(
            message="the body has neither `messages` nor `input`: say which wire format it is in",
            code="unknown_wire_format",
        )
    return Request(
        wire_format=wire_format, body=body, headers=headers, endpoint=endpoint, query=query
    )


def _headers(raw: bytes | None) -> list[tuple[str, str]]:
    try:
        headers = {} if raw is None else loads(raw)
    except JsonTextError:
        headers = None
    if not isinstance(headers, dict) or not all(isinstance(v, str) for v in headers.values()):
        raise BodyError(
            message="`request.headers` must be an object of strings",
            code="invalid_type",
            param="request.headers",
        )
    return list(headers.items())
