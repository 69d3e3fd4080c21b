"""``POST /v1/decision``: the explanation of a request, without a call and without an effect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from switchyard_core.declarations import WIRE_FORMATS, WireFormat
from switchyard_core.errors import BodyError
from switchyard_core.explain.explanation import explain_or_ask
from switchyard_core.jsonio.tree import JsonTextError, ObjectText, encode, loads
from switchyard_core.request import Request

if TYPE_CHECKING:
    from switchyard_core.switchyard import Switchyard

__all__ = ["answer_decision"]

_KEYS = ("input_format", "request", "headers")


async def answer_decision(engine: Switchyard, body: bytes) -> bytes:
    """Return the explanation as JSON; of a router that asks a model, what it would ask.

    Args:
        engine: What decides.
        body: ``{"input_format": <wire format>, "request": <body>, "headers": {name: value}}``;
            ``headers`` may be left out. The request's own bytes are kept.

    Raises:
        RequestError: The body is not that, or the request in it would be refused.
        PluginError: The router broke its contract.
    """
    try:
        fields = ObjectText(body, unique=True)
    except (JsonTextError, UnicodeDecodeError) as error:
        raise BodyError(message=f"cannot read the body: {error}", code="invalid_json") from None
    unknown = [key for key in fields.keys() if key not in _KEYS]  # noqa: SIM118  # no mapping
    if unknown:
        raise _wrong(unknown[0], f"is not known; there are {', '.join(_KEYS)}")
    raw = fields.raw("request")
    if raw is None or raw[:1] != b"{":
        raise _wrong("request", "must be the JSON object that a client would send")
    request = Request(
        wire_format=_wire_format(fields.text("input_format")),
        body=raw,
        headers=_headers(fields.raw("headers")),
    )
    return encode((await explain_or_ask(engine, request)).as_json())


def _wire_format(name: str | None) -> WireFormat:
    for known in WIRE_FORMATS:
        if name == known:
            return known
    raise _wrong("input_format", f"must be one of {', '.join(WIRE_FORMATS)}")


def _headers(raw: bytes | None) -> Mapping[str, str]:
    try:
        headers = {} if raw is None else loads(raw)
    except JsonTextError:
        headers = None
    if not isinstance(headers, dict) or not all(isinstance(v, str) for v in headers.values()):
        raise _wrong("headers", "must be an object of strings")
    return headers


def _wrong(key: str, what: str) -> BodyError:
    return BodyError(message=f"`{key[:100]}` {what}", code="invalid_type", param=key[:100])
