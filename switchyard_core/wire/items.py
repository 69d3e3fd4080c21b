"""Items of a conversation of our own, in each wire format."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from switchyard_core.answering import ToolOutput
from switchyard_core.conversation import Image
from switchyard_core.declarations import WireFormat

__all__ = ["DATA_URL", "assistant_item", "result_items", "user_item"]

#: An image in an address: media type and base64 text.
DATA_URL = re.compile(r"data:(?P<type>[^;,]+)(?:;[^;,]*)*;base64,(?P<data>.*)", re.DOTALL)


def user_item(wire_format: WireFormat, text: str, images: Sequence[Image] = ()) -> dict[str, Any]:
    """Return a message of the user.

    Args:
        wire_format: Of whoever reads it.
        text: Its text.
        images: Its images, written after the text. Only Chat and Responses can say ``detail``.
    """
    if not images:
        return {"role": "user", "content": text}
    kind = "input_text" if wire_format == "openai_responses" else "text"
    parts: list[dict[str, Any]] = [{"type": kind, "text": text}] if text else []
    return {"role": "user", "content": [*parts, *(_IMAGES[wire_format](i) for i in images)]}


def assistant_item(text: str) -> dict[str, Any]:
    """Return text of the assistant; it is the same in the three wire formats."""
    return {"role": "assistant", "content": text}


def result_items(
    wire_format: WireFormat, outputs: Sequence[ToolOutput]
) -> tuple[dict[str, Any], ...]:
    """Return the results of tool calls.

    Messages has them all in one user message and says which failed; in the other formats only
    the text says so.
    """
    if wire_format == "openai_chat":
        return tuple(
            {"role": "tool", "tool_call_id": output.call.id, "content": output.text}
            for output in outputs
        )
    if wire_format == "openai_responses":
        return tuple(
            {"type": "function_call_output", "call_id": output.call.id, "output": output.text}
            for output in outputs
        )
    blocks = [_result_block(output) for output in outputs]
    return ({"role": "user", "content": blocks},) if blocks else ()


def _result_block(output: ToolOutput) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": output.call.id, "content": output.text}
    # The provider refuses an error without a text.
    return block if output.ok else {**block, "content": output.text or "failed", "is_error": True}


def _chat_image(image: Image) -> dict[str, Any]:
    detail = {"detail": image.detail} if image.detail else {}
    return {"type": "image_url", "image_url": {"url": image.url, **detail}}


def _responses_image(image: Image) -> dict[str, Any]:
    return {"type": "input_image", "image_url": image.url, "detail": image.detail or "auto"}


def _messages_image(image: Image) -> dict[str, Any]:
    found = DATA_URL.fullmatch(image.url)
    if found is None:
        return {"type": "image", "source": {"type": "url", "url": image.url}}
    source = {"type": "base64", "media_type": found["type"], "data": found["data"]}
    return {"type": "image", "source": source}


_IMAGES: Mapping[WireFormat, Callable[[Image], dict[str, Any]]] = MappingProxyType(
    {
        "openai_chat": _chat_image,
        "openai_responses": _responses_image,
        "anthropic_messages": _messages_image,
    }
)
