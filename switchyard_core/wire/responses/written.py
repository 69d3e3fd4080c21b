"""Neutral turns as the items of a Responses history."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from mimetypes import guess_extension
from typing import Any

from switchyard_core.jsonio.tree import encode
from switchyard_core.wire.format import Format
from switchyard_core.wire.history import fixed_text
from switchyard_core.wire.naming import ToolNames
from switchyard_core.wire.neutral import (
    Call,
    Media,
    NeutralPart,
    NeutralRequest,
    Result,
    Thought,
    Told,
    Turn,
    Words,
)
from switchyard_core.wire.pairing import paired

__all__ = ["write_history"]

_NAMED = {"image": "an image", "file": "a file"}
_ROLES = {"system": "developer", "user": "user", "assistant": "assistant"}


def write_history(request: NeutralRequest, names: ToolNames, target: Format) -> bytes:
    """Return the array of ``input``; name what it has no place for."""
    told, items = request.told, list[dict[str, Any]]()
    turns = paired([_without_thoughts(turn, told) for turn in request.turns], target, told)
    if any(getattr(part, "cache", b"") for part in _marked(request)):
        told.left_out.append("cache marks")
    for turn in turns:
        if turn.role == "tool":
            items += [_result(part, told) for part in turn.parts if isinstance(part, Result)]
        else:
            items += _said(turn, len(items), names, told)
    if not items and not request.instructions:
        told.changed.append("added a message of the user, for there was none")
        text = {"type": "input_text", "text": fixed_text("go_on")}
        items.append(_message("user", [text], 0))
    return encode(items)


def _without_thoughts(turn: Turn, told: Told) -> Turn:
    """Return a turn without reasoning: OpenAI refuses what it cannot decrypt or find by its id."""
    parts = tuple([part for part in turn.parts if not isinstance(part, Thought)])
    if len(parts) < len(turn.parts):
        told.left_out.append("reasoning of earlier turns")
    return replace(turn, parts=parts)


def _marked(request: NeutralRequest) -> Iterator[Any]:
    yield from request.instructions
    yield from request.tools
    for turn in request.turns:
        for part in turn.parts:
            yield part
            yield from part.parts if isinstance(part, Result) else ()


def _said(turn: Turn, number: int, names: ToolNames, told: Told) -> list[dict[str, Any]]:
    """Return the items of a turn: texts between two calls are one message."""
    items: list[dict[str, Any]] = []
    content: list[dict[str, Any]] = []

    def close() -> None:
        if content:
            items.append(_message(turn.role, list(content), number + len(items)))
            content.clear()

    for part in turn.parts:
        if isinstance(part, Call):
            close()
            items.append(_call(part, names))
        else:
            content += _content(part, turn.role, told)
    close()
    return items


def _message(role: str, content: list[dict[str, Any]], number: int) -> dict[str, Any]:
    item = {"type": "message", "role": _ROLES[role], "content": content}
    # Output messages have an id and a status, in the SDK's types and for strict gateways.
    made = {"id": f"msg_{number}", "status": "completed"} if role == "assistant" else {}
    return {**item, **made}


def _content(part: NeutralPart, role: str, told: Told) -> Iterator[dict[str, Any]]:
    if isinstance(part, Words) and role == "assistant":
        if part.refusal:
            yield {"type": "refusal", "refusal": part.text}
        else:
            yield {"type": "output_text", "text": part.text, "annotations": []}
    elif isinstance(part, Words):
        yield {"type": "input_text", "text": part.text}
    elif isinstance(part, Media) and role == "user":
        yield _media(part, told)
    elif isinstance(part, Media):
        told.lost.append(f"{_NAMED[part.kind]} of the {_ROLES[role]}")


def _media(part: Media, told: Told) -> dict[str, Any]:
    if part.kind == "image":
        return {"type": "input_image", "image_url": part.url, "detail": part.detail or "auto"}
    text = part.text
    if text:
        # Most providers take documents alone as files.
        told.changed.append(f"wrote the file `{part.name or 'without a name'}` as text")
        return {"type": "input_text", "text": text}
    detail = {"detail": part.detail} if part.detail in ("low", "high") else {}
    if not part.url.startswith("data:"):
        if part.name:
            told.left_out.append(f"the name `{part.name}` of a file that has an address")
        return {"type": "input_file", "file_url": part.url, **detail}
    media_type = part.url.removeprefix("data:").partition(";")[0]
    # The provider demands a name beside data.
    name = part.name or f"file{guess_extension(media_type) or ''}"
    return {"type": "input_file", "filename": name, "file_data": part.url, **detail}


def _call(call: Call, names: ToolNames) -> dict[str, Any]:
    name = names.at_target(call.tool)
    named = {"call_id": call.id, "name": name.name}
    if name.namespace:
        named["namespace"] = name.namespace
    if call.custom:
        return {"type": "custom_tool_call", **named, "input": call.arguments}
    return {"type": "function_call", **named, "arguments": call.arguments or "{}"}


def _result(result: Result, told: Told) -> dict[str, Any]:
    texts = [part.text for part in result.parts if isinstance(part, Words)]
    failed = fixed_text("failed_result") if result.failed else ""
    output: Any = "\n\n".join(texts) or fixed_text("empty_result")
    if failed and not output.startswith(failed):
        output = failed + output
    if len(texts) < len(result.parts):
        head = [Words(text=failed.strip())] if failed else []
        output = [
            {"type": "input_text", "text": part.text}
            if isinstance(part, Words)
            else _media(part, told)
            for part in (*head, *result.parts)
        ]
    kind = "custom_tool_call_output" if result.custom else "function_call_output"
    return {"type": kind, "call_id": result.call_id, "output": output}
