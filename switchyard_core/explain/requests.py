"""The requests to explain: read from files, and the earlier turns of each."""

from __future__ import annotations

from collections.abc import Sequence

from switchyard_core.declarations import Endpoint, WireFormat
from switchyard_core.errors import BodyError
from switchyard_core.identity import Headers
from switchyard_core.jsonio.tree import ArrayText, JsonTextError, ObjectText, loads
from switchyard_core.policy.models import Policy
from switchyard_core.request import Request
from switchyard_core.wire import endpoint_of, guess_format, may_be

__all__ = ["guess_format", "read_requests", "turns_of"]


#: Most lines that are named as wrong.
_MOST = 10


def read_requests(
    data: bytes,
    *,
    wire_format: WireFormat | None = None,
    headers: Sequence[tuple[str, str]] = (),
    policy: Policy | None = None,
) -> list[Request]:
    """Return the requests of a file, each body with its own bytes.

    Args:
        data: A body; or an object whose ``request`` holds ``body`` and perhaps ``headers``,
            ``path`` and ``query``, as recorders write it; or several of them, one per line or in
            an array.
        wire_format: Of all of them; ``None`` takes it from the path, else from the body.
        headers: Added to each request, before its own of the same name.
        policy: Whose routes tell the wire format where the body does not.

    Raises:
        BodyError: The file has another form, or its wire format is unknown.
    """
    whole = _object(data)
    if isinstance(whole, ObjectText):
        return [_request(whole, wire_format, headers, policy)]
    items = _array(data)
    if items is not None:
        listed = [items.object(number) for number in range(len(items))]
        if None in listed:
            place = f"item {listed.index(None) + 1}"
            message = f"{place} of the array is not an object"
            raise BodyError(message=message, code="invalid_json", param=place)
        return [_request(outer, wire_format, headers, policy) for outer in listed if outer]
    lines = [(number, line) for number, line in enumerate(data.split(b"\n"), 1) if line.strip()]
    found = [(number, _object(line)) for number, line in lines]
    wrong = [(number, error) for number, error in found if isinstance(error, JsonTextError)]
    if len(lines) < 2 or 2 * len(wrong) > len(found):
        # Not one object per line either: the body is invalid, and decide says where.
        return [_made(data, wire_format or "openai_chat", headers)]
    if wrong:
        # Each line is read alone, so that its own number is 1.
        told = [
            f"line {n}: {e.message.replace(' at line 1 column', ' at column')}" for n, e in wrong
        ]
        more = [f"and {len(told) - _MOST} more"] if len(told) > _MOST else []
        message = "; ".join([*told[:_MOST], *more])
        raise BodyError(message=message, code="invalid_json", param=f"line {wrong[0][0]}")
    objects = (each for _, each in found if isinstance(each, ObjectText))
    return [_request(each, wire_format, headers, policy) for each in objects]


def _array(data: bytes) -> ArrayText | None:
    try:
        items = ArrayText(data) if data.lstrip()[:1] == b"[" else None
    except JsonTextError:
        return None
    return items if items is not None and len(items) else None


def _object(data: bytes) -> ObjectText | JsonTextError:
    try:
        return ObjectText(data)
    except JsonTextError as error:
        return error


def _request(
    outer: ObjectText,
    wire_format: WireFormat | None,
    headers: Sequence[tuple[str, str]],
    policy: Policy | None,
) -> Request:
    recorded = outer.object("request")
    body = recorded.raw("body") if recorded is not None else None
    if recorded is None or body is None:
        return _made(outer.dump(), wire_format, headers, policy)
    if body[:1] == b'"':
        # Some recorders keep the body as a string, which may not be JSON.
        body = (recorded.text("body") or "").encode("utf-8", "surrogatepass")
    found = endpoint_of((recorded.text("path") or "").partition("?")[0])
    endpoint: Endpoint = "create"
    if found is not None and wire_format in (None, found[0]):
        wire_format, endpoint = found
    pairs = [*headers, *_headers(recorded.raw("headers"))]
    query = recorded.text("query") or ""
    return _made(body, wire_format, pairs, policy, endpoint=endpoint, query=query)


def _made(
    body: bytes,
    wire_format: WireFormat | None,
    headers: Sequence[tuple[str, str]],
    policy: Policy | None = None,
    *,
    endpoint: Endpoint = "create",
    query: str = "",
) -> Request:
    if wire_format is None:
        fields = _object(body)
        if isinstance(fields, JsonTextError):
            wire_format = "openai_chat"
        else:
            wire_format = _format_of(fields, Headers(headers), policy)
    if wire_format is None:
        raise BodyError(
            message="the body has neither `messages` nor `input`: name its wire format with "
            "`--format`, in a test with `format`",
            code="unknown_wire_format",
        )
    return Request(
        wire_format=wire_format, body=body, headers=headers, endpoint=endpoint, query=query
    )


def _format_of(fields: ObjectText, headers: Headers, policy: Policy | None) -> WireFormat | None:
    """Return the wire format of a body; one that may be in several is in that of its route."""
    found = guess_format(fields, headers)
    route = policy.route_for(fields.text("model") or "") if policy is not None else None
    spoken = route.wire_formats if route is not None else ()
    if found is None:
        return spoken[0] if spoken else None
    possible = may_be(fields, found)
    return next((each for each in spoken if each in possible), found)


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


def turns_of(request: Request) -> list[Request]:
    """Return the requests of a conversation, the given one last.

    Each holds the history before a turn of the assistant and equals the last one otherwise, but
    only the last can be its session's final one. A request without such turns is returned alone.
    """
    key = request.history_key
    try:
        messages = request.conversation.messages
        history = request.fields.copy().array(key)
    except BodyError:
        return [request]
    if history is None or request.endpoint != "create":
        return [request]
    asked = False
    ends = []
    for message in messages:
        if message.role == "assistant" and asked:
            ends.append(message.first)
        asked = asked or message.role in ("user", "tool")
    return [*(_until(request, end) for end in ends), request]


def _until(request: Request, end: int) -> Request:
    fields = request.fields.copy()
    history = fields.array(request.history_key)
    if history is not None:
        for index in range(len(history) - 1, end - 1, -1):
            history.delete(index)
    return Request(
        wire_format=request.wire_format,
        body=fields.dump(),
        headers=request.headers,
        query=request.query,
        session_final=False,
    )
