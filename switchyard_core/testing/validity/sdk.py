"""Whether the request types of the official SDKs accept a body."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Any

from pydantic import TypeAdapter, ValidationError

from switchyard_core.declarations import WireFormat

__all__ = ["sdk_problems"]

#: Module and name of the type of each wire format's request, streamed or not.
_TYPES: Mapping[WireFormat, tuple[str, str]] = {
    "openai_chat": ("openai.types.chat.completion_create_params", "CompletionCreateParams"),
    "openai_responses": ("openai.types.responses.response_create_params", "ResponseCreateParams"),
    "anthropic_messages": ("anthropic.types.beta.message_create_params", "MessageCreateParams"),
}
#: Most problems that are told; a union's branches give one each.
_MOST = 6


def sdk_problems(
    wire_format: WireFormat, body: Mapping[str, Any], *, required: bool | None = None
) -> list[str]:
    """Return what the SDK's request type refuses in a body; unknown keys are the provider's affair.

    Args:
        wire_format: Wire format of the body.
        body: The body as a tree; it is not changed.
        required: ``None`` says nothing when the SDK is not installed, ``False`` never asks it.

    Raises:
        ImportError: ``required`` is true and the SDK is not installed.
    """
    if required is False:
        return []
    try:
        adapter = _adapter(wire_format)
    except ImportError:
        if required:
            raise
        return []
    try:
        _read(adapter.validate_python(_known(wire_format, body), strict=True))
    except ValidationError as error:
        problems = error.errors(include_url=False, include_context=False)
        lines = [
            f"{_path(problem['loc'])}: {problem['msg']} (official SDK)" for problem in problems
        ]
        return list(dict.fromkeys(lines))[:_MOST]
    return []


@cache
def _adapter(wire_format: WireFormat) -> TypeAdapter[Any]:
    # It must outlive what it validates: pydantic's iterators refer to it. Making one is slow.
    module, name = _TYPES[wire_format]
    return TypeAdapter(getattr(import_module(module), name))


def _known(wire_format: WireFormat, body: Mapping[str, Any]) -> dict[str, Any]:
    """Write a body as the SDK's types want it where the provider takes more than they say."""
    known = dict(body)
    if wire_format == "openai_responses" and isinstance(known.get("input"), list):
        known["input"] = [
            _known_item(item) for item in known["input"] if item.get("type") != "additional_tools"
        ]
    return known


def _known_item(item: dict[str, Any]) -> dict[str, Any]:
    # Codex sends a null content, and items that were never stored have no id.
    kind = item.get("type", "message")
    if kind == "reasoning":
        return {"id": "rs_", **{key: value for key, value in item.items() if value is not None}}
    content = item.get("content")
    if kind == "message" and item.get("role") == "assistant" and isinstance(content, list):
        parts = [{"annotations": [], **part} for part in content]
        made = {"type": "message", "id": "msg_", "status": "completed"}
        return {**made, **item, "content": parts}
    return item


def _read(value: Any) -> None:
    """Read iterables to their end: pydantic checks what is in them only then."""
    if isinstance(value, Mapping):
        for inner in value.values():
            _read(inner)
    elif isinstance(value, list | tuple | Iterator):
        for inner in value:
            _read(inner)


def _path(location: tuple[int | str, ...]) -> str:
    """Return a wire path: without the names of the types that a union tried."""
    return ".".join(str(part) for part in location if not re.search(r"[A-Z\[]", str(part)))
