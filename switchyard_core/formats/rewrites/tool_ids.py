"""Tool ids that the next provider accepts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Literal

from pydantic import BaseModel, ConfigDict

from switchyard_core.declarations import RewriteScope, WireFormat
from switchyard_core.formats.rewrites.companions import When, needed
from switchyard_core.jsontext import ObjectText, encode

__all__ = ["RemapParameters", "remap_ids"]

_LEGAL: dict[str, re.Pattern[str]] = {
    "openai_chat": re.compile(r".{1,40}", re.DOTALL),
    "openai_responses": re.compile(r".{1,64}", re.DOTALL),
    "anthropic_messages": re.compile(r"[a-zA-Z0-9_-]{1,64}"),
    "alphanumeric_9": re.compile(r"[a-zA-Z0-9]{9}"),
}
_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


class RemapParameters(BaseModel):
    """Which ids are legal.

    Args:
        when: ``always`` at another origin, ``dropped`` at the same one.
        style: ``alphanumeric_9`` for targets that want exactly nine letters or digits.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    when: When = "always"
    style: Literal["format", "alphanumeric_9"] = "format"


def remap_ids(body: ObjectText, parameters: RemapParameters, scope: RewriteScope) -> Sequence[str]:
    """Replace every id that the target refuses by a hash of it, in calls and in results."""
    if not needed(parameters.when, scope):
        return ()
    style = scope.wire_format if parameters.style == "format" else parameters.style
    legal = _LEGAL[style]
    seen: dict[str, str] = {}
    for holder, key in _id_places(body, scope.wire_format):
        old = holder.text(key)
        if old is None or legal.fullmatch(old):
            continue
        seen[old] = _hashed(old, style)
        holder.set(key, encode(seen[old]))
    return [f"renamed {len(seen)} tool ids"] if seen else []


def _hashed(old: str, style: str) -> str:
    digest = blake2b(old.encode("utf-8", "surrogatepass"), digest_size=16)
    if style != "alphanumeric_9":
        return "call_" + digest.hexdigest()[:24]
    number, letters = int.from_bytes(digest.digest()), ""
    for _ in range(9):
        number, rest = divmod(number, len(_ALPHABET))
        letters += _ALPHABET[rest]
    return letters


def _id_places(body: ObjectText, wire_format: WireFormat) -> Iterator[tuple[ObjectText, str]]:
    if wire_format == "openai_responses":
        items = body.array("input")
        for _, item in items.objects() if items is not None else ():
            if "call_id" in item:
                yield item, "call_id"
        return
    messages = body.array("messages")
    for _, message in messages.objects() if messages is not None else ():
        if wire_format == "openai_chat":
            if "tool_call_id" in message:
                yield message, "tool_call_id"
            calls = message.array("tool_calls")
            yield from ((call, "id") for _, call in calls.objects()) if calls is not None else ()
            continue
        content = message.array("content")
        for _, block in content.objects() if content is not None else ():
            if block.text("type") == "tool_use":
                yield block, "id"
            elif block.text("type") == "tool_result":
                yield block, "tool_use_id"
