"""What of a Chat Completions body only its provider can read: gateways' signatures, and files."""

from __future__ import annotations

from collections.abc import Iterator

from switchyard_core.jsonio.tree import ArrayText, ObjectText
from switchyard_core.wire.history import FOREIGN, OriginPart
from switchyard_core.wire.origin import file_text, is_set

__all__ = ["origin_bound"]

#: Keys from a message, or from a tool call of it, to a signature.
_SIGNATURES = (
    ("reasoning_signature",),
    ("extra_content", "google", "thought_signature"),
    ("provider_specific_fields", "thought_signatures"),
    ("provider_specific_fields", "thought_signature"),
)


def origin_bound(messages: ArrayText | None) -> list[OriginPart]:
    """Return the parts of messages with the tag ``FOREIGN``, oldest first."""
    parts: list[OriginPart] = []
    for index, message in messages.objects() if messages is not None else ():
        if messages is None or not messages.tagged(index, FOREIGN):
            continue
        place = f"messages[{index}]"
        parts += _signatures(message, place)
        blocks = message.array("thinking_blocks")
        if blocks is not None and any(is_set(block, "signature") for _, block in blocks.objects()):
            parts.append(_member(message, ("thinking_blocks",), place))
        calls = message.array("tool_calls")
        for number, call in calls.objects() if calls is not None else ():
            parts += _signatures(call, f"{place}.tool_calls[{number}]")
        content = message.array("content")
        for number, piece in content.objects() if content is not None else ():
            file = piece.object("file")
            if content is not None and file is not None and is_set(file, "file_id"):
                parts.append(file_text(content, number, f"{place}.content[{number}]"))
    return parts


def _signatures(holder: ObjectText, place: str) -> Iterator[OriginPart]:
    for keys in _SIGNATURES:
        inner: ObjectText | None = holder
        for key in keys[:-1]:
            inner = inner.object(key) if inner is not None else None
        if inner is not None and is_set(inner, keys[-1]):
            yield _member(holder, keys, place)


def _member(holder: ObjectText, keys: tuple[str, ...], place: str) -> OriginPart:
    def remove() -> None:
        """Remove the member, and what then is empty around it."""
        path = [holder]
        for key in keys[:-1]:
            inner = path[-1].object(key)
            if inner is None:
                return
            path.append(inner)
        for outer, key in zip(reversed(path), reversed(keys), strict=True):
            outer.delete(key)
            if len(outer):
                return

    return OriginPart(f"{'.'.join(keys)} of {place}", remove)
