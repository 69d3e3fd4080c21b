"""What a caller says in messages of any wire format: the user's words and images, instructions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from switchyard_core.conversation import Image, UserMessage
from switchyard_core.jsonio.tree import JsonTextError, loads
from switchyard_core.wire.history import TEXT_TYPES, word

__all__ = ["instruction_text", "only_results", "said_by_user"]

#: A part of a Messages user message that is not a word of the user.
_RESULT = "tool_result"


def said_by_user(content: bytes | msgspec.Raw) -> UserMessage:
    """Return a user message, from the JSON of its content in any wire format."""
    texts: list[str] = []
    images: list[Image] = []
    left_out: list[str] = []
    for part in _parts(content):
        kind = word(part.get("type"))
        if kind in TEXT_TYPES:
            texts.append(word(part.get("text")))
        elif kind != _RESULT:
            image = _image(part)
            if image is None:
                left_out.append(kind)
            else:
                images.append(image)
    return UserMessage(text=_joined(texts), images=tuple(images), left_out=tuple(left_out))


def only_results(content: bytes | msgspec.Raw) -> bool:
    """Return whether the content of a message is tool results and nothing else."""
    parts = _parts(content)
    return bool(parts) and all(part.get("type") == _RESULT for part in parts)


def instruction_text(contents: Iterable[bytes | msgspec.Raw]) -> str:
    """Return the texts of some instructions, joined by a blank line."""
    return _joined(
        word(part.get("text"))
        for content in contents
        for part in _parts(content)
        if word(part.get("type")) in TEXT_TYPES
    )


def _parts(content: bytes | msgspec.Raw) -> list[Mapping[str, Any]]:
    raw = bytes(content)
    if raw[:1] not in (b'"', b"["):
        return []
    try:
        tree = loads(raw)
    except JsonTextError:
        return []
    if isinstance(tree, str):
        return [{"type": "text", "text": tree}]
    return [part if isinstance(part, dict) else {} for part in tree]


def _image(part: Mapping[str, Any]) -> Image | None:
    """Return the image of a part, ``None`` when it has none that can be passed on."""
    kind = part.get("type")
    if kind == "image":
        source = part.get("source")
        url = _source_url(source) if isinstance(source, dict) else ""
        return Image(url=url) if url else None
    if kind not in ("image_url", "input_image"):
        return None
    place = part.get("image_url")
    # Chat has address and detail in an object of their own.
    holder = place if isinstance(place, dict) else {**part, "url": place}
    url, detail = word(holder.get("url")), word(holder.get("detail"))
    return Image(url=url, detail="" if detail == "auto" else detail) if url else None


def _source_url(source: Mapping[str, Any]) -> str:
    if source.get("type") == "base64":
        media, data = word(source.get("media_type")), word(source.get("data"))
        return f"data:{media};base64,{data}" if media and data else ""
    return word(source.get("url")) if source.get("type") == "url" else ""


def _joined(texts: Iterable[str]) -> str:
    return "\n\n".join(text for text in texts if text)
