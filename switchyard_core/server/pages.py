"""The pages that are not calls to models: the list of models, explanations, metrics, health."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from switchyard_core.declarations import WIRE_FORMATS, WireFormat
from switchyard_core.errors import BodyError
from switchyard_core.explain.explanation import explain_or_ask
from switchyard_core.jsonio.tree import JsonTextError, ObjectText, encode, loads
from switchyard_core.policy.models import Policy, Route
from switchyard_core.request import Request

if TYPE_CHECKING:
    from switchyard_core.switchyard import Switchyard

__all__ = ["answer_decision", "model_list", "models_of"]

# A route has no day of birth; a fixed one keeps the list equal between starts.
_CREATED = 1_735_689_600
_CREATED_AT = "2025-01-01T00:00:00Z"


def models_of(policy: Policy) -> dict[str, dict[str, Any]]:
    """Return the wire object of each model id that callers may use, in the policy's order.

    Globs are left out: they are not ids.
    """
    return {
        model: _model(model, route)
        for route in policy.routes.values()
        for model in (route.id, *route.aliases)
        if "*" not in model or model == route.id
    }


def _model(model: str, route: Route) -> dict[str, Any]:
    about = {
        "id": model,
        "object": "model",
        "created": _CREATED,
        "owned_by": "switchyard",
        "type": "model",
        "display_name": model,
        "created_at": _CREATED_AT,
        "lifecycle": "active",
    }
    declared = {
        "context_window": route.context_window,
        "tool_calling": route.tool_calling,
        "reasoning": route.reasoning,
    }
    return about | {name: value for name, value in declared.items() if value is not None}


def model_list(models: dict[str, dict[str, Any]], query: str) -> dict[str, Any]:
    """Return the page of the list that a query's ``limit``, ``after_id``, ``before_id`` ask for.

    A query with ``client_version`` is of Codex, and gets what Codex reads as well.
    """
    options = {name: values[-1] for name, values in parse_qs(query).items()}
    page = list(models)
    if options.get("after_id") in models:
        page = page[page.index(options["after_id"]) + 1 :]
    if options.get("before_id") in page:
        page = page[: page.index(options["before_id"])]
    limit = options.get("limit", "")
    size = int(limit) if limit.isdecimal() and len(limit) < 10 and int(limit) > 0 else len(page)
    more = len(page) > size
    backwards = "before_id" in options and "after_id" not in options
    page = page[-size:] if backwards and size else page[:size]
    found = {
        "object": "list",
        "data": [models[name] for name in page],
        "has_more": more,
        "first_id": page[0] if page else None,
        "last_id": page[-1] if page else None,
    }
    # Codex reads `models`, whose entries would replace its own instructions and tools: with none
    # it keeps what it knows of each model.
    return {**found, "models": []} if "client_version" in options else found


_KEYS = ("input_format", "request", "headers")


async def answer_decision(engine: Switchyard, body: bytes) -> bytes:
    """Return the explanation as JSON; of a router that asks a model, what it would ask.

    The body is ``{"input_format": <wire format>, "request": <body>, "headers": {name: value}}``,
    ``headers`` optional; the request's own bytes are kept.
    """
    try:
        fields = ObjectText(body, unique=True)
    except (JsonTextError, UnicodeDecodeError) as error:
        raise BodyError(f"cannot read the body: {error}", "invalid_json") from None
    unknown = [key for key in fields.keys() if key not in _KEYS]  # noqa: SIM118  # no mapping
    if unknown:
        raise _wrong(unknown[0], f"is not a known key (keys: {', '.join(_KEYS)})")
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
    return BodyError(f"`{key[:100]}` {what}", "invalid_type", param=key[:100])
